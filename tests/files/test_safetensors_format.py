"""The header of safetensors files: what it must say, and that nothing else is believed.

No device, no file.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import kompute_py as kp
from kompute_py._files.safetensors import (
    MOST_HEADER_BYTES,
    Header,
    build_header,
    header_bytes,
    parse_header,
)
from tests.support.sampling import sampled

pytestmark = pytest.mark.own_driver  # none at all

FLOATS = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
BYTES = {"dtype": "U8", "shape": [4], "data_offsets": [24, 28]}
GOOD = {"__metadata__": {"made by": "hand"}, "floats": FLOATS, "bytes": BYTES}


def parse(content, data_bytes=28) -> Header:
    return parse_header(json.dumps(content).encode(), data_bytes)


def changed(**fields):
    return {**GOOD, "bytes": {**BYTES, **fields}}


def test_reads_names_dtypes_shapes_and_metadata_in_the_order_of_the_data():
    header = parse({"bytes": BYTES, "floats": FLOATS, "__metadata__": {"a": "b"}})
    assert list(header.entries) == ["floats", "bytes"]
    floats = header.entries["floats"]
    assert (floats.dtype, floats.shape, floats.offset, floats.nbytes) == ("F32", (2, 3), 0, 24)
    assert floats.numpy_dtype == np.float32 and not floats.is_raw
    assert header.metadata == {"a": "b"}


def test_scalars_and_tensors_with_no_element_are_legal():
    header = parse(
        {
            "scalar": {"dtype": "F64", "shape": [], "data_offsets": [0, 8]},
            "none": {"dtype": "F64", "shape": [3, 0], "data_offsets": [8, 8]},
        },
        8,
    )
    assert [entry.nbytes for entry in header.entries.values()] == [8, 0]
    assert parse({}, 0) == Header({}, {})


BAD = {
    "gap": (changed(data_offsets=[25, 29]), "gap"),
    "overlap": (changed(data_offsets=[20, 24]), "overlaps"),
    "first not at 0": ({"bytes": {**BYTES, "data_offsets": [24, 28]}}, "gap"),
    "bytes behind": ({"floats": FLOATS}, "no tensor uses"),
    "reversed offsets": (changed(data_offsets=[28, 24]), "not a range"),
    "one offset": (changed(data_offsets=[24]), "not a range"),
    "three offsets": (changed(data_offsets=[24, 28, 32]), "not a range"),
    "negative offset": (changed(data_offsets=[-4, 0]), "give integers from 0 to"),
    "offset as text": (changed(data_offsets=["24", 28]), "a string"),
    "offset as float": (changed(data_offsets=[24.0, 28]), "24.0"),
    "offset as bool": (changed(data_offsets=[24, True]), "a boolean"),
    "offsets as object": (changed(data_offsets={"0": 24}), "not an array"),
    "huge offset": (changed(data_offsets=[24, 2**64]), "give integers from 0 to"),
    "shape of another size": (changed(shape=[5]), "5 bytes"),
    "negative dimension": (changed(shape=[-4]), "give integers from 0 to"),
    "dimension as bool": (changed(shape=[True, 4]), "a boolean"),
    "dimension null": (changed(shape=[None]), "null"),
    "overflowing shape": (changed(shape=[2**32, 2**32, 4]), "larger than any memory"),
    "overflow hidden by 0": (
        changed(shape=[2**62, 2**62, 0], data_offsets=[24, 24]),
        "larger than any memory",
    ),
    "many dimensions": (changed(shape=[1] * 33 + [4]), "34 dimensions"),
    "shape as number": (changed(shape=4), "not an array"),
    "unknown dtype": (changed(dtype="F128"), "'F128'"),
    "dtype as number": (changed(dtype=4), "a number"),
    "bits within a byte": (changed(dtype="F4", shape=[9], data_offsets=[24, 28]), "within a byte"),
    "entry is no object": ({**GOOD, "bytes": [1]}, "an array"),
    "metadata is no object": ({**GOOD, "__metadata__": "x"}, "object of strings"),
    "metadata of numbers": ({**GOOD, "__metadata__": {"x": 1}}, "object of strings"),
    "half a surrogate": (
        {**GOOD, "\ud800": {"dtype": "U8", "shape": [0], "data_offsets": [28, 28]}},
        "Unicode",
    ),
    **{f"no {key}": ({"a": {k: v for k, v in BYTES.items() if k != key}}, f"no {key}") for key in BYTES},
}


@pytest.mark.parametrize("case", BAD)
def test_refuses(case):
    content, part = BAD[case]
    with pytest.raises(kp.InvalidArgumentError, match=part):
        parse(content)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[]", b" {}", b"{", b"{} x", b'{"a": NaN}', b'{"a": Infinity}', b'{"\xff": 1}', b"{\x00}",
        '{"a": 1}'.encode("utf-16"), b'{"a": ' + b"[" * 100_000, b'{"a": ' + b"9" * 10_000 + b"}",
    ],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_refuses_what_is_no_json_object(text):
    with pytest.raises(kp.InvalidArgumentError):
        parse_header(text, 0)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"__metadata__": {"k": "1", "k": "2"}}',
        '{"a": {"dtype": "U8", "dtype": "I8", "shape": [0], "data_offsets": [0, 0]}}',
    ],
)
def test_refuses_keys_that_come_twice(text):
    with pytest.raises(kp.InvalidArgumentError, match="twice"):
        parse_header(text.encode(), 0)


@pytest.mark.parametrize(
    "prefix, file_bytes, part",
    [
        (b"", 0, "0 bytes"),
        (b"1234567", 7, "7 bytes"),
        ((2**64 - 1).to_bytes(8, "little"), 2**40, "above the limit"),
        ((MOST_HEADER_BYTES + 1).to_bytes(8, "little"), 2**40, "above the limit"),
        ((100).to_bytes(8, "little"), 107, "only 99"),
    ],
)
def test_refuses_lengths_that_do_not_fit(prefix, file_bytes, part):
    with pytest.raises(kp.InvalidArgumentError, match=part):
        header_bytes(prefix, file_bytes)


# -- against the reference implementation --------------------------------------------------------------------


def reference_reads(text: bytes, data_bytes: int) -> bool:
    try:
        safetensors.deserialize(len(text).to_bytes(8, "little") + text + bytes(data_bytes))
    except Exception:
        return False
    return True


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**66) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
entries = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["U8", "F32", "BF16", "F4", "C64", "X"]) | json_values,
        "shape": st.lists(st.integers(0, 5), max_size=3) | json_values,
        "data_offsets": st.tuples(st.integers(0, 60), st.integers(0, 60)).map(list) | json_values,
    }
)
headers = st.dictionaries(st.text(max_size=3) | st.just("__metadata__"), entries | json_values, max_size=3)


@pytest.mark.sampled
@settings(max_examples=sampled(100, 300), deadline=None)
@given(headers.map(json.dumps).map(str.encode) | st.binary(max_size=60), st.integers(0, 60))
def test_whatever_comes_is_read_or_refused_with_a_typed_error(text, data_bytes):
    try:
        header = parse_header(text, data_bytes)
    except kp.InvalidArgumentError:
        return
    at = 0
    for name, entry in header.entries.items():
        assert entry.name == name and entry.offset == at and entry.nbytes >= 0
        at += entry.nbytes
    assert at == data_bytes


dtypes = st.sampled_from(["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "c8"]).map(
    np.dtype
)
shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=6).filter(
    lambda name: name != "__metadata__"
)


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(names, st.tuples(dtypes, shapes), max_size=5),
    st.dictionaries(names, names, max_size=2),
)
def test_what_is_built_is_read_by_us_and_by_the_reference(tensors, metadata):
    head, placed = build_header(
        kp.TensorIndex({name: np.zeros(shape, dtype) for name, (dtype, shape) in tensors.items()}).values(),
        metadata,
    )
    placed = [entry._replace(offset=entry.offset - len(head)) for entry in placed]
    data_bytes = sum(entry.nbytes for entry in placed)
    assert len(head) % 8 == 0
    content = {"__metadata__": metadata} if metadata else {}
    for entry in placed:
        content[entry.name] = {
            "dtype": entry.dtype,
            "shape": list(entry.shape),
            "data_offsets": [entry.offset, entry.offset + entry.nbytes],
        }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    assert head[8:].rstrip(b" ") == text
    for entry in placed:
        assert (
            entry.offset % max(1, tensors[entry.name][0].itemsize // (2 if entry.dtype == "C64" else 1)) == 0
        )
    header = parse_header(head[8:], data_bytes)
    assert header.metadata == metadata
    assert header.entries == {entry.name: entry for entry in placed}
    assert {name: (entry.numpy_dtype, entry.shape) for name, entry in header.entries.items()} == tensors
    for name, fields in safetensors.deserialize(head + bytes(data_bytes)):
        dtype, shape = tensors[name]
        assert tuple(fields["shape"]) == shape
        assert len(fields["data"]) == math.prod(shape) * dtype.itemsize


@settings(max_examples=200, deadline=None)
@given(headers.map(json.dumps).map(str.encode), st.integers(0, 60))
def test_what_the_reference_refuses_is_refused(text, data_bytes):
    try:
        parse_header(text, data_bytes)
    except kp.InvalidArgumentError:
        return
    assert reference_reads(text, data_bytes)


@pytest.mark.parametrize(
    "case", [name for name in BAD if name not in ("many dimensions", "overflow hidden by 0")]
)
def test_the_reference_agrees_on_what_is_bad(case):
    text = json.dumps(BAD[case][0]).encode()
    assert not reference_reads(text, 28)


@pytest.mark.parametrize(
    "dtype, part",
    [
        (np.dtype(np.complex128), "real and imaginary"),
        (np.dtype([("x", "f4"), ("y", "i4")]), "fields"),
        (np.dtype("V3"), "its bytes"),
    ],
)
def test_dtypes_that_the_format_lacks_are_refused_by_name(dtype, part):
    with pytest.raises(kp.ArgumentTypeError, match=part):
        build_header(kp.TensorIndex({"a": np.zeros(2, dtype)}).values(), {})


def test_header_above_the_limit_is_refused_when_saving():
    with pytest.raises(kp.InvalidArgumentError, match="limit"):
        build_header([], {"long": "x" * MOST_HEADER_BYTES})
