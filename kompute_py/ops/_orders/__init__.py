"""Sorting, selecting, searching and counting."""
