"""The extensions of GLSL that the compiler of this package takes."""

from __future__ import annotations

import functools

from .._base.errors import ShaderCompileError
from .compile import compile


@functools.cache
def takes_extension(name: str) -> bool:
    """Whether the compiler takes an extension of GLSL: older ones refuse those that came later. A process
    tries each once."""
    try:
        compile(f"#version 450\n#extension {name} : require\nvoid main() {{}}", optimize=False)
    except ShaderCompileError:
        return False
    return True
