"""The demo's output on the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kompute_py._base.text import binary_size, duration

from .checks import Check
from .pipeline import BYTES_PER_PIXEL
from .run import DemoResult


def print_report(result: DemoResult, console: Console) -> None:
    """Prints the device, the table of steps with times and differences, and the written files."""
    device = result.device
    console.print(
        f"[bold]{escape(device['device_name'])}[/bold]  {device['type']} device, "
        f"driver {escape(device['driver_name'])} {escape(device['driver_version'])}, "
        f"Vulkan {device['api_version']}"
    )
    console.print(f"{escape(result.photo)}, {result.width} × {result.height} pixels", highlight=False)
    if result.scaled_from is not None:
        limit = device["limits"]["maxStorageBufferRange"]
        console.print(
            f"[yellow]Scaled down from {result.scaled_from[0]} × {result.scaled_from[1]}[/yellow]: "
            f"a buffer of this device has at most {binary_size(limit)} (maxStorageBufferRange), "
            f"{BYTES_PER_PIXEL} bytes per pixel",
            highlight=False,
        )
    console.print(_table(result))
    if not result.device_seconds:
        console.print("This device has no timestamps, so there are no times on the device.")
    for check in result.failed:
        console.print(
            f"[bold red]{check.stage} is wrong:[/bold red] it differs from NumPy and SciPy by "
            f"{difference(check)}; allowed is {tolerance(check)}",
            highlight=False,
        )
    folder = result.files[0].parent
    console.print(
        f"Pictures in [bold]{escape(str(folder))}[/bold]: {', '.join(file.name for file in result.files)}"
    )


def _table(result: DemoResult) -> Table:
    table = Table(header_style="bold", show_footer=True, footer_style="bold", pad_edge=False)
    table.add_column("step", "whole eval", no_wrap=True)
    table.add_column("on the device", duration(result.eval_seconds), justify="right", no_wrap=True)
    numpy_total = sum(result.reference_seconds.values())
    table.add_column("NumPy, SciPy", duration(numpy_total), justify="right", no_wrap=True)
    table.add_column("largest difference", "", justify="right")
    table.add_column("allowed", "", justify="right")
    table.add_column("", "[green]ok[/green]" if not result.failed else "[red]wrong[/red]", no_wrap=True)
    checks = {check.stage: check for check in result.checks}
    for step in result.steps:
        _add_row(table, step, result, checks.pop(step, None))
    for check in checks.values():
        _add_row(table, check.stage, result, check)
    table.caption = (
        f"medians of {result.runs} runs on the device and {result.reference_runs} in NumPy and SciPy; "
        "steps by the device's timestamps, the whole by the host's clock"
    )
    table.caption_justify = "left"
    return table


def _add_row(table: Table, step: str, result: DemoResult, check: Check | None) -> None:
    seconds, numpy_seconds = result.device_seconds.get(step), result.reference_seconds.get(step)
    table.add_row(
        step,
        "" if seconds is None else duration(seconds),
        "" if numpy_seconds is None else duration(numpy_seconds),
        "" if check is None else difference(check),
        "" if check is None else tolerance(check),
        "" if check is None else "[green]ok[/green]" if check.passed else "[red]wrong[/red]",
    )


def difference(check: Check) -> str:
    """The largest difference with its unit."""
    return f"{check.difference:.3g} {check.unit}"


def tolerance(check: Check) -> str:
    """The allowed difference with its unit."""
    return f"{check.tolerance:.3g} {check.unit}"
