"""Types for annotations, which `kompute_py.typing` shows to users: a device, and the options of a Manager.

Only checkers of types and `kompute_py.typing` import this module.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict
from uuid import UUID

from .._base.annotations import CompilerName, SizeLike, TuningMode, WaitMode
from .names import DeviceInfo

DeviceLike = int | str | UUID | DeviceInfo
"""A device: an index, a name, a vendor or a type, a UUID, a PCI address, a URI, or a `kp.DeviceInfo`."""

DescribedDevice = DeviceLike | Iterable[DeviceLike] | Mapping[str, Any] | os.PathLike[str]
"""A device that need not be here: also a description, or the path of one."""


class ManagerOptions(TypedDict, total=False):
    """The options of `kp.Manager` and `kp.config_report`. None means not given."""

    validation: bool | None
    """Turns the validation layer on."""
    strict: bool | None
    """Raises validation errors."""
    robust_access: bool | None
    """Limits accesses beyond the end of memory."""
    pipeline_cache_dir: str | os.PathLike[str] | None
    """The folder of the pipeline cache, "" for none."""
    required_extensions: str | Iterable[str] | None
    """Device extensions without which opening fails."""
    debug_layers: str | Iterable[str] | None
    """Further instance layers."""
    memory_block_size: SizeLike | None
    """The size of the largest block taken from the driver."""
    memory_limit: SizeLike | None
    """The most memory to take from the driver."""
    memory_idle_limit: SizeLike | None
    """The most memory to keep when nothing uses it."""
    queue_priorities: str | Iterable[float] | None
    """The priorities of the queues, from 0 to 1."""
    debug: str | Iterable[str] | None
    """Looks at operations and shaders while they run."""
    capture: str | os.PathLike[str] | None
    """The file for a program of all that is submitted, "" for none."""
    capture_limit: SizeLike | None
    """The most bytes of data in that file."""
    memory_debug: bool | None
    """Puts guard bytes around memory."""
    force_staging: bool | None
    """Treats device memory as invisible to the host."""
    force_non_coherent: bool | None
    """Flushes and invalidates mapped memory."""
    recent_pipelines: int | None
    """The number of unused pipelines and shader modules that are kept."""
    pipeline_timeout: float | None
    """The seconds that a call waits for the driver to make a pipeline."""
    watchdog: float | None
    """The seconds that the system lets a submission run."""
    wait_mode: WaitMode | None
    """How short waits are done."""
    tuning: TuningMode | None
    """How operations choose among their variants."""
    tuning_dir: str | os.PathLike[str] | None
    """The folder of the choices among variants, "" for none."""
    driver: str | os.PathLike[str] | None
    """The only Vulkan driver, by name, manifest or library, "" for all."""
    profile: str | os.PathLike[str] | None
    """The file for a trace of all that runs, "" for none."""
    transfers: Literal["allow", "warn", "raise"] | None
    """Whether calls may copy between the host and the device without saying so."""
    visible_devices: str | Iterable[DeviceLike] | None
    """Hides and orders devices."""
    shader_cache_dir: str | os.PathLike[str] | None
    """The folder of compiled shaders, "" for none."""
    shader_cache_size: SizeLike | None
    """The most bytes in the cache of compiled shaders, 0 for none."""
    compile: Literal["auto", "never"] | None
    """Whether source text may be compiled, or has to be in the cache."""
    compile_timeout: float | None
    """The time limit of a compilation in seconds."""
    dump: str | os.PathLike[str] | None
    """The folder that keeps sources and SPIR-V, "" for none."""
    compiler: CompilerName | None
    """The compiler for HLSL."""
    dxc_library: str | os.PathLike[str] | None
    """DXC's library or its folder, "" for no DXC."""
    slang_library: str | os.PathLike[str] | None
    """Slang's library or its folder, "" for no Slang."""
