# pyright: strict
"""Recording, evaluating and streaming."""

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from typing_extensions import assert_type

import kompute_py as kp
from kompute_py.typing import Array

mgr = kp.manager()
a, b, c = mgr.zeros(3), mgr.zeros(3), mgr.zeros(3)
seq = mgr.sequence(timestamps=True)
assert_type(
    seq.record(kp.OpSyncDevice([a])).record(kp.OpMult([a, b, c]), kp.OpSyncLocal([c])).eval(), kp.Sequence
)
seq.record(a)  # error
seq.record(kp.OpSyncDevice([np.zeros(3)]))  # error
kp.OpSyncDevice(a)  # error
assert_type(seq.eval_async().eval_await(), kp.Sequence)
assert_type(seq.timings(), list[tuple[str, float]])
assert_type(mgr.submit([seq]), kp.Fence)
mgr.submit(seq, wait=seq, signal=(mgr.semaphore(), 1))
mgr.submit(seq, signal=mgr.semaphore())  # error

frames = [np.zeros(3, np.float32)]
for one in seq.stream(frames, inputs=a, outputs=c):
    assert_type(one, Array)
for one in seq.stream(frames, inputs=[a], outputs=(c,)):
    assert_type(one, Array)
for two in seq.stream(zip(frames, frames), inputs=[a, b], outputs=(b, c)):
    assert_type(two, tuple[Array, Array])
for three in seq.stream(frames, inputs=[a], outputs=(a, b, c)):
    assert_type(three, tuple[Array, Array, Array])
for some in seq.stream(frames, inputs=[a], outputs=[c]):
    assert_type(some, Any)
seq.stream(frames, inputs=[a], output=[c])  # error
seq.stream(frames, inputs=3, outputs=[c])  # error
seq.stream(3, inputs=[a], outputs=[c])  # error


async def run(camera: AsyncIterator[Array]) -> None:
    async for one in seq.stream(camera, inputs=a, outputs=c):
        assert_type(one, Array)
    assert_type(await seq.eval_async(), kp.Sequence)
    assert_type(await seq.fence, kp.Fence)


class Custom(kp.OpBase):
    def record(self, cmd: kp.CommandRecorder) -> None:
        assert_type(cmd.vk_command_buffer, int)


seq.record(Custom())
seq.record(Custom)  # error

# Calls that wait for the device take both options, too.
pair = (mgr.semaphore(), 1)
seq.eval(wait=seq, signal=pair)
mgr.zeros(3).read(wait=[pair], signal=[pair])
mgr.zeros(3)[::2].write([1.0, 2.0], wait=pair)
kp.random.Generator(1).normal(size=3, wait=pair, signal=pair)
kp.ops.unique(mgr.zeros(3), wait=pair)
seq.eval(wait=1)  # error
kp.random.Generator(1).random(3, signal=1)  # error
kp.ops.unique(mgr.zeros(3), waits=pair)  # error
