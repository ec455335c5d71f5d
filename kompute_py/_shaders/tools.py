"""SPIR-V to text and back: its assembly through SPIRV-Tools, GLSL and HLSL through SPIRV-Cross.

Needs no device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _native
from .._base.arrays import to_flag
from .._base.errors import ArgumentTypeError
from .._base.plain_arguments import as_text
from .._compilers.compile import check_target, minor_of
from .spirv import chosen_entry, to_spirv

if TYPE_CHECKING:
    from .._base.annotations import ShaderSource, TargetLike, TextLanguage


def assemble(text: str, *, target: TargetLike = "vulkan1.2") -> bytes:
    """Assembles SPIR-V for `target` (a version of Vulkan or a device, as for `kp.compile`): in the version
    that its first comments state, as a disassembler writes them, else in the newest in which it is valid.

    Raises ShaderCompileError with line and column for errors in the text, InvalidArgumentError if the module
    violates the target's rules, ArgumentTypeError if `text` is not a str.

    >>> text = kp.disassemble(kp.compile("layout(local_size_x = 8) in; void main() {}"))
    >>> kp.ShaderModule(kp.assemble(text)).signature.local_size
    (8, 1, 1)
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"SPIR-V assembly is a str, not {type(text).__name__}")
    spirv = _native.assemble_spirv(as_text(text, "SPIR-V assembly"), minor_of(target))
    check_target(spirv, target, "The assembly")
    return spirv


def disassemble(spirv: ShaderSource, *, friendly_names: bool = True) -> str:
    """SPIR-V (bytes, an array of uint32, a list of ints, a .spv file, a `ShaderModule` or Kernel) as
    assembly.

    `friendly_names` shows the module's names for its ids; without it, ids are numbers. Raises
    InvalidArgumentError for bytes that are not SPIR-V, NotFoundError if a path does not exist,
    ArgumentTypeError for objects of other types.

    >>> print(kp.disassemble(kp.compile("layout(local_size_x = 8) in; void main() {}")))
    ; SPIR-V
    ...
    OpExecutionMode %main LocalSize 8 1 1
    ...
    """
    return _native.disassemble_spirv(to_spirv(spirv), to_flag(friendly_names, "friendly_names"))


def decompile(spirv: ShaderSource, language: TextLanguage = "glsl", *, entry: str | None = None) -> str:
    """Translates SPIR-V to "glsl" (450, for Vulkan) or "hlsl" (shader model 6.0).

    `spirv` is as for `disassemble`. `entry` selects one of several entry points; a ShaderModule or Kernel has
    one already. Raises InvalidArgumentError for another language or invalid SPIR-V, NotFoundError if the
    module lacks the entry point, UnimplementedError if the language cannot express the shader,
    ArgumentTypeError for arguments of other types.

    >>> print(kp.decompile(kp.compile("layout(local_size_x = 8) in; void main() {}")))
    #version 450
    layout(local_size_x = 8, local_size_y = 1, local_size_z = 1) in;
    ...
    """
    module = to_spirv(spirv)
    entry = chosen_entry(spirv, entry if entry is None else as_text(entry, "entry"))
    if entry is None:
        entry = _native.reflect_spirv(module)["entry"]
    return _native.decompile_spirv(module, as_text(language, "language"), entry)
