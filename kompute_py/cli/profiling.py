"""``kompute-py profile``: runs a script and shows what the devices did."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Annotated

import typer

from .._base.errors import NotFoundError
from .._base.settings import PREFIX
from .common import Traceback

PROFILE_SETTINGS = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
}


def profile_command(
    context: typer.Context,
    script: Annotated[Path, typer.Argument(help="A Python script; its own arguments follow.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The trace, for ui.perfetto.dev.")
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
    finally:
        profiles = scripts.finish()
        for profile in profiles:
            print(profile)
        if not profiles:
            print(f"{script} made no Manager: there is no trace", file=sys.stderr)
