"""The commands and their options.

Commands import large modules themselves, so that ``--help`` starts fast.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .._base.errors import KomputeError, KomputeWarning, NotFoundError
from . import bench, caches, looking, programs, running, shaders, starting
from .common import (
    LateProgress,
    Traceback,
    device_of,
    forget_options,
    output_console,
    require,
    wants_traceback,
)
from .options import with_options
from .output import PROGRAM, accept_old_code_pages, as_options, one_line

app: typer.Typer = typer.Typer(
    name=PROGRAM,
    help="Vulkan compute for Python in the Kompute style.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # `run` prints errors in one line
)


def _print_version(value: bool) -> None:
    if value:
        from .. import __version__

        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    show_traceback: Traceback = False,
) -> None:
    pass


@app.command("demo")
def demo_command(
    image: Annotated[
        Path | None,
        typer.Argument(help="A picture, such as a PNG or JPEG. Default: scikit-image's astronaut."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="D",
            help="The device: its index, a part of its name, or a URI.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where to write the pictures.")] = Path(
        "kompute-demo"
    ),
    show_traceback: Traceback = False,
) -> None:
    """Process a photograph on the device, and check the result against NumPy and SciPy."""
    require(
        "demo", ("scipy", "matplotlib", "PIL", "skimage") if image is None else ("scipy", "matplotlib", "PIL")
    )
    try:
        from kompute_py_demo.report import print_report
        from kompute_py_demo.run import STEP_COUNT, run_demo
    except ModuleNotFoundError as error:
        raise NotFoundError(
            f"the demo is not installed ({error.name} is missing): install kompute-py[demo] again, "
            "or run ./dev demo in the sources"
        ) from None
    console = output_console()
    with LateProgress(console, STEP_COUNT) as progress:
        result = run_demo(image, device=device_of(device), out=out, progress=progress.step)
    print_report(result, console)
    if result.failed:
        raise KomputeError(f"wrong results in: {', '.join(check.stage for check in result.failed)}")


class RichPage:
    """`Page` on a console of rich."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, label: str, text: str, style: str = "") -> None:
        """One line; `style` is the label's."""
        shown = f"[{style}]{escape(label)}[/{style}]" if style else escape(label)
        self._console.print(f"{shown}{escape(text)}", highlight=False)

    def device(self, title: str, is_default: bool, note: str, rows: Sequence[tuple[str, str]]) -> None:
        """A device, and its properties with their names."""
        end = "  [green]used by default[/green]" if is_default else ""
        if note:
            end = f"  {escape(note)}"
        self._console.print()
        self._console.print(f"[bold]{escape(title)}[/bold]{end}", highlight=False)
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, text in rows:
            table.add_row(f"   {name}", escape(text))
        self._console.print(table, highlight=False)


@app.command("info")
def info_command(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with all limits and features.")
    ] = False,
    as_report: Annotated[
        bool, typer.Option("--report", help="Print the text for a bug report (kp.report()).")
    ] = False,
    show_traceback: Traceback = False,
) -> None:
    """Show the devices, their capabilities, and what is missing for which purpose."""
    from .info import collect, print_info

    if as_report:
        from .._device.report import report

        print(report())
        return
    found = collect()
    if as_json:
        import json

        print(json.dumps(found, indent=2))
    else:
        print_info(found, RichPage(output_console()))


app.command("compile")(with_options(shaders.compile_command))
app.command("reflect")(with_options(shaders.reflect_command))
app.command("disasm")(with_options(shaders.disasm_command))
app.command("check")(with_options(shaders.check_command))
app.command("run", help=running.RUN_HELP)(with_options(running.run_command))
app.command("bench", help=bench.BENCH_HELP)(with_options(bench.bench_command))
app.command("watch", help=starting.WATCH_HELP)(with_options(starting.watch_command))
app.command("new")(starting.new_command)
app.command("cache")(caches.cache_command)
app.command("program", help=programs.PROGRAM_HELP)(with_options(programs.program_command))
app.command("diff", help=looking.DIFF_HELP)(looking.diff_command)
app.command("profile", context_settings=looking.PROFILE_SETTINGS)(looking.profile_command)


def run(argv: Sequence[str] | None = None) -> int:
    """Runs a command line; see `kompute_py.cli.main`."""
    forget_options()
    accept_old_code_pages()
    shown = warnings.showwarning
    warnings.showwarning = _show_warning
    try:
        app(args=None if argv is None else list(argv), prog_name=PROGRAM)
    except SystemExit as stop:
        # typer ends every run with SystemExit, with 2 for wrong usage.
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        if wants_traceback():
            traceback.print_exc()
        else:
            Console(stderr=True, soft_wrap=True).print(
                f"[bold red]{PROGRAM}: error:[/bold red] {escape(one_line(error))}", highlight=False
            )
        return 1
    finally:
        warnings.showwarning = shown
    return 0


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, *rest: Any, **named: Any
) -> None:
    """Prints a warning in the style of errors, without the line of code, which is not the user's."""
    if not issubclass(category, KomputeWarning):
        print(warnings.formatwarning(message, category, filename, *rest[:1]), end="", file=sys.stderr)
        return
    text = as_options(" ".join(str(message).split()))
    Console(stderr=True, soft_wrap=True).print(
        f"[bold yellow]{PROGRAM}: warning:[/bold yellow] {escape(text)}", highlight=False
    )
