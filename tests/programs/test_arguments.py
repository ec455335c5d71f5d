"""The arguments of a program's entries: which recording they choose, how they are given, and again."""

from __future__ import annotations

import io

import numpy as np
import pytest

import kompute_py as kp
from tests.support.operations import Like


def again(program: kp.Program) -> kp.Program:
    """The program, saved and loaded."""
    file = io.BytesIO()
    program.save(file)
    return kp.load_program(file.getvalue())


@kp.CustomOp.register
class same(Like):
    signature = "same(Tensor x) -> Tensor"

    def generate(self, ksel, kb):
        kb.yield_results("x_load(i)")


@pytest.mark.parametrize(
    ("specs", "argument", "expected"),
    [
        (["float16", "float32"], np.zeros(2, np.float32), np.float32),
        (["float16", "float32"], np.zeros(2, ">f2"), np.float16),
        (
            ["float16", "float32"],
            [0, 0],
            r"than int64\[2\]: main\(x: float16\[2\]\).*main\(x: float32\[2\]\)",
        ),
        (["float16", "float32"], np.zeros(2), r"than float64\[2\]"),
        (["uint8", "float32"], [300.0, 0.5], "than float64"),
        (["int32", "int64"], [0, 0], np.int64),
        (["int32", "float32"], np.zeros(3, np.int32), r"than int32\[3\]"),
        (["int32", "float32"], np.zeros((1, 2), np.int32), "than int32"),
        ([(3, "int32"), (2, "float32")], [0, 0], np.float32),
        ([(0, "int32"), (2, "float32")], np.zeros(2, np.float32), np.float32),
        ([(0, "int32"), (2, "float32")], np.zeros(0, np.int32), np.int32),
        ([(0, "int32"), (2, "float32")], [], np.int32),
        ([((), "int32"), (2, "float32")], 3, np.int32),
        ([((), "int32"), ((), "float32")], np.float32(3), np.float32),
        ([((), "int32"), ((), "float32")], 3, r"than int64\[\]"),
    ],
)
def test_the_recording_follows_from_what_numpy_sees(mgr, specs, argument, expected):
    if "int64" in specs and "shaderInt64" not in mgr.enabled_features:
        pytest.skip("the device has no int64")
    given = [kp.TensorSpec(*((2, each) if isinstance(each, str) else each)) for each in specs]
    entry = kp.Program.record({"main": [(same, each) for each in given]}, portable=True).on(mgr).main
    if isinstance(expected, str):
        with pytest.raises(kp.InvalidArgumentError, match=expected):
            entry(argument)
        return
    assert entry(argument).dtype == expected
    assert entry(x=argument).shape == np.shape(argument)


def test_recordings_of_different_numbers_of_arrays(mgr):
    ones = [kp.TensorSpec(2)]
    with mgr.current():
        program = kp.Program.record({"join": [(kp.ops.concatenate, ones * count) for count in (3, 2, 4)]})
    entry = again(program).on(mgr).join
    arrays = np.arange(8, dtype=np.float32).reshape(4, 2)
    tensors, out = [mgr.tensor(each) for each in arrays], mgr.zeros(4)
    for _ in range(2):
        for count in (2, 3, 4):
            assert entry(*arrays[:count]).tolist() == list(range(2 * count))
            assert entry(*tensors[:count]).tolist() == list(range(2 * count))
        entry(*tensors[:2], out=out)
        assert out.tolist() == [0, 1, 2, 3]
        assert entry(**{f"arrays{n}": each for n, each in enumerate(arrays[:3])}).tolist() == list(range(6))
    with pytest.raises(kp.ArgumentTypeError, match=r"given 1 by position .*: join\(.*; join\(.*; join\("):
        entry(arrays[0])


