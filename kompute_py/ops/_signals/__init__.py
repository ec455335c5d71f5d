"""Filters, pictures and Fourier transforms."""
