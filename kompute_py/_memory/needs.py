"""The memory that a call will need, before anything is allocated."""

from __future__ import annotations

from typing import NamedTuple

from .._base.text import binary_size


class MemoryNeeds(NamedTuple):
    """The memory that a call needs, in bytes: the result of `Function.memory_needs` and
    `Kernel.memory_needs`. Its text is a line.

    >>> needs = kp.ops.add.memory_needs(kp.TensorSpec(1000), kp.TensorSpec(1000))
    >>> needs.inputs, needs.outputs, needs.scratch
    (8000, 4000, 0)
    """

    code: int
    """The shaders' SPIR-V, in the host's memory. Drivers make code of their own of it; Vulkan does not tell
    its size."""
    inputs: int
    """Device memory of arguments that are only read: of Tensors their own, of an array the buffer that stands
    for it."""
    outputs: int
    """Device memory of new results and of arguments that are written."""
    scratch: int
    """Device memory that the call needs besides: what dispatches pass to each other, tables, copies of what
    shaders cannot bind. Operations of a Manager share most of it and keep it."""

    @property
    def total(self) -> int:
        """All of the device's memory: inputs, outputs and scratch."""
        return self.inputs + self.outputs + self.scratch

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {binary_size(getattr(self, name))}" for name in self._fields[1:])
        return f"{binary_size(self.total)} ({parts}), code {binary_size(self.code)}"


MemoryNeeds.__module__ = "kompute_py"  # public; imported when first used
