"""The memory that a call of a kernel will need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._memory.needs import MemoryNeeds
from .._shaders.signature import MISSING
from .call import Call
from .imagined import Imagined, Imagining, imagined

if TYPE_CHECKING:
    from .version import Version


def needs_of(version: Version, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> MemoryNeeds:
    """The needs of a call. Raises what the call would raise."""
    manager = version.manager
    call = Call(
        version,
        tuple([imagined(manager, each) for each in args]),
        {name: imagined(manager, each) for name, each in keywords.items()},
        Imagining(manager),
    )
    nbytes = {True: 0, False: 0}  # of what is written, and of what is only read
    seen: set[int] = set()
    each: Any
    for parameter, bound in zip(version.signature.parameters, call.bound, strict=True):
        for each in bound if type(bound) is tuple else (bound,):
            memory = getattr(each, "_image", each)  # of a sampled image
            if memory is MISSING or not hasattr(memory, "nbytes") or id(memory) in seen:
                continue  # also a sampler
            seen.add(id(memory))
            taken = memory.taken if isinstance(memory, Imagined) else memory.nbytes
            nbytes[parameter.written] += taken
    return MemoryNeeds(len(version.module.to_spirv()), nbytes[False], nbytes[True], 0)
