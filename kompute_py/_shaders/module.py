"""ShaderModule: a compute shader as SPIR-V, with its reflection. Needs no device."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.arrays import as_index, to_flag
from .._base.errors import ArgumentTypeError, InvalidArgumentError, KomputeError, kind_of, shown
from .._base.plain_arguments import as_text
from .._base.text import nearest
from .._compilers.compile import (
    COMPILE_OPTIONS,
    _compile,
    check_target,
    compile_text,
    minor_of,
    path_of,
    text_name,
)
from .._compilers.settings import Lookup, of_process
from .signature import Signature
from .spirv import chosen_entry, to_spirv

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._base.annotations import Language, ResultOptions, ShaderSource, TextLanguage
    from .constants import Specialization

_ASSEMBLED = 2  # assembly becomes SPIR-V for Vulkan 1.2 unless a target is given
_LARGEST_SUBGROUP = 128  # that Vulkan allows
_ANY_SUBGROUPS = (0, False)
_OPTIONS = ("name", *COMPILE_OPTIONS, "subgroup_size", "full_subgroups", "unchecked")
_ELSEWHERE = {
    "entry_point": "its name is entry",
    "grid": "give it to the call, kernel(x, y, grid=1000)",
    "groups": "give it to the call, kernel(x, y, groups=(4, 1, 1))",
    "push_consts": "give push constants by name to the call, kernel(x, y, factor=2.0)",
    "spec_consts": "give constants by name, mgr.kernel(source).specialize(BLOCK=64)",
    "tensors": "give tensors to the call, kernel(x, y)",
    "workgroup": "give the number of groups to the call, kernel(x, y, groups=(4, 1, 1))",
}
"""Arguments of `Manager.algorithm` and of calls, and where a kernel takes them."""
_ASSEMBLY = re.compile(r"\s*(;|Op[A-Z]\w+\s)")


class ShaderModule:
    """A compute shader, compiled from `source` or given as SPIR-V.

    `entry` is the entry point. For source text it names the function to compile (in GLSL, where the function
    is always `main`, the resulting entry point). For a module it selects an entry point, and may be omitted
    if there is only one or one is called main. `source` is GLSL, HLSL or Slang text, SPIR-V assembly, a path
    (a path object, or a str on one line that ends in .comp, .glsl, .hlsl, .slang, .spv or .spvasm), or
    SPIR-V: bytes, a bytearray, a memoryview, an array of uint32, a list of ints, another ShaderModule, or any
    object with a method ``to_spirv()`` that returns bytes. A file that begins with SPIR-V's magic number is
    SPIR-V, regardless of its name. The other arguments and `options` are those of `kp.compile`. `name` names
    the shader in errors; the default is the path's stem, else the entry point. If `target` is given, SPIR-V
    is checked against it, in addition to the device.

    `subgroup_size` is the number of invocations that each subgroup has, a power of two in the device's
    ``get_device_properties()["subgroup_sizes"]``; by default the device chooses. With ``full_subgroups=True``
    no subgroup has missing invocations: ``local_size_x`` is a multiple of the subgroup's size. A device that
    cannot do it refuses the shader when it is used: UnimplementedError without the features
    "subgroupSizeControl" and "computeFullSubgroups", InvalidArgumentError for a size that it does not have.

    Devices get a shader only if it is valid and they have what it declares. ``unchecked=True`` skips this
    check, for code that you trust: that is newer than the validator, or needs features that
    ``desired_extensions`` enabled by number. A driver that gets invalid SPIR-V may end the process or give
    wrong numbers.

    Raises ShaderCompileError if the source does not compile; InvalidArgumentError if the bytes are not
    SPIR-V, the module has no compute entry point, or several and none was selected, or compile options
    are given for SPIR-V; NotFoundError if a path does not exist; ArgumentTypeError for other types.

    >>> module = kp.ShaderModule("layout(local_size_x = 8) in; void main() {}", name="empty")
    >>> module.signature.local_size
    (8, 1, 1)
    """

    __module__ = "kompute_py"  # public; imported when first used

    __slots__ = {
        "_declared": "",
        "_entry": "",
        "_generated": "",
        "_reflection": "",
        "_signature": "",
        "_sought": "",
        "_spirv": "",
        "_subgroups": "",
        "_unchecked": "",
        "compiler": "The compiler with its version; None if SPIR-V was given.",
        "files": "The files that the shader was read from: its own and those that it includes.",
        "language": "The source's language: glsl, hlsl or slang; None if SPIR-V was given.",
        "name": "The shader's name in errors.",
    }

    def __init__(
        self,
        source: ShaderSource,
        *,
        name: str | None = None,
        language: Language | None = None,
        entry: str | None = None,
        defines: Mapping[str, object] | None = None,
        include_dirs: Iterable[str | os.PathLike[str]] = (),
        includes: Mapping[str, str] | None = None,
        subgroup_size: int | None = None,
        full_subgroups: bool = False,
        unchecked: bool = False,
        stacklevel: int = 2,
        _setting: Lookup = of_process,
        **options: Unpack[ResultOptions],
    ) -> None:
        for option in options:
            if option not in COMPILE_OPTIONS:
                if option in _ELSEWHERE:
                    raise ArgumentTypeError(f"A shader has no option {shown(option)}: {_ELSEWHERE[option]}")
                raise ArgumentTypeError(
                    f"A shader has no option {shown(option)}{nearest(option, _OPTIONS)} "
                    f"The options are {', '.join(_OPTIONS)}; constants of the shader are given to "
                    "kernel.specialize(NAME=value)"
                )
        if name is not None and not isinstance(name, str):
            raise ArgumentTypeError(f"name is {kind_of(name)}; give a str, the shader's name in errors")
        self.files: tuple[str, ...] = ()
        self._sought: list[tuple[str, bytes]] = []  # the files that it depends on, with digests
        self.language: Language | None = None
        self.compiler: str | None = None
        path = None
        declared: bytes = b""
        size, full = subgroups_of(subgroup_size, full_subgroups)
        self._subgroups: tuple[int, bool] = (size or 0, full)
        self._unchecked = to_flag(unchecked, "unchecked")
        self._generated = False
        if isinstance(source, str | os.PathLike) and not (isinstance(source, str) and is_assembly(source)):
            path = path_of(source)
            compiled = _compile(
                source,
                language=language,
                entry="main" if entry is None else entry,
                defines=defines,
                include_dirs=include_dirs,
                includes=includes,
                title=name,
                setting=_setting,
                unchecked=None if "target" in options else _ASSEMBLED,
                stacklevel=stacklevel + 1,
                **options,
            )
            spirv, declared = compiled.spirv, compiled.declared
            self.files = tuple(compiled.files)
            self._sought = compiled.sought
            self.language, self.compiler = compiled.language, compiled.compiler
        else:
            if language is not None or _is_given(defines) or _is_given(includes) or _is_given(include_dirs):
                raise InvalidArgumentError(
                    "language, defines, includes and include_dirs are for source text; this shader is SPIR-V "
                    "already"
                )
            target = options.get("target")
            if isinstance(source, str):
                minor = _ASSEMBLED if target is None else minor_of(target)
                spirv = _native.assemble_spirv(source, minor, text_name(name))
            else:
                spirv = to_spirv(source)
            if target is not None:
                check_target(spirv, target, name or "the module")
            # A Kernel also has a module.
            module = source if isinstance(source, ShaderModule) else getattr(source, "module", None)
            if isinstance(module, ShaderModule):
                self.files, self.language, self.compiler = module.files, module.language, module.compiler
                declared = module._declared
                if self._subgroups == _ANY_SUBGROUPS:
                    self._subgroups = module._subgroups
                self._unchecked = self._unchecked or module._unchecked
                self._generated = module._generated
                if entry is None:
                    name = name or module.name
            entry = chosen_entry(source, entry)
        if entry is not None and not isinstance(entry, str):
            raise ArgumentTypeError(f"entry is {kind_of(entry)}; give the name of an entry point")
        self._spirv = spirv
        # The module before optimization; b"" if it is the same or unknown. The optimizer removes declarations
        # that only dead code uses.
        self._declared: bytes = declared
        # "main" also stands for the only compute entry point.
        self._entry = "main" if entry is None else entry
        self._reflection: dict[str, Any] | None = None
        self._signature: Signature | None = None
        self.name: str = name or (path.stem if path is not None else "")
        """The shader's name in errors."""
        entered = self.reflection["entry"]  # raises early if the module has no compute entry point
        self.name = self.name or entered

    @classmethod
    def _of_generated(
        cls, text: str, name: str, subgroups: tuple[int | None, bool], setting: Lookup
    ) -> ShaderModule:
        """The module of GLSL that an operation's generator wrote. It has no options and one entry point."""
        compiled = compile_text(text, name, setting)
        made = cls.__new__(cls)
        made.name, made.language, made.compiler = name, "glsl", compiled.compiler
        made.files, made._sought = tuple(compiled.files), compiled.sought
        made._subgroups, made._unchecked = (subgroups[0] or 0, subgroups[1]), False
        made._generated = True
        made._spirv, made._declared, made._entry = compiled.spirv, compiled.declared, "main"
        made._reflection = made._signature = None
        return made

    def to_spirv(self) -> bytes:
        """The SPIR-V."""
        return self._spirv

    def _on(self, context: _native.Context) -> _native.Shader:
        """The module on a device."""
        made = context.shader(self._spirv, self._entry, self._declared, *self._subgroups, self._unchecked)
        if self._generated:
            made.generated = True
        return made

    @property
    def reflection(self) -> dict[str, Any]:
        """The module's reflection as plain data: bindings with types, layouts and accesses, push constants,
        specialization constants, local size, entry points, capabilities.

        For compiled shaders it describes the source, so it is the same at all levels of optimization.
        """
        if self._reflection is None:
            with naming(self.name):
                self._reflection = _native.reflect_spirv(self._declared or self._spirv, self._entry)
        return self._reflection

    @property
    def entry(self) -> str:
        """The selected entry point, which runs and which the reflection describes."""
        entry: str = self.reflection["entry"]
        return entry

    @property
    def entry_points(self) -> tuple[str, ...]:
        """All compute entry points of the module; select another with ``kp.ShaderModule(module,
        entry="blur")``.
        """
        return tuple(p["name"] for p in self.reflection["entry_points"] if p["model"] == "GLCompute")

    @property
    def signature(self) -> Signature:
        """The reflection as the arguments of a call."""
        if self._signature is None:
            self._signature = Signature(self.reflection)
        return self._signature

    def _specialized(self, special: Specialization) -> Signature:
        """The signature with these constants; blocks, local size and binding arrays may depend on them."""
        if not special.entries:
            return self.signature
        with naming(self.name):
            return Signature(
                _native.reflect_spirv(
                    self._declared or self._spirv, self._entry, special.data, special.entries
                )
            )

    def disassembly(self) -> str:
        """The SPIR-V as assembly, with the module's names."""
        return _native.disassemble_spirv(self._spirv)

    def to(self, language: TextLanguage) -> str:
        """The shader written in "glsl" or "hlsl" (through SPIRV-Cross).

        Raises InvalidArgumentError for another language.

        Raises UnimplementedError if the language cannot express the shader, ArgumentTypeError if `language`
        is not a str.
        """
        return _native.decompile_spirv(self._spirv, as_text(language, "language"), self.reflection["entry"])

    def __reduce_ex__(self, protocol: object) -> Any:
        """Pickles the SPIR-V, without sources."""
        made_of = self._spirv, self.name, self._entry, self._declared, self._subgroups, self._unchecked
        return ShaderModule._of_content, made_of

    @classmethod
    def _of_content(
        cls,
        spirv: bytes,
        name: str,
        entry: str,
        declared: bytes,
        subgroups: tuple[int, bool],
        unchecked: bool,
    ) -> ShaderModule:
        made = cls(spirv, name=name, entry=entry, unchecked=unchecked)
        made._declared, made._subgroups, made._reflection = declared, subgroups, None
        return made

    def __repr__(self) -> str:
        return f"<kp.ShaderModule {self.signature.text(self.name)} {len(self._spirv)} bytes>"


def subgroups_of(size: Any, full: Any) -> tuple[int | None, bool]:
    """The size of subgroups and whether all are full. Raises InvalidArgumentError for a size that no device
    has.
    """
    full = to_flag(full, "full_subgroups")
    if size is None:
        return None, full
    found = as_index(size, "subgroup_size")
    if found < 1 or found & (found - 1) or found > _LARGEST_SUBGROUP:
        raise InvalidArgumentError(
            f"subgroup_size is {found}; it is a power of two, and the device's properties tell the range: "
            'mgr.get_device_properties()["subgroup_sizes"]'
        )
    return found, full


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Prefixes errors with the shader's name."""
    try:
        yield
    except KomputeError as error:
        if name and error.args and not str(error).startswith(f"{name}: "):
            error.args = (f"{name}: {error}", *error.args[1:])
        raise


def is_assembly(text: str) -> bool:
    """Whether the text is SPIR-V assembly: it begins with a comment or an instruction of assembly."""
    return _ASSEMBLY.match(text) is not None


def _is_given(value: Any) -> bool:
    return value is not None and not (isinstance(value, (tuple, list, Mapping)) and len(value) == 0)
