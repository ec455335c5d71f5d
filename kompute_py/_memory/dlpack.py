"""DLPack and the buffer protocol: a tensor's memory for other libraries, and tensors from their objects."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .._base.errors import ArgumentTypeError, ExchangeError, InvalidArgumentError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from .tensor import Tensor

CPU = 1
VULKAN = 7
CPU_MEMORY = (CPU, 3, 11)
"""DLPack device types with memory that the CPU can address; 3 and 11 are pinned memory."""
# DLPack's codes for the kinds of elements, by NumPy's letters.
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT16 = 4
_KINDS = {code: kind for kind, code in _CODES.items()}


def dlpack_device(tensor: Tensor) -> tuple[int, int]:
    """(kDLCPU, 0) if the host can address the tensor's contents, else (kDLVulkan, the device's index)."""
    tensor._require_init("be shared")
    if tensor._native.shareable:
        return CPU, 0
    return VULKAN, int(tensor._manager._info["index"])


def to_dlpack(
    tensor: Tensor,
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """The capsule that `Tensor.__dlpack__` returns; see that method."""
    tensor._require_init("be shared")
    what = tensor._describe()
    if stream is not None:
        raise InvalidArgumentError(
            f"stream is {shown(stream)}; {what} shares the CPU's memory, which has no streams: give None"
        )
    native = tensor._native
    device = dlpack_device(tensor)
    try:
        wanted = device if dl_device is None else tuple(map(int, islice(dl_device, 3)))
    except Exception:
        raise ArgumentTypeError(f"dl_device is {shown(dl_device)}; give (device type, device id)") from None
    if wanted not in (device, (CPU, 0)):
        raise ExchangeError(
            f"{what} cannot go to DLPack device {wanted}: only to the CPU's memory, dl_device=(1, 0)"
        )
    code, bits = _code_of(tensor.dtype, what)
    try:
        versioned = max_version is not None and int(max_version[0]) >= 1
    except Exception:
        raise ArgumentTypeError(f"max_version is {shown(max_version)}; give (major, minor)") from None
    # Copy only if requested: copy=True, or the CPU's memory as dl_device if it cannot be shared.
    copied = copy is True or (
        copy is None and dl_device is not None and wanted == (CPU, 0) and device != wanted
    )
    if not copied:
        if device != (CPU, 0):
            raise ExchangeError(
                f"{what} is in memory of the device that the host "
                f"{'reads a word at a time (not cached)' if native.slow_to_read else 'does not address'}, "
                "so it cannot be shared. Copy it: t.read(), or t.__dlpack__(dl_device=(1, 0), copy=None), as "
                "np.from_dlpack(t, device='cpu') does; or create it with memory type "
                f"{'host' if native.slow_to_read else 'deviceAndHost'}"
            )
        if native.read_only and not versioned:
            raise ExchangeError(
                f"{what} is read-only, which DLPack before version 1 cannot express: "
                "pass max_version=(1, 0) or copy=True"
            )
    native.wait()
    tensor._report()
    capsule = _native.dlpack_export(native, tensor.shape, code, bits, versioned, copied)
    tensor._report()
    if capsule is None:
        raise ExchangeError(f"{what} cannot be shared")
    return capsule


def _code_of(dtype: np.dtype[Any], what: str) -> tuple[int, int]:
    if dtype.name == "bfloat16":
        return _BFLOAT16, 16
    # Dtypes of ml_dtypes also have kind "f", but their bits have another meaning.
    code = _CODES.get(dtype.kind) if dtype.isbuiltin == 1 else None
    if code is None:
        raise ExchangeError(
            f"{what} has elements that DLPack has no name for; share one of another dtype: "
            "t.view(dtype=np.uint8), or one field copied to a separate tensor"
        )
    return code, dtype.itemsize * 8


def dtype_of(code: int, bits: int) -> np.dtype[Any]:
    if (code, bits) == (_BFLOAT16, 16):
        try:
            import ml_dtypes
        except ImportError:
            raise ArgumentTypeError(
                "The DLPack tensor is of bfloat16; NumPy needs the package ml_dtypes for it: "
                "pip install ml_dtypes"
            ) from None
        return np.dtype(ml_dtypes.bfloat16)
    kind = _KINDS.get(code)
    if kind is not None and bits % 8 == 0:
        try:
            return np.dtype(f"{kind}{bits // 8}")
        except TypeError:
            pass
    raise ArgumentTypeError(
        f"The DLPack tensor has elements of type code {code} and {bits} bits; NumPy has no dtype for "
        "them: convert it first"
    )


def memoryview_of(tensor: Tensor) -> memoryview:
    """A memoryview of `host` or `deviceAndHost` memory, after pending work.

    Raises ExchangeError for other types.
    """
    tensor._require_init("be viewed")
    if not tensor._is_single():
        raise ExchangeError(
            f"{tensor._describe()} has memory type {tensor._memory_type.name}, which has no buffer to share: "
            "use t.data() for the host copy, t.read() for the device's contents, or create it with "
            "deviceAndHost"
        )
    if tensor._dtype.kind == "V" and tensor._dtype.names is None:
        # Raw bytes would become a struct without fields, and np.asarray prefers a buffer to everything else.
        raise ExchangeError(
            f"{tensor._describe()} cannot be given as a buffer: the protocol has no letter for its dtype"
        )
    tensor._native.wait()
    tensor._report()
    array: Any = tensor.numpy()  # the type of a buffer for type checkers differs between Python versions
    try:
        return memoryview(array)
    except ValueError as error:  # the buffer protocol has no letter for this dtype
        raise ExchangeError(f"{tensor._describe()} cannot be given as a buffer: {error}") from None


def capsule_of(obj: Any, copy: bool | None) -> Any:
    make: Callable[..., Any] = obj.__dlpack__
    # Older producers know fewer keywords and raise TypeError for the others.
    options: list[dict[str, Any]] = [{"max_version": (1, 1), "copy": copy}, {"max_version": (1, 1)}, {}]
    if copy is None:
        del options[0]
    for each in options:
        try:
            return make(**each)
        except TypeError:
            if not each:
                raise
    raise AssertionError("unreachable")
