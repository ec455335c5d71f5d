"""Matrices, sums of products, and the layers of networks."""
