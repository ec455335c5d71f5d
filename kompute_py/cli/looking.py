"""What a script did: ``kompute-py profile`` measures it, ``kompute-py diff`` finds where two runs part."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._base.errors import KomputeError, NotFoundError
from .._base.settings import PREFIX
from .common import Atol, Rtol, Traceback

if TYPE_CHECKING:
    from .._debugging.record import Step

PROFILE_SETTINGS = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
}
DIFF_HELP = """Show the first operation whose results differ between two records.

kompute-py diff before after --rtol 1e-6

A record is a folder that kp.Manager(debug="record=FOLDER"), the variable KOMPUTE_PY_DEBUG=record=FOLDER or \
mgr.watch(FOLDER) wrote: the results of each operation of a run, in order.

Exit status: 0 no difference beyond --rtol and --atol, 1 a difference, 2 wrong usage."""

_MOST_SHOWN = 10


def diff_command(
    one: Annotated[Path, typer.Argument(metavar="A", help="A record.")],
    other: Annotated[Path, typer.Argument(metavar="B", help="The record to compare with it.")],
    rtol: Rtol = 0.0,
    atol: Atol = 0.0,
    show_traceback: Traceback = False,
) -> None:
    """``kompute-py diff``."""
    from .._debugging.record import read_record

    different = number = 0
    for number, (left, right) in enumerate(zip_longest(read_record(one), read_record(other)), 1):
        if left is None or right is None:
            ends, goes_on = (one, right) if left is None else (other, left)
            assert goes_on is not None
            print(f"operation {number}: {ends} ends here; the other has {goes_on.operation} ({goes_on.line})")
            different += 1
            break
        if left.operation != right.operation or left.arrays.keys() != right.arrays.keys():
            print(f"operation {number}: {_shown(left)} in {one}, {_shown(right)} in {other}")
            different += 1
            break  # what follows are other operations
        lines = _differences(left, right, rtol, atol)
        if lines:
            different += 1
            if different <= _MOST_SHOWN:
                where = f" ({left.line})" if left.line else ""
                print("\n".join([f"operation {number}, {left.operation}{where}:", *lines]))
    if different > _MOST_SHOWN:
        print(f"and {different - _MOST_SHOWN} more operations")
    if different:
        raise KomputeError(f"the records differ in {different} of {number} operations")
    print(f"{number} operations, all equal" + (" within the bounds" if rtol or atol else ""))


def _shown(step: Step) -> str:
    return f"{step.operation} -> {', '.join(step.arrays) or 'nothing'}"


def _differences(left: Step, right: Step, rtol: float, atol: float) -> list[str]:
    from .._programs.tracing import difference

    lines = []
    for name, array in left.arrays.items():
        with_it = right.arrays[name]
        if array.shape != with_it.shape or array.dtype != with_it.dtype:
            lines.append(
                f"  {name}: {array.dtype}{list(array.shape)} and {with_it.dtype}{list(with_it.shape)}"
            )
        elif (found := difference(array, with_it)).exceeds(rtol, atol):
            lines.append(f"  {name}: {found}")
    return lines


def profile_command(
    context: typer.Context,
    script: Annotated[Path, typer.Argument(help="A Python script; its own arguments follow.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The trace, for ui.perfetto.dev. Before the script.")
    ] = Path("profile.json"),
    show_traceback: Traceback = False,
) -> None:
    """Run a Python script, print the time of each operation, and write a trace."""
    if not script.is_file():
        raise NotFoundError(f"there is no script {script}")
    from .._profiling import scripts

    os.environ[f"{PREFIX}PROFILE"] = str(out.absolute())
    sys.argv = [str(script), *context.args]
    sys.path.insert(0, str(script.parent.absolute()))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except Exception as error:  # the script's, shown as Python shows it
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename != str(script):
            frames = frames.tb_next
        traceback.print_exception(type(error), error, frames)
        raise typer.Exit(1) from None
    finally:
        profiles = scripts.finish()
        for profile in profiles:
            print(profile)
        if not profiles:
            print(f"{script} made no Manager: there is no trace", file=sys.stderr)
