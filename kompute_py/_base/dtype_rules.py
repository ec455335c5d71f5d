"""Whether an array's dtype and a shader's scalars contradict each other, and how to convert.

The rule. Bytes go to the device as they are: nothing is converted between an array and a binding. Where the dtypes differ the shader
reads other numbers than the array holds, so kernels refuse that, and algorithms, on which Kompute's scripts rely, warn once for each
binding of a shader and dtype. Bytes whose meaning is the shader's affair contradict nothing: raw bytes (``V16``), the small floats of ml_dtypes,
which shaders know as bits, and structured dtypes, whose layout is compared instead. Rows of smaller numbers that make up whole integers
(pixels of shape (h, w, 4), uint8, for ``uint[]``) are packed on purpose: algorithms take them without a word.

Signed and unsigned integers of one size have the same bits, and the numbers that both can hold are the same. Which numbers a tensor will hold is
not known when it is bound, so the rule is the same for them; the messages say which numbers differ. Of constants the numbers are known: an array that
goes in bit by bit warns only if one of them differs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .types import is_small_float


def contradicts(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether a shader that reads `wanted` finds other numbers in elements of `dtype` than they are."""
    if dtype == wanted or dtype.type is np.void or is_small_float(dtype):
        return False
    # A complex number is two floats, a vec2.
    return not (dtype.kind == "c" and wanted.kind == "f" and dtype.itemsize == 2 * wanted.itemsize)


def difference(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> str:
    """Which numbers a shader that reads `wanted` finds in elements of `dtype` that contradicts it."""
    if not differ_in_sign(dtype, wanted):
        return "it finds other numbers there"
    most = np.iinfo(f"i{dtype.itemsize}").max
    what = (
        "numbers from there on are negative"
        if wanted.kind == "i"
        else f"negative numbers are larger by {2 * (most + 1)}"
    )
    return f"numbers from 0 to {most} are the same, {what} there"


def differ_in_sign(dtype: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether one is a signed and the other an unsigned integer of the same size."""
    return dtype.itemsize == wanted.itemsize and {dtype.kind, wanted.kind} == {"i", "u"}


def beyond_both(number: Any) -> bool:
    """Whether a NumPy integer is another number in a signed or unsigned integer of its size."""
    return not 0 <= int(number) <= np.iinfo(f"i{number.dtype.itemsize}").max


def conversion(dtype: np.dtype[Any], wanted: np.dtype[Any], array: bool) -> str:
    """How to make an array, or a tensor, of `dtype` fit a shader that reads `wanted`: the end of a message."""
    name = f"np.{wanted}"
    if dtype.kind == "b":
        one = f"array.astype({name})" if array else f"mgr.tensor_t(data.astype({name}))"
        return (
            f"A bool has one byte in NumPy, and in a shader's block it has {8 * wanted.itemsize} bits: give {one}, and take results "
            "with astype(bool)"
        )
    fix = (
        f"Convert the data: array.astype({name})"
        if array
        else f"Make it with mgr.tensor_t(data.astype({name})), which keeps the dtype (mgr.tensor converts to float32)"
    )
    if dtype.itemsize == wanted.itemsize:
        fix += f"; or, if its bits are meant, {'array' if array else 'tensor'}.view({name})"
    return fix


def kind_of(dtype: np.dtype[Any]) -> tuple[str, int]:
    """("float" or "int", bytes): numbers of one kind have the same bits where both can hold them."""
    return ("float" if dtype.kind == "f" else "bool" if dtype.kind == "b" else "int"), dtype.itemsize
