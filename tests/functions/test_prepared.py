"""Calls of functions that the native table runs without Python, and those that it must leave to Python."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kompute_py as kp


@kp.CustomOp.register
class scaled(kp.CustomOp):
    """`x` times `factor`, and plus `offset`, which decides what is generated."""

    signature = "scaled(Tensor x, float factor=2.0, int offset=0) -> Tensor"

    def select(self, ksel):
        x = ksel.arg_tensor("x")
        ksel.arg_float("factor")
        ksel.attr_int("offset")
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel, kb):
        kb.yield_results(f"x_load(i) * factor + {ksel.attribute('offset')}")


def in_table(op, *args, **named):
    """What the table of prepared calls makes of a call; NotImplemented if it does not know it."""
    return op._prepared.current.table.call(args, named)


def numbers(mgr, first, count=6):
    return mgr.tensor_t(np.arange(first, first + count, dtype=np.float32))


def test_calls_of_these_shapes_need_no_python(mgr):
    x, out = numbers(mgr, 0), mgr.zeros(6)
    scaled(x, 3.0), scaled(x, 3.0, 1), scaled(x, out=out)
    for first in range(4):  # other tensors, numbers, and ways to give them
        y = numbers(mgr, first)
        expected = np.arange(first, first + 6, dtype=np.float32)
        np.testing.assert_array_equal(in_table(scaled, y, 1.5 + first), expected * (1.5 + first))
        np.testing.assert_array_equal(in_table(scaled, offset=1, x=y, factor=4.0), expected * 4 + 1)
        np.testing.assert_array_equal(in_table(scaled, y), expected * 2)
        assert in_table(scaled, y, out=out) is out
        np.testing.assert_array_equal(out, expected * 2)
        other = mgr.zeros(6)
        assert in_table(scaled, y, -1.0, out=(other,)) is other
        np.testing.assert_array_equal(other, -expected)
    assert in_table(scaled, x, 3.0, 2) is NotImplemented  # another kernel
    np.testing.assert_array_equal(scaled(x, 3.0, 2), np.arange(6) * 3 + 2)


def test_submitted_calls_of_these_shapes(mgr):
    x, out = numbers(mgr, 0), mgr.zeros(6)
    scaled(x, out=out)
    table, semaphore = scaled._prepared.current.table, kp.Semaphore(mgr)
    for n in range(1, 4):
        assert table.submit((numbers(mgr, n), 1.0 * n), {"out": mgr.zeros(6)}) is not NotImplemented
        fence = scaled.submit(x, 1.0 * n, out=out, wait=semaphore.at(n), signal=(semaphore, n + 10))
        assert not fence.done()
        semaphore.signal(n)
        fence.wait()
        np.testing.assert_array_equal(out, np.arange(6) * n)
        semaphore = kp.Semaphore(mgr)
    for submit in (lambda: table.submit((x,), {})[1], lambda: scaled.submit(x).results):
        (new,) = submit()
        np.testing.assert_array_equal(new, np.arange(6) * 2)


def test_what_is_left_to_python(mgr):
    whole, out = numbers(mgr, 0, 12), mgr.zeros(6)
    x = numbers(mgr, 0)
    scaled(x, out=out), scaled(x), scaled(whole[:6], out=out)
    left = {
        "an array": ((np.arange(6, dtype=np.float32),), {}),
        "a part with steps": ((whole[::2],), {}),
        "an int for a float": ((x, 2), {}),
        "a bool for an int": ((x, 2.0, True), {}),
        "memory twice": ((out,), {"out": out}),
        "parts of one memory": ((whole[:6],), {"out": whole[6:]}),
        "an unknown name": ((x,), {"scale": 2.0}),
        "a name twice": ((x, 2.0), {"factor": 2.0}),
        "too many": ((x, 2.0, 0, 1), {}),
        "a donation": ((x,), {"donate": "x"}),
        "an array of results": ((x,), {"out": np.zeros(6, np.float32)}),
        "another dtype": ((mgr.zeros(6, np.int32),), {}),
        "nothing": ((), {}),
    }
    for what, (args, named) in left.items():
        assert in_table(scaled, *args, **named) is NotImplemented, what
    gone = numbers(mgr, 0)
    gone.destroy()
    for args, named in (((gone,), {}), ((x,), {"out": gone})):
        assert in_table(scaled, *args, **named) is NotImplemented
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            scaled(*args, **named)


def test_overlapping_memory_is_right_after_the_same_shapes_apart(mgr):
    """The form for memory that is apart must not serve what overlaps."""
    values = np.arange(12, dtype=np.float32)
    for _ in range(3):
        t = mgr.tensor_t(values)
        kp.ops.flip(numbers(mgr, 0), out=mgr.zeros(6))
        kp.ops.flip(t[:6], out=mgr.zeros(6))
        kp.ops.flip(t[0:6], out=t[3:9])
        np.testing.assert_array_equal(t.read()[3:9], values[5::-1])
        same = numbers(mgr, 0)
        assert kp.ops.flip(same, out=same) is same
        np.testing.assert_array_equal(same, values[5::-1])


def test_numbers_that_do_not_fit_go_the_longer_way(mgr):
    op = kp.ops.elementwise("x + n")
    x = mgr.tensor_t(np.array([1, 2], np.int32))
    for n in (1, 5, 2**40, -1, 2.5):
        for _ in range(2):
            if n == 2**40:
                with pytest.raises(kp.errors.NumberRangeError, match="out of bounds for int32"):
                    op(x, n)
                continue
            assert op(x, n).dtype in ((np.float64, np.float32) if n == 2.5 else (np.int32,))
            np.testing.assert_allclose(op(x, n), np.array([1, 2]) + n)


def test_tensors_of_another_manager(mgr):
    with kp.Manager(pipeline_cache_dir="") as other:
        x, y = numbers(mgr, 0), numbers(other, 0)
        for _ in range(3):  # each in turn
            np.testing.assert_array_equal(scaled(x), np.arange(6) * 2)
            assert in_table(scaled, y) is NotImplemented
            assert scaled(y).manager is other
            with pytest.raises(kp.InvalidArgumentError, match="two Managers"):
                scaled(x, out=y)
    assert scaled(x).manager is mgr


def test_threads_with_one_line(mgr):
    """The very same call from several threads, and others beside it."""
    x, out = numbers(mgr, 0, 1000), mgr.zeros(1000)
    expected = np.arange(1000, dtype=np.float32)
    for _ in range(3):
        scaled(x, out=out)
    wrong = []

    def work(seed):
        own = mgr.zeros(1000)
        for n in range(60):
            assert scaled(x, out=out) is out
            factor = 1.0 * seed + n
            if not np.array_equal(scaled(x, factor, out=own), expected * factor):
                wrong.append((seed, n))
            if not np.array_equal(scaled(x, factor), expected * factor):
                wrong.append((seed, n, "new"))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    np.testing.assert_array_equal(out, expected * 2)


def test_forms_end_with_their_room(mgr):
    op = kp.ops.elementwise("x * 3")
    x, out = numbers(mgr, 0), mgr.zeros(6)
    for _ in range(3):
        op(x, out=out)
    table = op._prepared.current.table
    assert len(table) == 1 and table.forms == 1
    table.drop_a_form()
    assert len(table) == table.forms == 0
    np.testing.assert_array_equal(op(x, out=out), np.arange(6) * 3)
