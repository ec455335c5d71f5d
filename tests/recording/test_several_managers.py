"""Several Managers in a process: instances that they share, messages that they do not."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child
from tests.support.operations import Breaks

TWO = "lavapipe+swiftshader"
# The layer repeats itself ten times at most for each instance; Managers with another list of layers have an
# instance of their own.
FRESH = {"validation": True, "debug_layers": ["VK_LAYER_KHRONOS_validation"]}


@pytest.mark.capability(
    "W15", "Managers share the instance and the drivers that they load", "kp.Manager", "concepts/devices"
)
def test_managers_of_one_kind_share_an_instance(make_manager):
    first, second, plain = make_manager(), make_manager(), make_manager(validation=False)
    assert first.vk_instance == second.vk_instance != plain.vk_instance
    assert first.vk_device != second.vk_device
    first.destroy()
    tensor = second.tensor([1, 2, 3])
    second.sequence().record(kp.OpSyncDevice([tensor])).eval()
    assert tensor.read().tolist() == [1, 2, 3]


def test_strict_raises_its_own_messages_only(messages):
    pytest.importorskip("vulkan")
    strict, lax = kp.Manager(**FRESH, strict=True), kp.Manager(**FRESH)
    with strict, lax:
        assert strict.vk_instance == lax.vk_instance
        good = strict.sequence().record(kp.OpFill([strict.zeros(16)], 1))
        bad = lax.sequence().record(Breaks(lax.zeros(16)))
        lax._native.drain_messages()
        bad._native.eval()  # nobody has looked at lax's messages
        good.eval()  # would raise here
        assert messages == []
        lax.synchronize()
        assert any("vkCmdFillBuffer" in text for text in messages)
        with pytest.raises(kp.ValidationError, match="vkCmdFillBuffer"):
            strict.sequence().record(Breaks(strict.zeros(16))).eval()
        before = len(messages)
        lax.synchronize()
        assert len(messages) == before


def test_messages_of_threads_go_to_their_managers(messages):
    pytest.importorskip("vulkan")
    strict, lax = kp.Manager(**FRESH, strict=True), kp.Manager(**FRESH)
    errors = []
    with strict, lax:

        def work():
            try:
                tensor = strict.zeros(64)
                sequence = strict.sequence().record(kp.OpFill([tensor], 1))
                for _ in range(200):
                    sequence.eval()
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        tensor = lax.zeros(16)
        for _ in range(8):
            lax.sequence().record(Breaks(tensor)).eval()
            lax.synchronize()
        thread.join()
    assert errors == []
    assert len([text for text in messages if "vkCmdFillBuffer" in text]) >= 8


def test_what_a_destroyed_manager_left_is_logged_and_not_raised(messages):
    pytest.importorskip("vulkan")
    strict = kp.Manager(**FRESH, strict=True)
    with strict:
        other = kp.Manager(**FRESH)
        sequence = other.sequence().record(Breaks(other.zeros(16)))
        sequence._native.eval()  # the message stays unread
        other._native.destroy()
        del sequence, other
        strict.synchronize()
    assert any("vkCmdFillBuffer" in text for text in messages)


def test_objects_of_another_manager_are_refused_with_the_way_out(make_manager):
    here, there = make_manager(), make_manager()
    own, foreign = here.tensor([1, 2]), there.tensor([1, 2])
    shader = kp.compile(
        "#version 450\nlayout(local_size_x=1) in;\nlayout(binding=0) buffer A {float a[];};\n"
        "layout(binding=1) buffer B {float b[];};\nvoid main() { a[0] = b[0]; }"
    )
    for attempt in (
        lambda: here.sequence().record(kp.OpSyncDevice([foreign])),
        lambda: kp.OpSyncLocal([own, foreign]),
        lambda: here.algorithm([own, foreign], shader),
        lambda: kp.OpFill([own, foreign], 1),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=r"\.to\(mgr\)"):
            attempt()
    with pytest.raises(kp.InvalidArgumentError, match="record it into a sequence of one of their Managers"):
        here.sequence().record(kp.OpCopy([foreign, make_manager().tensor([1, 2])]))


@pytest.mark.capability("S58", "several Managers on one device", "kp.Manager", "guides/several_devices")
def test_many_managers_on_one_device(make_manager):
    managers = [make_manager() for _ in range(5)]
    tensors = [manager.tensor(np.arange(100) * n) for n, manager in enumerate(managers)]
    for manager, tensor in zip(managers, tensors, strict=True):
        manager.sequence().record(kp.OpSyncDevice([tensor])).eval_async()
    for n, tensor in enumerate(tensors):
        assert np.array_equal(tensor.read(), np.arange(100, dtype=np.float32) * n)
    for manager in managers[::2]:
        manager.destroy()
    for n in (1, 3):
        assert tensors[n].read()[2] == 2 * n
        assert not tensors[n + 1].is_init()


def check_two_drivers():
    found = []
    import logging

    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())
    logging.getLogger("kompute_py").addHandler(handler)
    with (
        kp.Manager("lavapipe", validation=True) as lavapipe,
        kp.Manager("swiftshader", validation=True, strict=True) as swiftshader,
    ):
        assert lavapipe.vk_instance == swiftshader.vk_instance
        kernel = (
            "#version 450\n"
            "layout(local_size_x=64) in;\n"
            "layout(binding=0) buffer A {float a[];};\n"
            "void main() { a[gl_GlobalInvocationID.x] += 1.0; }"
        )
        kernels = {manager: manager.kernel(kernel) for manager in (lavapipe, swiftshader)}
        tensors = {manager: manager.zeros(640) for manager in kernels}
        for _ in range(3):
            for manager, run in kernels.items():
                run(tensors[manager], grid=640)
        for tensor in tensors.values():
            assert np.array_equal(tensor.read(), np.full(640, 3, np.float32))
        assert found == []
        bad = lavapipe.sequence().record(Breaks(lavapipe.zeros(16)))
        bad._native.eval()
        swiftshader.synchronize()
        assert found == []
        lavapipe.synchronize()
        assert any("vkCmdFillBuffer" in text for text in found)
    return len(found)


def test_two_drivers_in_one_process():
    pytest.importorskip("vulkan")
    assert run_child(check_two_drivers, driver=TWO, layer="newer") >= 1
