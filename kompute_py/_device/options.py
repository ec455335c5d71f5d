"""Options of a Manager: keyword, else environment variable ``KOMPUTE_PY_<NAME>``, else default.

`env_prefix` changes the variables' prefix for programs that embed this package; with None, no variable is
read.
"""

from __future__ import annotations

import functools
import math
import operator
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from .._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .._base.plain_arguments import as_list, as_text
from .._base.settings import (
    PREFIX,
    ConfigReport,
    Option,
    Setting,
    as_bytes,
    default_cache_dir,
    find_setting,
    require_text,
    to_choice,
    to_path,
)
from .._base.warn import warn
from .._compilers.limits import as_seconds
from .._compilers.settings import OPTIONS as OPTIONS_OF_COMPILERS
from .drivers import to_driver
from .names import name_of
from .uri import with_options, without_uris

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .annotations import DeviceLike, ManagerOptions

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"", "0", "false", "no", "off"})


class Options(NamedTuple):
    """The option values of one Manager; `_OPTIONS` says what they mean."""

    validation: bool
    strict: bool
    robust_access: bool
    pipeline_cache_dir: str
    required_extensions: tuple[str, ...]
    debug_layers: tuple[str, ...]
    memory_block_size: int
    memory_limit: int
    memory_idle_limit: int | None
    queue_priorities: tuple[float, ...]
    debug: tuple[str, ...]
    capture: str
    capture_limit: int
    memory_debug: bool
    force_staging: bool
    force_non_coherent: bool
    recent_pipelines: int
    pipeline_timeout: float
    watchdog: float
    wait_mode: str
    tuning: str
    tuning_dir: str
    driver: str
    profile: str
    transfers: Literal["allow", "warn", "raise"]
    visible_devices: str | None


def _to_bool(value: Any, source: str) -> bool:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise InvalidArgumentError(f"{source} is {shown(value)}; use 1, true, yes, on, or 0, false, no, off")
    try:
        if value in (0, 1):
            return bool(value)
    except Exception:  # an array's comparison has no truth value
        pass
    raise ArgumentTypeError(f"{source} is {shown(value)}; use True or False")


_DEBUG_WORDS = (
    "printf",
    "bounds",
    "races",
    "barriers",
    "loops",
    "nans",
    "disjoint",
    "values",
    "record=FOLDER",
    "wait",
)


def _to_debug(value: Any, source: str) -> tuple[str, ...]:
    """Words from a list, or from text separated by commas."""
    given = value.split(",") if isinstance(value, str) else string_tuple(value, source)
    words = tuple(word.strip() for word in given if word.strip())
    for word in words:
        key, equals, rest = word.partition("=")
        if not any(each.partition("=")[:2] == (key, equals) for each in _DEBUG_WORDS) or (
            equals and not rest
        ):
            raise InvalidArgumentError(
                f"{source} has {shown(word)}; it takes {', '.join(_DEBUG_WORDS)}, separated by commas"
            )
    return words


def _to_priorities(value: Any, source: str) -> tuple[float, ...]:
    """Numbers from a list, or from text with commas or spaces."""
    takes = "a number from 0 to 1 for each queue"
    given = value.replace(",", " ").split() if isinstance(value, str) else as_list(value, source, takes)
    try:
        made = tuple(float(each) for each in given)
    except Exception:  # of the object's own __float__
        raise ArgumentTypeError(f"{source} is {shown(value)}; give {takes}") from None
    if not all(0 <= each <= 1 for each in made):
        raise InvalidArgumentError(f"{source} is {shown(value)}; give {takes}")
    return made


def _to_names(value: Any, source: str) -> tuple[str, ...]:
    """Names from a list, or from text separated by spaces (as Kompute has it) or commas."""
    if isinstance(value, str):
        return tuple(as_text(value, source).replace(",", " ").split())
    return string_tuple(value, source)


_SMALLEST_BLOCK = 2**20
_MOST_RECENT = 10**6


def _to_count(value: Any, source: str) -> int:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        count = int(value.strip()[:20])
    elif isinstance(value, str):
        raise InvalidArgumentError(f"{source} is {shown(value)}; use an int from 0 to {_MOST_RECENT}")
    else:
        try:
            if isinstance(value, bool):
                raise TypeError
            count = operator.index(value)
        except Exception:  # of the object's own __index__
            raise ArgumentTypeError(
                f"{source} is {shown(value)}; use an int from 0 to {_MOST_RECENT}"
            ) from None
    if not 0 <= count <= _MOST_RECENT:
        raise InvalidArgumentError(f"{source} is {shown(value)}; use an int from 0 to {_MOST_RECENT}")
    return count


