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
    "used by another thread while it is donated",
}  # fmt: skip
WITHOUT_IMPORTS = ("swiftshader", "memory=noncoherent", "memory=exotic", "profile=mobile")


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


@pytest.mark.own_driver
@pytest.mark.parametrize("device", NULL)
def test_on_the_null_driver(device):
    check(device)


def check_found(device, fault, words, **options):
    result = explored(device, operations=20_000, fault=fault, **options)
    error = (result["mismatch"] or {"error": f"not found in {result['operations']} operations"})["error"]
    assert error.startswith("MismatchError") and words in error, error


@pytest.mark.own_driver
def test_tensors_over_one_array_that_are_not_ordered_are_found():
    check_found("memory=unified", "UnorderedImports", "bytes differ", gpu_us=3000, seed="1")


@pytest.mark.own_driver
def test_older_host_copies_sent_in_silence_are_found():
    check_found("memory=discrete", "UnnotedWrites", "an item assignment put there")


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("TakenAtTheEnd", "of a tensor that a call has taken"),
        ("GivenTwice", "of a tensor that a call has taken"),
        ("NotesBesideTheKey", "bytes differ"),
        ("UntoldRebuilds", "that was rebuilt since"),
    ],
)
def test_faults_put_back_are_found(fault, words):
    check_found(DRIVER, fault, words)
