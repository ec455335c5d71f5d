"""``kompute-py run``: runs a shader on files, without a script."""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from .._base.errors import InvalidArgumentError, NotFoundError
from .common import LateProgress, Traceback, device_of, output_console
from .options import LAUNCH_PANEL, CompileOptions, Given, InputArgument
from .shaders import compiled

if TYPE_CHECKING:
    from .._manager.manager import Manager
    from .arguments import Argument, Prepared
    from .array_files import Array

_STEPS = 4
ARRAY_FILES = (".npy", ".npz")


# Not a docstring: typer would keep its line ends.
RUN_HELP = """Run a shader on arrays and pictures.

kompute-py run blur.comp --in src=photo.png --out dst=blurred.png --set sigma=2 --grid 512,512

Pixels: white is 1.0 if the shader uses floats (in rgba8 images, too) and 255 if it uses integers, for \
inputs and outputs. Values outside are clipped in pictures. A picture gets the channels of the image or \
vector that it is loaded into, and a missing alpha becomes opaque; in a buffer of scalars it keeps its own \
channels.

Arrays keep their values: integers and bools become the binding's type if it holds them, and floats are \
rounded to it (float64 to float32), with a note on stderr. Any other change of a value is refused. Outputs \
start as zeros.

Exit status: 0 done, 1 failed, 2 wrong usage."""


def run_command(
    shader: InputArgument,
    given: Given,
    options: CompileOptions,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--out",
            "-o",
            metavar="NAME=FILE",
            rich_help_panel="Data",
            help="The destination of a binding's contents: a picture, .npy or .npz, or - to print them. "
            "NAME= may be omitted if the shader writes only one binding.",
        ),
    ] = None,
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat",
            metavar="N",
            min=1,
            rich_help_panel=LAUNCH_PANEL,
            help="The number of runs. Each one uses the results of the previous one.",
        ),
    ] = 1,
    timed: Annotated[
        bool,
        typer.Option("--time", rich_help_panel=LAUNCH_PANEL, help="Print the time of a run on the device."),
    ] = False,
    show_traceback: Traceback = False,
) -> None:
    """See `RUN_HELP`."""
    given.outputs = list(outputs or [])
    with launchable(shader, options, given) as (progress, manager, prepared):
        check_places(prepared.outputs)
        progress.step("running" if repeat == 1 else f"running {repeat} times")
        seconds, clock = timed_runs(manager, prepared, repeat)
        _deliver(prepared)
        if timed:
            print(f"{prepared.kernel.name}: {runs_text(seconds)} on {_name(manager)} ({clock})")


@contextlib.contextmanager
def launchable(
    shader: str, options: CompileOptions, given: Given
) -> Iterator[tuple[LateProgress, Manager, Prepared]]:
    """A Manager, and the kernel of the shader with what is given."""
    from .arguments import prepare

    with LateProgress(Console(stderr=True), _STEPS) as progress:
        progress.step("compiling")
        module = compiled(shader, options)
        progress.step("opening the device")
        with opened(given.device) as manager:
            progress.step("reading and uploading")
            yield progress, manager, prepare(manager, manager.kernel(module), given)


@contextlib.contextmanager
def opened(device: str | None) -> Iterator[Manager]:
    """A Manager for one command. On Ctrl-C it waits for the device."""
    from .._manager.manager import Manager

    with Manager(device_of(device)) as manager:
        try:
            yield manager
        except KeyboardInterrupt:
            # Submitted work cannot be cancelled: a CPU driver would continue in freed memory.
            try:
                # A second press may come as soon as the line is read, before the wait begins.
                print(
                    "kompute-py: interrupted; waiting for the device (press Ctrl-C again to stop at once)",
                    file=sys.stderr,
                )
                manager.synchronize()
            except KeyboardInterrupt:
                os._exit(130)  # skips the exit hooks, because they wait too
            raise


def timed_runs(manager: Manager, prepared: Prepared, count: int) -> tuple[list[float], str]:
    """Runs the kernel `count` times; returns (seconds of each run, a text that names the clock)."""
    on_device = manager.get_device_properties()["timestamps_supported"]
    sequence = manager.sequence(timestamps=on_device)
    sequence.record(prepared.operation)
    seconds = []
    for _ in range(count):
        start = time.perf_counter()
        sequence.eval()
        elapsed = time.perf_counter() - start
        seconds.append(sequence.timings()[0][1] if on_device else elapsed)
    return (
        seconds,
        "by the device's timestamps" if on_device else "by the host's clock: the device has no timestamps",
    )


