"""Semaphores that several Managers and processes count with, and descriptors that stand for fences."""

from __future__ import annotations

import copy
import gc
import os
import resource
import select
import signal
import socket
import time
from functools import partial

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._sync import sharing
from tests.drivers import null_control
from tests.memory.test_views import ADD_ONE, compiled
from tests.support.child import python, run_child, start
from tests.support.threads import on_threads

pytestmark = pytest.mark.skipif(os.name != "posix", reason="file descriptors")


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def pair(mgr, other):
    one = mgr.semaphore(shared=True)
    return one, other.import_semaphore(one.share())


def test_a_semaphore_of_two_managers(mgr, make_manager):
    other = make_manager()
    one, two = pair(mgr, other)
    assert two.manager is other and two.query() == 0
    two.signal(2)
    one.wait(2, timeout=20)
    # The device of one raises it, what waits runs on the other.
    a, b = mgr.zeros(4), other.zeros(4)
    waiting = b.fill(5, wait=[(two, 3)], signal=[(two, 4)])
    assert not waiting.done()
    a.fill(1, signal=[(one, 3)])
    waiting.wait(timeout=20)
    one.wait(4, timeout=20)
    assert b.read().tolist() == [5] * 4
    # Not by the semaphore itself.
    two.at(7).signal()
    one.wait(7, timeout=20)
    with pytest.raises(kp.InvalidArgumentError, match="only goes up"):
        one.signal(7)
    # The values of both meet: what is lower than the own one is left out.
    one.signal(9)
    two.wait(9, timeout=20)


def test_its_failure_reaches_all_holders(mgr, make_manager):
    other = make_manager()
    one, two = pair(mgr, other)
    three = mgr.import_semaphore(two.share())
    three.signal(1)
    one.wait(1, timeout=20)
    held = other.zeros(4).fill(1, wait=[(two, 5)])
    one.fail("the camera\nis gone")
    with pytest.raises(kp.AbortedError, match="the camera is gone"):
        held.wait(timeout=20)
    with pytest.raises(kp.AbortedError, match="the camera is gone"):
        three.wait(2, timeout=20)
    with pytest.raises(kp.AbortedError):
        one.share()


def test_the_end_of_a_holder_fails_it(mgr, make_manager):
    one, two = pair(mgr, make_manager())
    two.signal(3)
    del two
    with pytest.raises(kp.AbortedError, match="has ended"):
        one.wait(4, timeout=20)
    one.at(3).wait(timeout=20)
    other = make_manager()
    one, _two = pair(mgr, other)
    other.destroy()
    with pytest.raises(kp.AbortedError, match="has ended"):
        one.wait(1, timeout=20)


def test_work_signals_it_after_its_last_reference(mgr, make_manager):
    one, two = pair(mgr, make_manager())
    gate = mgr.semaphore()
    mgr.zeros(4).fill(1, wait=[(gate, 1)], signal=[(one, 6)])
    del one
    gate.signal(1)
    two.wait(6, timeout=20)
    with pytest.raises(kp.AbortedError, match="has ended"):
        two.wait(7, timeout=20)


def test_a_handle_serves_one_holder(mgr, make_manager):
    one = mgr.semaphore(5, shared=True)
    handle = one.share()
    sent = copy.copy(handle)
    two = mgr.import_semaphore(sent)
    assert two.query() == 5
    until(lambda: "closed" in repr(handle))  # else the end of the other holder would not be seen
    for used in (handle, sent):
        with pytest.raises(kp.FailedPreconditionError, match=r"semaphore\.share\(\)"):
            mgr.import_semaphore(used)
    handle = one.share()
    twice = copy.copy(handle), copy.copy(handle)
    both = [mgr.import_semaphore(each) for each in twice]
    with pytest.raises(kp.AbortedError, match="used twice"):
        one.wait(6, timeout=20)
    with pytest.raises(kp.AbortedError):
        both[1].wait(6, timeout=20)


def test_what_cannot_be_shared_says_why(mgr):
    for wrong, error, text in [
        (lambda: mgr.semaphore().share(), kp.FailedPreconditionError, "shared=True"),
        (lambda: mgr.import_semaphore("3"), kp.ArgumentTypeError, "SemaphoreHandle"),
        (lambda: kp.SemaphoreHandle(3), kp.ArgumentTypeError, r"semaphore\.share\(\)"),
        (lambda: mgr.import_fence("3"), kp.ArgumentTypeError, "fd"),
        (lambda: mgr.import_fence(-1), kp.InvalidArgumentError, "-1 is not an open"),
        (lambda: mgr.import_fence(2**40), kp.InvalidArgumentError, "not an open"),
    ]:
        with pytest.raises(error, match=text):
            wrong()


