"""`kp.from_dlpack`: Tensors from other libraries' arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.arrays import refuse_mask, to_copy
from .._base.errors import ArgumentTypeError, ExchangeError, KomputeError, shown
from .._device.device import require_manager
from .._memory.dlpack import CPU_MEMORY, capsule_of, dtype_of
from .._memory.tensor import Tensor
from .default import manager as default_manager
from .host_memory import HostBufferSemantics

if TYPE_CHECKING:
    from .manager import Manager


def from_dlpack(obj: Any, manager: Manager | None = None, *, copy: bool | None = None) -> Tensor:
    """A Tensor of memory type `host` from an array in CPU memory: a NumPy array, a torch tensor, any DLPack
    producer, or a capsule that a ``__dlpack__`` gave.

    The memory is shared if the device can import process memory and the data is dense, writable, and aligned
    to ``mgr.host_import_alignment`` (`kp.aligned_empty` creates such arrays); otherwise it is copied.
    ``copy=True`` always copies. ``copy=False`` never copies; read-only data then gives a read-only Tensor.
    The memory lives as long as the Tensor or any view of it. `manager` defaults to ``kp.manager()``.

    A `kp.Tensor`, and an array over the memory of one, gives a view of that Tensor, on its Manager. A Tensor
    of another Manager than `manager` is copied, because two Managers do not order their work.

    Producers of DLPack versions before 1 cannot mark data as read-only, so their data is taken as writable.

    A capsule can be given once. Raises ExchangeError if the data is on another device, if `obj` does not
    share it (NumPy refuses other byte orders, records and objects), or if it cannot be shared with
    ``copy=False``; ArgumentTypeError if `obj` has no ``__dlpack__`` or the device does not support its dtype.

    >>> kp.from_dlpack(np.arange(3)).read().tolist()
    [0, 1, 2]
    """
    if isinstance(obj, Tensor) and manager is None:
        manager = obj.manager
    mgr = default_manager() if manager is None else manager
    require_manager(mgr)
    copy = to_copy(copy)
    if type(obj).__name__ == "PyCapsule":
        return _of_capsule(obj, mgr, copy)
    if not (hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__")):
        raise ArgumentTypeError(
            f"{type(obj).__name__} does not support DLPack: it has no __dlpack__ and __dlpack_device__. "
            "For arrays and lists use mgr.tensor_t(data)"
        )
    refuse_mask(obj, "The data")
    if isinstance(obj, Tensor):
        return _of_tensor(obj, mgr, copy)
    device = obj.__dlpack_device__()
    try:
        where = int(device[0])
    except Exception:
        raise ArgumentTypeError(
            f"{type(obj).__name__}.__dlpack_device__() gave {shown(device)}, not (device type, device id)"
        ) from None
    if where not in CPU_MEMORY:
        raise ExchangeError(
            f"The data is on DLPack device type {where}, not in CPU memory: move it there first (torch: "
            ".cpu())"
        )
    try:
        capsule = capsule_of(obj, False if copy is False else None)
    except KomputeError:
        raise
    except BufferError as error:
        raise ExchangeError(f"{type(obj).__name__}.__dlpack__() does not share the data: {error}") from error
    return _of_capsule(capsule, mgr, copy)


def _of_capsule(capsule: Any, mgr: Manager, copy: bool | None) -> Tensor:
    array = _native.dlpack_import(capsule, dtype_of)
    if copy is not False:
        return mgr.from_host(array, copy="always" if copy else "auto")
    semantics = None if array.flags.writeable else HostBufferSemantics.IMMUTABLE_ZERO_COPY
    try:
        return mgr.from_host(array, copy="never", semantics=semantics)
    except KomputeError as error:
        if not mgr.is_init():
            raise
        raise ExchangeError(f"The data cannot be shared, and copy=False: {error}") from error


def _of_tensor(tensor: Tensor, manager: Manager, copy: bool | None) -> Tensor:
    if tensor.manager is not manager:
        if copy is False:
            raise ExchangeError(
                f"{tensor!r} is of another Manager, which does not know of this one's work: copy it, with "
                "copy=None or t.to(manager)"
            )
        copy = True
    return manager.from_host(tensor.read(), copy="always") if copy else tensor.view()
