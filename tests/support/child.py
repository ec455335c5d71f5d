"""Runs a function of a test module in a process of its own.

For what cannot be had in the test's process: another driver (the loader reads its variables once), the null
driver's control of it, a missing loader, a signal, an interpreter that exits.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.drivers import environment
from tests.support.sampling import sampled

ROOT = Path(__file__).resolve().parents[2]

# Not `python -m`: the repository stands last on the path, since the installed package must win over the
# sources.
_BOOTSTRAP = """
import importlib, json, sys
root, module, function, arguments = sys.argv[1:]
sys.path.append(root)
result = getattr(importlib.import_module(module), function)(*json.loads(arguments))
print("\\nresult:" + json.dumps(result))
"""


def run_child(
    function: Callable[..., Any],
    *arguments: Any,
    driver: str | None = None,
    layer: str | None = None,
    config: str | None = None,
    env: dict[str, str] | None = None,
    timeout: float = sampled(500, 1000),
) -> Any:
    """`function(*arguments)` in a new interpreter; arguments and the result pass through JSON.

    `driver`, `layer` and `config` are those of `tests.drivers.environment`; without `driver`, the one of the
    tests. `env` comes on top. Fails with the child's output when it does not end with success.
    """
    variables = dict(os.environ)
    if driver is not None:
        # What the tests' own driver and layer need is not for the child's.
        of_another = ("VK_", "KP_NULL_DRIVER")
        variables = {name: value for name, value in variables.items() if not name.startswith(of_another)}
        variables |= environment(driver, layer, config)
    variables |= {"PYTHONFAULTHANDLER": "1", "PYTHONWARNINGS": "default"} | (env or {})
    command = [sys.executable, "-c", _BOOTSTRAP, str(ROOT), function.__module__, function.__name__]
    # Not in the repository: Python puts the current directory first.
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [*command, json.dumps(arguments)],
            cwd=scratch,
            env=variables,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    output = f"{done.stdout}\n{done.stderr}".strip()
    assert done.returncode == 0, f"{function.__name__} in a child ended with {done.returncode}:\n{output}"
    marker, _, result = done.stdout.rstrip().rpartition("\n")[2].partition(":")
    assert marker == "result", f"{function.__name__} in a child gave no result:\n{output}"
    return json.loads(result)
