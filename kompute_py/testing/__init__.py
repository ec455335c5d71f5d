"""For tests of programs that use kompute_py: a pytest plugin, and comparison of numbers.

Needs pytest. A conftest.py turns the plugin on; nobody else's runs of pytest load it::

    pytest_plugins = ["kompute_py.testing"]

It has the fixture `manager`, a `kp.Manager` that fails the test for messages of the validation layer (hazards
among them), damaged memory around tensors, and objects that the test leaves behind. The test runs once on
each device here, of every driver. There are two marks: ``@pytest.mark.needs("shaderFloat64")`` skips the test
on devices that lack a feature or an extension, ``@pytest.mark.manager_options(debug="bounds")`` gives
options; with this one, shaders report reads and writes outside of arrays, which devices hide.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import _native
from .._base.errors import FailedPreconditionError, NotFoundError, UnavailableError
from .._device.devices import list_devices
from .._device.names import DeviceInfo
from .._manager.manager import Manager
from .closeness import assert_allclose
from .watching import report_of, watched

try:
    import pytest
except ImportError as _error:
    raise FailedPreconditionError(f"kompute_py.testing needs pytest ({_error}): pip install pytest") from None

__all__ = ["assert_allclose"]

_MARKS = (
    "needs(*names): skip the test on devices that lack one of these Vulkan features or extensions",
    "manager_options(**options): options of kp.Manager for the fixture `manager`",
)
LAYER = "VK_LAYER_KHRONOS_validation"
_unchecked = pytest.StashKey[bool]()
_passed = pytest.StashKey[bool]()


@pytest.fixture
def manager(
    request: pytest.FixtureRequest, _kompute_device: Any, _kompute_drivers: None
) -> Iterator[Manager]:
    """A Manager on a device of this machine, which calls with arrays use, too. The test runs once on each
    device.

    ``KOMPUTE_PY_VISIBLE_DEVICES=llvmpipe pytest`` chooses devices, ``pytest -k llvmpipe`` tests. It has
    ``validation=True``, ``strict=True`` (an error of the layer is raised by the call that caused it) and
    ``memory_debug=True``, unless the mark `manager_options` says else. Without the layer it has no
    validation, and the end of the run says so.

    After the test, it fails for bytes around a tensor that copies, custom operations or writes by address
    changed (devices drop what shaders write beyond an array: ``debug="bounds"`` finds that) and, if the test
    passed, for each message of the layer and for objects of the Manager that are still alive: they are named,
    with what keeps them.
    """
    options: dict[str, Any] = {"validation": _has_layer(), "strict": True, "memory_debug": True}
    for mark in reversed(list(request.node.iter_markers("manager_options"))):  # the nearest comes last
        options.update(mark.kwargs)
    if not options["validation"]:
        request.config.stash[_unchecked] = True
    with Manager(_kompute_device, **options) as made:
        name = made.get_device_properties().device_name
        for mark in request.node.iter_markers("needs"):
            for feature in mark.args:
                if not _supports(made, feature):
                    pytest.skip(f"{name} lacks {feature}")
        with watched() as messages:
            yield made
            request.node.funcargs.clear()  # pytest's own references to what fixtures returned
            found = report_of(made, messages, request.node.stash.get(_passed, False))
    if found:
        pytest.fail(f"{request.node.name} on {name}:\n{found}", pytrace=False)


def _has_layer() -> bool:
    return LAYER in _native.loader_info()["layers"]


def _supports(made: Manager, feature: str) -> bool:
    try:
        return made.supports(feature)
    except NotFoundError as error:  # a mistake would skip the test on every device
        unknown = str(error)
    pytest.fail(f"@pytest.mark.needs({feature!r}): {unknown}", pytrace=False)


@pytest.fixture
def _kompute_device(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="session")
def _kompute_drivers() -> Iterator[None]:
    """Keeps the drivers loaded from the first test to the last: they would go with each Manager, and some
    leave something behind each time."""
    with Manager(validation=_has_layer()):
        yield


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs what uses `manager` once on each device."""
    if "_kompute_device" in metafunc.fixturenames:
        devices: list[DeviceInfo | None]
        try:
            devices = [*list_devices()]
        except UnavailableError:
            devices = [None]  # opening a Manager fails then, and says what is missing
        names = ["no device" if each is None else each.device_name.split(" (")[0] for each in devices]
        metafunc.parametrize("_kompute_device", devices, indirect=True, ids=names)


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marks."""
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Iterator[None]:
    """Notes whether the test itself passed: the traceback of a failed one keeps its objects."""
    outcome: Any = yield
    if call.when == "call":
        item.stash[_passed] = outcome.get_result().passed


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Says that nobody looked for messages."""
    if config.stash.get(_unchecked, False):
        terminalreporter.section("kompute_py: some tests ran without validation")
        terminalreporter.line(
            f"Messages and hazards were not looked for. The layer is {LAYER}; "
            f"it is {'here' if _has_layer() else 'missing: install vulkan-validationlayers'}"
        )
