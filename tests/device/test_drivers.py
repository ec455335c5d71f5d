"""Drivers by their manifests, a Manager of one driver, and what identifies a device."""

from __future__ import annotations

import hashlib
import json
import os

import pytest

import kompute_py as kp
from tests.drivers import manifest
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver

VARIABLES = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES", "XDG_CONFIG_HOME", "XDG_DATA_HOME")


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Folders of manifests that the loader looks at, the first before the second, and no others."""
    for name in (*VARIABLES, "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"):
        monkeypatch.delenv(name, raising=False)
    made = []
    for name in ("first", "second"):
        folder = tmp_path / name / "vulkan" / "icd.d"
        folder.mkdir(parents=True)
        made.append(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "first"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path / "second"))
    return made


def put(folder, name, library="lib.so", **more):
    path = folder / name
    path.write_text(json.dumps({"ICD": {"library_path": library, "api_version": "1.3.7", **more}}))
    return path


def own(folder):
    """Those of available_drivers() that stand in the test's folders: /etc is looked at, too."""
    root = str(folder.parents[2])
    return [each for each in kp.available_drivers() if each.manifest.startswith(root)]


@pytest.mark.capability(
    "I52 P1",
    "installed drivers, listed without loading them",
    "kp.available_drivers",
    "guides/several_devices",
)
def test_manifests_are_listed_in_the_loaders_order(folders):
    first, second = folders
    (first / "lib.so").touch()
    put(first, "lvp_icd.x86_64.json", "./lib.so", is_portability_driver=True)
    put(second, "radeon_icd.json", "libvulkan_radeon.so")
    lvp, radeon = own(first)
    assert (lvp.name, lvp.library, lvp.is_portability) == ("lvp", str(first / "lib.so"), True)
    assert (radeon.name, radeon.library, radeon.api_version) == ("radeon", "libvulkan_radeon.so", "1.3.7")
    assert lvp.fault is radeon.fault is lvp.shadowed_by is None
    assert "Vulkan 1.3.7" in str(lvp) and "portability" in str(lvp)


@pytest.mark.capability(
    "P2", "drivers that another file of the same name hides", "DriverInfo.shadowed_by", "reference/devices",
)  # fmt: skip
def test_the_first_of_a_name_shadows_others(folders):
    first, second = folders
    mine = put(first, "lvp_icd.json", "a.so")
    put(second, "lvp_icd.x86_64.json", "b.so")
    assert [each.shadowed_by for each in own(first)] == [None, str(mine)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "names no library"),
        ('{"ICD": {"library_path": 3}}', "names no library"),
        ('{"ICD": {"library_path": "./absent.so"}}', "is not there"),
        ('{"ICD": {"library_path": "a.so", "library_arch": "32"}}', "32 bits"),
        (" " * (2**20 + 1), "It has more than 1048576 bytes"),
    ],
)
def test_damaged_manifests_are_listed_with_their_fault(folders, text, said):
    path = folders[0] / "bad_icd.json"
    path.write_text(text)
    assert said in own(folders[0])[0].fault
    with pytest.raises(kp.InvalidArgumentError, match=said):
        kp.Manager(driver=path)
    with pytest.raises(kp.NotFoundError, match="no Vulkan driver 'bad'"):
        kp.Manager(driver="bad")


def test_the_loaders_variables_choose(folders, monkeypatch, tmp_path):
    first, second = folders
    a, b = put(first, "a_icd.json"), put(second, "b_icd.json")
    for path in (a, b):
        (path.parent / "lib.so").touch()
    names = lambda: [each.name for each in own(first)]  # noqa: E731
    assert names() == ["a", "b"]
    monkeypatch.setenv("VK_LOADER_DRIVERS_DISABLE", "A_*")
    assert names() == ["b"]
    monkeypatch.setenv("VK_LOADER_DRIVERS_SELECT", "a_*, x*")
    assert names() == ["a"]
    monkeypatch.delenv("VK_LOADER_DRIVERS_SELECT")
    monkeypatch.delenv("VK_LOADER_DRIVERS_DISABLE")
    monkeypatch.setenv("VK_ADD_DRIVER_FILES", str(b))
    assert names() == ["b", "a"]
    monkeypatch.setenv("VK_ICD_FILENAMES", os.pathsep.join([str(b), str(tmp_path / "no.json")]))
    assert names() == ["b", "no"]
    monkeypatch.setenv("VK_DRIVER_FILES", str(first))
    assert names() == ["a"]


