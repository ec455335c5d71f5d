"""What is measured once in a process: `python -m benchmarks.fresh WHAT` prints seconds and interruptions.

WHAT is `numpy` (import numpy), `import` (import kompute_py when NumPy is there), `manager` (make a
kp.Manager), `floor` (make an instance and a device in C) or `first` (import kompute_py when NumPy is there,
make a Manager and a kernel whose shader was compiled before, and call it). The first Vulkan call loads the
driver, so that the last three each need a process.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from .interruptions import interruptions


def _timed(work: Callable[[], object]) -> tuple[float, int]:
    """Seconds, and how often the processor was taken away meanwhile."""
    before = interruptions()
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    taken_away = interruptions() - before
    del result
    return seconds, taken_away


def _import_of(module: str) -> tuple[float, int]:
    if module in sys.modules:
        raise RuntimeError(f"{module} was imported before its import could be timed")
    return _timed(lambda: __import__(module))


def _numpy() -> tuple[float, int]:
    return _import_of("numpy")


def _import() -> tuple[float, int]:
    __import__("numpy")
    return _import_of("kompute_py")


def _manager() -> tuple[float, int]:
    import kompute_py as kp

    return _timed(kp.Manager)


def _floor() -> tuple[float, int]:
    # The same modules are loaded in both processes.
    import kompute_py  # noqa: F401

    from .floor import create_device, load

    load()
    before = interruptions()
    made = create_device()
    return made, interruptions() - before


SCALE = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer Source { float source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { float target[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < source.length()) target[i] = source[i] * 2.0;
}
"""


def _first() -> tuple[float, int]:
    import numpy as np

    data = np.arange(1000, dtype=np.float32)

    def work() -> object:
        import kompute_py as kp

        manager = kp.Manager()
        return manager, manager.kernel(SCALE)(data)

    return _timed(work)


_KINDS = {"numpy": _numpy, "import": _import, "manager": _manager, "floor": _floor, "first": _first}


def main(arguments: list[str]) -> int:
    """Prints what the kind of measurement that is named took."""
    if len(arguments) != 1 or arguments[0] not in _KINDS:
        print(f"usage: python -m benchmarks.fresh {{{','.join(_KINDS)}}}", file=sys.stderr)
        return 2
    seconds, taken_away = _KINDS[arguments[0]]()
    print(seconds, taken_away)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
