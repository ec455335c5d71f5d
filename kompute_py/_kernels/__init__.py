"""Shaders that are called like functions."""
