"""Tensors, images and their memory."""
