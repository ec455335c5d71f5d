"""Colours, against colorsys and NumPy in float64."""

from __future__ import annotations

import colorsys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import kompute_py as kp
from tests.support.sampling import examples

pytestmark = pytest.mark.usefixtures("current")

NAMES = ("rgb_to_gray", "rgb_to_hsv", "hsv_to_rgb", "srgb_to_linear", "linear_to_srgb", "premultiply_alpha")


def by_pixels(function):
    def of(x):
        pixels = [function(*pixel[:3]) for pixel in x.reshape(-1, x.shape[-1])]
        return np.array(pixels, np.float64).reshape(*x.shape[:-1], 3)

    return of


def to_linear(x):
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)[..., :3]


def to_srgb(x):
    return np.where(x <= 0.0031308, x * 12.92, 1.055 * x ** (1 / 2.4) - 0.055)[..., :3]


COLOURS = {
    "rgb_to_hsv": (by_pixels(colorsys.rgb_to_hsv), 1e-6),
    "hsv_to_rgb": (by_pixels(colorsys.hsv_to_rgb), 2e-6),
    "srgb_to_linear": (to_linear, 2e-5),
    "linear_to_srgb": (to_srgb, 2e-5),
}


@examples(12)
@given(data=st.data())
@pytest.mark.parametrize("name", COLOURS)
def test_colours(name, data):
    shape = (
        *data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9)),
        data.draw(st.sampled_from([3, 4])),
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    whole = rng.integers(0, 256, shape, np.uint8)
    grays = rng.random(shape[:-1]) < 0.2
    whole[grays] = whole[grays][..., :1]
    function, bound = COLOURS[name]
    for x in (whole, rng.random(shape, np.float32)):
        got = getattr(kp.ops, name)(x)
        assert got.shape == shape and got.dtype == x.dtype
        scale = 255 if x is whole else 1
        away = abs(got[..., :3] / np.float64(scale) - function(x / np.float64(scale)))
        if name == "rgb_to_hsv":
            away[..., 0] = np.minimum(away[..., 0], 1 - away[..., 0])  # of the hue, 0 is 1
        assert (away <= bound + (0.5 / 255 if x is whole else 0)).all()
        if shape[-1] == 4:
            np.testing.assert_array_equal(got[..., 3], x[..., 3])


@pytest.mark.parametrize(
    ("standard", "weights"), [("601", (0.299, 0.587, 0.114)), ("709", (0.2126, 0.7152, 0.0722))]
)
def test_gray(standard, weights):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(7, 11, 4)).astype(np.float32)
    got, want = kp.ops.rgb_to_gray(x, standard), x[..., :3].astype(np.float64) @ weights
    assert got.dtype == np.float32
    assert (abs(got - want) <= 4 * 2.0**-24 * (abs(x[..., :3]) @ weights)).all()
    whole = rng.integers(0, 256, (5, 3), np.uint8)
    got = kp.ops.rgb_to_gray(whole, standard)
    assert got.dtype == np.uint8 and (abs(got - whole @ np.array(weights)) <= 0.5 + 1e-4).all()


def test_premultiplied(mgr):
    rng = np.random.default_rng(1)
    x = rng.random((6, 8, 4), np.float32)
    want = np.concatenate([x[..., :3] * x[..., 3:], x[..., 3:]], -1)
    np.testing.assert_allclose(kp.ops.premultiply_alpha(x), want, 2.0**-23)
    t = mgr.tensor_t(x)
    np.testing.assert_allclose(kp.ops.premultiply_alpha(t[:, ::2]).read(), want[:, ::2], 2.0**-23)
    mgr.sequence().record(kp.ops.premultiply_alpha.op(t, out=t)).eval()
    np.testing.assert_allclose(t.read(), want, 2.0**-23)
    whole = rng.integers(0, 256, (50, 4), np.uint8)
    got = kp.ops.premultiply_alpha(whole)[:, :3]
    assert (abs(got - whole[:, :3] * (whole[:, 3:] / 255.0)) <= 0.5 + 1e-4).all()


def test_errors():
    with pytest.raises(kp.errors.InvalidArgumentError, match="give 3 or 4 of them"):
        kp.ops.rgb_to_hsv(np.zeros((3, 2), np.float32))
    with pytest.raises(kp.errors.InvalidArgumentError, match="give 4 of them"):
        kp.ops.premultiply_alpha(np.zeros(3, np.float32))
    with pytest.raises(kp.errors.InvalidArgumentError, match="standard is '2020'"):
        kp.ops.rgb_to_gray(np.zeros(3, np.float32), "2020")
    with pytest.raises(kp.errors.ArgumentTypeError, match="x is of int32"):
        kp.ops.rgb_to_gray(np.zeros(3, np.int32))
