"""Custom operations: what a class declares becomes a callable, an operation to record, and a file."""
