"""SPIR-V to text and back: its assembly through SPIRV-Tools, GLSL and HLSL through SPIRV-Cross. Needs no device."""

from __future__ import annotations

from typing import Any

from .. import _native
from .._base.arrays import to_flag
from .._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .._base.plain_arguments import as_text
from .._compilers.compile import TARGETS
from .spirv import chosen_entry, to_spirv


def assemble(text: str, *, target: str = "vulkan1.2") -> bytes:
    """SPIR-V assembly as SPIR-V, of the newest version that `target` ("vulkan1.0" to "vulkan1.3") has.

    Raises ShaderCompileError with line and column where the text is wrong, InvalidArgumentError where the module breaks the
    target's rules, ArgumentTypeError for anything but a str.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"SPIR-V assembly is a str, not {type(text).__name__}")
    if not isinstance(target, str) or target not in TARGETS:
        raise InvalidArgumentError(f"{shown(target)} is not a target; choose one of {', '.join(TARGETS)}")
    minor = TARGETS.index(target)
    spirv = _native.assemble_spirv(as_text(text, "SPIR-V assembly"), minor)
    if problem := _native.validate_spirv(spirv, minor, scalar_block_layout=True):
        raise InvalidArgumentError(f"The assembly is not valid SPIR-V for {target}: {problem}")
    return spirv


def disassemble(spirv: Any, *, friendly_names: bool = True) -> str:
    """SPIR-V (bytes, an array of uint32, a list of ints, a .spv file, a `ShaderModule` or Kernel) as assembly.

    `friendly_names` shows the names that the module has for its ids; without them they are numbers. Raises InvalidArgumentError
    for bytes that are not SPIR-V, NotFoundError for a path with no file, ArgumentTypeError for objects of other types.
    """
    return _native.disassemble_spirv(to_spirv(spirv), to_flag(friendly_names, "friendly_names"))


def decompile(spirv: Any, language: str = "glsl", *, entry: str | None = None) -> str:
    """SPIR-V as "glsl" (450, for Vulkan) or "hlsl" (shader model 6.0) that does the same.

    `spirv` is what `disassemble` takes. `entry` chooses an entry point if there are several; a ShaderModule or Kernel has chosen. Raises InvalidArgumentError for another language or bytes that are
    not valid SPIR-V, NotFoundError for an entry point that the module lacks, UnimplementedError for what the language cannot
    express.
    """
    module = to_spirv(spirv)
    entry = chosen_entry(spirv, entry if entry is None else as_text(entry, "entry"))
    if entry is None:
        entry = _native.reflect_spirv(module)["entry"]
    return _native.decompile_spirv(module, as_text(language, "language"), entry)
