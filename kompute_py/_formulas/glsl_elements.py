"""How the elements of a dtype are read and written in GLSL."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from .._base.errors import UnimplementedError
from .small_floats import FLOAT8


class Element(NamedTuple):
    """How elements of a dtype stand in a buffer, and in expressions."""

    stored: str
    """The type of the buffer's array."""
    type: str
    """The type in expressions."""
    load: str
    """The expression of the second from the first; "{}" is the element."""
    store: str
    """The expression of the first from the second; "{}" is the value."""
    extensions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    """The device features that it needs."""
    words: bool = False
    """The buffer is an array of uint with several elements in each: `load` and `store` take the word "{w}",
    its number of bits in front of the element "{s}" and the value "{}"."""
    declared: str = ""
    """The declaration of the types."""


_8 = ("GL_EXT_shader_8bit_storage", "GL_EXT_shader_explicit_arithmetic_types_int8")
_16 = ("GL_EXT_shader_16bit_storage", "GL_EXT_shader_explicit_arithmetic_types_int16")
_8_NEEDS = ("shaderInt8", "storageBuffer8BitAccess")
_16_NEEDS = ("shaderInt16", "storageBuffer16BitAccess")
_HALF_NEEDS = ("shaderFloat16", *_16_NEEDS)
_64 = ("GL_EXT_shader_explicit_arithmetic_types_int64",)
_HALF = ("GL_EXT_shader_explicit_arithmetic_types_float16", *_16)
_ELEMENTS = {
    "float32": Element("float", "float", "{}", "{}"),
    "float64": Element("double", "double", "{}", "{}"),
    # Written as bits: some drivers' float16_t() cuts off, and one gives other numbers in AVX2.
    "float16": Element(
        "float16_t", "float", "float({})", "uint16BitsToHalf(uint16_t(kp_to_half({})))", _HALF, _HALF_NEEDS
    ),
    "int32": Element("int", "int", "{}", "{}"),
    "uint32": Element("uint", "uint", "{}", "{}"),
    "int64": Element("int64_t", "int64_t", "{}", "{}", _64),
    "uint64": Element("uint64_t", "uint64_t", "{}", "{}", _64),
    "int16": Element("int16_t", "int", "int({})", "int16_t({})", _16, _16_NEEDS),
    "uint16": Element("uint16_t", "uint", "uint({})", "uint16_t({})", _16, _16_NEEDS),
    "int8": Element("int8_t", "int", "int({})", "int8_t({})", _8, _8_NEEDS),
    "uint8": Element("uint8_t", "uint", "uint({})", "uint8_t({})", _8, _8_NEEDS),
    "bool": Element("uint8_t", "bool", "({} != uint8_t(0))", "uint8_t({} ? 1 : 0)", _8, _8_NEEDS),
    "complex64": Element("vec2", "vec2", "{}", "{}"),
    "complex128": Element("dvec2", "dvec2", "{}", "{}"),
    "bfloat16": Element(
        "uint16_t", "float", "kp_from_bfloat16(uint({}))", "uint16_t(kp_to_bfloat16({}))", _16, _16_NEEDS
    ),
    **{
        f"float8_{name}": Element(
            "uint8_t", "float", f"kp_from_{name}(uint({{}}))", f"uint8_t(kp_to_{name}({{}}))", _8, _8_NEEDS
        )
        for name in FLOAT8
    },
}


def _in_words(type_: str, load: str, store: str) -> Element:
    return Element("uint", type_, load, store, words=True)


# For devices without elements of 8 or 16 bits in buffers.
_WORDS = {
    "float16": _in_words("float", "kp_from_half(({w} >> {s}) & 0xffffu)", "kp_to_half({})"),
    "bfloat16": _in_words("float", "kp_from_bfloat16(({w} >> {s}) & 0xffffu)", "kp_to_bfloat16({})"),
    **{
        f"float8_{name}": _in_words(
            "float", f"kp_from_{name}(({{w}} >> {{s}}) & 0xffu)", f"kp_to_{name}({{}})"
        )
        for name in FLOAT8
    },
    "int16": _in_words("int", "bitfieldExtract(int({w}), int({s}), 16)", "uint({}) & 0xffffu"),
    "uint16": _in_words("uint", "bitfieldExtract({w}, int({s}), 16)", "{} & 0xffffu"),
    "int8": _in_words("int", "bitfieldExtract(int({w}), int({s}), 8)", "uint({}) & 0xffu"),
    "uint8": _in_words("uint", "bitfieldExtract({w}, int({s}), 8)", "{} & 0xffu"),
    "bool": _in_words("bool", "(bitfieldExtract({w}, int({s}), 8) != 0u)", "{} ? 1u : 0u"),
}


def _of_struct(size: int) -> Element:
    """Elements that are moved whole: structs of `size` bytes."""
    width = 4 if size % 4 == 0 else 2 if size % 2 == 0 else 1
    word, extensions, needs = {
        4: ("uint", (), ()),
        2: ("uint16_t", _16, _16_NEEDS),
        1: ("uint8_t", _8, _8_NEEDS),
    }[width]
    name = f"kp_bytes{size}"
    declared = f"struct {name} {{ {word} words[{size // width}]; }};"
    return Element(name, name, "{}", "{}", extensions, needs, declared=declared)


class Need(NamedTuple):
    """The needs of a dtype that some devices lack altogether."""

    feature: str
    """The feature of the devices that have it."""
    instead: str
    """A dtype that all devices have."""


_NEEDS = {
    "int64": Need("shaderInt64", "int32"),
    "uint64": Need("shaderInt64", "uint32"),
    "float64": Need("shaderFloat64", "float32"),
    "complex128": Need("shaderFloat64", "complex64"),
}


@functools.lru_cache(256)
def need_of(dtype: np.dtype[Any]) -> Need | None:
    """The needs of a dtype of 64 bits; None for one that all devices have, some as parts of words."""
    return _NEEDS.get(dtype.name)


@functools.lru_cache(256)
def name_of(dtype: np.dtype[Any]) -> str:
    """``dtype.name``, which NumPy computes in Python; of structs all that they consist of."""
    return dtype.name if dtype.names is None else str(dtype)


@functools.lru_cache(1024)
def element_of(dtype: np.dtype[Any], features: frozenset[str] | None = None) -> Element:
    """How elements of `dtype` are read and written by a device with these features; None: by one with all.
    Structs are only moved.

    Raises UnimplementedError for dtypes without a way.
    """
    found = _ELEMENTS.get(dtype.name) if dtype.names is None else _of_struct(dtype.itemsize)
    if found is None:
        raise UnimplementedError(
            f"Generated kernels do not take {dtype}; they take {', '.join(_ELEMENTS)}. View the tensor as "
            "one of these: t.view(...)"
        )
    if features is not None and not features.issuperset(found.features):
        if dtype.names is not None:
            raise UnimplementedError(
                f"The device does not move structs of {dtype.itemsize} bytes ({dtype}): it lacks "
                f"{', '.join(sorted(set(found.features) - features))}. Pad them to a multiple of 4 bytes"
            )
        return _WORDS[dtype.name]
    return found
