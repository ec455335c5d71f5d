"""The test drivers themselves: the null driver behaves as the tests that build on it assume."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.drivers import LAYERS, DriverUnavailableError, environment, layer_directory, manifest
from tests.drivers.scenarios import scenarios
from tests.drivers.scenarios.__main__ import main
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver  # one pass of the suite is enough

ROOT = Path(__file__).resolve().parents[2]


def run(code_or_args: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("VK_", "KP_NULL", "KOMPUTE_PY_"))}
    return subprocess.run(
        [sys.executable, *code_or_args], cwd=ROOT, env={**inherited, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def null() -> str:
    try:
        return str(manifest("null"))
    except DriverUnavailableError as error:
        if sys.platform.startswith("linux"):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("name", scenarios)
def test_null_driver(null, name):
    assert run_child(main, name, driver="null", config=scenarios[name].config) == 0


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("name", ["transfers", "timelines", "images", "log_of_commands", "device_creation"])
def test_null_driver_under_validation(null, layer, name):
    """The layer passes every call on unharmed, and speaks up where the check misuses Vulkan on purpose."""
    try:
        layer_directory(layer)
    except DriverUnavailableError as error:
        pytest.skip(str(error))
    layers = {"VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation"}
    done = run(["-m", "tests.drivers.scenarios", name], **environment("null", layer), **layers)
    assert done.returncode == 0, done.stdout + done.stderr
    if name == "transfers":
        assert "VUID-vkMapMemory" in done.stdout, done.stdout


def test_unknown_names_are_errors():
    with pytest.raises(ValueError, match="unknown driver 'nul'; there are lavapipe, swiftshader, null"):
        environment("nul")
    with pytest.raises(ValueError, match="unknown validation layer"):
        environment("null", "newest")
    with pytest.raises(ValueError, match="config is for the null driver"):
        environment("lavapipe", config="api=1.2")


def test_bad_configuration_is_explained(null):
    done = run(
        ["-m", "tests.drivers.scenarios", "bad_configuration"], **environment("null", config="api=2.0")
    )
    assert "invalid item 'api=2.0'" in done.stderr


def test_entry_is_made_once_by_concurrent_processes(tmp_path):
    code = textwrap.dedent(
        """
        import pathlib, sys, time
        from tests.drivers import locate
        def make(directory):
            with open(sys.argv[1], "a") as log:
                log.write("made\\n")
            time.sleep(0.5)
            (directory / "file").write_text("done")
        assert (locate._entry("thing-1", make) / "file").read_text() == "done"
        """
    )
    log, cache = tmp_path / "log", tmp_path / "cache"
    command = [sys.executable, "-c", code, str(log)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "KOMPUTE_PY_TEST_CACHE": str(cache)}
    both = [subprocess.Popen(command, cwd=ROOT, env=variables) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert log.read_text() == "made\n"
    assert sorted(path.name for path in cache.iterdir()) == [".thing.lock", "thing-1"]


def test_failed_entry_leaves_nothing(tmp_path, monkeypatch):
    from tests.drivers import locate

    monkeypatch.setenv("KOMPUTE_PY_TEST_CACHE", str(tmp_path))

    def make(directory):
        (directory / "half").write_text("")
        raise DriverUnavailableError("no compiler")

    with pytest.raises(DriverUnavailableError, match="no compiler"):
        locate._entry("thing", make)
    assert [path.name for path in tmp_path.iterdir()] == [".thing.lock"]


def test_listing_explains_what_is_missing(tmp_path, null):
    empty = tmp_path / "bin"
    empty.mkdir()
    code = (
        "import json; from tests.drivers import drivers; out = []; print(json.dumps([drivers(out.append), "
        "out]))"
    )
    done = run(
        ["-c", code], PATH=str(empty), CXX="no-such-compiler", KOMPUTE_PY_TEST_CACHE=str(tmp_path / "cache")
    )
    assert done.returncode == 0, done.stderr
    found, reasons = json.loads(done.stdout)
    assert (
        found["swiftshader"] is None and found["null"] is None and found["validation_layer"]["newer"] is None
    )
    assert any("no apt-get" in reason for reason in reasons)
    assert any("no command `no-such-compiler`" in reason for reason in reasons)
