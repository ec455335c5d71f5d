"""Products by cooperative matrices, where the device and the compiler have them."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.ops._linear import cooperative as _cooperative
from tests.ops.linear.test_matrices import numbers
from tests.support.child import run_child

pytestmark = pytest.mark.each_driver

SHAPES = [
    ((64, 64), (64, 64)), ((1, 1), (1, 1)), ((33, 17), (17, 41)), ((100, 300), (300, 70)),
    ((20, 5000), (5000, 20)), ((2, 3, 40, 30), (3, 30, 50)),
]  # fmt: skip


@pytest.fixture
def together(mgr, needs):
    """`kp.ops.matmul` by cooperative matrices; skips without them."""
    needs(mgr, "cooperativeMatrix")
    if not _cooperative.takes_extension(_cooperative.EXTENSION):
        pytest.skip("the compiler of GLSL is older than GL_KHR_cooperative_matrix")
    with mgr.current():
        yield kp.ops.matmul.variant("matrix")


@pytest.mark.capability("", "cooperative matrices", "kp.ops.matmul", "reference/ops_matrices")
@pytest.mark.parametrize(("left", "right"), SHAPES, ids=str)
def test_any_shapes(together, left, right):
    a, b = numbers("float16", left), numbers("float16", right, 1)
    wide = a.astype(np.float64), b.astype(np.float64)
    for named, result in (({}, 2.0**-11), ({"dtype": "float32"}, 2.0**-24)):
        want, most = np.matmul(*wide), np.matmul(*map(np.abs, wide))
        bound = 2 * (left[-1] + 1) * 2.0**-24 * most + result * np.abs(want)
        assert (np.abs(together(a, b, **named).astype(np.float64) - want) <= bound).all()
    for dtype in ("int8", "uint8"):
        a, b = numbers(dtype, left), numbers(dtype, right, 1)
        np.testing.assert_array_equal(together(a, b), np.matmul(a, b))
        got = together(a, b, dtype="int32")
        np.testing.assert_array_equal(got, np.matmul(a.astype(np.int32), b.astype(np.int32)))


def test_turned_sides_and_parts_of_tensors(together, mgr):
    a, b = mgr.tensor_t(numbers("int8", (90, 40))), mgr.tensor_t(numbers("int8", (60, 90), 1))
    x, y = a.read().astype(np.int32), b.read().astype(np.int32)
    got = together(a, b, transpose_a=True, transpose_b=True, dtype="int32").read()
    np.testing.assert_array_equal(got, x.T @ y.T)
    np.testing.assert_array_equal(together(b[::2], a[:, 3:30], dtype="int32").read(), y[::2] @ x[:, 3:30])


def test_the_compiler_is_asked():
    assert _cooperative.takes_extension("GL_KHR_shader_subgroup_basic")
    assert not _cooperative.takes_extension("GL_KHR_no_such_extension")


def facts_and_ways(compiler, extension):
    """What a device of the null driver says, and the variants of products there."""
    _cooperative.takes_extension = lambda name: name == extension and compiler
    with kp.Manager() as mgr:
        found = []
        for dtype, rows in (
            ("float16", 100),
            ("float16", 3),
            ("int8", 100),
            ("uint8", 100),
            ("float32", 100),
        ):
            a, b = mgr.zeros((rows, 50), dtype), mgr.zeros((50, 100), dtype)
            try:
                kp.ops.matmul.variant("another")(a, b)
            except kp.InvalidArgumentError as error:
                found.append(str(error).rpartition("it has ")[2])
        features = {"cooperativeMatrix", "cooperativeMatrixRobustBufferAccess"} & set(mgr.enabled_features)
        return mgr.get_device_properties().cooperative_matrices, sorted(features), found


MATRICES = [
    {"rows": 16, "columns": 16, "depth": 16, "left": "float16", "right": "float16", "added": "float32"},
    {"rows": 16, "columns": 16, "depth": 32, "left": "int8", "right": "int8", "added": "int32"},
]


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("config", "compiler", "ways"),
    [
        ("cooperative=1", True, ["matrix, tile", "run, tile", "matrix, tile", "tile", "tile"]),
        ("cooperative=1", False, ["tile", "run, tile", "tile", "tile", "tile"]),
        ("cooperative=1,float16=0", True, ["tile", "run, tile", "matrix, tile", "tile", "tile"]),
        ("cooperative=1,maxComputeSharedMemorySize=8192", True, ["tile", "run, tile", "tile"]),
        ("cooperative=1,disable=computeFullSubgroups", True, ["tile", "run, tile", "tile"]),
        ("cooperative=0", True, ["tile", "run, tile", "tile"]),
    ],
)
def test_the_device_and_the_compiler_choose(config, compiler, ways):
    matrices, features, found = run_child(
        facts_and_ways, compiler, _cooperative.EXTENSION, driver="null", config=config
    )
    there = "cooperative=1" in config
    more = {"saturating": False, "scope": "subgroup"}
    assert matrices == [{**each, "result": each["added"], **more} for each in MATRICES] * there
    assert features == ["cooperativeMatrix", "cooperativeMatrixRobustBufferAccess"] * there
    assert found[: len(ways)] == ways


def test_without_the_extension_a_shader_is_refused(mgr):
    from tests.shaders.test_module_needs import with_capability

    if "cooperativeMatrix" in mgr.enabled_features:
        pytest.skip("this device has cooperative matrices")
    with pytest.raises(
        kp.UnimplementedError, match="'cooperativeMatrix' of the extension VK_KHR_cooperative"
    ):
        mgr.kernel(with_capability(6022))
