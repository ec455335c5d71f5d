"""Scripts end with their exit status and without a hang, whatever is left open; `./dev ends` runs each of
them fifty times.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.ends.running import End, judge, run
from tests.ends.states import STATES

pytestmark = pytest.mark.own_driver

# One of each kind; `./dev ends` has all of them.
_SAMPLE = [
    "held",
    "held, raises",
    "held, warnings are errors",
    "held, destroyed",
    "held, Manager left by an error",
    "held, Manager dropped",
    "held, Ctrl-C in its await",
    "thread in eval",
    "thread in read",
    "thread in tensors",
    "thread in a long compile",
    "thread in kernels",
    "thread in await",
    "thread in a custom operation",
    "thread in an error",
    "threads while the Manager is destroyed",
    "Ctrl-C in eval",
    "Ctrl-C in stream",
    "Ctrl-C in compile, caught",
    "running work",
    "unfinished futures",
    "unclosed streams",
    "forked child",
]


@pytest.fixture(scope="module")
def ends():
    """Two scripts run at a time, ahead of the tests that judge them."""
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(run, STATES[name], "lavapipe") for name in _SAMPLE}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", _SAMPLE)
def test_script_ends(name: str, ends: dict[str, Future[End]]):
    end = ends[name].result()
    assert not judge(STATES[name], end), f"{end.out}\n{end.err}"
