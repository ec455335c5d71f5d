"""``kompute-py program``: files of programs on the command line, and drivers compared."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import PIL.Image
import pytest

import kompute_py as kp
from kompute_py._programs import tracing
from kompute_py._programs.tracing import difference
from kompute_py.cli import main
from tests.drivers import DriverUnavailableError, environment

ORDER = """
#extension GL_KHR_shader_subgroup_arithmetic : require
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
void main() {
    const float sum = subgroupAdd(x[gl_GlobalInvocationID.x]);
    y[gl_GlobalInvocationID.x] = float(gl_SubgroupSize) + sum;
}
"""


@pytest.fixture
def path(mgr, tmp_path):
    x, y, z = mgr.zeros(64), mgr.zeros(64), mgr.zeros(64)
    steps = [
        kp.ops.add.bind(x, x, out=y),
        mgr.kernel(ORDER, name="order").bind(y, z, grid=64),
        kp.ops.add.bind(z, z, out=y),
    ]
    program = kp.Program.record(
        {"same": kp.ops.add.bind(x, 1, out=y), "order": steps}, inputs={"x": x}, outputs={"y": y}
    )
    program.save(tmp_path / "program.kpp")
    return tmp_path / "program.kpp"


def test_info_run_and_bench(path, tmp_path, capsys):
    assert main(["program", "info", str(path)]) == 0
    assert "same(x: float32[64]) -> (y: float32[64])" in capsys.readouterr().out
    out = tmp_path / "results"
    assert (
        main(["program", "run", str(path), "--entry", "same", "--in", "x=arange:64", "--out", str(out)]) == 0
    )
    assert "y: float32[64]" in capsys.readouterr().out
    np.testing.assert_array_equal(np.load(out / "y.npy"), np.arange(64) + 1)
    assert main(["program", "bench", str(path), "--entry", "same"]) == 0
    assert "same: host" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["explode"], "info, run, bench, compare"),
        (["run"], "--entry: same, order"),
        (["run", "--entry", "none"], "no entry 'none'"),
        (["run", "--entry", "same", "--in", "z=1"], "its inputs: x"),
        (["run", "--entry", "same", "--in", "x=arange:63"], "recorded for (64,)"),
    ],
)
def test_mistakes(path, capsys, arguments, text):
    assert main(["program", arguments[0], str(path), *arguments[1:]]) == 1
    assert text in capsys.readouterr().err


def manifest(driver: str) -> str:
    try:
        return environment(driver)["VK_DRIVER_FILES"]
    except (DriverUnavailableError, KeyError):
        pytest.skip(f"{driver} is not there")


def test_compare_finds_the_first_step_that_differs(path, capsys):
    drivers = [f"--driver={manifest(each)}" for each in ("lavapipe", "swiftshader")]
    assert main(["program", "compare", str(path), *drivers]) == 1
    printed = capsys.readouterr()
    same, order = printed.out.split("order on", 1)
    assert "y: equal" in same
    assert "first in step 1 (order)" in order
    assert "y: 64 differ: at most" in order
    assert "different results on the drivers: order" in printed.err
    assert main(["program", "compare", str(path), "--entry", "order", "--rtol", "10", *drivers]) == 0


@kp.CustomOp.register
class reversed_groups(kp.CustomOp):
    """Each workgroup's elements in the other order; without `waits` it reads what may not be there yet."""

    signature = "reversed_groups(Tensor x, int waits=1) -> Tensor"

    def select(self, ksel):
        x = ksel.arg_tensor("x")
        ksel.attr_int("waits")
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel, kb):
        kb.declare("shared float kp_all[gl_WorkGroupSize.x];")
        kb.grid(kb.arg_value("x").size)
        kb.emit("uint i = gl_GlobalInvocationID.x, l = gl_LocalInvocationID.x;")
        kb.emit("kp_all[l] = x_load(i);")
        kb.emit("barrier();" if ksel.attribute("waits") else "")
        kb.emit("result_store(i, kp_all[gl_WorkGroupSize.x - 1u - l]);")
        kb.yield_results()


