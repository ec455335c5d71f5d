"""Debug labels around operations: for debuggers, without validation."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver

SHADER = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
void main() { x[gl_GlobalInvocationID.x] *= 2; }
"""


def check_labels():
    control = null_control()
    mgr = kp.Manager()
    x, y = mgr.tensor(np.ones(64, np.float32)), mgr.zeros(64)
    x.name = "left"
    double = mgr.kernel(SHADER, name="double")
    sequence = mgr.sequence().record(double.bind(x), kp.OpCopy([x, y]), kp.OpSyncLocal([y]))
    sequence.eval()
    before = control.calls("vkCmdBeginDebugUtilsLabelEXT")
    with control.logging():
        sequence.eval()
        double(x)
        kp.ops.sum(x)
    labels = control.labels()
    assert labels[:4] == ["double", "OpCopy", "OpSyncLocal", "double"], labels
    assert len(labels) > 4 and all(each.startswith("sum") for each in labels[4:]), labels
    # An evaluation does not label again; names of objects are there, too.
    sequence.eval()
    begun = control.calls("vkCmdBeginDebugUtilsLabelEXT")
    assert begun == control.calls("vkCmdEndDebugUtilsLabelEXT") >= before + 2
    live = control.live_report()
    assert "'left'" in live["VkBuffer"]
    for kind in ("VkPipeline", "VkShaderModule", "VkDescriptorSet"):
        assert "'double'" in live[kind], (kind, live)
    with mgr.profile():  # lines are known from here on
        line = f"{__file__}:{sys._getframe().f_lineno + 1}"
        other = mgr.sequence().record(double.bind(x))
        with control.logging():
            other.eval()
        assert control.labels() == [f"double ({line})"], control.labels()
    mgr.destroy()
    assert not control.violations(), control.violations()


def check_labels_of_a_recording_that_fails():
    """Its command buffer is thrown away with the label that is open; the next recording is balanced."""
    control = null_control()
    mgr = kp.Manager()
    x = mgr.zeros(64)

    class Failing(kp.OpBase):
        def record(self, _):
            raise RuntimeError("no")

    sequence = mgr.sequence().record(kp.OpFill([x], 1), Failing())
    with pytest.raises(RuntimeError, match="no"):
        sequence.eval()
    mgr.sequence().record(kp.OpFill([x], 2)).eval()
    begun = control.calls("vkCmdBeginDebugUtilsLabelEXT")
    assert begun == control.calls("vkCmdEndDebugUtilsLabelEXT") + 1 >= 3
    mgr.destroy()
    assert not control.violations(), control.violations()


@pytest.mark.parametrize("check", [check_labels, check_labels_of_a_recording_that_fails])
def test_operations_have_labels(check):
    run_child(check, driver="null")
