"""After the loss of a device: what the error says."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver


def check_a_lost_device(fault):
    control = null_control()
    mgr = kp.Manager(family_queue_indices=[0, 0])
    t = mgr.tensor(np.arange(1000))
    sequence = mgr.sequence(1).record(kp.OpSyncDevice([t]))
    sequence.name = "upload"
    sequence.eval()
    sequence.eval()
    threading.Timer(0.1, control.lose_device).start()
    with pytest.raises(kp.DeviceLostError) as caught:
        sequence.eval()
    text = str(caught.value)
    name = mgr.get_device_properties()["device_name"]
    assert f". The device is '{name}' (queue 0: " in text, text
    assert "queue 1: 2 of 3 submissions ended)" in text, text
    assert text.endswith(". It was lost during OpSyncDevice of the sequence 'upload'"), text
    said = (
        ". The driver says: the null device was told to end; invalid write at 0xdead0000; a test (0x7, 0x9)"
    )
    assert (said in text) == fault, text
    assert control.calls("vkGetDeviceFaultInfoEXT") == (2 if fault else 0)
    with pytest.raises(kp.DeviceLostError) as caught:
        mgr.synchronize()
    assert f"The device is '{name}'" in str(caught.value)
    assert "It was lost during OpSyncDevice of the sequence 'upload'" in str(caught.value)
    assert control.calls("vkGetDeviceFaultInfoEXT") == (2 if fault else 0)
    mgr.destroy()
    assert not control.violations(), control.violations()


def check_a_lost_device_without_work():
    control = null_control()
    mgr = kp.Manager()
    control.lose_device()
    with pytest.raises(kp.DeviceLostError, match=r"The device is '.+'"):
        mgr.tensor(np.arange(10)).read()
        mgr.submit([]).wait()
    mgr.destroy()


@pytest.mark.capability(
    "P18", "errors that name the device and the work", "kp.DeviceLostError", "reference/errors"
)
@pytest.mark.parametrize("fault", [False, True])
def test_a_lost_device_is_named_with_what_is_known(fault):
    run_child(check_a_lost_device, fault, driver="null", config=f"gpu_us=300000,fault={int(fault)}")


def test_a_device_that_was_lost_without_work():
    run_child(check_a_lost_device_without_work, driver="null")
