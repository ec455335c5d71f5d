"""Kernels, functions and programs over Dask arrays."""
