"""Tests of the library of operations, `kp.ops`."""
