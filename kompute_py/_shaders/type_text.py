"""The names of types in shaders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# A shader's scalars: GLSL's name, the prefix of vectors and matrices, NumPy's dtype.
GLSL_SCALARS: dict[str, tuple[str, str, str]] = {
    "bool": ("bool", "b", "uint32"),
    "int8": ("int8_t", "i8", "int8"),
    "uint8": ("uint8_t", "u8", "uint8"),
    "int16": ("int16_t", "i16", "int16"),
    "uint16": ("uint16_t", "u16", "uint16"),
    "int32": ("int", "i", "int32"),
    "uint32": ("uint", "u", "uint32"),
    "int64": ("int64_t", "i64", "int64"),
    "uint64": ("uint64_t", "u64", "uint64"),
    "float16": ("float16_t", "f16", "float16"),
    "bfloat16": ("bfloat16_t", "bf16", "bfloat16"),
    "float32": ("float", "", "float32"),
    "float64": ("double", "d", "float64"),
}

_HLSL = {"float16": "half"}  # HLSL's names that differ from GLSL's


def type_text(layout: Mapping[str, Any]) -> str:
    """GLSL's name of a reflected type: ``vec4[]``, ``mat3x2``, ``struct Particle[16]``.

    A matrix of HLSL or Slang has that language's name, which counts rows first: ``float2x3`` has two rows.
    """
    kind = layout["kind"]
    if kind == "struct":
        text = f"struct {layout['type_name']}" if layout["type_name"] else "struct"
    elif kind == "pointer":
        text = f"{layout['type_name'] or 'buffer'}*"
    elif kind not in GLSL_SCALARS:
        text = kind
    else:
        name, prefix, _ = GLSL_SCALARS[kind]
        rows, columns = max(1, layout["rows"]), max(1, layout["columns"])
        if columns > 1 and layout["hlsl_matrix"]:
            text = f"{_HLSL.get(kind, name)}{rows}x{columns}"
        elif columns > 1:
            text = f"{prefix}mat{columns}x{rows}" if columns != rows else f"{prefix}mat{rows}"
        else:
            text = f"{prefix}vec{rows}" if rows > 1 else name
    return text + "".join(f"[{length or ''}]" for length in layout["array"])
