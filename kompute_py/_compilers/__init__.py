"""Shader source to SPIR-V: the compilers, their limits, their own process, the cache on disk."""
