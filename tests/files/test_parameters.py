"""Parameter files: tensors to and from safetensors files, against the reference package."""

from __future__ import annotations

import gc
import io
import json
import os
import stat
import sys

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import kompute_py as kp
from kompute_py._files import entries, progress, reading, writing
from kompute_py._files import tensors as parameters

MEMORY_TYPES = list(kp.MemoryTypes)
DTYPES = ["?", "u1", "i1", "u2", "i2", "f2", "u4", "i4", "f4", "u8", "i8", "f8", "c8"]


def arrays():
    rng = np.random.default_rng(1)
    made = {f"of {code}": rng.integers(0, 2, (3, 5)).astype(code) for code in DTYPES}
    made["layer.0.weight"] = rng.normal(size=(64, 32)).astype(np.float32)
    made["layer.0.bias"] = rng.normal(size=32).astype(np.float32)
    made["layer.1.weight"] = rng.normal(size=(32, 8)).astype(np.float32)
    made["größe"] = np.array(3.5)
    return made


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture
def reference(path):
    """A file of the reference package with `arrays()` in it."""
    safetensors.numpy.save_file(arrays(), path, {"framework": "none", "epoch": "7"})
    return path


def write_file(path, content, data=b""):
    text = json.dumps(content).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def left_beside(path):
    return [name for name in os.listdir(path.parent) if name != path.name]


# -- loading -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory_type", [None, *MEMORY_TYPES])
def test_loads_what_the_reference_saved(mgr, reference, memory_type):
    loaded = kp.load_tensors(reference, mgr, memory_type=memory_type)
    assert loaded.metadata == {"framework": "none", "epoch": "7"}
    assert set(loaded) == set(arrays())
    for name, array in arrays().items():
        tensor = loaded[name]
        assert (tensor.shape, tensor.dtype, tensor.name) == (array.shape, array.dtype, name)
        assert tensor.memory_type() == (memory_type or kp.MemoryTypes.device)
        np.testing.assert_array_equal(tensor.read(), array)


def test_order_is_that_of_the_file(mgr, reference):
    info = kp.tensor_file_info(reference)
    offsets = [entry.offset for entry in info.values()]
    assert offsets == sorted(offsets)
    assert list(kp.load_tensors(reference, mgr)) == list(info)


def test_default_manager(clean, reference):
    loaded = kp.load_tensors(reference, names="layer.0.bias")
    assert loaded["layer.0.bias"].manager is kp.manager()
    kp.manager().destroy()


def test_loaded_tensors_are_computed_with(mgr, reference):
    a = kp.load_tensors(reference, mgr, names="layer.0.bias")["layer.0.bias"]
    product = mgr.zeros(32)
    mgr.sequence().eval(kp.OpCopy([a, product])).eval(kp.OpSyncLocal([product]))
    np.testing.assert_array_equal(product.data(), arrays()["layer.0.bias"])


@pytest.mark.parametrize("piece", [4096, 8192 + 24])
@pytest.mark.parametrize("memory_type", ["device", "storage"])
def test_large_tensors_go_in_pieces(mgr, path, monkeypatch, piece, memory_type):
    monkeypatch.setattr(reading, "PIECE", piece)
    data = {"a": np.arange(9001, dtype=np.float64), "b": np.arange(5, dtype=np.uint8), "c": np.arange(7001.0)}
    safetensors.numpy.save_file(data, path)
    loaded = kp.load_tensors(path, mgr, memory_type=memory_type)
    for name, array in data.items():
        np.testing.assert_array_equal(loaded[name].read(), array)
    kp.save_tensors(path, loaded)
    for name, array in safetensors.numpy.load_file(path).items():
        np.testing.assert_array_equal(array, data[name])


@pytest.mark.parametrize(
    "names, wanted",
    [
        ("layer.0.bias", ["layer.0.bias"]),
        (["layer.0.bias", "größe"], ["größe", "layer.0.bias"]),
        ("layer.0.*", ["layer.0.weight", "layer.0.bias"]),
        ("layer.?.weight", ["layer.0.weight", "layer.1.weight"]),
        (["layer.[!0]*", "layer.1.weight"], ["layer.1.weight"]),
        ([], []),
    ],
)
def test_chooses_by_name_and_pattern(mgr, reference, names, wanted):
    loaded = kp.load_tensors(reference, mgr, names=names)
    assert set(loaded) == set(wanted)
    for name in wanted:
        np.testing.assert_array_equal(loaded[name].read(), arrays()[name])


