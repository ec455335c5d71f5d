"""Memory that several Managers and processes use, by file descriptors."""

from __future__ import annotations

import copy
import os
import signal

import numpy as np
import pytest

import kompute_py as kp
from tests.memory.test_views import ADD_ONE, compiled
from tests.support.child import start


@pytest.fixture
def sharing(mgr):
    try:
        mgr.shared(1)
    except kp.UnimplementedError as error:
        pytest.skip(str(error))
    return mgr


def descriptors():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.capability(
    "P33",
    "memory by file descriptor, for other Managers and processes",
    "Manager.shared, Tensor.share, Manager.import_memory",
    "reference/tensor_rules",
)
@pytest.mark.parametrize("where", ["storage", "host", "deviceAndHost"])
def test_memory_between_managers(sharing, make_manager, where):
    other = make_manager()
    t = sharing.shared((3, 4), np.uint32, where)
    assert t.read().tolist() == np.zeros((3, 4)).tolist() and t.memory_type().name == where and t.is_shared
    with t.share() as handle:
        assert handle.shape == (3, 4) and handle.dtype == np.uint32 and handle.nbytes == 48
        assert handle.allocation_size >= 48 and handle.memory_type_index >= 0
        same = other.import_memory(handle)
    assert same.shape == (3, 4) and same.dtype == np.uint32 and same.memory_type() is t.memory_type()
    t.write(np.arange(12))
    assert same.read().tolist() == np.arange(12).reshape(3, 4).tolist()
    other.kernel(compiled(ADD_ONE))(same.reshape(-1))
    assert t.read().ravel().tolist() == list(range(1, 13))
    t.destroy()
    assert same.read().ravel().tolist() == list(range(1, 13))
    again = sharing.import_memory(same.share(), "storage")  # given on by who imported it
    assert again.read().ravel().tolist() == list(range(1, 13))


def test_tensors_of_one_manager_over_it_are_ordered_like_one(sharing):
    add = sharing.kernel(compiled(ADD_ONE))
    t = sharing.shared(1 << 16, np.uint32, "storage")
    for _ in range(20):
        add.submit(sharing.import_memory(t.share()))  # dropped while it runs
    same = sharing.import_memory(t.share())
    assert set(same.read().tolist()) == {20}
    recorded = sharing.sequence().record(add.bind(t), add.bind(same), add.bind(t))
    recorded.eval()
    assert set(t.read().tolist()) == {23}
    view = sharing.from_host(same.data()) if same.memory_type().name != "storage" else same
    assert set(view.read().tolist()) == {23}


def test_what_cannot_be_shared_says_why(sharing, make_manager):
    t = sharing.shared(4)
    for wrong, error, text in [
        (lambda: sharing.zeros(4).share(), kp.FailedPreconditionError, "mgr.shared"),
        (lambda: t[1:].share(), kp.FailedPreconditionError, "share it whole"),
        (lambda: sharing.shared(4, memory_type="device"), kp.InvalidArgumentError, "no host copy"),
        (lambda: sharing.import_memory(t.share(), "device"), kp.InvalidArgumentError, "no host copy"),
        (lambda: sharing.shared((2, 0)), kp.InvalidArgumentError, "no elements"),
        (lambda: sharing.import_memory(3), kp.ArgumentTypeError, "MemoryHandle"),
        (lambda: t.freeze(), kp.FailedPreconditionError, "imported or exported"),
    ]:
        with pytest.raises(error, match=text):
            wrong()
    handle = t.share()
    handle.close()
    handle.close()
    with pytest.raises(kp.FailedPreconditionError, match="closed"):
        sharing.import_memory(handle)
    elsewhere = t.share()
    elsewhere._device = ("0" * 32, "0" * 32)
    with pytest.raises(kp.InvalidArgumentError, match="another device or driver"):
        sharing.import_memory(elsewhere)
    t.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        t.share()
    limited = make_manager(memory_limit="64 MiB")
    with pytest.raises(kp.OutOfMemoryError, match="memory_limit"):
        limited.shared(32 << 20)


def test_nothing_grows(sharing, make_manager):
    other = make_manager(validation=False)
    before = None
    for turn in range(60):
        t = sharing.shared(1 << 16)
        copied = copy.copy(t.share())
        other.import_memory(copied).write(np.ones(1 << 16))
        assert t.read()[-1] == 1
        del t, copied
        sharing.synchronize()
        other.synchronize()
        if turn == 30:  # drivers open some of their own in the first turns
            before = descriptors(), kp.alive()
    count, alive = before
    # The driver's threads open and close some meanwhile; a leak would leave thirty.
    assert descriptors() < count + 10 and kp.alive() == alive


def add_ones(connection):
    mgr = kp.Manager()
    frame = mgr.import_memory(connection.recv())
    add = mgr.kernel(compiled(ADD_ONE))
    while connection.recv():
        add(frame)
        connection.send(kp.alive(detail=True, manager=mgr)["buffer"])


def test_two_processes_and_the_end_of_one(sharing):
    t = sharing.shared(1 << 12, np.uint32)
    process, peer = start(add_ones)
    peer.send(t.share())
    for turn in range(1, 4):
        peer.send(True)
        assert peer.recv() == 1
        assert set(t.read().tolist()) == {turn}
    left = descriptors()
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises((EOFError, ConnectionResetError)):
        peer.recv()
    process.join()
    peer.close()
    assert descriptors() <= left
    assert set(t.read().tolist()) == {3}
    t.fill(7).wait()
    assert set(t.read().tolist()) == {7}


def consume(connection, turns):
    mgr = kp.Manager()
    frames = [mgr.import_memory(handle) for handle in connection.recv()]
    connection.send(True)
    for turn in range(turns):
        connection.recv()
        connection.send(float(frames[turn % 2][-1:].read()[0]))


def test_frames_of_two_processes(sharing):
    turns = 12
    frames = [sharing.shared(1 << 20) for _ in range(2)]
    source = np.random.default_rng(1).random(1 << 20, np.float32)
    process, peer = start(consume, turns)
    peer.send([frame.share() for frame in frames])
    peer.recv()
    for turn in range(turns):
        source[-1] = turn
        frames[turn % 2].write(source)
        peer.send(turn)
        assert peer.recv() == turn
    process.join()
    peer.close()
    assert process.exitcode == 0


def test_handles_are_made_by_tensors():
    for given in ((), (3,), (3, (2,), np.float32, "storage", 0, None)):
        with pytest.raises(kp.ArgumentTypeError, match=r"t\.share\(\)"):
            kp.MemoryHandle(*given)
