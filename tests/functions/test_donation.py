"""Donated tensors: whose memory a result gets, and what is refused."""

from __future__ import annotations

import collections
import sys
import threading

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.usefixtures("current")


@kp.CustomOp.register
class axpy(kp.CustomOp):
    signature = "axpy(Tensor x, Tensor y, float a=2.0) -> Tensor"

    def select(self, ksel):
        x, _ = ksel.arg_tensor("x"), ksel.arg_tensor("y")
        ksel.arg_float("a")
        ksel.return_new_tensor(x.shape, x.dtype, may_reuse=("x", "y"))

    def generate(self, ksel, kb):
        kb.yield_results("a * x_load(i) + y_load(i)")


@kp.CustomOp.register
class bits(kp.CustomOp):
    """The bits of float32 as uint32, flat."""

    signature = "bits(Tensor x) -> Tensor"

    def select(self, ksel):
        x = ksel.arg_tensor("x")
        ksel.return_new_tensor(x.size, "uint32", may_reuse="x")

    def generate(self, ksel, kb):
        kb.yield_results("floatBitsToUint(x_load(i))")


def pair(mgr, shape=(5, 7), seed=0):
    rng = np.random.default_rng(seed)
    x, y = rng.random(shape, np.float32), rng.random(shape, np.float32)
    return x, y, mgr.tensor_t(x), mgr.tensor_t(y)


@pytest.mark.parametrize(
    ("donate", "gone"),
    [
        ("x", "x"), ("y", "y"), (0, "x"), (["x", "y"], "xy"), (True, "xy"), ([False, True], "y"), ((), ""),
        (False, ""),
    ],
)  # fmt: skip
def test_a_result_gets_the_memory(mgr, donate, gone):
    x, y, s, t = pair(mgr)
    axpy(s, t), axpy(s, t)
    found = {}
    for name, tensor in (("x", s), ("y", t)):
        found[name] = mgr.tensor_t(tensor.read())
    before = mgr.memory.used
    result = axpy(found["x"], found["y"], donate=donate)
    np.testing.assert_array_equal(result.read(), np.float32(2) * x + y)
    # One of the donated ones is the result's, another one is freed.
    now = mgr.memory.used
    assert now == before if len(gone) == 1 else now < before if gone else now > before
    for name, tensor in found.items():
        if name in gone:
            assert not tensor.is_init()
            with pytest.raises(kp.errors.DonatedTensorError, match=r"was donated to axpy: it cannot be read"):
                tensor.read()
        else:
            np.testing.assert_array_equal(tensor.read(), {"x": x, "y": y}[name])
    del found, tensor
    np.testing.assert_array_equal(result.read(), np.float32(2) * x + y)


def test_a_loop_needs_no_new_memory(mgr):
    x, y, state, t = pair(mgr, (1000,))
    expected = x
    state = axpy(state, t, 0.5, donate="x")
    expected = np.float32(0.5) * expected + y
    peak = mgr.memory.used
    for _ in range(10):
        state = axpy(state, t, 0.5, donate="x")
        expected = np.float32(0.5) * expected + y
        assert mgr.memory.used == peak
    np.testing.assert_allclose(state.read(), expected, rtol=1e-6)
    assert state.numpy().shape == (1000,)  # a host copy of its own


def test_another_shape_and_dtype(mgr):
    x, _, s, _ = pair(mgr)
    before = mgr.memory.used
    found = bits(s, donate="x")
    assert found.shape == (35,) and found.dtype == np.uint32 and mgr.memory.used == before
    np.testing.assert_array_equal(found.read(), x.reshape(-1).view(np.uint32))
    small = mgr.tensor_t(x.astype(np.float16))
    assert not small.is_shared


