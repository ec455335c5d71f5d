"""One call of a program on several Managers, also of two drivers: `Program.on` with a list."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child

from .test_programs import ADD, SCALE

X = np.arange(16, dtype=np.float32)


@pytest.fixture
def managers(mgr):
    other = kp.Manager()
    yield [mgr, other]
    other.destroy()


def program_of(mgr) -> kp.Program:
    """Kernels, a function, and a recording with state: y = 2 x + 1 + the number of calls so far."""
    x, y, count = mgr.zeros((4, 2)), mgr.zeros((4, 2)), mgr.zeros(1)
    with mgr.current():
        return kp.Program.record(
            {
                "run": [
                    mgr.kernel(SCALE).bind(x, y, plus=1.0),
                    kp.ops.add.bind(y, count, out=y),
                    mgr.kernel(ADD).bind(count, by=1.0),
                ],
                "scale": mgr.kernel(SCALE),
                "add": mgr.kernel(ADD),
                "sum": (kp.ops.sum, kp.TensorSpec((8,))),
                "sort": [(kp.ops.sort, kp.TensorSpec((n,))) for n in (4, 8)],
            },
            inputs={"x": x},
            outputs={"y": y},
            state={"count": count},
        )


@pytest.mark.capability("P50", "one call of a program on several devices", "Program.on", "guides/programs")
def test_one_call_on_several_managers(mgr, managers):
    check(program_of(mgr), managers)


def check(program: kp.Program, managers: list[kp.Manager]) -> None:
    both = program.on(managers)
    both.preload()
    x = X.reshape(8, 2)
    halves = np.split(x, 2)
    for calls in range(3):
        expected = 2 * x + 1 + calls
        if calls == 0:
            result = both.run(x)
        elif calls == 1:
            result = np.empty_like(x)
            assert both.run(x, out=result) is result
        else:
            tensors = [m.tensor(part) for m, part in zip(managers, halves, strict=True)]
            listed = both.run(x=tensors)
            assert [type(each) for each in listed] == [kp.Tensor] * 2
            assert [each.manager for each in listed] == managers
            result = np.concatenate([each.read() for each in listed])
        np.testing.assert_array_equal(result, expected)
    assert [program.on(m).state["count"].tolist() for m in managers] == [[3.0], [3.0]]
    fence = both.run.submit(tensors, donate="x")
    ((one, other),) = fence.wait().results
    np.testing.assert_array_equal(np.concatenate([one.read(), other.read()]), 2 * x + 4)
    assert not any(each.is_init() for each in tensors)
    both.reset()
    assert [program.on(m).state["count"].tolist() for m in managers] == [[0.0], [0.0]]
    np.testing.assert_array_equal(both.sum(X), [X[:8].sum(), X[8:].sum()])
    mixed = X[::-1].copy()
    np.testing.assert_array_equal(both.sort(mixed), np.concatenate([np.sort(mixed[:8]), np.sort(mixed[8:])]))
    np.testing.assert_array_equal(both.sort(mixed[:8]), [12, 13, 14, 15, 8, 9, 10, 11])

    parts = np.split(X, 2)
    for got, part in zip(both.scale(parts, plus=1.0), parts, strict=True):
        np.testing.assert_array_equal(got, 2 * part + 1)
    one, other = both.scale([X[:3], X], plus=[1.0, 2.0])
    np.testing.assert_array_equal(one, 2 * X[:3] + 1)
    np.testing.assert_array_equal(other, 2 * X + 2)
    written = [part.copy() for part in parts]
    got = both.add(written, by=5.0)
    assert got[0] is written[0] and got[1] is written[1]
    np.testing.assert_array_equal(np.concatenate(written), X + 5)
    outs = [m.zeros(8) for m in managers]
    assert both.scale([m.tensor(X[:8]) for m in managers], outs, plus=0.0) is None
    for out in outs:
        np.testing.assert_array_equal(out.read(), 2 * X[:8])


def test_several_results_and_given_memory(mgr, managers):
    x, y, z = mgr.zeros(4), mgr.zeros(4), mgr.zeros(4)
    program = kp.Program.record(
        [mgr.kernel(SCALE).bind(x, y, plus=1.0), mgr.kernel(SCALE).bind(y, z, plus=0.0)],
        inputs={"x": x},
        outputs={"y": y, "z": z},
    ).on(managers)
    y8, z8 = program.main(X[:8])
    np.testing.assert_array_equal(y8, 2 * X[:8] + 1)
    np.testing.assert_array_equal(z8, 4 * X[:8] + 2)
    outs = np.empty(8, np.float32), [m.zeros(4) for m in managers]
    got = program.main(X[:8], out=outs)
    np.testing.assert_array_equal(outs[0], y8)
    np.testing.assert_array_equal(np.concatenate([each.read() for each in outs[1]]), z8)
    assert got[0] is outs[0] and all(a is b for a, b in zip(got[1], outs[1], strict=True))


def test_they_work_at_the_same_time(mgr, managers):
    """Each step of the host waits for that of the other Manager."""
    both_here = threading.Barrier(2, timeout=30)

    def meet(tensor: kp.Tensor) -> None:
        both_here.wait()
        tensor.write(tensor.read() + 1)

    y = mgr.zeros(4)
    step = kp.OpHostCall(lambda: None, reads=[y], writes=[y], name="meet")
    program = kp.Program.record(
        mgr.sequence().record(step), inputs={"y": y}, outputs={"y": y}, hosts={"meet": meet}
    )
    np.testing.assert_array_equal(program.on(managers).main(X[:8]), X[:8] + 1)


def test_mistakes(mgr, managers):
    program = program_of(mgr)
    both = program.on(managers)
    for wrong, error in (
        ((), kp.InvalidArgumentError),
        ([mgr, mgr], kp.InvalidArgumentError),
        ([mgr, 3.5], TypeError),
        (None, TypeError),
    ):
        with pytest.raises(error, match="on takes a Manager or a device"):
            program.on(wrong)
    with pytest.raises(kp.InvalidArgumentError, match=r"run: argument 0 is a list of 3; on 2 Managers"):
        both.run([X, X, X])
    with pytest.raises(kp.ArgumentTypeError, match="run: argument 0 is a Tensor; on 2 Managers, give a list"):
        both.run(mgr.zeros((8, 2)))
    with pytest.raises(kp.InvalidArgumentError, match=r"run: x has shape \(2, 2\); it was recorded for"):
        both.run(X[:8].reshape(4, 2))
    for given in (X, X.tolist()[:2]):  # a kernel takes any shape: nothing tells an array to cut from others
        with pytest.raises(kp.KomputeError):
            both.scale(given, plus=1.0)
    with pytest.raises(kp.ArgumentTypeError, match=r"scale: x is an ndarray.*np.array_split\(x, n\)"):
        both.scale(x=X, plus=1.0)
    with pytest.raises(kp.UnimplementedError, match="on several Managers takes neither wait nor signal"):
        both.run.submit([m.zeros((4, 2)) for m in managers], wait=mgr.semaphore().at(1))
    with pytest.raises(kp.UnimplementedError, match="bind makes an operation of one Manager"):
        both.run.bind(X)
    with pytest.raises(kp.InvalidArgumentError, match="state memory of its own, and this program is on 2"):
        both.state  # noqa: B018
    with pytest.raises(kp.InvalidArgumentError, match="belongs to another Manager"):
        both.run([m.zeros((4, 2)) for m in reversed(managers)])


def test_devices_stand_for_the_managers_of_the_process(mgr):
    info = mgr.get_device_properties()
    program = program_of(mgr)
    for device in (info.vulkan_index, info, info.device_name, f"vulkan://{info.uuid}?wait_mode=block"):
        with kp.manager(device) as own:
            result = program.on(device).scale(own.tensor([1, 2]), plus=1.0)
            assert result.manager is kp.manager(device) is own
        own.destroy()
    with pytest.raises(kp.NotFoundError, match="'nowhere'"):
        program.on([mgr, "vulkan://nowhere"])


def on_two_drivers() -> list[str]:
    managers = [kp.Manager(each) for each in kp.list_devices()]
    check(program_of(managers[0]), managers)
    return [each.driver.name for each in managers]


@pytest.mark.own_driver
def test_one_call_on_two_drivers():
    assert len(set(run_child(on_two_drivers, driver="lavapipe+swiftshader"))) == 2


def first_calls_of_two_threads() -> list[list[float]]:
    managers = [kp.Manager(), kp.Manager()]
    program = kp.Program.record({"scale": managers[0].kernel(SCALE)}).on(managers)
    xs = [np.ones(2, np.float32), np.ones(2, np.float32)]
    return [y.tolist() for y in program.scale(xs, [np.empty(2, np.float32) for _ in xs], plus=1.0)]


def test_the_first_calls_of_a_process_may_come_from_two_threads():
    # They once waited for each other: one imported NumPy in a static variable's initializer, without the lock
    # of the interpreter, and the other waited for the variable with it.
    assert run_child(first_calls_of_two_threads, timeout=60) == [[3, 3], [3, 3]]
