"""Measures figures on the one driver that this process sees; prints a JSON object a line.

`python -m benchmarks.worker DRIVER QUICK FIGURE...`: `python -m benchmarks` starts one for each driver, with
that driver's environment: a process's loader is set up once.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import traceback

from .bench import Bench
from .figures import NO_DRIVER
from .machine import describe, driver_text
from .rows import FIGURES
from .table import Row


def main(driver: str, quick: str, *names: str) -> None:
    """Prints {"driver": ...}, then {"row": ...} or {"failed": ...} for each figure."""
    bench = Bench(driver, quick == "True")

    def send(**message: object) -> None:
        print(json.dumps(message), flush=True)

    send(machine=describe())
    if driver != NO_DRIVER:
        send(driver=driver_text())
    for name in names:
        send(started=name)
        try:
            row = Row.of(FIGURES[name], driver, FIGURES[name].measure(bench))
        except Exception as error:  # the other figures are still worth having
            traceback.print_exc(file=sys.stderr)
            send(failed=name, reason=f"{type(error).__name__}: {error}")
        else:
            send(row=dataclasses.asdict(row))
    bench.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
