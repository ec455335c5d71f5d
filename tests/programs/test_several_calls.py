"""Calls of an entry beside other uses of its memory, and parameters that a program does not have."""

import threading
import warnings

import numpy as np
import pytest

import kompute_py as kp


def tripled(mgr):
    x, y = mgr.zeros(64), mgr.zeros(64)
    return kp.Program.record(kp.ops.multiply.bind(x, 3, out=y), inputs={"x": x}, outputs={"y": y}).on(mgr)


def test_calls_beside_a_recording_of_the_entry(mgr):
    program = tripled(mgr)
    bound = mgr.sequence().record(program.main.bind(mgr.zeros(64)))
    ended = threading.Event()

    def evaluate():
        while not ended.is_set():
            bound.eval()

    thread = threading.Thread(target=evaluate)
    thread.start()
    try:
        for k in range(50):
            x, out = np.arange(k, k + 64, dtype=np.float32), np.empty(64, np.float32)
            np.testing.assert_array_equal(program.main(x), x * 3)
            assert program.main(x, out=out) is out
            np.testing.assert_array_equal(out, x * 3)
    finally:
        ended.set()
        thread.join()


def test_parameters_that_a_program_does_not_have_are_refused(mgr, tmp_path):
    weight, x, y = mgr.full(4, 1), mgr.zeros(4), mgr.zeros(4)
    step = kp.ops.multiply.bind(x, weight, out=y)
    program = kp.Program.record(step, inputs={"x": x}, outputs={"y": y}, parameters={"weight": weight})
    program.save(tmp_path / "a.kpp")
    nine = np.full(4, 9, np.float32)
    with pytest.raises(kp.InvalidArgumentError, match="has 'wieght', and the program has 'weight'"):
        kp.load_program(tmp_path / "a.kpp", parameters={"wieght": nine})
    loaded = kp.load_program(tmp_path / "a.kpp", parameters={"weight": nine}).on(mgr)
    assert loaded.main(np.ones(4, np.float32)).tolist() == [9, 9, 9, 9]


@pytest.mark.parametrize("as_index", [False, True])
def test_a_file_of_parameters_is_not_ignored(mgr, tmp_path, as_index):
    """It may have more names; without one of the program's it is refused, and what it lacks is said."""
    weight, bias, x, y = mgr.full(4, 1), mgr.full(4, 2), mgr.zeros(4), mgr.zeros(4)
    steps = mgr.sequence().record(kp.ops.multiply.bind(x, weight, out=y), kp.ops.add.bind(y, bias, out=y))
    parameters = {"weight": weight, "bias": bias}
    kp.Program.record(steps, inputs={"x": x}, outputs={"y": y}, parameters=parameters).save(
        tmp_path / "a.kpp"
    )

    def load(**given):
        path = tmp_path / "given.safetensors"
        kp.save_tensors(path, {name: np.full(4, value, np.float32) for name, value in given.items()})
        source = kp.tensor_file_info(path) if as_index else path
        return kp.load_program(tmp_path / "a.kpp", parameters=source).on(mgr).main(np.ones(4, np.float32))

    with pytest.raises(
        kp.InvalidArgumentError, match=r"has 'fc\.weight', and the program has 'bias', 'weight'"
    ):
        load(**{"fc.weight": 9})
    with pytest.warns(kp.KomputeWarning, match="lacks 'bias': the program's own contents stay"):
        assert load(weight=9, other=3).tolist() == [11, 11, 11, 11]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load(weight=9, bias=1, other=3).tolist() == [10, 10, 10, 10]