def test_an_exact_name_comes_before_a_pattern(mgr, path):
    safetensors.numpy.save_file({"a[0]": np.ones(1), "a0": np.zeros(1)}, path)
    assert list(kp.load_tensors(path, mgr, names="a[0]")) == ["a[0]"]


def test_missing_names_list_near_ones(mgr, reference):
    with pytest.raises(kp.NotFoundError, match=r"'layer.0.wieght'; similar names: 'layer.0.weight'"):
        kp.load_tensors(reference, mgr, names="layer.0.wieght")
    with pytest.raises(kp.NotFoundError, match=r"matching 'zzz\*'; its 17 tensors are .*\.\.\."):
        kp.load_tensors(reference, mgr, names=["größe", "zzz*"])


@pytest.mark.parametrize("names", [3, [3], [b"layer.0.bias"]])
def test_names_of_another_type_are_refused(mgr, reference, names):
    with pytest.raises(kp.ArgumentTypeError):
        kp.load_tensors(reference, mgr, names=names)


def bfloat16_file(path):
    array = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    write_file(path, {"half": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}, array.tobytes())
    return array


def test_bfloat16_through_ml_dtypes(mgr, path):
    array = bfloat16_file(path)
    tensor = kp.load_tensors(path, mgr)["half"]
    assert tensor.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(tensor.read().view(np.uint16), array.view(np.uint16))
    kp.save_tensors(path, {"half": tensor})
    assert kp.tensor_file_info(path)["half"].dtype == "BF16"


def test_bfloat16_without_ml_dtypes_is_its_bits(mgr, path, monkeypatch):
    array = bfloat16_file(path)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    entries._small_float.cache_clear()
    try:
        with pytest.warns(kp.KomputeWarning, match="'half'.*BF16 as uint16.*install a recent ml_dtypes"):
            tensor = kp.load_tensors(path, mgr)["half"]
    finally:
        entries._small_float.cache_clear()
    np.testing.assert_array_equal(tensor.read(), array.view(np.uint16))


@pytest.mark.parametrize(
    "dtype, name",
    [
        ("float8_e4m3fn", "F8_E4M3"), ("float8_e4m3fnuz", "F8_E4M3FNUZ"), ("float8_e5m2", "F8_E5M2"),
        ("float8_e5m2fnuz", "F8_E5M2FNUZ"), ("float8_e8m0fnu", "F8_E8M0"),
    ],
)  # fmt: skip
def test_floats_of_8_bits_through_ml_dtypes(mgr, path, dtype, name):
    element = np.dtype(getattr(ml_dtypes, dtype))
    values = np.array([0.5, 1, 2, 8]).astype(element)
    write_file(path, {"small": {"dtype": name, "shape": [4], "data_offsets": [0, 4]}}, values.tobytes())
    loaded = kp.load_tensors(path, mgr)
    assert loaded["small"].dtype == element
    assert loaded["small"].read().astype(float).tolist() == [0.5, 1, 2, 8]
    kp.save_tensors(path, loaded)
    assert kp.tensor_file_info(path)["small"].dtype == name
    assert kp.load_tensors(path, mgr)["small"].read().tobytes() == values.tobytes()


def test_floats_of_8_bits_without_ml_dtypes_are_their_bits(mgr, path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    entries._small_float.cache_clear()
    try:
        write_file(path, {"small": {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [0, 4]}}, b"\1\2\3\4")
        with pytest.warns(kp.KomputeWarning, match=r"F8_E4M3 as uint8.*ml_dtypes"):
            tensor = kp.load_tensors(path, mgr)["small"]
        assert tensor.read().tobytes() == b"\1\2\3\4"
    finally:
        entries._small_float.cache_clear()


def test_floats_that_files_lack_are_refused(mgr, path):
    tensor = mgr.zeros(4, ml_dtypes.float8_e4m3b11fnuz)
    with pytest.raises(kp.ArgumentTypeError, match="float8_e4m3b11fnuz, which parameter files lack"):
        kp.save_tensors(path, {"t": tensor})


def test_what_no_tensor_can_hold_is_refused_and_the_rest_loads(mgr, path):
    content = {
        "tiny": {"dtype": "F4", "shape": [8], "data_offsets": [0, 4]},
        "none": {"dtype": "F32", "shape": [0, 3], "data_offsets": [4, 4]},
        "some": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]},
    }
    write_file(path, content, bytes(range(8)))
    assert kp.tensor_file_info(path)["tiny"].shape == (8,)
    with pytest.raises(kp.UnimplementedError, match="'tiny' has dtype F4"):
        kp.load_tensors(path, mgr, names=["tiny", "some"])
    assert kp.load_tensors(path, mgr, names=["none", "some"])["none"].shape == (0, 3)
    assert kp.load_tensors(path, mgr, names="some")["some"].read().tobytes() == b"\4\5\6\7"


