"""``python -m tests.sanitized``: the test files that `./dev asan` runs. Those that use the native module in most ways, in a few minutes."""

from __future__ import annotations

from pathlib import Path

FILES = [
    "test_algorithm.py",
    "test_dlpack.py",
    "test_fence.py",
    "test_fill.py",
    "test_from_host.py",
    "test_image.py",
    "test_kernel.py",
    "test_lifetime.py",
    "test_mapping.py",
    "test_memory.py",
    "test_nothing_grows.py",
    "test_operations.py",
    "test_regions.py",
    "test_sampler.py",
    "test_semaphore.py",
    "test_sequence.py",
    "test_streaming.py",
    "test_tensor.py",
    "test_views.py",
]


def main() -> None:
    """Prints the paths of the files."""
    folder = Path(__file__).resolve().parent
    print("\n".join(str(folder / name) for name in FILES))


if __name__ == "__main__":
    main()
