"""wgpu (wgpu-native): write_buffer, and read-back through a mapped buffer that is kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import wgpu
from base import Call, Library, groups_of

_WGSL = """
@group(0) @binding(0) var<storage, read> left: array<f32>;
@group(0) @binding(1) var<storage, read> right: array<f32>;
@group(0) @binding(2) var<storage, read_write> product: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x + id.y * 2097152;
    if (i < arrayLength(&product)) { product[i] = left[i] * right[i]; }
}
"""
_ADD = """
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&data)) { data[id.x] += 1.0; }
}
"""
_FRAME = """
@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> result: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&result)) { result[id.x] = 2.0 * source[id.x] + 1.0; }
}
"""
_IN_FLIGHT = 3
_Usage = wgpu.BufferUsage


class Wgpu(Library):
    """The adapter of the Vulkan back end."""

    def __init__(self, caches: bool = False) -> None:
        adapters = [
            adapter
            for adapter in wgpu.gpu.enumerate_adapters_sync()
            if adapter.info["backend_type"] == "Vulkan"
        ]
        if not adapters:
            raise RuntimeError("wgpu finds no Vulkan adapter")
        self._info = adapters[0].info
        names = ("max-buffer-size", "max-storage-buffer-binding-size")
        limits = {name: adapters[0].limits[name] for name in names}
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

    def _land(self, landing: wgpu.GPUBuffer, out: np.ndarray) -> np.ndarray:
        landing.map_sync(wgpu.MapMode.READ)
        np.copyto(out, np.frombuffer(landing.read_mapped(copy=False), out.dtype).reshape(out.shape))
        landing.unmap()
        return out

    def _dispatch(
        self, pipeline: wgpu.GPUComputePipeline, bindings: wgpu.GPUBindGroup, count: int, times: int = 1
    ):
        """An encoder with so many dispatches for `count` elements."""
        encoder = self._device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, bindings)
        for _ in range(times):
            compute.dispatch_workgroups(*groups_of(count), 1)
        compute.end()
        return encoder

    def call(self, left: np.ndarray, right: np.ndarray) -> Call:
        device, nbytes, out = self._device, left.nbytes, np.zeros_like(left)
        a, b, product = (self._on_device(left) for _ in range(3))
        landing = self._buffer(nbytes, _Usage.MAP_READ | _Usage.COPY_DST)
        pipeline, bindings = self._pipeline(_WGSL, [a, b, product])

        def multiply() -> np.ndarray:
            device.queue.write_buffer(a, 0, left)
            device.queue.write_buffer(b, 0, right)
            encoder = self._dispatch(pipeline, bindings, left.size)
            encoder.copy_buffer_to_buffer(product, 0, landing, 0, nbytes)
            device.queue.submit([encoder.finish()])
            return self._land(landing, out)

        return multiply

    def _pipeline(
        self, code: str, buffers: list[wgpu.GPUBuffer]
    ) -> tuple[wgpu.GPUComputePipeline, wgpu.GPUBindGroup]:
        module = self._device.create_shader_module(code=code)
        pipeline = self._device.create_compute_pipeline(
            layout="auto", compute={"module": module, "entry_point": "main"}
        )
        entries = [{"binding": i, "resource": {"buffer": buffer}} for i, buffer in enumerate(buffers)]
        layout = pipeline.get_bind_group_layout(0)
        return pipeline, self._device.create_bind_group(layout=layout, entries=entries)

    def _on_device(self, array: np.ndarray) -> wgpu.GPUBuffer:
        buffer = self._buffer(array.nbytes, _Usage.STORAGE | _Usage.COPY_DST | _Usage.COPY_SRC)
        self._device.queue.write_buffer(buffer, 0, array)
        return buffer

    def additions(self, array: np.ndarray, count: int) -> tuple[Callable[[], object], Call]:
        data = self._on_device(array)
        pipeline, bindings = self._pipeline(_ADD, [data])
        landing = self._buffer(array.nbytes, _Usage.MAP_READ | _Usage.COPY_DST)

        def run() -> None:
            self._submit_and_wait(self._dispatch(pipeline, bindings, array.size, count), data)

        def read() -> np.ndarray:
            encoder = self._device.create_command_encoder()
            encoder.copy_buffer_to_buffer(data, 0, landing, 0, array.nbytes)
            self._device.queue.submit([encoder.finish()])
            return self._land(landing, np.zeros_like(array))

        return run, read

    def stream(self, frames: list[np.ndarray], results: list[np.ndarray]) -> Callable[[], object]:
        device, nbytes = self._device, frames[0].nbytes
        slots = []
        for _ in range(_IN_FLIGHT):
            source, target = self._on_device(frames[0]), self._on_device(frames[0])
            landing = self._buffer(nbytes, _Usage.MAP_READ | _Usage.COPY_DST)
            slots.append((source, target, landing, *self._pipeline(_FRAME, [source, target])))

        def run() -> None:
            mapped: list = [None] * len(frames)

            def finish(number: int) -> None:
                mapped[number].sync_wait()
                landing, out = slots[number % _IN_FLIGHT][2], results[number]
                np.copyto(out, np.frombuffer(landing.read_mapped(copy=False), out.dtype))
                landing.unmap()

            for number, frame in enumerate(frames):
                if number >= _IN_FLIGHT:
                    finish(number - _IN_FLIGHT)
                source, target, landing, pipeline, bindings = slots[number % _IN_FLIGHT]
                device.queue.write_buffer(source, 0, frame)
                encoder = self._dispatch(pipeline, bindings, frame.size)
                encoder.copy_buffer_to_buffer(target, 0, landing, 0, nbytes)
                device.queue.submit([encoder.finish()])
                mapped[number] = landing.map_async(wgpu.MapMode.READ)
            for number in range(len(frames) - _IN_FLIGHT, len(frames)):
                finish(number)

        return run


LIBRARY = Wgpu
