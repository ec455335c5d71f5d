"""Elements in other places, new arrays."""
