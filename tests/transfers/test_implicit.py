"""Row I21: `transfers="raise"` refuses copies between the host and the device that no call names.

tests/ops/test_staging.py runs all functions of `kp.ops` over tensors with it.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import kompute_py as kp

TWICE = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) buffer B { float b[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < a.length() && i < b.length()) b[i] = a[i] * 2.0;
}"""
ARRAY = np.float32([1, 2, 3])


@pytest.fixture(scope="module", params=[False, True], ids=["in place", "staged"])
def mgr(request):
    with kp.Manager(transfers="raise", tuning="off", force_staging=request.param) as manager, manager:
        yield manager


@pytest.fixture
def t(mgr):
    return mgr.tensor(ARRAY)


@pytest.fixture(scope="module")
def twice(mgr):
    return mgr.kernel(TWICE, name="twice")


TO_HOST = {
    "asarray": np.asarray,
    "array": np.array,
    "of an image": lambda t: np.asarray(t.manager.image_t(np.zeros((2, 2, 4), np.uint8))),
    "a part": lambda t: np.asarray(t[::2]),
    "tolist": lambda t: t.tolist(),
    "tolist of a part": lambda t: t[::2].tolist(),
    "astype": lambda t: t.astype(np.int32),
    "item": lambda t: t[:1].item(),
    "int": lambda t: int(t[:1]),
    "float": lambda t: float(t[:1]),
    "complex": lambda t: complex(t[:1]),
    "bool": lambda t: bool(t[:1]),
    "format": lambda t: f"{t[:1]:.2f}",
    "ufunc": lambda t: np.add(t, 1),
    "function": np.sum,
    "several": lambda t: np.stack([t, t]),
    "operator": lambda t: t + ARRAY,
    "comparison": lambda t: t == ARRAY,
    "reflected comparison": lambda t: t == ARRAY,
    "data of a tensor": lambda t: t.manager.tensor(t),
    "data of a write": lambda t: t.write(t[:3]),
    "assigned tensor": lambda t: t.__setitem__(slice(0, 2), t[1:3]),
    "fractions": lambda t: kp.ops.quantile(t, t.manager.tensor([0.5])),
    "edges": lambda t: kp.ops.histogram(t, t),
    "rule of edges": lambda t: kp.ops.histogram(t, "auto"),
    "order for an array": lambda t: kp.random.default_rng(1).permutation(ARRAY),
}
TO_DEVICE = {
    "assignment": lambda t, k: t.__setitem__(slice(0, 2), [1, 2]),
    "assignment to a part": lambda t, k: t[::2].__setitem__(slice(None), np.float32([1, 2])),
    "assignment by numbers": lambda t, k: t.__setitem__(t.manager.tensor_t(np.int32([0, 2])), [1, 2]),
    "numbers": lambda t, k: t[np.array([0, 2])],
    "mask": lambda t, k: t[np.array([True, False, True])],
    "kernel": lambda t, k: k(ARRAY, t),
    "list": lambda t, k: k([1.0, 2.0], t),
    "part for a kernel": lambda t, k: k(t[::2], t),
    "written": lambda t, k: k(t, np.zeros(3, np.float32)),
    "function of arrays": lambda t, k: kp.ops.add(ARRAY, ARRAY),
    "function of one array": lambda t, k: kp.ops.add(t, ARRAY),
    "function of a list": lambda t, k: kp.ops.concatenate([t, ARRAY]),
    "out": lambda t, k: kp.ops.add(t, t, out=np.zeros(3, np.float32)),
    "many calls": lambda t, k: kp.ops.nonzero(ARRAY),
    "drawn": lambda t, k: kp.random.default_rng(1).random(out=np.zeros(3, np.float32)),
    "distributed": lambda t, k: kp.random.default_rng(1).gamma(2.0, out=np.zeros(3, np.float32)),
}


@pytest.mark.capability(
    "I21", "copies that no call names, refused or reported", "kp.Manager", "concepts/host_and_device"
)
@pytest.mark.parametrize("way", TO_HOST)
def test_implicit_reads_are_refused(t, way):
    with pytest.raises(kp.errors.FailedPreconditionError, match=r'\d+ bytes .*transfers="raise".*write|give'):
        TO_HOST[way](t)
    np.testing.assert_array_equal(t.read(), ARRAY)


