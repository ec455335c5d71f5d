"""``kompute-py program``: looks into a program file, runs and measures it, and compares drivers."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import numpy as np
import typer

from .._base.errors import InvalidArgumentError, KomputeError, NotFoundError
from .._base.texels import parse_format
from .._base.text import binary_size
from .._base.types import is_small_float
from .arguments import pairs, unknown
from .array_files import Array, load, save, save_picture
from .binding_arrays import Element, cast, fit_picture, plain_array
from .common import Atol, Rtol, Traceback, device_of
from .options import Given
from .running import check_places, contents, deliver

if TYPE_CHECKING:
    from .._manager.manager import Manager
    from .._programs.program import Program, ProgramEntry

ACTIONS = ("info", "run", "bench", "compare")
PROGRAM_HELP = """Look into a program, run it, measure it, or compare drivers.

kompute-py program info FILE

kompute-py program run FILE --entry blur --in image=photo.npy --out results

kompute-py program compare FILE --driver lvp --driver nvidia

FILE was saved by kp.Program.save. `run` calls one entry with the arrays and pictures of --in; an input of a \
recording without one gets random numbers, always the same. A kernel takes all options of `kompute-py run`: \
its push constants are given by --set. `bench` measures the call that `run` makes: the host's and the \
device's time, median and spread. `compare` runs each recording, of all shapes, or the kernel \
that --entry names, on each driver, in processes of their own, one step at a time, and prints the worst \
differences of the results and the state to those of the first driver, and the first step that differs. A \
driver that does not answer within --timeout has failed. With --out it draws the differences of pictures: \
white for the largest.

