"""Finds the reasons for which a device would refuse a shader, without opening the device.

The device may belong to another machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of, shown
from .._base.plain_arguments import as_text
from .._base.warn import warn
from .._compilers.compile import COMPILE_OPTIONS, _compile, minor_of, path_of
from .._compilers.spirv_words import module_bytes
from .._shaders.constants import NO_SPECIALIZATION, SpecConstants, is_given
from .._shaders.loops import endless_loops
from .._shaders.module import is_assembly
from .._shaders.spirv import bytes_of, chosen_entry
from .device import Device
from .devices import info_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._base.annotations import CompileOptions, ShaderSource
    from .annotations import DescribedDevice
    from .device import Device


_LARGE_LOCALS = 8192  # bytes; lavapipe takes 100 s for an array of twice that many
_NEWEST = 3  # assembly is assembled to the SPIR-V of Vulkan 1.3


class Finding(NamedTuple):
    """One reason for which a device refuses a shader. Its text is a sentence.

    >>> text = "layout(local_size_x_id = 0) in; void main() {}"
    >>> kp.check(text, mgr, spec_consts=[1 << 20])[0].kind
    'limit'
    """

    kind: str
    """"device" (too old for any shader), "version" (of SPIR-V), "validation" (not valid SPIR-V, or not a
    compute shader), "capability", "extension" (of SPIR-V), "mode" (an execution mode), "feature" or
    "limit"."""
    what: str
    """The limit, capability, extension, mode or feature, under Vulkan's or SPIR-V's name."""
    needed: int | str | None
    """The amount that the shader needs, or the property that the device would need."""
    has: int | str | None
    """The amount that the device has."""
    message: str
    """The sentence for people, with the numbers."""

    def __str__(self) -> str:
        return self.message


Finding.__module__ = "kompute_py"  # public; imported when first used


def check(
    shader: ShaderSource,
    device: DescribedDevice | Device | None = None,
    *,
    entry: str | None = None,
    spec_consts: Any = (),
    array_lengths: Mapping[str, int] | None = None,
    **options: Unpack[CompileOptions],
) -> list[Finding]:
    """Lists all reasons for which a device would refuse a shader; the list is empty if there are none.

    It does not see what depends on a call's arguments.

    Creates no Manager. Three things that devices take give a KomputeWarning: local variables of more than 8
    KiB, because drivers may compile for minutes; loops in which nothing changes what decides whether they go
    on, because these have no end; and a specialization constant that is declared with two defaults and gets
    no value, which kernels and algorithms refuse.

    Args:
        shader: SPIR-V (bytes, an array of uint32, a list of ints, a .spv file, assembly, an object with
            ``to_spirv()``), or source as for `kp.compile`, which is then compiled for the device's version of
            Vulkan. Content that is not SPIR-V is a finding, with the text of the error that other calls
            raise.
        device: A device as `kp.Manager` names it (an index, a part of a name, a URI), a Manager, or a
            description: a `DeviceInfo`, its dict, or the path of a file as `DeviceInfo.load` takes it. None
            means the device that a Manager would open.
        entry: The entry point. None means that of a ShaderModule or Kernel, else "main".
        spec_consts: Specialization constants, as for `Manager.algorithm`: local sizes and shared arrays may
            depend on them.
        array_lengths: How many tensors or images the arrays of run-time length get (``buffer B { ... }
            x[];``), by name: ``{"x": 101}``. An array without a length counts as one descriptor. An algorithm
            or a bound kernel is checked against the same limits, with the number that it was given.
        options: The options of `kp.compile`, for source.

    Raises:
        ShaderCompileError: The source does not compile.
        NotFoundError: There is no such device or file.
        InvalidArgumentError: A description lacks a property to compare; constants do not fit; a name in
            `array_lengths` is not that of an array of run-time length, or a length is not a whole
            number from 1 to 2**32 - 1.
        ArgumentTypeError: An argument is of the wrong type.

    >>> kp.check("layout(local_size_x = 8) in; void main() {}", mgr)
    []
    """
    entry = chosen_entry(shader, None if entry is None else as_text(entry, "entry")) or "main"
    lengths = _lengths(array_lengths)
    info = _info_of(device)
    vulkan = _version(info)
    given = _spirv_of(shader, min(vulkan[1], 3) if vulkan[0] == 1 else 3, entry, options)
    try:
        spirv = module_bytes(given)
    except InvalidArgumentError as error:
        return [Finding("validation", "SPIR-V", None, None, str(error))]
    special = NO_SPECIALIZATION
    if is_given(spec_consts):
        special = SpecConstants(_native.reflect_spirv(spirv, entry)["spec_constants"]).pack(spec_consts)
    size = info.get("max_work_group_size")
    if size is None:
        size = _part(info, "limits").get("maxComputeWorkGroupSize")
    if not isinstance(size, list | tuple) or len(size) != 3 or not all(map(_is_count, size)):
        raise InvalidArgumentError(
            "The description of the device lacks max_work_group_size, three counts from 0 to 2**32 - 1"
        )
    limits = {
        _text(name, "limits"): value for name, value in _part(info, "limits").items() if _is_count(value)
    }
    features = [_text(name, "features") for name, has in _part(info, "features").items() if has is True]
    operations = info.get("subgroup_operations", ())
    if not isinstance(operations, list | tuple):
        raise InvalidArgumentError(
            "The description of the device has subgroup_operations that are not a list of names"
        )
    # Descriptions by older versions lack it: assume that the device has none.
    controls = info.get("float_controls", {})
    extensions = info.get("extensions", ())
    if not isinstance(controls, Mapping) or not isinstance(extensions, list | tuple):
        raise InvalidArgumentError(
            "The description of the device has float_controls that are not a dict, "
            "or extensions that are not a list"
        )
    found = _native.check_shader(
        spirv,
        _text(info.get("device_name", "the device"), "device_name"),
        vulkan,
        features,
        [_text(name, "subgroup_operations") for name in operations],
        limits,
        (size[0], size[1], size[2]),
        entry,
        special.data,
        special.entries,
        lengths,
        [_text(name, "extensions") for name in extensions],
        [_text(name, "float_controls") for name, has in controls.items() if has is True],
        *(
            _text(controls.get(name, "none"), f"float_controls, {name},")
            for name in ("denormBehaviorIndependence", "roundingModeIndependence")
        ),
    )
    if not found and (local := _native.private_bytes(spirv, special.data, special.entries)) > _LARGE_LOCALS:
        warn(
            f"The shader's local variables take {local} bytes for each invocation; drivers may work on its "
            "pipeline for minutes (the option pipeline_timeout limits the wait). Put large arrays into a "
            "tensor or into shared memory"
        )
    if not found:
        constants = SpecConstants(_native.reflect_spirv(spirv, entry)["spec_constants"])
        try:
            constants.refuse_defaults(special, "The shader", "spec_consts={{{!r}: {}}}")
        except InvalidArgumentError as error:
            warn(str(error))
    lines = endless_loops(spirv)
    if lines and isinstance(shader, str | os.PathLike):  # else there is no source
        lines = endless_loops(bytes(_spirv_of(shader, 3, entry, {**options, "debug_info": True}))) or lines
    for line in lines:
        warn(
            f"The loop {f'at line {line}' if line else 'of the shader'} ends in its first turn or never: "
            "nothing in it changes what decides whether it goes on. A loop without an end stops the device"
        )
    return [Finding(*finding) for finding in found]


def _lengths(given: Any) -> list[tuple[str, int]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(f"array_lengths is {kind_of(given)}; give {{name: length}}")
    return [
        (as_text(name, "A name in array_lengths"), _length(name, length)) for name, length in given.items()
    ]


def _length(name: str, length: Any) -> int:
    if not isinstance(length, int) or not 0 < length < 2**32:
        raise InvalidArgumentError(
            f"The length of the array {name!r} must be 1 to 2**32 - 1, not {shown(length)}"
        )
    return length


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32


def _text(value: Any, what: str) -> str:
    """A name in a device's description."""
    try:
        return as_text(value, what)
    except ArgumentTypeError:
        raise InvalidArgumentError(
            f"The description of the device has in {what} {shown(value):.100}, which is not text"
        ) from None


