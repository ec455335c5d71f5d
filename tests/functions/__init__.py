"""Functions: calls, files, specialization."""
