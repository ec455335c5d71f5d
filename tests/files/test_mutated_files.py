"""Mutated files of each format: taken, or refused with a typed error."""

from __future__ import annotations

import pytest

from tests.support import fuzz_files
from tests.support.sampling import sampled

pytestmark = pytest.mark.sampled


@pytest.mark.parametrize("format", fuzz_files.FORMATS)
def test_mutated_files(mgr, format):
    whole = fuzz_files.seed_file(format)
    assert fuzz_files.use(whole, mgr)
    taken = [fuzz_files.use(fuzz_files.mutant(whole, n, 1), mgr) for n in range(sampled(300, 20_000))]
    assert any(taken) and not all(taken)
