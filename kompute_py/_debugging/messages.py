"""Messages that shaders write into the device's debug buffer, as text: logged, or handed to a callback.

The core adds the code (native/core/instruments/instrument.hpp) and empties the buffer when no work runs;
`report` is called after each wait, as the messages of validation are.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    KomputeError,
    ValidationError,
    shown,
)
from .._compilers.sources import NOWHERE
from .printf import formatted, values_of
from .races import ACCESS, race_of

if TYPE_CHECKING:
    from .. import _native
    from .._device.device import Device

_LOGGER = "kompute_py"
_WORDS = frozenset({"printf", "bounds", "races", "barriers", "loops"})
_HEAD = 7  # words of a record before those of its site
_MOST_FAULTS = 10  # messages of one place of a shader that are told between two waits
_DONE = {"r": "the read gives 0", "w": "the write is skipped", "a": "the atomic operation is skipped"}
_LOOPS = "the loops of an invocation have made 65535 turns: llvmpipe (lavapipe) ends them here, unfinished"


class ShaderMessage(NamedTuple):
    """A report of one invocation of a shader, on a Manager with ``debug=``. As text, it is one line.

    >>> with kp.Manager(debug="printf") as debugged:
    ...     kernel = debugged.kernel('''
    ...     #version 450
    ...     #extension GL_EXT_debug_printf : require
    ...     layout(binding = 0) buffer X { float x[]; };
    ...     void main() { debugPrintfEXT("x is %f", x[0]); x[0] = 0; }''', name="show")
    ...     debugged.on_message(lambda message: print(message.text, message.invocation))
    ...     _ = kernel(np.array([2.5], np.float32))
    x is 2.500000 (0, 0, 0)
    """

    kind: str
    """ "printf", "bounds", "races", "barriers" or "loops", as in ``debug=``, or "dropped": messages that did
    not fit were not kept."""
    text: str
    """The message."""
    file: str = ""
    """The source's name; "" if the module does not say it (compile it with ``debug_info=True``)."""
    line: int = 0
    """Counted from 1; 0 if unknown."""
    name: str = ""
    """The name of the operation, which is the kernel's or the algorithm's."""
    operation: int = 0
    """The position of the operation in its recording, from 0 on."""
    invocation: tuple[int, int, int] = (0, 0, 0)
    """gl_GlobalInvocationID."""
    values: tuple[Any, ...] = ()
    """Of printf, its arguments: numbers, tuples for vectors, str. Of bounds, the index and the length. Of
    races, the element's indices, the other invocation (None if unknown), and the line of its access (0 if
    unknown). Of barriers, how many invocations reach it, and of how many. Of loops, the turns.
    """

    def __str__(self) -> str:
        if self.kind == "dropped":
            return self.text
        place = f"{self.file}:{self.line}: " if self.line else ""
        which = f"{self.name!r}, operation {self.operation + 1}"  # counted as errors count them
        return f"{place}{self.text} ({which}, invocation {self.invocation})"


class _Site(NamedTuple):
    kind: str
    file: str
    line: int
    text: str
    arguments: str
    strings: list[str]


