"""What is measured once in a process: `python -m benchmarks.fresh WHAT` prints seconds and interruptions.

The first Vulkan call loads the driver, so that each kind but the imports needs a process, too.
"""

from __future__ import annotations

import sys
import time

from .interruptions import interruptions

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
KINDS = {
    "numpy": ("", "import numpy"),
    "import": ("import numpy", "import kompute_py"),
    "manager": ("import kompute_py", "made = kompute_py.Manager()"),
    # The same modules are loaded as for a Manager. The time is taken in C.
    "floor": (
        "import kompute_py; from benchmarks.floor import create_device, load; load()",
        "create_device()",
    ),
    # The shader was compiled before.
    "first": (
        "import numpy; data = numpy.arange(1000, dtype=numpy.float32)",
        "import kompute_py; manager = kompute_py.Manager(); made = manager.kernel(SCALE)(data)",
    ),
}
"""By name: what is made before, and what is timed; its last value is seconds or nothing."""


def main(what: str) -> None:
    """Prints what the kind of measurement that is named took."""
    before, timed = KINDS[what]
    names = {"SCALE": SCALE}
    exec(before, names)
    work = compile(timed, what, "eval" if what == "floor" else "exec")
    taken_away = interruptions()
    start = time.perf_counter()
    result = eval(work, names)
    seconds = time.perf_counter() - start
    print(result or seconds, interruptions() - taken_away)


if __name__ == "__main__":
    main(sys.argv[1])
