"""Formats of files that people give to `load_tensors` by mistake, known by their first bytes."""

from __future__ import annotations

_ARRAYS = "make tensors of its arrays with mgr.tensor_t, and save those with kp.save_tensors"
_CONVERT = "convert it with the safetensors package, or " + _ARRAYS
# The mark, the bytes before it, what the file is, and what to do.
_MARKS: tuple[tuple[bytes, int, str, str], ...] = (
    (b"GGUF", 0, "a GGUF file (llama.cpp)", f"read it with the gguf package; {_ARRAYS}"),
    *(
        (mark, 0, f"a model of llama.cpp in the older format {name}", "convert it to GGUF with llama.cpp")
        for mark, name in ((b"lmgg", "ggml"), (b"fmgg", "ggmf"), (b"tjgg", "ggjt"), (b"algg", "ggla"))
    ),
    *(  # the version, then the producer, the graph or the sets of operators
        (bytes((0x08, version, tag)), 0, "an ONNX model", f"read it with onnx.load(path); {_ARRAYS}")
        for version in range(1, 32)
        for tag in (0x12, 0x3A, 0x42)
    ),
    (b"\x93NUMPY", 0, "an array of NumPy (.npy)", "mgr.tensor_t(np.load(path)) makes a tensor of it"),
    (
        b"PK\x03\x04",
        0,
        "a zip archive, as NumPy's .npz and PyTorch's .pt files are",
        f"read it with np.load or torch.load(path, weights_only=True); {_CONVERT}",
    ),
    (b"\x89HDF\r\n\x1a\n", 0, "an HDF5 file (Keras, MATLAB)", f"read it with h5py; {_ARRAYS}"),
    (b"TFL3", 4, "a TensorFlow Lite model", f"read it with TensorFlow Lite; {_ARRAYS}"),
    *(
        (
            bytes((0x80, protocol)),
            0,
            "a pickle, as older files of PyTorch are",
            f"read it with torch.load(path, weights_only=True); {_CONVERT}",
        )
        for protocol in range(2, 6)
    ),
    (b"\x1f\x8b", 0, "compressed by gzip", "unpack it first: gunzip"),
    (b"\x28\xb5\x2f\xfd", 0, "compressed by Zstandard", "unpack it first: unzstd"),
    (b"version https://git-lfs", 0, "a pointer of Git LFS, not the data", "fetch the data: git lfs pull"),
    (b"<!DOCTYPE", 0, "a web page", "the download failed; fetch the file itself"),
    (b"<html", 0, "a web page", "the download failed; fetch the file itself"),
    (
        b"{",
        0,
        "a JSON text",
        "the index of a model in several files names its safetensors files: load each of them",
    ),
)
LONGEST_MARK = max(skipped + len(mark) for mark, skipped, _, _ in _MARKS)
"""Bytes that `other_format` looks at."""


def other_format(head: bytes) -> str | None:
    """The format of a file that begins with `head`, and what to do; None if the format is not known.

    Call it for files that are not valid safetensors files: the length at the start of those may be any bytes.
    """
    for mark, skipped, what, fix in _MARKS:
        if head[skipped : skipped + len(mark)] == mark:
            return f"is {what}, not a safetensors file; {fix}"
    return None
