"""Compilers, SPIR-V, layouts, constants."""