def test_a_connection_that_sends_nonsense_fails_it(mgr):
    for sent, text in [(b"12 apples\n", "12 apples"), (b"9" * 20 + b"\n", "sent"), (b"1" * 5000, "a line")]:
        one = mgr.semaphore(shared=True)
        handle = one.share()
        with socket.socket(fileno=os.dup(handle.fileno())) as end:
            handle.close()
            end.sendall(sent)
            with pytest.raises(kp.AbortedError, match=text):
                one.wait(1, timeout=20)


def test_a_holder_that_does_not_read_stops_nobody(mgr):
    one = mgr.semaphore(shared=True)
    handle = one.share()
    for value in range(1, 20_001):
        one.signal(value)
    two = mgr.import_semaphore(handle)
    two.wait(20_000, timeout=20)


def test_holders_signal_in_turns_from_threads(mgr, make_manager):
    one, two = pair(mgr, make_manager())
    three = mgr.import_semaphore(one.share())
    turns = 150

    def play(given):
        semaphore, first = given
        for value in range(first, 3 * turns, 3):
            semaphore.wait(value, timeout=60)
            semaphore.signal(value + 1)

    on_threads(play, [(one, 0), (two, 1), (three, 2)])
    one.wait(3 * turns, timeout=20)


def test_nothing_is_left(mgr, make_manager):
    other = make_manager()
    before = None
    for turn in range(30):
        one, two = pair(mgr, other)
        one.signal(1)
        two.wait(1, timeout=20)
        unused = one.share()
        fd = one.at(1).export_fd()
        mgr.import_fence(fd).wait(timeout=20)
        os.close(fd)
        del one, two, unused
        gc.collect()
        if turn == 4:
            until(lambda: gc.collect() is not None and kp.alive(detail=True)["semaphore"] == 0)
            before = descriptors()
    until(
        lambda: (
            gc.collect() is not None and kp.alive(detail=True)["semaphore"] == 0 and descriptors() <= before
        )
    )


# -- processes -------------------------------------------------------------------------------------------


def add_ones(connection, handle, where):
    mgr = kp.Manager()
    semaphore = mgr.import_semaphore(handle if handle is not None else connection.recv())
    frame = mgr.import_memory(connection.recv()) if where else mgr.zeros(8, np.uint32)
    add = mgr.kernel(compiled(ADD_ONE))
    turns = connection.recv()
    for turn in range(turns):
        add.submit(frame, wait=[(semaphore, 2 * turn + 1)], signal=[(semaphore, 2 * turn + 2)])
    semaphore.wait(2 * turns, timeout=60)
    connection.send(kp.alive(detail=True, manager=mgr)["semaphore"])
    connection.recv()


@pytest.mark.capability(
    "W12", "two programs take turns on one memory", "Manager.import_semaphore", "reference/tensor_rules"
)
def test_two_processes_take_turns_on_one_memory(mgr):
    try:
        frame = mgr.shared(1 << 10, np.uint32)
    except kp.UnimplementedError:
        frame = None
    semaphore = mgr.semaphore(shared=True)
    process, peer = start(add_ones, semaphore.share(), frame is not None)
    if frame is not None:
        peer.send(frame.share())
    peer.send(6)
    for turn in range(6):
        if frame is None:
            semaphore.signal(2 * turn + 1)
        else:
            frame.fill(10 * turn, signal=[(semaphore, 2 * turn + 1)])
        semaphore.wait(2 * turn + 2, timeout=60)
        assert frame is None or set(frame.read().tolist()) == {10 * turn + 1}
    assert peer.recv() == 1
    peer.send("end")
    process.join()
    assert process.exitcode == 0
    peer.close()


def test_the_other_process_is_killed(mgr):
    semaphore = mgr.semaphore(shared=True)
    process, peer = start(add_ones, None, False)
    handle = semaphore.share()
    peer.send(handle)
    peer.send(4)
    semaphore.signal(1)
    semaphore.wait(2, timeout=60)
    held = mgr.zeros(4).fill(1, wait=[(semaphore, 8)])
    left = descriptors()
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(kp.AbortedError, match="has ended"):
        held.wait(timeout=20)
    with pytest.raises(kp.AbortedError, match="has ended"):
        semaphore.signal(3)
    process.join()
    peer.close()
    assert descriptors() < left
    mgr.zeros(4).fill(2).wait(timeout=20)
    del semaphore, held, handle
    until(lambda: gc.collect() is not None and kp.alive(detail=True)["semaphore"] == 0)


def test_a_forked_child_keeps_no_connection_open(mgr, make_manager):
    one, two = pair(mgr, make_manager())
    child = os.fork()
    if child == 0:
        try:
            time.sleep(30)
        finally:
            os._exit(0)
    try:
        del two
        with pytest.raises(kp.AbortedError, match="has ended"):
            one.wait(1, timeout=20)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# -- descriptors for fences ------------------------------------------------------------------------------


