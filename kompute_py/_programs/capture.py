"""A script's submissions as a program: the option `capture` of Managers, the variable KOMPUTE_PY_CAPTURE.

The core keeps what each operation did, and copies the memory that it used, before and after
(`ValueReader`). A capture holds for each memory what the captured operations have left there. Other contents
before an operation came from the host: at the first use they are what the program's memory begins with, later
a copy in front of the operation, from memory of the program that holds them. So a replay needs no host, and
is one recording.
"""

from __future__ import annotations

import atexit
import os
import re
import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from .._base.errors import FailedPreconditionError, InvalidArgumentError, KomputeError, UnimplementedError
from .._base.text import binary_size
from .._base.warn import warn
from . import content as c
from .program import Program
from .recorder import Made, Recorder, made_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._debugging.values import Tensors

_STEP = 16  # bytes: copies of changes begin and end at multiples


class _Held(NamedTuple):
    """A memory of the script, and what the captured operations have left in it."""

    number: int
    begins: np.ndarray[Any, Any]
    """Its first contents, byte by byte, if `known`."""
    now: np.ndarray[Any, Any]
    known: np.ndarray[Any, Any]
    outputs: dict[int, c.Value]
    """The last tensors that were written, by the first byte."""


class Capture(Recorder):
    """Collects the submissions of one Manager."""

    def __init__(self, limit: int) -> None:
        super().__init__([], [])
        self._limit, self._bytes = limit, 0
        self._steps: list[c.Step] = []
        self._lines: list[str] = []
        self._memories: dict[tuple[int, int], _Held] = {}
        self._ended = False
        self._lock = threading.Lock()

    def look(self, run: Mapping[str, Any], tensors: Tensors) -> None:
        """Adds a submission. Raises UnimplementedError if a program cannot hold it, FailedPreconditionError
        if the capture would be larger than its limit. The capture then ends with the submissions before it.
        """
        with self._lock:
            if self._ended:
                return
            count, where = (
                len(self._steps),
                run["operations"][0][1] or run["line"] if run["operations"] else "",
            )
            try:
                self._add(run, tensors)
            except KomputeError as error:
                self._ended = True
                del self._steps[count:]
                error.args = (
                    f"The capture ends with {len(self._lines)} submissions, before {run['label']}"
                    f"{f' ({where})' if where else ''}: {error}",
                    *error.args[1:],
                )
                raise
            names = ", ".join(name for name, _, _ in run["operations"])
            self._lines.append(f"steps {count} to {len(self._steps) - 1}, {where or run['label']}: {names}")

    def _add(self, run: Mapping[str, Any], tensors: Tensors) -> None:
        parts, looked = run["parts"], set()
        _require_apart([part[0] for part in parts])
        for (name, _, uses), found in zip(run["operations"], run["recorded"], strict=True):
            for number in [use[0] for use in uses]:
                if number not in looked:
                    looked.add(number)
                    self._bring(parts[number], tensors)
            synced = found["kind"].startswith("sync")
            if not synced:
                self._steps.append(self.step(name, found))
            for before, after, *_ in uses:
                if after == before:
                    continue
                looked.add(after)
                if synced:
                    self._bring(parts[after], tensors)
                else:
                    self._write(parts[after], tensors)

    def range(self, memory: Any, offset: int, nbytes: int) -> c.Range:
        """Bytes of a block."""
        return c.Range(self._held(memory).number, offset, nbytes)

    def shader(self, made_of: tuple[Any, ...], name: str, key: Any) -> int:
        """The number of a shader. A capture keeps no object of the script alive."""
        return super().shader(made_of, name, made_of)

    def _held(self, memory: Any) -> _Held:
        # A buffer in the place of one that is gone is another life of the same memory.
        key = memory.identity, memory.nbytes
        found = self._memories.get(key)
        if found is None:
            begins = np.zeros(memory.nbytes, np.uint8)
            number = self.own(made_of(memory, begins)).block
            known = np.zeros(memory.nbytes, np.bool_)
            found = self._memories[key] = _Held(number, begins, np.zeros_like(begins), known, {})
        return found

    def _bring(self, part: Any, tensors: Tensors) -> None:
        """Makes the replay's memory what the script's was."""
        memory, begin, end, data = part
        held = self._held(memory)
        new = np.frombuffer(data, np.uint8)
        now, known = held.now[begin:end], held.known[begin:end]
        first = ~known
        fresh = int(np.count_nonzero(first))
        if fresh:
            self._grow(fresh)
            held.begins[begin:end][first] = new[first]
            now[first] = new[first]
            known[:] = True
        changed = np.flatnonzero(now != new)
        if not changed.size:
            return
        if isinstance(memory, _native.Image):
            self._grow(len(new))
            now[:] = new
            source = self.own(Made(len(new), np.array(new)))
            whole = (0, 0, 0, 0, *memory.shape[2])
            ranges = source, c.Range(held.number, 0, len(new))
            name = f"data of {memory.name or 'an image'}"
            self._steps.append(c.Step("copy region", name, ranges, regions=((0,) * 8, whole)))
            return
        low = int(changed[0]) // _STEP * _STEP
        high = min(-(-(int(changed[-1]) + 1) // _STEP) * _STEP, end - begin)
        self._grow(high - low)
        now[low:high] = new[low:high]
        source = self.own(Made(high - low, np.array(new[low:high])))
        elements = tensors.of(memory, begin + low, begin + high)
        name = tensors.name(elements[0].tensor) if elements else "memory"
        target = c.Range(held.number, begin + low, high - low)
        self._steps.append(c.Step("copy", f"data of {name}", (source, target)))

    def _grow(self, nbytes: int) -> None:
        self._bytes += nbytes
        if self._bytes > self._limit:
            raise FailedPreconditionError(
                f"it would have more than {binary_size(self._limit)} of data: give a larger capture_limit "
                "(KOMPUTE_PY_CAPTURE_LIMIT), or a script that does less"
            )

    def _write(self, part: Any, tensors: Tensors) -> None:
        """Notes what an operation has left."""
        memory, begin, end, data = part
        held = self._held(memory)
        held.now[begin:end] = np.frombuffer(data, np.uint8)
        if isinstance(memory, _native.Image):
            image = tensors.of(memory, begin, end)[0]
            name = _identifier(memory.name or "image")
            held.outputs[0] = c.Value(name, c.OUTPUT, held.number, 0, image.shape, image.dtype.name)
            return
        for each in tensors.of(memory, begin, end):
            if each.start < 0 or each.end > len(held.now) or each.start == each.end:
                continue
            dtype, shape = each.dtype, each.shape
            try:
                c.dtype_of(dtype.name)
            except InvalidArgumentError:
                dtype, shape = np.dtype(np.uint8), (each.end - each.start,)
            name = _identifier(tensors.name(each.tensor))
            for start, other in list(held.outputs.items()):
                if each.overlaps(start, start + c.range_of(other).nbytes):
                    del held.outputs[start]
            held.outputs[each.start] = c.Value(name, c.OUTPUT, held.number, each.start, shape, dtype.name)

    def program(self) -> Program | None:
        """The program, at the end; None if nothing was submitted."""
        with self._lock:
            self._ended = True
            if not self._steps:
                return None
            taken: set[str] = set()
            for held in self._memories.values():
                for value in held.outputs.values():
                    name, number = value.name, 2
                    while name in taken:
                        name, number = f"{value.name}_{number}", number + 1
                    taken.add(name)
                    self.values.append(value._replace(name=name))
            recording = c.Recording((), tuple(range(len(self.values))), tuple(self._steps))
            self.entries.append(c.Entry("main", None, (recording,), "\n".join(self._lines)))
            part, contents = self.part()
            return Program._made(part, contents, self.files)


def _identifier(name: str) -> str:
    made = re.sub(r"\W", "_", name)
    return made if made.isidentifier() and made not in c.OPTIONS else f"_{made}"


def _require_apart(memories: list[Any]) -> None:
    """Raises UnimplementedError if a write to one memory changes another: they are blocks of their own."""
    shared = {m.identity: (m.first_byte, m.first_byte + m.nbytes) for m in memories if m.first_byte}
    last = 0
    for first, end in sorted(shared.values()):
        if first < last:
            raise UnimplementedError("it uses several tensors over the same shared memory")
        last = end


_captures: dict[str, tuple[str, list[Capture]]] = {}
"""By the file: its name as the script gave it, which may leave the folder since, and the captures."""


def begin(path: str, limit: int) -> Capture:
    """A capture of what a Manager submits, which is written when the script ends."""
    capture = Capture(limit)
    if not _captures:
        atexit.register(finish)
    _captures.setdefault(os.path.abspath(path), (path, []))[1].append(capture)
    return capture


def finish() -> None:
    """Writes the programs. Several Managers with the same file are the modules of one program."""
    for path, (given, captures) in _captures.items():
        programs = [made for made in (each.program() for each in captures) if made is not None]
        if not programs:
            warn(f"The option capture= wrote no file {given}: nothing was captured")
            continue
        made = programs[0]
        if len(programs) > 1:
            made = Program({f"manager{number}": each for number, each in enumerate(programs)})
        try:
            made.save(path)
        except KomputeError as error:
            warn(f"The option capture= wrote no file {given}: {error}")
        else:
            print(f"kompute_py: wrote {given}, for kompute-py program run and compare", file=sys.stderr)
    _captures.clear()
    atexit.unregister(finish)
