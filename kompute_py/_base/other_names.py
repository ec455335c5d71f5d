"""Names that other libraries have for functions of `kp.ops`, for error messages."""

from __future__ import annotations

SAME = [
    "amax",
    "amin",
    "ceil",
    "cos",
    "equal",
    "exp",
    "floor",
    "greater",
    "less",
    "log",
    "log_softmax",
    "logsumexp",
    "matmul",
    "median",
    "multiply",
    "norm",
    "pow",
    "relu",
    "scatter_add",
    "sigmoid",
    "sin",
    "softmax",
    "sqrt",
    "square",
    "stack",
    "subtract",
    "tanh",
    "tile",
    "topk",
    "tril",
    "triu",
    "unique",
    "where",
]
"""Functions of `kp.ops` that are methods of tensors elsewhere."""

OPERATIONS = {
    "around": "round", "bmm": "matmul", "cat": "concatenate", "chunk": "array_split", "clamp": "clip",
    "clamp_max": "minimum", "clamp_min": "maximum", "cumulative_prod": "cumprod", "cumulative_sum": "cumsum",
    "deg2rad": "radians", "digitize": "searchsorted", "div": "divide", "eq": "equal",
    "expand": "broadcast_to",
    "fliplr": "flip", "flipud": "flip", "gather": "take_along_axis", "ge": "greater_equal", "gt": "greater",
    "hstack": "concatenate", "index_select": "take", "kthvalue": "partition", "le": "less_equal",
    "lt": "less", "masked_select": "compress", "matrix_transpose": "swapaxes",
    "mm": "matmul", "mul": "multiply", "mv": "matmul", "ne": "not_equal",
    "neg": "negative", "permute": "transpose", "rad2deg": "degrees",
    "scatter": "put_along_axis", "scatter_reduce": "scatter_add", "sub": "subtract", "vstack": "concatenate",
}  # fmt: skip
"""The function of `kp.ops` that computes what this name does in PyTorch, CuPy, JAX or NumPy."""

CALLS = {
    "allclose": "np.allclose(a, b)",
    "array": "mgr.tensor_t(values)",
    "asarray": "mgr.as_tensor(values)",
    "copy": "t.to(t.manager, copy=True)",
    "empty": "mgr.empty(shape, dtype)",
    "expand_dims": "t[None] or t.reshape(shape)",
    "isclose": "np.isclose(a, b)",
    "ones": "kp.ops.full(shape, 1)",
    "ravel": "t.reshape(-1)",
    "reshape": "t.reshape(shape)",
    "squeeze": "t.reshape(shape)",
    "unsqueeze": "t[None] or t.reshape(shape)",
    "zeros": "mgr.zeros(shape, dtype)",
}
"""Code for NumPy's functions that are not functions of `kp.ops`."""
