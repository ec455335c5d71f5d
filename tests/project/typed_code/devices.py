# pyright: strict
"""Managers, their options and the reports on them."""

import os
from pathlib import Path
from uuid import UUID

from typing_extensions import Unpack, assert_type

import kompute_py as kp
from kompute_py.typing import DeviceLike, ManagerOptions, WaitMode

kp.Manager(validation=True, strict=True, memory_limit="128 MiB", wait_mode="spin")
kp.Manager(validaton=True)  # error
kp.Manager(0, [0], ["VK_EXT_host_image_copy"], robust_access=None, env_prefix=None)
kp.Manager(wait_mode="spinn")  # error
kp.Manager(validation="maybe")  # error
kp.Manager(memory_limit=1.5)  # error
kp.Manager("nvidia,amd", shader_cache_dir=Path("cache"), compiler="slang", compile_timeout=3)
kp.Manager(compiler="fxc")  # error
kp.Manager([UUID(int=1), "gpu", *kp.list_devices()], visible_devices=["gpu", 0])
kp.Manager(1.5)  # error
kp.Manager(visible_devices=3)  # error
kp.Manager(env_prefix=1)  # error


def open_device(device: DeviceLike, **options: Unpack[ManagerOptions]) -> kp.Manager:
    return kp.Manager(device, **options)


open_device("cpu", recent_pipelines=3)
open_device("cpu", recent_pipeline=3)  # error

mode: WaitMode = "auto"
kp.Manager(wait_mode=mode)
kp.Manager(wait_mode=os.environ["MODE"])  # error

report = kp.config_report(validation=False)
kp.config_report(validaton=False)  # error
assert_type(report, kp.ConfigReport)
assert_type(kp.manager(), kp.Manager)
assert_type(kp.manager("cpu").memory.used, int)
assert_type(kp.alive(), int)
assert_type(kp.alive(detail=True), dict[str, int])
assert_type(kp.list_devices(), list[kp.DeviceInfo])

with kp.Manager() as mgr:
    assert_type(mgr, kp.Manager)
    assert_type(mgr.get_device_properties(), kp.DeviceInfo)
    mgr.destory()  # error
