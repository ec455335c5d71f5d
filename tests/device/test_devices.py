"""Devices: listing them, asking for one, hiding some, and where a Manager's options come from."""

from __future__ import annotations

import gc
import os
import uuid

import pytest

import kompute_py as kp
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver  # they bring their own drivers

TWO = "lavapipe+swiftshader"


def names():
    return [info.device_name for info in kp.list_devices()]


def check_listing():
    devices = kp.list_devices()
    assert [info.index for info in devices] == [0, 1]
    assert sum("llvmpipe" in info.device_name for info in devices) == 1
    assert sum("SwiftShader" in info.device_name for info in devices) == 1
    assert len({info.uuid for info in devices}) == 2
    for info in devices:
        with kp.Manager(info) as mgr:
            assert mgr.get_device_properties().uuid == info.uuid
            assert [each.uuid for each in mgr.list_devices()] == [each.uuid for each in devices]


def test_two_drivers_at_once():
    run_child(check_listing, driver=TWO)


def both():
    """Vulkan's indices of lavapipe and SwiftShader: the loader orders drivers as it likes."""
    first = names()[0]
    return (0, 1) if "llvmpipe" in first else (1, 0)


def taken(device, **options):
    with kp.Manager(device, **options) as mgr:
        return mgr.get_device_properties().index


def check_preferences():
    devices = kp.list_devices()
    lavapipe, swiftshader = both()
    for asked, index in [
        (1, 1),
        ("1", 1),
        ("swiftshader", swiftshader),
        ("SWIFTSHADER,lavapipe", swiftshader),
        ("nvidia,amd,swiftshader,cpu", swiftshader),
        (" nvidia , lavapipe ", lavapipe),
        (["nvidia", 1], 1),
        (("discrete", "integrated", "virtual", "gpu", "llvmpipe"), lavapipe),
        ([devices[1], devices[0]], 1),
        ([uuid.UUID(devices[1].uuid)], 1),
        (devices[1].uuid[:12], 1),
        (uuid.UUID(devices[1].uuid), 1),
    ]:
        assert taken(asked) == index, asked
    with pytest.raises(kp.NotFoundError) as caught:
        kp.Manager(["nvidia", "discrete", 7])
    text = str(caught.value)
    for part in (
        "'nvidia'",
        "'discrete'",
        "index 7",
        f"[{lavapipe}] llvmpipe",
        f"[{swiftshader}] SwiftShader",
        "is a CPU, not 'discrete'",
    ):
        assert part in text, text
    for empty in ([], [""], " "):
        with pytest.raises(kp.InvalidArgumentError, match="empty"):
            kp.Manager(empty)
    os.environ["KOMPUTE_PY_DEVICE"] = "nvidia,amd,swiftshader"
    assert taken(None) == swiftshader
    assert taken(lavapipe) == lavapipe
    assert taken(None, env_prefix="MINE_") == taken(None, env_prefix=None)
    os.environ["MINE_DEVICE"] = "lavapipe"
    assert taken(None, env_prefix="MINE_") == lavapipe


@pytest.mark.capability(
    "I58 S64",
    "the first device of a list of preferences, a CPU driver included",
    "kp.manager",
    "guides/several_devices",
)
def test_preferences():
    run_child(check_preferences, driver=TWO)


def check_shared():
    first = kp.manager()
    name = first.get_device_properties().device_name
    assert kp.manager() is first is kp.manager(name) is kp.manager(["nvidia", name])
    managers = [kp.manager(index) for index in (0, 1)]
    assert first in managers and managers[0] is not managers[1]
    _, swiftshader = both()
    assert kp.manager("swiftshader") is managers[swiftshader]
    os.environ["KOMPUTE_PY_VISIBLE_DEVICES"] = "swiftshader"
    assert kp.manager(0) is managers[swiftshader]
    with pytest.raises(kp.NotFoundError, match="lavapipe"):
        kp.manager("lavapipe")
    del os.environ["KOMPUTE_PY_VISIBLE_DEVICES"]
    managers[1].destroy()
    again = kp.manager(1)
    assert again is not managers[1] and again.is_init() and kp.manager(1) is again
    kp.manager(0).destroy()
    again.destroy()
    del first, managers, again
    gc.collect()
    assert kp.alive() == 0


def test_the_managers_of_the_process():
    run_child(check_shared, driver=TWO)


