"""One object of each public class, made anew if a call has ended it, and all that can be called on them,
found by reflection.
"""

from __future__ import annotations

import enum
import gc
import itertools
import tempfile
from collections.abc import Callable, Iterator
from inspect import getattr_static
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import kompute_py as kp

SOURCE = """#version 450
layout(local_size_x = 4) in;
layout(constant_id = 0) const uint scale = 2;
layout(set = 0, binding = 0) buffer Data { float data[]; };
layout(push_constant) uniform Push { float f; uint n; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < n) data[i] = data[i] * scale + f; }
"""

# Functions that draw, block by their nature, or print to the terminal; and one whose numbers are addresses.
_NOT_CALLED = {"plot", "show", "live", "from_handles"}
# What every class of Python has, and what Python itself answers.
_FOLDER = tempfile.TemporaryDirectory()
_SAVED = Path(_FOLDER.name) / "saved.safetensors"
_OF_PYTHON = {
    "__class__", "__init_subclass__", "__subclasshook__", "__new__", "__del__", "__class_getitem__",
    "__getattr__",
    "__getattribute__", "__setattr__", "__delattr__", "__getnewargs__", "__next__", "__init__",
    "__getstate__", "__reduce_ex__", "__deepcopy__", "__dict__", "__weakref__", "__format__",
    "__get__",
    # From Python 3.12 and 3.13 on, of everything with buffers and of every namedtuple.
    "__buffer__", "__release_buffer__", "__replace__",
    # From Python 3.14 on, of every class with annotations.
    "__annotate__", "__annotate_func__",
}  # fmt: skip


def classes() -> dict[str, type]:
    """The public classes by name, but for errors, enumerations and older names."""
    found = {name: getattr(kp, name) for name in kp.__all__}
    found |= {name: getattr(kp.random, name) for name in kp.random.__all__}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, type)
        and not issubclass(value, (BaseException, enum.Enum))
        and name == value.__name__
    }


