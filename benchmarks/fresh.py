"""What is measured once in a process: `python -m benchmarks.fresh WHAT` prints seconds.

WHAT is `numpy` (import numpy), `import` (import kompute_py when NumPy is there), `manager` (make a kp.Manager) or `floor`
(make an instance and a device in C). The first Vulkan call loads the driver, so that the last two each need a process.
"""

from __future__ import annotations

import sys
import time


def _numpy() -> float:
    start = time.perf_counter()
    import numpy  # noqa: F401

    return time.perf_counter() - start


def _import() -> float:
    import numpy  # noqa: F401

    start = time.perf_counter()
    import kompute_py  # noqa: F401

    return time.perf_counter() - start


def _manager() -> float:
    import kompute_py as kp

    start = time.perf_counter()
    manager = kp.Manager()
    seconds = time.perf_counter() - start
    manager.destroy()
    return seconds


def _floor() -> float:
    # The same modules are loaded in both processes.
    import kompute_py  # noqa: F401

    from .floor import create_device, load

    load()
    made, _ = create_device()
    return made


_KINDS = {"numpy": _numpy, "import": _import, "manager": _manager, "floor": _floor}


def main(arguments: list[str]) -> int:
    """Prints what the kind of measurement that is named took."""
    if len(arguments) != 1 or arguments[0] not in _KINDS:
        print(f"usage: python -m benchmarks.fresh {{{','.join(_KINDS)}}}", file=sys.stderr)
        return 2
    print(_KINDS[arguments[0]]())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
