"""The C floor: what the same work costs a careful C++ program, with no Python and no engine in between."""

from .floor import CopyPair, Floor, FloorError, build, create_device, load

__all__ = ["CopyPair", "Floor", "FloorError", "build", "create_device", "load"]
