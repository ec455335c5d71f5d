"""Samplers: how a shader reads an image between its texels and beyond its edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._base.arrays import to_flag
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    not_copyable,
    shown,
)
from .._base.plain_arguments import as_text
from .._device.device import require_manager
from .._device.owner import Owned

if TYPE_CHECKING:
    from .._base.annotations import AddressMode, BorderColor, FilterName
    from .._device.device import Device


class Bindable:
    """Base of objects that an algorithm can bind besides tensors and images."""

    __slots__ = ("__weakref__",)

    _manager: Device
    _native: Any
    _is_image = False

    def _is_init(self) -> bool:
        return self._manager.is_init()

    def _require_init(self, action: str) -> None:
        if not self._is_init():
            raise FailedPreconditionError(f"The Manager of {self!r} is destroyed: it cannot {action}")

    def _describe(self) -> str:
        return repr(self)

    def size(self) -> int:
        """The number of elements; 0 for a sampler."""
        return 0


@not_copyable("make a new one with mgr.sampler")
class Sampler(Bindable, Owned):
    """How a shader reads images. Created by ``mgr.sampler(...)``; lives as long as its Manager.

    Pass it itself for a binding declared ``sampler``; for one declared ``sampler2D`` and the like, pass
    ``image.sampled(sampler)``.

    `filter`: "nearest" or "linear". `address`: the texels beyond the edge: "clamp_to_edge",
    "clamp_to_border", "repeat" or "mirrored_repeat", one for all axes or one for each. `border`:
    "transparent_black", "opaque_black" or "opaque_white"; also give `integer` for images of integers.
    `unnormalized`: coordinates count texels instead of 0 to 1.

    Raises InvalidArgumentError for unknown names or combinations that Vulkan does not allow,
    ArgumentTypeError for arguments of other types.

    >>> mgr.sampler("linear", "repeat")
    <kp.Sampler filter='linear' address='repeat'>
    """

    __slots__ = ("_manager", "_native", "_text")

    def __init__(
        self,
        manager: Device,
        filter: FilterName = "nearest",
        address: AddressMode | Sequence[AddressMode] = "clamp_to_edge",
        *,
        border: BorderColor = "transparent_black",
        integer: bool = False,
        unnormalized: bool = False,
    ) -> None:
        require_manager(manager)
        if not isinstance(address, (str, list, tuple)):
            raise ArgumentTypeError(f"address is {shown(address)}; give one mode, or one for each axis")
        modes = [address] * 3 if isinstance(address, str) else list(address)
        if not 1 <= len(modes) <= 3 or not all(isinstance(mode, str) for mode in modes):
            raise InvalidArgumentError(f"address is {shown(address)}; give one mode, or one for each axis")
        modes += modes[-1:] * (3 - len(modes))
        for name, value in (("filter", filter), ("border", border), *(("address", mode) for mode in modes)):
            as_text(value, name)
        unnormalized = to_flag(unnormalized, "unnormalized")
        self._manager = manager
        self._native = manager._native.sampler(
            filter, modes, border, to_flag(integer, "integer"), unnormalized
        )
        self._text = (
            f"filter={shown(filter)} address={shown(address)}{' unnormalized' if unnormalized else ''}"
        )

    @property
    def vk_sampler(self) -> int:
        """The VkSampler, as an integer."""
        return self._native.vk_sampler

    def __repr__(self) -> str:
        return f"<kp.Sampler {self._text}>"