@pytest.mark.parametrize("portable", [False, True])
def test_arguments_without_elements_are_arguments(mgr, portable):
    with mgr.current():
        entries = {
            "exp": (kp.ops.exp, kp.TensorSpec(0)),
            "add": (kp.ops.add, kp.TensorSpec((0, 3)), kp.TensorSpec((0, 3))),
            "join": (kp.ops.concatenate, [kp.TensorSpec(0), kp.TensorSpec(3)]),
            "product": (kp.ops.matmul, kp.TensorSpec((2, 0)), kp.TensorSpec((0, 3))),
        }
        program = again(kp.Program.record(entries, portable=portable)).on(mgr)
    empty = np.zeros(0, np.float32)
    assert program.exp(empty).shape == (0,)
    assert program.add(empty.reshape(0, 3), mgr.tensor(empty.reshape(0, 3))).shape == (0, 3)
    assert program.join(empty, [1, 2, 3]).tolist() == [1, 2, 3]
    assert program.product(empty.reshape(2, 0), empty.reshape(0, 3)).tolist() == [[0, 0, 0]] * 2
    with pytest.raises(kp.InvalidArgumentError, match=r"shape \(1,\); it was recorded for \(0,\)"):
        program.exp([1])


def test_calls_again_by_position_and_by_name(mgr):
    x, y, z = (mgr.zeros(4) for _ in range(3))
    program = kp.Program.record(
        kp.ops.subtract.bind(x, y, out=z), inputs={"x": x, "y": y}, outputs={"z": z}
    ).on(mgr)
    a, b, out = mgr.tensor([1, 2, 3, 4]), mgr.tensor([4, 4, 4, 4]), mgr.zeros(4)
    for _ in range(3):
        for args, named, expected in (
            ((a, b), {}, [-3, -2, -1, 0]),
            ((b, a), {}, [3, 2, 1, 0]),
            ((a,), {"y": b}, [-3, -2, -1, 0]),
            ((), {"y": a, "x": b}, [3, 2, 1, 0]),
        ):
            results = [program.main(*args, **named) for _ in range(2)]
            assert [each.tolist() for each in results] == [expected] * 2
            assert program.main(*args, **named, out=out) is out
            assert out.tolist() == expected
            assert program.main.submit(*args, **named).results[0].tolist() == expected
            program.main.submit(*args, **named, out=out).wait()
            assert out.tolist() == expected
        for args, named in (((a,), {"x": b}), ((a, b), {"x": a}), ((), {"x": a, "donate": "x"})):
            with pytest.raises(kp.ArgumentTypeError, match="takes each of its inputs once"):
                program.main(*args, **named)


def test_results_that_overlap_are_refused(mgr):
    x, y, z = (mgr.zeros(4) for _ in range(3))
    steps = [kp.ops.add.bind(x, 1, out=y), kp.ops.add.bind(x, 2, out=z)]
    program = kp.Program.record(steps, inputs={"x": x}, outputs={"y": y, "z": z}).on(mgr)
    out, array = mgr.zeros(8), np.zeros(8, np.float32)
    for pair in ((out[:4], out[2:6]), (y, y), (array[:4], array[2:6])):
        with pytest.raises(kp.InvalidArgumentError, match=r"main: two of the tensors .* share memory"):
            program.main(x, out=pair)
    for whole in (out, array):
        program.main(x, out=(whole[:4], whole[4:]))
        assert whole.tolist() == [1, 1, 1, 1, 2, 2, 2, 2]


def test_two_recordings_for_the_same_arguments_are_refused(mgr):
    specs = kp.TensorSpec(4), kp.TensorSpec((2, 2))
    with mgr.current(), pytest.raises(kp.InvalidArgumentError, match="two recordings for the same shapes"):
        kp.Program.record([(kp.ops.exp, specs[0]), (kp.ops.exp, specs[1]), (kp.ops.log, specs[0])])


def test_views_of_other_dtypes_are_other_arguments(mgr):
    negative = kp.ops.negative
    specs = [kp.TensorSpec(4, np.float32), kp.TensorSpec(4, np.int32)]
    with mgr.current():
        entry = kp.Program.record([(negative, spec) for spec in specs]).on(mgr).main
    x, out = mgr.tensor([1, 2, 3, 4]), mgr.zeros(4)
    for _ in range(3):
        entry(x, out=out)
        assert out.tolist() == [-1, -2, -3, -4]
        entry(x.view(np.int32), out=out.view(np.int32))
        assert out.view(np.int32).tolist() == (-x.view(np.int32).read()).tolist()
