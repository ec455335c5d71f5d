"""Calls with memory beyond what shaders reach through one binding: in parts, or refused with the way."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._builders import walks

pytestmark = pytest.mark.shared


@pytest.fixture(autouse=True)
def default(mgr, monkeypatch):
    """Shaders reach 40,000 bytes."""
    monkeypatch.setattr(walks, "_reach", lambda ksel: 40_000)
    with mgr:
        yield


@pytest.fixture(params=["arrays", "tensors"])
def placed(request, mgr):
    """Arguments as they are, or as tensors."""
    return mgr.tensor_t if request.param == "tensors" else np.asarray


def check(got, expected, **error):
    got = got.read() if isinstance(got, kp.Tensor) else got
    assert got.shape == np.shape(expected)
    if error:
        np.testing.assert_allclose(got, expected, **error)
    else:
        np.testing.assert_array_equal(got, expected)


def test_reductions(placed):
    rng = np.random.default_rng(0)
    x = rng.normal(size=50_003).astype(np.float32)
    z = rng.integers(-9, 9, (301, 133)).astype(np.int16)
    u, v = placed(x), placed(z)
    check(kp.ops.sum(u), x.sum(dtype=np.float64), atol=1e-3)
    check(kp.ops.max(u), x.max())
    check(kp.ops.mean(u), x.mean(dtype=np.float64), atol=1e-6)
    check(kp.ops.dot(u, u), x.astype(np.float64) @ x, rtol=1e-6)
    check(kp.ops.any(placed(x > 9)), False)
    check(kp.ops.count_nonzero(v), np.count_nonzero(z))
    check(kp.ops.sum(v, dtype="int32"), z.sum())
    for axis in (None, 0, 1, (0, 1)):
        for keep in (False, True):
            check(kp.ops.sum(v, axis=axis, keepdims=keep), z.sum(axis, keepdims=keep))
    check(kp.ops.mean(v, axis=0), z.mean(0), atol=1e-6)
    check(kp.ops.reduction("a * x + y", "max")(2.0, u, np.float32(1)), (2 * x + 1).max())
    out = placed(np.zeros(133, kp.ops.sum(v, axis=0).dtype))  # int32 on devices without int64
    assert kp.ops.sum(v, axis=0, out=out) is out
    check(out, z.sum(0))


def test_scans_and_conversions(placed):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 9, 60_001).astype(np.uint8)
    z = rng.integers(-9, 9, (301, 133)).astype(np.int16)
    u, v = placed(x), placed(z)
    check(kp.ops.cumsum(u), np.cumsum(x))
    check(kp.ops.cummax(u), np.maximum.accumulate(x))
    check(kp.ops.scan(reverse=True)(u), np.cumsum(x[::-1])[::-1])
    for axis in (0, 1):
        check(kp.ops.cumsum(v, axis=axis), np.cumsum(z, axis))
    check(kp.ops.astype(u, "int32"), x.astype(np.int32))
    check(kp.ops.round(placed(x / np.float32(4)), 1), np.round(x / np.float32(4), 1), atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: kp.ops.var(x),
        lambda x: kp.ops.argmax(x),
        lambda x: kp.ops.sum(x.astype(np.float16)),
        lambda x: kp.ops.cumsum(x.reshape(3, -1)),
        lambda x: kp.ops.scan(segments="starts")(x, x > 0),
        lambda x: kp.ops.scan(neutral=0, exclusive=True)(x),
        lambda x: kp.ops.reduction("u = x; v = x", "u = a.u + b.u; v = a.v + b.v")(x),
        lambda x: kp.ops.sort(x),
        lambda x: kp.ops.flip(x),
        lambda x: kp.ops.sum.variant("run")(x),
    ],
)
def test_others_name_the_limit_and_the_way(call):
    with pytest.raises(
        kp.InvalidArgumentError, match=r"maxStorageBufferRange.*in parts, t\[:n\] and t\[n:\]"
    ):
        call(np.ones(60_000, np.float32))