class Objects:
    """The objects by the names of their classes."""

    def __init__(self) -> None:
        self.spirv = kp.compile(SOURCE)
        self.held: dict[str, Any] = {}
        self.mgr = kp.Manager(memory_limit="2 GiB")

    def renew(self) -> None:
        """Forgets all objects: the last call may have left one of them waiting for ever."""
        self.held.clear()
        gc.collect()
        self.mgr.destroy()
        self.mgr = kp.Manager(memory_limit="2 GiB")

    def fresh(self) -> dict[str, Any]:
        """The objects; whatever is destroyed or running is made anew."""
        if not self.mgr.is_init():
            self.renew()
        held, mgr = self.held, self.mgr

        def keep(name: str, make: Callable[[], Any]) -> Any:
            known = held.get(name)
            ended = known is None
            if not ended and hasattr(known, "is_init"):
                ended = not known.is_init()
            if not ended and isinstance(known, kp.Sequence):
                ended = known.is_running() or known.is_recording()
            if ended:
                held[name] = make()
            return held[name]

        tensor = keep("Tensor", lambda: mgr.tensor(np.arange(8, dtype=np.float32)))
        typed = keep("tensor of ints", lambda: mgr.tensor_t(np.arange(6, dtype=np.int32).reshape(2, 3)))
        image = keep("Image", lambda: mgr.image(np.zeros((4, 4, 4), np.float32)))
        sampler = keep("Sampler", mgr.sampler)
        algorithm = keep("Algorithm", lambda: mgr.algorithm([tensor], self.spirv, (1, 1, 1), [2], [1.0, 1]))
        kernel = keep("Kernel", lambda: mgr.kernel(SOURCE))
        keep("Sequence", mgr.sequence)
        keep("Semaphore", mgr.semaphore)
        keep("ShaderModule", lambda: kp.ShaderModule(SOURCE))
        keep("SampledImage", lambda: image.sampled(sampler))
        keep("Fence", lambda: mgr.submit([mgr.sequence().record(kp.OpSyncDevice([tensor]))]))
        keep("Mapping", lambda: mgr.tensor(np.arange(4, dtype=np.float32)).map(read=True, write=True))
        keep("StridedView", lambda: mgr.tensor(np.arange(12, dtype=np.float32).reshape(3, 4))[:, 1])
        keep("FrameStream", lambda: _stream(mgr, kernel))
        keep("CommandRecorder", lambda: _recorder(mgr, tensor))
        keep("Memory", lambda: mgr.zeros(8, memory_type="host"))
        keep("OpBase", kp.OpBase)
        keep("OpTensorCopy", lambda: kp.OpTensorCopy([tensor, mgr.zeros(8)]))
        keep("OpTensorSyncDevice", lambda: kp.OpTensorSyncDevice([tensor]))
        keep("OpTensorSyncLocal", lambda: kp.OpTensorSyncLocal([tensor]))
        keep("ConfigReport", lambda: mgr.config)
        keep("DeviceInfo", lambda: kp.list_devices()[0])
        keep("DeviceMemory", lambda: mgr.memory)
        keep("MemoryHeap", lambda: mgr.memory.heaps[0])
        keep("MemoryPlace", mgr.memory_place)
        keep("MemoryNeeds", lambda: kp.ops.sqrt.memory_needs(tensor))
        keep("PipelineExecutable", lambda: kp.PipelineExecutable("main", "", None, {}, {}))
        keep("MemoryLabel", lambda: kp.MemoryLabel(4, 1))
        keep("Finding", lambda: kp.Finding("limit", "maxComputeSharedMemorySize", 4, 2, "too much"))
        keep("DriverInfo", lambda: kp.DriverInfo("a", "a_icd.json", "a.so", "1.3.0", False, None, None))
        keep("TensorDict", lambda: _saved(tensor, mgr))
        keep("TensorIndex", lambda: kp.tensor_file_info(_SAVED))
        keep("TensorFileEntry", lambda: kp.tensor_file_info(_SAVED)["t"])
        keep("Shader", kp.Shader)
        keep("OpAlgoDispatch", lambda: kp.OpAlgoDispatch(algorithm))
        keep("OpAlgoBase", lambda: kp.OpAlgoBase([tensor], self.spirv, (1, 1, 1), [2], [1.0, 1]))
        keep("OpCopy", lambda: kp.OpCopy([tensor, mgr.zeros(8)]))
        keep("OpCopyRange", lambda: kp.OpCopyRange(tensor, mgr.zeros(8), count=4))
        keep("OpCopyRegion", lambda: kp.OpCopyRegion(image, mgr.image(np.zeros((4, 4, 4), np.float32))))
        keep("OpFill", lambda: kp.OpFill([tensor], 1.0))
        keep("OpHostCall", lambda: kp.OpHostCall(list, reads=[tensor], name="c"))
        keep("OpKernel", lambda: kernel.bind(tensor, f=1.0, n=4))
        keep("OpMult", lambda: kp.OpMult([tensor, mgr.zeros(8), mgr.zeros(8)]))
        keep(
            "OpRepeat", lambda: kp.OpRepeat(kernel.bind(tensor, f=1.0, n=4), 5, swap=[(tensor, mgr.zeros(8))])
        )
        keep("OpSyncDevice", lambda: kp.OpSyncDevice([tensor, typed]))
        keep("OpSyncLocal", lambda: kp.OpSyncLocal([tensor]))
        keep("Scratch", lambda: mgr.scratch())
        profile = keep("Profile", lambda: _profile(mgr, tensor))
        keep("OperationTotal", lambda: profile.totals()[0])
        keep("Benchmark", lambda: kp.benchmark(list, seconds=0.001))
        keep("ShaderStatistics", lambda: kernel.statistics())
        keep("ShaderMessage", lambda: kp.ShaderMessage("printf", "a", "s.comp", 3, "k", 0, (0, 0, 0), (1,)))
        ones = np.ones(2, np.float32)
        snapshot = keep("Snapshot", lambda: kp.Snapshot(tensor, "t", (2,), 0, ones, ones, True, False))
        keep(
            "OperationValues",
            lambda: kp.OperationValues("add", 0, "", 0, "", {"t": ones}, {}, (snapshot,)),
        )
        if mgr.supports("VK_KHR_external_memory_fd"):
            keep("MemoryHandle", lambda: mgr.shared(4).share())
            keep("VkHandles", lambda: mgr.vk_handles)
            keep("SemaphoreHandle", lambda: mgr.semaphore(shared=True).share())
        keep("TensorSpec", lambda: kp.TensorSpec((2, 3)))
        keep("CustomOp", kp.CustomOp)
        negative = keep("Function", lambda: kp.CustomOp.register(Negative))
        keep("Elementwise", lambda: kp.ops.elementwise("a * x + y"))
        keep("Reduction", lambda: kp.ops.reduction("a * x + y"))
        keep("Scan", lambda: kp.ops.scan(segments="starts"))
        keep("OpCustom", lambda: negative.op(tensor))
        program = keep("Program", lambda: _program(mgr, kernel))
        keep("ProgramEntry", lambda: program.square)
        keep("OpProgram", lambda: program.square.bind(tensor))
        keep("OpLibrary", lambda: _library(negative))
        keep("Generator", lambda: kp.random.Generator(1, manager=mgr))
        keep("FunctionSelection", lambda: _looked_at(mgr)[0])
        keep("FunctionBuilder", lambda: _looked_at(mgr)[1])
        for name, cls in classes().items():
            if name not in held and cls is not kp.Manager:
                found = _attribute_of_class(held, cls)
                if found is not None:
                    held[name] = found
        return {"Manager": mgr, **held}

    def get(self, name: str) -> Any:
        """The object of that name."""
        return self.fresh()[name]


class Negative(kp.CustomOp):
    """An operation."""

    signature = "negative(Tensor x, int n=1) -> Tensor"
    seen: ClassVar[list[Any]] = []

    def select(self, ksel: kp.FunctionSelection) -> None:
        """Keeps the selection."""
        x = ksel.arg_tensor("x")
        ksel.attr_int("n")
        ksel.return_new_tensor(x.shape, x.dtype)
        self.seen.append(ksel)

    def generate(self, ksel: kp.FunctionSelection, kb: kp.FunctionBuilder) -> None:
        """Keeps the builder."""
        kb.yield_results("-x_load(i)")
        self.seen.append(kb)


