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

from ._base.core import _native as _native
from ._base.public import publish
from ._base.settings import ConfigReport
from ._base.types import DataTypes, MemoryTypes, SemaphoreCompatibility, TensorDataTypes, TensorTypes
from ._device.names import DeviceInfo
from ._device.options import config_report
from ._manager.default import manager, set_manager, supports
from ._manager.host_memory import HostBufferSemantics, aligned_empty, aligned_zeros
from ._manager.manager import Manager, alive
from ._memory.image import Image, SampledImage
from ._memory.memory import Memory
from ._memory.sampler import Sampler
from ._memory.tensor import Tensor
from ._recording.algorithm import Algorithm
from ._recording.operations import (
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
from ._recording.sequence import Sequence
from ._sync.fence import Fence
from ._sync.semaphore import Semaphore
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
    ShaderCompileWarning,
    UnavailableError,
    UnimplementedError,
    ValidationError,
)

if TYPE_CHECKING:
    from . import dask as dask
    from . import errors as errors
    from . import notebook as notebook
    from . import ops as ops
    from . import random as random
    from . import testing as testing
    from . import typing as typing
    from ._builders.elementwise import Elementwise
    from ._compilers.compile import Shader, compile
    from ._custom.builder import FunctionBuilder, KernelBuilder
    from ._custom.selection import FunctionSelection, KernelSelection
    from ._custom.specs import TensorSpec
    from ._debugging.messages import ShaderMessage
    from ._debugging.values import OperationValues, Snapshot
    from ._device.devices import list_devices
    from ._device.drivers import DriverInfo, available_drivers
    from ._device.handles import VkHandles
    from ._device.memory_use import DeviceMemory, MemoryHeap, MemoryLabel, PipelineUse
    from ._device.report import report
    from ._device.shader_check import Finding, check
    from ._display.plots import plot
    from ._files.entries import TensorFileEntry
    from ._files.index import TensorIndex
    from ._files.quantized import dequantize
    from ._files.tensors import TensorDict, load_tensors, save_tensors, tensor_file_info
    from ._functions.custom_op import CustomOp, Operation
    from ._functions.function import Function
    from ._functions.library import OpLibrary, op_library
    from ._functions.op_custom import OpCustom
    from ._functions.tuning import tune
    from ._kernels.kernel import Kernel
    from ._kernels.operation import OpKernel
    from ._live.film import write_video
    from ._live.show import show
    from ._manager.dlpack_in import from_dlpack
    from ._memory.making import MemoryPlace
    from ._memory.mapping import Mapping
    from ._memory.memory_handle import MemoryHandle
    from ._memory.needs import MemoryNeeds
    from ._memory.scratch import Scratch
    from ._memory.strided import StridedView
    from ._profiling.benchmark import Benchmark, benchmark
    from ._profiling.profile import Profile
    from ._profiling.table import OperationTotal
    from ._programs.program import Program, ProgramEntry, load_program
    from ._programs.running import OpProgram
    from ._recording.host_call import OpHostCall
    from ._recording.repeat import OpRepeat
    from ._recording.streaming import FrameStream
    from ._shaders.module import ShaderModule
    from ._shaders.statistics import PipelineExecutable, ShaderStatistics
    from ._shaders.struct_dtype import struct_dtype
    from ._shaders.tools import assemble, decompile, disassemble
    from ._sync.sharing import SemaphoreHandle

    # Kompute exports the members of its enumerations.
    device: MemoryTypes
    host: MemoryTypes
    storage: MemoryTypes
    deviceAndHost: MemoryTypes
    bool: DataTypes
    int: DataTypes
    uint: DataTypes
    float: DataTypes
    double: DataTypes
    custom: DataTypes
    short: DataTypes
    ushort: DataTypes
    char: DataTypes
    uchar: DataTypes
    half: DataTypes
    long: DataTypes
    ulong: DataTypes
    bfloat16: DataTypes
    complex64: DataTypes
    complex128: DataTypes
    float8_e3m4: DataTypes
    float8_e4m3: DataTypes
    float8_e4m3b11fnuz: DataTypes
    float8_e4m3fn: DataTypes
    float8_e4m3fnuz: DataTypes
    float8_e5m2: DataTypes
    float8_e5m2fnuz: DataTypes
    float8_e8m0fnu: DataTypes

__version__ = "0.1.0"

