"""A sample of ``./dev fuzz``: mutated sources and modules end no process, hang nothing and are refused by our
errors alone.
"""

from __future__ import annotations

import pytest

from tests.support import fuzz_sources
from tests.support.fuzz_sources import COMPILERS, run_batch
from tests.support.sampling import sampled

_PATIENCE = 60.0  # on a busy machine


def test_mutated_modules():
    outcomes, problems = run_batch("spirv", 0, 400, seed=1, patience=_PATIENCE)
    assert problems == []
    assert outcomes.total() == 400
    assert {"ran", "taken", "InvalidArgumentError", "UnimplementedError"} <= set(outcomes)


@pytest.mark.own_driver
@pytest.mark.sampled
@pytest.mark.parametrize("language", [language for language in COMPILERS if COMPILERS[language]])
def test_mutants(language):
    mutants = sampled(30, 60)
    outcomes, problems = run_batch(language, 0, mutants, seed=1, patience=_PATIENCE)
    assert problems == []
    assert outcomes.total() == mutants
    assert {"ShaderCompileError", "yes"} <= set(outcomes)


# What a child of `run_batch` becomes in the test below: some mutants are faults.
FAULTY = """
import os, sys, time
from tests.support import fuzz_sources

def attempt(source, language, compiler, manager):
    number = int(source)
    if number == 3:
        os.abort()
    if number == 5:
        os.write(1, b"printed")
    if number == 7:
        raise ValueError("no KomputeError")
    if number == 9:
        time.sleep(0.8)
    if number == 11 and not os.path.exists(TRIED):  # the second time it is quick
        open(TRIED, "w").close()
        time.sleep(0.8)
    if number == 13:
        time.sleep(3600)
    return "yes"

fuzz_sources.mutant = lambda language, number, seed: str(number)
fuzz_sources.attempt = attempt
fuzz_sources.main(sys.argv[1:])
"""


@pytest.mark.own_driver
def test_faults_are_found_and_the_rest_is_tried(tmp_path, monkeypatch):
    program = FAULTY.replace("TRIED", repr(str(tmp_path / "tried")))
    monkeypatch.setattr(fuzz_sources, "CHILD", ["-c", program])
    outcomes, problems = run_batch("glsl", 0, 16, seed=0, patience=0.5)
    assert dict(outcomes) == {"yes": 11}
    said = dict(each.split(": ", 1) for each in problems)
    assert list(said) == [f"glsl:{number}" for number in (3, 5, 7, 9, 13)]
    assert "exit status -6" in said["glsl:3"]
    assert "wrote to the standard output" in said["glsl:5"]
    assert "no KomputeError" in said["glsl:7"]
    assert "TimeoutError: glsl:9 took" in said["glsl:9"]
    assert "Timeout (" in said["glsl:13"]
