"""Requests to compilers. Their process imports this too, so it needs little."""

from __future__ import annotations

import marshal
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._base.file_access import current_folder

if TYPE_CHECKING:
    from .._base.annotations import Language


class Compiler(NamedTuple):
    """The compiler of a source."""

    kind: str
    """"glslang", "dxc" or "slang"."""
    name: str
    """Its name in messages."""
    library: str = ""
    """The path of its library, if it is in one."""
    identity: str = ""
    """A key that differs if the library differs, or what this package does to its results."""


GLSLANG = Compiler("glslang", "glslang")


class Request(NamedTuple):
    """A source with the options of GLSL's compiler, then with those of the others; by default plain GLSL."""

    source: bytes
    name: str
    """Its path, or a name in angle brackets for a source that is in no file."""
    entry: str = "main"
    defines: Sequence[tuple[str, str]] = ()
    include_dirs: Sequence[str] = ()
    includes: dict[str, bytes] = {}  # noqa: RUF012 - nobody changes it
    optimize: str = "performance"
    debug_info: bool = False
    target: str = "vulkan1.2"
    spirv_version: str = ""
    glsl_version: str = ""
    auto_bind: bool = False
    hlsl_offsets: bool = False
    language: Language = "glsl"
    hlsl_16bit_types: bool = False
    register_bases: dict[str, int] = {}  # noqa: RUF012
    options: Sequence[str] = ()
    """The compiler's own options, after those of kompute_py."""
    compiler: Compiler = GLSLANG

    def native(self) -> _native.CompileRequest:
        """The request to the native compiler. Paths are bytes there."""
        fields: list[Any] = list(self[:13])
        fields[1], fields[4] = os.fsencode(self.name), [*map(os.fsencode, self.include_dirs)]
        return _native.CompileRequest(*fields)

    def packed(self) -> tuple[Any, ...]:
        """All of it as `marshal` takes it."""
        return (*self[:-1], tuple(self.compiler))

    @classmethod
    def unpacked(cls, fields: tuple[Any, ...]) -> Request:
        """The request of these `packed` fields."""
        return cls(*fields)._replace(compiler=Compiler(*fields[-1]))

    def key(self) -> bytes:
        """All that decides the result, files that are included aside."""
        relative = [*self.include_dirs, *([] if self.name.startswith("<") else [self.name])]
        here = "" if all(map(os.path.isabs, relative)) else current_folder()
        ordered = [sorted(each.items()) if isinstance(each, dict) else each for each in self.packed()]
        return marshal.dumps((here, ordered), 2)  # 2: without references, which differ by chance
