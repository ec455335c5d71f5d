"""Operations on devices whose workgroups have 128 invocations at most, as few as Vulkan allows."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._builders import walks
from kompute_py.errors import InvalidArgumentError
from tests.drivers import null_control
from tests.ops.variants import only
from tests.support.child import run_child


def check_builders() -> None:
    mgr = kp.Manager()
    x = mgr.zeros((300, 1000))
    made = [kp.ops.elementwise("x * 2"), kp.ops.elementwise("hypot(x, 1)"), kp.ops.reduction(), kp.ops.scan()]
    for operation in made:
        for given in (x, x[0], x[:, ::2], x.reshape(-1)):
            operation(given)
    for operation in made[2:]:
        for variant in ("run", "shared", "subgroup"):
            for given in (x, x[0], x[:3]):
                operation.variant(variant)(given)
    for function in (kp.ops.softmax, kp.ops.layer_norm, kp.ops.silu, kp.ops.flip, kp.ops.transpose):
        function(x)
        function(mgr.zeros((1, 100_000)))
    kp.ops.concatenate([x, x])
    kp.ops.take(x, mgr.zeros(5, "int32"), 1, "clip")
    kp.ops.matmul(x, kp.ops.transpose(x))
    for function in (kp.ops.sort, kp.ops.argsort, kp.ops.median):
        function(x)
    kp.ops.topk(x, 70)
    kp.ops.segmented_sort(x[0], mgr.zeros(5, "int32"))
    mgr.destroy()
    assert null_control().violations() == []


@pytest.mark.own_driver
def test_workgroups_are_no_larger_than_the_device_allows() -> None:
    run_child(check_builders, driver="null", config="profile=small_limits")


def check_bindings() -> None:
    mgr = kp.Manager()
    most = mgr.get_device_properties()["limits"]["maxPerStageDescriptorStorageBuffers"]
    names = [f"x{n}" for n in range(most)]
    x = mgr.zeros(4)
    kp.ops.elementwise(" + ".join(names[1:]))(*[x] * (most - 1))
    for made in (kp.ops.elementwise(" + ".join(names)), kp.ops.reduction(" + ".join(names), "sum")):
        with pytest.raises(InvalidArgumentError, match=rf"uses {most + 1} tensors, and .* allows {most} \("):
            made(*[x] * most)
    mgr.destroy()


@pytest.mark.own_driver
def test_a_kernel_that_binds_too_much_is_refused_before_it_is_compiled() -> None:
    run_child(check_bindings, driver="null", config="profile=small_limits")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels as such devices get them."""
    monkeypatch.setattr(walks, "_GROUP", walks._LEAST_GROUP)


SHAPES = [(1,), (127,), (128,), (129,), (4099,), (3, 1025), (5, 7, 64), (300, 300)]


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_small_workgroups_compute_the_same(mgr: kp.Manager, small: None, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 5, shape).astype(np.float32)
    given = mgr.tensor_t(x)
    assert np.array_equal(kp.ops.elementwise("x * 2 + y")(given, given).read(), 3 * x)
    assert np.array_equal(kp.ops.elementwise("x + arctan2(x, 1) * 0")(given).read(), x)
    assert np.array_equal(kp.ops.flip(given).read(), np.flip(x))
    assert np.allclose(kp.ops.softmax(given).read().sum(-1), 1)
    total, running, starts = kp.ops.reduction(), kp.ops.scan(), kp.ops.scan(segments="starts")
    marks = mgr.tensor_t(np.arange(x.size, dtype=np.int32).reshape(shape) % 100 == 0)
    for variant in ("run", "shared", "subgroup"):
        for axis in range(-1, len(shape) - 1):
            assert np.array_equal(total.variant(variant)(given, axis=axis).read(), x.sum(axis))
            assert np.array_equal(running.variant(variant)(given, axis=axis).read(), x.cumsum(axis))
        assert float(total.variant(variant)(given).read()) == x.sum()
        expected = np.concatenate([part.cumsum() for part in np.split(x.ravel(), range(100, x.size, 100))])
        found = starts.variant(variant)(given.reshape(-1), marks.reshape(-1))
        assert np.array_equal(found.read(), expected)


@pytest.mark.parametrize("variant", ["run", "subgroup"])
@pytest.mark.parametrize("shape", [(300,), (2**17,), (3, 20_000)], ids=str)
def test_small_workgroups_sort_the_same(
    mgr: kp.Manager, small: None, shape: tuple[int, ...], variant: str
) -> None:
    x = np.random.default_rng(0).integers(-(2**31), 2**31, shape).astype(np.int32)
    x[..., ::3] %= 5
    given, expected = mgr.tensor_t(x), np.sort(x)
    assert np.array_equal(only(kp.ops.sort, variant)(given).read(), expected)
    places = only(kp.ops.argsort, variant)(given).read()
    assert np.array_equal(places, np.argsort(x, axis=-1, kind="stable"))
    parted = only(kp.ops.partition, variant)(given, 70).read()
    assert np.array_equal(parted[..., 70], expected[..., 70])
    assert np.array_equal(np.sort(parted[..., :70]), expected[..., :70])
    assert np.array_equal(np.sort(parted), expected)
    bounds = np.array([5, 5, 9, 280], np.int32)
    found = only(kp.ops.segmented_sort, variant)(given.reshape(-1), mgr.tensor_t(bounds)).read()
    assert np.array_equal(found, np.concatenate([np.sort(part) for part in np.split(x.ravel(), bounds)]))


@pytest.mark.own_driver
def test_portable_programs_run_on_any_device() -> None:
    x = kp.TensorSpec((300, 1000))
    made = [kp.ops.elementwise("x * 2"), kp.ops.reduction(), kp.ops.scan(), kp.ops.scan().variant("shared")]
    for operation in (*made, kp.ops.softmax, kp.ops.flip, kp.ops.sort):
        program = kp.Program.record(operation, x, portable=True)
        for shader in program._core.parts[""].shaders:
            module = kp.ShaderModule(program._core.files[shader.file])
            assert np.prod(module.signature.local_size) <= 128
