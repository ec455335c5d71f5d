"""GGUF files: read against the gguf package, which writes them here; dequantised bit for bit as it does."""

from __future__ import annotations

import struct

import gguf
import numpy as np
import pytest

import kompute_py as kp
from kompute_py._files import entries, quantized
from kompute_py._files import gguf as format_module

KINDS = list(quantized.KINDS)
KEPT = {"F16": np.float16, "BF16": None}


def blocks_of(kind, rows=3, across=2, seed=0):
    """Random blocks, as bytes of shape (rows, bytes), with finite scales and some subnormal ones."""
    rng = np.random.default_rng([seed, *kind.encode()])
    count, size = entries.BLOCKS.get(kind, (1, 2))
    across *= 32 if size == 2 else 1
    made = rng.integers(0, 256, (rows, across, size), np.uint8)
    scales = {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}
    for at in scales.get(kind, (0, 2) if kind in ("Q4_1", "Q5_1") else (0,)):
        values = rng.normal(size=(rows, across)).astype(np.float16)
        values.reshape(-1)[:4] = np.float16([0, -0.0, 6e-8, -3e-5])  # zeros and subnormal numbers
        made[:, :, at : at + 2] = values[..., None].view(np.uint8)
    if kind in KEPT:
        halfs = made.reshape(-1).view(np.uint16)
        halfs[:8] = [0, 0x8000, 1, 0x03FF, 0x7BFF, 0x7F80 if kind == "BF16" else 0x7C00, 0xFC00, 0x8001]
    return made.reshape(rows, -1), count


def reference(blocks, kind):
    if kind == "F16":
        return blocks.view(np.float16).astype(np.float32)
    return gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType[kind])


def same_bits(got, wanted):
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(got), ~numbers)
    np.testing.assert_array_equal(got.view(np.uint32)[numbers], wanted.view(np.uint32)[numbers])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.gguf"