Exit status: 0 done and no difference beyond --rtol and --atol, 1 failed or a difference, 2 wrong usage."""

_SEED = 33


def program_command(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="info, run, bench or compare.")],
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A program.")],
    given: Given,
    entry: Annotated[
        str | None,
        typer.Option("--entry", "-e", metavar="NAME", help="The entry. Default: the only recording."),
    ] = None,
    recording: Annotated[
        int | None,
        typer.Option(
            "--recording",
            min=0,
            metavar="N",
            help="Of an entry that was recorded for several shapes, the one to take, in the order of info. "
            "Default: 0; compare: all.",
        ),
    ] = None,
    out: Annotated[
        list[str] | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Where to write results, as .npy; of compare, pictures. With run also NAME=FILE for one "
            "result, a picture, .npy or .npz, or NAME=- to print it alone.",
        ),
    ] = None,
    parameters: Annotated[
        Path | None, typer.Option("--parameters", metavar="FILE", help="A file of named parameters.")
    ] = None,
    hosts: Annotated[
        list[str] | None,
        typer.Option("--host", metavar="NAME=MODULE:FUNCTION", help="The function of a step of the host."),
    ] = None,
    drivers: Annotated[
        list[str] | None,
        typer.Option("--driver", metavar="D", help="A driver: its name or manifest. compare: twice or more."),
    ] = None,
    rtol: Rtol = 0.0,
    atol: Atol = 0.0,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="S", help="compare: the seconds that a driver has for a step."),
    ] = 600.0,
    trace: Annotated[bool, typer.Option("--trace", hidden=True)] = False,
    show_traceback: Traceback = False,
) -> None:
    """``kompute-py program``."""
    from .._programs.program import load_program

    if action not in ACTIONS:
        raise InvalidArgumentError(f"there is no action {action!r}; choose {', '.join(ACTIONS)}")
    folders = [Path(text) for text in out or () if action != "run" or "=" not in text]
    if len(folders) > 1:
        raise InvalidArgumentError(f"--out is given twice: {folders[0]}, {folders[1]}; give one folder")
    program = load_program(path, parameters, dict(_function(each) for each in hosts or ()))
    if action == "info":
        print(program if entry is None else _entry_of(program, entry))
        print(f"  file  {binary_size(path.stat().st_size)}")
        return
    if action == "compare":
        folder = folders[0] if folders else None
        chosen = [entry] if entry else [e.name for e in program.values() if e.kind == "recording"]
        command = _as_options(given)
        command += [] if parameters is None else [f"--parameters={parameters}"]
        command += [f"--host={each}" for each in hosts or ()]
        on = drivers or _drivers()
        if len(on) == 1:
            raise InvalidArgumentError(f"--driver={on[0]} stands alone: compare takes two drivers or more")
        run = [sys.executable, "-m", "kompute_py", "program", "run", str(path), *command]
        failed = []
        for name in chosen:
            texts = program[name].signatures
            _require_recording(program[name], recording or 0)
            for number in range(len(texts)) if recording is None else (recording,):
                one = len(texts) == 1
                print(f"{name if one else texts[number]} on {on[0]}", flush=True)
                picture = None if folder is None else folder / (name if one else f"{name}.{number}")
                only = [f"--entry={name}", f"--recording={number}"]
                if _differs([*run, *only], on, timeout, (rtol, atol), picture):
                    failed.append(name if one else f"{name} {number}")
        if failed or not chosen:
            raise KomputeError(
                f"different results on the drivers: {', '.join(failed)}"
                if failed
                else "it has no recordings: choose a kernel with --entry"
            )
        return
    from .._manager.manager import Manager

    if trace:  # what drivers print goes elsewhere
        told = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
    called = _entry_of(program, entry)
    options: dict[str, Any] = {"driver": drivers[0]} if drivers else {}
    with Manager(device_of(given.device), **options) as manager:
        called = program.on(manager)[called.name]
        form = _form(called, recording or 0)
        if trace:
            with told:
                _tell(_steps(manager, called, form, given), told)
            return
        ready = _ready(manager, called, form, given)
        if action == "bench":
            from .._profiling.benchmark import benchmark

            print(f"{called.name}: {benchmark(ready)}")
        else:
            _show(ready(), called.name, out or ())


def _function(given: str) -> tuple[str, Callable[..., object]]:
    """The name and the function of a --host."""
    name, _, place = given.partition("=")
    module, _, function = place.partition(":")
    if not (name and module and function):
        raise InvalidArgumentError(f"--host={given}: give NAME=MODULE:FUNCTION, such as clip=steps:clip")
    if "" not in sys.path:
        sys.path.insert(0, "")  # as python -m has it
    try:
        return name, getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise NotFoundError(f"--host={given}: {error}") from error


def _entry_of(program: Program, name: str | None) -> ProgramEntry:
    recordings = [each for each in program.values() if each.kind == "recording"]
    if name is None and len(recordings) == 1:
        return recordings[0]
    if name is None:
        raise InvalidArgumentError(
            f"choose an entry with --entry: {', '.join(e.name for e in program.values())}"
        )
    return program[name]


def _form(entry: ProgramEntry, number: int) -> Any:
    """One recording of the entry on its Manager; None for a kernel."""
    _require_recording(entry, number)
    return None if entry.kind == "kernel" else entry._target((), {}).forms[number]


def _require_recording(entry: ProgramEntry, number: int) -> None:
    count = len(entry.signatures)
    if number >= count:
        raise InvalidArgumentError(f"{entry.name}: --recording={number} is beyond the last, {count - 1}")


def _as_options(given: Given) -> list[str]:
    """The options that were given, for another process."""
    flags = {"inputs": "in", "values": "set", "shapes": "shape", "dtypes": "dtype", "constants": "spec"}
    found = []
    for each in dataclasses.fields(given):
        value = getattr(given, each.name)
        texts = value if isinstance(value, list) else [] if value in (None, each.default) else [value]
        found += [f"--{flags.get(each.name, each.name)}={text}" for text in texts]
    return found


def _ready(manager: Manager, entry: ProgramEntry, form: Any, given: Given) -> Callable[[], dict[str, Array]]:
    """Runs the entry, and returns its results by name."""
    if entry.kind == "kernel":
        from .arguments import prepare

        prepared = prepare(manager, entry._target((), {}), given)
        sequence = manager.sequence().record(prepared.operation)

        def run() -> dict[str, Array]:
            sequence.eval()
            results = prepared.results().items()
            return {name: plain_array(contents(each), each.element) for name, each in results}

        return run
    arguments = _arguments(entry, form, given)

    def call() -> dict[str, Array]:
        results = entry(**arguments)
        several = results if isinstance(results, tuple) else () if results is None else (results,)
        return dict(zip([value.name for value in form.outputs], several, strict=True))

    return call


def _arguments(entry: ProgramEntry, form: Any, given: Given) -> dict[str, Array]:
    """An array for each input of a recording."""
    other = _as_options(dataclasses.replace(given, inputs=[], device=None))
    if other:
        raise InvalidArgumentError(
            f"{entry.name} is a recording, which takes --in alone; {other[0]} is for kernels"
        )
    sources = dict(pairs(given.inputs, "--in"))
    chance = np.random.default_rng(_SEED)
    arguments: dict[str, Array] = {}
    for value in form.inputs:
        dtype, what = np.dtype(value.dtype), f"{entry.name}: {value.name}"
        if value.name in sources:
            array, picture = load(sources.pop(value.name), value.name, dtype)
            image = form.loaded.part.blocks[value.block].image
            format = None if image is None else parse_format(image.format)
            channels = 1 if format is None else format.channels
            element = Element(dtype, (channels,)[channels == 1 :], channels, None, format, 2)
            arguments[value.name] = (
                fit_picture(array, element, what).array if picture else cast(array, dtype, what)
            )
        else:
            arguments[value.name] = (chance.random(value.shape) * (1 if dtype.kind in "fc" else 2)).astype(
                dtype
            )
    if sources:
        known = ", ".join(arguments) or "none"
        raise InvalidArgumentError(f"{entry.name} has no input {', '.join(sources)}; its inputs: {known}")
    return arguments


def _show(results: dict[str, Array], entry: str, out: Iterable[str]) -> None:
    """Prints the results, and writes them to the folder and the files of --out."""
    folder = next((Path(text) for text in out if "=" not in text), None)
    places: dict[str, Path | None] = {}
    for name, place in pairs([text for text in out if "=" in text], "--out"):
        if name not in results:
            raise unknown(entry, "result", name, results)
        places[name] = None if place == "-" else Path(place)
    check_places(places)

    def tell(name: str, array: Array, path: Path | None) -> None:
        print(f"{name}: {array.dtype}{list(array.shape)}")
        print(np.array2string(array, threshold=20))
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            save(folder / f"{name}.npy", {name: array})

    deliver(results, places, tell, results.__getitem__)


# -- comparing -----------------------------------------------------------------------------------------------


def _steps(
    manager: Manager, entry: ProgramEntry, form: Any, given: Given
) -> Iterable[tuple[str, dict[str, Array]]]:
    """The contents after each step, by name; "" is the name of the step of the results."""
    from .._programs.tracing import traced

    if entry.kind == "kernel":
        return [("", _ready(manager, entry, form, given)())]
    return traced(entry._target((), {}), _arguments(entry, form, given))


def _tell(steps: Iterable[tuple[str, dict[str, Array]]], file: BinaryIO) -> None:
    """Writes steps for `_Trace`: a line of JSON, then the arrays. The last step has the results."""
    for name, arrays in steps:
        listed, parts = [], []
        for memory, array in arrays.items():
            kind = array.dtype.name if is_small_float(array.dtype) else ""  # which NumPy's format would lose
            part = io.BytesIO()
            np.save(part, array.view(f"u{array.itemsize}") if kind else array, allow_pickle=False)
            listed.append((memory, kind, len(part.getbuffer())))
            parts.append(part.getbuffer())
        file.write(json.dumps([name, listed]).encode() + b"\n")
        file.writelines(parts)
        file.flush()


class _Trace:
    """An entry that runs on one driver, in a process of its own. Its steps come through a pipe, so it is at
    most one step ahead.
    """

    def __init__(self, driver: str, command: list[str], timeout: float) -> None:
        self.driver = driver
        self._timeout = timeout
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - see `close`
        self._process = subprocess.Popen(
            [*command, f"--driver={driver}", "--trace"], stdout=subprocess.PIPE, stderr=self._errors
        )
        self._late = False

    def step(self) -> tuple[str, dict[str, Array]]:
        """The next step. Raises KomputeError if the process fails, or does not answer in time."""
        from .._programs.content import dtype_of

        assert self._process.stdout is not None
        file: Any = self._process.stdout
        timer = threading.Timer(self._timeout, self._stop)
        timer.start()
        try:
            name, listed = json.loads(file.readline())
            arrays = {}
            for memory, kind, size in listed:
                found = np.load(io.BytesIO(file.read(size)), allow_pickle=False)
                arrays[memory] = found.view(dtype_of(kind)) if kind else found
            if not name:
                self._require(not self._process.wait())
        except (ValueError, EOFError):  # it has ended
            self._require(False)
        finally:
            timer.cancel()
        return name, arrays

    def _require(self, well: bool) -> None:
        if well:
            return
        code = self._process.wait()
        if self._late:
            raise KomputeError(f"it did not answer within {self._timeout:g} s (--timeout)")
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        raise KomputeError(lines[-1] if lines else f"it ended with {code}")

    def _stop(self) -> None:
        self._late = True
        self._process.kill()

    def close(self) -> None:
        """Ends the process, if it runs."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()


