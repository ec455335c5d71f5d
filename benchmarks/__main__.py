"""`python -m benchmarks [PART] [OPTIONS]`, which is `./dev bench`: all benchmarks, a part at a time.

PART is one of these, `rows` by default; `--help` after it shows its options:

  rows          the engine beside the same work in C and memcpy, on lavapipe, SwiftShader and the null driver
  instructions  how many instructions the engine's small calls take, under valgrind
  peers         what users do, with NumPy, Taichi, wgpu, compushady and PyTorch in turns
  advice        a figure for each advice of docs/inside/advice.md, on lavapipe
  device        time and rate of each function of kp.ops on the machine's own GPU, beside PyTorch's
  traffic       what each function of kp.ops moves beside the least, and the time that follows on four GPUs
  workers       what two Dask workers do in the time of one
  library       time per element of each function of kp.ops beside NumPy's, on lavapipe
"""

from __future__ import annotations

import importlib
import sys

PARTS = {
    "device": "benchmarks.device", "rows": "benchmarks.measure",
    "instructions": "benchmarks.callgrind.__main__", "peers": "benchmarks.peers.__main__",
    "traffic": "benchmarks.traffic", "advice": "benchmarks.advice.__main__",
    "library": "benchmarks.library.__main__", "workers": "benchmarks.workers",
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """Runs a part; options without a part are of `rows`."""
    if arguments[:1] in (["-h"], ["--help"], ["help"]):
        print(__doc__)
        return 0
    part, rest = ("rows", arguments)
    if arguments and not arguments[0].startswith("-"):
        part, rest = arguments[0], arguments[1:]
    if part not in PARTS:
        print(f"error: there is no part {part!r}; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(PARTS[part])
    status: int = module.main(rest)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