@pytest.mark.parametrize("barrier", [True, False], ids=["barrier", "none"])
def test_compare_finds_a_missing_barrier_in_a_custom_operation(mgr, tmp_path, capsys, barrier):
    drivers = [f"--driver={manifest(each)}" for each in ("lavapipe", "swiftshader")]
    x, y, z = mgr.zeros(1024), mgr.zeros(1024), mgr.zeros(1024)
    steps = [
        kp.ops.add.bind(x, 1, out=y),
        reversed_groups.bind(y, int(barrier), out=z),
        kp.ops.multiply.bind(z, 2, out=z),
    ]
    path = tmp_path / "barrier.kpp"
    kp.Program.record(steps, inputs={"x": x}, outputs={"z": z}).save(path)
    assert main(["program", "compare", str(path), *drivers]) == (0 if barrier else 1)
    printed = capsys.readouterr().out
    assert ("z: equal" if barrier else "first in step 1 (reversed_groups), z:") in printed


def test_compare_looks_at_all_shapes(tmp_path, capsys):
    shapes = [(reversed_groups, kp.TensorSpec(64), 1), (reversed_groups, kp.TensorSpec(1024), 0)]
    path = tmp_path / "shapes.kpp"
    kp.Program.record({"turn": shapes}).save(path)
    command = ["program", "compare", str(path)]
    command += [f"--driver={manifest(each)}" for each in ("lavapipe", "swiftshader")]
    assert main(command) == 1
    printed = capsys.readouterr()
    assert "turn(x: float32[64])" in printed.out and "turn(x: float32[1024])" in printed.out
    assert "different results on the drivers: turn 1\n" in printed.err
    assert main([*command, "--recording=0"]) == 0
    assert "[1024]" not in capsys.readouterr().out
    assert main([*command, "--recording=2"]) == 1
    assert "--recording=2 is beyond the last, 1" in capsys.readouterr().err
    for number, shape in enumerate((64, 1024)):
        assert main(["program", "run", str(path), f"--recording={number}"]) == 0
        assert f"float32[{shape}]" in capsys.readouterr().out


def test_compare_takes_the_drivers_that_have_a_device(path, tmp_path):
    none = tmp_path / "none_icd.json"
    none.write_text('{"ICD": {"library_path": "/nowhere/libnone.so", "api_version": "1.3.0"}}')
    files = [manifest(each) for each in ("lavapipe", "swiftshader")]
    command = [sys.executable, "-m", "kompute_py", "program", "compare", str(path), "--entry", "same"]
    for given, code in (([files[0], str(none), files[1]], 0), ([files[0], str(none)], 1)):
        variables = {**os.environ, "VK_DRIVER_FILES": os.pathsep.join(given)}
        done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
        assert done.returncode == code, done.stderr
        assert (
            "y: equal" in done.stdout if not code else "fewer than two drivers with a device" in done.stderr
        )


def test_compare_of_a_recording_without_results(mgr, tmp_path, capsys):
    y, z = mgr.tensor(np.arange(64)), mgr.zeros(64)
    same = kp.ops.add.bind(y, 1, out=z)
    order = mgr.kernel(ORDER, name="order").bind(y, z, grid=64)
    with mgr.current(), pytest.warns(kp.KomputeWarning, match="same: calls return nothing"):
        kp.Program.record({"same": same, "order": order}).save(tmp_path / "program.kpp")
    drivers = [f"--driver={manifest(each)}" for each in ("lavapipe", "swiftshader")]
    command = ["program", "compare", str(tmp_path / "program.kpp"), *drivers]
    assert main([*command[:-1], "--entry", "same"]) == 1
    assert "compare takes two drivers or more" in capsys.readouterr().err
    assert main(command) == 1
    same, order = capsys.readouterr().out.split("order on", 1)
    assert "all steps equal" in same and "first in step 0 (order)" in order


PICTURE = """
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float scale; };
void main() {
    y[gl_GlobalInvocationID.y * 8 + gl_GlobalInvocationID.x] = scale * float(gl_SubgroupSize) / 8;
}
"""


def test_kernels_are_run_and_compared_with_pictures_of_differences(mgr, tmp_path, capsys):
    path, out = str(tmp_path / "program.kpp"), tmp_path / "pictures"
    kp.Program.record({"picture": mgr.kernel(PICTURE, name="picture")}).save(path)
    given = ["--entry", "picture", "--in", "y=zeros:8,8", "--set", "scale=0.5"]
    assert main(["program", "run", path, *given, "--out", str(out)]) == 0
    assert "y: float32[8, 8]" in capsys.readouterr().out
    assert np.load(out / "y.npy").shape == (8, 8)
    drivers = [f"--driver={manifest(each)}" for each in ("lavapipe", "swiftshader")]
    assert main(["program", "compare", path, *given, *drivers, "--out", str(out)]) == 1
    assert "y: 64 differ" in capsys.readouterr().out
    picture = np.asarray(PIL.Image.open(out / "picture.y.1.png"))
    assert picture.shape == (8, 8) and (picture == 255).all()
    same = [drivers[0], drivers[0]]
    assert main(["program", "compare", path, *given, *same]) == 0


