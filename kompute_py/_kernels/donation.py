"""Donated tensors: an operation takes their memory, and nobody else has them from then on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of, shown
from .._memory.memory import seen_by_others
from .._memory.reach import meet
from .._memory.strided import StridedView
from .._memory.tensor import Tensor, buffer_tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class Donated(NamedTuple):
    """A tensor that a call has taken."""

    given: Tensor
    """The caller's. Each use of it raises DonatedTensorError."""
    taken: Tensor
    """Its memory, for the call alone."""
    alone: bool
    """Whether nothing else refers to the memory, so that a result may have it."""


def _chosen(who: str, names: Sequence[str], tensors: Mapping[str, Tensor], donate: Any) -> list[Tensor]:
    """The tensors that ``donate=`` names, of those that a call with parameters of these `names` may take.

    Raises InvalidArgumentError for others, and for tensors with memory that is shared or frozen;
    ArgumentTypeError if `donate` is of another type.
    """
    if donate is None or donate is False or (type(donate) is tuple and not donate):
        return []
    found: list[Tensor] = []
    if donate is True:
        wanted: tuple[Any, ...] = tuple(tensors)
    elif isinstance(donate, (str, int)):
        wanted = (donate,)
    elif isinstance(donate, (list, tuple, set, frozenset)):
        wanted = tuple(donate)
        if wanted and all(type(each) is bool for each in wanted):
            wanted = tuple(place for place, each in enumerate(wanted) if each)
    else:
        raise ArgumentTypeError(
            f"{who}: donate is {kind_of(donate)}; give names or positions of arguments, or True"
        )
    for each in wanted:
        name = names[each] if type(each) is int and 0 <= each < len(names) else each
        if not isinstance(name, str) or name not in tensors:
            raise InvalidArgumentError(
                f"{who}: {shown(each)} cannot be donated: give names or positions of Tensor arguments that "
                f"it does not write ({', '.join(tensors) or 'this call has none'})"
            )
        tensor = tensors[name]
        tensor._require_init("be donated")
        if tensor.read_only and not tensor.is_shared:
            raise InvalidArgumentError(
                f"{who}: {name} cannot be donated, because it is frozen; donate a copy: "
                "t.to(t.manager, copy=True)"
            )
        if tensor.is_shared:
            raise InvalidArgumentError(
                f"{who}: {name} cannot be donated, because others may see its memory (t.is_shared): it is a "
                "view, was imported, or was exported"
            )
        if all(each is not tensor for each in found):
            found.append(tensor)
    return found


def require_apart(who: str, tensors: Iterable[Tensor], written: Iterable[Any]) -> None:
    """Raises InvalidArgumentError, beginning with `who`, if a tensor to donate shares memory with one that
    the call writes: that would end with it.
    """
    targets = [each._base if isinstance(each, StridedView) else each for each in written]
    for tensor in tensors:
        for each in targets:
            if isinstance(each, Tensor) and (tensor is each or meet(tensor, each)):
                raise InvalidArgumentError(
                    f"{who}: the donated {tensor._describe()} shares memory with a result, which would end "
                    "with it: donate nothing, the result is in its memory already"
                )


@contextmanager
def donating(
    taker: str, names: Sequence[str], tensors: Mapping[str, Tensor], donate: Any, written: Iterable[Any]
) -> Iterator[tuple[list[Donated], list[Tensor]]]:
    """Takes the tensors that ``donate=`` names for a call of `taker`: they end with it, and the caller has
    them again if it raises. The second list is for those that give their memory to a result.

    `names` are those of the parameters, `tensors` what may be donated, `written` what the call writes. What
    cannot be donated is refused before anything is taken: see `_chosen` and `require_apart`.
    """
    wanted = _chosen(taker, names, tensors, donate)
    require_apart(taker, wanted, written)
    taken = take(wanted, taker)
    reused: list[Tensor] = []
    try:
        yield taken, reused
    except BaseException as error:
        if reused and not isinstance(error, Exception):
            end(taken, taker, ())  # Ctrl-C: the work that runs on writes there
        else:
            give_back(taken)
        raise
    end(taken, taker, reused)


def with_taken(values: Iterable[Any], donated: Iterable[Donated]) -> list[Any]:
    """`values` with the memory that a call has taken instead of donated tensors, in lists and parts, too."""
    instead = {id(each.given): each.taken for each in donated}
    return [_with_taken(each, instead) for each in values]


def _with_taken(value: Any, instead: Mapping[int, Tensor]) -> Any:
    if type(value) is list:
        return [_with_taken(each, instead) for each in value]
    if type(value) is StridedView and id(value.base) in instead:
        return StridedView(instead[id(value.base)], value._first, value._shape, value._strides)
    return instead.get(id(value), value)


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
