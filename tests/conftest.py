"""Fixtures that all tests share: the driver to run on, Managers that must stay silent and leave nothing
behind.
"""

from __future__ import annotations

import collections
import gc
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
gc.disable()  # of what is imported and collected, nothing becomes garbage
if str(ROOT) not in sys.path:
    # At the end: with a plain `pytest`, the installed kompute_py must win over the sources, which have no
    # native module.
    sys.path.append(str(ROOT))

from tests.drivers import DriverUnavailableError, environment  # noqa: E402
from tests.support import sampling  # noqa: E402

# A shell that starts a command in the background may ignore SIGINT, and processes inherit that. Tests of
# Ctrl-C need Python's handler; their child processes then start with the default action.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long examples take to make says how busy the machine is.
settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

DRIVER = os.environ.get("KOMPUTE_PY_TEST_DRIVER", "lavapipe")
SHARE = os.environ.get("KOMPUTE_PY_TEST_SHARE", "")
"""Which part of the cases to run (`sampling.shared`); all if it is empty. tools/passes.py sets it."""

FILES = os.environ.get("KOMPUTE_PY_TEST_FILES", "")
"""Which part of the files to read, as "1/2"; all if it is empty. tools/passes.py sets it."""

SHADERS = os.environ.get("KOMPUTE_PY_TEST_SHADERS", "")
"""The folder of a cache of compiled shaders, for all but `_OF_COMPILERS`; tools/passes.py sets it."""
_OF_COMPILERS = tuple(f"tests/{room}/" for room in ("base", "cli", "compilers", "docs", "project"))
_ROOMS = ("builders", "custom", "formulas", "functions", "launches", "ops", "random")
_OF_NUMBERS = tuple(f"tests/{room}/" for room in _ROOMS)


def _environment() -> dict[str, str]:
    try:
        return environment(DRIVER, layer=os.environ.get("KOMPUTE_PY_TEST_LAYER", "newer") or None)
    except DriverUnavailableError as error:
        if "KOMPUTE_PY_TEST_LAYER" in os.environ:
            raise
        print(f"the system's validation layer serves: {error}", file=sys.stderr)
        return environment(DRIVER)


# Before anything of Vulkan is loaded: the loader reads its variables once.
os.environ.update(_environment())
# Tests say what they want; what the person who runs them has set must not change it.
for variable in [name for name in os.environ if name.startswith("KOMPUTE_PY_") and "TEST" not in name]:
    del os.environ[variable]
# Options for every Manager of the run, as "FORCE_STAGING MEMORY_DEBUG".
for option in os.environ.get("KOMPUTE_PY_TEST_OPTIONS", "").split():
    os.environ[f"KOMPUTE_PY_{option}"] = "1"
os.environ["KOMPUTE_PY_PIPELINE_CACHE_DIR"] = ""
os.environ["KOMPUTE_PY_SHADER_CACHE_DIR"] = ""
os.environ["KOMPUTE_PY_TUNING_DIR"] = ""

import kompute_py as kp  # noqa: E402
from kompute_py.testing.watching import watched  # noqa: E402

_lacking: collections.Counter[str] = collections.Counter()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.stash[_passed] = outcome.get_result().passed


_passed = pytest.StashKey[bool]()


def pytest_ignore_collect(collection_path, config):
    """A pass of the suite reads no file without a case of its own: reading all takes ten seconds."""
    if SHARE and collection_path.suffix == ".py" and collection_path.name.startswith("test_"):
        if not sampling.of_part(str(collection_path.relative_to(ROOT)), FILES):
            return True
        return not sampling.has_cases(collection_path.read_text(), config.option.markexpr) or None
    return None


@pytest.hookimpl(tryfirst=True)  # the marks before those that choose by them
def pytest_collection_modifyitems(config, items):
    """Keeps what this pass of the suite runs."""
    sampling.mark_samples(items)
    if SHARE:
        items[:], others = sampling.shared(items, SHARE)
        if others:
            config.hook.pytest_deselected(items=others)


def pytest_collection_finish():
    gc.enable()


@pytest.fixture
def _log():
    with watched() as found:
        yield found


@pytest.fixture
def messages(_log):
    """Texts that the library logged at WARNING or above during the test."""
    return _log.texts


@pytest.fixture
def clean(request, _log):
    """Fails a test that draws a validation message or leaves a native object alive."""
    gc.collect()
    before = kp.alive()
    yield
    if request.node.stash.get(_passed, False):  # the traceback of a failed test keeps its objects
        request.node.funcargs.clear()  # pytest's own references to what fixtures returned
        gc.collect()
        assert _log.of_validation == []
        end = time.monotonic() + 5  # other threads may be letting go of something
        while kp.alive() > before and time.monotonic() < end:
            time.sleep(0.01)
            gc.collect()
        assert kp.alive() <= before, kp.alive(detail=True)


