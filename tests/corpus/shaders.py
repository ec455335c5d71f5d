"""The compute shaders in an archive, each with what its project compiles it with."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from .archives import Archive

# What ggml's generator defines for its shaders, each of which takes some of it.
_GGML = {
    "FLOAT_TYPE": "float", "FLOAT_TYPE_VEC2": "vec2", "FLOAT_TYPE_VEC4": "vec4", "FLOAT_TYPE_VEC8": "mat2x4",
    "FLOAT16": "",
    "ACC_TYPE": "float", "ACC_TYPE_VEC2": "vec2", "A_TYPE": "float", "A_TYPE4": "vec4", "B_TYPE": "float",
    "B_TYPE_VEC2": "vec2", "B_TYPE_VEC4": "vec4", "B_TYPE32": "float", "D_TYPE": "float", "D_TYPE4": "vec4",
    "S_TYPE": "float", "TEMP_TYPE": "vec4", "DST_TYPE": "float", "Q_TYPE": "float",
    "LOAD_VEC_A": "1", "LOAD_VEC_B": "1", "OP": "x", "RTE16": "0", "IM2COL": "1", "SCHUNK": "1",
    "KV_BOUNDS_CHECK": "1",
}  # fmt: skip
_GGML_FLOATS = {
    "f32": {"DATA_A_F32": "1"},
    "f16": {
        "DATA_A_F16": "1", "A_TYPE": "float16_t", "A_TYPE4": "f16vec4", "D_TYPE": "float16_t",
        "SET_ROWS": "1",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Published:
    """One shader, or one of the ways to compile it."""

    name: str
    """The archive's name, the path in it, and the way."""
    path: str
    language: str
    """"glsl", "hlsl" or "spvasm"."""
    defines: dict[str, str] = field(default_factory=dict)
    target: str = "vulkan1.2"


def _ggml(name: str, path: Path) -> list[Published]:
    # Shaders of one quantized format are named for it; others take any.
    formats = re.findall(r"_(iq\d_\w+|q\d_\w|mxfp4)$", path.stem) or ["q4_0", "q6_k"]
    ways: dict[str, dict[str, str]] = {way: _GGML | own for way, own in _GGML_FLOATS.items()}
    for quantized in formats:
        # Its type is defined by the format's own include.
        plain = {key: value for key, value in _GGML.items() if key not in ("A_TYPE", "A_TYPE4")}
        ways[quantized] = {**plain, f"DATA_A_{quantized.upper()}": "1", "USE_SUBGROUP_ADD": "1"}
    return [Published(f"{name} ({way})", str(path), "glsl", defines) for way, defines in ways.items()]


def _language(path: Path) -> str:
    if "asm" in path.parts or path.name.endswith(".asm.comp"):
        return "spvasm"
    return "hlsl" if path.name.startswith("hlsl.") or path.suffix == ".hlsl" else "glsl"


def published(archive: Archive) -> list[Published]:
    """All of an archive's compute shaders, in an order that does not change.

    Raises CorpusUnavailableError.
    """
    folder = archive.folder()
    found: list[Published] = []
    for path in sorted(folder.rglob("*")):
        # SPIRV-Cross's "reference" is what it makes of its sources, in other languages, too.
        if path.suffix not in (".comp", ".glsl") or "reference" in path.parts or not path.is_file():
            continue
        name = f"{archive.name}: {path.relative_to(folder).as_posix().split('/', 1)[-1]}"
        if archive.name == "ggml":
            if path.suffix == ".comp":
                found += _ggml(name, path)
        else:
            target = "vulkan1.3" if "spv.1.6" in path.name else "vulkan1.2"
            found.append(Published(name, str(path), _language(path), target=target))
    return found
