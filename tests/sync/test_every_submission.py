"""Each public call that submits work takes `wait=` and `signal=`, or stands here with the reason why not."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import kompute_py as kp

NEW = "makes memory that no other work knows yet"
NUMPY = "has NumPy's or Python's signature; `read` and `write` take both"
BLOCK = "begins a block of the host, which waits and signals itself"
NOTHING = "submits nothing"
MANY = "runs work again and again, in an order of its own"

SUBMIT = {
    "Tensor": "read write to fill copy_from copy_to",
    "Image": "read write to fill copy_from copy_to",
    "StridedView": "read write to fill copy_from copy_to",
    "Sequence": "eval eval_async stream",
    "Manager": "submit",
    "Kernel": "__call__ submit",
    "Function": "__call__ submit",
    "Program": "reset",
    "ProgramEntry": "__call__ submit",
    "Generator": "random uniform standard_normal normal integers permutation shuffle choice "
    "standard_exponential exponential laplace standard_cauchy cauchy lognormal standard_gamma gamma "
    "chisquare beta dirichlet poisson binomial geometric multinomial",
    "random": "fill_randn fill_uniform fill_randint",
}
OTHERS = {
    "Tensor": {
        NUMPY: "astype item tolist",
        BLOCK: "map",
        NOTHING: "data data_type destroy freeze is_init memory_type numpy reshape share size tensor_type "
        "view show",
    },
    "Image": {
        NUMPY: "astype item tolist to_pil",
        NOTHING: "data data_type destroy freeze is_init memory_type numpy sampled size tensor_type show",
    },
    "StridedView": {NUMPY: "astype item tolist", NOTHING: "is_init numpy size"},
    "Sequence": {
        NOTHING: "clear destroy eval_await get_timestamps is_complete is_init is_recording is_running "
        "memory_needs mermaid record rerecord timings"
    },
    "Manager": {
        NEW: "as_tensor empty from_host full image image_empty image_t import_memory shared tensor tensor_t "
        "zeros",
        NOTHING: "algorithm current destroy from_handles get_device_properties image_formats import_fence "
        "import_semaphore is_init kernel list_devices memory_place on_message preload profile sampler "
        "scratch semaphore sequence supports synchronize vk_queue watch",
    },
    "Kernel": {NOTHING: "bind disassembly memory_needs preload reload specialize statistics to to_spirv"},
    "Function": {
        NOTHING: "bind cache_clear cache_info memory_needs meta op preload sources specialize variant"
    },
    "Program": {NOTHING: "check get items keys memory_needs on preload record save values"},
    "ProgramEntry": {NOTHING: "bind memory_needs preload"},
    "Generator": {NOTHING: "spawn jumped"},
    "random": {NOTHING: "default_rng default_generator"},
    "ops": {NOTHING: "elementwise reduction scan"},
    "kompute_py": {
        NEW: "dequantize from_dlpack load_tensors",
        NUMPY: "save_tensors",
        MANY: "benchmark plot show tune write_video",
        NOTHING: "aligned_empty aligned_zeros alive assemble available_drivers check compile config_report "
        "decompile disassemble list_devices load_program manager op_library report set_manager struct_dtype "
        "supports tensor_file_info",
    },
}
HOLDERS: dict[str, Any] = {
    **{
        name: getattr(kp, name)
        for name in (
            "Tensor", "Image", "StridedView", "Sequence", "Manager", "Kernel", "Function", "Program",
            "ProgramEntry",
        )
    },
    "Generator": kp.random.Generator,
    "random": kp.random,
    "ops": kp.ops,
    "kompute_py": kp,
}  # fmt: skip
IDLE = """
    Algorithm Benchmark CommandRecorder ConfigReport CustomOp DataTypes DeviceInfo DeviceMemory DriverInfo
    ErrorCode Fence Finding FrameStream FunctionBuilder FunctionSelection HostBufferSemantics KernelBuilder
    KernelSelection Mapping MemoryHandle MemoryHeap MemoryLabel MemoryNeeds MemoryPlace MemoryTypes OpAlgoBase
    OpAlgoDispatch OpBase OpCopy OpCopyRange OpCopyRegion OpCustom OpFill OpHostCall OpKernel OpLibrary OpMult
    OpProgram OpRepeat OpSyncDevice OpSyncLocal OpTensorCopy OpTensorSyncDevice OpTensorSyncLocal
    OperationTotal OperationValues PipelineExecutable PipelineUse Profile SampledImage Sampler Scratch
    Semaphore SemaphoreCompatibility SemaphoreHandle Shader ShaderMessage ShaderModule ShaderStatistics
    Snapshot TensorDataTypes TensorDict TensorFileEntry TensorIndex TensorSpec TensorTypes VkHandles