def runs_text(seconds: list[float]) -> str:
    """``1.2 ms`` for one run; the median and the minimum for several."""
    if len(seconds) == 1:
        return duration(seconds[0])
    median = duration(statistics.median(seconds))
    return f"{median} median, {duration(min(seconds))} least of {len(seconds)} runs"


def duration(seconds: float) -> str:
    """Seconds in a suitable unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _name(manager: Manager) -> str:
    return str(manager.get_device_properties()["device_name"])


def check_places(outputs: Mapping[str, Path | None]) -> None:
    """Raises an error if a destination cannot be written, before the work starts."""
    from .array_files import is_picture_name

    arrays: dict[Path, str] = {}
    for name, path in outputs.items():
        if path is None:
            continue
        suffix = path.suffix.lower()
        if suffix not in ARRAY_FILES and not is_picture_name(path):
            raise InvalidArgumentError(
                f"--out {name}={path}: {suffix or 'a name without a suffix'} does not determine a file type; "
                "choose .npy, .npz, .png, .jpg or another that Pillow writes"
            )
        if not path.parent.is_dir():
            raise NotFoundError(f"--out {name}={path}: there is no folder {path.parent}")
        if path in arrays and suffix != ".npz":
            raise InvalidArgumentError(
                f"{path} is given for both {arrays[path]} and {name}: use an .npz for both, or two files"
            )
        arrays[path] = name


def _deliver(prepared: Prepared) -> None:
    """Writes the requested outputs, and reports on every binding that the shader wrote."""
    from .binding_arrays import picture_values, plain_array

    console, results = output_console(), prepared.results()
    arrays = {name: contents(argument) for name, argument in results.items()}

    def tell(name: str, array: Array, path: Path | None) -> None:
        _tell(console, results[name], array, "not kept; --out keeps it" if path is None else str(path))

    deliver(
        {name: plain_array(array, results[name].element) for name, array in arrays.items()},
        prepared.outputs,
        tell,
        lambda name: picture_values(arrays[name], results[name].element),
    )


def deliver(
    results: Mapping[str, Array],
    places: Mapping[str, Path | None],
    tell: Callable[[str, Array, Path | None], None],
    picture: Callable[[str], Array],
) -> None:
    """Prints the results with the place None and nothing else of them; writes those with a path.

    `tell` reports on a result with its path, None if it is not written. `picture` gives its pixels.
    """
    from .array_files import save, save_picture

    together: dict[Path, dict[str, Array]] = {}
    for name, array in results.items():
        path = places.get(name)
        if path is None and name in places:
            with np.printoptions(threshold=10_000, linewidth=110):
                print(array)
            continue
        if path is not None and path.suffix.lower() in ARRAY_FILES:
            together.setdefault(path, {})[name] = array
        elif path is not None:
            note = save_picture(path, name, picture(name))
            if note:
                print(f"note: {note}", file=sys.stderr)
        tell(name, array, path)
    for path, arrays in together.items():
        save(path, arrays)


def contents(argument: Argument) -> np.ndarray[Any, Any]:
    """The contents on the device, with the axes of the elements and of their components."""
    memory = getattr(argument.memory, "image", argument.memory)
    array: np.ndarray[Any, Any] = memory.read()
    return array


def _tell(console: Console, argument: Argument, array: np.ndarray[Any, Any], fate: str) -> None:
    from .binding_arrays import unit_text

    facts = unit_text(array.shape, array.dtype)
    if array.dtype.kind in "iuf":
        values = array.astype(np.float64)
        finite = values[np.isfinite(values)]
        if finite.size:
            facts += f", {finite.min():.4g} to {finite.max():.4g}, mean {finite.mean():.4g}"
        if finite.size < values.size:
            facts += f", [yellow]{values.size - finite.size} not finite[/yellow]"
    console.print(
        f"[bold]{escape(argument.parameter.name)}[/bold]  {facts}  [dim]{escape(fate)}[/dim]", highlight=False
    )