def _tuning_dir() -> str:
    root = default_cache_dir()
    return root and os.path.join(root, "tuning")


def _to_block_size(value: Any, source: str) -> int:
    size = as_bytes(value, source)
    if size < _SMALLEST_BLOCK:
        raise InvalidArgumentError(
            f"{source} is {shown(value)}; blocks have at least {_SMALLEST_BLOCK} bytes (1 MiB)"
        )
    return size


def _to_visible(value: Any, source: str) -> str:
    """A list of devices in the core's form. Text already has this form, but for URIs."""
    if isinstance(value, str):
        return without_uris(as_text(value, source), source)
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise ArgumentTypeError(
            f"{source} is {shown(value)}; use a list of devices: indices, names, UUIDs, DeviceInfo"
        )
    listed = as_list(value, source, "a list of devices: indices, names, UUIDs, DeviceInfo")
    return without_uris(";".join(name_of(device, source) for device in listed), source)


_OPTIONS: dict[str, Option] = {
    "validation": Option(
        "Turn the validation layer on, with synchronization validation. Newer layers are told to take into "
        "account what dispatches read (their setting `syncval_shader_accesses_heuristic`): otherwise they "
        "report hazards between writes that a dispatch's read orders. Messages go to "
        '`logging.getLogger("kompute_py")`.',
        _to_bool,
        lambda: False,
    ),
    "strict": Option(
        "Raise validation errors after the call that caused them. Without it they are only logged.",
        _to_bool,
        lambda: False,
    ),
    "robust_access": Option(
        "Enable robustBufferAccess, and clamp indices into other arrays to the last element.",
        _to_bool,
        lambda: True,
    ),
    "pipeline_cache_dir": Option(
        'The folder of the pipeline cache. "" keeps the cache in memory only.',
        functools.partial(to_path, takes='a folder, or "" to keep the pipeline cache in memory only'),
        default_cache_dir,
        is_path=True,
    ),
    "required_extensions": Option(
        "Device extensions without which no Manager is opened: a list, or names separated by spaces "
        "or commas.",
        _to_names,
        tuple,
    ),
    "debug_layers": Option(
        "Further instance layers to load: a list, or names separated by spaces or commas.",
        _to_names,
        tuple,
        ("KOMPUTE_ENV_DEBUG_LAYERS",),
    ),
    "memory_block_size": Option(
        "The size of the largest block taken from the driver, at least 1 MiB. A larger request gets a "
        "block of its own.",
        _to_block_size,
        lambda: 64 * 2**20,
    ),
    "memory_limit": Option(
        "The most memory to take from the driver, over all heaps. 0: no limit other than the driver's. "
        "Whole blocks count: where tensors of many sizes live long, a smaller memory_block_size leaves less "
        "of them unusable.",
        as_bytes,
        lambda: 0,
    ),
    "memory_idle_limit": Option(
        "The most memory to keep when nothing uses it; blocks beyond it go back to the driver at once. "
        "None: a few blocks stay, at most `memory_block_size` of each kind, so that loops need no new ones.",
        as_bytes,
        lambda: None,
    ),
    "queue_priorities": Option(
        "The priorities of the queues, from 0 to 1, in the order of `family_queue_indices`: a list, or text "
        "with commas. A driver may run work of a higher one first. Empty: 1 for each.",
        _to_priorities,
        tuple,
    ),
    "debug": Option(
        "Looks at operations and shaders while they run: words in a list, or text separated by commas. "
        '"printf": messages of `debugPrintfEXT` and `printf`. "bounds": reads and writes outside of arrays; '
        "such writes are skipped, such reads give 0. "
        '"races": accesses of different invocations that nothing orders. "barriers": barriers that only '
        'a part of a workgroup reaches. "loops": loops with so many turns that llvmpipe ends them. '
        "With these five, shaders get additional code, all "
        'queues are one, and kernels keep the lines of their source. "nans": a call whose operation writes a '
        'NaN or an infinity raises NonFiniteError. "disjoint": a warning if sequences of two queues use the '
        'same elements of a tensor that one of them declares disjoint. "record=FOLDER": each operation\'s '
        'results are written to that folder, for `kompute-py diff`. "values": `mgr.watch` can be used. '
        "With any of these four, each submission waits until it is done, and a recording needs host memory "
        "for the inputs and results of all its operations. "
        '"wait": each call that submits work waits until it is done, and raises its errors. '
        "With any word, operations are not tuned.",
        _to_debug,
        tuple,
    ),
    "capture": Option(
        "The file for a program of all that the Manager submits, with the data that it read, written when "
        "the script ends: `kompute-py program run` and `compare` repeat it. Each submission waits until it "
        'is done, and operations are not tuned. "": no file.',
        functools.partial(to_path, takes='a file for the program, or "" for none'),
        lambda: "",
        is_path=True,
    ),
    "capture_limit": Option(
        "The most bytes of data in that file: a submission beyond them raises FailedPreconditionError.",
        as_bytes,
        lambda: 2**30,
    ),
    "memory_debug": Option(
        "Put guard bytes around host-visible memory, check them on release, and poison released memory.",
        _to_bool,
        lambda: False,
    ),
    "force_staging": Option(
        "Treat `device` and `storage` memory as not host-visible, as on a discrete GPU. For debugging.",
        _to_bool,
        lambda: False,
    ),
    "force_non_coherent": Option(
        "Flush and invalidate mapped memory even if it is coherent. For debugging.",
        _to_bool,
        lambda: False,
    ),
    "recent_pipelines": Option(
        "How many unused pipelines, and unused shader modules, are kept: the most recently requested ones.",
        _to_count,
        lambda: 128,
    ),
    "pipeline_timeout": Option(
        "How long a call waits for the driver to make a pipeline, in seconds. The driver cannot be stopped: "
        "after that the call raises EvalTimeoutError, and the driver goes on.",
        as_seconds,
        lambda: 300.0,
        empty_is_default=True,
    ),
    "watchdog": Option(
        "How long the system lets a submission run before it resets the device, in seconds, such as 2. "
        "Recordings are submitted in parts of at most half of that, and dispatches that take longer run in "
        "parts, by their measured rate. inf: as long as they take.",
        as_seconds,
        lambda: math.inf,
        empty_is_default=True,
    ),
    "wait_mode": Option(
        'How short waits are done: "spin" polls the device\'s counter for up to 0.1 ms before it '
        'sleeps, "block" sleeps at once, "auto" measures which is faster.',
        functools.partial(to_choice, choices=("auto", "spin", "block")),
        lambda: "auto",
    ),
    "tuning": Option(
        'How operations choose among their variants. "auto": the first call of a kind measures them, and the '
        'choice is kept. "stored": a choice that is kept, else the first that the device supports; nothing '
        'is measured. "off": always the first, so that runs can be repeated exactly.',
        functools.partial(to_choice, choices=("auto", "stored", "off")),
        lambda: "auto",
    ),
    "tuning_dir": Option(
        'The folder of the choices among variants. "" keeps them in memory only.',
        functools.partial(to_path, takes='a folder, or "" to keep choices of variants in memory only'),
        _tuning_dir,
        is_path=True,
    ),
    "driver": Option(
        "The only Vulkan driver to use: a name of `kp.available_drivers` or a vendor's, or the path of a "
        'manifest. "": all that the loader finds. Opening one sets VK_DRIVER_FILES in the environment for '
        "a moment.",
        to_driver,
        lambda: "",
    ),
    "profile": Option(
        "The file for a trace of all that the Manager runs, in Chrome's format, written when the program "
        'ends (see `kp.Profile`). "": no profile.',
        functools.partial(to_path, takes='a file for the trace, or "" for none'),
        lambda: "",
        is_path=True,
    ),
    "transfers": Option(
        "Calls that copy contents between the host and the device without saying so, such as "
        '`np.asarray(t)`, `float(t)` and kernels with arrays: "allow", "warn" (a KomputeWarning) or "raise" '
        "(FailedPreconditionError).",
        functools.partial(to_choice, choices=("allow", "warn", "raise")),
        lambda: "allow",
    ),
    "visible_devices": Option(
        'The visible devices, in this order: a list, or text separated by ";". Other devices are '
        "hidden. None: all.",
        _to_visible,
        lambda: None,
    ),
}
_ALL = _OPTIONS | OPTIONS_OF_COMPILERS


