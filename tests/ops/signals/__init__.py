"""Filters, transforms, pictures."""
