"""Notebooks, and how objects look in them."""