@pytest.mark.parametrize("way", TO_DEVICE)
def test_implicit_writes_are_refused(t, twice, way):
    with pytest.raises(
        kp.errors.FailedPreconditionError, match=r'\d+ bytes .*transfers="raise".*(write|give) '
    ):
        TO_DEVICE[way](t, twice)
    np.testing.assert_array_equal(t.read(), ARRAY)


def test_a_program_over_arrays(mgr):
    x = mgr.tensor(ARRAY)
    x.name = "x"
    double, y = mgr.kernel(TWICE), mgr.zeros(3)
    program = kp.Program.record(
        mgr.sequence().record(double.bind(x, y)), inputs={"x": x}, outputs={"y": y}
    ).on(mgr)
    with pytest.raises(kp.errors.FailedPreconditionError, match="12 bytes"):
        program.main(ARRAY)
    np.testing.assert_array_equal(program.main(mgr.tensor(ARRAY)).read(), 2 * ARRAY)


def test_a_comparison_of_numpy_that_hides_errors_warns(t):
    with pytest.warns(kp.errors.KomputeWarning, match="takes the error for a difference"):
        assert not np.array_equal(t, ARRAY)


def test_explicit_copies_stay(mgr, t, twice, tmp_path):
    np.testing.assert_array_equal(t.read(), ARRAY)
    np.testing.assert_array_equal(t[::2].read(), [1, 3])
    t.write(ARRAY + 1)
    t[:1].write([5])
    t.copy_from(ARRAY)
    t.copy_to(np.zeros(3, np.float32))
    t = mgr.tensor(ARRAY)
    t.data()[:] = 4
    recording = (
        mgr.sequence().record(kp.OpSyncDevice([t])).record(twice.bind(t, t)).record(kp.OpSyncLocal([t]))
    )
    recording.eval()
    np.testing.assert_array_equal(t.numpy(), [8, 8, 8])
    with t.map(write=True) as array:
        array[:] = 1
    assert "8." in repr(t) and "8." in str(t)
    kp.save_tensors(tmp_path / "t.safetensors", {"t": t})
    kp.testing.assert_allclose(t.to(mgr, copy=True), np.ones(3, np.float32))
    assert "host copy" in t._repr_html_()


def test_numbers_are_no_arrays(mgr, t):
    t[0] = 5
    t[1:] = 7
    t[::2] = 1
    t[mgr.tensor_t(np.array([False, True, True]))] = 9
    np.testing.assert_array_equal(kp.ops.add(t, 1).read(), [2, 10, 10])
    assert kp.random.default_rng(1).random() < 1


def test_one_memory_is_not_copied(mgr):
    one = mgr.tensor([1, 2, 3], memory_type="deviceAndHost")
    if one._is_single():
        np.testing.assert_array_equal(np.asarray(one), [1, 2, 3])
        assert one.tolist() == [1, 2, 3] and one[::2].tolist() == [1, 3]


def test_warn():
    with kp.Manager(transfers="warn") as mgr:
        t, twice = mgr.tensor(ARRAY), mgr.kernel(TWICE, name="twice")
        with pytest.warns(kp.errors.KomputeWarning, match="12 bytes from the device"):
            np.testing.assert_array_equal(np.asarray(t), ARRAY)
        for _ in range(3):  # also once it could be prepared
            with pytest.warns(kp.errors.KomputeWarning, match="twice: '[ab]' is an array"):
                np.testing.assert_array_equal(twice(ARRAY), 2 * ARRAY)
            with pytest.warns(kp.errors.KomputeWarning, match="add: x2 is an array"):
                kp.ops.add(t, ARRAY)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            t.read()
            twice(t, t)


def test_the_option(monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_TRANSFERS", "raise")
    with kp.Manager() as mgr, pytest.raises(kp.errors.FailedPreconditionError):
        mgr.tensor(ARRAY).tolist()
    with pytest.raises(kp.errors.InvalidArgumentError, match="allow, warn, raise"):
        kp.Manager(transfers="forbid")