def _drivers() -> list[str]:
    """The drivers that have a device here: distributions install those of all makers."""
    from .._device.devices import list_devices
    from .._device.drivers import available_drivers

    found = []
    for each in available_drivers():
        if each.fault is None and each.shadowed_by is None:
            with contextlib.suppress(KomputeError):
                list_devices(driver=each.name)
                found.append(each.name)
    if len(found) < 2:
        raise NotFoundError(
            f"there are fewer than two drivers with a device: {', '.join(found) or 'none'}; "
            "name them with --driver"
        )
    return found


def _draw(one: Array, other: Array, path: Path) -> None:
    """The differences as a picture, if the arrays are pictures."""
    if one.ndim not in (2, 3) or one.shape[2:] not in ((), (1,), (3,), (4,)) or one.dtype.kind not in "biuf":
        return
    apart = np.nan_to_num(np.abs(one.astype(np.float64) - other))
    apart = apart[:, :, :3] if apart.ndim == 3 else apart
    path.parent.mkdir(parents=True, exist_ok=True)
    save_picture(path, path.stem, apart / max(apart.max(initial=0), 1e-300))
    print(f"  {path}")


def _differs(
    command: list[str],
    drivers: list[str],
    timeout: float,
    bounds: tuple[float, float],
    picture: Path | None,
) -> bool:
    """Compares the results of an entry on the drivers. Returns whether some differ too much. `picture` is the
    place of its pictures, without their names.
    """
    from .._programs.tracing import difference

    wrong = False
    with contextlib.ExitStack() as stack:
        traces = [stack.enter_context(contextlib.closing(_Trace(each, command, timeout))) for each in drivers]
        same = dict.fromkeys(traces[1:], True)
        """The drivers whose steps are those of the first so far."""
        step = 0
        while True:
            steps: dict[_Trace, tuple[str, dict[str, Array]]] = {}
            for trace in [traces[0], *same]:
                try:
                    steps[trace] = trace.step()
                except KomputeError as error:
                    print(f"  {trace.driver}: failed: {error}")
                    wrong = True
                    same.pop(trace, None)
            if traces[0] not in steps or not same:
                return True
            name, ones = steps[traces[0]]
            for trace in same:
                for memory, one in ones.items():
                    other = steps[trace][1][memory]
                    found = difference(one, other)
                    differs = found.exceeds(*bounds)
                    if not name:
                        print(f"  {trace.driver}: {memory}: {found}")
                        wrong = wrong or differs
                        if picture is not None and found.elements:
                            at = traces.index(trace)
                            _draw(one, other, picture.with_name(f"{picture.name}.{memory}.{at}.png"))
                    elif differs and same[trace]:
                        same[trace] = False
                        print(f"  {trace.driver}: first in step {step} ({name}), {memory}: {found}")
                if not name and not ones:  # its memory is all that it leaves
                    wrong = wrong or not same[trace]
                    print(f"  {trace.driver}: {'all steps equal' if same[trace] else 'its memory differs'}")
            if not name:
                return wrong
            step += 1
