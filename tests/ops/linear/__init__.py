"""Matrices and networks."""
