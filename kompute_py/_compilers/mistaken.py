"""A source that does not compile may be something else: a graphics shader, another language, a mistyped path.

Looked at after an error only; each sign is one that the language asked for does not have.
"""

from __future__ import annotations

import os
import re

from .._base.errors import InvalidArgumentError, KomputeError, NotFoundError
from .._base.file_access import current_folder

# Built-in variables, and inputs and outputs by location, that only graphics stages have.
_GRAPHICS = (
    rb"(?i)\bgl_(Position|FragCoord|FragColor|FragDepth|VertexIndex|VertexID|InstanceIndex|PrimitiveID|TessCoord)\b"
    rb"|layout\s*\(\s*location\s*=\s*\d+\s*\)\s*(?:\w+\s+)?(?:in|out)\b|\bSV_(Position|Target\d?|VertexID)\b"
)
# Languages that kompute_py does not compile: their signs, and the page that leads here, if any. Metal comes
# before OpenCL C, which has its "kernel void", too.
_FOREIGN = (
    ("WGSL", rb"@(compute|workgroup_size)\b|\bvar\s*<\s*(storage|uniform|workgroup|private)\b", "wgpu"),
    ("CUDA", rb"\b__(global|device|shared)__\b|\b(threadIdx|blockIdx|blockDim)\s*\.", "CuPy"),
    ("Metal", rb"#\s*include\s*<metal_|\busing\s+namespace\s+metal\b|\[\[\s*(buffer|thread_\w+)\b", ""),
    ("OpenCL C", rb"\b(__kernel|get_global_id|get_local_id|kernel\s+void)\b", "PyOpenCL"),
)
_HLSL = (
    rb"\[\s*numthreads\s*\(|\bSV_(DispatchThreadID|GroupID|GroupThreadID|GroupIndex)\b|\bgroupshared\b"
    rb"|\b(RW)?(StructuredBuffer|ByteAddressBuffer|Texture[123]D)\b|\bregister\s*\(\s*[tubs]\d"
)
_GLSL = rb"^\s*#\s*version\s+\d+|\blayout\s*\(\s*(local_size_x|set|binding|std430|std140|push_constant)\b"
_PATH = rb"[\w.~:/\\ -]*(?:[/\\][\w.~ -]+|\w\.[A-Za-z]\w{0,7})"


def hint(source: bytes, language: str) -> str:
    """A sentence that says what the source looks like; "" if it is nothing known."""
    if re.search(_GRAPHICS, source):
        # The compiler complains about each line that only a graphics shader can have; this says what they
        # have in common.
        return (
            "It looks like a graphics shader; kompute_py runs compute shaders: a main() with "
            "layout(local_size_x = N) in (GLSL), or [numthreads(N, 1, 1)] (HLSL)"
        )
    for name, signs, guide in _FOREIGN:
        if re.search(signs, source):
            found = f"It looks like {name}; kompute_py compiles GLSL, HLSL and Slang"
            return f'{found}. The page "Coming from {guide}" shows the same in GLSL' if guide else found
    if language == "glsl" and re.search(_HLSL, source):
        return (
            'It looks like HLSL or Slang, and is compiled as GLSL: give language="hlsl" or "slang", or a '
            'path that ends so (the guide "HLSL and Slang")'
        )
    if language != "glsl" and re.search(_GLSL, source, re.MULTILINE):
        return 'It looks like GLSL: give language="glsl", or a path that ends in .comp or .glsl'
    return ""


def as_path(source: bytes, suffixes: str) -> KomputeError | None:
    """The error for text that looks like a path and is not source; None for other text."""
    if not re.fullmatch(_PATH, source):
        return None
    path = os.fsdecode(source)
    if os.path.exists(path):
        return InvalidArgumentError(
            f"{path!r} is a file, but a str counts as a path only if it ends in {suffixes}: give "
            f"pathlib.Path({path!r})"
        )
    return NotFoundError(
        f"There is no shader file {path!r} (in {current_folder()!r}), and it is not source text"
    )
