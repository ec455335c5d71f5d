"""A sample of ``./dev fuzz --api``: odd arguments for every public callable are refused by our errors
alone."""

from __future__ import annotations

import sys

import pytest

from tests.fuzz_api import running
from tests.fuzz_api.running import run
from tests.fuzz_api.values import TABLE
from tests.support.child import run_child
from tests.support.sampling import sampled

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the watchdogs are signals")


def classes_without_an_object() -> list[str]:
    from tests.fuzz_api.objects import Objects, classes

    objects = Objects()
    missing = sorted(set(classes()) - set(objects.fresh()) - {"Manager"})
    objects.mgr.destroy()
    return missing


@pytest.mark.own_driver
def test_every_public_class_has_an_object_to_call():
    assert run_child(classes_without_an_object) == []


@pytest.mark.own_driver
@pytest.mark.sampled
def test_every_callable_takes_or_refuses_every_kind_of_array():
    """Each parameter of each public callable with each kind of array and tensor that some rule is about."""
    made, faults = run(0, seed=0, patience=60, kinds=TABLE, every=sampled(144, 1))
    assert made > sampled(125, 2000)
    assert faults == []


@pytest.mark.sampled
def test_odd_arguments_are_taken_or_refused_by_our_errors():
    calls = sampled(600, 2500)
    made, faults = run(calls, seed=1, patience=60)
    assert made == calls
    assert faults == []


# Comes before the child's program: four more public functions, of which three are faults.
FAULTY = """
import os, signal, time
import kompute_py as kp

def seeded_right(value): raise kp.InvalidArgumentError("no")
def seeded_raw(value): return {}[()]
def seeded_end(value): os.abort()
def seeded_hang(value):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(3600)

for each in (seeded_right, seeded_raw, seeded_end, seeded_hang):
    setattr(kp, each.__name__, each)
    kp.__all__ = [*kp.__all__, each.__name__]
"""


@pytest.mark.own_driver
def test_faults_are_found(monkeypatch):
    monkeypatch.setattr(running, "PROGRAM", FAULTY + running.PROGRAM)
    made, faults = run(4, seed=1, only="seeded_", patience=2)
    assert made == 4  # each function once
    by_name = {fault.split(":")[0]: fault for fault in faults}
    assert set(by_name) == {"seeded_raw", "seeded_end", "seeded_hang"}
    assert "KeyError" in by_name["seeded_raw"]
    assert "ends the process with status -6" in by_name["seeded_end"]
    assert "hangs: it ran for more than 2 s" in by_name["seeded_hang"]
