"""A sample of the random programs of `./dev random` on every driver and null-driver profile; see
`tests.differential`.
"""

from __future__ import annotations

import argparse

import pytest

from tests.conftest import DRIVER
from tests.differential.__main__ import NULL, explore_in_child

OPERATIONS = 1500


def explored(device):
    arguments = argparse.Namespace(operations=OPERATIONS, seed="sample", first=0, programs=None, gpu_us=20)
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
