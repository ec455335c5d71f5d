"""SPIR-V from what the caller gave."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError
from .._compilers.limits import read_file


def to_spirv(spirv: Any) -> bytes:
    """SPIR-V as bytes from bytes, bytearray, memoryview, an array of uint32, the path of a .spv file, or a ShaderModule."""
    if isinstance(spirv, (bytes, bytearray, memoryview)):
        return bytes(spirv)
    if isinstance(spirv, np.ndarray):
        if spirv.dtype.kind not in "ui":
            raise ArgumentTypeError(f"SPIR-V as an array has dtype uint32; this one has {spirv.dtype}")
        return spirv.tobytes()
    if isinstance(spirv, os.PathLike) or (
        isinstance(spirv, str) and spirv.endswith(".spv") and "\n" not in spirv
    ):
        return read_file(spirv, "SPIR-V")
    if isinstance(spirv, str):
        raise ArgumentTypeError(
            "The shader is a str; SPIR-V is bytes. Compile the source first: kp.compile(source)"
        )
    convert = getattr(spirv, "to_spirv", None)
    if callable(convert):
        return to_spirv(convert())
    if isinstance(spirv, list) and all(isinstance(word, int) for word in spirv):
        try:
            return np.asarray(spirv, dtype=np.uint32).tobytes()
        except (ValueError, OverflowError) as error:
            raise InvalidArgumentError(f"SPIR-V as a list has ints from 0 to 2**32 - 1: {error}") from None
    raise ArgumentTypeError(
        f"SPIR-V is bytes, not {type(spirv).__name__}; compile a shader with kp.compile(source)"
    )