def to_prefix(value: Any) -> str | None:
    """Checks `env_prefix`."""
    if value is None or isinstance(value, str):
        return None if value is None else as_text(value, "env_prefix")
    raise ArgumentTypeError(
        f"env_prefix is {shown(value)}; use a str, or None to read no environment variable"
    )


def settings(keywords: Mapping[str, Any], prefix: str | None = PREFIX) -> ConfigReport:
    """Each option's value, from the keywords and the environment, and its source.

    A keyword that is None counts as not given. Raises InvalidArgumentError for an unknown keyword (it lists
    the known keywords) or for a value that cannot be read, and ArgumentTypeError for a value of the wrong
    type.
    """
    _look_at_names(prefix)
    for name in keywords:
        if name not in _ALL:
            if "feature" in name:
                raise InvalidArgumentError(
                    f"Manager has no option {shown(name)}: it turns on all features that it knows and the "
                    "device has, and mgr.supports(NAME) tells which; desired_extensions= asks for more"
                )
            near = _nearest(name, [*_ALL, "env_prefix"])
            raise InvalidArgumentError(
                f"Manager has no option {shown(name)}{f', did you mean {near!r}?' if near else ''}; known "
                "options: "
                f"{', '.join(sorted([*_ALL, 'env_prefix']))}"
            )
    return ConfigReport(find_setting(name, option, keywords, prefix) for name, option in _ALL.items())