def check_visible():
    first, second = names()
    lavapipe, swiftshader = both()
    names_of = {"lavapipe": names()[lavapipe], "swiftshader": names()[swiftshader]}
    for text, expected in [
        ("0;1", [first, second]),
        ("1;0", [second, first]),
        (" 1 ; ", [second]),
        ("swiftshader", [names_of["swiftshader"]]),
        ("cpu", [first, second]),
        ("cpu;cpu", [first, second]),
        (f"{swiftshader};swiftshader", [names_of["swiftshader"]]),
        ("cpu,CPU", [first, second]),
        ("vulkan://1;vulkan://0", [second, first]),
        (" Vulkan://swiftshader , 0", list(dict.fromkeys([names_of["swiftshader"], first]))),
        ("", []),
        (" ; ", []),
    ]:
        os.environ["KOMPUTE_PY_VISIBLE_DEVICES"] = text
        assert names() == expected, text
        assert [info.index for info in kp.list_devices()] == list(range(len(expected)))
    # A script that says 0 gets what the user made the first.
    os.environ["KOMPUTE_PY_VISIBLE_DEVICES"] = "1;0"
    with kp.Manager(0) as mgr:
        assert mgr.get_device_properties().device_name == second
    os.environ["KOMPUTE_PY_VISIBLE_DEVICES"] = "1"
    with kp.Manager() as mgr:
        assert mgr.get_device_properties().device_name == second
        assert [info.device_name for info in mgr.list_devices()] == [second]
    with pytest.raises(
        kp.NotFoundError, match=r"llvmpipe.*1 more hidden by.*KOMPUTE_PY_VISIBLE_DEVICES"
    ) as caught:
        os.environ["KOMPUTE_PY_VISIBLE_DEVICES"] = str(lavapipe)
        kp.Manager("swiftshader")
    os.environ["KOMPUTE_PY_VISIBLE_DEVICES"] = ""
    with pytest.raises(kp.UnavailableError, match=r"No Vulkan device is visible.*all 2"):
        kp.Manager()
    with pytest.raises(kp.UnavailableError, match="No Vulkan device is visible"):
        kp.Manager(0)
    os.environ["KOMPUTE_PY_VISIBLE_DEVICES"] = "0;9"
    for attempt in (kp.list_devices, kp.Manager):
        with pytest.raises(kp.NotFoundError, match=r"'0;9'.*index 9.*\[0\] .*\[1\] ") as caught:
            attempt()
    assert "UUID" in str(caught.value)
    # A keyword wins over the variable; the names of everything else are as for `device`.
    with kp.Manager(visible_devices=[1, 0]) as mgr:
        assert mgr.list_devices()[0].device_name == second
    del os.environ["KOMPUTE_PY_VISIBLE_DEVICES"]
    assert [info.device_name for info in kp.list_devices([1])] == [second]
    assert [info.device_name for info in kp.list_devices("swiftshader;lavapipe")] == [
        names_of["swiftshader"], names_of["lavapipe"],
    ]  # fmt: skip
    assert kp.list_devices([]) == []
    for wrong, text in (("vulkan://0?queues=2", "has options"), (["vulkan://"], "names no device")):
        with pytest.raises(kp.InvalidArgumentError, match=rf"visible_devices.*vulkan://.*{text}"):
            kp.list_devices(wrong)
    with pytest.raises(kp.ArgumentTypeError, match="visible_devices"):
        kp.list_devices(1)
    with pytest.raises(kp.ArgumentTypeError, match="visible_devices"):
        kp.list_devices([None])


@pytest.mark.capability(
    "S54 S60-S62",
    "devices chosen, ordered and hidden; a repeated name takes the next match",
    "kp.list_devices",
    "guides/several_devices",
)
def test_visible_devices():
    run_child(check_visible, driver=TWO)


def check_identity():
    """A DeviceInfo is the device that it tells of, wherever it stands in a list that hides or orders
    devices."""
    everything = kp.list_devices()
    for shown in ("0;1", "1;0", "0", "1"):
        for info in kp.list_devices(shown):
            with kp.Manager(info) as mgr:
                assert mgr.get_device_properties().device_name == info.device_name
            assert kp.manager(info).get_device_properties().uuid == info.uuid
            assert [each.uuid for each in kp.list_devices([info])] == [info.uuid]
            assert kp.Manager([info, "cpu"]).get_device_properties().uuid == info.uuid
    first, second = everything
    os.environ["KOMPUTE_PY_VISIBLE_DEVICES"] = "1"
    assert [info.uuid for info in kp.list_devices()] == [second.uuid] and kp.list_devices()[
        0
    ].vulkan_index == 1
    with kp.Manager(second) as mgr:
        assert mgr.get_device_properties().uuid == second.uuid
    for attempt in (kp.Manager, kp.manager, lambda info: kp.Manager([info])):
        with pytest.raises(
            kp.NotFoundError,
            match=rf"the device with UUID '{first.uuid}'.*1 more hidden by the list of visible",
        ):
            attempt(first)
    with pytest.raises(kp.InvalidArgumentError, match="does not identify a device"):
        kp.Manager(kp.DeviceInfo(index=0))
    del os.environ["KOMPUTE_PY_VISIBLE_DEVICES"]
    assert kp.check(kp.compile("#version 450\nvoid main() {}"), second) == []