# -- listing -------------------------------------------------------------------------------------------------


def test_lists_without_a_device_or_the_data(reference, monkeypatch):
    monkeypatch.setattr(reading.Pieces, "read", None)
    info = kp.tensor_file_info(reference)
    assert info.metadata == {"framework": "none", "epoch": "7"}
    assert {name: (e.shape, e.numpy_dtype) for name, e in info.items()} == {
        name: (array.shape, array.dtype) for name, array in arrays().items()
    }
    assert info.nbytes == sum(array.nbytes for array in arrays().values())
    with safetensors.safe_open(reference, "numpy") as theirs:
        assert set(theirs.keys()) == set(info)


# -- saving --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory_type", MEMORY_TYPES)
def test_the_reference_reads_what_was_saved(mgr, path, memory_type):
    tensors = {}
    for name, array in arrays().items():
        tensors[name] = mgr.empty(array.shape, array.dtype, memory_type)
        tensors[name].write(array)
    kp.save_tensors(path, tensors, {"by": "kompute_py"})
    with safetensors.safe_open(path, "numpy") as theirs:
        assert theirs.metadata() == {"by": "kompute_py"}
        assert set(theirs.keys()) == set(tensors)
        for name, array in arrays().items():
            got = theirs.get_tensor(name)
            assert (got.dtype, got.shape) == (array.dtype, array.shape)
            np.testing.assert_array_equal(got, array)
    assert left_beside(path) == []


def test_saving_what_was_loaded_gives_the_same_file(mgr, reference, tmp_path):
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    loaded = kp.load_tensors(reference, mgr)
    kp.save_tensors(first, loaded)
    again = kp.load_tensors(first, mgr)
    assert again.metadata == loaded.metadata == {"framework": "none", "epoch": "7"}
    kp.save_tensors(second, again)
    assert first.read_bytes() == second.read_bytes()


def test_nothing_saved_is_a_file_with_nothing(mgr, path):
    kp.save_tensors(path, {})
    info = kp.tensor_file_info(path)
    assert (dict(info), info.metadata, info.nbytes) == ({}, {}, 0)
    assert kp.load_tensors(path, mgr) == {}
    assert safetensors.numpy.load_file(path) == {}


def test_saves_after_the_work_in_flight(mgr, path):
    tensor = mgr.empty(1 << 20)
    sequence = mgr.sequence()
    for value in range(8):
        sequence.record(kp.OpFill([tensor], float(value)))
    sequence.eval_async()
    kp.save_tensors(path, {"filled": tensor})
    sequence.eval_await()
    np.testing.assert_array_equal(
        safetensors.numpy.load_file(path)["filled"], np.full(1 << 20, 7, np.float32)
    )


def test_saves_the_devices_contents_not_the_host_copy(mgr, path):
    tensor = mgr.tensor([1, 2, 3])
    tensor.write([4, 5, 6])
    kp.save_tensors(path, {"t": tensor})
    np.testing.assert_array_equal(safetensors.numpy.load_file(path)["t"], [4, 5, 6])


def test_views_are_saved_as_the_part_they_are(mgr, path):
    whole = mgr.tensor(np.zeros((4, 16)))
    whole.write(np.arange(64).reshape(4, 16))
    kp.save_tensors(path, {"rows": whole[1:3], "flat": whole.reshape(64), "bits": whole.view(np.uint32)})
    saved = safetensors.numpy.load_file(path)
    expected = np.arange(64, dtype=np.float32).reshape(4, 16)
    np.testing.assert_array_equal(saved["rows"], expected[1:3])
    np.testing.assert_array_equal(saved["flat"], expected.reshape(64))
    np.testing.assert_array_equal(saved["bits"], expected.view(np.uint32))


def test_one_tensor_under_two_names(mgr, path):
    tensor = mgr.tensor([1, 2])
    tensor.write([1, 2])
    kp.save_tensors(path, {"a": tensor, "b": tensor})
    assert {name: list(array) for name, array in safetensors.numpy.load_file(path).items()} == {
        "a": [1, 2],
        "b": [1, 2],
    }


