"""A sample of ``./dev fuzz``: mutated sources and modules end no process, hang nothing and are refused by our errors alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.fuzz_sources import COMPILERS

pytestmark = pytest.mark.own_driver


def test_mutated_modules():
    command = [sys.executable, "-m", "tests.support.fuzz_sources", "--batch", "spirv:0:400", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-200:]} {done.stderr[-2000:]}"
    assert all(
        word in done.stdout for word in ("'ran'", "'taken'", "InvalidArgumentError", "UnimplementedError")
    )


@pytest.mark.parametrize("language", [language for language in COMPILERS if COMPILERS[language]])
def test_mutants(language, monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_COMPILE_TIMEOUT", "8")
    command = [
        sys.executable,
        "-m",
        "tests.support.fuzz_sources",
        "--batch",
        f"{language}:0:60",
        "--seed",
        "1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-200:]} {done.stderr[-2000:]}"
    assert "ShaderCompileError" in done.stdout and "yes" in done.stdout
