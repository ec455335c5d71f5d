"""What every room uses: errors, dtypes, arguments, text. NumPy and the standard library only."""