"""
"""Classes whose methods submit nothing."""


def called(holder: Any) -> Iterator[str]:
    """The public callables of a class or a module."""
    for name in holder.__all__ if inspect.ismodule(holder) else ["__call__", *dir(holder)]:
        if name == "__call__" and not inspect.isfunction(getattr(holder, name, None)):
            continue
        if name.startswith("_") and name != "__call__":
            continue
        found = inspect.getattr_static(holder, name, None) or getattr(holder, name)
        if type(found).__name__ == "OnlyOfArrays" or inspect.isclass(found):
            continue
        if callable(getattr(holder, name)):
            yield name


@pytest.mark.own_driver
@pytest.mark.parametrize("name", HOLDERS)
def test_each_call_takes_both_or_has_its_reason(name: str) -> None:
    submit = SUBMIT.get(name, "").split()
    others = " ".join(OTHERS.get(name, {}).values()).split()
    found = list(called(HOLDERS[name]))
    assert {*submit, *others} <= set(found), "no longer there"
    for each in found:
        options = {"wait", "signal"} & inspect.signature(getattr(HOLDERS[name], each)).parameters.keys()
        if each in others or each.endswith("_op"):
            assert not options, f"{name}.{each} takes {options}: it is a call that submits"
        elif name == "Function" and each == "__call__":
            assert {"wait", "signal"} <= inspect.signature(kp.ops.add).parameters.keys()
        elif name in ("Kernel", "ProgramEntry") and each == "__call__":
            pass  # below
        else:
            assert len(options) == 2, f"{name}.{each}: give it wait= and signal=, or the reason why not"
            assert each in submit or name == "ops", f"{name}.{each} is in no table"


@pytest.mark.own_driver
def test_each_class_is_looked_at() -> None:
    classes = {
        name
        for name in kp.__all__
        if inspect.isclass(kind := getattr(kp, name)) and not issubclass(kind, BaseException)
    }
    assert classes - HOLDERS.keys() - {"Memory", "Elementwise", "Operation"} == {*IDLE.split()}


def calls(mgr: kp.Manager) -> dict[str, Callable[..., Any]]:
    """Calls that take nothing but the options; each name begins with its class."""
    t, image = mgr.tensor([1, 2, 3, 4]), mgr.image_empty((2, 2), "r32f")
    host, texels = np.ones(4, np.float32), np.ones((2, 2), np.float32)
    result = mgr.zeros(4)
    seq = mgr.sequence().record(kp.OpMult([t, t, result]))
    kernel = mgr.kernel("""
        layout(local_size_x = 4) in;
        layout(binding = 0) buffer X { float x[]; };
        void main() { x[gl_GlobalInvocationID.x] += 1.0; }
    """)
    program = kp.Program.record(kernel).on(mgr)
    rng = kp.random.Generator(7, manager=mgr)

    async def streamed(**order: Any) -> None:
        async for _ in seq.stream([host, host], inputs=t, outputs=result, **order):
            pass

    made: dict[str, Callable[..., Any]] = {
        "Sequence.eval": seq.eval,
        "Sequence.eval of an operation": lambda **order: mgr.sequence().eval(kp.OpSyncLocal([t]), **order),
        "Sequence.eval_async": lambda **order: seq.eval_async(**order).eval_await(),
        "Sequence.stream": lambda **order: list(seq.stream([host, host], inputs=t, outputs=result, **order)),
        "Sequence.stream, awaited": lambda **order: asyncio.run(streamed(**order)),
        "Manager.submit": lambda **order: mgr.submit(seq, **order).wait(),
        "Kernel.__call__": lambda **order: kernel(t, **order),
        "Kernel.submit": lambda **order: kernel.submit(t, **order).wait(),
        "ProgramEntry.__call__": lambda **order: program.main(t, **order),
        "ProgramEntry.submit": lambda **order: program.main.submit(t, **order).wait(),
        "Program.reset": program.reset,
        "Function.__call__": lambda **order: kp.ops.add(t, 1.0, **order),
        "Function.submit": lambda **order: kp.ops.add.submit(t, 1.0, out=result, **order).wait(),
        "ops.quantile": lambda **order: kp.ops.quantile(t, 0.5, **order),
        "ops.unique": lambda **order: kp.ops.unique(t, **order),
        "Generator.shuffle": lambda **order: rng.shuffle(t, **order),
        "Generator.choice": lambda **order: rng.choice(t, 2, **order),
        "Generator.normal": lambda **order: rng.normal(size=3, **order),
        "Generator.gamma": lambda **order: rng.gamma(2.0, size=3, **order),
        "random.fill_randn": lambda **order: kp.random.fill_randn(result, rng, **order),
    }
    for memory, given in ((t, host), (t[::2], host[::2]), (image, texels)):
        name = type(memory).__name__
        made |= {
            f"{name}.read": memory.read,
            f"{name}.write": lambda memory=memory, given=given, **order: memory.write(given, **order),
            f"{name}.to": lambda memory=memory, **order: memory.to(mgr, copy=True, **order),
            f"{name}.fill": lambda memory=memory, **order: memory.fill(1.0, **order).wait(),
            f"{name}.copy_from": lambda memory=memory, given=given, **order: memory.copy_from(given, **order),
            f"{name}.copy_to": lambda memory=memory, given=given, **order: memory.copy_to(given, **order),
        }
    return made


@pytest.mark.capability("I39", "`wait=` and `signal=` of each call", "Kernel.submit", "guides/asynchronous")
def test_each_call_waits_and_then_signals(mgr: kp.Manager) -> None:
    for name, call in calls(mgr).items():
        call()  # what it takes to prepare does not count
        counter, dead = mgr.semaphore(), mgr.semaphore()
        begun: list[int] = []

        def begin(counter: kp.Semaphore = counter, begun: list[int] = begun) -> None:
            time.sleep(0.01)
            begun.append(counter.query())
            counter.signal(1)

        thread = threading.Thread(target=begin)
        thread.start()
        call(wait=(counter, 1), signal=[(counter, 2)])
        thread.join()
        assert (begun, counter.query()) == ([0], 2), name
        with pytest.raises(kp.InvalidArgumentError, match="only goes up"):
            call(signal=(counter, 2))
        dead.fail("the camera is gone")
        with pytest.raises(kp.AbortedError, match="the camera is gone"):
            call(wait=(dead, 1))
