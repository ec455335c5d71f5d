"""Device: an open device, below all objects created on it."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .. import _native
from .._base.arrays import as_index
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    KomputeError,
    OutOfRangeError,
    shown,
)
from .._base.file_access import own_folder
from .._base.settings import ConfigReport, Setting
from .._base.types import MemoryTypes
from .._base.warn import PACKAGE
from .devices import (
    chosen_device,
    compute_family,
    desired,
    family_indices,
    list_devices,
    selection,
    warn_of,
)
from .diagnostics import Diagnostics
from .drivers import DriverInfo, driver_of, manifest_named
from .forked import check_driver
from .handles import VkHandles, borrowed_device, check_features, options_of_borrowed
from .kept import Keeper, devices
from .names import DeviceInfo, supported
from .options import options_of, preferred_devices, settings
from .transfers import guard_for
from .uri import with_options

if TYPE_CHECKING:
    from .._base.annotations import FormatName
    from .._native import Context, Shader
    from .._shaders.constants import Specialization
    from .memory_use import DeviceMemory
    from .transfers import Guard

_native.set_package(PACKAGE)
_AXES = "xyz"
_MOST_GROUPS = 2**32 - 1  # the most that Vulkan's commands can count


class Tensors(Protocol):
    """Is told of each tensor and image that is made."""

    def add(self, memory: Any) -> None:
        """A new one."""

    def stands(self, part: Any) -> None:
        """A new view of memory that a call has for something that it was given."""

    def declared(self, memory: Any, layout: Mapping[str, Any]) -> None:
        """A shader declares a block of structs, with this layout, over memory of plain numbers."""


class Device:
    """An open device: its properties and limits, enabled extensions and features, memory, and Vulkan handles.

    `Manager` derives from it and creates the objects on the device. Rooms below the Manager's use only this
    class.
    """

    __slots__ = (
        "_buffer",
        "_config",
        "_device_name",
        "_diagnostics",
        "_guard",
        "_info",
        "_keepers",
        "_loaded",
        "_max_groups",
        "_native",
        "_scratch",
        "_tensors",
        "_values",
        "_watch",
    )

    _buffer: Callable[..., _native.Buffer]  # the core's, looked up once
    _config: ConfigReport
    _device_name: str
    _diagnostics: Diagnostics
    _guard: Guard | None
    _keepers: weakref.WeakSet[Keeper]  # their kernels and operations keep them alive
    _info: dict[str, Any]
    _loaded: dict[str, Any]  # what tasks of Dask have brought, by its digest
    _max_groups: tuple[int, int, int]
    _native: Context
    _scratch: dict[str, Any]  # pools by kind
    _tensors: Tensors | None  # those that live, if values are looked at
    _values: dict[str, Any]  # of the options
    # None if nothing reports messages, so that calls do not pay for a look-up.
    _watch: Callable[..., None] | None

    def __init__(
        self,
        device: Any,
        family_queue_indices: Any,
        desired_extensions: Any,
        *,
        prefix: str | None,
        options: Mapping[str, Any],
        handles: VkHandles | None = None,
        owner: Any = None,
    ) -> None:
        """Opens the device, or takes that of `handles`. `env_prefix` begins the environment variables.

        For arguments and errors, see `Manager`.
        """
        if handles is not None:
            wanted = Setting("device", None, "default")
            borrowed = borrowed_device(handles, owner)
            options = options_of_borrowed(options, borrowed[5])
        else:
            wanted = preferred_devices(prefix) if device is None else Setting("device", device, "keyword")
            borrowed = None
        named, options, queues = with_options(wanted.value, options)
        report = settings(options, prefix)
        resolved = options_of(report)
        index, preferences = selection(named)
        if queues is not None and not family_queue_indices:
            chosen = chosen_device(index, preferences, resolved.visible_devices, resolved.driver)
            family_queue_indices = [compute_family(chosen)] * queues
        names, features = desired(desired_extensions)
        dump = report.dump.value
        if dump:
            with contextlib.suppress(OSError, ValueError):  # what writes to it says why not
                own_folder(dump)
        native = _native.Context(
            index=index,
            preferences=preferences,
            visible=resolved.visible_devices,
            family_queue_indices=family_indices(family_queue_indices),
            desired_extensions=names,
            features=features,
            queue_priorities=resolved.queue_priorities,
            required_extensions=resolved.required_extensions,
            validation=resolved.validation,
            layers=resolved.debug_layers,
            driver=manifest_named(resolved.driver),
            robust_access=resolved.robust_access,
            pipeline_cache_dir=os.fsencode(resolved.pipeline_cache_dir),
            memory_block_size=resolved.memory_block_size,
            memory_limit=resolved.memory_limit,
            memory_idle_limit=resolved.memory_idle_limit,
            memory_debug=resolved.memory_debug,
            force_staging=resolved.force_staging,
            force_non_coherent=resolved.force_non_coherent,
            recent_pipelines=resolved.recent_pipelines,
            pipeline_timeout=resolved.pipeline_timeout,
            watchdog=0.0 if resolved.watchdog == math.inf else resolved.watchdog,
            dump=os.fsencode(dump),
            wait_mode=resolved.wait_mode,
            debug=resolved.debug,
            borrowed=borrowed,
        )
        info = native.info
        try:
            check_driver(info)
            if handles is not None:
                check_features(handles.features, info["features"])
        except KomputeError:
            native.destroy()
            raise
        warn_of(native.repeated_devices)
        self._native = native
        self._buffer = native.buffer
        self._keepers = weakref.WeakSet()
        devices.add(self)
        self._loaded = {}
        self._scratch = {}
        self._tensors = None
        self._config = ConfigReport((wanted, *report))
        self._values = {each.name: each.value for each in self._config}
        self._info = info
        self._device_name = info["device_name"]
        self._max_groups = tuple(info["max_work_group_count"])
        write_crash = None
        if dump:
            from .report import write_crash_report

            write_crash = functools.partial(write_crash_report, dump, info, self._config)
        self._diagnostics = Diagnostics(native, resolved.strict, write_crash, "wait" in resolved.debug)
        looked_at = bool(resolved.debug or resolved.capture)
        watched = native.validation or resolved.memory_debug or looked_at
        if looked_at:
            self._values["tuning"] = "off"  # measurements are submissions, too
        self._watch = self._diagnostics.report if watched else None
        self._guard = guard_for(resolved.transfers)
        self._diagnostics.log_notes()
        if self._watch is not None or dump:
            native.note_lines()
            self._diagnostics.watch()
        if self._watch is not None:
            self._watch()

    def is_init(self) -> bool:
        """True if the device is open: False after `destroy()`."""
        return self._native.is_init()

    def get_device_properties(self) -> DeviceInfo:
        """The properties of this Manager's device."""
        return DeviceInfo(self._info)

    def list_devices(self) -> list[DeviceInfo]:
        """The Vulkan devices of the machine that are visible to this Manager, in the list's order.

        Raises UnavailableError if there is no Vulkan loader or driver.
        """
        return list_devices(self._config.visible_devices.value, driver=self._config.driver.value)

    @property
    def _looks_at_arrays(self) -> bool:
        """Whether each call with arrays is to be warned of or looked at, so that none is prepared."""
        return self._guard is not None or self._tensors is not None

    @property
    def driver(self) -> DriverInfo | None:
        """The device's driver, as its manifest describes it; `get_device_properties` has what it says itself.

        None if no installed manifest names the library that answers: a layer, such as validation, hides it
        unless ``driver=`` was given.
        """
        return driver_of(self._native.driver_library, self._config.driver.value)

    @property
    def compile_options(self) -> dict[str, Any]:
        """Options of `kp.compile` for this device: see `DeviceInfo.compile_options`."""
        return self.get_device_properties().compile_options

    def supports(self, *names: str) -> bool:
        """True if the device has all of these features and extensions, by Vulkan's names, enabled for this
        Manager. Raises NotFoundError as `DeviceInfo.supports` does.

        >>> mgr.supports("shaderInt64", "VK_KHR_8bit_storage") in (True, False)
        True
        """
        return supported(self._info, names, {*self.enabled_features, *self.enabled_extensions})

    @property
    def config(self) -> ConfigReport:
        """The options of this Manager and the source of each value (see `kp.config_report`)."""
        return self._config

    def _setting(self, name: str) -> Any:
        """The value of one of its options."""
        return self._values[name]

    @property
    def queues(self) -> list[dict[str, Any]]:
        """The open queues: dicts with "family", "index" and "shared" (with an earlier queue of the list)."""
        return list(self._native.queues)

    @property
    def waits(self) -> str:
        """How short waits are done: "spin", "block", or "measuring" while ``wait_mode="auto"`` tries both."""
        return self._native.waits

    @property
    def enabled_extensions(self) -> list[str]:
        """The device extensions that are enabled."""
        return list(self._native.enabled_extensions)

    @property
    def enabled_features(self) -> list[str]:
        """The device features that are enabled, under Vulkan's names."""
        return list(self._native.enabled_features)

    @property
    def memory(self) -> DeviceMemory:
        """The use of the device's memory: heaps, totals, the holders of memory, shader modules and pipelines.

        See `kp.DeviceMemory`.
        """
        from .memory_use import DeviceMemory

        return DeviceMemory(self, self._native, self._diagnostics)

    @property
    def validation(self) -> bool:
        """True if the validation layer is loaded and active."""
        return self._native.validation

    @property
    def host_import_alignment(self) -> int | None:
        """The alignment in bytes of memory that `from_host` can share; None if the device shares none."""
        return self._native.host_import_alignment or None

    def image_formats(self) -> dict[FormatName, tuple[Literal["store", "sample", "filter"], ...]]:
        """The uses of images of each format on this device: any of "store", "sample", "filter".

        The keys are GLSL's names, or names in the same style; formats that the device does not support are
        left out.
        """
        made: dict[Any, Any] = {name: tuple(uses) for name, uses in self._native.image_formats() if uses}
        return made

    def _check_groups(
        self, groups: tuple[int, ...], what: str, shader: Shader, special: Specialization
    ) -> None:
        """Raises InvalidArgumentError for more workgroups than the device runs, even in layers."""
        limits = self._max_groups
        if groups[0] <= limits[0] and groups[1] <= limits[1] and groups[2] <= limits[2]:
            return
        axis = next(i for i in range(3) if groups[i] > limits[i])
        if max(groups) > _MOST_GROUPS:
            why = f"no device counts more than {_MOST_GROUPS}: give fewer"
        else:
            x, y, z = groups
            why = shader.refuses((x, y, z), special.data, special.entries)
        if why:
            raise InvalidArgumentError(
                f"{what} gives {groups[axis]} groups in {_AXES[axis]}; {self._device_name} runs at most "
                f"{limits[axis]} there (maxComputeWorkGroupCount {limits}), and {why}"
            )

    def _after(self, where: MemoryTypes) -> None:
        if where is not MemoryTypes.device:
            self._diagnostics.log_notes()  # the core notes requests for memory that it could not satisfy
        if self._watch is not None:
            self._watch()

    # -- raw Vulkan: these raise FailedPreconditionError if the Manager is destroyed -------------------------

    def _open(self) -> Context:
        if not self._native.is_init():
            raise FailedPreconditionError(f"{self!r}: it has no Vulkan handles")
        return self._native

    @property
    def vk_instance(self) -> int:
        """The VkInstance, as an integer."""
        return self._open().vk_instance

    @property
    def vk_physical_device(self) -> int:
        """The VkPhysicalDevice, as an integer."""
        return self._open().vk_physical_device

    @property
    def vk_device(self) -> int:
        """The VkDevice, as an integer."""
        return self._open().vk_device

    @property
    def vk_handles(self) -> VkHandles:
        """All handles, the enabled extensions and features: for `Manager.from_handles`, and for other
        libraries that work on this device. Keep the Manager as long as they do.
        """
        native = self._open()
        return VkHandles(
            native.vk_instance,
            native.vk_physical_device,
            native.vk_device,
            tuple((queue["family"], queue["index"]) for queue in native.queues),
            tuple(native.enabled_extensions),
            tuple(native.enabled_features),
        )

    def vk_queue(self, queue_index: int = 0) -> int:
        """The VkQueue of one of the Manager's queues, as an integer.

        Raises OutOfRangeError if it is not open, ArgumentTypeError if `queue_index` is not an int,
        FailedPreconditionError if the Manager is destroyed.
        """
        index = as_index(queue_index, "queue_index")
        if not 0 <= index < self._native.queue_count:
            raise OutOfRangeError(
                f"queue_index is {index}; the Manager opened {self._native.queue_count} queues, "
                "numbered from 0"
            )
        return self._open().vk_queue(index)


def require_manager(manager: Any) -> None:
    """Raises ArgumentTypeError if `manager` is not a Manager."""
    if not isinstance(manager, Device):
        raise ArgumentTypeError(
            f"manager is {shown(manager)} of type {type(manager).__name__}; give a kp.Manager"
        )
