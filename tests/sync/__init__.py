"""Fences, semaphores, waiting."""
