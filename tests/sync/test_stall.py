"""Waits do not stall under a validation layer whose records can deadlock (tests/stall)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import DRIVER
from tests.drivers import SYSTEM, DriverUnavailableError, environment
from tests.stall.running import ABOVE, BELOW, run, verdict, without_vulkan
from tests.support.sampling import sampled


@pytest.fixture(scope="module")
def debian():
    try:
        return without_vulkan() | environment(DRIVER, "debian")
    except DriverUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.sampled
def test_waits_do_not_stall_under_the_system_layer(debian):
    # Layers before 1.3.296 stand for 10 s if one thread sees a value while another one is still raising it.
    rounds = sampled(8, 15)
    done = subprocess.run(
        [sys.executable, "-m", "tests.stall.awaits", str(rounds), "1000"], env=debian, capture_output=True,
        text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert [kind for kind, _ in lines] == ["awaits", "threads"] * rounds, done.stdout


@pytest.mark.skipif(DRIVER == SYSTEM, reason="the program opens a driver's library, not the loader's choice")
def test_a_stall_is_judged_by_the_driver():
    # The value comes late: the driver does not have it, so no layer is to blame.
    late = run("wait", driver=DRIVER, rounds=1, late_ms=3000)
    assert set(late.verdicts) == {BELOW} and set(late.calls) == {"vkWaitSemaphores"}
    assert len(late.lengths) == 1 and late.rounds == 1
    assert verdict(5, 4) == BELOW and verdict(5, 5) == verdict(5, 6) == ABOVE


@pytest.mark.parametrize("how", ["any", "apart"])
def test_calls_that_the_system_layer_bears(debian, how):
    seen = run(how, driver=DRIVER, layer="debian", rounds=1500)
    assert seen.rounds == 1500 and not seen.verdicts and not seen.lengths
