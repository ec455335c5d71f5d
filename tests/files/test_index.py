"""TensorIndex: tensors of files, memory and devices by name; loaded, saved, read and renamed."""

from __future__ import annotations

import gc
import io

import numpy as np
import pytest
import safetensors.numpy

import kompute_py as kp

WEIGHTS = {
    "model.0.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "model.0.bias": np.arange(3, dtype=np.float16),
    "model.1.weight": np.arange(3, dtype=np.int32),
}


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "model.safetensors"
    safetensors.numpy.save_file(WEIGHTS, made, {"epoch": "3"})
    return made


def same(found, wanted):
    assert set(found) == set(wanted)
    for name, array in wanted.items():
        got = found.read(name) if isinstance(found, kp.TensorIndex) else found[name].read()
        assert (got.dtype, got.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(got, array)


@pytest.mark.capability(
    "I82", "NumPy's arrays in and out of parameter files", "TensorIndex.add", "reference/files"
)
def test_arrays_are_saved_as_they_are(mgr, tmp_path):
    odd = {
        "turned": np.arange(6.0).reshape(2, 3).T, "strided": np.arange(10)[::3],
        "swapped": np.arange(4, dtype=">f4"), "scalar": np.float64(3.5), "list": [1, 2, 3],
        "none": np.zeros((0, 3), np.float32), "device": mgr.tensor([1, 2]),
    }  # fmt: skip
    kp.save_tensors(tmp_path / "m.safetensors", odd)
    found = safetensors.numpy.load_file(tmp_path / "m.safetensors")
    assert set(found) == set(odd)
    for name, array in odd.items():
        np.testing.assert_array_equal(found[name], np.asarray(array))


@pytest.mark.capability(
    "I78",
    "safetensors, IRPA and GGUF, from paths, open files and bytes",
    "kp.load_tensors",
    "guides/parameters",
)
@pytest.mark.parametrize("format", ["safetensors", "irpa"])
def test_open_files_and_bytes(mgr, tmp_path, format):
    memory = io.BytesIO()
    kp.save_tensors(memory, WEIGHTS, format=format)
    whole = memory.getvalue()
    with open(tmp_path / "model", "w+b") as file:
        kp.save_tensors(file, WEIGHTS, format=format)
        file.flush()
        assert (tmp_path / "model").read_bytes() == whole
        for source in (file, memory, whole, bytearray(whole), memoryview(whole), str(tmp_path / "model")):
            same(kp.load_tensors(source, mgr), WEIGHTS)
            same(kp.tensor_file_info(source), WEIGHTS)
            same(kp.load_tensors(source, mgr, format=format), WEIGHTS)


class OnlyReads:
    """A file object that has the least that is needed."""

    def __init__(self, data):
        self._file = io.BytesIO(data)

    def seek(self, *where):
        return self._file.seek(*where)

    def read(self, count):
        return self._file.read(min(count, 1000))


def test_file_objects_of_other_libraries(mgr):
    written = []
    kp.save_tensors(type("File", (), {"write": lambda self, data: written.append(bytes(data))})(),
                    {"a": np.arange(5000)}, format="irpa")  # fmt: skip
    same(kp.load_tensors(OnlyReads(b"".join(written)), mgr), {"a": np.arange(5000)})


@pytest.mark.capability(
    "I74", "an index of named tensors from several files", "kp.TensorIndex", "guides/parameters"
)
def test_an_index_of_several_sources_is_loaded_and_saved(mgr, path, tmp_path):
    (tmp_path / "raw.bin").write_bytes(b"head" + np.arange(4, dtype=np.uint16).tobytes())
    index = kp.TensorIndex({"array": np.ones((2, 2)), "tensor": mgr.tensor([4, 5])})
    index.add_splat("splat", 2.5, (3,))
    index.add_range("range", tmp_path / "raw.bin", 4, (2, 2), np.uint16)
    index.add_file(path, scope="a", names="model.0.*")
    index.add_file(path, scope="b")
    wanted = {
        "array": np.ones((2, 2)),
        "tensor": np.float32([4, 5]),
        "splat": np.float32([2.5] * 3),
        "range": np.arange(4, dtype=np.uint16).reshape(2, 2),
        **{f"a::{name}": array for name, array in WEIGHTS.items() if ".0." in name},
        **{f"b::{name}": array for name, array in WEIGHTS.items()},
    }
    assert index.metadata == {"epoch": "3"} and index.nbytes == sum(each.nbytes for each in wanted.values())
    same(index, wanted)
    same(kp.load_tensors(index, mgr), wanted)
    same(kp.load_tensors(index.scoped("b"), mgr), WEIGHTS)
    for name in ("all.safetensors", "all.irpa"):
        kp.save_tensors(tmp_path / name, index, metadata={})
        same(kp.load_tensors(tmp_path / name, mgr), wanted)
    with pytest.raises(kp.NotFoundError, match=r"scope 'c'; its scopes: a, b"):
        index.scoped("c")
    with pytest.raises(kp.InvalidArgumentError, match=r"'b::model.0.weight' already"):
        index.add_file(path, scope="b")


def test_saving_over_a_file_of_the_index(path):
    index = kp.tensor_file_info(path)
    kp.save_tensors(path, index)
    same(kp.tensor_file_info(path), WEIGHTS)
    with pytest.raises(kp.UnavailableError, match="changed the file"):
        index.read("model.0.bias")


def test_a_file_that_changed_after_its_index_was_read_is_refused(mgr, path, tmp_path):
    index = kp.tensor_file_info(path)
    safetensors.numpy.save_file({"other": np.ones(100)}, path)
    with pytest.raises(kp.UnavailableError, match="changed the file"):
        kp.load_tensors(index, mgr)
    with pytest.raises(kp.UnavailableError, match="changed the file"):
        kp.save_tensors(tmp_path / "m.irpa", index, {})
    assert not (tmp_path / "m.irpa").exists()


@pytest.mark.capability("I79", "parameters by scope and pattern", "TensorIndex.scoped", "guides/parameters")
@pytest.mark.parametrize(
    "names, wanted",
    [
        ({"w": "model.0.weight"}, {"w": "model.0.weight"}),
        ({"*.w": "model.*.weight"}, {"0.w": "model.0.weight", "1.w": "model.1.weight"}),
        ({"*-*": "model.*.b*"}, {"0-ias": "model.0.bias"}),
        ({"a": "model.0.bias", "b": "model.0.bias"}, {"a": "model.0.bias", "b": "model.0.bias"}),
        ({"layers.*": "model.*"}, {f"layers{name[5:]}": name for name in WEIGHTS}),
    ],
)
def test_names_are_bound_by_pattern(mgr, path, names, wanted):
    loaded = kp.load_tensors(path, mgr, names=names)
    same(loaded, {new: WEIGHTS[old] for new, old in wanted.items()})
    assert all(tensor.name == name for name, tensor in loaded.items())
    index = kp.TensorIndex()
    index.add_file(path, names=names)
    same(index, {new: WEIGHTS[old] for new, old in wanted.items()})


@pytest.mark.parametrize(
    "names, error, part",
    [
        ({"w": "model.*"}, kp.InvalidArgumentError, "the same number of *"),
        ({"w*": "model.9.*"}, kp.NotFoundError, "matching 'model.9"),
        ({"w": "weight"}, kp.NotFoundError, "no tensor 'weight'"),
        ({"w": 3}, kp.ArgumentTypeError, "'w': 3"),
        (
            {"a": "model.0.bias", "*": "*"} | {"model.0.bias": "model.0.weight"},
            kp.InvalidArgumentError,
            "two",
        ),
    ],
)
def test_names_that_do_not_bind(path, names, error, part):
    with pytest.raises(error, match=part):
        kp.TensorIndex().add_file(path, names=names)


@pytest.mark.capability(
    "I65 I76",
    "ranges of files and memory, read when needed and released",
    "TensorIndex.add_range",
    "guides/parameters",
)
def test_sources_are_released_once_nothing_needs_them(path):
    released = []
    index = kp.tensor_file_info(path.read_bytes(), release=lambda: released.append("bytes"))
    more = kp.TensorIndex()
    more.add_file(index, scope="a")
    more.add_range("r", bytes(8), 0, 2, release=lambda: released.append("range"))
    del index
    gc.collect()
    assert released == []
    part = more.scoped("a")
    del more
    gc.collect()
    assert released == ["range"]
    del part
    gc.collect()
    assert released == ["range", "bytes"]


@pytest.mark.parametrize(
    "use, error, part",
    [
        (lambda i, p: i.add("a", "text"), kp.ArgumentTypeError, "'a'"),
        (lambda i, p: i.add("a", np.ones(2), metadata="text"), kp.ArgumentTypeError, "give bytes"),
        (lambda i, p: i.add("a", np.zeros(2, "m8[s]")), kp.ArgumentTypeError, "dtype"),
        (lambda i, p: i.add(3, np.ones(2)), kp.ArgumentTypeError, "name of a tensor is a str"),
        (lambda i, p: i.add("there", np.ones(2)), kp.InvalidArgumentError, "has a tensor 'there' already"),
        (lambda i, p: i.add_splat("a", 300, 3, np.uint8), kp.InvalidArgumentError, "'a'"),
        (lambda i, p: i.add_splat("a", 1, -3), kp.InvalidArgumentError, "-3"),
        (lambda i, p: i.add_splat("a", 1, (1 << 62, 1 << 62)), kp.InvalidArgumentError, "any memory"),
        (lambda i, p: i.add_range("a", p, -4, 3), kp.InvalidArgumentError, "bytes -4 to 8"),
        (lambda i, p: i.add_range("a", p, 0, 10**6), kp.InvalidArgumentError, "4000000 of the file"),
        (lambda i, p: i.add_range("a", "gone", 0, 3), kp.NotFoundError, "no file 'gone'"),
        (lambda i, p: i.add_range("a", 3, 0, 3), kp.ArgumentTypeError, "path is an int"),
        (lambda i, p: i.add_range("a", p, 0, 3, "Q4_K"), kp.InvalidArgumentError, "blocks of 256"),
        (lambda i, p: i.add_file(p, format="zip"), kp.InvalidArgumentError, "known: safetensors, irpa, gguf"),
        (lambda i, p: i.add_file(p, format="irpa"), kp.InvalidArgumentError, "not b'IRPA'"),
        (lambda i, p: i.add_file(p, scope=3), kp.ArgumentTypeError, "scope is an int"),
        (lambda i, p: i.add_file(p, release=3), kp.ArgumentTypeError, "release is an int"),
        (lambda i, p: i.add_file(io.StringIO("text")), kp.ArgumentTypeError, 'mode "rb"'),
        (lambda i, p: i.read("gone"), kp.NotFoundError, "no tensor 'gone'"),
        (lambda i, p: kp.TensorIndex(3), kp.ArgumentTypeError, "tensors is an int"),
        (lambda i, p: kp.TensorIndex({}, 3), kp.ArgumentTypeError, "metadata is an int"),
        (lambda i, p: kp.save_tensors(io.BytesIO(), i), kp.InvalidArgumentError, "give format="),
        (lambda i, p: kp.save_tensors("m.bin", i), kp.InvalidArgumentError, r"'m.bin' names no format"),
        (lambda i, p: kp.save_tensors("m", i, format="npz"), kp.InvalidArgumentError, "format is 'npz'"),
    ],
)  # fmt: skip
def test_refuses(path, use, error, part):
    index = kp.TensorIndex({"there": np.ones(1)})
    with pytest.raises(error, match=part):
        use(index, path)
    assert list(index) == ["there"]


def test_a_closed_file_is_a_typed_error():
    file = io.BytesIO()
    kp.save_tensors(file, WEIGHTS, format="irpa")
    index = kp.tensor_file_info(file)
    file.close()
    with pytest.raises(kp.UnavailableError, match="closed"):
        index.read("model.0.bias")
    with pytest.raises(kp.UnavailableError, match="closed"):
        kp.save_tensors(file, WEIGHTS, format="irpa")


def test_metadata_of_entries_needs_an_archive(tmp_path):
    index = kp.TensorIndex()
    index.add("a", np.ones(2), metadata=b"mine")
    with pytest.raises(kp.InvalidArgumentError, match=r"'a' has metadata of its own.*irpa"):
        kp.save_tensors(tmp_path / "m.safetensors", index)
    assert repr(index) == "<TensorIndex of 1 tensors, 16 bytes>"


def test_a_broadcast_array_beyond_the_hosts_memory():
    index = kp.TensorIndex()
    with pytest.raises(kp.OutOfMemoryError, match="'w': an array of shape"):
        index.add("w", np.broadcast_to(np.float32(1), (1 << 40,)))
    assert not index
