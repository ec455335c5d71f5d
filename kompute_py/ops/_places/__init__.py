"""Elements in other places, new ones, and the parts that several areas share."""
