"""Vulkan compute for Python in the Kompute style: NumPy in, any GPU, one recorded pipeline, NumPy out.

::

    import kompute_py as kp
    import numpy as np

    with kp.Manager() as mgr:
        a, b = mgr.tensor([1, 2, 3]), mgr.tensor([4, 5, 6])
        product = mgr.zeros(3)
        (
            mgr.sequence()
            .record(kp.OpSyncDevice([a, b]))
            .record(kp.OpMult([a, b, product]))
            .record(kp.OpSyncLocal([product]))
            .eval()
        )
        print(product.numpy())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .algorithm import Algorithm
from .default import manager
from .device_memory import DeviceMemory, MemoryHeap, MemoryLabel, PipelineUse
from .devices import list_devices
from .diagnostics import ValidationError
from .dlpack_in import from_dlpack
from .errors import (
    AbortedError,
    ArgumentTypeError,
    CompileTimeoutError,
    DeviceLostError,
    ErrorCode,
    EvalTimeoutError,
    ExchangeError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    KomputeError,
    KomputeWarning,
    NotFoundError,
    OutOfMemoryError,
    OutOfRangeError,
    ShaderCompileError,
    UnavailableError,
    UnimplementedError,
)
from .fence import Fence
from .host_memory import HostBufferSemantics, aligned_empty, aligned_zeros
from .image import Image
from .manager import Manager, alive
from .mapping import Mapping
from .memory import Memory
from .names import DeviceInfo
from .operations import (
    CommandRecorder,
    OpAlgoBase,
    OpAlgoDispatch,
    OpBase,
    OpCopy,
    OpCopyRange,
    OpCopyRegion,
    OpFill,
    OpMult,
    OpSyncDevice,
    OpSyncLocal,
    OpTensorCopy,
    OpTensorSyncDevice,
    OpTensorSyncLocal,
)
from .options import ConfigReport, config_report
from .sampler import SampledImage, Sampler
from .semaphore import Semaphore
from .sequence import Sequence
from .shader import Shader, ShaderCompileWarning, compile
from .tensor import Tensor
from .types import DataTypes, MemoryTypes, TensorDataTypes, TensorTypes

if TYPE_CHECKING:
    from .kernel import Kernel
    from .kernel_operation import OpKernel
    from .notebook.plots import plot
    from .parameters import (
        TensorDict,
        TensorFileEntry,
        TensorFileInfo,
        load_tensors,
        save_tensors,
        tensor_file_info,
    )
    from .shader_check import Finding, check
    from .shader_module import ShaderModule
    from .shader_tools import assemble, decompile, disassemble
    from .streaming import FrameStream
    from .struct_dtype import struct_dtype

__version__ = "0.1.0"

__all__ = [
    "AbortedError",
    "Algorithm",
    "ArgumentTypeError",
    "CommandRecorder",
    "CompileTimeoutError",
    "ConfigReport",
    "DataTypes",
    "DeviceInfo",
    "DeviceLostError",
    "DeviceMemory",
    "ErrorCode",
    "EvalTimeoutError",
    "ExchangeError",
    "FailedPreconditionError",
    "Fence",
    "Finding",
    "FrameStream",
    "HostBufferSemantics",
    "Image",
    "InternalError",
    "InvalidArgumentError",
    "Kernel",
    "KomputeError",
    "KomputeWarning",
    "Manager",
    "Mapping",
    "Memory",
    "MemoryHeap",
    "MemoryLabel",
    "MemoryTypes",
    "NotFoundError",
    "OpAlgoBase",
    "OpAlgoDispatch",
    "OpBase",
    "OpCopy",
    "OpCopyRange",
    "OpCopyRegion",
    "OpFill",
    "OpKernel",
    "OpMult",
    "OpSyncDevice",
    "OpSyncLocal",
    "OpTensorCopy",
    "OpTensorSyncDevice",
    "OpTensorSyncLocal",
    "OutOfMemoryError",
    "OutOfRangeError",
    "PipelineUse",
    "SampledImage",
    "Sampler",
    "Semaphore",
    "Sequence",
    "Shader",
    "ShaderCompileError",
    "ShaderCompileWarning",
    "ShaderModule",
    "Tensor",
    "TensorDataTypes",
    "TensorDict",
    "TensorFileEntry",
    "TensorFileInfo",
    "TensorTypes",
    "UnavailableError",
    "UnimplementedError",
    "ValidationError",
    "aligned_empty",
    "aligned_zeros",
    "alive",
    "assemble",
    "check",
    "compile",
    "config_report",
    "decompile",
    "disassemble",
    "from_dlpack",
    "list_devices",
    "load_tensors",
    "manager",
    "plot",
    "save_tensors",
    "struct_dtype",
    "tensor_file_info",
]


# Modules that a script may do without, loaded when one of their names is first used.
_LATER = {
    "kernel": ("Kernel",),
    "kernel_operation": ("OpKernel",),
    "notebook.plots": ("plot",),
    "parameters": (
        "TensorDict",
        "TensorFileEntry",
        "TensorFileInfo",
        "load_tensors",
        "save_tensors",
        "tensor_file_info",
    ),
    "shader_check": ("Finding", "check"),
    "shader_module": ("ShaderModule",),
    "shader_tools": ("assemble", "decompile", "disassemble"),
    "streaming": ("FrameStream",),
    "struct_dtype": ("struct_dtype",),
}
_module_of = {name: module for module, names in _LATER.items() for name in names}


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext kompute_py``: the magics ``%%glsl``, ``%%hlsl``, ``%%slang`` and ``%kp``; each takes ``--help``."""
    from .notebook.magics import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext kompute_py``."""
    from .notebook.magics import unload

    unload(shell)


def __dir__() -> list[str]:
    # What users use: completion would otherwise offer the modules, and with them what only looks like Kompute's names.
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])


def __getattr__(name: str) -> Any:
    if name in _module_of:
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f".{_module_of[name]}", __name__), name)
        return value
    if name == "notebook":
        from importlib import import_module

        return import_module(".notebook", __name__)
    # Kompute exports the members of its enumerations: kp.device, kp.float. As plain names here, `float` and `int` would
    # shadow the built-ins for whoever imports *.
    for enumeration in (MemoryTypes, DataTypes):
        member = enumeration.__members__.get(name)
        if member is not None:
            return member
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