def test_an_info_names_its_own_device():
    run_child(check_identity, driver=TWO)


def check_said():
    import warnings

    for text, said in (
        ("cpu;0", "index 0"),
        ("1;cpu", None),
        ("0;1", None),
    ):
        for attempt in (kp.list_devices, kp.Manager):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                attempt(visible_devices=text)
            texts = [str(each.message) for each in caught if each.category is kp.KomputeWarning]
            if said is None or attempt is kp.Manager:  # each is said once
                assert texts == [], texts
            else:
                assert len(texts) == 1 and "name a device twice" in texts[0] and said in texts[0], texts
                assert caught[0].filename == __file__


def test_a_visible_device_that_is_named_twice_is_said():
    run_child(check_said, driver=TWO)


def check_null_devices():
    assert len(kp.list_devices()) == 2
    assert [info.type for info in kp.list_devices("integrated;discrete")] == ["integrated", "discrete"]
    types = [info.type for info in kp.list_devices()]
    assert taken("gpu") == types.index("discrete") and taken("integrated,discrete") == types.index(
        "integrated"
    )
    os.environ["KOMPUTE_PY_VISIBLE_DEVICES"] = "integrated"
    assert taken(0) == 0
    assert kp.list_devices()[0].type == "integrated"


def test_types_of_the_null_driver():
    run_child(check_null_devices, driver="null", config="devices=2")


def check_gpus_before_cpus():
    types = [info.type for info in kp.list_devices()]
    assert sorted(types) == ["cpu", "discrete"]
    assert taken(None) == types.index("discrete")
    assert [info.type for info in kp.list_devices("gpu")] == ["discrete"]
    assert taken("cpu") == types.index("cpu")


@pytest.mark.capability("S55", "a CPU driver beside a GPU", "kp.Manager", "guides/several_devices")
def test_a_cpu_is_not_taken_where_there_is_a_gpu():
    run_child(check_gpus_before_cpus, driver="lavapipe+null")


# -- where options come from ---------------------------------------------------------------------------------


