"""Algorithms, operations, and the sequences that record and evaluate them."""
