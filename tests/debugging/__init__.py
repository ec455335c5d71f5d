"""Choosing and opening devices, options, limits."""
