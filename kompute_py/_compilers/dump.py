"""The option `dump`: a folder that keeps each shader's source and SPIR-V."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from .. import _native
from .._base.digest import digest
from .._base.errors import UnavailableError
from .._base.file_access import replace_own

if TYPE_CHECKING:
    from .request import Request

_SUFFIXES = {"glsl": "comp", "hlsl": "hlsl", "slang": "slang"}
_UNSAFE = re.compile(r"[^\w.-]+")
_MOST_OF_NAME = 60


def dump_source(folder: str, request: Request) -> str:
    """Keeps the source of a request, also if it does not compile. Returns the path without its suffix."""
    # By content: the same source with the same options has one file, others do not replace it.
    name = request.name
    if not name.startswith("<"):  # a path
        name = os.path.splitext(os.path.basename(name))[0]
    name = _UNSAFE.sub("_", name).strip("_.")[:_MOST_OF_NAME] or "shader"
    path = os.path.join(folder, f"{name}-{digest(request.key()).hex()[:12]}")
    _write(f"{path}.{_SUFFIXES[request.language]}", request.source)
    return path


def dump_spirv(path: str, spirv: bytes) -> None:
    """Keeps a result beside its source: the module, and its text."""
    _write(f"{path}.spv", spirv)
    _write(f"{path}.spvasm", _native.disassemble_spirv(spirv, True).encode())


def _write(path: str, content: bytes) -> None:
    try:
        replace_own(path, content)
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"The option dump (KOMPUTE_PY_DUMP) keeps shaders in a folder, and {path} cannot be written: "
            f'{error}. Give another folder, or "" for none'
        ) from None