NORM = """
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float scale; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = scale * x[i]; }
"""
BRIGHTER = """
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, rgba8) readonly uniform image2D source;
layout(binding = 1, rgba8) writeonly uniform image2D result;
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(at, imageSize(result)))) imageStore(result, at, imageLoad(source, at));
}
"""


@pytest.fixture
def pictures(mgr, tmp_path):
    """A program, and a picture of three channels in a file."""
    brighter = mgr.kernel(BRIGHTER, name="same")
    image, result = mgr.image_empty((4, 5), "rgba8"), mgr.image_empty((4, 5), "rgba8")
    floats = mgr.image_empty((4, 5), "rgba32f")
    sequence = mgr.sequence().record(brighter.bind(image, result))
    entries = {
        "norm": mgr.kernel(NORM, name="norm"),
        "same": brighter,
        "recorded": sequence,
        "floats": kp.ops.add.bind(floats, 0.0, out=floats),
        "ints": kp.ops.add.bind(x := mgr.tensor_t(np.zeros(2, np.uint8)), 1, out=x),
    }
    program = kp.Program.record(
        entries, inputs={"photo": image, "f": floats, "x": x}, outputs={"mask": result, "f": floats, "x": x}
    )
    program.save(tmp_path / "pictures.kpp")
    pixels = np.random.default_rng(1).integers(0, 256, (4, 5, 3)).astype(np.uint8)
    PIL.Image.fromarray(pixels).save(tmp_path / "rgb.png")
    return program, pixels


def run_entry(folder, entry, *given):
    path, out = str(folder / "pictures.kpp"), folder / "out"
    assert main(["program", "run", path, "--entry", entry, *given, "--out", str(out)]) == 0
    return {each.stem: np.load(each) for each in out.iterdir()}


def test_numbers_and_pictures_for_kernels(pictures, tmp_path, capsys):
    _, pixels = pictures
    results = run_entry(tmp_path, "norm", "--in", "x=1,2,3", "--set", "scale=2")
    assert results["y"].dtype == np.float32 and results["y"].tolist() == [2, 4, 6]
    opaque = np.dstack([pixels, np.full((4, 5), 255, np.uint8)])
    results = run_entry(tmp_path, "same", "--in", f"source={tmp_path / 'rgb.png'}")
    np.testing.assert_array_equal(results["result"], opaque)
    path = str(tmp_path / "pictures.kpp")
    assert main(["program", "run", path, "--entry", "norm", "--in", "x=1,2"]) == 1
    assert "give --set scale=VALUE" in capsys.readouterr().err
    assert main(["program", "bench", path, "--entry", "norm", "--in", "x=1,2", "--set", "scale=2"]) == 0


def test_numbers_and_pictures_for_recordings(mgr, pictures, tmp_path, capsys):
    program, pixels = pictures[0].on(mgr), pictures[1]
    opaque = np.dstack([pixels, np.full((4, 5), 255, np.uint8)])
    np.testing.assert_array_equal(program.recorded(pixels), opaque)
    photo = f"photo={tmp_path / 'rgb.png'}"
    np.testing.assert_array_equal(run_entry(tmp_path, "recorded", "--in", photo)["mask"], opaque)
    floats = run_entry(tmp_path, "floats", "--in", photo.replace("photo", "f"))["f"]
    np.testing.assert_allclose(floats, opaque / np.float32(255), rtol=1e-6)
    path = str(tmp_path / "pictures.kpp")
    for given, text in (("--in=x=1,300", "values from 1 to 300"), ("--set=x=1", "--set=x=1 is for kernels")):
        assert main(["program", "run", path, "--entry", "ints", given]) == 1
        assert text in capsys.readouterr().err
    with pytest.raises(kp.InvalidArgumentError, match="recorded for"):
        program.recorded(pixels[:, :, :2])


OF_THE_SUBGROUP = """#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer S { float s[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) s[i] = x[i] * gl_SubgroupSize; }"""