def _looked_at(mgr: kp.Manager) -> tuple[Any, Any]:
    Negative.seen.clear()
    kp.CustomOp.register(Negative)(mgr.zeros(3))
    return Negative.seen[0], Negative.seen[1]


def _profile(mgr: kp.Manager, tensor: kp.Tensor) -> kp.Profile:
    with mgr.profile() as profile:
        mgr.sequence().record(kp.OpSyncLocal([tensor])).eval()
    return profile


def _program(mgr: kp.Manager, kernel: kp.Kernel) -> kp.Program:
    x, y = mgr.zeros(8), mgr.zeros(8)
    square = kp.OpMult([x, x, y])
    return kp.Program.record({"square": square, "kernel": kernel}, inputs={"x": x}, outputs={"y": y}).on(mgr)


def _library(operation: Any) -> Any:
    library = kp.op_library(f"fuzzed_{next(_numbers)}")
    kp.CustomOp.register(library=library)(operation.__wrapped__)
    return library


_numbers = itertools.count()


def _attribute_of_class(held: dict[str, Any], cls: type) -> Any:
    """An object of the class that is an attribute of one of the others."""
    for one in list(held.values()):
        for name in dir(type(one)):
            if not name.startswith("_") and isinstance(getattr_static(type(one), name), property):
                try:
                    value = getattr(one, name)
                except kp.KomputeError:
                    continue
                if type(value) is cls:
                    return value
    return None


def _stream(mgr: kp.Manager, kernel: Any) -> Any:
    tensor = mgr.zeros(8)
    sequence = mgr.sequence().record(kernel.bind(tensor, f=1.0, n=8))
    return sequence.stream([np.ones(8, np.float32)] * 3, inputs=tensor, outputs=tensor)


def _recorder(mgr: kp.Manager, tensor: kp.Tensor) -> kp.CommandRecorder:
    class Keeps(kp.OpBase):
        reads = (tensor,)

        def record(self, recorder: kp.CommandRecorder) -> None:
            self.recorder = recorder

    op = Keeps()
    mgr.sequence().eval(op)
    return op.recorder


def _saved(tensor: kp.Tensor, mgr: kp.Manager) -> Any:
    kp.save_tensors(_SAVED, {"t": tensor})
    return kp.load_tensors(_SAVED, mgr)


Get = Callable[[Objects], Any]


def _of_others(cls: type, name: str) -> bool:
    """Whether the class has this member from a class of Python's or NumPy's."""
    return not any(name in c.__dict__ and c.__module__.startswith("kompute_py") for c in cls.__mro__) or next(
        not c.__module__.startswith("kompute_py") for c in cls.__mro__ if name in c.__dict__
    )


def members(label: str, cls: type, get: Get) -> Iterator[tuple[str, str, Get]]:
    """(name, kind, what gives the callable) for the members of an object; kinds: "call", "read", "set"."""
    for name in sorted(set(dir(cls))):
        private = name.startswith("_") and not (name.startswith("__") and name.endswith("__"))
        if private or name in _OF_PYTHON or name in _NOT_CALLED or _of_others(cls, name):
            continue
        static = next(c.__dict__[name] for c in cls.__mro__ if name in c.__dict__)
        if hasattr(type(static), "__set__") or hasattr(static, "func"):
            yield f"{label}.{name}", "read", lambda o, name=name: lambda: getattr(get(o), name)
            if isinstance(static, property) and static.fset is not None:
                yield (
                    f"{label}.{name} =",
                    "set",
                    lambda o, name=name: lambda value: setattr(get(o), name, value),
                )
        elif callable(static) or isinstance(static, (classmethod, staticmethod)):
            yield f"{label}.{name}", "call", lambda o, name=name: getattr(get(o), name)


def public_callables(objects: Objects) -> list[tuple[str, str, Get]]:
    """(name, kind, what gives the callable) for everything public."""
    found: list[tuple[str, str, Get]] = []
    for name in kp.__all__:
        value = getattr(kp, name)
        if not callable(value) or name in _NOT_CALLED:
            continue
        if isinstance(value, type) and (
            issubclass(value, (BaseException, enum.Enum))
            or (_of_others(value, "__init__") and _of_others(value, "__new__"))
        ):
            continue
        found.append((name, "call", lambda _, value=value: value))
    for name in sorted(dir(kp.ops)):
        value = getattr(kp.ops, name)
        if not name.startswith("_") and callable(value) and not isinstance(value, type):
            found.append((f"ops.{name}", "call", lambda _, value=value: value))
    for name in kp.random.__all__:
        value = getattr(kp.random, name)
        if callable(value) and not isinstance(value, type):
            found.append((f"random.{name}", "call", lambda _, value=value: value))
    for name, one in objects.fresh().items():
        found += members(name, type(one), lambda o, name=name: o.get(name))
    return found
