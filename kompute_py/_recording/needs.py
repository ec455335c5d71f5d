"""The memory of a recording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.errors import UnimplementedError
from .._memory.needs import MemoryNeeds, Plan
from .._memory.reach import root_of
from .._memory.scratch import pool_of
from .._memory.tensor import Tensor
from .host_call import HostCall

if TYPE_CHECKING:
    from .._device.device import Device


def needs_of(manager: Device, parts: Iterable[Any]) -> MemoryNeeds:
    """The memory of the parts of a recording. Raises UnimplementedError for commands of a script's own and
    for copies between Managers.
    """
    plan = Plan(manager)
    pools = [pool_of(manager, kind)._piece[0] for kind in ("operations", "sequences")]
    for part in parts:
        if isinstance(part, HostCall):
            writes, reads = part._content.writes or (), part._content.reads or ()
            uses = [(_native_of(each), each in writes) for each in (*writes, *reads)]
        elif isinstance(part, _native.Stream):
            memories: dict[int, Any] = {}
            for operation in _native.recorded(part):
                _collect(operation, plan, memories)
            found = _native.frame_uses(part, [], list(memories.values()))
            uses = [(each["memory"], each["written"]) for each in found]
        else:
            raise UnimplementedError("A copy between Managers has memory on both: ask each Manager")
        for memory, written in uses:
            if any(memory is each for each in pools):
                plan.keeps(memory, memory.nbytes)
                continue
            plan.gives(memory, memory.nbytes)
            if written:
                plan.writes(memory)
    return plan.needs()


def _native_of(memory: Any) -> Any:
    return (root_of(memory) if isinstance(memory, Tensor) else memory)._native


def _collect(operation: Mapping[str, Any], plan: Plan, memories: dict[int, Any]) -> None:
    """The memory and the shaders of an operation, and of those in it."""
    if not operation["kind"]:
        raise UnimplementedError(
            f"{operation['name']} records Vulkan commands by code of its own: their memory is unknown"
        )
    ranges = [*operation["ranges"], *(each for pair in operation["swaps"] for each in pair)]
    if operation["kind"] == "dispatch":
        plan.runs(operation["shader"].made_of()[0])
        ranges += [each[3] for each in operation["arguments"]]
        ranges.append(operation["indirect"])
    memories.update({id(each[0]): each[0] for each in ranges if each is not None})
    for each in operation["operations"]:
        _collect(each, plan, memories)
