"""``kompute-py program``: looks into a program file, runs and measures it, and compares drivers."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
its push constants are given by --set. `compare` runs each recording, or the kernel \
that --entry names, on each driver, in processes of their own, one step at a time, and prints the worst \
differences of the results and the state to those of the first driver, and the first step that differs. All \
that the steps write is kept in the folder for temporary files meanwhile. With --out \
it draws the differences of pictures: white for the largest.

Exit status: 0 done and no difference beyond --rtol and --atol, 1 failed or a difference, 2 wrong usage."""

_SEED = 33
_STEPS = "steps.json"


def program_command(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="info, run, bench or compare.")],
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A program.")],
    given: Given,
    entry: Annotated[
        str | None,
        typer.Option("--entry", "-e", metavar="NAME", help="The entry. Default: the only recording."),
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
    drivers: Annotated[
        list[str] | None,
        typer.Option("--driver", metavar="D", help="A driver: its name or manifest. compare: twice or more."),
    ] = None,
    rtol: Rtol = 0.0,
    atol: Atol = 0.0,
    trace: Annotated[Path | None, typer.Option("--trace", metavar="DIR", hidden=True)] = None,
    show_traceback: Traceback = False,
) -> None:
    """``kompute-py program``."""
    from .._programs.program import load_program

    if action not in ACTIONS:
        raise InvalidArgumentError(f"there is no action {action!r}; choose {', '.join(ACTIONS)}")
    folders = [Path(text) for text in out or () if action != "run" or "=" not in text]
    if len(folders) > 1:
        raise InvalidArgumentError(f"--out is given twice: {folders[0]}, {folders[1]}; give one folder")
    program = load_program(path, parameters)
    if action == "info":
        print(program)
        print(f"  file  {binary_size(path.stat().st_size)}")
        return
    if action == "compare":
        folder = folders[0] if folders else None
        chosen = [entry] if entry else [e.name for e in program.values() if e.kind == "recording"]
        command = _as_options(given)
        command += [] if parameters is None else [f"--parameters={parameters}"]
        on = drivers or _drivers()
        if len(on) == 1:
            raise InvalidArgumentError(f"--driver={on[0]} stands alone: compare takes two drivers or more")
        failed = [name for name in chosen if _differs(path, name, command, on, rtol, atol, folder)]
        if failed or not chosen:
            raise KomputeError(
                f"different results on the drivers: {', '.join(failed)}"
                if failed
                else "it has no recordings: choose a kernel with --entry"
            )
        return
    from .._manager.manager import Manager

    called = _entry_of(program, entry)
    options: dict[str, Any] = {"driver": drivers[0]} if drivers else {}
    with Manager(device_of(given.device), **options) as manager:
        called = program.on(manager)[called.name]
        if trace is not None:
            _write_trace(_steps(manager, called, given), trace)
            return
        run = _ready(manager, called, given)
        if action == "bench":
            from .._profiling.benchmark import benchmark

            print(f"{called.name}: {benchmark(run)}")
        else:
            _show(run(), called.name, out or ())


def _entry_of(program: Program, name: str | None) -> ProgramEntry:
    recordings = [each for each in program.values() if each.kind == "recording"]
    if name is None and len(recordings) == 1:
        return recordings[0]
    if name is None:
        raise InvalidArgumentError(
            f"choose an entry with --entry: {', '.join(e.name for e in program.values())}"
        )
    return program[name]


def _form(entry: ProgramEntry) -> Any:
    return entry._target((), {}).forms[0]


def _as_options(given: Given) -> list[str]:
    """The options that were given, for another process."""
    flags = {"inputs": "in", "values": "set", "shapes": "shape", "dtypes": "dtype", "constants": "spec"}
    found = []
    for each in dataclasses.fields(given):
        value = getattr(given, each.name)
        texts = value if isinstance(value, list) else [] if value in (None, each.default) else [value]
        found += [f"--{flags.get(each.name, each.name)}={text}" for text in texts]
    return found


def _ready(manager: Manager, entry: ProgramEntry, given: Given) -> Callable[[], dict[str, Array]]:
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
    arguments = _arguments(entry, given)

    def call() -> dict[str, Array]:
        results = entry(**arguments)
        several = results if isinstance(results, tuple) else () if results is None else (results,)
        return dict(zip([value.name for value in _form(entry).outputs], several, strict=True))

    return call