def _info_of(device: Any) -> Mapping[str, Any]:
    if isinstance(device, Device):
        return device.get_device_properties()
    return info_of(device)


def _version(info: Mapping[str, Any]) -> tuple[int, int]:
    version = info.get("api_version")
    match = isinstance(version, str) and re.match(r"(\d{1,3})\.(\d{1,3})", version)
    if not match:
        raise InvalidArgumentError("The description of the device lacks api_version, such as '1.3.0'")
    return int(match[1]), int(match[2])


def _part(info: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = info.get(name)
    if not isinstance(part, Mapping):
        raise InvalidArgumentError(
            f"The description of the device lacks {name}; a DeviceInfo and `kompute-py info --json` have it"
        )
    return part


def _spirv_of(shader: Any, minor: int, entry: str, options: Mapping[str, Any]) -> bytes:
    for option in options:
        if option not in COMPILE_OPTIONS:
            raise InvalidArgumentError(
                f"check has no option {shown(option)}; for source it takes {', '.join(COMPILE_OPTIONS)}"
            )
    if isinstance(shader, str) and is_assembly(shader):
        target = options.get("target")
        return _native.assemble_spirv(shader, _NEWEST if target is None else minor_of(target))
    if isinstance(shader, str | os.PathLike):
        path = path_of(shader)
        if path is not None and path.suffix.lower() == ".spv":
            return bytes_of(shader)
        # For files of SPIR-V and assembly, check whether the device accepts their contents.
        target = {"target": f"vulkan1.{minor}", **options}
        return _compile(
            shader,
            entry=entry,
            **target,
            unchecked=minor_of(options.get("target", "vulkan1.3")),
            stacklevel=4,
        ).spirv
    return bytes_of(shader)
