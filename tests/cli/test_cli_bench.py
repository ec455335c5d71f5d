"""kompute-py bench: figures of this device, and the time of a shader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kompute_py as kp
from kompute_py.cli import bench, main, measuring

SHADER = """#version 450
layout(local_size_x = 16) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) writeonly buffer B { float b[]; };
layout(push_constant) uniform P { float scale; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < b.length()) b[i] = scale * a[i]; }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, mgr):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measuring, "_FIGURE_SECONDS", 0.01)
    monkeypatch.setattr(measuring, "_TRANSFER_BYTES", 1 << 20)
    Path("scale.comp").write_text(SHADER)
    return tmp_path


def test_the_device(folder, capsys):
    assert main(["bench", "--json"]) == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert shown.err == "" and found["device"] == kp.list_devices()[0]["device_name"]
    figures = {figure["name"]: figure for figure in found["figures"]}
    assert list(figures) == [
        "eval", "kernel call", "call with arrays", "dispatches", "upload", "download", "copy on the device",
    ]  # fmt: skip
    assert len(figures) == measuring.FIGURES
    for figure in figures.values():
        least = min if figure["unit"] == "s" else max
        assert figure["median"] > 0 and least(figure["best"], figure["median"]) == figure["best"]
        assert figure["blocks"] >= 3
    assert figures["eval"]["unit"] == "s" and 0 < figures["eval"]["best"] < 1
    assert figures["upload"]["unit"] == "B/s" and figures["dispatches"]["unit"] == "1/s"


def test_the_device_for_people(folder, capsys):
    assert main(["bench", "--device", "0"]) == 0
    text = capsys.readouterr().out
    assert kp.list_devices()[0]["device_name"] in text and "\x1b" not in text
    for word in ("eval", "kernel call", "dispatches", "GB/s", "median", "best", "tensor.write of 1 MiB"):
        assert word in text
    assert all(not line.rstrip().endswith("…") for line in text.splitlines())


def test_a_shader(folder, capsys, mgr, needs):
    needs(mgr, "timestamps")
    command = ["bench", "scale.comp", "--in", "a=random:1000", "--set", "scale=2", "--seconds", "0.02"]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kernel"] == "scale" and found["groups"] == [63, 1, 1] and found["local_size"] == [16, 1, 1]
    assert found["invocations"] == 63 * 16 and found["argument_bytes"] == 8000 and found["runs"] >= 5
    for key in ("device_seconds", "eval_seconds"):
        times = found[key]
        assert 0 <= times["best"] <= times["median"] <= times["p95"] < 10
    assert main([*command, "--grid", "32"]) == 0
    text = capsys.readouterr().out
    assert (
        "scale(float[] a, out float[] b, *, float scale)" in text and "2 x 1 x 1 groups of 16 x 1 x 1" in text
    )
    assert "on the device" in text and "eval, by the host" in text


def test_a_device_without_timestamps(folder, capsys, monkeypatch):
    properties = kp.Manager.get_device_properties
    monkeypatch.setattr(
        kp.Manager, "get_device_properties",
        lambda self: kp.DeviceInfo({**properties(self), "timestamps_supported": False}),
    )  # fmt: skip
    command = ["bench", "scale.comp", "--in", "a=random:64", "--set", "scale=2", "--seconds", "0"]
    assert main(command) == 0
    assert "no timestamps" in capsys.readouterr().out
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["device_seconds"] is None


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["none.comp"], "There is no shader file 'none.comp'"),
        (["scale.comp", "--set", "scale=1"], "missing 'a'"),
        (["scale.comp", "--in", "a=1", "--set", "scales=1"], "did you mean 'scale'?"),
        (["--device", "no such device"], "no such device"),
    ],
)
def test_errors_are_one_line(folder, one_line, options, word):
    assert main(["bench", *options]) == 1
    assert word in one_line()


@pytest.mark.parametrize(
    "wrong", [["--in", "a=1"], ["--grid", "3"], ["scale.comp", "--seconds", "-1"], ["a", "b"]]
)
def test_wrong_usage(folder, capsys, wrong):
    assert main(["bench", *wrong]) == 2
    assert "Usage" in capsys.readouterr().err


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.5, "s", "1.5 s"), (0.0321, "s", "32.1 ms"), (4.2e-6, "s", "4.2 us"), (3.1e-8, "s", "31 ns"),
        (7.45e9, "B/s", "7.45 GB/s"), (12e6, "1/s", "12 M/s"), (900.0, "B/s", "900 B/s"),
    ],
)  # fmt: skip
def test_units(value, unit, text):
    assert bench.amount(value, unit) == text
