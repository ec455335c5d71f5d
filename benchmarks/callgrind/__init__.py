"""Instruction counts of the engine's small calls, which are the same however busy the machine is."""
