"""Benchmarks: how close the engine is to the same work in C++ and to memcpy.

Run them with `python -m benchmarks`.
"""