def test_compare_looks_at_the_state(mgr, tmp_path, capsys):
    x, y, s = mgr.zeros(4), mgr.zeros(4), mgr.zeros(4)
    steps = [mgr.kernel(OF_THE_SUBGROUP).bind(x, s), kp.ops.multiply.bind(x, 2, out=y)]
    path = tmp_path / "state.kpp"
    kp.Program.record(steps, inputs={"x": x}, outputs={"y": y}, state={"s": s}).save(path)
    drivers = [f"--driver={manifest(each)}" for each in ("lavapipe", "swiftshader")]
    assert main(["program", "compare", str(path), *drivers]) == 1
    printed = capsys.readouterr().out
    assert "y: equal" in printed and ": s: 4 differ" in printed


def test_what_copies_write_has_the_type_that_shaders_see(mgr, tmp_path):
    x, y, s, kept = (mgr.zeros(64) for _ in range(4))
    steps = [mgr.kernel(OF_THE_SUBGROUP).bind(x, s), kp.ops.add.bind(kept, s, out=y), kp.OpCopy([s, kept])]
    path = tmp_path / "copies.kpp"
    kp.Program.record(steps, inputs={"x": x}, outputs={"y": y}).save(path)
    (entry,) = kp.load_program(path).on(mgr).values()
    recorded = entry._target((), {})
    *_, (name, written), _ = tracing.traced(recorded, {"x": np.zeros(64, np.float32)})
    assert name == "OpCopy" and [each.dtype for each in written.values()] == [np.float32]


def test_compare_takes_any_names_and_dtypes(mgr, tmp_path, capsys):
    half = mgr.tensor_t(np.ones(8, ml_dtypes.bfloat16))
    other = mgr.zeros(8, ml_dtypes.bfloat16)
    kernel = mgr.kernel(OF_THE_SUBGROUP.replace(" * gl_SubgroupSize", ""), name="two\nlines")
    x, y = mgr.zeros(8), mgr.zeros(8)
    path = tmp_path / "names.kpp"
    kp.Program.record(
        [kernel.bind(x, y), kp.ops.multiply.bind(half, 2, out=other)],
        inputs={"x": x, "half": half},
        outputs={"file": y, "arr_1": other},
    ).save(path)
    drivers = 2 * [f"--driver={manifest('lavapipe')}"]
    assert main(["program", "compare", str(path), *drivers]) == 0
    printed = capsys.readouterr().out
    assert "file: equal" in printed and "arr_1: equal" in printed


