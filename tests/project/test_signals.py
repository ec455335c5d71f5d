"""The suite's own rules for signals and terminals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.own_driver, pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")]

IGNORING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def test_tests_of_ctrl_c_pass_if_the_shell_ignores_it():
    tests = [
        "tests/compilers/test_shader_process.py::test_interrupts_end_the_wait_and_the_process[check-hlsl]",
        "tests/cli/test_cli_run.py::test_ctrl_c_waits_for_the_device_and_again_does_not",
        "tests/recording/test_sequence.py::test_ctrl_c_while_waiting",
    ]
    command = [sys.executable, "-c", IGNORING, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    passed = re.search(r"^(\d+) passed", done.stdout, re.MULTILINE)
    assert done.returncode == 0 and passed, done.stdout + done.stderr
    assert int(passed[1]) >= len(tests), done.stdout


def test_a_test_of_terminals_skips_by_name_if_there_is_none():
    code = (
        "import pty, sys, pytest\n"
        "def none():\n    raise OSError('out of pty devices')\n"
        "pty.openpty = none\n"
        "sys.exit(pytest.main(['-q', '-rs', '-p', 'no:cacheprovider', "
        "'tests/cli/test_cli_shaders.py::test_compile_errors_in_a_terminal']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=dict(os.environ), capture_output=True, text=True,
        timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no pseudo-terminal can be opened here: out of pty devices" in done.stdout
