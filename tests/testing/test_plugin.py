"""kompute_py.testing as pytest runs it: a user's suite with faults, on two drivers in one run."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.drivers import DriverUnavailableError, environment, manifest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.own_driver

SUITE = Path(__file__).with_name("user_suite.py").read_text()
FAULTS = {
    name: [part.strip() for part in fault.split(";")]
    for name, fault in re.findall(r"^def (test_\w+)\(.*\):\n    # FAULT: (.*)$", SUITE, re.M)
}
NAMES = re.findall(r"^def (test_\w+)\(", SUITE, re.M)


@pytest.fixture
def run_suite(pytester, monkeypatch):
    """Runs these tests with the plugin, in a process of its own; returns its result and output."""

    def run(*arguments: str, layer: str | None = "newer", conftest: str = "", **files: str):
        try:
            variables = environment("lavapipe", layer=layer)
            both = [variables["VK_DRIVER_FILES"], str(manifest("swiftshader"))]
        except DriverUnavailableError as error:
            pytest.skip(str(error))
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("VK_DRIVER_FILES", os.pathsep.join(both))
        pytester.makeconftest('pytest_plugins = ["kompute_py.testing"]\n' + conftest)
        pytester.makepyfile(**files)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-rs", *arguments)

    return run


def sections(output: str) -> dict[str, str]:
    """The reports by their headings: {"test_a[llvmpipe]": text}."""
    found: dict[str, str] = {}
    parts = re.split(r"^_+ (?:ERROR at \w+ of )?(test_\w+\[[^\]]*\]) _+$", output, flags=re.M)
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        found[name] = found.get(name, "") + text
    return found


def test_each_fault_is_reported_in_words_that_lead_to_it(run_suite):
    assert len(NAMES) == 21 and len(FAULTS) == 17
    result = run_suite(test_user=SUITE)
    output = result.stdout.str()
    reports = sections(output)
    devices = {name.partition("[")[2] for name in reports}
    assert len(devices) == 2, output
    for device in devices:
        for name in NAMES:
            report = reports.pop(f"{name}[{device}", "")
            for words in FAULTS.get(name, []):
                assert re.search(words, report), f"{name} on {device}: {words!r} is not in\n{report}"
            assert name in FAULTS or not report, report
    assert not reports
    counts = result.parseoutcomes()
    assert counts["skipped"] == 2 and "lacks VK_NV_ray_tracing_motion_blur" in output


def test_other_runs_of_pytest_are_left_alone(pytester):
    pytester.makepyfile("import sys\ndef test_it(): assert 'kompute_py' not in sys.modules")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1)


def test_a_fixture_of_ones_own_builds_on_it(run_suite):
    result = run_suite(
        conftest="import pytest\n@pytest.fixture\ndef manager(manager):\n    yield manager\n",
        test_user="def test_it(manager): assert manager.validation\n",
    )
    result.assert_outcomes(passed=2)


def test_without_the_layer_the_end_says_what_was_not_checked(run_suite, monkeypatch, tmp_path):
    for variable in ("VK_LAYER_PATH", "VK_ADD_LAYER_PATH"):
        monkeypatch.setenv(variable, str(tmp_path))
    for variable in ("XDG_DATA_DIRS", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    result = run_suite(layer=None, test_user="def test_it(manager): assert not manager.validation\n")
    output = result.stdout.str()
    if "assert not" in output:
        pytest.skip("the loader finds a layer whatever its variables say")
    result.assert_outcomes(passed=2)
    assert "Messages and hazards were not looked for" in output


def test_without_a_driver_tests_fail_and_say_why(run_suite, monkeypatch):
    monkeypatch.setattr("tests.testing.test_plugin.manifest", lambda name: "/nonexistent/two.json")
    monkeypatch.setattr(
        "tests.testing.test_plugin.environment", lambda *a, **k: {"VK_DRIVER_FILES": "/nonexistent/one.json"}
    )
    result = run_suite(test_user="def test_it(manager): pass\n")
    result.assert_outcomes(errors=1)
    assert re.search("UnavailableError: .*driver", result.stdout.str())