class Messages:
    """The messages of one Manager's shaders."""

    __slots__ = ("_native", "_operations", "_sites", "_strict", "callback")

    def __init__(self, native: _native.Context, strict: bool) -> None:
        self._native = native
        self._strict = strict
        self._sites: dict[int, list[_Site]] = {}
        self._operations: dict[int, tuple[int, str]] = {}
        self.callback: Callable[[ShaderMessage], object] | None = None

    def report(self, can_raise: bool = True) -> None:
        """Logs the reports of shaders since the last call, or hands it to the callback.

        In strict mode, raises ValidationError if that includes faults.
        """
        taken = self._native.take_debug()
        if taken is None:
            return
        faults: list[tuple[str, str, str]] = []
        for message in self._messages(*taken):
            if message.kind not in ("printf", "dropped"):
                faults.append(("error", message.kind, str(message)))
            if self.callback is not None:
                self.callback(message)
            else:
                _log(message)
        if faults and self._strict and can_raise:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            raise ValidationError(f"A shader's {faults[0][1]}: {faults[0][2]}{more}", faults)

    def _messages(self, records: bytes, dropped: int) -> Iterator[ShaderMessage]:
        words = np.frombuffer(records, np.uint32)
        told: Counter[tuple[int, int]] = Counter()
        more: Counter[tuple[int, int]] = Counter()
        start = 0
        while start < len(words):
            size, module, number, operation, x, y, z = words[start : start + _HEAD].tolist()
            payload = words[start + _HEAD : start + size]
            start += size
            site = self._site(module, number)
            if site.kind != "printf":
                times = int(payload[2]) if site.kind == "bounds" else 1  # of this invocation
                if told[module, number] == _MOST_FAULTS:
                    more[module, number] += times
                    continue
                told[module, number] += 1
                more[module, number] += times - 1
            text, values = self._text_of(site, payload.tolist(), module)
            position, name = self._operation(operation)
            yield ShaderMessage(site.kind, text, site.file, site.line, name, position, (x, y, z), values)
        for (module, number), count in more.items():
            if count:
                site = self._site(module, number)
                where = f"{site.file}:{site.line}: " if site.line else ""
                shown_text = f" ({site.text})" if site.text else ""
                yield ShaderMessage("dropped", f"{where}{count} more like this{shown_text}")
        if dropped:
            yield ShaderMessage(
                "dropped", f"{dropped} more messages of shaders did not fit into 4 MiB and were not kept"
            )

    def _text_of(self, site: _Site, payload: list[int], module: int) -> tuple[str, tuple[Any, ...]]:
        if site.kind == "printf":
            values = values_of(site.arguments, site.strings, np.array(payload, np.uint32))
            return formatted(site.text, values).rstrip("\n"), tuple(values)
        if site.kind == "races":
            race = race_of(payload, site.text.count("[]"))
            earlier = self._site(module, race.site - 1) if race.site else None
            place = f"{earlier.file}:{earlier.line}" if earlier and earlier.line else ""
            line = earlier.line if earlier else 0
            return race.text(site.text, site.arguments, place), (race.indices, race.other, line)
        if site.kind == "barriers":
            return f"{payload[0]} of {payload[1]} invocations of the workgroup reach this barrier", tuple(
                payload
            )
        if site.kind == "loops":
            return _LOOPS, tuple(payload)
        return _outside(site, payload)

    def _site(self, module: int, number: int) -> _Site:
        sites = self._sites.get(module)
        if sites is None:
            sites = self._sites[module] = [
                site._replace(file=site.file.removeprefix(f"{NOWHERE}/"))
                for site in (_Site(*each) for each in self._native.debug_sites(module))
            ]
        return sites[number]

    def _operation(self, number: int) -> tuple[int, str]:
        known = self._operations.get(number)
        if known is None:
            position, _, name = self._native.debug_operation(number).partition(":")
            known = self._operations[number] = int(position), name
        return known


def _outside(site: _Site, payload: list[int]) -> tuple[str, tuple[Any, ...]]:
    access, sign = site.arguments[0], site.arguments[1]
    index, length, _ = payload
    if sign == "i" and index >= 2**31:
        index -= 2**32
    text = (
        f"{ACCESS[access]} element {index} of {site.text or 'an array'}, which has {length}: {_DONE[access]}"
    )
    return text, (index, length)


def _log(message: ShaderMessage) -> None:
    from logging import getLogger

    getLogger(_LOGGER).log(30 if message.kind in ("printf", "dropped") else 40, "%s", message)


_of_managers: weakref.WeakKeyDictionary[Device, Messages] = weakref.WeakKeyDictionary()


def begin_messages(manager: Device, words: tuple[str, ...]) -> None:
    """From now on, the Manager's waits report messages, if `words`, the option `debug`, ask for them."""
    if not _WORDS.intersection(words):
        return
    messages = Messages(manager._native, manager._setting("strict"))
    _of_managers[manager] = messages
    before = manager._watch

    def report(can_raise: bool = True) -> None:
        try:
            if before is not None:
                before(can_raise)
        except KomputeError:
            messages.report(can_raise=False)  # they may say why
            raise
        messages.report(can_raise)

    manager._watch = report


def set_callback(manager: Device, callback: Callable[[ShaderMessage], object] | None) -> None:
    """See `Manager.on_message`."""
    messages = _of_managers.get(manager)
    if messages is None:
        raise FailedPreconditionError(
            'The Manager\'s shaders write no messages: open it with debug="printf" or debug="bounds", or set '
            "KOMPUTE_PY_DEBUG"
        )
    if callback is not None and not callable(callback):
        raise ArgumentTypeError(
            f"callback is {shown(callback)}; give a function of one kp.ShaderMessage, or None"
        )
    messages.callback = callback
