"""Shared by all rooms: errors, dtypes, arguments, text. Uses only NumPy and the standard library."""
