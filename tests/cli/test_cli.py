"""The command line: commands, exit statuses, errors in one line, and machines where something is missing."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import kompute_py as kp
from kompute_py import _native
from kompute_py.cli import common, main
from kompute_py.cli.info import missing, validation_advice
from tests.support.child import command, python, run_child

# What the commands print; test_demo.py runs the demo on each driver.
pytestmark = pytest.mark.own_driver


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"kompute-py {kp.__version__}\n"
    ran = python("-m", "kompute_py", "--version")
    assert (ran.returncode, ran.stdout) == (0, f"kompute-py {kp.__version__}\n")


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from kompute_py.cli import main; status = main(['demo', '--help']);"
        "heavy = {'scipy', 'matplotlib', 'PIL', 'skimage', 'sklearn', 'vulkan'} & set(sys.modules);"
        "print(heavy, file=sys.stderr); sys.exit(status)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=500)
    assert ran.returncode == 0 and ran.stderr.strip() == "set()"
    assert "--device" in ran.stdout and "--out" in ran.stdout


@pytest.mark.parametrize(
    "wrong", [["nonsense"], ["demo", "--nonsense"], ["demo", "a.png", "b.png"], ["info", "--device"]]
)
def test_wrong_usage(wrong, capsys):
    assert main(wrong) == 2
    assert "Usage" in capsys.readouterr().err


# -- info ----------------------------------------------------------------------------------------------------


def test_info(capsys):
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    unwrapped = " ".join(text.split())
    for device in kp.list_devices():
        assert device["device_name"] in text and device["uuid"] in text
        assert f"push constants {device['limits']['maxPushConstantsSize']} bytes" in unwrapped
    assert "used by default" in text and "maxStorageBufferRange" not in text


def test_info_as_json(capsys):
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    names = [device["device_name"] for device in found["devices"]]
    assert names == [device["device_name"] for device in kp.list_devices()]
    assert found["kompute_py"] == kp.__version__ and found["error"] is None
    assert found["default_device"] in [device["index"] for device in found["devices"]]
    for device in found["devices"]:
        for sentence in device["missing"]:
            name = sentence.split()[1].rstrip(":")
            assert not device["features"].get(name, False), sentence


@pytest.mark.capability("I54 W7", "text for bug reports", "kp.report", "guides/command_line")
def test_a_report_for_bugs(capsys, monkeypatch):
    monkeypatch.setenv("VK_LOADER_DEBUG", "none")
    assert main(["info", "--report"]) == 0
    printed = capsys.readouterr().out
    assert printed.strip() == kp.report()
    for info in kp.list_devices():
        assert info.device_name in printed and info.uuid in printed and info.driver_id in printed
    for driver in kp.available_drivers():
        assert str(driver) in printed
    assert "variable VK_LOADER_DEBUG='none'" in printed and ", the default" in printed


def test_info_without_a_driver():
    ran = python("-m", "kompute_py", "info", VK_DRIVER_FILES="/none.json", VK_ICD_FILENAMES="/none.json")
    assert ran.returncode == 0, ran.stderr
    assert "No device can be used" in ran.stdout and "apt-get install mesa-vulkan-drivers" in " ".join(
        ran.stdout.split()
    )
    ran = python(
        "-m", "kompute_py", "info", "--json", VK_DRIVER_FILES="/none.json", VK_ICD_FILENAMES="/none.json"
    )
    found = json.loads(ran.stdout)
    assert (
        found["devices"] == [] and found["default_device"] is None and "mesa-vulkan-drivers" in found["error"]
    )


def make_device(**changes):
    """A device that lacks nothing but what `changes` say."""
    features = dict.fromkeys(kp.list_devices()[0]["features"], True)
    features.update(changes.pop("features", {}))
    device = {
        "api_version": "1.3.0", "features": features, "queue_families": [{"compute": True, "count": 4}],
        "timestamps_supported": True, "extensions": ["VK_EXT_memory_budget"],
    }  # fmt: skip
    return device | changes


def test_what_is_missing():
    layers = ["VK_LAYER_KHRONOS_validation"]
    assert missing(make_device(), layers) == []
    assert missing(make_device(features={"shaderInt64": False}), layers) == [
        "no shaderInt64: 64-bit integer shaders are refused"
    ]
    for changes, word in [
        ({"api_version": "1.1.128"}, "1.2 is needed"),
        ({"features": {"timelineSemaphore": False}}, "timelineSemaphore"),
        ({"queue_families": [{"compute": False, "count": 1}]}, "no queue for compute"),
        ({"queue_families": [{"compute": True, "count": 1}]}, "one compute queue"),
        ({"timestamps_supported": False}, "no timestamps"),
        ({"extensions": []}, "VK_EXT_memory_budget"),
    ]:
        (sentence,) = missing(make_device(**changes), layers)
        assert word in sentence
    assert "vulkan-validationlayers" in missing(make_device(), [])[0]


def test_advice_on_the_validation_layer():
    advice = validation_advice((1, 3, 239))
    assert "layer 1.3.239" in advice and "Layers from 1.3.296" in advice and "VK_LAYER_PATH" in advice
    assert validation_advice((1, 3, 296)) == validation_advice((1, 4, 300)) == ""
    versions = _native.loader_info()["layer_versions"]
    assert set(versions) == set(_native.loader_info()["layers"])
    assert all(len(version) == 3 for version in versions.values())


# -- demo ----------------------------------------------------------------------------------------------------


@pytest.fixture
def validated(mgr, clean, monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_VALIDATION", "1")


def test_demo(validated, tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "pictures"), "--device", "0"]) == 0
    shown = capsys.readouterr()
    assert kp.list_devices()[0]["device_name"] in shown.out and "whole chain" in shown.out
    assert (tmp_path / "pictures" / "contact_sheet.png").is_file() and shown.err == ""


def test_demo_with_wrong_results_fails_and_names_them(validated, tmp_path, capsys, monkeypatch):
    from kompute_py_demo import reference

    photo = str(tmp_path / "photo.png")
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (60, 80, 3), np.uint8)).save(photo)
    right = reference.edges
    monkeypatch.setattr(reference, "edges", lambda pixels: right(pixels) + 0.5)
    assert main(["demo", photo, "--out", str(tmp_path / "pictures")]) == 1
    shown = capsys.readouterr()
    assert "edges is wrong" in shown.out and "edges" in shown.err
    assert "blur rows is wrong" not in shown.out


def test_an_installation_without_the_demo_says_so(tmp_path, capsys, monkeypatch):
    for name in ("kompute_py_demo", "kompute_py_demo.report", "kompute_py_demo.run"):
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["demo", "--out", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "the demo is not installed" in error and "kompute-py[demo]" in error and "./dev demo" in error


def test_demo_errors_are_one_line(tmp_path, one_line):
    out = str(tmp_path / "out")
    assert main(["demo", str(tmp_path / "missing.png"), "--out", out]) == 1
    assert "does not exist" in one_line()
    (tmp_path / "text.png").write_text("text")
    assert main(["demo", str(tmp_path / "text.png"), "--out", out]) == 1
    assert "no picture" in one_line()
    assert main(["demo", "--device", "no such device", "--out", out]) == 1
    assert "no such device" in one_line()
    assert main(["demo", "--device", "99", "--out", out]) == 1
    assert "99" in one_line()
    assert main(["demo", "--out", str(tmp_path / "text.png")]) == 1
    assert "text.png: there is a file of that name; choose another" in one_line()


@pytest.mark.parametrize(
    "arguments", [["--traceback", "demo", "missing.png"], ["demo", "missing.png", "--traceback"]]
)
def test_traceback(arguments, tmp_path, capsys, one_line, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    assert "Traceback" in capsys.readouterr().err
    assert main(["demo", "missing.png"]) == 1  # and not in the next run of this process
    one_line()


def test_unexpected_errors_are_one_line_too(one_line, monkeypatch):
    from kompute_py.cli import info

    def fail():
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(info, "collect", fail)
    assert main(["info"]) == 1
    text = one_line()
    assert "ZeroDivisionError: division by zero" in text and "--traceback" in text


@pytest.mark.parametrize(
    ("module", "arguments", "package", "extra"),
    [
        ("typer", ["compile", "blur.comp"], "typer", "cli"),
        ("rich", ["bench"], "rich", "cli"),
        ("PIL", ["demo"], "pillow", "demo"),
        ("skimage", ["demo"], "scikit-image", "demo"),
        ("scipy", ["demo", "photo.png"], "scipy", "demo"),
    ],
)
def test_missing_packages(module, arguments, package, extra):
    ran = without(module, *arguments)
    assert ran.returncode == 1
    assert package in ran.stderr and f'pip install "kompute-py[{extra}]"' in ran.stderr
    assert ran.stderr.count("\n") == 1


def without(module, *arguments, **variables):
    """Runs the command line in a process that cannot import `module`."""
    return SimpleNamespace(**run_child(command, module, *arguments, env=variables))


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_info_needs_no_extra(module):
    assert without(module, "info").stdout.split() == python("-m", "kompute_py", "info").stdout.split()


def test_info_without_extras_says_what_it_says_with_them():
    for arguments, variables in (
        (["info", "--json"], {}),
        (["info"], {"VK_DRIVER_FILES": "/none.json", "VK_ICD_FILENAMES": "/none.json"}),
        (["--version"], {}),
        (["info"], {"KOMPUTE_PY_DEVICE": "no such device"}),
    ):
        plain = without("typer", *arguments, **variables)
        full = python("-m", "kompute_py", *arguments, **variables)
        assert (plain.returncode, plain.stdout.split()) == (full.returncode, full.stdout.split())
        assert plain.stderr == "" and plain.stdout


def test_usage_without_extras():
    helped, alone = without("typer", "--help"), without("typer")
    assert (helped.returncode, alone.returncode) == (0, 2)
    for each in (helped, alone):
        assert 'pip install "kompute-py[cli]"' in each.stdout and "info" in each.stdout
    wrong = without("typer", "info", "--device")
    assert wrong.returncode == 2 and "usage: kompute-py info" in wrong.stderr


def test_info_without_extras_ends_silently_if_its_reader_does():
    code = "import sys; sys.modules['typer'] = None; from kompute_py.cli import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", code, "info"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


# -- the progress bar ----------------------------------------------------------------------------------------


def show_progress(terminal, seconds):
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=80)
    with common.LateProgress(console, 2) as bar:
        bar.step("first")
        time.sleep(seconds)
        bar.step("second")
    return text.getvalue()


def test_progress_shows_when_it_takes_long(monkeypatch):
    monkeypatch.setattr(common, "_PATIENCE", 0.05)
    monkeypatch.setenv("TERM", "xterm")  # on a dumb one rich draws no bars
    assert "first" in show_progress(True, 0.5)
    assert show_progress(False, 0.2) == ""


def test_progress_stays_silent_when_it_does_not():
    assert show_progress(True, 0.0) == ""