def check_one_driver(swiftshader, null):
    before = {name: os.environ.get(name) for name in VARIABLES}
    default = kp.Manager()
    assert "llvmpipe" in default.get_device_properties().device_name
    assert default.driver is None or "lvp" in default.driver.library
    for path, name in ((swiftshader, "SwiftShader"), (null, "Null")):
        (info,) = kp.list_devices(driver=path)
        assert name in info.device_name
        with kp.Manager(driver=path) as mgr, kp.Manager(info, driver=path, validation=True) as checked:
            for each in (mgr, checked):
                assert each.get_device_properties() == info
                assert each.driver is not None and each.driver.manifest == path
                assert [found.uuid for found in each.list_devices()] == [info.uuid]
            assert mgr.vk_instance not in (default.vk_instance, checked.vk_instance)
            again = kp.Manager(driver=path)
            assert again.vk_instance == mgr.vk_instance
    assert default.tensor([1, 2]).read().tolist() == [1, 2]
    with kp.Manager(driver=swiftshader) as mgr:
        assert kp.ops.sum(mgr.tensor([1, 2])).read() == 3
    assert {name: os.environ.get(name) for name in VARIABLES} == before
    os.environ["KOMPUTE_PY_DRIVER"] = swiftshader
    assert "SwiftShader" in kp.manager().get_device_properties().device_name
    assert kp.manager("swiftshader") is kp.manager()
    assert "SwiftShader" in kp.list_devices()[0].device_name
    with pytest.raises(kp.NotFoundError, match="llvmpipe"):
        kp.Manager("llvmpipe")


@pytest.mark.capability(
    "I57 P3 P15",
    "a driver by name or file; the driver of an open device",
    "Manager.driver",
    "guides/several_devices",
)
def test_a_manager_of_one_driver():
    run_child(check_one_driver, str(manifest("swiftshader")), str(manifest("null")), driver="lavapipe")


def test_a_driver_that_is_not_there_is_said():
    with pytest.raises(
        kp.NotFoundError, match=r"no Vulkan driver 'nope'. kp.available_drivers\(\) lists them"
    ):
        kp.Manager(driver="nope")
    with pytest.raises(kp.NotFoundError, match="no such file"):
        kp.list_devices(driver="/nowhere/x_icd.json")
    with pytest.raises(kp.ArgumentTypeError, match="give a driver's name"):
        kp.Manager(driver=3)


def check_facts():
    # The device that a Manager would open, which stays closed.
    assert kp.supports("timelineSemaphore") and not kp.supports("VK_KHR_of_tomorrow") and not kp.alive()
    with kp.Manager() as mgr:
        info, listed = mgr.get_device_properties(), kp.list_devices()[0]
        assert info == listed and hash(info) == hash(listed) and {info: 1}[listed] == 1
        other = kp.DeviceInfo({**listed, "uuid": "0" * 32})
        assert info != other and info == dict(info) and other not in {info}
        assert (info.pci_address, info.conformance_version) == ("0000:01:00.0", "1.3.0.0")
        assert info.luid is info.drm_render is info.drm_primary is None
        assert info.numa_node is None or info.numa_node >= 0
        assert set(info.cpus) and all(0 <= cpu < 4096 for cpu in info.cpus)
        assert info.digest() == hashlib.sha256(repr(info.type_key).encode()).hexdigest()
        assert len(info.digest(hashlib.sha1)) == 40
        for other in (int, str, "sha1"):
            with pytest.raises(kp.ArgumentTypeError, match="give a function of hashlib"):
                info.digest(other)
        changed = kp.DeviceInfo({**info, "driver_version": "9"})
        assert changed == info and changed.digest() != info.digest()
        for wider in (
            {"subgroup_size": 128},
            {"limits": {**info["limits"], "maxComputeSharedMemorySize": 1}},
        ):
            assert kp.DeviceInfo({**info, **wider}).digest() != info.digest()
        for owner in (info, mgr, kp):
            assert owner.supports() and owner.supports("timelineSemaphore", "VK_KHR_timeline_semaphore") in (
                True,
                False,
            )
            assert owner.supports("timelineSemaphore") and not owner.supports("VK_KHR_of_tomorrow")
            with pytest.raises(kp.NotFoundError, match="did you mean 'timelineSemaphore'"):
                owner.supports("timelineSemaphor")
        with kp.Manager(info.pci_address) as again, kp.Manager(visible_devices="01:00.0") as visible:
            assert again.get_device_properties() == visible.get_device_properties() == info


@pytest.mark.capability(
    "P54",
    "features and extensions looked up by name",
    "kp.supports, Manager.supports, DeviceInfo.supports",
    "reference/devices",
)
@pytest.mark.capability(
    "P6 P7 P13 P14 P17 S31 S63 W6 W8 W9",
    "identity of a device: driver, UUID, PCI address, NUMA node, LUID, DRM node, digest of its type",
    "DeviceInfo.type_key, DeviceInfo.digest, DeviceInfo.numa_node, DeviceInfo.cpus",
    "reference/devices",
)
def test_what_a_device_says():
    run_child(check_facts, driver="null")


def test_misspelt_names_of_features_and_extensions():
    """Names that other devices know are just not there: none of Vulkan's is so near to another one."""
    info = kp.DeviceInfo(
        features={"shaderInt64": True},
        extensions=["VK_KHR_16bit_storage", "VK_EXT_shader_atomic_float", "VK_EXT_depth_clip_control"],
    )
    for other in ("VK_KHR_8bit_storage", "VK_EXT_shader_atomic_float2", "VK_EXT_depth_clamp_control"):
        assert not info.supports(other)
    for wrong, meant in (
        ("VK_KHR_16bit_storag", "VK_KHR_16bit_storage"),
        ("vk_khr_16bit_storage", "'VK_'"),
        ("int64", "'shaderInt64'"),
        ("shaderInt46", "'shaderInt64'"),
    ):
        with pytest.raises(kp.NotFoundError, match=f"knows no .*{meant}"):
            info.supports("shaderInt64", wrong)


