"""``python -m tests.support.sanitized``: the test files that `./dev asan` runs.

Those that use the native module in most ways, in a few minutes.
"""

from __future__ import annotations

from pathlib import Path

FILES = [
    "recording/test_algorithm.py", "exchange/test_dlpack.py", "sync/test_fence.py", "memory/test_fill.py",
    "exchange/test_from_host.py", "images/test_image.py", "kernels/test_kernel.py",
    "manager/test_lifetime.py", "exchange/test_mapping.py", "memory/test_memory.py",
    "robustness/test_nothing_grows.py", "recording/test_operations.py", "base/test_regions.py",
    "images/test_sampler.py", "sync/test_semaphore.py", "recording/test_sequence.py",
    "recording/test_streaming.py", "memory/test_tensor.py", "memory/test_views.py",
]  # fmt: skip


def main() -> None:
    """Prints the paths of the files."""
    folder = Path(__file__).resolve().parents[1]
    print("\n".join(str(folder / name) for name in FILES))


if __name__ == "__main__":
    main()
