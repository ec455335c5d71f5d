"""`debug="wait"`: each call that submits work waits until it is done, and raises its errors."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

ADD = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += 1; }"""


def ways(mgr: kp.Manager) -> dict[str, Any]:
    """What submits work and does not wait, each with what tells whether it has ended."""
    x, y = mgr.zeros(64, dtype=np.float32), mgr.zeros(64, dtype=np.float32)
    kernel = mgr.kernel(ADD)
    sequence = mgr.sequence().record(kernel.bind(x))
    program = kp.Program.record({"add": kernel}).on(mgr)
    other = mgr.sequence().record(kp.OpCopy([x, y]))
    return {
        "kernel.submit": lambda: kernel.submit(x), "sequence.eval_async": lambda: sequence.eval_async().fence,
        "mgr.submit": lambda: mgr.submit([other]), "function.submit": lambda: kp.ops.add.submit(x, y),
        "program.submit": lambda: program.add.submit(x), "fill": lambda: y.fill(2.0),
        "copy_from": lambda: y.copy_from(x),
    }  # fmt: skip


def ends(wait: bool) -> dict[str, bool]:
    """Each submission takes 20 ms on the null driver."""
    with kp.Manager(debug="wait" if wait else "") as mgr:
        found = {}
        for name, call in ways(mgr).items():
            call().wait()  # built, and everything before it has ended
            fence = call()
            found[name] = fence.done()
            fence.wait()
    return found


@pytest.mark.own_driver
@pytest.mark.capability("W10", "a switch that makes all submissions wait", "kp.Manager", "guides/debugging")
@pytest.mark.parametrize("wait", [False, True])
def test_submissions_have_ended(wait):
    found = run_child(ends, wait, driver="null", config="gpu_us=20000")
    assert set(found.values()) == {wait}, found


def lost() -> dict[str, str]:
    """The device is lost by the work, which a fence tells at its wait: with the word, the call itself."""
    told = {}
    for word in ("", "wait"):
        with kp.Manager(debug=word) as mgr:
            x = mgr.zeros(64, dtype=np.float32)
            kernel = mgr.kernel(ADD)
            kernel.submit(x).wait()
            told[word or "none"] = submitted(kernel, x)
    return told


def submitted(kernel: kp.Kernel, x: kp.Tensor) -> str:
    timer = threading.Timer(0.05, null_control().lose_device)
    timer.start()
    try:
        kernel.submit(x)
        return "submitted"
    except kp.DeviceLostError:
        return "raised"
    finally:
        timer.join()


@pytest.mark.own_driver
def test_an_error_shows_at_its_line():
    assert run_child(lost, driver="null", config="gpu_us=300000") == {"none": "submitted", "wait": "raised"}


def test_work_that_waits_for_the_host_is_not_waited_for(make_manager):
    """It has not been submitted, and only a later line lets it begin."""
    mgr = make_manager(debug="wait")
    x = mgr.zeros(64, dtype=np.float32)
    semaphore = mgr.semaphore()
    fence = mgr.kernel(ADD).submit(x, wait=[(semaphore, 1)])
    assert not fence.done()
    semaphore.signal(1)
    fence.wait()
    assert (x.read() == 1).all()


def test_streams_wait_too(make_manager):
    mgr = make_manager(debug="wait")
    x = mgr.zeros(64, dtype=np.float32)
    sequence = mgr.sequence().record(mgr.kernel(ADD).bind(x))
    frames = [np.full(64, i, np.float32) for i in range(5)]
    got = [each[0] for each in sequence.stream(frames, inputs=[x], outputs=[x])]
    assert got == [1, 2, 3, 4, 5]
