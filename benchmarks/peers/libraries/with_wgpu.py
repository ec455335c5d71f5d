"""wgpu (wgpu-native): write_buffer, and read-back through a mapped buffer that is kept."""

from __future__ import annotations

import numpy as np
import wgpu
from base import LOCAL_SIZE, Library, Multiplication, Transfer

_WGSL = """
@group(0) @binding(0) var<storage, read> left: array<f32>;
@group(0) @binding(1) var<storage, read> right: array<f32>;
@group(0) @binding(2) var<storage, read_write> product: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { product[id.x] = left[id.x] * right[id.x]; }
"""
_Usage = wgpu.BufferUsage


class Wgpu(Library):
    """The adapter of the Vulkan back end."""

    def __init__(self) -> None:
        adapters = [
            adapter
            for adapter in wgpu.gpu.enumerate_adapters_sync()
            if adapter.info["backend_type"] == "Vulkan"
        ]
        if not adapters:
            raise RuntimeError("wgpu finds no Vulkan adapter")
        self._info = adapters[0].info
        limits = {"max-buffer-size": adapters[0].limits["max-buffer-size"]}
        self._device = adapters[0].request_device_sync(required_limits=limits)
        self._word = self._buffer(4, _Usage.MAP_READ | _Usage.COPY_DST)

    def about(self) -> str:
        return f"wgpu {wgpu.__version__}, {self._info['device']}"

    def _buffer(self, nbytes: int, usage: int) -> wgpu.GPUBuffer:
        return self._device.create_buffer(size=nbytes, usage=usage)

    def _submit_and_wait(self, encoder: wgpu.GPUCommandEncoder, written: wgpu.GPUBuffer) -> None:
        # By mapping a word of what the queue wrote last: on_submitted_work_done_sync of version 0.32 fails
        # with a TypeError.
        encoder.copy_buffer_to_buffer(written, 0, self._word, 0, 4)
        self._device.queue.submit([encoder.finish()])
        self._word.map_sync(wgpu.MapMode.READ)
        self._word.unmap()

    def _read(self, source: wgpu.GPUBuffer, landing: wgpu.GPUBuffer, out: np.ndarray) -> np.ndarray:
        encoder = self._device.create_command_encoder()
        encoder.copy_buffer_to_buffer(source, 0, landing, 0, out.nbytes)
        self._device.queue.submit([encoder.finish()])
        return self._land(landing, out)

    def _land(self, landing: wgpu.GPUBuffer, out: np.ndarray) -> np.ndarray:
        landing.map_sync(wgpu.MapMode.READ)
        np.copyto(out, np.frombuffer(landing.read_mapped(copy=False), out.dtype).reshape(out.shape))
        landing.unmap()
        return out

    def transfer(self, array: np.ndarray) -> Transfer:
        inside = self._buffer(array.nbytes, _Usage.STORAGE | _Usage.COPY_DST | _Usage.COPY_SRC)
        landing = self._buffer(array.nbytes, _Usage.MAP_READ | _Usage.COPY_DST)
        out = np.zeros_like(array)

        def upload() -> None:
            self._device.queue.write_buffer(inside, 0, array)
            self._submit_and_wait(self._device.create_command_encoder(), inside)

        return Transfer(upload, lambda: self._read(inside, landing, out))

    def multiplication(self, left: np.ndarray, right: np.ndarray) -> Multiplication:
        device, nbytes = self._device, left.nbytes
        a, b = (self._buffer(nbytes, _Usage.STORAGE | _Usage.COPY_DST) for _ in range(2))
        product = self._buffer(nbytes, _Usage.STORAGE | _Usage.COPY_SRC)
        landing = self._buffer(nbytes, _Usage.MAP_READ | _Usage.COPY_DST)
        out = np.zeros_like(left)
        pipeline = device.create_compute_pipeline(
            layout="auto",
            compute={"module": device.create_shader_module(code=_WGSL), "entry_point": "main"},
        )
        entries = [{"binding": i, "resource": {"buffer": buffer}} for i, buffer in enumerate((a, b, product))]
        bindings = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)

        def encode() -> wgpu.GPUCommandEncoder:
            encoder = device.create_command_encoder()
            compute = encoder.begin_compute_pass()
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, bindings)
            compute.dispatch_workgroups(left.size // LOCAL_SIZE, 1, 1)
            compute.end()
            return encoder

        def round_trip() -> np.ndarray:
            device.queue.write_buffer(a, 0, left)
            device.queue.write_buffer(b, 0, right)
            encoder = encode()
            encoder.copy_buffer_to_buffer(product, 0, landing, 0, nbytes)
            device.queue.submit([encoder.finish()])
            return self._land(landing, out)

        return Multiplication(
            round_trip,
            lambda: self._submit_and_wait(encode(), product),
            lambda: self._read(product, landing, out),
        )


LIBRARY = Wgpu
