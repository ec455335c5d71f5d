"""Numbers of less than a byte: bits and ints of four bits, packed into bytes and taken out of them.

Each invocation packs or unpacks one byte.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..._base.errors import ArgumentTypeError, InvalidArgumentError
from ..._builders.walks import axes_of, check_sizes, named, one_each
from ..._custom.arg_descs import TensorArg
from ..._custom.selection import FunctionSelection
from ..._functions.custom_op import CustomOp
from ..._functions.function import Function

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder


def _lengths(ksel: FunctionSelection, x: TensorArg) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """The axes before `axis`, its length, and the axes behind it; all elements if `axis` is None."""
    axis = ksel.attr_list_int("axis").v
    if axis is None:
        return (), x.size, ()
    if len(axis) != 1:
        raise InvalidArgumentError(f"{ksel.name}: axis is {axis}; give one")
    (place,) = axes_of(ksel.name, axis, x.ndim)
    return x.shape[:place], x.shape[place], x.shape[place + 1 :]


class _Packing(CustomOp):
    """Both directions: `bits` for each number, the first one in the lowest or highest bits of its byte."""

    bits: int
    packs: bool

    def bytes_of(self, numbers: int) -> int:
        """The number of bytes for so many numbers."""
        return -(-numbers // (8 // self.bits))

    def big(self, ksel: FunctionSelection) -> bool:
        """Whether the first number has the highest bits. Raises InvalidArgumentError for another order."""
        order = ksel.attr_str("bitorder").v
        if order not in ("big", "little"):
            raise InvalidArgumentError(f'{ksel.name}: bitorder is {order!r}; give "big" or "little"')
        return order == "big"

    def lay_out(
        self,
        ksel: FunctionSelection,
        before: tuple[int, ...],
        lengths: tuple[int, int],
        after: tuple[int, ...],
        dtype: str,
    ) -> None:
        """Declares the result, with the second length on the axis, and numbers for the places of bytes."""
        ksel.return_new_tensor((*before, lengths[1], *after), np.dtype(dtype))
        check_sizes(ksel)
        packed = lengths[1] if self.packs else self.bytes_of(lengths[1])
        lines = {"kp_inner": math.prod(after), "kp_packed": packed}
        lines["kp_bytes"] = math.prod(before) * packed * lines["kp_inner"]
        for name, length in {**lines, "kp_n": lengths[0], "kp_made": lengths[1]}.items():
            ksel.value(name, length, "uint32")
        ksel.specialize(big=self.big(ksel))

    def begin(self, ksel: FunctionSelection, kb: FunctionBuilder) -> str:
        """A byte for each invocation: its line and its place there. Returns how far the number ``k`` of
        a byte is shifted.
        """
        one_each(kb, named("kp_bytes"), "i")
        kb.emit("""
            uint inner = i % kp_inner, rest = i / kp_inner;
            uint outer = rest / kp_packed, byte = rest - outer * kp_packed;
        """)
        each = 8 // self.bits
        return f"({each - 1}u - k) * {self.bits}u" if ksel.special["big"] else f"k * {self.bits}u"


class _Pack(_Packing):
    packs = True
    value: str
    """The number's bits, from the element "{}"."""

    def select(self, ksel: FunctionSelection) -> None:
        """One byte for several elements along the axis."""
        x = ksel.arg_tensor("x")
        if x.dtype.kind not in "biu":
            raise ArgumentTypeError(f"{ksel.name}: x is of {x.dtype}; give ints or bools")
        before, n, after = _lengths(ksel, x)
        self.lay_out(ksel, before, (n, self.bytes_of(n)), after, "uint8")

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        shift = self.begin(ksel, kb)
        each = 8 // self.bits
        value = self.value.replace("{}", "x_load((outer * kp_n + e) * kp_inner + inner)")
        kb.emit(f"""
            uint made = 0u;
            for (uint k = 0u; k < {each}u; ++k) {{
                uint e = byte * {each}u + k;
                if (e < kp_n) made |= ({value}) << ({shift});
            }}
            result_store(i, made);
        """)


