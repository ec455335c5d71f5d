"""Elementwise values, sums and their like over axes, and running ones."""