def test_replaces_a_file_and_keeps_its_mode_and_links_to_it(mgr, path, tmp_path):
    path.write_text("old")
    path.chmod(0o640)
    link = tmp_path / "link.safetensors"
    link.symlink_to(path)
    kp.save_tensors(link, {"t": mgr.zeros(3)})
    assert link.is_symlink()
    assert list(kp.tensor_file_info(path)) == ["t"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_replaced_file_runs_as_nobody_else(mgr, path):
    path.write_text("old")
    path.chmod(0o6755)
    if stat.S_IMODE(path.stat().st_mode) != 0o6755:
        pytest.skip("this file system does not keep these bits")
    kp.save_tensors(path, {"t": mgr.zeros(3)})
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_a_new_file_has_the_mode_of_any_other(mgr, path, tmp_path):
    (tmp_path / "other").touch()
    kp.save_tensors(path, {"t": mgr.zeros(3)})
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("error", [RuntimeError, FileNotFoundError, KeyboardInterrupt])
def test_what_fails_half_way_leaves_the_old_file_and_no_other(mgr, path, error):
    path.write_text("old")

    def stop(done, total, name):
        raise error("stop")

    with pytest.raises(error, match="stop"):
        kp.save_tensors(path, {"t": mgr.zeros(3)}, progress=stop)
    assert path.read_text() == "old"
    assert left_beside(path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_a_full_disk_is_a_typed_error():
    with (
        open("/dev/full", "wb", buffering=0) as full,
        pytest.raises(kp.UnavailableError, match=r"'/dev/full' cannot be written: .*space"),
    ):
        writing.write(full, b"data")


def test_a_file_without_permission_is_a_typed_error(mgr, path, monkeypatch):
    def refuses(*_, **__):
        raise PermissionError(13, "Permission denied")

    kp.save_tensors(path, {"t": mgr.zeros(3)})
    monkeypatch.setattr(reading, "open_regular", refuses)
    with pytest.raises(PermissionError, match="cannot be read") as caught:
        kp.load_tensors(path, mgr)
    assert type(caught.value) is kp.errors.PermissionDeniedError


def test_a_failing_sync_is_a_typed_error_and_leaves_the_old_file(mgr, path, monkeypatch):
    path.write_text("old")

    def fails(descriptor):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(kp.UnavailableError, match="cannot be written"):
        kp.save_tensors(path, {"t": mgr.zeros(3)})
    assert path.read_text() == "old"
    assert left_beside(path) == []


@pytest.mark.parametrize(
    "tensors, metadata, error, part",
    [
        (lambda t: [t], None, kp.ArgumentTypeError, "give a dict"),
        (lambda t: {"t": "text"}, None, kp.ArgumentTypeError, "'t'"),
        (lambda t: {"t": {}}, None, kp.ArgumentTypeError, "'t'"),
        (lambda t: {3: t}, None, kp.ArgumentTypeError, "name of a tensor is a str"),
        (lambda t: {"__metadata__": t}, None, kp.InvalidArgumentError, "another name"),
        (lambda t: {"\ud800": t}, None, kp.InvalidArgumentError, "Unicode"),
        (lambda t: {"t": t}, {"epoch": 7}, kp.ArgumentTypeError, r"json\.dumps"),
        (lambda t: {"t": t}, [("a", "b")], kp.ArgumentTypeError, "metadata is a list"),
    ],
)
def test_saving_refuses(mgr, path, tensors, metadata, error, part):
    with pytest.raises(error, match=part):
        kp.save_tensors(path, tensors(mgr.zeros(3)), metadata)
    assert os.listdir(path.parent) == []


def test_saving_refuses_destroyed_tensors_and_dtypes_that_files_lack(mgr, path):
    tensor = mgr.zeros(3)
    tensor.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="is destroyed: it cannot be saved as 'gone'"):
        kp.save_tensors(path, {"gone": tensor})
    with pytest.raises(kp.ArgumentTypeError, match="'c' has dtype complex128"):
        kp.save_tensors(path, {"c": mgr.zeros(3, np.complex128)})


# -- files that are not what they should be ------------------------------------------------------------------


@pytest.mark.parametrize("use", [kp.tensor_file_info, kp.load_tensors])
def test_paths_that_name_no_file(mgr, tmp_path, use):
    arguments = (mgr,) if use is kp.load_tensors else ()
    with pytest.raises(kp.NotFoundError, match="no file"):
        use(tmp_path / "missing", *arguments)
    with pytest.raises(kp.InvalidArgumentError, match="not a regular file"):
        use(tmp_path, *arguments)
    for path, error in [
        (3, kp.ArgumentTypeError),
        (None, kp.ArgumentTypeError),
        ("", ValueError),
        ("a\0", ValueError),
    ]:
        with pytest.raises(error, match="path is"):
            use(path, *arguments)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(kp.InvalidArgumentError, match="not a regular file"):
        kp.tensor_file_info(tmp_path / "pipe")


def test_saving_into_no_folder_or_onto_one(mgr, tmp_path):
    with pytest.raises(kp.NotFoundError, match="no folder"):
        kp.save_tensors(tmp_path / "missing" / "model.safetensors", {"t": mgr.zeros(3)})
    (tmp_path / "folder.safetensors").mkdir()
    with pytest.raises(kp.InvalidArgumentError, match="is a folder"):
        kp.save_tensors(tmp_path / "folder.safetensors", {"t": mgr.zeros(3)})


def test_every_cut_of_a_file_is_refused(mgr, reference):
    whole = reference.read_bytes()
    for size in [0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1]:
        reference.write_bytes(whole[:size])
        with pytest.raises(kp.InvalidArgumentError, match=r"model\.safetensors"):
            kp.load_tensors(reference, mgr)
    reference.write_bytes(whole + b"\0")
    with pytest.raises(kp.InvalidArgumentError, match="no tensor uses"):
        kp.load_tensors(reference, mgr)


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"lmgg\x01\0\0\0", "a model of llama.cpp in the older format ggml.*llama.cpp"),
        (b"tjgg\x03\0\0\0", "a model of llama.cpp in the older format ggjt.*convert it to GGUF"),
        (b"\x08\x07\x12\x07pytorch\x1a\x03", "an ONNX model.*onnx.load"),
        (b"\x08\x0a:\xb2\x01", "an ONNX model.*onnx.load"),
        (b"\x93NUMPY\x01\0", "an array of NumPy .*np.load"),
        (b"PK\x03\x04", "a zip archive.*torch.load"),
        (b"\x80\x02}q\0", "a pickle.*torch.load"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file.*h5py"),
        (b"\x1c\0\0\0TFL3", "a TensorFlow Lite model"),
        (b"\x1f\x8b\x08", "compressed by gzip"),
        (b"version https://git-lfs", "a pointer of Git LFS.*git lfs pull"),
        (b"<!DOCTYPE html>", "a web page"),
        (b'{"weight_map": {}}', "a JSON text.*index"),
    ],
)
@pytest.mark.parametrize("use", [kp.load_tensors, kp.tensor_file_info])
def test_files_of_other_formats_are_named(tmp_path, current, use, head, what):
    path = tmp_path / "model.bin"
    path.write_bytes(head + bytes(64))
    with pytest.raises(kp.InvalidArgumentError, match=f"model.bin' is {what}"):
        use(path)


