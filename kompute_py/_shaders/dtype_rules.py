"""Decides whether an array's dtype contradicts a shader's scalars, and how to convert.

Arrays and bindings exchange bytes without conversion. If the dtypes differ, the shader reads numbers other
than those in the array. Kernels therefore refuse such arrays. Algorithms, which run Kompute's scripts, warn
once for each binding of a shader and dtype.

Some dtypes never contradict, because the shader decides the meaning of their bytes: raw bytes (``V16``), the
small floats of ml_dtypes in integers, which hold their bits, and structured dtypes, with a layout that is
compared instead. Rows of smaller numbers that make up whole integers (pixels of shape (h, w, 4), uint8, for
``uint[]``) are packed on purpose: algorithms take them without a warning.

Signed and unsigned integers of one size store the numbers that both can hold with the same bits. The future
contents of a tensor are unknown when it is bound, so the rule applies to them too; the messages say which
numbers differ. The values of constants are known: an array of constants that is copied bit by bit warns only
if a number differs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._base.types import is_small_float


def contradicts(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether a shader that reads `wanted` finds different numbers in elements of `dtype`."""
    if dtype == wanted or dtype.type is np.void or (is_small_float(dtype) and wanted.kind != "f"):
        return False
    # A complex number is stored as two floats, like a vec2.
    return not (dtype.kind == "c" and wanted.kind == "f" and dtype.itemsize == 2 * wanted.itemsize)


def difference(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> str:
    """The part of a message that says which numbers of `dtype` differ for a shader that reads `wanted`."""
    if not differ_in_sign(dtype, wanted):
        return "the shader finds other numbers there"
    most = np.iinfo(f"i{dtype.itemsize}").max
    what = (
        "numbers from there on are negative"
        if wanted.kind == "i"
        else f"negative numbers are larger by {2 * (most + 1)}"
    )
    return f"numbers from 0 to {most} are the same, {what} there"


def differ_in_sign(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether one dtype is a signed and the other an unsigned integer of the same size."""
    return dtype.itemsize == wanted.itemsize and {dtype.kind, wanted.kind} == {"i", "u"}


def beyond_both(number: Any) -> bool:
    """Whether a NumPy integer changes if its bits are read with the other signedness."""
    return not 0 <= int(number) <= np.iinfo(f"i{number.dtype.itemsize}").max


def conversion(dtype: np.dtype[Any], wanted: np.dtype[Any], array: bool) -> str:
    """How to convert an array, or a tensor, of `dtype` for a shader that reads `wanted`: a message's end."""
    name = f"np.{wanted}"
    if dtype.kind == "c" and dtype.itemsize == 2 * wanted.itemsize:
        given = "array" if array else "tensor"
        return f"A complex number is two floats: declare a vec2, or give {given}.view({name})"
    if dtype.kind == "b":
        one = f"array.astype({name})" if array else f"mgr.tensor_t(data.astype({name}))"
        return (
            f"A bool has one byte in NumPy, and in a shader's block it has {8 * wanted.itemsize} bits: "
            f"give {one}, and take results with astype(bool)"
        )
    fix = (
        f"Convert the data: array.astype({name})"
        if array
        else f"Create it with mgr.tensor_t(data.astype({name})), which keeps the dtype "
        f"(mgr.tensor converts to float32), or convert it on the device: kp.ops.astype(tensor, {name})"
    )
    if dtype.itemsize == wanted.itemsize:
        fix += f"; or, if its bits are meant, {'array' if array else 'tensor'}.view({name})"
    return fix


def kind_of(dtype: np.dtype[Any]) -> tuple[str, int]:
    """("float", "bool" or "int", bytes).

    Equal kinds store each number that both can hold with the same bits.
    """
    return ("float" if dtype.kind == "f" else "bool" if dtype.kind == "b" else "int"), dtype.itemsize
