"""Quantised tensors to float32, on the device: blocks of a few bits for each element, with a scale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, UnimplementedError, kind_of, shown
from .._device.device import require_manager
from .._memory.making import new_tensor
from .._memory.tensor import Tensor
from .._recording.operations import OpAlgoDispatch
from .._shaders.own_shaders import library_shader
from .entries import BLOCKS, TensorFileEntry
from .reading import Pieces

__all__ = ["dequantize"]

KINDS = {
    "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q2_K": 10, "Q3_K": 11, "Q4_K": 12,
    "Q5_K": 13, "Q6_K": 14, "BF16": 30,
}  # fmt: skip
"""The types that are converted, and their numbers in ggml and in the shader."""
# Elements of a piece: a multiple of all blocks and, in bytes, of all alignments of bindings; as groups of 64
# it is below the least limit of a dispatch.
_PIECE = 1 << 21
_LOCAL_SIZE = 64  # of the shader


def require_kind(kind: Any, what: str) -> None:
    """Raises UnimplementedError, beginning with `what`, for a type that is not converted."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise UnimplementedError(
            f"{what} has the type {shown(kind)}, which is not converted; known: {', '.join(KINDS)}. Load its "
            "bytes with dequantize=False, and convert them with the gguf package"
        )


def dequantize(tensor: Tensor, kind: str) -> Tensor:
    """The float32 elements of a quantised tensor, as a new Tensor of the same Manager and memory type.

    `tensor` has the bytes of blocks of `kind`, as `kp.load_tensors` loads them from GGUF files, in whole
    blocks on its last axis: dtype uint8, or float16 and bfloat16 for the kinds "F16" and "BF16". The other
    kinds are Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K and Q6_K. The elements are bit for bit
    those of the gguf package. The call waits for the result; the work goes in pieces, so that tensors may be
    larger than one binding of a shader.

    Raises UnimplementedError for other kinds, ArgumentTypeError if `tensor` is not a Tensor of such bytes,
    InvalidArgumentError if its last axis is not a whole number of blocks, FailedPreconditionError if it is
    destroyed.

    >>> blocks = np.zeros((2, 18), np.uint8)  # for each row the scale, a float16, and 32 elements of 4 bits
    >>> blocks[:, :2] = np.frombuffer(np.float16(0.5).tobytes(), np.uint8)
    >>> elements = kp.dequantize(mgr.tensor_t(blocks), "Q4_0")
    >>> elements.shape, elements.read()[0, 0]
    ((2, 32), np.float32(-4.0))
    """
    require_kind(kind, "The tensor")
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"dequantize takes a Tensor, not {kind_of(tensor)}")
    tensor._require_init("be dequantized")
    elements, size = BLOCKS.get(kind, (1, 2))
    if tensor.dtype != np.uint8 and (kind in BLOCKS or tensor.dtype.itemsize != size):
        raise ArgumentTypeError(
            f"{tensor._describe()} does not hold the bytes of {kind}; its dtype must be uint8"
        )
    axis = tensor.shape[-1] * tensor.dtype.itemsize if tensor.shape else 0
    if not tensor.shape or axis % size:
        raise InvalidArgumentError(
            f"{tensor._describe()} has {axis} bytes on its last axis, which is not a whole number of blocks: "
            f"{kind} has blocks of {size} bytes"
        )
    shape = (*tensor.shape[:-1], axis // size * elements)
    made = new_tensor(tensor.manager, shape, np.dtype(np.float32), tensor.memory_type())
    entry = TensorFileEntry(tensor.name, kind, shape, 0, tensor.nbytes)
    for _ in Decoder(tensor.manager).decode(entry, tensor.reshape(-1).view(np.uint8), made):
        pass
    return made


class Decoder:
    """Converts blocks to float32, a piece at a time; all pieces go through the same memory."""

    def __init__(self, manager: Any) -> None:
        require_manager(manager)
        self._manager = manager
        self._sequence = manager.sequence()
        self._room: Tensor | None = None

    def decode(
        self, entry: TensorFileEntry, source: Pieces | np.ndarray | Tensor, target: Tensor
    ) -> Iterator[int]:
        """Fills `target` with the elements of `entry`. Yields the bytes done with each piece.

        `source` has the blocks: a file, an array, or a Tensor; the last two from their first byte on.
        """
        elements, size = BLOCKS.get(entry.dtype, (1, 2))
        flat, step = target.reshape(-1), _PIECE // elements * size
        for first in range(0, entry.nbytes, step):
            count = min(step, entry.nbytes - first)
            if self._room is None or self._room.nbytes < count:
                self._room = self._manager.empty(-(-count // 4) * 4, np.uint8, "storage")
            part = self._room[:count]
            if isinstance(source, Pieces):
                end = entry.offset + entry.nbytes
                part._native.write(source.read(entry.offset + first, count, end))
            elif isinstance(source, Tensor):
                part.copy_from(source.reshape(-1).view(np.uint8)[first : first + count]).wait()
            else:
                part._native.write(source.reshape(-1).view(np.uint8)[first : first + count])
            begin, many = first // size * elements, count // size * elements
            values = flat[begin : begin + many].view(np.uint32)
            words = self._room.view(np.uint32)[: -(-count // 4)]
            algorithm = self._manager.algorithm(
                [words, values],
                library_shader("dequantize"),
                (-(-many // _LOCAL_SIZE), 1, 1),
                [KINDS[entry.dtype]],
            )
            self._sequence.eval(OpAlgoDispatch(algorithm))
            yield count
