"""A sample of ``./dev fuzz --api``: odd arguments for every public callable are refused by our errors alone."""

from __future__ import annotations

import sys

import pytest

from tests.fuzz_api.running import run
from tests.support.child import run_child

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the watchdogs are signals")


def classes_without_an_object() -> list[str]:
    from tests.fuzz_api.objects import Objects, classes

    objects = Objects()
    missing = sorted(set(classes()) - set(objects.fresh()) - {"Manager"})
    objects.mgr.destroy()
    return missing


def test_every_public_class_has_an_object_to_call():
    assert run_child(classes_without_an_object) == []


def test_odd_arguments_are_taken_or_refused_by_our_errors():
    made, faults = run(2500, seed=1, patience=60)
    assert made == 2500
    assert faults == []
