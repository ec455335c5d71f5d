"""IRPA archives: written and read by the documented layout, by hand and with IREE's own package."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import kompute_py as kp
from kompute_py._files import irpa

PREFIX, SEGMENTS = "<4sHHQQQ", "<QQQQQQQ"
FLOAT = {"type": "Tensor", "dtype": "float32", "shape": [2, 3]}
DTYPES = ["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "c8", "c16"]


def described(**fields):
    return b"TENSORv0:" + json.dumps({**FLOAT, **fields}).encode()


def data_entry(offset, length):
    return 2, struct.pack("<QQ", offset, length)


def splat_entry(length, pattern):
    return 1, struct.pack("<Q16sB", length, pattern, len(pattern))


def archive(entries, data=b"", *, following=0, version=0, magic=b"IRPA", count=None, shift=0):
    """An archive by hand: `entries` are (name, metadata, (type, body))."""
    table, words = b"", b""
    for name, kept, (kind, body) in entries:
        places = (len(words), len(name), len(words) + len(name), len(kept))
        words += name + kept
        table += struct.pack("<QIQQQQQQ", 60 + len(body), kind, 0, *places, 0) + body
        table += bytes(-len(table) % 16)
    at = 96
    head = struct.pack(PREFIX, magic, version, 0, 88, following, 0)
    head += struct.pack(
        SEGMENTS, len(entries) if count is None else count, at, len(table), at + len(table), len(words),
        at + len(table) + len(words), len(data) + shift,
    )  # fmt: skip
    return head.ljust(at, b"\0") + table + words + data


def arrays():
    rng = np.random.default_rng(1)
    made = {f"of {code}": rng.integers(0, 2, (3, 5)).astype(code) for code in DTYPES}
    made["größe"] = np.array(3.5)
    made["none"] = np.zeros((0, 4), np.float32)
    return made


@pytest.mark.capability(
    "I80", "facts of one parameter", "kp.TensorFileEntry, kp.tensor_file_info", "reference/files"
)
def test_reads_an_archive_that_was_written_by_hand(mgr):
    values = np.arange(6, dtype=np.float32)
    kept = b"any bytes \xff"
    whole = archive(
        [
            (b"w", described(), data_entry(4, 24)),
            (b"left out", b"", (0, b"")),
            (b"older", described().replace(b"TENSORv0", b"PYTORCH"), data_entry(4, 24)),
            (b"opaque", kept, data_entry(0, 4)),
            (b"splat", described(dtype="float64", shape=[3]), splat_entry(24, struct.pack("<d", 2.5))),
            (b"bytes", b"", splat_entry(6, b"\1\2")),
        ],
        b"abcd" + values.tobytes(),
    )
    info = kp.tensor_file_info(whole)
    assert {name: (entry.dtype, entry.shape, entry.is_splat) for name, entry in info.items()} == {
        "w": ("F32", (2, 3), False), "older": ("F32", (2, 3), False), "opaque": ("U8", (4,), False),
        "splat": ("F64", (3,), True), "bytes": ("U8", (6,), True),
    }  # fmt: skip
    assert info["opaque"].metadata == kept and info["splat"].splat == struct.pack("<d", 2.5)
    loaded = kp.load_tensors(whole, mgr)
    np.testing.assert_array_equal(loaded["w"].read(), values.reshape(2, 3))
    np.testing.assert_array_equal(loaded["older"].read(), values.reshape(2, 3))
    assert loaded["opaque"].read().tobytes() == b"abcd"
    assert loaded["splat"].read().tolist() == [2.5, 2.5, 2.5]
    assert loaded["bytes"].read().tobytes() == b"\1\2\1\2\1\2"
    for name, tensor in loaded.items():
        np.testing.assert_array_equal(info.read(name), tensor.read())


def test_archives_that_follow_each_other_are_one():
    second = archive([(b"b", b"", data_entry(1, 2))], b"xyz")
    first = archive([(b"a", b"", data_entry(0, 3))], b"abc")
    room = -(-len(first) // 16) * 16
    first = archive([(b"a", b"", data_entry(0, 3))], b"abc", following=room)
    index = kp.tensor_file_info(first.ljust(room, b"\0") + second)
    assert [index.read(name).tobytes() for name in ("a", "b")] == [b"abc", b"yz"]


@pytest.mark.capability("I77", "IRPA archives, written", "kp.save_tensors", "guides/parameters")
def test_what_is_saved_is_laid_out_as_documented():
    index = kp.TensorIndex({"w": np.arange(6, dtype=np.float32).reshape(2, 3)})
    index.add_splat("s", 7, (1000, 1000), np.int16)
    index.add("note", np.arange(3, dtype=np.uint8), metadata=b"mine")
    file = io.BytesIO()
    kp.save_tensors(file, index, format="irpa")
    whole = file.getvalue()
    assert len(whole) < 2000
    magic, major, _, size, following, flags = struct.unpack_from(PREFIX, whole)
    assert (magic, major, size, following, flags) == (b"IRPA", 0, 88, 0, 0)
    count, table, _, words, _, data, data_size = struct.unpack_from(SEGMENTS, whole, 32)
    assert (count, table % 16, data % 64, data + data_size) == (3, 0, 0, len(whole))
    at, seen = table, {}
    for _ in range(count):
        entry, kind, _, name, length, kept, kept_length, _ = struct.unpack_from("<QIQQQQQQ", whole, at)
        body = whole[at + 60 : at + entry]
        text = whole[words + kept : words + kept + kept_length]
        seen[whole[words + name : words + name + length]] = kind, text, body
        at += -(-entry // 16) * 16
    assert seen[b"s"][0] == 1 and seen[b"s"][2] == struct.pack("<Q16sB", 2_000_000, b"\7\0", 2)
    offset, length = struct.unpack("<QQ", seen[b"w"][2])
    assert whole[data + offset : data + offset + length] == np.arange(6, dtype=np.float32).tobytes()
    assert json.loads(seen[b"w"][1].removeprefix(b"TENSORv0:"))["shape"] == [2, 3]
    assert seen[b"note"][1] == b"mine"


@pytest.mark.capability(
    "I81", "a dict of arrays and tensors saved in one call", "kp.save_tensors", "guides/parameters"
)
@pytest.mark.parametrize("memory_type", list(kp.MemoryTypes))
def test_what_is_saved_is_loaded(mgr, tmp_path, memory_type):
    path = tmp_path / "model.irpa"
    wanted = {**arrays(), "half": np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)}
    index = kp.TensorIndex(wanted)
    for code, value in (("f2", 0.5), ("f8", -2.0), ("c8", 1 + 2j), ("c16", 3 - 1j), ("i1", -1)):
        wanted[f"splat {code}"] = np.full((3, 2), value, code)
        index.add_splat(f"splat {code}", value, (3, 2), code)
    kp.save_tensors(path, index)
    loaded = kp.load_tensors(path, mgr, memory_type=memory_type)
    assert list(loaded) == list(wanted)
    again = tmp_path / "again.irpa"
    kp.save_tensors(again, loaded)
    for found in (loaded, kp.load_tensors(again, mgr)):
        for name, array in wanted.items():
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            np.testing.assert_array_equal(found[name].read(), array)


@pytest.mark.capability(
    "I75", "constant parameters without bytes", "TensorIndex.add_splat", "guides/parameters"
)
def test_a_splat_never_exists_on_the_host(mgr):
    file = io.BytesIO()
    index = kp.TensorIndex()
    index.add_splat("large", 2.5, (1 << 24,))
    kp.save_tensors(file, index, format="irpa")
    assert len(file.getvalue()) < 1000
    large = kp.load_tensors(file, mgr)["large"]
    assert large.nbytes == 1 << 26 and large[-3:].read().tolist() == [2.5] * 3


def test_metadata_of_the_file_is_refused(tmp_path):
    with pytest.raises(kp.InvalidArgumentError, match=r"'epoch' is metadata of the file.*metadata=\{\}"):
        kp.save_tensors(tmp_path / "m.irpa", {"a": np.ones(2)}, {"epoch": "3"})
    assert list(tmp_path.iterdir()) == []


W = (b"w", described(), data_entry(0, 24))
BAD = {
    "cut in the header": (archive([W], bytes(24))[:60], "88|header"),
    "cut in the data": (archive([W], bytes(24))[:-1], "data ends at byte"),
    "another version": (archive([W], bytes(24), version=1), "version 1.0"),
    "more entries than the table": (archive([W], bytes(24), count=2), "ends before entry 1"),
    "many entries": (archive([W], bytes(24), count=2**63), "ends before entry 1"),
    "data beyond the segment": (archive([(b"w", b"", data_entry(1, 24))], bytes(24)), "ends at byte 25"),
    "data beyond 64 bits": (archive([(b"w", b"", data_entry(2**64 - 1, 2))], bytes(24)), "ends at byte"),
    "twice": (archive([W, W], bytes(24)), "'w' twice"),
    "no name in UTF-8": (archive([(b"\xff", b"", data_entry(0, 2))], bytes(24)), "not UTF-8"),
    "an unknown type": (archive([(b"w", b"", (9, b""))]), "type 9"),
    "another file": (archive([(b"w", b"", (3, bytes(32)))]), "another file"),
    "an entry that is too short": (archive([(b"w", b"", (2, bytes(8)))]), "8 bytes too short"),
    "a pattern of 3 bytes": (archive([(b"w", b"", splat_entry(6, b"abc"))]), "3 bytes"),
    "a pattern of no bytes": (archive([(b"w", b"", splat_entry(6, b""))]), "0 bytes"),
    "a pattern that does not fit": (archive([(b"w", b"", splat_entry(6, b"abcd"))]), "over 6 bytes"),
    "another size": (archive([(b"w", described(shape=[7]), data_entry(0, 24))], bytes(24)), "28 bytes"),
    "an overflowing shape": (
        archive([(b"w", described(shape=[2**62, 2**62, 0]), data_entry(0, 0))]),
        "larger than any memory",
    ),
    "a negative shape": (archive([(b"w", described(shape=[-6]), data_entry(0, 24))], bytes(24)), "shape"),
    "a shape of a bool": (archive([(b"w", described(shape=[True]), data_entry(0, 4))], bytes(24)), "shape"),
    "an unknown dtype": (archive([(b"w", described(dtype="f99"), data_entry(0, 24))], bytes(24)), "'f99'"),
    "no tensor": (archive([(b"w", described(type="Bag"), data_entry(0, 24))], bytes(24)), "'Bag'"),
    "no JSON": (archive([(b"w", b"TENSORv0:{", data_entry(0, 24))], bytes(24)), "does not give its type"),
    "no object": (archive([(b"w", b"TENSORv0:3", data_entry(0, 24))], bytes(24)), "does not give its type"),
    "deep JSON": (
        archive([(b"w", b"TENSORv0:" + b"[" * 100_000, data_entry(0, 24))], bytes(24)),
        "does not give its type",
    ),
    "a chain that goes nowhere": (archive([W], bytes(24), following=1 << 40), "not a place for a header"),
    "a chain to itself": (archive([W], bytes(24), following=16), "not a place for a header"),
    "a chain to no archive": (archive([W], bytes(24), following=96), "begins with"),
}


@pytest.mark.parametrize("case", BAD)
def test_refuses(case):
    whole, part = BAD[case]
    with pytest.raises((kp.InvalidArgumentError, kp.UnimplementedError), match=part):
        kp.tensor_file_info(whole)


def test_headers_that_repeat_a_large_table_are_bounded(monkeypatch):
    monkeypatch.setattr(irpa, "MOST_HEADER_BYTES", 1000)
    whole = b""
    for _ in range(9):
        whole += archive([(b"left out", b"", (0, bytes(20)))], following=192).ljust(192, b"\0")
    with pytest.raises(kp.InvalidArgumentError, match="more than 1000 bytes"):
        kp.tensor_file_info(whole)


# -- with IREE's package -------------------------------------------------------------------------------------


def written_by_iree(path):
    """How iree.irpa, which lies here, was made by iree-base-runtime 3.13."""
    iree = pytest.importorskip("iree.runtime")  # on platforms that it has no wheels for
    index = iree.ParameterIndex()
    for name, array in arrays().items():
        if array.size:  # it does not write others
            iree.parameter_index_add_numpy_ndarray(index, name, array)
    index.add_splat("splat", np.float32(1.5), 16, metadata="mine")
    index.create_archive_file(str(path))
    return path


@pytest.mark.parametrize("now", [False, True], ids=["years ago", "now"])
def test_reads_what_iree_wrote(mgr, tmp_path, now):
    path = written_by_iree(tmp_path / "now.irpa") if now else Path(__file__).parent / "iree.irpa"
    index, loaded = kp.tensor_file_info(path), kp.load_tensors(path, mgr)
    wanted = {name: array for name, array in arrays().items() if array.size}
    assert set(index) == {*wanted, "splat"}
    for name, array in wanted.items():
        assert (loaded[name].dtype, loaded[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(loaded[name].read(), array)
    assert index["splat"].is_splat and index["splat"].metadata == b"mine"
    assert loaded["splat"].read().view(np.float32).tolist() == [1.5] * 4


def test_iree_reads_what_is_saved(mgr, tmp_path):
    iree = pytest.importorskip("iree.runtime")
    kept = {**arrays(), "on a device": mgr.tensor(np.arange(12, dtype=np.int32).reshape(3, 4))}
    index = kp.TensorIndex(kept)
    index.add_splat("splat", 1.5, (4, 5), np.float32)
    index.add("opaque", np.arange(3, dtype=np.uint8), metadata=b"mine")
    path = tmp_path / "ours.irpa"
    kp.save_tensors(path, index)
    there = iree.ParameterIndex()
    there.load(str(path))
    entries = dict(there.items())
    assert list(entries) == list(index)
    for name, array in kept.items():
        found = iree.parameter_index_entry_as_numpy_ndarray(entries[name])
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(found, np.asarray(array))
    splat, opaque = entries["splat"], entries["opaque"]
    assert splat.is_splat and splat.length == 80
    assert bytes(splat.splat_pattern) == np.float32(1.5).tobytes()
    assert json.loads(splat.metadata.removeprefix(b"TENSORv0:"))["shape"] == [4, 5]
    assert opaque.metadata == b"mine" and bytes(opaque.file_view) == b"\0\1\2"
