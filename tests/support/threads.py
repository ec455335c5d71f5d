"""Several threads at once, whose errors are the test's."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def on_threads(body: Callable[[Any], Any], cases: Iterable[Any], within: float = 900.0) -> None:
    """`body(case)` for each case on a thread of its own. Raises the first error; a thread that does not end
    is one.
    """
    with beside(body, cases, within):
        pass


@contextlib.contextmanager
def beside(body: Callable[[Any], Any], cases: Iterable[Any], within: float = 900.0) -> Iterator[None]:
    """The same while a ``with`` block runs, at whose end they must end."""
    errors = []

    def run(case: Any) -> None:
        try:
            body(case)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(case,), daemon=True) for case in cases]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(within)
        assert not thread.is_alive(), "a deadlock"
    if errors:
        raise errors[0]
