"""The option dump: recordings as text. Shaders in it: tests/compilers; reports: test_crashes.py."""

from __future__ import annotations

import re

import numpy as np
import pytest

import kompute_py as kp

pytestmark = pytest.mark.own_driver
DOUBLE = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = 2 * x[i]; }"""


def texts(folder):
    return {path.name: path.read_text() for path in folder.glob("recording-*.txt")}


def test_recordings_are_kept(make_manager, tmp_path):
    mgr = make_manager(dump=tmp_path)
    x, y = mgr.tensor(np.arange(1000)), mgr.zeros(1000)
    x.name, y.name = "x", "y"
    kernel = mgr.kernel(DOUBLE, name="double")
    sequence = mgr.sequence().record(kernel.bind(x, y), kp.OpCopy([y, x]), kp.OpSyncLocal([x]))
    sequence.name = "a step"
    sequence.eval()
    ((name, text),) = texts(tmp_path).items()
    assert re.fullmatch(r"recording-sequence_a_step-[0-9a-f]{12}\.txt", name)
    lines = text.splitlines()
    assert lines[0] == "the sequence 'a step', for queue 0"
    for wanted in (
        r"0  double, 16 x 1 x 1 groups \(.*test_dump\.py:\d+\)",
        r"        reads the tensor 'x', bytes 0 to 4000",
        r"        writes the tensor 'y', bytes 0 to 4000",
        r"     \| shader write before transfer read",
        r"1  OpCopy \(.*test_dump\.py:\d+\)",
        r"2  OpSyncLocal \(.*test_dump\.py:\d+\)",
    ):
        assert any(re.fullmatch(wanted, line) for line in lines), f"{wanted!r} is not in\n{text}"
    sequence.eval()
    sequence.rerecord()
    sequence.eval()
    assert len(texts(tmp_path)) == 1
    kernel(np.ones(5, np.float32), np.zeros(5, np.float32))
    (other,) = (text for each, text in texts(tmp_path).items() if each != name)
    assert "0  double, 1 x 1 x 1 groups" in other


def test_a_folder_that_cannot_be_written(make_manager, tmp_path, caplog):
    (tmp_path / "file").write_text("")
    mgr = make_manager(dump=tmp_path / "file" / "dump")
    mgr.sequence().record(kp.OpSyncDevice([mgr.tensor([1])])).eval()
    mgr.destroy()
    assert "could not be kept in" in caplog.text
