"""Errors, dtypes, arguments, files."""