SHADER = "#version 450\nvoid main() {}"


def check_uris():
    (name,) = [info.device_name for info in kp.list_devices()]
    with kp.Manager("vulkan://0?queues=3&validation=1&wait_mode=block") as mgr:
        assert [queue["family"] for queue in mgr.queues] == [0, 0, 0] and mgr.validation
        assert mgr.config.wait_mode.value == "block"
    with kp.Manager("vulkan://?wait_mode=block", wait_mode="spin", family_queue_indices=[0]) as mgr:
        assert mgr.config.wait_mode.value == "spin" and len(mgr.queues) == 1
    for entry in ("0", name.replace(" ", "%20"), "nvidia,0", "01:00.0", ""):
        with kp.Manager(f" VULKAN://{entry}/ ") as mgr:
            assert mgr.get_device_properties().device_name == name
    assert kp.manager("vulkan://0") is kp.manager(0) is kp.manager("01:00.0")
    two = kp.manager("vulkan://0?queues=2&wait_mode=spin")
    assert two is kp.manager("vulkan://01:00.0?wait_mode=spin&queues=2") is not kp.manager(0)
    assert len(two.queues) == 2 and kp.manager(0).is_init()
    assert kp.config_report("vulkan://0?wait_mode=spin&queues=2").wait_mode.value == "spin"
    for several in (["vulkan://nvidia", "vulkan://0"], "amd,vulkan://0"):
        with kp.Manager(several) as mgr:
            assert mgr.get_device_properties().device_name == name and kp.check(SHADER, several) == []
    os.environ["KOMPUTE_PY_DEVICE"] = "vulkan://0?queues=2"
    with kp.Manager() as mgr:
        assert len(mgr.queues) == 2
        for device in (None, "vulkan://0", "vulkan://0?queues=2&validation=1", mgr):
            assert kp.check(SHADER, device) == []
    os.environ["KOMPUTE_PY_DEVICE"] = "vulkan://nvidia"
    assert "no device can be used" in kp.report() and "'nvidia'" in kp.report()
    for text, said in (
        ("vulkan:0", "not a URI of a device"),
        ("vulkan://0/a", "not a URI of a device"),
        ("vulkan://0#a", "not a URI of a device"),
        ("vulkan://0?a", "bad query field"),
        ("vulkan://[", "not a URI"),
        ("vulkan://0?wait_mod=spin", "did you mean 'wait_mode'"),
        ("vulkan://0?queues=2&queues=2", "'queues' twice"),
        ("vulkan://0?queues=0", "queues is '0'"),
        ("vulkan://0?queues=1025", "give 1 to 1024"),
        ("vulkan://0?validation=maybe", "use 1, true"),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=said):
            kp.Manager(text)
        with pytest.raises(kp.InvalidArgumentError, match=said):
            kp.compile(SHADER, target=text)
    with pytest.raises(kp.InvalidArgumentError, match="has options, which belong to a Manager"):
        kp.Manager(["vulkan://0?queues=2", "cpu"])
    with pytest.raises(kp.NotFoundError, match="'amd'"):
        kp.manager("vulkan://amd?queues=2")


@pytest.mark.capability(
    "I55 I56 W1 W13",
    "a device by URI with options; the process keeps one Manager for each",
    "kp.manager",
    "guides/several_devices",
)
def test_device_uris():
    run_child(check_uris, driver="null", layer="newer")


def check_reported_default():
    with kp.Manager() as mgr:
        chosen = mgr.get_device_properties()
    assert chosen.index == 1
    assert [line for line in kp.report().splitlines() if line.endswith(", the default")] == [
        f"device 1: {chosen.device_name} ({chosen.type}, Vulkan {chosen.api_version}), the default"
    ]


def test_reports_tell_the_default_that_the_environment_chooses():
    for device in ("1", "nowhere,vulkan://1", "vulkan://1?wait_mode=spin"):
        run_child(
            check_reported_default, driver="null", config="devices=2", env={"KOMPUTE_PY_DEVICE": device}
        )


@pytest.mark.capability(
    "W3", "the Manager of the process: set or cleared", "kp.set_manager", "guides/several_devices"
)
def test_the_default_manager_can_be_set():
    run_child(check_default, driver="null")


def check_default():
    first, second = kp.Manager(), kp.Manager()
    kp.set_manager(first)
    assert kp.manager() is first
    with second.current():
        kp.set_manager(second)
        assert kp.manager() is second
    assert kp.manager() is second
    with second:
        pass
    assert second.is_init()  # it is the process's now
    kp.set_manager(None)
    third = kp.manager()
    assert third not in (first, second) and second.is_init()
    first.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="make a new one"):
        kp.set_manager(first)
    with pytest.raises(kp.ArgumentTypeError, match="a Manager or None"):
        kp.set_manager(3)
    kp.set_manager(second)
    second.destroy()
    assert kp.manager() is third
