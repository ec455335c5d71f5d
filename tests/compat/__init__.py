"""Kompute's own scripts."""
