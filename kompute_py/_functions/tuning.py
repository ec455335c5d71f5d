"""The choice among an operation's variants: by the device's facts, then by a measurement that is kept.

The choices for a device are one file in the folder `tuning_dir`; what this process has found is kept in
memory, too. A file is written under another name and renamed, so readers see a whole file or none. Content
that is not such a file gives a warning, and the next choice replaces it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .._base.errors import ArgumentTypeError, InvalidArgumentError, UnimplementedError, shown
from .._base.file_access import delete_abandoned, is_temporary, read_own, replace_own
from .._base.text import duration
from .._base.warn import warn

if TYPE_CHECKING:
    from .function import Function

_FORMAT = 1
_MOST_CHOICES = 4096
"""Choices that are kept for each device; the oldest go first."""
_MOST_BYTES = 1 << 24
_QUICK = 0.1
"""Seconds after which a quick measurement of all variants begins no new round."""
_THOROUGH = 1.0
"""Seconds that `tune` gives to each variant."""
_ROUNDS = 3
"""The least number of rounds."""
_HOPELESS = 8.0
"""A variant that takes this many times as long as the best is not measured again."""
_log = logging.getLogger("kompute_py")


class Tuning(NamedTuple):
    """The result of `kp.tune`.

    >>> kp.typing.Tuning("run", {"shared": 3e-3, "run": 1e-3}).variant
    'run'
    """

    variant: str
    """The variant that later calls take."""
    seconds: dict[str, float]
    """The time of a run of each variant."""


Tuning.__module__ = "kompute_py.typing"  # where users find it


def check_variants(who: str, found: Any) -> list[str]:
    """The value that `variants` of an operation returned.

    Raises ArgumentTypeError unless it is a list of str, InvalidArgumentError if it is empty or has a name
    twice.
    """
    if not isinstance(found, (list, tuple)) or not all(isinstance(each, str) for each in found):
        raise ArgumentTypeError(f"{who}: variants returns a list of names, not {shown(found)}")
    if not found or len(set(found)) < len(found) or not all(found):
        raise InvalidArgumentError(f"{who}: variants returns one name or more, each once, not {shown(found)}")
    return list(found)


def measured(
    runs: Mapping[str, Callable[[], Callable[[], None]]], thorough: bool
) -> tuple[dict[str, float], int]:
    """Seconds of a run of each variant, the least of several, and the number of rounds.

    Each value of `runs` prepares its variant and returns what runs it. One that the device cannot run
    (UnimplementedError) is left out; if that is true for all, the last error is raised.
    """
    ready: dict[str, Callable[[], None]] = {}
    seconds: dict[str, float] = {}
    failed: UnimplementedError | None = None
    for name, prepare in runs.items():
        try:
            run = prepare()
            run()  # compiles
        except UnimplementedError as error:
            failed = error
            continue
        ready[name] = run
    if not ready:
        assert failed is not None
        raise failed
    clock = time.perf_counter
    began = clock()
    limit = _THOROUGH * len(ready) if thorough else _QUICK
    rounds = 0
    while rounds < _ROUNDS or clock() - began < limit:
        best = min(seconds.values(), default=float("inf"))
        for name, run in ready.items():  # in turns, so that other work on the machine disturbs all alike
            if rounds >= _ROUNDS and not thorough and seconds[name] > 2 * best:
                continue
            if rounds and seconds[name] > _HOPELESS * best:
                continue
            start = clock()
            run()
            spent = clock() - start
            seconds[name] = min(spent, seconds.get(name, spent))
        rounds += 1
        if not thorough and rounds >= 32:
            break
    return seconds, rounds


class Choices:
    """The choices for one device: in memory, and in a file unless `folder` is ""."""

    def __init__(self, device: str, folder: str) -> None:
        self.device = device
        name = hashlib.sha256(device.encode()).hexdigest()[:32] + _SUFFIX
        self.path = os.path.join(folder, name) if folder else ""
        self._known: dict[str, str] = {}
        self._read_at: float | None = None
        self._lock = threading.Lock()

    def find(self, key: str, variants: Sequence[str]) -> str | None:
        """The choice for a key; None if there is none among `variants`."""
        with self._lock:
            if self._read_at is None:
                self._known = {**self._load(), **self._known}
            found = self._known.get(key)
        return found if found in variants else None

    def keep(self, key: str, variant: str) -> None:
        """Keeps a choice. Without a folder that can be written, only this process knows it."""
        with self._lock:
            self._known = {**self._load(), **self._known}  # of other processes, too
            self._known.pop(key, None)
            self._known[key] = variant
            while len(self._known) > _MOST_CHOICES:
                del self._known[next(iter(self._known))]
            if self.path:
                self._store()

    def _load(self) -> dict[str, str]:
        self._read_at = time.monotonic()
        if not self.path:
            return {}
        try:
            content = json.loads(read_own(self.path, _MOST_BYTES)[0])
            if content["format"] != _FORMAT or content["device"] != self.device:
                return {}
            choices = content["choices"]
            if not isinstance(choices, dict) or not all(isinstance(v, str) for v in choices.values()):
                raise ValueError("its choices are not names")
            return dict(list(choices.items())[-_MOST_CHOICES:])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            warn(f"The choices of variants in {self.path} cannot be read and are ignored: {error!r}")
            return {}

    def _store(self) -> None:
        content = {"format": _FORMAT, "device": self.device, "choices": self._known}
        folder, name = os.path.split(self.path)
        try:
            replace_own(self.path, json.dumps(content, indent=1).encode())
            delete_abandoned(folder, lambda each: is_temporary(each, name))
        except (OSError, ValueError):
            pass  # a full disk, or a folder that cannot be written


_SUFFIX = ".json"
_choices: dict[tuple[str, str], Choices] = {}
_choices_lock = threading.Lock()


def choices_of(properties: Mapping[str, Any], folder: str) -> Choices:
    """The choices for a device, by all that makes the speed of its kernels."""
    names = ("device_name", "vendor_id", "device_id", "driver_name", "driver_info", "driver_version")
    parts = [str(properties.get(name)) for name in names]
    if properties.get("type") == "cpu":
        parts.append(str(os.cpu_count()))
    device = " | ".join(parts)
    with _choices_lock:
        return _choices.setdefault((device, folder), Choices(device, folder))


def tuning_files(folder: str) -> list[str]:
    """The paths of the files of choices in a folder."""
    try:
        with os.scandir(folder) as found:
            return sorted(
                each.path
                for each in found
                if each.name.endswith(_SUFFIX)
                and len(each.name) == 32 + len(_SUFFIX)
                and each.is_file(follow_symlinks=False)
            )
    except OSError:
        return []


def report(who: str, seconds: Mapping[str, float], variant: str, spent: float) -> None:
    """Says in the log what was measured."""
    times = ", ".join(f"{name} {duration(each)}" for name, each in seconds.items())
    _log.info("%s: measured %s in %s; calls of this kind take %s", who, times, duration(spent), variant)


def tune(operation: Function, /, *args: Any, **named: Any) -> Tuning:
    """Measures the variants of a custom operation for a call, at leisure, and keeps the choice.

    The arguments are those of the call; their contents do not change. Later calls with tensors of the same
    dtypes and numbers of axes, and of about this size, take the fastest variant, in this process and in later
    ones on the same device. Without it, the first such call measures quickly (see the option `tuning`).
    The choice is kept whatever that option says; with "off", calls do not look at it.

    Raises ArgumentTypeError unless `operation` is a Function, InvalidArgumentError if it has no variants or
    is bound to one, and the errors of the call.

    >>> @kp.CustomOp.register
    ... class twice(kp.CustomOp):
    ...     signature = "twice(Tensor x) -> Tensor"
    ...     def select(self, ksel):
    ...         x = ksel.arg_tensor("x")
    ...         ksel.return_new_tensor(x.shape, x.dtype)
    ...     def variants(self, ksel):
    ...         return ["sum", "product"]
    ...     def generate(self, ksel, kb):
    ...         kb.yield_results("x_load(i) + x_load(i)" if ksel.variant == "sum" else "x_load(i) * 2")
    >>> found = kp.tune(twice, mgr.zeros(1000))
    >>> sorted(found.seconds), found.variant in found.seconds
    (['product', 'sum'], True)
    """
    if not hasattr(operation, "_tuned"):
        raise ArgumentTypeError(f"tune takes a custom operation, not {shown(operation)}")
    return operation._tuned(*args, **named)
