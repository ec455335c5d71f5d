"""``kompute-py bench``: measures the device and the library, or the run time of a shader."""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from .._base.text import binary_size
from .common import LateProgress, Traceback, output_console
from .options import CompileOptions, Given
from .running import duration, launchable, opened

if TYPE_CHECKING:
    from .._manager.manager import Manager
    from .arguments import Prepared
    from .measuring import Figure, KernelTimes

BENCH_HELP = """Measure this device, or with IN how long a shader takes on it.

kompute-py bench

kompute-py bench blur.comp --in src=photo.png --set sigma=2 --grid 512,512

Without a shader: an evaluation, a kernel call, dispatches in a recording, and transfers. With one: its time \
by the device's timestamps. Arguments are those of `kompute-py run`; outputs are discarded \
(--shape says the shape of one). Arrays keep \
their values: integers and bools become the binding's type if it holds them, and floats are rounded to it \
(float64 to float32)."""


def bench_command(
    given: Given,
    options: CompileOptions,
    shader: Annotated[
        str | None,
        typer.Argument(
            metavar="IN",
            help="A shader: a file of GLSL, HLSL, Slang, SPIR-V or its assembly, - for standard input.",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", metavar="S", min=0.0, max=3600.0, help="How long a shader is run.")
    ] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, in seconds and bytes.")] = False,
    outputs: Annotated[list[str] | None, typer.Option("--out", "-o", hidden=True)] = None,
    show_traceback: Traceback = False,
) -> None:
    """See `BENCH_HELP`."""
    if outputs:
        name = outputs[0].partition("=")[0]
        raise typer.BadParameter(
            f"--out {outputs[0]}: bench discards outputs; leave it out. --shape {name}=... gives a shape"
        )
    if shader is None:
        of_shaders = {
            "--in": given.inputs, "--set": given.values, "--shape": given.shapes, "--dtype": given.dtypes,
            "--grid": given.grid, "--groups": given.groups, "--spec": given.constants,
            "--define": options.define, "--include": options.include,
        }  # fmt: skip
        alone = [name for name, value in of_shaders.items() if value]
        if alone:
            raise typer.BadParameter(
                f"{alone[0]} is for a shader: name one, kompute-py bench IN {alone[0]} ..."
            )
        _bench_device(given.device, as_json)
        return
    from .measuring import measure_kernel

    with launchable(shader, options, given) as (progress, manager, prepared):
        progress.step("running")
        found = _of_kernel(manager, prepared, measure_kernel(manager, prepared, seconds))
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        _print_kernel(found, output_console())


def _bench_device(device: str | None, as_json: bool) -> None:
    from .measuring import FIGURES, measure_device

    figures = []
    with LateProgress(Console(stderr=True), FIGURES + 1) as progress:
        progress.step("opening the device")
        with opened(device) as manager:
            info = _machine(manager)
            progress.step("measuring")
            for figure in measure_device(manager):
                figures.append(figure)
                progress.step(f"measured {figure.name}")
    if as_json:
        rows = [
            {
                "name": f.name,
                "unit": f.what,
                "median": f.typical,
                "best": f.best,
                "blocks": f.blocks,
                "note": f.note,
            }
            for f in figures
        ]
        print(json.dumps({**info, "figures": rows}, indent=2))
    else:
        _print_figures(info, figures, output_console())


def _machine(manager: Manager) -> dict[str, Any]:
    from .. import __version__

    properties = manager.get_device_properties()
    return {
        "kompute_py": __version__,
        "device": properties["device_name"],
        "driver": f"{properties['driver_name']} {properties['driver_version']}",
        "api_version": properties["api_version"],
        "validation": manager.validation,
    }


def _heading(info: dict[str, Any], console: Console) -> None:
    console.print(
        f"[bold]{escape(info['device'])}[/bold]  {escape(info['driver'])}, Vulkan {info['api_version']}, "
        f"kompute_py {info['kompute_py']}",
        highlight=False,
    )
    if info["validation"]:
        console.print("[yellow]The validation layer is on: everything is slower.[/yellow]", highlight=False)


def amount(value: float, unit: str) -> str:
    """A figure in a readable unit."""
    if unit == "s":
        return duration(value)
    for name, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {name}{'B/s' if unit == 'B/s' else '/s'}"
    return f"{value:.3g} {unit}"


def _print_figures(info: dict[str, Any], figures: list[Figure], console: Console) -> None:
    from rich.table import Table

    _heading(info, console)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("")
    table.add_column("median", justify="right", style="bold")
    table.add_column("best", justify="right")
    table.add_column("", style="dim")
    for figure in figures:
        table.add_row(
            figure.name, amount(figure.typical, figure.what), amount(figure.best, figure.what), figure.note
        )
    console.print(table, highlight=False)


def _of_kernel(manager: Manager, prepared: Prepared, times: KernelTimes) -> dict[str, Any]:
    def summary(seconds: list[float]) -> dict[str, float] | None:
        if not seconds:
            return None
        ordered = sorted(seconds)
        return {
            "median": statistics.median(ordered),
            "best": ordered[0],
            "p95": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
        }

    return {
        **_machine(manager),
        "kernel": prepared.kernel.name,
        "signature": prepared.kernel.signature.text(prepared.kernel.name),
        "groups": list(times.groups),
        "local_size": list(prepared.kernel.local_size),
        "invocations": times.invocations,
        "argument_bytes": times.argument_bytes,
        "runs": len(times.host),
        "device_seconds": summary(times.device),
        "eval_seconds": summary(times.host),
    }


def _print_kernel(found: dict[str, Any], console: Console) -> None:
    from rich.table import Table

    _heading(found, console)
    console.print(escape(found["signature"]), highlight=False)
    size = " x ".join(map(str, found["local_size"]))
    console.print(
        f"{' x '.join(map(str, found['groups']))} groups of {size}: {found['invocations']:,} invocations, "
        f"arguments of {binary_size(found['argument_bytes'])}; {found['runs']} runs",
        highlight=False,
    )
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", "median", "best", "95 %"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, key in (("on the device", "device_seconds"), ("eval, by the host", "eval_seconds")):
        values = found[key]
        if values is None:
            table.add_row(name, "no timestamps", "", "")
        else:
            table.add_row(name, *(duration(values[which]) for which in ("median", "best", "p95")))
    console.print(table, highlight=False)
    best = found["device_seconds"] or found["eval_seconds"]
    if best["median"] > 0:
        console.print(
            f"{amount(found['invocations'] / best['median'], '1/s').replace('/s', '')} invocations/s; "
            "each byte of the arguments touched once would be "
            f"{amount(found['argument_bytes'] / best['median'], 'B/s')}",
            style="dim", highlight=False,
        )  # fmt: skip