def test_a_file_that_shrinks_while_it_is_loaded_ends_no_process(mgr, path, monkeypatch):
    monkeypatch.setattr(reading, "PIECE", 1 << 16)
    safetensors.numpy.save_file({"a": np.ones(1 << 20, np.float32)}, path)

    def cut(done, total, name):
        if done == 1 << 20:
            os.truncate(path, 4096)

    with pytest.raises(kp.UnavailableError, match="Another program shortened"):
        kp.load_tensors(path, mgr, progress=cut)
    # `clean` sees that what had been made is destroyed.


def test_a_load_that_fails_destroys_what_it_made(mgr, reference):
    seen = []

    def stop(done, total, name):
        seen.append(name)
        if len(seen) > 10:
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop") as caught:
        kp.load_tensors(reference, mgr, progress=stop)
    # The traceback still holds them.
    made = [each for each in gc.get_objects() if isinstance(each, kp.Tensor) and each.manager is mgr]
    assert len(made) >= 5 and not any(tensor.is_init() for tensor in made)
    del caught, made


def test_loading_into_what_is_no_manager(path):
    with pytest.raises(kp.ArgumentTypeError, match=r"manager is a str; give a kp\.Manager"):
        kp.load_tensors(path, "model")


def test_loading_into_a_destroyed_manager(make_manager, reference):
    manager = make_manager()
    manager.destroy()
    with pytest.raises(kp.FailedPreconditionError):
        kp.load_tensors(reference, manager)