def readable(fd, seconds=0.0):
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return dict(poll.poll(seconds * 1000)).get(fd, 0)


@pytest.mark.capability(
    "I46",
    "semaphores and fences of other Managers and processes",
    "Manager.import_semaphore, Fence.export_fd, Manager.import_fence",
    "reference/tensor_rules",
)
def test_a_fence_as_a_descriptor(mgr, make_manager):
    other = make_manager()
    gate = mgr.semaphore()
    fd = mgr.zeros(4).fill(1, wait=[(gate, 1)]).export_fd()
    b = other.zeros(4)
    waiting = b.fill(3, wait=other.import_fence(fd))
    assert readable(fd) == 0 and not waiting.done()
    gate.signal(1)
    waiting.wait(timeout=20)
    assert readable(fd, 20) & select.POLLIN and b.read().tolist() == [3] * 4
    assert other.import_fence(fd).wait(timeout=20).done()  # as often as anybody likes
    os.close(fd)
    failing = mgr.semaphore()
    fd = failing.at(1).export_fd()
    late = other.import_fence(fd)
    failing.fail("no more")
    assert readable(fd, 20) == select.POLLHUP
    with pytest.raises(kp.AbortedError, match="closed at its other end"):
        late.wait(timeout=20)
    os.close(fd)


def test_descriptors_of_others_are_waited_for(mgr):
    here, there = socket.socketpair()
    with here, there:
        fence = mgr.import_fence(here)
        assert not fence.done()
        there.send(b"x")
        fence.wait(timeout=20)
        assert here.recv(1) == b"x"  # nothing was read
    if hasattr(os, "eventfd"):
        event = os.eventfd(0)
        t = mgr.zeros(4)
        work = t.fill(2, wait=[mgr.import_fence(event)])
        os.eventfd_write(event, 1)
        work.wait(timeout=20)
        assert t.read().tolist() == [2] * 4 and os.eventfd_read(event) == 1
        os.close(event)


def test_a_connection_that_ends_is_not_a_signal(mgr):
    """poll() calls the end of a socket readable."""
    for say in (b"", b"x"):
        here, there = socket.socketpair()
        t = mgr.zeros(4)
        work = t.fill(7, wait=mgr.import_fence(here))
        there.send(say)
        there.close()
        if say:
            work.wait(timeout=20)  # it had been said before the end
        else:
            with pytest.raises(kp.errors.AbortedError, match="closed at its other end"):
                work.wait(timeout=20)
        assert t.read().tolist() == [7.0 if say else 0.0] * 4
        here.close()


