"""After the loss of a device: what the error says."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

import kompute_py as kp
from tests.drivers import null_control
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver


def check_a_lost_device(fault, folder):
    control = null_control()
    mgr = kp.Manager(family_queue_indices=[0, 0], dump=folder)
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
    (report,) = (path for path in os.listdir(folder) if path.startswith("device-lost-"))
    report = os.path.join(folder, report)
    told = ". It was lost during OpSyncDevice of the sequence 'upload'"
    assert text.endswith(f"{told}. A report is in {report}"), text
    with open(report) as file:
        content = file.read()
    assert told in content and "queue 1: 2 of 3 submissions ended" in content
    assert "test_crashes.py" in content  # the calls
    assert f"device_name: {name}" in content and f"dump = {folder!r}, from keyword" in content
    assert f"kompute_py {kp.__version__}, Python" in content
    assert "-- last messages of validation\nnone" in content
    said = (
        ". The driver says: the null device was told to end; invalid write at 0xdead0000; a test (0x7, 0x9)"
    )
    assert (said in text) == fault, text
    assert control.calls("vkGetDeviceFaultInfoEXT") == (2 if fault else 0)
    with pytest.raises(kp.DeviceLostError) as caught:
        mgr.synchronize()
    assert f"The device is '{name}'" in str(caught.value)
    assert str(caught.value).endswith(f"{told}. A report is in {report}")
    assert len([path for path in os.listdir(folder) if path.startswith("device-lost-")]) == 1
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


WAITS = {
    "eval": lambda sequence, t: sequence.eval(),
    "eval_await": lambda sequence, t: sequence.eval_async().eval_await(),
    "read": lambda sequence, t: (sequence.eval_async(), t.read()),
    "write": lambda sequence, t: (sequence.eval_async(), t.write(np.zeros(1000))),
    "data": lambda sequence, t: (sequence.eval_async(), t.fill(1).wait()),
    "synchronize": lambda sequence, t: (sequence.eval_async(), t.manager.synchronize()),
}


def check_a_lost_device_whoever_waits(way):
    control = null_control()
    mgr = kp.Manager()
    t = mgr.tensor(np.arange(1000))
    sequence = mgr.sequence().record(kp.OpSyncDevice([t]), kp.OpCopy([t, mgr.zeros(1000)]))
    sequence.name = "upload"
    sequence.eval()
    threading.Timer(0.1, control.lose_device).start()
    told = "It was lost during one of OpSyncDevice, OpCopy of the sequence 'upload'"
    with pytest.raises(kp.DeviceLostError, match=told):
        WAITS[way](sequence, t)
    mgr.destroy()
    assert not control.violations(), control.violations()


@pytest.mark.parametrize("way", WAITS)
def test_each_way_to_wait_names_the_work_that_was_lost(way):
    run_child(check_a_lost_device_whoever_waits, way, driver="null", config="gpu_us=300000")


@pytest.mark.capability(
    "P18", "errors that name the device and the work", "kp.DeviceLostError", "reference/errors"
)
@pytest.mark.parametrize("fault", [False, True])
def test_a_lost_device_is_named_with_what_is_known(fault, tmp_path):
    run_child(
        check_a_lost_device, fault, str(tmp_path), driver="null", config=f"gpu_us=300000,fault={int(fault)}"
    )


def test_a_device_that_was_lost_without_work():
    run_child(check_a_lost_device_without_work, driver="null")


def check_a_report_that_cannot_be_written(folder):
    control = null_control()
    mgr = kp.Manager(dump=folder)
    other = kp.Manager(dump=folder)
    threading.Timer(0.1, control.lose_device).start()
    with pytest.raises(kp.DeviceLostError, match=r"The report .* could not be written: "):
        mgr.sequence().record(kp.OpSyncDevice([mgr.tensor(np.arange(1000))])).eval()
    mgr.destroy()
    other.destroy()


def test_a_report_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    run_child(
        check_a_report_that_cannot_be_written,
        str(tmp_path / "file" / "dump"),
        driver="null",
        config="gpu_us=300000",
    )
