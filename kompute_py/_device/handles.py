"""Vulkan's handles of a device, ours for others and others' for us."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from .._base.arrays import as_index
from .._base.errors import ArgumentTypeError, InvalidArgumentError, OutOfRangeError, shown
from .._base.text import nearest
from .options import string_tuple

_CHOSEN = (
    "debug_layers",
    "driver",
    "queue_priorities",
    "required_extensions",
    "robust_access",
    "validation",
    "visible_devices",
)
"""The options that say how a device is made."""


class VkHandles(NamedTuple):
    """Vulkan's handles of a device, as integers, and what it was made with: what `Manager.from_handles`
    takes, in its order.

    >>> mgr.vk_handles.device == mgr.vk_device
    True
    """

    instance: int
    """The VkInstance."""
    physical_device: int
    """The VkPhysicalDevice."""
    device: int
    """The VkDevice."""
    queues: tuple[tuple[int, int], ...]
    """The queues of the Manager: family and index."""
    extensions: tuple[str, ...]
    """The enabled device extensions."""
    features: tuple[str, ...]
    """The enabled features that compute shaders can use, by Vulkan's names."""


VkHandles.__module__ = "kompute_py"  # public; imported when first used


def borrowed_device(handles: VkHandles, owner: Any) -> tuple[Any, ...]:
    """Somebody else's device for the core. See `Manager.from_handles`."""
    return (
        *(_handle(getattr(handles, name), name) for name in ("instance", "physical_device", "device")),
        _queues(handles.queues),
        string_tuple(handles.extensions, "extensions"),
        string_tuple(handles.features, "features"),
        owner,
    )


def check_features(given: Iterable[str], known: Collection[str]) -> None:
    """Raises InvalidArgumentError for a name that is one of `known` but for a few letters. Others are of
    features that compute shaders cannot use.
    """
    for name in given:
        if name not in known and (near := nearest(name, known, 0.9)) != ".":
            raise InvalidArgumentError(f"features: kompute_py knows no feature {shown(name)}{near}")


def options_of_borrowed(options: Mapping[str, Any], features: Iterable[str]) -> dict[str, Any]:
    """The options, with those that its maker has chosen."""
    for name in _CHOSEN:
        if options.get(name) is not None:
            raise InvalidArgumentError(
                f"{name} says how a device is made, and this one exists already: leave it out"
            )
    made = {"debug_layers": (), "driver": "", "queue_priorities": (), "validation": False}
    return {**options, **made, "robust_access": "robustBufferAccess" in features}


def _handle(value: Any, name: str) -> int:
    number = as_index(value, name)
    if not 0 < number < 2**64:
        raise InvalidArgumentError(
            f"{name} is {shown(value)}, which is not a handle: give Vulkan's, as an int"
        )
    return number


def _queues(given: Any) -> list[tuple[int, int]]:
    try:
        pairs = [(as_index(family, "a family"), as_index(index, "an index")) for family, index in given]
    except (TypeError, ValueError) as error:
        if isinstance(error, ArgumentTypeError):
            raise
        raise ArgumentTypeError(
            f"queues is {shown(given)}; give a list of pairs: a queue family, and an index in it"
        ) from None
    if not pairs:
        raise InvalidArgumentError("queues is empty: name at least one queue with compute")
    if any(not 0 <= number < 2**32 for pair in pairs for number in pair):
        raise OutOfRangeError(f"queues is {shown(pairs)}; families and indices count from 0")
    return pairs