@pytest.fixture
def model(path):
    """A file that the gguf package wrote, with a tensor of each kind and metadata of each type."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint8("u8", 200)
    writer.add_int16("i16", -3)
    writer.add_float32("f32", 0.5)
    writer.add_float64("f64", 0.1)
    writer.add_uint64("u64", 1 << 40)
    writer.add_bool("yes", True)
    writer.add_string("name", "größe")
    writer.add_array("tokens", ["a", "b", "ü"])
    writer.add_array("numbers", [1, 2, 3])
    for kind in KINDS:
        writer.add_tensor(kind, blocks_of(kind)[0], raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.add_tensor("plain", np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    writer.add_tensor("ints", np.arange(5, dtype=np.int64))
    writer.add_tensor("double", np.arange(3, dtype=np.float64))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_reads_what_the_reference_wrote(mgr, model):
    info = kp.tensor_file_info(model)
    theirs = {tensor.name: tensor for tensor in gguf.GGUFReader(model).tensors}
    assert set(info) == set(theirs)
    for name, entry in info.items():
        assert entry.dtype == theirs[name].tensor_type.name
        assert entry.shape == tuple(map(int, theirs[name].shape))[::-1]
        assert (entry.offset, entry.nbytes) == (theirs[name].data_offset, theirs[name].n_bytes)
    assert info["Q4_K"].numpy_shape == (3, 288) and info["Q4_K"].numpy_dtype == np.uint8
    wanted = {
        "general.architecture": "llama", "u8": 200, "i16": -3, "f32": 0.5, "f64": 0.1, "u64": 1 << 40,
        "yes": True, "name": "größe", "tokens": ["a", "b", "ü"],
    }  # fmt: skip
    assert {key: info.metadata[key] for key in wanted} == wanted
    assert info.metadata["numbers"].tolist() == [1, 2, 3]
    loaded = kp.load_tensors(model, mgr)
    for name, tensor in loaded.items():
        assert tensor.read().tobytes() == theirs[name].data.tobytes()
    assert loaded["Q4_K"].dtype == np.uint8 and loaded["Q4_K"].shape == (3, 288)
    assert loaded["F16"].dtype == np.float16
    assert loaded["plain"].read().tolist() == np.arange(24).reshape(2, 3, 4).tolist()


def test_dequantizes_while_loading(mgr, model):
    loaded = kp.load_tensors(model, mgr, dequantize=True)
    for kind in KINDS:
        same_bits(loaded[kind].read(), reference(blocks_of(kind)[0], kind))
    assert loaded["ints"].dtype == np.int64 and loaded["double"].dtype == np.float64


@pytest.mark.capability("", "quantised tensors", "kp.dequantize", "guides/parameters")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("memory_type", ["device", "storage", "host"])
def test_dequantizes_tensors(mgr, kind, memory_type):
    blocks, count = blocks_of(kind, rows=2, across=3, seed=1)
    made = kp.dequantize(mgr.tensor_t(blocks, memory_type), kind)
    assert made.memory_type().name == memory_type and made.shape[-1] % count == 0
    same_bits(made.read(), reference(blocks, kind))


@pytest.mark.parametrize("kind", ["Q5_0", "Q6_K"])  # of blocks that are not a multiple of 4 bytes
def test_large_tensors_go_in_pieces(mgr, model, kind, monkeypatch):
    monkeypatch.setattr(quantized, "_PIECE", 1024)
    blocks, _ = blocks_of(kind, rows=7, across=11, seed=2)
    wanted = reference(blocks, kind)
    same_bits(kp.dequantize(mgr.tensor_t(blocks), kind).read(), wanted)
    index = kp.TensorIndex()
    index.add_range("w", b"12345" + blocks.tobytes(), 5, wanted.shape, kind)
    told = []
    loaded = kp.load_tensors(index, mgr, dequantize=True, progress=lambda *each: told.append(each))
    same_bits(loaded["w"].read(), wanted)
    assert told[-1] == (blocks.nbytes, blocks.nbytes, "w") and len(told) > 3


def test_nothing_is_dequantized_to_nothing(mgr):
    assert kp.dequantize(mgr.zeros((0, 18), np.uint8), "Q4_0").shape == (0, 32)
    assert kp.dequantize(mgr.tensor_t(np.ones((2, 3), np.float16)), "F16").read().tolist() == [[1] * 3] * 2


def test_kinds_that_are_not_converted_are_refused_before_anything_is_loaded(mgr, path):
    writer = gguf.GGUFWriter(path, "llama")
    kind = gguf.GGMLQuantizationType.IQ2_XXS
    writer.add_tensor("odd", np.zeros((1, 66), np.uint8), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert kp.load_tensors(path, mgr)["odd"].shape == (1, 66)
    with pytest.raises(kp.UnimplementedError, match=r"'odd' has the type 'IQ2_XXS'.*known: F16, Q4_0"):
        kp.load_tensors(path, mgr, dequantize=True)


@pytest.mark.parametrize(
    "tensor, kind, error, part",
    [
        (lambda m: m.zeros((2, 17), np.uint8), "Q4_0", kp.InvalidArgumentError, "17 bytes on its last axis"),
        (lambda m: m.zeros((), np.uint8), "Q4_0", kp.InvalidArgumentError, "last axis"),
        (lambda m: m.zeros(18), "Q4_0", kp.ArgumentTypeError, "must be uint8"),
        (lambda m: m.zeros(18), "F16", kp.ArgumentTypeError, "must be uint8"),
        (lambda m: np.zeros(18, np.uint8), "Q4_0", kp.ArgumentTypeError, "an ndarray"),
        (lambda m: m.zeros(18, np.uint8), "Q9", kp.UnimplementedError, "'Q9'"),
        (lambda m: m.zeros(18, np.uint8), 3, kp.UnimplementedError, "type 3"),
    ],
)
def test_dequantize_refuses(mgr, tensor, kind, error, part):
    with pytest.raises(error, match=part):
        kp.dequantize(tensor(mgr), kind)


def test_sizes_of_blocks_are_those_of_the_reference():
    sizes = gguf.GGML_QUANT_SIZES
    assert all(sizes[gguf.GGMLQuantizationType[name]] == size for name, size in entries.BLOCKS.items())
    assert all(gguf.GGMLQuantizationType(n).name == name for n, name in format_module._TYPES.items())


# -- files that are not what they should be ------------------------------------------------------------------


def text(value):
    return struct.pack("<Q", len(value)) + value


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def listed(name=b"w", shape=(4,), kind=0, offset=0):
    axes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + axes + struct.pack("<IQ", kind, offset)


def by_hand(tensors=(), pairs=(), data=bytes(32), version=3, magic=b"GGUF", counts=None):
    counts = counts or (len(tensors), len(pairs))
    head = struct.pack("<4sIQQ", magic, version, *counts) + b"".join(pairs) + b"".join(tensors)
    return head.ljust(-(-len(head) // 32) * 32, b"\0") + data


def test_reads_a_file_that_was_written_by_hand():
    values = np.arange(6, dtype=np.float32)
    whole = by_hand(
        [listed(b"none", (0,)), listed(b"w", (3, 2))], [pair(b"odd", 8, text(b"\xff"))], values.tobytes(), 2
    )
    index = kp.tensor_file_info(whole)
    assert index.read("w").tolist() == values.reshape(2, 3).tolist() and index.read("none").shape == (0,)
    assert index.metadata == {"odd": b"\xff"}


BAD = {
    "cut in the first fields": (by_hand()[:23], "within its first fields"),
    "another version": (by_hand(version=4), "version 4"),
    "version 1": (by_hand(version=1), "version 1"),
    "the other byte order": (by_hand(version=3 << 24), "big-endian"),
    "many tensors": (by_hand(counts=(2**63, 0)), "The file ends at byte|truncated"),
    "many pairs": (by_hand(counts=(0, 2**63), data=b""), "The file ends at byte"),
    "a long string": (by_hand(pairs=[struct.pack("<Q", 2**63)]), "The file ends at byte"),
    "a long array": (by_hand(pairs=[pair(b"a", 9, struct.pack("<IQ", 0, 2**63))]), "The file ends at byte"),
    "a long array of texts": (
        by_hand(pairs=[pair(b"a", 9, struct.pack("<IQ", 8, 2**63))], data=b""),
        "The file ends at byte",
    ),
    "an array of arrays": (by_hand(pairs=[pair(b"a", 9, struct.pack("<IQ", 9, 1))]), "array of arrays"),
    "an unknown type of metadata": (by_hand(pairs=[pair(b"a", 99, b"")]), "type 99"),
    "a bool of 2": (by_hand(pairs=[pair(b"a", 7, b"\2")]), "a bool that is 2"),
    "metadata twice": (by_hand(pairs=[pair(b"a", 0, b"\2")] * 2), "'a' twice"),
    "a name not in UTF-8": (by_hand([listed(b"\xff")]), "not UTF-8"),
    "twice": (by_hand([listed()] * 2), "'w' twice"),
    "many axes": (by_hand([listed(shape=(1,) * 5)]), "5 dimensions"),
    "an unknown type": (by_hand([listed(kind=5)]), "type 5 of ggml"),
    "half a block": (by_hand([listed(shape=(16,), kind=2)]), "whole number of blocks"),
    "blocks of no axis": (by_hand([listed(shape=(), kind=2)]), "whole number of blocks"),
    "beyond the file": (by_hand([listed(shape=(9,))]), "but the file has"),
    "an overflowing shape": (by_hand([listed(shape=(2**62, 2**62))]), "larger than any memory"),
    "an overflowing offset": (by_hand([listed(offset=2**64 - 32)]), "but the file has"),
    "an offset between": (by_hand([listed(offset=4)]), "multiple of the alignment, 32"),
    "an alignment of 0": (
        by_hand([listed()], [pair(b"general.alignment", 4, struct.pack("<I", 0))]),
        "not a power of two",
    ),
    "an alignment of 3": (
        by_hand([listed()], [pair(b"general.alignment", 4, struct.pack("<I", 3))]),
        "not a power of two",
    ),
    "an alignment of text": (by_hand([listed()], [pair(b"general.alignment", 8, text(b"32"))]), "'32'"),
}


@pytest.mark.parametrize("case", BAD)
def test_refuses(case):
    whole, part = BAD[case]
    with pytest.raises((kp.InvalidArgumentError, kp.UnimplementedError), match=part):
        kp.tensor_file_info(whole)


def test_every_cut_of_a_file_is_refused(model):
    whole = model.read_bytes()
    for size in [0, 3, 4, 23, 24, 100, 1000, len(whole) // 2, len(whole) - 32]:
        with pytest.raises(kp.InvalidArgumentError):
            kp.tensor_file_info(whole[:size], format="gguf")


def test_gguf_files_are_not_written(tmp_path):
    with pytest.raises(kp.UnimplementedError, match="GGUF files are read, not written"):
        kp.save_tensors(tmp_path / "m.gguf", {"a": np.ones(2)})
    with pytest.raises(kp.UnimplementedError, match="GGUF files are read, not written"):
        kp.save_tensors(tmp_path / "m", {"a": np.ones(2)}, format="gguf")
