"""Devices: choosing and opening one, its options, its messages, its memory, what it refuses of a shader."""