@pytest.fixture(scope="session", autouse=True)
def loaded_driver():
    """Keeps the driver loaded from the first test to the last.

    Managers share their instance, and with the last of them the loader unloads the driver. SwiftShader leaves
    a file descriptor and thread-local keys behind each time: a thousand tests later its process is aborted.
    """
    manager = kp.Manager(validation=True)
    yield
    manager.destroy()


@pytest.fixture(scope="module", autouse=True)
def _only_what_the_module_made():
    """Leaves to the collections in `clean` only what the module's own tests made.

    A collection looks at every object there is: some hundred thousand once pytest, NumPy and what tests
    import are loaded. Two of them a test, or one a module, took much of the suite's time. What is frozen
    stays so until the session ends.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _compiled_before(request):
    """Where compilers are not what is tested, a shader that was compiled before comes from the cache.
    Operations take their variants in turn, but where measurements are what is tested.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not request.node.nodeid.startswith(_OF_COMPILERS):
            patch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", SHADERS)
        measures = ("tests/functions/", "tests/docs/")  # whose pages show what is measured
        if not (sampling.WHOLE or request.node.nodeid.startswith(measures)):
            patch.setattr("kompute_py._functions.forming.measured", sampling.next_variant)
        yield


@pytest.fixture(scope="module", autouse=True)
def _pythons_main_module():
    """Puts it back: IPython's shells leave one of their own, from which `multiprocessing` cannot start."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture
def make_manager(clean):
    """Makes Managers with validation on; destroys them at the end of the test."""
    made = []

    def make(*args, **kwargs):
        kwargs.setdefault("validation", True)
        made.append(kp.Manager(*args, **kwargs))
        return made[-1]

    yield make
    for manager in made:
        manager.destroy()


@pytest.fixture(scope="module")
def _managers_of_module():
    """The Managers that the tests of a module share; nothing of them is left at its end."""
    before = kp.alive()
    made: list[kp.Manager] = []
    yield made
    while made:
        made.pop().destroy()
    gc.collect()
    assert kp.alive() <= before, kp.alive(detail=True)


@pytest.fixture
def mgr(request):
    """A Manager with validation on.

    The test fails for a message of the layer, or for a native object left at its end. Where numbers are
    judged, the tests of a module share a Manager, and with it what was prepared: nothing is left at its end.
    But those that count objects, or make others, have one of their own.
    """
    if "clean" in request.fixturenames or not request.node.nodeid.startswith(_OF_NUMBERS):
        manager = request.getfixturevalue("make_manager")()
        assert manager.validation, "the validation layer is missing"
        return manager
    made = request.getfixturevalue("_managers_of_module")
    if not made or not made[-1]._native.is_init():
        made.append(kp.Manager(validation=True))
    log = request.getfixturevalue("_log")
    request.addfinalizer(lambda: _ends(request.node, log))
    return made[-1]


def _ends(test, log):
    """Checks a test that shares its Manager."""
    test.funcargs.clear()  # of the module's last test they would keep the Manager
    assert log.of_validation == []


@pytest.fixture
def current(mgr):
    """The test's Manager is the one that calls with arrays use."""
    with mgr.current():  # leaving `with mgr:` would destroy what the module's tests share
        yield mgr


@pytest.fixture
def needs(request):
    """`needs(mgr, feature)` skips the test, naming the driver, where the device lacks the feature.

    Features are Vulkan's names, or "timestamps".
    """

    def check(manager: kp.Manager, feature: str) -> None:
        if feature == "timestamps":
            has = manager.get_device_properties()["timestamps_supported"]
        else:
            has = feature in manager.enabled_features
        if not has:
            _lacking[feature] += 1
            pytest.skip(f"{DRIVER} ({manager.get_device_properties()['device_name']}) lacks {feature}")

    return check


def pytest_terminal_summary(terminalreporter):
    if _lacking:
        terminalreporter.section(f"tests not run because {DRIVER} lacks what they need")
        for feature, count in sorted(_lacking.items()):
            terminalreporter.line(f"{feature}: {count}")


def pytest_sessionfinish(session, exitstatus):
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # pytest collects several times more
    left = {kind: count for kind, count in kp.alive(detail=True).items() if count}
    if left and exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\nnative objects alive at the end of the session: {left}", file=sys.stderr)
