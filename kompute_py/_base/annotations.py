"""Types for annotations, which `kompute_py.typing` shows to users: names of formats, filters and languages,
and options of calls.

Only checkers of types and `kompute_py.typing` import this module.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar

import numpy as np

from .types import DataTypes, MemoryTypes

if TYPE_CHECKING:
    from array import array
    from typing import TypeAlias

    from typing_extensions import TypeVar as _WithDefault

    Scalar = _WithDefault("Scalar", bound=np.generic, default=Any, covariant=True)
else:
    Scalar = TypeVar("Scalar")

Array = np.ndarray[Any, np.dtype[Any]]
"""An array of any shape and dtype."""


class HasArray(Protocol[Scalar]):
    """An array, a scalar of NumPy, or an object that gives one."""

    def __array__(self) -> np.ndarray[Any, np.dtype[Scalar]]:
        """The array."""


class HasDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""


class HasNumPyDType(Protocol):
    """An object that NumPy 2.4 and newer take as a dtype."""

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        """The dtype."""


ScalarType = type[Scalar] | np.dtype[Scalar]
"""A dtype that checkers of types know."""
OtherDType = (
    DataTypes
    | HasDType
    | HasNumPyDType
    | str
    | type[bool]
    | type[int]
    | type[float]
    | type[complex]
    | list[Any]
    | tuple[Any, Any]
    | Mapping[str, object]
)
"""A dtype that checkers do not know."""
Numbers: TypeAlias = "complex | str | bytes | bytearray | memoryview | array[Any] | Sequence[Any]"
"""Data whose dtype checkers do not know."""

MemoryTypeName = Literal["device", "host", "storage", "deviceAndHost"]
"""The names of `kp.MemoryTypes`."""
MemoryTypeLike = MemoryTypes | MemoryTypeName
"""A memory type: a member of `kp.MemoryTypes`, or its name."""
MemoryFlagName = Literal["device_local", "host_visible", "host_coherent", "host_cached"]
"""The names of Vulkan's properties of memory, as `Tensor.memory_flags` gives them."""
MemoryFlags = MemoryFlagName | Sequence[MemoryFlagName]
"""Properties that memory must have: one name, or several in a list or tuple."""

# fmt: off
FormatName = Literal[
    "r8", "r8_snorm", "r8ui", "r8i", "r16", "r16_snorm", "r16ui", "r16i", "r16f", "r32ui", "r32i", "r32f",
    "rg8", "rg8_snorm", "rg8ui", "rg8i", "rg16", "rg16_snorm", "rg16ui", "rg16i", "rg16f", "rg32ui",
    "rg32i", "rg32f", "rgba8", "rgba8_snorm", "rgba8ui", "rgba8i", "rgba16", "rgba16_snorm", "rgba16ui",
    "rgba16i", "rgba16f", "rgba32ui", "rgba32i", "rgba32f", "r64ui", "r64i", "sr8", "srg8", "srgba8",
    "bgra8", "sbgra8", "rgb10_a2", "rgb10_a2ui", "r11f_g11f_b10f", "rgb9_e5",
    "R8_UNORM", "R8_SNORM", "R8_UINT", "R8_SINT", "R16_UNORM", "R16_SNORM", "R16_UINT", "R16_SINT",
    "R16_SFLOAT", "R32_UINT", "R32_SINT", "R32_SFLOAT", "R8G8_UNORM", "R8G8_SNORM", "R8G8_UINT",
    "R8G8_SINT", "R16G16_UNORM", "R16G16_SNORM", "R16G16_UINT", "R16G16_SINT", "R16G16_SFLOAT",
    "R32G32_UINT", "R32G32_SINT", "R32G32_SFLOAT", "R8G8B8A8_UNORM", "R8G8B8A8_SNORM", "R8G8B8A8_UINT",
    "R8G8B8A8_SINT", "R16G16B16A16_UNORM", "R16G16B16A16_SNORM", "R16G16B16A16_UINT", "R16G16B16A16_SINT",
    "R16G16B16A16_SFLOAT", "R32G32B32A32_UINT", "R32G32B32A32_SINT", "R32G32B32A32_SFLOAT", "R64_UINT",
    "R64_SINT", "R8_SRGB", "R8G8_SRGB", "R8G8B8A8_SRGB", "B8G8R8A8_UNORM", "B8G8R8A8_SRGB",
    "A2B10G10R10_UNORM_PACK32", "A2B10G10R10_UINT_PACK32", "B10G11R11_UFLOAT_PACK32",
    "E5B9G9R9_UFLOAT_PACK32",
]
# fmt: on
"""The formats of images: GLSL's names, or names in the same style, and Vulkan's names."""
FilterName = Literal["nearest", "linear"]
"""How a sampler reads between texels."""
AddressMode = Literal["clamp_to_edge", "clamp_to_border", "repeat", "mirrored_repeat"]
"""How a sampler reads beyond the edge."""
BorderColor = Literal["transparent_black", "opaque_black", "opaque_white"]
"""The colour beyond the edge with the address mode "clamp_to_border"."""