class _Unpack(_Packing):
    packs = False

    def signed(self, ksel: FunctionSelection) -> bool:
        """Whether the numbers have a sign."""
        return False

    def select(self, ksel: FunctionSelection) -> None:
        """Several elements for each byte along the axis, or as many as are asked for."""
        x = ksel.arg_tensor("x")
        if x.dtype != np.uint8:
            raise ArgumentTypeError(f"{ksel.name}: x is of {x.dtype}; give uint8")
        before, n, after = _lengths(ksel, x)
        most = n * (8 // self.bits)
        count = ksel.attr_list_int("count").v
        if count is not None and len(count) != 1:
            raise InvalidArgumentError(f"{ksel.name}: count is {count}; give one")
        made = most if count is None else count[0] if count[0] >= 0 else most + count[0]
        if made < 0:
            raise InvalidArgumentError(
                f"{ksel.name}: count is {made - most}, and the axis has {most} elements to leave out"
            )
        signed = self.signed(ksel)
        self.lay_out(ksel, before, (n, made), after, "int8" if signed else "uint8")
        ksel.specialize(signed=signed)

    def generate(self, ksel: FunctionSelection, kb: FunctionBuilder) -> None:
        """Writes one kernel: the elements of a byte for each invocation; those behind the last byte are 0."""
        shift = self.begin(ksel, kb)
        each = 8 // self.bits
        word = "int(bits)" if ksel.special["signed"] else "bits"
        kb.emit(f"""
            uint bits = byte < kp_n ? uint(x_load((outer * kp_n + byte) * kp_inner + inner)) : 0u;
            for (uint k = 0u; k < {each}u; ++k) {{
                uint e = byte * {each}u + k;
                if (e < kp_made)
                    result_store((outer * kp_made + e) * kp_inner + inner,
                                 bitfieldExtract({word}, int({shift}), {self.bits}));
            }}
        """)


class _Packbits(_Pack):
    """Eight elements of `x` in each byte along `axis`, a bit each, as ``np.packbits``: 0 for zero, else 1.
    None packs all elements as one line. The last byte is filled up with zeros. With the bit order "big" the
    first element is the highest bit.

    Raises InvalidArgumentError for an axis that `x` does not have and for another bit order,
    ArgumentTypeError for a dtype that has no ints or bools.

    >>> kp.ops.packbits(mgr.tensor_t(np.array([True, False, True]))).tolist()
    [160]

    :dtypes: ints, bool
    :axes: one, None
    :error: exact
    """

    signature = "packbits(Tensor x, int[]? axis=None, str bitorder='big') -> Tensor"
    bits, value = 1, "uint(bool({}))"


class _Unpackbits(_Unpack):
    """The bits of `x` along `axis` as elements of uint8, as ``np.unpackbits``. None unpacks all bytes as one
    line. `count` elements: the first ones, zeros behind the last; a negative number leaves out so many at the
    end.

    Raises InvalidArgumentError for an axis that `x` does not have, for another bit order, and for a negative
    `count` beyond the axis, ArgumentTypeError for another dtype than uint8.

    >>> kp.ops.unpackbits(mgr.tensor_t(np.array([160], np.uint8)), count=3).tolist()
    [1, 0, 1]

    :dtypes: uint8
    :axes: one, None
    :error: exact
    """

    signature = "unpackbits(Tensor x, int[]? axis=None, int[]? count=None, str bitorder='big') -> Tensor"
    bits = 1


class _PackInt4(_Pack):
    """Two elements of `x` in each byte along `axis`: the lowest four bits of each. The first of two has the
    lower half; in an odd last byte the upper half is 0. Ints of four bits are so stored in files of weights,
    and a device has no dtype for them. -8 to 7 come back from `unpack_int4`, 0 to 15 with ``signed=False``.

    Raises InvalidArgumentError for an axis that `x` does not have, ArgumentTypeError for a dtype that has no
    ints.

    >>> kp.ops.pack_int4(mgr.tensor_t(np.array([1, -1, 7], np.int8))).tolist()
    [241, 7]

    :dtypes: ints, bool
    :axes: one, None
    :error: exact
    """

    signature = "pack_int4(Tensor x, int[]? axis=-1, str bitorder='little') -> Tensor"
    bits, value = 4, "uint({}) & 15u"


class _UnpackInt4(_Unpack):
    """The ints of four bits in the bytes of `x` along `axis`, as `pack_int4` makes them: int8 from -8 to 7,
    or uint8 from 0 to 15 with ``signed=False``. `count` is as for `unpackbits`; give it for an odd number.

    Raises InvalidArgumentError for an axis that `x` does not have and for a negative `count` beyond the axis,
    ArgumentTypeError for another dtype than uint8.

    >>> kp.ops.unpack_int4(mgr.tensor_t(np.array([241, 7], np.uint8)), count=3).tolist()
    [1, -1, 7]

    :dtypes: uint8
    :axes: one, None
    :error: exact
    """

    signature = (
        "unpack_int4(Tensor x, int[]? axis=-1, int[]? count=None, bool signed=True, "
        "str bitorder='little') -> Tensor"
    )
    bits = 4

    def signed(self, ksel: FunctionSelection) -> bool:
        return bool(ksel.attr_bool("signed").v)


packbits: Function = CustomOp.register(_Packbits)
unpackbits: Function = CustomOp.register(_Unpackbits)
pack_int4: Function = CustomOp.register(_PackInt4)
unpack_int4: Function = CustomOp.register(_UnpackInt4)