def test_config_report(monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_MEMORY_LIMIT", "1 GiB")
    monkeypatch.setenv("KOMPUTE_PY_DEVICE", "nvidia,cpu")
    report = kp.config_report(strict=True)
    assert report.strict == ("strict", True, "keyword")
    assert report.memory_limit == ("memory_limit", 2**30, "KOMPUTE_PY_MEMORY_LIMIT")
    assert report.robust_access == ("robust_access", True, "default")
    assert report.device == ("device", "nvidia,cpu", "KOMPUTE_PY_DEVICE")
    assert report.visible_devices.value is None
    assert kp.config_report(1).device == ("device", 1, "keyword")
    assert len({setting.name for setting in report}) == len(report)
    lines = str(report).splitlines()
    assert len(lines) == len(report)
    assert any(line.split() == ["memory_limit", "1073741824", "KOMPUTE_PY_MEMORY_LIMIT"] for line in lines)
    with pytest.raises(AttributeError, match="memory_limit"):
        _ = report.nothing


def test_config_report_raises_what_a_manager_raises(monkeypatch):
    with pytest.raises(kp.InvalidArgumentError, match=r"mgr.supports\(NAME\) tells which"):
        kp.Manager(required_features=["shaderFloat64"])
    with pytest.raises(kp.InvalidArgumentError, match=r"no option 'stirct'.*strict"):
        kp.config_report(stirct=True)
    monkeypatch.setenv("KOMPUTE_PY_STRICT", "maybe")
    with pytest.raises(kp.InvalidArgumentError, match="KOMPUTE_PY_STRICT"):
        kp.config_report()


@pytest.mark.capability(
    "S50", "another prefix of the variables, or none", "kp.config_report", "guides/options"
)
def test_env_prefix(monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_STRICT", "1")
    monkeypatch.setenv("MINE_STRICT", "0")
    monkeypatch.setenv("MINE_MEMORY_DEBUG", "yes")
    assert kp.config_report().strict.value is True
    mine = kp.config_report(env_prefix="MINE_")
    assert mine.strict == ("strict", False, "MINE_STRICT")
    assert mine.memory_debug == ("memory_debug", True, "MINE_MEMORY_DEBUG")
    assert all(setting.source == "default" for setting in kp.config_report(env_prefix=None))
    with pytest.raises(kp.ArgumentTypeError, match="env_prefix"):
        kp.config_report(env_prefix=1)


def test_a_manager_knows_its_config(make_manager, monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_MEMORY_LIMIT", "256 MiB")
    manager = make_manager(0, force_staging=True)
    assert manager.config.memory_limit == ("memory_limit", 2**28, "KOMPUTE_PY_MEMORY_LIMIT")
    assert manager.config.force_staging.source == "keyword"
    assert manager.config.validation == ("validation", True, "keyword")
    assert manager.config.device == ("device", 0, "keyword")


def test_variables_that_nothing_reads_are_said(monkeypatch):
    from kompute_py._device import options

    monkeypatch.setattr(options, "_names_warned", set())
    monkeypatch.setenv("KOMPUTE_PY_VISIBLE_DEVICE", "0")
    with pytest.warns(
        kp.KomputeWarning, match="KOMPUTE_PY_VISIBLE_DEVICE .*did you mean KOMPUTE_PY_VISIBLE_DEVICES"
    ) as caught:
        kp.config_report()
    assert len(caught) == 1 and caught[0].filename == __file__
    monkeypatch.setenv("KOMPUTE_PY_XYZZY", "1")
    with pytest.warns(
        kp.KomputeWarning,
        match="KOMPUTE_PY_XYZZY .*there are: KOMPUTE_PY_CAPTURE, KOMPUTE_PY_CAPTURE_LIMIT, "
        "KOMPUTE_PY_COMPILE, ",
    ):
        kp.list_devices()
    for name in (
        "KOMPUTE_PY_TEST_ANYTHING",
        "KOMPUTE_PY_SHADER_CACHE_DIR",
        "KOMPUTE_PY_VULKAN_LIBRARY",
        "KOMPUTE_PY_DEVICE",
        "MINE_OWN",
    ):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("MINE_STRIKT", "1")
    with pytest.warns(kp.KomputeWarning) as caught:
        kp.config_report()
        kp.config_report(env_prefix=None)
        kp.config_report(env_prefix="MINE_")  # what is not near one of ours is that program's own
        kp.config_report(env_prefix="MINE_")
    assert [str(each.message) for each in caught] == [
        "The environment variable MINE_STRIKT is set, and nothing reads it: did you mean MINE_STRICT?"
    ]
    with pytest.raises(kp.InvalidArgumentError, match=r"no option 'wait_mod', did you mean 'wait_mode'\?"):
        kp.config_report(wait_mod="spin")


# -- the loader ----------------------------------------------------------------------------------------------


def check_library(path, works):
    os.environ["KOMPUTE_PY_VULKAN_LIBRARY"] = path
    if works:
        assert kp.list_devices()
        return
    with pytest.raises(kp.UnavailableError, match="KOMPUTE_PY_VULKAN_LIBRARY") as caught:
        kp.Manager()
    assert path.split(";")[0].strip() in str(caught.value)
    # The next attempt looks again.
    del os.environ["KOMPUTE_PY_VULKAN_LIBRARY"]
    assert kp.list_devices()


def _loaded_library():
    with open("/proc/self/maps") as maps:
        found = [line.split()[-1] for line in maps if "libvulkan.so" in line]
    return found[0]


@pytest.mark.capability("P4 S56 S57", "the file of Vulkan's loader", "kp.Manager", "guides/options")
def test_the_loader_library_is_taken_from_where_the_environment_says(tmp_path):
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("needs /proc")
    kp.list_devices()
    real = os.path.realpath(_loaded_library())
    run_child(check_library, real, True, driver="lavapipe")
    (tmp_path / "libvulkan.so.1").symlink_to(real)
    run_child(check_library, f"{tmp_path / 'nothing.so'} ; {tmp_path}", True, driver="lavapipe")
    (tmp_path / "text.so").write_text("no library")
    run_child(check_library, str(tmp_path / "text.so"), False, driver="lavapipe")


def check_late_library(path):
    import warnings

    kp.list_devices()
    os.environ["KOMPUTE_PY_VULKAN_LIBRARY"] = path
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for attempt in (kp.Manager, kp.list_devices, kp.Manager):
            attempt()
    texts = [str(each.message) for each in caught if each.category is kp.KomputeWarning]
    assert len(texts) == 1, texts
    assert path in texts[0] and "opened before, when it was not set" in texts[0], texts


def test_a_loader_library_that_is_named_too_late_is_said():
    run_child(check_late_library, "/nowhere/libvulkan.so.1", driver="lavapipe")


def test_visible_devices_that_are_not_there_say_what_separates_them():
    for attempt in (kp.list_devices, kp.Manager):
        with pytest.raises(
            kp.NotFoundError, match=r"'70;71'.*index 70\. Commas or semicolons separate devices\."
        ):
            attempt(visible_devices="70;71")
