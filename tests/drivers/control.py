"""Steers the null driver from Python: failures, counts, live objects, the log of executed commands.

The control functions are in the driver's own library. Opening the file that the Vulkan loader opens gives the
same instance of it, so this works in the process that uses the driver.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .locate import manifest


class Result(enum.IntEnum):
    """The VkResult values that a test injects or looks for."""

    NOT_READY = 1
    TIMEOUT = 2
    ERROR_OUT_OF_HOST_MEMORY = -1
    ERROR_OUT_OF_DEVICE_MEMORY = -2
    ERROR_INITIALIZATION_FAILED = -3
    ERROR_DEVICE_LOST = -4
    ERROR_MEMORY_MAP_FAILED = -5
    ERROR_LAYER_NOT_PRESENT = -6
    ERROR_EXTENSION_NOT_PRESENT = -7
    ERROR_FEATURE_NOT_PRESENT = -8
    ERROR_INCOMPATIBLE_DRIVER = -9
    ERROR_TOO_MANY_OBJECTS = -10
    ERROR_FORMAT_NOT_SUPPORTED = -11
    ERROR_FRAGMENTED_POOL = -12
    ERROR_UNKNOWN = -13
    ERROR_OUT_OF_POOL_MEMORY = -1000069000
    ERROR_INVALID_EXTERNAL_HANDLE = -1000072003
    ERROR_INVALID_SHADER_NV = -1000012000


_UNKNOWN = 2**64 - 1


class NullControl:
    """The control functions of one null driver library. Making one switches the counting of calls on.

    Counting and armed failures cost a submission some tens of nanoseconds; `count(False)` ends that for
    benchmarks.
    """

    def __init__(self, library: str | Path) -> None:
        self._library = ctypes.CDLL(str(library))
        u64, text, size = ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t
        signatures: dict[str, tuple[Any, list[Any]]] = {
            "fail": (ctypes.c_int, [text, u64, ctypes.c_int32]), "hold": (ctypes.c_int, [text]),
            "waiting": (u64, []), "pause": (None, [ctypes.c_int]), "count": (None, [ctypes.c_int]),
            "clear": (None, []), "calls": (u64, [text]), "knows": (ctypes.c_int, [text]),
            "total_calls": (u64, []), "armed_failures": (u64, []), "live": (u64, [text]),
            "log": (None, [ctypes.c_int]), "lose_device": (None, [u64]), "dispatches": (u64, []),
        }  # fmt: skip
        for name in (
            "live_report",
            "last_failed",
            "called",
            "violations",
            "commands",
            "barriers",
            "allocations",
            "devices",
        ):
            signatures[name] = (size, [ctypes.c_char_p, size])
        for name, (result, arguments) in signatures.items():
            function = getattr(self._library, f"kpnull_{name}")
            function.restype, function.argtypes = result, arguments
        self.count(True)

    def _call(self, name: str, *arguments: Any) -> Any:
        return getattr(self._library, f"kpnull_{name}")(*arguments)

    def _text(self, name: str) -> str:
        function: Callable[[Any, int], int] = getattr(self._library, f"kpnull_{name}")
        needed = function(None, 0)
        while True:
            buffer = ctypes.create_string_buffer(needed)
            grown = function(buffer, needed)
            if grown <= needed:  # another thread may have added something in between
                return buffer.value.decode(errors="replace")
            needed = grown

    def _known(self, entry: str) -> bytes:
        if not self._call("knows", entry.encode()):
            raise ValueError(f"the null driver has no entry point {entry!r}")
        return entry.encode()

    def fail(self, entry: str = "*", nth: int = 1, result: int = Result.ERROR_OUT_OF_DEVICE_MEMORY) -> None:
        """Make the nth call from now of an entry point return `result` and do nothing else; once.

        "*" stands for any entry point that can fail. `nth=1` is the next call.
        """
        if nth < 1:
            raise ValueError(f"nth counts from 1, got {nth}")
        name = b"*" if entry in ("", "*") else self._known(entry)
        if self._call("fail", name, nth, int(result)):
            raise ValueError(f"can not make call {nth} of {entry!r} return {result}")

    @contextlib.contextmanager
    def holding(self, entry: str) -> Iterator[NullControl]:
        """Within a `with` block, calls of an entry point that can fail wait inside the driver; `waiting`
        counts them.
        """
        self._call("hold", self._known(entry))
        try:
            yield self
        finally:
            self._call("hold", b"")

    @contextlib.contextmanager
    def pausing(self) -> Iterator[NullControl]:
        """Within a `with` block, no work of a queue ends (with ``gpu_us``): what returns did not wait for it,
        on a busy machine, too.
        """
        self.pause()
        try:
            yield self
        finally:
            self.pause(False)

    def pause(self, on: bool = True) -> None:
        """Let no work of a queue end, or let it go on."""
        self._call("pause", int(on))

    @property
    def waiting(self) -> int:
        """How many calls `holding` holds now."""
        return int(self._call("waiting"))

    def count(self, on: bool = True) -> None:
        """Count calls, or stop counting."""
        self._call("count", int(on))

    def clear(self) -> None:
        """Forget failures, counts, violations and the log. Live objects stay."""
        self._call("clear")

    def calls(self, entry: str) -> int:
        """Calls of an entry point since `clear`."""
        return int(self._call("calls", self._known(entry)))

    @property
    def total_calls(self) -> int:
        """Calls of entry points that can fail, since `clear`: `fail("*", n)` reaches n = 1 to this."""
        return int(self._call("total_calls"))

    def called(self) -> list[str]:
        """The entry points that can fail and were called since `clear`, sorted."""
        return sorted(self._text("called").split())

    @property
    def armed_failures(self) -> int:
        """Failures asked for that have not happened yet."""
        return int(self._call("armed_failures"))

    @property
    def last_failed(self) -> str:
        """The entry point whose call was made to fail last; empty when none was since `clear`."""
        return self._text("last_failed")

    def live(self, kind: str = "*") -> int:
        """Live objects of a type such as "VkBuffer";
        of all types but physical devices and queues by default."""
        number = int(self._call("live", kind.encode()))
        if number == _UNKNOWN:
            raise ValueError(f"the null driver has no objects of type {kind!r}")
        return number

    def live_report(self) -> dict[str, str]:
        """Per type with live objects: their count and the names they were given."""
        return dict(line.split(": ", 1) for line in self._text("live_report").splitlines())

    @property
    def dispatches(self) -> int:
        """Dispatches that the live devices have executed (that is, counted)."""
        return int(self._call("dispatches"))

    def violations(self) -> list[str]:
        """What the driver noticed since `clear` that an application must not do."""
        return self._text("violations").splitlines()

    def log(self, on: bool = True) -> None:
        """Log the commands of submissions from now on (with an empty log), or stop."""
        self._call("log", int(on))

    @contextlib.contextmanager
    def logging(self) -> Iterator[NullControl]:
        """Log within a `with` block; read `commands()` inside it or after it."""
        self.log(True)
        try:
            yield self
        finally:
            self.log(False)

    def commands(self) -> list[dict[str, Any]]:
        """The logged commands in the order of execution, each a dict with "op"."""
        return [each for each in json.loads(self._text("commands")) if each["op"] != "label"]

    def labels(self) -> list[str]:
        """The debug labels that began among the logged commands."""
        return [each["text"] for each in json.loads(self._text("commands")) if each["op"] == "label"]

    def barriers(self) -> list[dict[str, Any]]:
        """The barriers among the logged commands, in the form of synchronization2."""
        return json.loads(self._text("barriers"))

    def allocations(self) -> list[dict[str, Any]]:
        """The logged calls of vkAllocateMemory: "bytes", "type" and "priority" (None: none given)."""
        return json.loads(self._text("allocations"))

    def devices(self) -> list[dict[str, Any]]:
        """The logged calls of vkCreateDevice: "priorities" by queue family, "features" by sType."""
        return json.loads(self._text("devices"))

    def lose_device(self, after_submits: int = 0) -> None:
        """Every live device is lost, now or after that many further vkQueueSubmit calls."""
        self._call("lose_device", after_submits)


@functools.cache
def null_control() -> NullControl:
    """The control of the null driver that `environment("null")` selects."""
    return NullControl(json.loads(manifest("null").read_text())["ICD"]["library_path"])
