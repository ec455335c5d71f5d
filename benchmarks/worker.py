"""Measures figures on the one driver that this process sees; prints a JSON object a line.

`python -m benchmarks` starts one for each driver, with that driver's environment: a process's loader is set
up once.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import traceback

from .bench import Bench
from .figures import NO_DRIVER
from .machine import describe, driver_text
from .rows import REGISTRY
from .table import Row


def main(arguments: list[str] | None = None) -> int:
    """Prints {"driver": ...}, then {"row": ...} or {"failed": ...} for each figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description=__doc__)
    parser.add_argument("driver")
    parser.add_argument("figures", nargs="+")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    bench = Bench(options.driver, options.quick)

    def send(**message: object) -> None:
        print(json.dumps(message), flush=True)

    send(machine=describe())
    if options.driver != NO_DRIVER:
        send(driver=driver_text())
    for name in options.figures:
        figure = REGISTRY.figures[name]
        send(started=name)
        try:
            row = Row.of(figure, options.driver, figure.measure(bench))
        except Exception as error:  # the other figures are still worth having
            traceback.print_exc(file=sys.stderr)
            send(failed=name, reason=f"{type(error).__name__}: {error}")
        else:
            send(row=dataclasses.asdict(row))
    bench.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
