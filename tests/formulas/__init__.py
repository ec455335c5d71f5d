"""Expressions and their numbers."""
