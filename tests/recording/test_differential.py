"""A sample of the random programs of `./dev random` on every driver and null-driver profile; see
`tests.differential`.
"""

from __future__ import annotations

import argparse

import pytest

from tests.conftest import DRIVER
from tests.differential.__main__ import NULL, explore_in_child

OPERATIONS = 1500


def explored(device, operations=OPERATIONS, gpu_us=20, fault=""):
    arguments = argparse.Namespace(
        operations=operations, seed="sample", first=0, programs=None, gpu_us=gpu_us, fault=fault
    )
    return explore_in_child(device, arguments)


def check(device):
    result = explored(device)
    assert result.get("mismatch") is None, result["mismatch"]
    assert result["operations"] >= OPERATIONS
    assert result["violations"] == []
    assert result["left"] == 0


def test_on_the_driver_of_the_tests():
    check(DRIVER)


@pytest.mark.own_driver
@pytest.mark.parametrize("device", NULL)
def test_on_the_null_driver(device):
    check(device)


@pytest.mark.own_driver
@pytest.mark.parametrize("fault", ["UnorderedImports"])
def test_faults_put_back_are_found(fault):
    result = explored("memory=unified", operations=20_000, gpu_us=3000, fault=fault)
    assert result["mismatch"] is not None and "MismatchError" in result["mismatch"]["error"]
