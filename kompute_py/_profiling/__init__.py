"""Profiles: what a device ran, when, and what the host did meanwhile."""