def test_steps_of_the_host_are_given_by_name(mgr, tmp_path, monkeypatch, capsys):
    x, y = mgr.zeros(4), mgr.zeros(4)
    step = kp.OpHostCall(lambda: None, reads=[y], writes=[y], name="more")
    program = kp.Program.record(
        [kp.ops.add.bind(x, 1, out=y), step], inputs={"x": x}, outputs={"y": y}, hosts={"more": print}
    )
    program.save(tmp_path / "host.kpp")
    (tmp_path / "steps_of_host.py").write_text("def more(y): y.write(10 * y.read())\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    host = "--host=more=steps_of_host:more"
    assert main(["program", "run", "host.kpp", "--in", "x=1,2,3,4", "--out", "y=-", host]) == 0
    assert capsys.readouterr().out.startswith("[20. 30. 40. 50.]")
    drivers = [f"--driver={manifest(each)}" for each in ("lavapipe", "swiftshader")]
    assert main(["program", "compare", "host.kpp", host, *drivers]) == 0
    assert "y: equal" in capsys.readouterr().out
    for given, text in (("more", "give NAME=MODULE:FUNCTION"), ("more=steps_of_host:less", "no attribute")):
        assert main(["program", "run", "host.kpp", f"--host={given}"]) == 1
        assert text in capsys.readouterr().err


def test_a_driver_that_hangs_has_failed(path, monkeypatch, capsys):
    files = [f"--driver={manifest(each)}" for each in ("null", "lavapipe")]
    monkeypatch.setenv("KP_NULL_DRIVER", f"gpu_us={1000 * 1_000_000}")  # a submission takes so long
    assert main(["program", "compare", str(path), "--entry", "same", *files, "--timeout", "3"]) == 1
    assert "failed: it did not answer within 3 s (--timeout)" in capsys.readouterr().out


def test_compare_keeps_nothing_of_the_steps(mgr, tmp_path, monkeypatch, capsys):
    """They were files before, of all drivers at once: here 48 MiB."""
    x, y = mgr.zeros(1 << 19), mgr.zeros(1 << 19)
    path, folder = tmp_path / "steps.kpp", tmp_path / "temporary"
    kp.Program.record(
        [kp.ops.add.bind(x, number, out=y) for number in range(12)], inputs={"x": x}, outputs={"y": y}
    ).save(path)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    sizes = []

    def looked(one, other):
        sizes.append(sum(each.stat().st_size for each in folder.rglob("*")))
        return difference(one, other)

    monkeypatch.setattr(tracing, "difference", looked)
    drivers = 2 * [f"--driver={manifest('lavapipe')}"]
    assert main(["program", "compare", str(path), *drivers]) == 0
    assert "y: equal" in capsys.readouterr().out
    assert len(sizes) == 13 and max(sizes) < 1 << 20
    assert not list(folder.iterdir())


def test_differences_are_those_of_numbers():
    one = np.array([1, 2, np.nan, np.inf, 0.0, 4], np.float32)
    other = one.copy()
    other[4] = -0.0
    assert difference(one, other).elements == 0
    other[1] = np.nextafter(np.float32(2), np.float32(3))
    found = difference(one, other)
    assert (found.elements, found.ulp) == (1, 1) and found.absolute == 2.0**-22
    assert found.exceeds(0, 0) and not found.exceeds(1e-6, 0) and not found.exceeds(0, 1e-6)
    other[3] = 1
    assert difference(one, other).absolute == np.inf
    other[2] = 0
    assert difference(one, other).elements == 3
    signs = difference(np.array([-1e-45, 1.0], np.float32), np.array([1e-45, 1.0], np.float32))
    assert signs.ulp == 2
    ints = difference(np.array([1, 2**62]), np.array([3, 2**62]))
    assert (ints.elements, ints.absolute, ints.ulp) == (1, 2.0, 0)
    for least in (2**60, np.iinfo(np.int64).min, np.uint64(2**63)):  # where float64 has no neighbours so near
        near = difference(np.array([least]), np.array([least + type(least)(1)]))
        assert (near.elements, near.absolute) == (1, 1.0) and near.exceeds(0, 0)
    assert difference(np.array([True, False]), np.array([True, True])).absolute == 1
    assert difference(np.array([1 + 1j]), np.array([1 + 2j])).absolute == 1
    pair = np.dtype([("n", np.int32), ("x", np.float32)])
    structs = difference(np.array([(1, 2.0), (3, 4.0)], pair), np.array([(1, 2.5), (4, 4.0)], pair))
    assert (structs.elements, structs.absolute) == (1, 1.0)
    small = [np.array(each, ml_dtypes.bfloat16) for each in ([1, np.nan, 2], [1, np.nan, 2.03125])]
    assert difference(*small)[::3] == (1, 2)


def test_results_into_files_and_printed(path, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = ["program", "run", str(path), "--entry", "same", "--in", "x=arange:64"]
    assert main([*run, "--out", "y=-"]) == 0
    assert capsys.readouterr().out.startswith("[ 1.  2.  3.")
    assert main([*run, "--out", "y=one.npy", "--out", "both"]) == 0
    for name in ("one.npy", "both/y.npy"):
        np.testing.assert_array_equal(np.load(name), np.arange(64) + 1)
    assert {each.name for each in tmp_path.iterdir()} == {"program.kpp", "one.npy", "both"}
    capsys.readouterr()
    assert main([*run, "--out", "z=-"]) == 1
    assert "same has no result 'z'" in capsys.readouterr().err
    assert main([*run, "--out", "a", "--out", "b"]) == 1
    assert "--out is given twice: a, b" in capsys.readouterr().err
    assert main([*run, "--out", "y=nowhere/y.npy"]) == 1  # before anything is printed
    told = capsys.readouterr()
    assert "there is no folder nowhere" in told.err and not told.out


def test_two_results_in_one_archive(mgr, tmp_path):
    x, y, z = mgr.zeros(4), mgr.zeros(4), mgr.zeros(4)
    steps = [kp.ops.add.bind(x, 1, out=y), kp.ops.add.bind(x, 2, out=z)]
    kp.Program.record({"two": steps}, inputs={"x": x}, outputs={"y": y, "z": z}).save(tmp_path / "two.kpp")
    archive = tmp_path / "two.npz"
    places = [f"--out={name}={archive}" for name in "yz"]
    assert main(["program", "run", str(tmp_path / "two.kpp"), "--in", "x=1,2,3,4", *places]) == 0
    assert {name: array.tolist() for name, array in np.load(archive).items()} == {
        "y": [2, 3, 4, 5],
        "z": [3, 4, 5, 6],
    }
