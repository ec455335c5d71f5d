"""Functions in processes of their own, with a pipe to each."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any

CONTEXT = multiprocessing.get_context("spawn")


def start(target: Callable[..., object], *given: Any) -> tuple[SpawnProcess, Connection]:
    """Runs `target(pipe, *given)`; the process, and our end of the pipe."""
    here, there = CONTEXT.Pipe()
    process = CONTEXT.Process(target=target, args=(there, *given))
    process.start()
    there.close()
    return process, here
