"""Donated tensors: an operation takes their memory, and nobody else has them from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .memory import seen_by_others
from .tensor import buffer_tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .tensor import Tensor


class Donated(NamedTuple):
    """A tensor that a call has taken."""

    given: Tensor
    """The caller's. Each use of it raises DonatedTensorError."""
    taken: Tensor
    """Its memory, for the call alone."""
    alone: bool
    """Whether nothing else refers to the memory, so that a result may have it."""


def take(tensors: Iterable[Tensor], taker: str) -> list[Donated]:
    """Takes tensors for the operation `taker`, all or none. Of several threads one gets a tensor.

    What others do with one of them at this moment, and its views and recordings, still find its memory until
    `end`, unless it was theirs `alone`. Raises DonatedTensorError for one that another call has taken.
    """
    found: list[Donated] = []
    try:
        for tensor in tensors:
            # A destroyed buffer in its place, which says in each error what became of it.
            gone: Any = tensor._manager._native.buffer(None, 0, 0, None)
            gone.name = tensor._native.name
            gone.donate(taker)
            exchanged = _native.exchange_buffer(tensor, gone)
            if exchanged is None:
                tensor._require_init("be donated")
                continue
            native, alone = exchanged
            taken = buffer_tensor(
                native, tensor._manager, tensor._shape, tensor._dtype, tensor._count, tensor._memory_type
            )
            # Another thread may have shared it meanwhile.
            found.append(Donated(tensor, taken, alone and tensor not in seen_by_others))
    except BaseException:
        give_back(found)
        raise
    return found


def give_back(donated: Iterable[Donated]) -> None:
    """Gives tensors back to the caller: the call did not run."""
    for given, taken, _ in donated:
        native: Any = taken._native
        given._native = native
        given._is_init = native.is_init


def end(donated: Iterable[Donated], taker: str, reused: Iterable[Tensor]) -> None:
    """Ends tensors after the call. The memory of those `reused` is a result's now, that of others ends."""
    kept = [id(each) for each in reused]
    for given, taken, _ in donated:
        if id(taken) in kept:
            continue
        native: Any = taken._native
        if native.viewed:
            given._host = native.keep_host()  # arrays over it stay readable
        native.donate(taker)
        given._report()
