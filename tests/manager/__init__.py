"""Managers, their life and end."""