__all__ = [
    "AbortedError",
    "Algorithm",
    "ArgumentTypeError",
    "Benchmark",
    "CommandRecorder",
    "CompileTimeoutError",
    "ConfigReport",
    "CustomOp",
    "DataTypes",
    "DeviceInfo",
    "DeviceLostError",
    "DeviceMemory",
    "DriverInfo",
    "Elementwise",
    "ErrorCode",
    "EvalTimeoutError",
    "ExchangeError",
    "FailedPreconditionError",
    "Fence",
    "Finding",
    "FrameStream",
    "Function",
    "FunctionBuilder",
    "FunctionSelection",
    "HostBufferSemantics",
    "Image",
    "InternalError",
    "InvalidArgumentError",
    "Kernel",
    "KernelBuilder",
    "KernelSelection",
    "KomputeError",
    "KomputeWarning",
    "Manager",
    "Mapping",
    "Memory",
    "MemoryHandle",
    "MemoryHeap",
    "MemoryLabel",
    "MemoryNeeds",
    "MemoryPlace",
    "MemoryTypes",
    "NotFoundError",
    "OpAlgoBase",
    "OpAlgoDispatch",
    "OpBase",
    "OpCopy",
    "OpCopyRange",
    "OpCopyRegion",
    "OpCustom",
    "OpFill",
    "OpHostCall",
    "OpKernel",
    "OpLibrary",
    "OpMult",
    "OpProgram",
    "OpRepeat",
    "OpSyncDevice",
    "OpSyncLocal",
    "OpTensorCopy",
    "OpTensorSyncDevice",
    "OpTensorSyncLocal",
    "Operation",
    "OperationTotal",
    "OperationValues",
    "OutOfMemoryError",
    "OutOfRangeError",
    "PipelineExecutable",
    "PipelineUse",
    "Profile",
    "Program",
    "ProgramEntry",
    "SampledImage",
    "Sampler",
    "Scratch",
    "Semaphore",
    "SemaphoreCompatibility",
    "SemaphoreHandle",
    "Sequence",
    "Shader",
    "ShaderCompileError",
    "ShaderCompileWarning",
    "ShaderMessage",
    "ShaderModule",
    "ShaderStatistics",
    "Snapshot",
    "StridedView",
    "Tensor",
    "TensorDataTypes",
    "TensorDict",
    "TensorFileEntry",
    "TensorIndex",
    "TensorSpec",
    "TensorTypes",
    "UnavailableError",
    "UnimplementedError",
    "ValidationError",
    "VkHandles",
    "aligned_empty",
    "aligned_zeros",
    "alive",
    "assemble",
    "available_drivers",
    "benchmark",
    "check",
    "compile",
    "config_report",
    "decompile",
    "dequantize",
    "disassemble",
    "from_dlpack",
    "list_devices",
    "load_program",
    "load_tensors",
    "manager",
    "op_library",
    "plot",
    "report",
    "save_tensors",
    "set_manager",
    "show",
    "struct_dtype",
    "supports",
    "tensor_file_info",
    "tune",
    "write_video",
]