def _arguments(entry: ProgramEntry, given: Given) -> dict[str, Array]:
    """An array for each input of a recording."""
    other = _as_options(dataclasses.replace(given, inputs=[], device=None))
    if other:
        raise InvalidArgumentError(
            f"{entry.name} is a recording, which takes --in alone; {other[0]} is for kernels"
        )
    sources = dict(pairs(given.inputs, "--in"))
    chance = np.random.default_rng(_SEED)
    form = _form(entry)
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


def _steps(manager: Manager, entry: ProgramEntry, given: Given) -> Iterable[tuple[str, dict[str, Array]]]:
    """The contents after each step, by name; "" is the name of the step of the results."""
    from .._programs.tracing import traced

    if entry.kind == "kernel":
        return [("", _ready(manager, entry, given)())]
    return traced(entry._target((), {}), _arguments(entry, given))


def _write_trace(steps: Iterable[tuple[str, dict[str, Array]]], folder: Path) -> None:
    """Writes the arrays by number, as bytes where NumPy would lose the dtype; `_STEPS` has the names."""
    listed = []
    for number, (name, arrays) in enumerate(steps):
        kinds = [each.dtype.name if is_small_float(each.dtype) else "" for each in arrays.values()]
        each_kind = zip(arrays.values(), kinds, strict=True)
        np.savez(
            folder / f"{number:06}.npz", *(a.view(f"u{a.itemsize}") if kind else a for a, kind in each_kind)
        )
        listed.append([name, list(zip(arrays, kinds, strict=True))])
    (folder / _STEPS).write_text(json.dumps(listed), encoding="utf-8")


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
    path: Path,
    entry: str,
    options: list[str],
    drivers: list[str],
    rtol: float,
    atol: float,
    out: Path | None,
) -> bool:
    """Compares the results of an entry on the drivers. Returns whether some differ too much."""
    from .._programs.tracing import difference

    print(f"{entry} on {drivers[0]}")
    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        traces = [Path(folder) / str(number) for number in range(len(drivers))]
        for driver, trace in zip(drivers, traces, strict=True):
            trace.mkdir()
            command = [
                sys.executable,
                "-m",
                "kompute_py",
                "program",
                "run",
                str(path),
                "--entry",
                entry,
                *options,
            ]
            done = subprocess.run(
                [*command, f"--driver={driver}", f"--trace={trace}"],
                capture_output=True,
                text=True,
                env=os.environ,
                check=False,
            )
            if done.returncode:
                why = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
                print(f"  {driver}: failed: {why}")
                wrong = True
                if driver == drivers[0]:
                    return True
        for at, (driver, trace) in list(enumerate(zip(drivers, traces, strict=True)))[1:]:
            first, results = True, 0
            for step, name, one, other in _pairs(traces[0], trace):
                found = difference(one, other)
                if step and first and found.exceeds(rtol, atol):
                    first = False
                    print(f"  {driver}: first in step {step}, {name}: {found}")
                elif not step:
                    results += 1
                    print(f"  {driver}: {name}: {found}")
                    if out is not None and found.elements:
                        _draw(one, other, out / f"{entry}.{name}.{at}.png")
                    wrong = wrong or found.exceeds(rtol, atol)
            if (trace / _STEPS).exists() and not results:  # its memory is all that it leaves
                wrong = wrong or not first
                print(f"  {driver}: {'all steps equal' if first else 'its memory differs'}")
    return wrong


def _pairs(one: Path, other: Path) -> Iterator[tuple[str, str, Array, Array]]:
    """(step, memory, contents on one driver and on the other); "" is the step of the results."""
    from .._programs.content import dtype_of

    if not (other / _STEPS).exists():
        return
    for number, (name, arrays) in enumerate(json.loads((one / _STEPS).read_text(encoding="utf-8"))):
        with np.load(one / f"{number:06}.npz") as left, np.load(other / f"{number:06}.npz") as right:
            for place, (memory, kind) in enumerate(arrays):
                found = [each[f"arr_{place}"] for each in (left, right)]
                here, there = (each.view(dtype_of(kind)) for each in found) if kind else found
                yield f"{number} ({name})" if name else "", memory, here, there