def test_nobody_reads_an_exported_fence(tmp_path):
    """Neither an error, a signal that ends the process, nor a descriptor is left."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, signal\nimport kompute_py as kp\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
        "mgr = kp.Manager()\nsem = mgr.semaphore()\n"
        "before = len(os.listdir('/dev/fd'))\n"
        "for value in range(1, 4):\n"
        "    os.close(mgr.zeros(64).fill(1, wait=(sem, value)).export_fd())\n"
        "    sem.signal(value)\n    mgr.synchronize()\n"
        "mgr.destroy()\nprint(len(os.listdir('/dev/fd')) - before)\n"
    )
    ended = python(script, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "") and int(ended.stdout) <= 0


def test_a_forked_child_does_not_hold_an_exported_fence(mgr):
    sem = mgr.semaphore()
    fd = sem.at(1).export_fd()
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        sem.fail("no more")
        look = select.poll()
        look.register(fd, select.POLLIN)
        assert [events & select.POLLIN for _, events in look.poll(20_000)] == [0]  # closed, not readable
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(fd)


def test_descriptors_run_out(mgr):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    here, there = socket.socketpair()
    with here, there:
        resource.setrlimit(resource.RLIMIT_NOFILE, (there.fileno() + 1, hard))
        try:
            with pytest.raises(kp.OutOfMemoryError, match="No file descriptor is left"):
                for _ in range(1000):
                    mgr.import_fence(here)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_fences_of_descriptors_that_nobody_has_let_go_of_them(mgr):
    here, there = socket.socketpair()
    with here, there:
        fence = mgr.import_fence(here)
        before = descriptors()
        for _ in range(20):
            mgr.import_fence(here)
        until(lambda: descriptors() <= before)
        t = mgr.zeros(4)
        t.fill(3, wait=mgr.import_fence(here))  # the work has it
        joined = kp.Fence.join(mgr.import_fence(here), fence)
        for _ in range(3):
            mgr.import_fence(here)
        until(lambda: descriptors() == before + 2)
        assert not joined.done()
        there.send(b"1")
        joined.wait(timeout=20)
        assert t.tolist() == [3] * 4
        until(lambda: descriptors() < before)


def test_fences_of_descriptors_end_with_their_manager(make_manager, monkeypatch):
    mgr = make_manager()
    before = descriptors()
    here, there = socket.socketpair()
    fence = mgr.import_fence(here)
    looks, look = [], sharing._reader._waits
    monkeypatch.setattr(sharing._reader, "_waits", lambda: looks.append(time.monotonic()) or look())
    time.sleep(1.2)
    assert len(looks) < 2  # the thread sleeps until it is woken
    mgr.destroy()
    until(lambda: descriptors() <= before + 2)  # those of the pair
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        fence.wait()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        mgr.import_fence(here)
    here.close()
    there.close()
    until(lambda: descriptors() <= before)


def test_a_program_that_ends_with_connections_ends_at_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os, socket\nimport kompute_py as kp\nmgr = kp.Manager()\n"
        "one = mgr.semaphore(shared=True)\ntwo = mgr.import_semaphore(one.share())\n"
        "fence = mgr.import_fence(socket.socketpair()[0])\n"
        "one.signal(1)\ntwo.wait(1)\nprint(two.query())\n"
    )
    ended = python(script, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1\n", "")


def by_descriptor() -> dict[str, object]:
    control = null_control()
    before = descriptors()
    import vulkan as vk

    with kp.Manager() as mgr, kp.Manager() as other:
        one = mgr.semaphore(3, shared=True)
        fd = one.export_fd()
        same, two = mgr.import_semaphore(fd), other.import_semaphore(fd)
        os.close(fd)
        values = [same.query(), two.query()]
        # Of a device, for a device: work is held until the other has signalled.
        a, b = mgr.zeros(4), other.zeros(4)
        held = b.fill(5, wait=[(two, 7)], signal=[(two, 8)])
        early = held.done()
        a.fill(1, wait=[(same, 4)], signal=[(one, 7)])
        one.signal(4)
        held.wait(timeout=20)
        one.wait(8, timeout=20)
        values += [one.query(), same.query(), b.read().tolist()]
        # As another program does it, by the handle.
        info = vk.VkSemaphoreSignalInfo(semaphore=vk.ffi.cast("VkSemaphore", same.vk_semaphore), value=12)
        vk.vkSignalSemaphore(vk.ffi.cast("VkDevice", mgr.vk_device), info)
        told = []
        for call in (partial(one.signal, 10), partial(a.fill, 1, signal=[(one, 12)])):
            try:
                call()
            except kp.InvalidArgumentError as error:
                told.append("only goes up" in str(error))
        two.wait(12, timeout=20)
        again = two.export_fd()
        values.append(other.import_semaphore(again).query())
        os.close(again)
        one.fail("no more")  # of this holder alone
        values.append(two.query())
        with open(os.devnull) as file:
            for call in (
                lambda: mgr.import_semaphore(file.fileno()),
                lambda: mgr.import_semaphore(10**6),
                lambda: mgr.import_semaphore("fd"),
                lambda: mgr.semaphore().export_fd(),
            ):
                try:
                    call()
                except kp.KomputeError as error:
                    told.append(f"{type(error).__name__}: {error}")
        del one, same, two, held
        gc.collect()
    return {
        "values": values, "early": early, "told": told, "violations": control.violations(),
        "left": descriptors() - before,
    }  # fmt: skip


@pytest.mark.own_driver
@pytest.mark.capability(
    "",
    "timeline semaphores of CUDA, HIP and other users of the device, by opaque descriptors",
    "Semaphore.export_fd, Manager.import_semaphore",
    "guides/neighbours",
)
def test_opaque_descriptors_of_semaphores():
    found = run_child(by_descriptor, driver="null", config="profile=geforce")
    assert found["values"] == [3, 3, 8, 8, [5, 5, 5, 5], 12, 12] and not found["early"]
    late, at, driver, closed, kind, plain = found["told"]
    assert late and at
    assert driver.startswith("InvalidArgumentError: The driver does not know this file descriptor")
    assert closed.startswith("InvalidArgumentError: 1000000 is not an open file descriptor")
    assert kind.startswith("ArgumentTypeError: import_semaphore takes a kp.SemaphoreHandle")
    assert plain.startswith("FailedPreconditionError") and "shared=True" in plain
    assert found["violations"] == [] and found["left"] <= 2  # the pipe of the thread that reads connections


def test_a_device_has_descriptors_of_semaphores_or_says_so(mgr):
    one = mgr.semaphore(shared=True)
    try:
        fd = one.export_fd()
    except kp.UnimplementedError as error:
        assert "VK_KHR_external_semaphore_fd" in str(error) and "share()" in str(error)
        with open(os.devnull) as file, pytest.raises(kp.UnimplementedError, match="VK_KHR_external"):
            mgr.import_semaphore(file.fileno())
    else:
        same = mgr.import_semaphore(fd)
        os.close(fd)
        one.signal(2)
        assert same.wait(2, timeout=20).query() == 2
