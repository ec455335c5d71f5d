"""A sample of the random programs of `./dev random` on every driver and null-driver profile; see
`tests.differential`.
"""

from __future__ import annotations

import argparse

import pytest

from tests.conftest import DRIVER
from tests.differential.__main__ import NULL, explore_in_child

OPERATIONS = 1500


def explored(device, operations=OPERATIONS, gpu_us=20, fault="", seed="sample"):
    arguments = argparse.Namespace(
        operations=operations, seed=seed, first=0, programs=None, gpu_us=gpu_us, fault=fault
    )
    return explore_in_child(device, arguments)


ANYWHERE = {"assigned", "scratch", "threads"}
IN_SHADERS = {
    "operation called", "operation recorded", "operation submitted", "strided argument", "strided result",
    "repeated with an exchange", "kernels by shape", "drawn", "donated", "rebuilt", "recorded again",
    "used by another thread while it is donated", "assigned at places",
}  # fmt: skip
WITHOUT_IMPORTS = (
    "swiftshader", "memory=noncoherent", "memory=exotic", "profile=mobile", "profile=adreno", "profile=bare",
)  # fmt: skip


def check(device):
    result = explored(device)
    assert result.get("mismatch") is None, result["mismatch"]
    wanted = set(ANYWHERE)
    wanted |= set() if device in NULL else IN_SHADERS
    wanted |= set() if device in WITHOUT_IMPORTS else {"imported again"}
    assert wanted <= set(result["kinds"])
    assert result["operations"] >= OPERATIONS
    assert result["violations"] == []
    assert result["left"] == 0


def test_on_the_driver_of_the_tests():
    check(DRIVER)


@pytest.mark.sampled(every=3)
@pytest.mark.own_driver
@pytest.mark.parametrize("device", NULL)
def test_on_the_null_driver(device):
    check(device)


def check_found(device, fault, **options):
    result = explored(device, operations=20_000, fault=fault, **options)
    error = (result["mismatch"] or {"error": f"not found in {result['operations']} operations"})["error"]
    assert error.startswith("MismatchError"), error


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("device", "fault", "gpu_us"),
    [("memory=unified", "UnorderedImports", 3000), ("memory=discrete", "UnnotedWrites", 20)],
)
def test_faults_of_memory_put_back_are_found(device, fault, gpu_us):
    check_found(device, fault, gpu_us=gpu_us, seed="1")


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("fault", ["TakenAtTheEnd", "GivenTwice", "NotesBesideTheKey", "UntoldRebuilds"])
def test_faults_of_operations_put_back_are_found(fault):
    check_found(DRIVER, fault)
