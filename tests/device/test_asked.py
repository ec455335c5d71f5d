"""What vkCreateDevice is asked for: priorities of queues, and features by the number of their struct."""

from __future__ import annotations

from typing import Any

import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

PRIVATE_DATA = 1000295000
LINES = 1000259000
INLINE_BLOCK = 1000138000  # two


def asked(**options: Any) -> Any:
    """What reached vkCreateDevice, or the error."""
    control = null_control()
    with control.logging():
        try:
            with kp.Manager(**options) as mgr:
                made = control.devices()[-1]
                return [made["priorities"], made["features"], mgr.enabled_extensions, control.violations()]
        except kp.KomputeError as error:
            return f"{type(error).__name__}: {error}"


def of_priorities() -> dict[str, Any]:
    return {
        "default": asked(family_queue_indices=[0, 0, 1])[0],
        "given": asked(family_queue_indices=[0, 1, 0], queue_priorities=[1, 0.25, 0.5])[0],
        "uri": asked(device="vulkan://0?queues=2&queue_priorities=1,0.5")[0],
        "shared": asked(family_queue_indices=[1] * 3, queue_priorities=[0.25, 0.5, 0.75])[0],
        "too few": asked(family_queue_indices=[0, 0], queue_priorities=[1.0]),
        "above": asked(queue_priorities=[1.5]),
        "text": asked(queue_priorities="high"),
        "nan": asked(queue_priorities=[float("nan")]),
    }


@pytest.mark.own_driver
@pytest.mark.capability("", "priorities of queues", "kp.Manager", "guides/several_devices")
def test_priorities_of_queues():
    found = run_child(of_priorities, driver="null")
    assert found["default"] == {"0": [1.0, 1.0], "1": [1.0]}
    assert found["given"] == {"0": [1.0, 0.5], "1": [0.25]}
    assert found["uri"] == {"0": [1.0, 0.5]}
    assert found["shared"] == {"1": [0.75, 0.5]}  # the family has two queues: the first and the third are one
    assert "1 numbers for 2 queue(s)" in found["too few"]
    for wrong in ("above", "text", "nan"):
        assert "a number from 0 to 1 for each queue" in found[wrong]


def of_structs() -> dict[str, Any]:
    def one(extension: str, given: Any) -> Any:
        return asked(desired_extensions={extension: given})

    block = "VK_EXT_inline_uniform_block"
    return {
        "on": one(block, (INLINE_BLOCK, [True, False])),
        "alone": one(block, None),
        "missing": one("VK_EXT_no_such", (INLINE_BLOCK, [True, False])),
        "lacking": one(block, (INLINE_BLOCK, [True, True])),
        "short": one(block, (INLINE_BLOCK, [True])),
        "long": one(block, (INLINE_BLOCK, [True] + [False] * 9)),
        "unknown": one(block, (999, [True])),
        "ours": one("VK_EXT_robustness2", (1000286000, [True, True, True])),
        "no pair": one(block, INLINE_BLOCK),
        "three": one(block, (1, 2, 3)),
        "empty": one(block, (INLINE_BLOCK, [])),
        "twice": asked(
            desired_extensions={
                block: (INLINE_BLOCK, [True, False]),
                "VK_EXT_robustness2": (INLINE_BLOCK, [True, False]),
            }
        ),
        "name": asked(desired_extensions={5: None}),
    }


@pytest.mark.own_driver
@pytest.mark.capability(
    "", "features of any extension, by the number of their struct", "kp.Manager", "reference/devices"
)
def test_features_by_the_number_of_their_struct():
    """The null driver has two features in that struct, and lacks the second."""
    found = run_child(of_structs, driver="null", config="api=1.2")
    _, features, extensions, violations = found["on"]
    assert features[str(INLINE_BLOCK)] == [1, 0] and "VK_EXT_inline_uniform_block" in extensions
    assert not violations
    _, features, extensions, _ = found["alone"]
    assert str(INLINE_BLOCK) not in features and "VK_EXT_inline_uniform_block" in extensions
    assert isinstance(found["missing"], list)  # the log tells that the device has no such extension
    assert found["lacking"].startswith("UnimplementedError") and "feature 1" in found["lacking"]
    for wrong in ("short", "long"):
        assert found[wrong].startswith("InvalidArgumentError") and "has 2 features" in found[wrong]
    assert "none that the driver knows" in found["unknown"]
    for wrong in ("ours", "twice"):
        assert "enabled already" in found[wrong]
    for wrong in ("no pair", "three", "empty"):
        assert "(sType, [bool, ...])" in found[wrong]
    assert found["name"].startswith("ArgumentTypeError")


def test_drivers_know_their_own_structs(make_manager):
    name = "VK_EXT_line_rasterization"
    if name not in kp.list_devices()[0].extensions:
        pytest.skip(f"the device has no {name}")
    made = make_manager(desired_extensions={name: (LINES, [False, True, False, False, False, False])})
    assert name in made.enabled_extensions
    with pytest.raises(kp.InvalidArgumentError, match="has 6 features, not 2"):
        make_manager(desired_extensions={name: (LINES, [True, False])})
    with pytest.raises(kp.InvalidArgumentError, match="none that the driver knows"):
        make_manager(desired_extensions={name: (LINES + 1, [True])})
    with pytest.raises(kp.InvalidArgumentError, match=r"a part of Vulkan 1\.[34]"):
        make_manager(desired_extensions={name: (PRIVATE_DATA, [True])})
