"""Types for annotations: names of memory types, formats and filters, options of calls, and classes of results
that users do not create.

::

    from kompute_py.typing import FormatName, ManagerOptions
    from typing_extensions import Unpack

    def open_device(**options: Unpack[ManagerOptions]) -> kp.Manager: ...

A text that the program computes has the type ``str``: annotate it with one of these names, or check it and
use `typing.cast`, to pass it to a call that takes only certain names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base.annotations import (
    AddressMode,
    Array,
    BorderColor,
    CompileOptions,
    CompilerName,
    CopyMode,
    FilterName,
    FormatName,
    HasSpirv,
    HostBufferSemanticsName,
    ImageOptions,
    KernelOptions,
    Language,
    MemoryFlagName,
    MemoryFlags,
    MemoryTypeLike,
    MemoryTypeName,
    Optimization,
    ResultOptions,
    SamplerOptions,
    ShaderSource,
    SizeLike,
    Target,
    TextLanguage,
    TuningMode,
    WaitMode,
)
from ._base.public import offer, publish
from ._base.settings import Setting
from ._custom.arg_descs import (
    ArgDesc,
    AttrArg,
    ComputedArg,
    EmptyOptionalTensorArg,
    TensorArg,
    TensorListArg,
    ValueArg,
)
from ._custom.builder import ScratchValue, TensorValue
from ._custom.expressions import Size
from ._device.annotations import DeviceLike, ManagerOptions
from ._functions.op_custom import CacheInfo
from ._functions.tuning import Tuning
from ._shaders.signature import Binding, Parameter, PushConstants, Signature, SpecConstant

__all__ = [
    "AddressMode",
    "ArgDesc",
    "Array",
    "AttrArg",
    "Binding",
    "BorderColor",
    "CacheInfo",
    "CompileOptions",
    "CompilerName",
    "ComputedArg",
    "CopyMode",
    "DeviceLike",
    "EmptyOptionalTensorArg",
    "FilterName",
    "FormatName",
    "HasSpirv",
    "HostBufferSemanticsName",
    "ImageOptions",
    "KernelOptions",
    "Language",
    "ManagerOptions",
    "MemoryFlagName",
    "MemoryFlags",
    "MemoryTypeLike",
    "MemoryTypeName",
    "Optimization",
    "Parameter",
    "PushConstants",
    "ResultOptions",
    "SamplerOptions",
    "ScratchValue",
    "Setting",
    "ShaderSource",
    "Signature",
    "Size",
    "SizeLike",
    "SpecConstant",
    "Target",
    "TensorArg",
    "TensorListArg",
    "TensorValue",
    "TextLanguage",
    "Tuning",
    "TuningMode",
    "ValueArg",
    "WaitMode",
]

for _name in __all__:
    if isinstance(globals()[_name], type) and globals()[_name].__module__.startswith("kompute_py."):
        publish(globals()[_name], __name__)
del _name

if not TYPE_CHECKING:  # so that a checker of types knows the names that there are
    __getattr__, __dir__ = offer(__name__, __all__)