# Modules that a script may do without, loaded when one of their names is first used.
_LATER = {
    "_compilers.compile": ("Shader", "compile"),
    "_custom.builder": ("FunctionBuilder", "KernelBuilder"),
    "_functions.custom_op": ("CustomOp", "Operation"),
    "_functions.function": ("Function",),
    "_builders.elementwise": ("Elementwise",),
    "_functions.op_custom": ("OpCustom",),
    "_functions.library": ("OpLibrary", "op_library"),
    "_custom.selection": ("FunctionSelection", "KernelSelection"),
    "_custom.specs": ("TensorSpec",),
    "_functions.tuning": ("tune",),
    "_device.devices": ("list_devices",),
    "_device.drivers": ("DriverInfo", "available_drivers"),
    "_device.report": ("report",),
    "_device.memory_use": ("DeviceMemory", "MemoryHeap", "MemoryLabel", "PipelineUse"),
    "_device.shader_check": ("Finding", "check"),
    "_files.entries": ("TensorFileEntry",),
    "_files.index": ("TensorIndex",),
    "_files.quantized": ("dequantize",),
    "_files.tensors": ("TensorDict", "load_tensors", "save_tensors", "tensor_file_info"),
    "_kernels.kernel": ("Kernel",),
    "_memory.scratch": ("Scratch",),
    "_kernels.operation": ("OpKernel",),
    "_live.film": ("write_video",),
    "_live.show": ("show",),
    "_manager.dlpack_in": ("from_dlpack",),
    "_memory.mapping": ("Mapping",),
    "_memory.making": ("MemoryPlace",),
    "_memory.memory_handle": ("MemoryHandle",),
    "_sync.sharing": ("SemaphoreHandle",),
    "_device.handles": ("VkHandles",),
    "_memory.needs": ("MemoryNeeds",),
    "_memory.strided": ("StridedView",),
    "_debugging.messages": ("ShaderMessage",),
    "_profiling.benchmark": ("Benchmark", "benchmark"),
    "_debugging.values": ("OperationValues", "Snapshot"),
    "_profiling.profile": ("Profile",),
    "_profiling.table": ("OperationTotal",),
    "_programs.program": ("Program", "ProgramEntry", "load_program"),
    "_programs.running": ("OpProgram",),
    "_recording.host_call": ("OpHostCall",),
    "_recording.repeat": ("OpRepeat",),
    "_recording.streaming": ("FrameStream",),
    "_shaders.module": ("ShaderModule",),
    "_shaders.statistics": ("PipelineExecutable", "ShaderStatistics"),
    "_shaders.struct_dtype": ("struct_dtype",),
    "_shaders.tools": ("assemble", "decompile", "disassemble"),
    "_display.plots": ("plot",),
}
_module_of = {name: module for module, names in _LATER.items() for name in names}


_PUBLIC = (f"{__name__}.errors", f"{__name__}.typing")


def _publish(name: str, value: Any) -> Any:
    """Makes `value` a name of this package; tracebacks, help() and pickles then name the package, not the
    room. So do they for the private bases of a class.
    """
    if isinstance(value, type):
        for each in value.__mro__:
            module = each.__module__
            if module == __name__ or module.startswith(f"{__name__}."):
                publish(each, module if module in _PUBLIC else __name__)
    elif getattr(value, "__module__", "").startswith(f"{__name__}."):
        value.__module__ = __name__
    globals()[name] = value
    return value


for _name in __all__:
    if _name in globals():
        _publish(_name, globals()[_name])
del _name


def _begin_capture(self: Manager, path: str) -> Any:
    from ._programs.capture import begin

    return begin(path, self._setting("capture_limit"))


Manager._begin_capture = _begin_capture  # type: ignore[method-assign]


def _device_info(device: Any) -> DeviceInfo:
    """The DeviceInfo of a named or described device, for the compilers, which stand below devices."""
    from ._device.devices import info_of

    return DeviceInfo(info_of(device))


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext kompute_py``: the magics ``%%glsl``, ``%%hlsl``, ``%%slang`` and ``%kp``; each takes
    ``--help``.
    """
    from .notebook.magics import load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext kompute_py``."""
    from .notebook.magics import unload

    unload(shell)


def __dir__() -> list[str]:
    # What users use: completion would otherwise offer the modules, and with them what only looks like
    # Kompute's names.
    return sorted([*__all__, *_LATER_MODULES, *(name for name in globals() if name.startswith("__"))])


_LATER_MODULES = ("dask", "errors", "notebook", "ops", "random", "testing", "typing")

if not TYPE_CHECKING:  # so that a checker of types knows the names that there are

    def __getattr__(name: str) -> Any:
        if name in _module_of:
            from importlib import import_module

            return _publish(name, getattr(import_module(f".{_module_of[name]}", __name__), name))
        if name in _LATER_MODULES:
            from importlib import import_module

            return import_module(f".{name}", __name__)
        # Kompute exports the members of its enumerations: kp.device, kp.float. As plain names here, `float`
        # and `int` would shadow the built-ins for code that imports *.
        for enumeration in (MemoryTypes, DataTypes):
            member = enumeration.__members__.get(name)
            if member is not None:
                return member
        near = "."
        if name[0] != "_":  # tools ask for many of those, and mistake nothing
            from . import ops
            from ._base.text import nearest
            from ._memory.array_habits import CALLS

            if name in CALLS:
                near = f": use {CALLS[name]}"
            elif name in dir(ops):
                near = f": it is kp.ops.{name}"
            elif hasattr(Manager, name):
                near = f": it is an attribute of Managers: kp.manager().{name}"
            else:
                near = nearest(name, [*__all__, *_LATER_MODULES])
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{near}", name=name)
