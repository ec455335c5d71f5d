"""The rule that `./dev lint` applies to the core's includes: rooms look downwards, units do not include each
other in a circle.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.own_driver

TOOL = Path(__file__).parents[2] / "tools" / "check_includes.py"

FILES = {
    "base/error.hpp": "",
    "base/error.cpp": '#include "base/error.hpp"\n',
    "sync/queue.hpp": '#include "base/error.hpp"\n#include <vector>\n',
    "sync/gate.hpp": '#include "sync/queue.hpp"\n',
    "run/stream.cpp": '// The file.\n\n#include "sync/gate.hpp"\n',
}


@pytest.fixture
def core(tmp_path: Path) -> Path:
    """A small core that breaks no rule."""
    (tmp_path / "CMakeLists.txt").write_text("set(KP_CORE_FOLDERS base sync\n    run)\n", encoding="utf-8")
    folder = tmp_path / "native" / "core"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def check(*project: Path) -> tuple[int, str]:
    """The tool's exit status and what it says."""
    done = subprocess.run([sys.executable, str(TOOL), *project], capture_output=True, text=True, timeout=500)
    assert done.stderr == ""
    return done.returncode, done.stdout


def added(core: Path, name: str, text: str) -> tuple[int, str]:
    (core / name).parent.mkdir(exist_ok=True)
    with (core / name).open("a", encoding="utf-8") as file:
        file.write(text)
    return check(core.parents[1])


def test_the_core_keeps_the_rules() -> None:
    assert check() == (0, "")


def test_a_small_core_passes(core: Path) -> None:
    assert check(core.parents[1]) == (0, "")


def test_an_include_of_a_room_above_fails_and_names_both_files_and_the_rule(core: Path) -> None:
    status, told = added(core, "base/error.cpp", '\n#include "sync/gate.hpp"\n')
    assert status == 1
    assert told.splitlines() == [
        "native/core/base/error.cpp:3 includes native/core/sync/gate.hpp: the room base is below sync, and a "
        "room includes "
        "only rooms below it"
    ]


def test_a_circle_of_units_in_one_room_fails_and_names_each_step(core: Path) -> None:
    status, told = added(core, "sync/queue.cpp", '#include "sync/gate.hpp"\n')
    assert status == 1
    assert told.splitlines() == [
        "these units include each other in a circle: native/core/sync/gate.hpp:1 includes "
        "native/core/sync/queue.hpp, "
        "native/core/sync/queue.cpp:1 includes native/core/sync/gate.hpp"
    ]


def test_a_longer_circle_fails(core: Path) -> None:
    (core / "sync/retire.hpp").write_text('#include "sync/gate.hpp"\n', encoding="utf-8")
    status, told = added(core, "sync/queue.cpp", '#include "sync/retire.hpp"\n')
    assert status == 1
    assert "circle" in told
    assert all(f"native/core/sync/{name}" in told for name in ("queue.cpp:1", "gate.hpp:1", "retire.hpp:1"))


@pytest.mark.parametrize("written", ["gate.hpp", "../sync/gate.hpp", "sync/none.hpp"])
def test_an_include_names_the_room(core: Path, written: str) -> None:
    status, told = added(core, "run/fence.cpp", f'#include "{written}"\n')
    assert status == 1
    assert told.startswith(f'native/core/run/fence.cpp:1 includes "{written}", which is no file of the core')


@pytest.mark.parametrize("name", ["stray.cpp", "extra/thing.hpp"])
def test_each_file_is_in_a_room(core: Path, name: str) -> None:
    status, told = added(core, name, "")
    assert status == 1
    assert told.startswith(f"native/core/{name} is in no room: the rooms are base, sync, run")
