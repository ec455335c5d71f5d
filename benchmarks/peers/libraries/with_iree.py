"""IREE: a module that its compiler makes for Vulkan, run by iree-base-runtime."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import iree.runtime as rt
import numpy as np
from base import Additions, Library, Multiplication, Transfer
from iree.compiler.tools import compile_str
from iree.runtime import BufferUsage, HalFence, MemoryType

_MLIR = """
func.func @multiply(%left: tensor<{n}xf32>, %right: tensor<{n}xf32>) -> tensor<{n}xf32> {{
  %product = arith.mulf %left, %right : tensor<{n}xf32>
  return %product : tensor<{n}xf32>
}}
func.func @add_one(%data: tensor<{n}xf32>) -> tensor<{n}xf32> {{
  %one = arith.constant dense<1.0> : tensor<{n}xf32>
  %sum = arith.addf %data, %one : tensor<{n}xf32>
  return %sum : tensor<{n}xf32>
}}
func.func @frame(%data: tensor<{n}xf32>) -> tensor<{n}xf32> {{
  %one = arith.constant dense<1.0> : tensor<{n}xf32>
  %two = arith.constant dense<2.0> : tensor<{n}xf32>
  %product = arith.mulf %data, %two : tensor<{n}xf32>
  %sum = arith.addf %product, %one : tensor<{n}xf32>
  return %sum : tensor<{n}xf32>
}}
"""


class Iree(Library):
    """One device of its Vulkan driver."""

    def __init__(self, caches: bool = False) -> None:
        self._config = rt.Config("vulkan")
        self._device = self._config.device

    def about(self) -> str:
        names = [device["name"] for device in rt.get_driver("vulkan").query_available_devices()]
        return f"iree-base-runtime {version('iree-base-runtime')}, {names[0]}"

    def _module(self, count: int) -> rt.VmModule:
        compiled = compile_str(_MLIR.format(n=count), target_backends=["vulkan-spirv"], input_type="none")
        return rt.load_vm_module(rt.VmModule.copy_buffer(self._config.vm_instance, compiled), self._config)

    def _reader(self, nbytes: int) -> Callable[[rt.DeviceArray], np.ndarray]:
        # What DeviceArray.to_host does without importing host memory, which 3.13 tries with pointers that are
        # not aligned and then fails.
        landing = self._device.allocator.allocate_buffer(
            memory_type=int(MemoryType.HOST_LOCAL | MemoryType.DEVICE_VISIBLE),
            allowed_usage=int(BufferUsage.TRANSFER_TARGET | BufferUsage.MAPPING_SCOPED),
            allocation_size=nbytes,
        )
        out = np.zeros(nbytes // 4, np.float32)

        def read(array: rt.DeviceArray) -> np.ndarray:
            done = self._device.create_semaphore(0)
            self._device.queue_copy(
                array._buffer_view.get_buffer(),
                landing,
                wait_semaphores=HalFence.create_at(done, 0),
                signal_semaphores=HalFence.create_at(done, 1),
            )
            HalFence.create_at(done, 1).wait()
            np.copyto(out, landing.map().asarray(out.shape, out.dtype))
            return out

        return read

    def transfer(self, array: np.ndarray) -> Transfer:
        read = self._reader(array.nbytes)
        inside = rt.asdevicearray(self._device, array)

        def upload() -> None:
            nonlocal inside
            inside = rt.asdevicearray(self._device, array)

        return Transfer(upload, lambda: read(inside))

    def multiplication(self, left: np.ndarray, right: np.ndarray) -> Multiplication:
        module, read = self._module(left.size), self._reader(left.nbytes)
        a, b = rt.asdevicearray(self._device, left), rt.asdevicearray(self._device, right)
        product = module.multiply(a, b)

        def dispatch() -> None:
            nonlocal product
            product = module.multiply(a, b)

        return Multiplication(lambda: read(module.multiply(left, right)), dispatch, lambda: read(product))

    def additions(self, array: np.ndarray, count: int) -> Additions:
        module, read = self._module(array.size), self._reader(array.nbytes)
        inside = rt.asdevicearray(self._device, array)

        def run() -> None:
            nonlocal inside
            for _ in range(count):
                inside = module.add_one(inside)

        return Additions(run, lambda: read(inside))

    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        module, read = self._module(frames[0].size), self._reader(frames[0].nbytes)

        def run() -> None:
            for frame, result in zip(frames, results, strict=True):
                np.copyto(result, read(module.frame(frame)))

        return run


LIBRARY = Iree