# Variables of the package that are not options of a Manager, and beginnings of those that its tests and tools
# take.
_OTHER_VARIABLES = {
    "DEVICE": "The device of a Manager that is created without one: an index, a part of a name, a vendor, a "
    'type or a UUID, or several of them, separated by commas ("nvidia,amd,cpu"). The first that is found '
    "is used.",
    "VULKAN_LIBRARY": "The file of the Vulkan loader. Without it, the system's loader is used.",
}
_OF_TESTS = ("TEST", "TSAN")
_names_warned: set[str] = set()


def _look_at_names(prefix: str | None) -> None:
    """Warns, once for each, of variables with our prefix that nothing reads."""
    if not prefix:
        return
    known = {prefix + name.upper() for name in _ALL} | {prefix + "DEVICE"}
    if prefix == PREFIX:
        known.update(prefix + name for name in _OTHER_VARIABLES)
    for name in os.environ:
        if not name.startswith(prefix) or name in known or name in _names_warned:
            continue
        if prefix == PREFIX and name[len(prefix) :].startswith(_OF_TESTS):
            continue
        near = _nearest(name, known)
        # A program with its own prefix may have variables of its own.
        if near is None and prefix != PREFIX:
            continue
        _names_warned.add(name)
        warn(
            f"The environment variable {name} is set, and nothing reads it"
            + (f": did you mean {near}?" if near else f"; there are: {', '.join(sorted(known))}")
        )


def _nearest(name: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), 1, 0.75)), None)


def options_of(report: ConfigReport) -> Options:
    """The values of the options that concern the device."""
    return Options(**{each.name: each.value for each in report if each.name in _OPTIONS})


def preferred_devices(prefix: str | None) -> Setting:
    """The preference from the environment, for calls without a device."""
    variable = None if prefix is None else f"{prefix}DEVICE"
    value = None if variable is None else os.environ.get(variable, "").strip()
    if value:
        require_text(value, cast(str, variable))
    return Setting("device", value or None, cast(str, variable) if value else "default")


def config_report(
    device: DeviceLike | Iterable[DeviceLike] | None = None,
    *,
    env_prefix: str | None = PREFIX,
    **options: Unpack[ManagerOptions],
) -> ConfigReport:
    """The options that a Manager with these arguments would use, and their sources. Creates no Manager.

    ``print(kp.config_report())`` shows a table; ``report.validation.source`` is "keyword", "default" or the
    name of an environment variable. Raises the errors of `kp.Manager` for its options.

    >>> kp.config_report(validation=True).validation
    Setting(name='validation', value=True, source='keyword')
    """
    prefix = to_prefix(env_prefix)
    first = preferred_devices(prefix) if device is None else Setting("device", device, "keyword")
    _, given, _ = with_options(first.value, options)
    return ConfigReport((first, *settings(given, prefix)))


def string_tuple(value: Iterable[str], what: str) -> tuple[str, ...]:
    """Converts `value` to a tuple of str. Raises ArgumentTypeError, naming `what`, for anything else."""
    if isinstance(value, str):
        raise ArgumentTypeError(f"{what} is the str {shown(value)}; give a list of names: [{shown(value)}]")
    names = tuple(as_list(value, what, "a list of names", sets=True))
    for name in names:
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"{what} has {shown(name)} of type {type(name).__name__}; give names as str"
            )
        as_text(name, what)
    return names
