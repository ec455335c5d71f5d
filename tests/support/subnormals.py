"""Numbers below the least normal one: devices may take them for 0, and give 0 for them."""

from __future__ import annotations

from typing import Any

import numpy as np

import kompute_py as kp


def least_normal(dtype: Any) -> float:
    """The least normal number of what `dtype` is computed in."""
    return float(np.finfo(np.float64 if np.dtype(dtype) == np.float64 else np.float32).smallest_normal)


def flushes(mgr: kp.Manager) -> bool:
    """Whether the device does so, which products of a subnormal number and with a subnormal result tell. It
    must not where it offers DenormPreserve, which kernels then ask for.
    """
    controls = mgr.get_device_properties().float_controls
    found = False
    for dtype in (np.float32, np.float64)[: 1 + ("shaderFloat64" in mgr.enabled_features)]:
        x, y = np.array([[least_normal(dtype) * 0.75, least_normal(dtype)], [1.5, 0.75]], dtype)
        does = (
            kp.ops.elementwise("x * y")(mgr.tensor_t(x), mgr.tensor_t(y)).read().tolist() != (x * y).tolist()
        )
        assert not (does and controls[f"shaderDenormPreserveFloat{x.itemsize * 8}"])
        found |= does
    return found


def flushed(array: np.ndarray, result: bool = False) -> np.ndarray:
    """`array` with zeros for what such a device may take for 0; of results also for what rounds up to the
    least normal number.
    """
    if array.dtype.kind in "biuc" or array.dtype == np.float16:
        return array
    least = least_normal(array.dtype)
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        small = (np.abs(wide) < least) | (result & (np.abs(wide) == least))
        return np.where(small, np.copysign(0.0, wide), wide).astype(array.dtype)