Language = Literal["glsl", "hlsl", "slang"]
"""A language of shader sources."""
TextLanguage = Literal["glsl", "hlsl"]
"""A language that SPIR-V can be written in."""
Target = Literal["vulkan1.0", "vulkan1.1", "vulkan1.2", "vulkan1.3"]
"""A version of Vulkan to compile for."""
Optimization = Literal["none", "size", "performance"]
"""The goal of the compiler's optimizations."""
CompilerName = Literal["dxc", "slang"]
"""A compiler of HLSL."""
TuningMode = Literal["auto", "stored", "off"]
"""When operations measure their variants."""
WaitMode = Literal["auto", "spin", "block"]
"""How short waits are done."""
CopyMode = Literal["auto", "never", "always"]
"""Whether `Manager.from_host` copies the array."""
HostBufferSemanticsName = Literal[
    "IMMUTABLE_ONLY_DURING_CALL",
    "IMMUTABLE_UNTIL_TRANSFER_COMPLETES",
    "IMMUTABLE_ZERO_COPY",
    "MUTABLE_ZERO_COPY",
]
"""The names of `kp.HostBufferSemantics`."""

SizeLike = int | str
"""A size: an int of bytes, or text such as "128 MiB"."""


class HasCompileOptions(Protocol):
    """A device: a `kp.DeviceInfo` or a `kp.Manager`."""

    @property
    def compile_options(self) -> dict[str, Any]:
        """Options of `kp.compile`."""


TargetLike = Target | HasCompileOptions | str | os.PathLike[str] | Mapping[str, Any]
"""A version of Vulkan to compile for, or a device, which may be a URI, or a description or its path."""


class HasSpirv(Protocol):
    """An object with a shader's SPIR-V, such as a `kp.ShaderModule` or a `kp.Kernel`."""

    def to_spirv(self) -> bytes:
        """The SPIR-V."""


ShaderSource = (
    str | os.PathLike[str] | bytes | bytearray | memoryview | np.ndarray[Any, Any] | Sequence[int] | HasSpirv
)
"""A shader: source text, SPIR-V assembly, a path, or SPIR-V."""


class ResultOptions(TypedDict, total=False):
    """Options of `kp.compile` besides the source's language, macros and includes."""

    optimize: bool | Optimization
    debug_info: bool
    target: TargetLike
    spirv_version: str | None
    glsl_version: int | str | None
    auto_bind: bool
    register_bases: Mapping[str, int] | None
    hlsl_offsets: bool
    hlsl_16bit_types: bool
    compiler: CompilerName | None
    compiler_options: str | Iterable[str]
    cache: bool
    timeout: float | None
    size_limit: SizeLike | None


class CompileOptions(ResultOptions, total=False):
    """The options of `kp.compile` but `entry`, as `kp.check` takes them for a source."""

    language: Language | None
    defines: Mapping[str, object] | None
    include_dirs: Iterable[str | os.PathLike[str]]
    includes: Mapping[str, str] | None


class KernelOptions(CompileOptions, total=False):
    """The options of `Manager.kernel` but `name` and `watch`."""

    entry: str | None
    subgroup_size: int | None
    full_subgroups: bool
    unchecked: bool


class ImageOptions(TypedDict, total=False):
    """The options of `Manager.image` and `Manager.image_t` but `format`."""

    dims: Literal[1, 2, 3]
    depth: int | None
    layers: int | bool | None
    tensor_type: MemoryTypeLike | None


class SamplerOptions(TypedDict, total=False):
    """The options of `Manager.sampler`."""

    border: BorderColor
    integer: bool
    unnormalized: bool
