"""Other words for public names: the search of the site finds the names by them, and each entry shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils.nodes import document
    from sphinx.application import Sphinx

_WORDS = {
    "Image": "texture, picture",
    "Kernel": "compute shader",
    "Manager": "device, context, queue",
    "Manager.kernel": "compile a shader, launch",
    "Manager.synchronize": "finish, flush, device synchronize",
    "Manager.tensor_t": "copy to the device, upload, buffer from array",
    "Profile": "timing, timestamps",
    "Sampler": "texture filtering, interpolation",
    "Sequence": "command buffer, graph, pipeline",
    "Tensor.fill": "memset, clear",
    "Tensor.map": "map memory",
    "Tensor.read": "copy to the host, download, cpu",
    "Tensor.write": "upload, update",
    "load_tensors": "load weights, safetensors, gguf",
    "ops.absolute": "magnitude, abs",
    "ops.argpartition": "nearest neighbours, k smallest",
    "ops.argsort": "sort indices, order, rank",
    "ops.array_split": "chunk",
    "ops.ascontiguousarray": "contiguous copy",
    "ops.astype": "convert, cast, dtype conversion",
    "ops.average": "weighted mean",
    "ops.bincount": "count values",
    "ops.clip": "clamp, limit, saturate",
    "ops.compress": "mask, boolean selection, stream compaction",
    "ops.concatenate": "cat, join, hstack, vstack",
    "ops.convolve": "convolution, fir filter",
    "ops.convolve1d": "separable filter",
    "ops.count_nonzero": "count",
    "ops.cummax": "running maximum",
    "ops.cumprod": "running product",
    "ops.cumsum": "prefix sum, scan, running sum, cumulative sum",
    "ops.diff": "differences, derivative",
    "ops.dot": "dot product, inner product, scalar product",
    "ops.einsum": "einstein summation, tensor contraction, batched matrix product",
    "ops.erf": "error function",
    "ops.exp": "exponential",
    "ops.eye": "identity matrix",
    "ops.fft": "fourier, fourier transform, spectrum, dft",
    "ops.fftconvolve": "fast convolution",
    "ops.flip": "mirror, reverse, fliplr, flipud",
    "ops.gaussian_filter": "blur, gaussian blur, smooth",
    "ops.gelu": "activation",
    "ops.histogram": "distribution, bins",
    "ops.ifft": "inverse fourier transform",
    "ops.isin": "membership",
    "ops.kron": "kronecker product",
    "ops.layer_norm": "normalization, layer normalization",
    "ops.linspace": "evenly spaced",
    "ops.log": "logarithm, natural logarithm",
    "ops.logsumexp": "log of a sum",
    "ops.matmul": "matrix product, matrix multiplication, gemm, mm, bmm",
    "ops.max": "maximum, largest",
    "ops.maximum_filter": "dilation, morphology",
    "ops.mean": "average, arithmetic mean",
    "ops.median_filter": "denoise, salt and pepper",
    "ops.min": "minimum, smallest",
    "ops.minimum_filter": "erosion",
    "ops.multiply": "product, elementwise product, hadamard product",
    "ops.nonzero": "find, indices of true elements",
    "ops.norm": "length, euclidean norm, magnitude",
    "ops.vector_norm": "length, euclidean norm, magnitude",
    "ops.outer": "outer product",
    "ops.pad": "padding, border",
    "ops.put_along_axis": "scatter",
    "ops.quantile": "percentiles",
    "ops.relu": "rectifier, activation",
    "ops.remainder": "modulo, mod",
    "ops.repeat": "repeat_interleave",
    "ops.resize": "scale an image, zoom, interpolate, resample",
    "ops.rfft": "real fourier transform",
    "ops.rgb_to_gray": "grayscale, grey, luminance",
    "ops.roll": "shift, circular shift",
    "ops.rot90": "rotate",
    "ops.scatter_add": "atomic add, index_add, add at indices",
    "ops.searchsorted": "binary search, digitize, bucketize",
    "ops.sigmoid": "logistic, expit",
    "ops.silu": "swish",
    "ops.sobel": "edge detection, gradient",
    "ops.softmax": "attention, probabilities",
    "ops.sort": "sort descending, order, radix sort",
    "ops.sqrt": "square root",
    "ops.std": "standard deviation",
    "ops.sum": "reduction, reduce, total",
    "ops.take": "gather, index_select, lookup",
    "ops.take_along_axis": "gather",
    "ops.tensordot": "tensor contraction",
    "ops.topk": "k largest, k smallest, top k",
    "ops.transpose": "permute, swap axes",
    "ops.tril": "lower triangle",
    "ops.triu": "upper triangle",
    "ops.uniform_filter": "mean filter, box filter, box blur, moving average",
    "ops.unique": "distinct values, remove duplicates",
    "ops.var": "variance",
    "ops.where": "select, condition, mask",
    "random.Generator": "random numbers, rand, randn, seed",
    "save_tensors": "save weights, safetensors, checkpoint",
    "show": "window, display, viewer",
    "write_video": "film, mp4, gif, animation",
}
SYNONYMS = {f"kompute_py.{name}": tuple(words.split(", ")) for name, words in _WORDS.items()}


def show_words(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Ends the description of a name with its other words."""
    if name in SYNONYMS:
        lines += ["", f"Also called: {', '.join(SYNONYMS[name])}.", ""]


def index_words(app: Sphinx, doctree: document) -> None:
    """Adds the words to the index entries of their names, which the search reads."""
    from sphinx import addnodes

    for node in doctree.findall(addnodes.index):
        for _, _, target, _, _ in tuple(node["entries"]):
            node["entries"] += [("single", word, target, "main", None) for word in SYNONYMS.get(target, ())]


def setup(app: Sphinx) -> dict[str, Any]:
    """Connects both."""
    app.connect("autodoc-process-docstring", show_words, priority=400)
    app.connect("doctree-read", index_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
