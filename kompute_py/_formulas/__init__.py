"""Expressions as in Python and NumPy, typed by NumPy's rules and written as GLSL."""
