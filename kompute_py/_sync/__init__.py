"""Fences, semaphores, and waiting for them in asyncio."""
