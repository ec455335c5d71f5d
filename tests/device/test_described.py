"""Devices that are not here: descriptions by vulkaninfo, by Vulkan Profiles, and by this package."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import kompute_py as kp
from kompute_py.cli import main

pytestmark = pytest.mark.own_driver
VULKANINFO = Path(__file__).with_name("vulkaninfo.json")  # of lavapipe, by vulkaninfo 1.3.239, cut down
LARGE = """#version 450
layout(local_size_x = 256) in;
shared float all_[6000];
layout(binding = 0) buffer X { float x[]; };
void main() { all_[gl_LocalInvocationID.x] = x[0]; barrier(); x[0] = all_[0]; }"""
DOUBLES = """#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer X { double x[]; };
void main() { x[0] = 2.0lf * x[0]; }"""


def profile(**blocks):
    """A file of Vulkan Profiles with the profile "VP_own" of these blocks of capabilities, in order."""
    return {
        "$schema": "https://schema.khronos.org/vulkan/profiles-0.8-latest.json#",
        "capabilities": blocks,
        "profiles": {"VP_own": {"version": 1, "api-version": "1.2.150", "capabilities": list(blocks)}},
    }


@pytest.fixture
def written(tmp_path):
    def write(content):
        path = tmp_path / "device.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.mark.capability(
    "P19",
    "a device that is not here, from vulkaninfo, Vulkan Profiles or our own JSON",
    "DeviceInfo.load, kp.check",
    "reference/devices",
)
def test_vulkaninfo():
    info = kp.DeviceInfo.load(VULKANINFO)
    assert (info.device_name, info.type) == ("llvmpipe (LLVM 15.0.6, 256 bits)", "cpu")
    assert (info.driver_id, info.conformance_version) == ("MESA_LLVMPIPE", "1.3.1.1")
    assert (info.api_version, info.driver_version, info.vendor_id) == ("1.3.230", "0.0.1", 0x10005)
    assert info.uuid == "6d65736132322e332e36000000000000" and info.luid is None
    assert (
        info.max_work_group_size == (1024, 1024, 1024) and info.limits["maxComputeSharedMemorySize"] == 32768
    )
    assert (info.subgroup_size, info.subgroup_sizes) == (8, (8, 8))
    assert info.subgroup_operations[:3] == ["basic", "vote", "arithmetic"]
    assert info.float_controls["denormBehaviorIndependence"] == "all"
    assert info.queue_families[0]["compute"] and info.timestamps_supported
    assert info.supports("shaderFloat64", "timelineSemaphore", "VK_KHR_16bit_storage")
    assert kp.check(LARGE, info) == kp.check(DOUBLES, info) == []
    assert {info: 1}[
        kp.DeviceInfo.load(VULKANINFO, next(iter(json.loads(VULKANINFO.read_text())["profiles"])))
    ]


def test_profiles(written):
    promised = {
        "features": {"VkPhysicalDeviceFeatures": {"shaderFloat64": True, "shaderInt64": False}},
        "extensions": {"VK_KHR_8bit_storage": 1},
    }
    larger = {"properties": {"VkPhysicalDeviceProperties": {"limits": {"maxComputeSharedMemorySize": 32768}}}}
    least = kp.DeviceInfo.load(written(profile(one=promised)))
    assert least.api_version == "1.2.150" and least.supports("shaderFloat64", "VK_KHR_8bit_storage")
    assert kp.check(DOUBLES, least) == []
    # What it leaves out is Vulkan's least.
    assert {finding.what for finding in kp.check(LARGE, least)} == {
        "maxComputeSharedMemorySize",
        "maxComputeWorkGroupInvocations",
        "maxComputeWorkGroupSize",
    }
    more = kp.DeviceInfo.load(written(profile(one=promised, two=larger)), "VP_own")
    assert "maxComputeSharedMemorySize" not in {finding.what for finding in kp.check(LARGE, more)}
    alternatives = profile(one=promised, two=larger)
    alternatives["profiles"]["VP_own"]["capabilities"] = ["one", ["two"]]
    unsure = kp.DeviceInfo.load(written(alternatives))
    assert "maxComputeSharedMemorySize" in {finding.what for finding in kp.check(LARGE, unsure)}


def test_a_path_names_the_device_that_it_describes(written, tmp_path, capsys):
    assert kp.check(LARGE, VULKANINFO) == kp.check(LARGE, str(VULKANINFO)) == []
    shader = tmp_path / "large.comp"
    shader.write_text(LARGE)
    assert main(["check", str(shader), "--device", str(VULKANINFO)]) == 0
    both = written({"devices": [dict(kp.DeviceInfo.load(VULKANINFO), device_name=name) for name in "ab"]})
    assert main(["check", str(shader), "--device", str(both)]) == 0
    with pytest.raises(kp.InvalidArgumentError, match="has several: give name=, one of 'a', 'b'"):
        kp.check(LARGE, both)
    small = profile(one={"extensions": {}})
    assert main(["check", str(shader), "--device", str(written(small))]) == 1
    assert "maxComputeSharedMemorySize" in capsys.readouterr().out


def test_our_own_description(written, capsys):
    assert main(["info", "--json"]) == 0
    path = written(capsys.readouterr().out)
    listed = kp.list_devices()
    loaded = kp.DeviceInfo.load(path, listed[0].device_name)
    assert (
        loaded == listed[0]
        and loaded.digest() == listed[0].digest()
        and loaded.limits.keys() == listed[0].limits.keys()
    )
    assert kp.check(LARGE, loaded) == kp.check(LARGE, listed[0])
    assert kp.DeviceInfo.load(written(dict(listed[0]))) == listed[0]
    assert loaded.cpus == ()  # none are near a device that is not here


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_a_pipe_is_not_a_description(tmp_path, monkeypatch):
    """Opening one would wait for a writer."""
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(kp.UnavailableError, match="It is not a regular file"):
        kp.DeviceInfo.load(tmp_path / "pipe.json")
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path / "pipe.json"))
    (driver,) = kp.available_drivers()
    assert driver.fault == "the manifest cannot be read: It is not a regular file"


@pytest.mark.capability(
    "W4", "options for compilers from a device", "DeviceInfo.compile_options", "reference/devices"
)
def test_options_of_the_compiler():
    info = kp.DeviceInfo.load(VULKANINFO)
    options = info.compile_options
    assert options["target"] == "vulkan1.3" and options["defines"]["KP_SUBGROUP_SIZE"] == 8
    source = """#version 450
    layout(local_size_x = KP_SUBGROUP_SIZE) in;
    layout(binding = 0) buffer X { float x[]; };
    #ifndef KP_HAS_shaderFloat64
    #error no doubles
    #endif
    void main() { x[0] = KP_SHARED_MEMORY + KP_WORKGROUP_INVOCATIONS; }"""
    assert kp.check(kp.compile(source, **options), info) == []
    older = kp.DeviceInfo({**info, "features": {}, "api_version": "1.1.0"})
    without = older.compile_options
    assert without["target"] == "vulkan1.1"
    plain = "layout(local_size_x = 8) in; void main() {}"
    for device, version in ((info, (1, 6)), (older, (1, 3))):
        spirv = kp.compile(plain, target=device)
        assert spirv == kp.compile(plain, target=device.compile_options["target"])
        assert kp.ShaderModule(plain, target=device).reflection["version"] == version
        text = kp.disassemble(spirv)
        assert kp.ShaderModule(kp.assemble(text, target=device)).reflection["version"] == version
    file = kp.compile(plain, target=VULKANINFO)
    assert file == kp.compile(plain, target=str(VULKANINFO)) == kp.compile(plain, target=dict(info))
    assert file == kp.compile(plain, target=info) != kp.compile(plain, target=dict(older))
    assert kp.ShaderModule(plain, target=VULKANINFO).reflection["version"] == (1, 6)
    with pytest.raises(kp.InvalidArgumentError, match="lacks api_version"):
        kp.compile(plain, target={})
    with pytest.raises(kp.NotFoundError, match=r"none\.json"):
        kp.compile(plain, target="none.json")
    with pytest.raises(kp.InvalidArgumentError, match=r"not valid SPIR-V for target='vulkan1\.1'"):
        kp.ShaderModule(kp.compile(plain, target=info), target=older)
    with pytest.raises(kp.ShaderCompileError, match="no doubles"):
        kp.compile(source, **without)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("3", "describes no device"),
        ("{}", "describes no device"),
        ({"devices": []}, "has several"),
        ({"devices": [{"device_name": "x"}]}, "describes no device"),
        ({"devices": 3}, "describes no device"),
        ({"capabilities": 3, "profiles": {"a": {}}}, "where an object belongs"),
        ({"capabilities": {}, "profiles": {"a": 3}}, "not an object"),
        ({"capabilities": {}, "profiles": {"a": {}}}, "states no version"),
        ({"capabilities": {}, "profiles": {"a": {"capabilities": ["b"]}}}, "lacks the capabilities"),
        ({"capabilities": {}, "profiles": {"a": {}, "b": {}}}, "has several: give name="),
        (profile(one={"features": {"VkPhysicalDeviceFeatures": 3}}), "where an object belongs"),
        (
            profile(one={"properties": {"VkPhysicalDeviceProperties": {"limits": [3]}}}),
            "where an object belongs",
        ),
        (
            profile(one={"properties": {"VkPhysicalDeviceProperties": {"apiVersion": {}}}}),
            "states no version",
        ),
    ],
)
def test_other_files_are_refused(written, content, said):
    with pytest.raises(kp.InvalidArgumentError, match=said):
        kp.DeviceInfo.load(written(content))


def test_odd_values_are_left_out(written):
    odd = {
        "features": {"VkPhysicalDeviceFeatures": {"shaderFloat64": 1, "shaderInt64": "yes"}},
        "properties": {
            "VkPhysicalDeviceProperties": {
                "limits": {"maxComputeSharedMemorySize": -1, "maxComputeWorkGroupSize": [1, "a", 2]},
                "pipelineCacheUUID": [999],
                "deviceType": 7,
                "vendorID": "x",
            },
            "VkPhysicalDeviceVulkan12Properties": {"conformanceVersion": 3, "driverID": 5},
        },
        "queueFamiliesProperties": [3, {"VkQueueFamilyProperties": {"queueFlags": "all"}}],
    }
    info = kp.DeviceInfo.load(written(profile(one=odd)))
    assert not info.features["shaderFloat64"] and info.limits["maxComputeSharedMemorySize"] == 16384
    assert (
        info.max_work_group_size == (128, 128, 64) and info.type == "other" and not info.timestamps_supported
    )
    assert repr(info) and info.digest() and kp.check("#version 450\nvoid main() {}", info) == []


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(kp.NotFoundError, match="no file"):
        kp.DeviceInfo.load(tmp_path / "absent.json")
    with pytest.raises(kp.UnavailableError, match="cannot be read"):
        kp.DeviceInfo.load(tmp_path)
    with pytest.raises(kp.NotFoundError, match="no device or profile 'other'"):
        kp.DeviceInfo.load(VULKANINFO, "other")
    for path, name in ((3, None), (VULKANINFO, 3)):
        with pytest.raises(kp.ArgumentTypeError):
            kp.DeviceInfo.load(path, name)