def test_every_later_use_names_the_donation(mgr):
    _, _, s, t = pair(mgr)
    s.name = "weights"
    kernel = mgr.kernel(
        "layout(local_size_x = 8) in; layout(binding = 0) buffer X { float x[]; };"
        "void main() { if (gl_GlobalInvocationID.x < x.length()) x[gl_GlobalInvocationID.x] += 1; }"
    )
    axpy(s, t, donate=("x",))
    uses = [
        lambda: s.read(), lambda: s.write(np.zeros((5, 7), np.float32)), lambda: s[0], lambda: s.fill(0),
        lambda: axpy(s, t), lambda: axpy(t, s), lambda: axpy.op(s, t), lambda: kernel(s), lambda: s.data(),
        lambda: kp.OpCopy([s, t]), lambda: mgr.tensor([1]).copy_from(s), lambda: s.numpy(),
        lambda: axpy(s, t, donate="x"),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(kp.errors.DonatedTensorError, match=r"'weights'.*was donated to axpy"):
            use()
    assert not s.is_init() and s.size() == 0
    s.destroy()


def test_recordings_and_prepared_calls_end(mgr):
    x, y, s, t = pair(mgr)
    out = mgr.zeros((5, 7))
    for _ in range(3):
        axpy(s, t, out=out)
    sequence = mgr.sequence().record(axpy.op(s, t, out=out)).eval()
    result = axpy(s, t, donate="x")
    np.testing.assert_array_equal(result.read(), np.float32(2) * x + y)
    with pytest.raises(kp.FailedPreconditionError):
        sequence.eval()
    with pytest.raises(kp.errors.DonatedTensorError):
        axpy(s, t, out=out)
    np.testing.assert_array_equal(result.read(), np.float32(2) * x + y)
    np.testing.assert_array_equal(t.read(), y)


def test_the_same_tensor_twice(mgr):
    x, _, s, _ = pair(mgr)
    np.testing.assert_array_equal(axpy(s, s, donate="x").read(), np.float32(2) * x + x)
    assert not s.is_init()


def test_arrays_of_the_contents_stay(mgr):
    x, y, s, t = pair(mgr)
    array = s.data()
    result = axpy(s, t, donate="x")
    np.testing.assert_array_equal(array, x.reshape(-1))
    np.testing.assert_array_equal(result.read(), np.float32(2) * x + y)
    np.testing.assert_array_equal(array, x.reshape(-1))


def test_shared_memory_is_refused_before_anything_runs(mgr):
    x, y, s, t = pair(mgr)
    host = mgr.tensor_t(x, memory_type="deviceAndHost")
    exported = mgr.tensor_t(x)
    assert not host.is_shared and not exported.is_shared
    memoryview(host), exported.vk_buffer
    out = mgr.zeros((5, 7))
    for shared in (s[:], mgr.zeros((6, 7))[1:], host, exported):
        assert shared.is_shared
        with pytest.raises(kp.InvalidArgumentError, match=r"x cannot be donated.*t\.is_shared"):
            axpy(shared, t, out=out, donate="x")
        assert shared.is_init() and not out.read().any()
    np.testing.assert_array_equal(axpy(s, t, donate="y").read(), np.float32(2) * x + y)
    for wrong in ("z", "a", 7, [None], {"x": 1}, 2.5):
        with pytest.raises((kp.InvalidArgumentError, kp.ArgumentTypeError), match="donate"):
            axpy(s, s, donate=wrong)
    assert s.is_init()


def test_what_runs_later_or_never_does_not_donate(mgr):
    s = mgr.zeros((5, 7))
    for call in (axpy.bind, axpy.op, axpy.preload, axpy.meta, kp.ops.sqrt.bind):
        with pytest.raises(kp.ArgumentTypeError, match="has no parameter 'donate': a call takes it"):
            call(s, donate="x")
    assert s.is_init()


def test_views_end_with_what_is_donated(mgr):
    x, y, s, t = pair(mgr)
    row, column = s[1], s[:, 1]
    result = axpy(s, t, donate="x")
    for view in (row, column):
        with pytest.raises(kp.errors.DonatedTensorError, match="donated to axpy"):
            view.read()
    np.testing.assert_array_equal(result.read(), np.float32(2) * x + y)


def test_wrong_declarations():
    def made(names):
        @kp.CustomOp.register
        class wrong(kp.CustomOp):
            signature = "wrong(Tensor x, Tensor(a!) y) -> Tensor"

            def select(self, ksel):
                x = ksel.arg_tensor("x")
                ksel.arg_tensor("y", inplace_tied=True)
                ksel.return_new_tensor(x.shape, x.dtype, may_reuse=names)

        return wrong

    spec = kp.TensorSpec((3,))
    made("x").meta(spec, spec)
    for names, error, text in (
        ("z", kp.InvalidArgumentError, "may_reuse names 'z'"),
        ("y", kp.InvalidArgumentError, "may_reuse names 'y'"),
        (3, kp.ArgumentTypeError, "may_reuse is a name or names, not 3"),
    ):
        with pytest.raises(error, match=text):
            made(names).meta(spec, spec)


def test_operations_in_place_reuse_what_has_their_shape(mgr):
    line = kp.ops.elementwise("a * x + y")
    x, y, s, t = pair(mgr)
    before = mgr.memory.used
    result = line(2.0, s, t, donate="x")
    assert mgr.memory.used == before
    np.testing.assert_array_equal(result.read(), np.float32(2) * x + y)
    row = mgr.tensor_t(y[0])
    spread = line(2.0, row, t, donate=["x", "y"])  # the row is too short for the result
    np.testing.assert_array_equal(spread.read(), np.float32(2) * y[0] + y)
    assert not row.is_init() and not t.is_init()
    line(2.0, result, result, out=result)
    assert not result.is_shared


ADD = (
    "layout(local_size_x = 8) in; layout(binding = 0) buffer X { float x[]; };"
    "void main() { if (gl_GlobalInvocationID.x < x.length()) x[gl_GlobalInvocationID.x] += 1; }"
)


def test_what_was_made_before_names_the_donation(mgr, tmp_path):
    """Calls that were prepared, recordings, bound kernels, algorithms, views."""
    _, _, s, t = pair(mgr, (64, 2))
    s.name = "weights"
    out = mgr.zeros((64, 2))
    kernel = mgr.kernel(ADD)
    for _ in range(3):
        kernel(s), axpy(s, t, out=out), axpy.submit(s, t, out=out).wait()
    bound = kernel.bind(s)
    spirv = kp.compile(ADD)
    algorithm = mgr.algorithm([s], spirv, (16, 1, 1))
    recorded = [
        mgr.sequence().record(each).eval()
        for each in (axpy.op(s, t, out=out), bound, kp.OpCopy([s, out]), kp.OpAlgoDispatch(algorithm))
    ]
    dense, strided = s[1:], s[:, 0]
    axpy(s, t, donate="x")
    uses = [
        lambda: kernel(s), lambda: kernel.submit(s), lambda: kernel.bind(s), lambda: axpy(s, t, out=out),
        lambda: axpy.submit(s, t, out=out), lambda: axpy(t, s), lambda: mgr.sequence().record(bound).eval(),
        *[each.eval for each in recorded], *[each.eval_async for each in recorded], dense.read, strided.read,
        lambda: dense.write(0), lambda: dense[1:], lambda: axpy(dense, t[1:]), lambda: axpy(strided, t[:, 0]),
        lambda: s.map(read=True).__enter__(), lambda: dense.map(read=True).__enter__(), s.reshape, s.view,
        lambda: kp.save_tensors(tmp_path / "t.safetensors", {"w": s}), lambda: memoryview(s),
        lambda: s.__dlpack__(), lambda: s.to(kp.manager(), copy=True), lambda: kp.OpSyncLocal([s]),
        lambda: mgr.algorithm([s], spirv), lambda: mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval(),
    ]  # fmt: skip
    for number, use in enumerate(uses):
        with pytest.raises(kp.errors.DonatedTensorError, match=r"'weights'.*was donated to axpy"):
            raise AssertionError(f"use {number} passed: {use()}")
    assert "'weights'" in repr(s) and repr(s).endswith("donated to axpy>") and not dense.is_init()


def test_a_tensor_is_taken_before_anything_runs(mgr):
    """From the first moment of the call nobody else has it; a call that fails gives it back."""
    x, _, s, t = pair(mgr)
    view, seen = s[1:], []

    @kp.CustomOp.register
    class half(kp.CustomOp):
        signature = "half(Tensor x, bool fails=False) -> Tensor"

        def eager_execute(self, x, fails):
            for use in (
                s.read,
                lambda: half(s),
                lambda: half(s, donate="x"),
                lambda: axpy(s, t, donate=True),
            ):
                with pytest.raises(kp.errors.DonatedTensorError, match="was donated to half"):
                    use()
            assert t.is_init() and view.read().tobytes() == before[1:].tobytes()
            seen.append(x.shape)
            return NotImplemented

        def select(self, ksel):
            x = ksel.arg_tensor("x")
            if ksel.attr_bool("fails").v:
                raise RuntimeError("no")
            ksel.return_new_tensor(x.shape, x.dtype, may_reuse="x")

        def generate(self, ksel, kb):
            kb.yield_results("x_load(i) / 2")

    before = x
    with pytest.raises(RuntimeError, match="no"):
        half(s, True, donate="x")
    np.testing.assert_array_equal(s.read(), x)
    np.testing.assert_array_equal(half(s, donate="x").read(), x / 2)
    assert len(seen) == 2 and not s.is_init() and not view.is_init()


def test_an_answer_is_no_donated_tensor(mgr):
    @kp.CustomOp.register
    class same(kp.CustomOp):
        signature = "same(Tensor x) -> Tensor"

        def eager_execute(self, x):
            return x

    s = mgr.zeros(4)
    with pytest.raises(kp.InvalidArgumentError, match="shares memory with a result"):
        same(s, donate="x")
    assert s.is_init()


@pytest.mark.parametrize("other", ["call", "donate", "submit", "record", "kernel", "read"])
def test_two_threads_of_which_one_donates(mgr, other):
    """Whatever comes first: each result is right, or an error names the donation."""
    add, triple = kp.ops.elementwise("x + 1"), kp.ops.elementwise("x * 3")
    kernel = mgr.kernel(ADD.replace("+= 1", "*= 3"))
    x = np.arange(1000, dtype=np.float32)

    def beside(t, out):
        if other == "kernel":
            kernel(t)
            return x * 3
        if other == "submit":
            triple.submit(t, out=out).wait()
            return out.read()
        if other == "record":
            mgr.sequence().record(triple.op(t, out=out)).eval()
            return out.read()
        return t.read() * 3 if other == "read" else triple(t, donate="x" if other == "donate" else ()).read()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    seen = collections.Counter()
    try:
        for _ in range(60):
            t, out, got = mgr.tensor_t(x), mgr.zeros(1000), {}
            start = threading.Barrier(2)

            def run(name, function, t=t, out=out, got=got, start=start):
                start.wait()
                try:
                    got[name] = function(t, out)
                except kp.errors.DonatedTensorError:
                    got[name] = None

            threads = [
                threading.Thread(target=run, args=("add", lambda t, _: add(t, donate="x").read())),
                threading.Thread(target=run, args=("other", beside)),
            ]
            [each.start() for each in threads]
            [each.join() for each in threads]
            rights = {"add": (x + 1, x * 3 + 1) if other == "kernel" else (x + 1,), "other": (x * 3,)}
            for name, found in got.items():
                assert found is None or any(np.array_equal(found, each) for each in rights[name]), name
            seen[tuple(sorted(name for name in got if got[name] is not None))] += 1
    finally:
        sys.setswitchinterval(interval)
    assert set(seen) <= {("add",), ("other",), ("add", "other")}
    assert other == "donate" or ("other",) not in seen
