"""Instruction counts of the engine's small calls, which are the same however busy the machine is."""

from .counting import CountError, count, count_all
from .works import WORKS

__all__ = ["WORKS", "CountError", "count", "count_all"]
