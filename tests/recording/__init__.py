"""Algorithms, operations, sequences."""
