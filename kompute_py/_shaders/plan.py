"""What the Python side derives from a shader's reflection, once for each shader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import _native
from .constants import SpecConstants
from .layout import BUFFERS, element_dtype
from .push import Block
from .signature import Parameter, parameter_of


class Binding(NamedTuple):
    """One binding of a shader. Tensor i of an algorithm goes to binding i."""

    binding: int
    kind: str
    """Vulkan's term: "storage buffer", "uniform buffer", "storage image", ..."""
    access: str
    """What the shader really does with it: "none", "read", "write" or "read_write"."""
    name: str
    """The variable's name, or the block's where it has none."""
    dtype: np.dtype[Any] | None = None
    """Of a buffer: the NumPy dtype with the layout of one element, or of all of a block that is no array (see
    `kp.struct_dtype`). None for images, and where an array of run-time length follows other members."""


class PushConstants(NamedTuple):
    """A shader's push constant block."""

    name: str
    size: int
    """Bytes."""
    components: tuple[str, ...]
    """Names of the scalars in the order in which a list of values fills them."""


class SpecConstant(NamedTuple):
    """One specialization constant of a shader."""

    id: int
    name: str
    type: str
    default: bool | int | float


class ShaderPlan:
    """Tables that make an algorithm of a known shader cheap. Kept in the native shader's `extra`."""

    __slots__ = (
        "bindings",
        "blocks",
        "push",
        "push_constants",
        "refusal",
        "required",
        "slots",
        "spec",
        "spec_constants",
        "top",
        "warned",
    )

    def __init__(self, reflected: Mapping[str, Any]) -> None:
        bindings = []
        required: list[tuple[int, bool, Binding, Parameter | None]] = []
        # (position, dtype) of tensors that contradict the shader, of which was warned.
        self.warned: set[tuple[int, np.dtype[Any]]] = set()
        # Why tensors by position cannot serve this shader; "" where they can.
        self.refusal = ""
        # Layouts by binding, to check structured dtypes against.
        self.blocks: dict[int, Mapping[str, Any]] = {}
        for b in reflected["bindings"]:
            name = b["name"] or b["block_name"]
            used = b["used"]
            if used and b["set"] != 0:
                self.refusal = (
                    f"The shader's {b['kind']} {name!r} is in descriptor set {b['set']}; an algorithm binds set 0 by position: "
                    "declare layout(set = 0, binding = ...), or use mgr.kernel, which binds by name"
                )
            elif used and b["count"] != 1:
                self.refusal = (
                    f"The shader's binding {b['binding']} ({name!r}) is an array of {b['kind']}s; give each one a binding "
                    "number of its own, or use mgr.kernel, which takes a list there"
                )
            is_buffer = b["kind"] in BUFFERS
            dtype = element_dtype(b["layout"]) if is_buffer else None
            bindings.append(Binding(b["binding"], b["kind"], b["access"], name, dtype))
            if is_buffer and used:
                self.blocks[b["binding"]] = b["layout"]
            if used:
                parameter = parameter_of(b) if is_buffer else None
                scalar = parameter if parameter is not None and parameter.dtype is not None else None
                required.append((b["binding"], "image" in b["kind"], bindings[-1], scalar))
        self.bindings = tuple(bindings)
        self.required = tuple(required)
        self.slots = max((each[0] for each in required), default=-1) + 1
        # Bindings that are declared but unused still take a position, so that giving their tensors is no surplus.
        self.top = max((b.binding for b in bindings), default=-1) + 1
        block = reflected["push_constants"]
        self.push = None if block is None or block["size"] == 0 else Block(block)
        self.push_constants = (
            None
            if self.push is None
            else PushConstants(self.push.name, self.push.size, tuple(self.push.component_names))
        )
        self.spec = SpecConstants(reflected["spec_constants"])
        self.spec_constants = tuple(
            SpecConstant(c["id"], c["name"], c["type"], c["default"]) for c in reflected["spec_constants"]
        )


def plan_of(shader: _native.Shader) -> ShaderPlan:
    """The plan of a native shader, made on first use."""
    plan = shader.extra
    if type(plan) is not ShaderPlan:
        plan = shader.extra = ShaderPlan(shader.reflection)
    return plan