# -- progress ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["load", "save"])
def test_progress_is_told_of_every_byte(mgr, reference, tmp_path, action):
    told = []

    def tell(done, total, name):
        told.append((done, total, name))

    if action == "load":
        kp.load_tensors(reference, mgr, progress=tell)
    else:
        kp.save_tensors(tmp_path / "other.safetensors", kp.load_tensors(reference, mgr), progress=tell)
    done = [what[0] for what in told]
    assert done == sorted(done) and done[0] == 0 and done[-1] == kp.tensor_file_info(reference).nbytes
    assert {what[1] for what in told} == {done[-1]}
    assert {what[2] for what in told} == set(arrays())


def test_progress_of_another_type_is_refused(mgr, reference):
    with pytest.raises(kp.ArgumentTypeError, match="progress is an int"):
        kp.load_tensors(reference, mgr, progress=3)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_a_bar_is_on_terminals_only_and_only_where_it_takes_long(
    mgr, reference, monkeypatch, terminal, patience
):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE", patience)
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    kp.load_tensors(reference, mgr)
    assert ("loading model.safetensors" in stream.getvalue()) == (terminal and patience == 0.0)
    stream.truncate(0)
    kp.load_tensors(reference, mgr, progress=False)
    assert stream.getvalue() == ""


def test_no_bar_where_rich_is_missing(mgr, reference, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert len(kp.load_tensors(reference, mgr)) == 17
    assert stream.getvalue() == ""


# -- many small tensors --------------------------------------------------------------------------------------


@pytest.fixture
def counted(monkeypatch):
    """Counts the reads and writes of files: {"read": ..., "written": ...}."""
    calls = {"read": 0, "written": 0}
    fill, write = reading.Pieces.fill, writing.write

    def counting(self, rest, offset):
        calls["read"] += 1
        fill(self, rest, offset)

    def counted_write(file, data):
        calls["written"] += bool(len(data))
        write(file, data)

    monkeypatch.setattr(reading.Pieces, "fill", counting)
    monkeypatch.setattr(parameters, "write", counted_write)
    return calls


def test_small_tensors_share_reads_and_writes(mgr, path, counted):
    tensors = {f"t{i}": mgr.tensor(np.full(i % 7, i)) for i in range(500)}
    kp.save_tensors(path, tensors)
    assert counted["written"] == 2  # the header and the data
    loaded = kp.load_tensors(path, mgr)
    assert counted["read"] == 1
    for i in range(500):
        assert loaded[f"t{i}"].read().tolist() == [i] * (i % 7)
    # Each run of chosen tensors is read by itself: the header has them by name.
    order = list(loaded)
    kp.load_tensors(path, mgr, names=[*order[10:20], *order[100:200], order[300]])
    assert counted["read"] == 4


@pytest.mark.parametrize("piece", [64, 100, 1000, 1 << 20])
def test_pieces_end_anywhere(mgr, path, monkeypatch, counted, piece):
    monkeypatch.setattr(reading, "PIECE", piece)
    rng = np.random.default_rng(piece)
    data = {
        f"t{i}": rng.integers(0, 255, rng.integers(0, 60)).astype(rng.choice(["u1", "i2", "f4", "f8"]))
        for i in range(80)
    }
    kp.save_tensors(path, {name: mgr.tensor_t(array) for name, array in data.items()})
    total = sum(array.nbytes for array in data.values())
    assert counted["written"] == 1 + -(-total // piece)
    for name, array in safetensors.numpy.load_file(path).items():
        np.testing.assert_array_equal(array, data[name])
    names = sorted(rng.choice(list(data), 50, replace=False))
    loaded = kp.load_tensors(path, mgr, names=names)
    assert sorted(loaded) == names
    for name, tensor in loaded.items():
        np.testing.assert_array_equal(tensor.read(), data[name])


def test_large_tensors_are_not_read_along(mgr, path, monkeypatch, counted):
    monkeypatch.setattr(parameters, "_IN_PLACE", 1 << 12)
    data = {"a": np.ones(100), "b": np.full(1 << 12, 2.0), "c": np.full(100, 3.0)}
    kp.save_tensors(path, {name: mgr.tensor_t(array) for name, array in data.items()})
    sizes = []
    fill = reading.Pieces.fill
    monkeypatch.setattr(
        reading.Pieces,
        "fill",
        lambda self, rest, offset: (sizes.append(len(rest)), fill(self, rest, offset))[1],
    )
    loaded = kp.load_tensors(path, mgr)
    assert sum(sizes) == sum(array.nbytes for array in data.values())
    for name, array in data.items():
        np.testing.assert_array_equal(loaded[name].read(), array)
