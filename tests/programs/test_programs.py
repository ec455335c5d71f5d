"""Programs: recorded from what scripts have, and called with all kinds of arguments."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._programs.running import RecordedForm
from tests.support.threads import on_threads

SCALE = """
layout(local_size_x = 64) in;
layout(constant_id = 0) const float BY = 2.0;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float plus; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = BY * x[i] + plus; }
"""
ADD = """
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { float by; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += by; }
"""
X = np.arange(1, 9, dtype=np.float32)


def again(program: kp.Program, tmp_path, **how) -> kp.Program:
    """The program, saved and loaded."""
    program.save(tmp_path / "program.kpp")
    return kp.load_program(tmp_path / "program.kpp", **how)


@pytest.fixture
def pipeline(mgr):
    """y = (2 x + 1) + weights, and the number of calls in `count`."""
    x, y = mgr.zeros(8), mgr.zeros(8)
    weights, count = mgr.tensor(np.linspace(0, 1, 8)), mgr.zeros(1)
    sequence = mgr.sequence().record(
        kp.OpSyncDevice([x, weights]), mgr.kernel(SCALE).bind(x, y, plus=1.0),
        kp.ops.add.bind(y, weights, out=y), mgr.kernel(ADD).bind(count, by=1.0), kp.OpSyncLocal([y]),
    )  # fmt: skip
    return kp.Program.record(
        {"run": sequence}, inputs={"x": x}, outputs={"y": y}, state={"count": count},
        parameters={"weights": weights},
    )  # fmt: skip


EXPECTED = 2 * X + 1 + np.linspace(0, 1, 8).astype(np.float32)


def test_a_recording_computes_after_loading_what_it_computed(mgr, pipeline, tmp_path):
    loaded = again(pipeline, tmp_path).on(mgr)
    for program in (pipeline.on(mgr), loaded):
        np.testing.assert_array_equal(program.run(X), EXPECTED)
        np.testing.assert_array_equal(program["run"](x=X.tolist()), EXPECTED)
        assert program.state["count"].tolist() == [2.0]
        program.reset()
        assert program.state["count"].tolist() == [0.0]
    assert loaded.exports == ("run",) and "run" in loaded and "no" not in loaded and loaded.get("no") is None
    assert str(loaded) == str(pipeline)
    assert "run(x: float32[8]) -> (y: float32[8])" in str(loaded)


@pytest.mark.parametrize("kind", ["tensor", "view", "strided", "image"])
def test_tensors_are_taken_where_they_are_and_stay_as_they_are(mgr, pipeline, kind):
    program = pipeline.on(mgr)
    given = {
        "tensor": lambda: mgr.tensor(X),
        "view": lambda: mgr.tensor(np.concatenate([X, X]))[8:],
        "strided": lambda: mgr.tensor(np.repeat(X, 2))[::2],
        "image": lambda: mgr.image(X, dims=1),
    }[kind]()
    out = mgr.zeros(8)
    for _ in range(4):
        result = program.run(given)
        assert isinstance(result, kp.Tensor)
        np.testing.assert_array_equal(result.read(), EXPECTED)
        assert program.run(given, out=out) is out
        np.testing.assert_array_equal(out.read(), EXPECTED)
        out.fill(0)
    np.testing.assert_array_equal(given.read(), X)
    assert program.state["count"].tolist() == [8.0]


def test_an_input_that_the_recording_writes_is_not_changed(mgr):
    x = mgr.zeros(8)
    program = kp.Program.record(mgr.kernel(ADD).bind(x, by=3.0), inputs={"x": x}, outputs={"y": x})
    given, out = mgr.tensor(X), mgr.zeros(8)
    for _ in range(3):
        program.main(given, out=out)
        np.testing.assert_array_equal(out.read(), X + 3)
        np.testing.assert_array_equal(given.read(), X)
    program.main(given, out=given)
    np.testing.assert_array_equal(given.read(), X + 3)


def test_inputs_have_any_names(mgr):
    x, y, z = mgr.zeros(8), mgr.zeros(8), mgr.zeros(8)
    add = kp.ops.add.bind(x, y, out=z)
    program = kp.Program.record(add, inputs={"in": x, "class": y}, outputs={"z": z}).on(mgr)
    np.testing.assert_array_equal(program.main(X, 2 * X), 3 * X)
    np.testing.assert_array_equal(program.main(X, **{"class": 2 * X}), 3 * X)
    np.testing.assert_array_equal(program.main(**{"class": X, "in": X}), 2 * X)


def test_other_arguments_follow_at_once(mgr, pipeline):
    program = pipeline.on(mgr)
    out = mgr.zeros(8)
    for number in range(50):  # tensors come and go; numbers of objects are used again
        given = mgr.tensor(X * number)
        program.run(given, out=out)
        program.run(given, out=out)
        np.testing.assert_allclose(out.read(), EXPECTED - 2 * X + 2 * X * number, rtol=1e-6)
        del given
        gc.collect()
    given = mgr.tensor(X)
    program.run(given, out=out)
    program.run(given, out=out)
    given.write(X * 3)
    program.run(given, out=out)
    np.testing.assert_allclose(out.read(), EXPECTED + 4 * X, rtol=1e-6)


@pytest.mark.capability(
    "P49",
    "results in the memory of donated inputs",
    "kp.errors.DonatedTensorError",
    "reference/operation_rules",
)
def test_donated_inputs_are_ended(mgr, pipeline):
    program = pipeline.on(mgr)
    given, out = mgr.tensor(X), mgr.zeros(8)
    program.run(given, out=out)
    program.run(given, out=out)
    program.run(given, out=out, donate="x")
    np.testing.assert_array_equal(out.read(), EXPECTED)
    with pytest.raises(kp.FailedPreconditionError, match="run"):
        given.read()
    with pytest.raises(kp.FailedPreconditionError, match="run"):
        program.run(given, out=out)
    for wrong in ("y", 1, [X]):
        with pytest.raises(kp.InvalidArgumentError, match="donate"):
            program.run(mgr.tensor(X), donate=wrong)
    with pytest.raises(kp.InvalidArgumentError, match="cannot be donated"):
        program.run(X, donate="x")
    np.testing.assert_array_equal(program.run(X, donate=True), EXPECTED)  # no Tensor, nothing to donate


def test_a_bound_entry_is_an_operation(mgr, pipeline):
    given = mgr.tensor(X)
    operation = pipeline.run.bind(given)
    sequence = mgr.sequence().record(operation, kp.OpSyncLocal(list(operation.results)))
    for number in (1, 2, 3):
        given.write(X * number)
        sequence.eval()
        expected = EXPECTED + 2 * X * (number - 1)
        np.testing.assert_allclose(operation.results[0].data(), expected, rtol=1e-6)
    assert pipeline.on(mgr).state["count"].tolist() == [3.0]


def test_threads_share_a_program(mgr, pipeline):
    program = pipeline.on(mgr)

    def work(number: int) -> None:
        given, out = mgr.tensor(X * number), mgr.zeros(8)
        for _ in range(20):
            program.run(given, out=out)
            np.testing.assert_array_equal(out.read(), program.run(X * number))

    on_threads(work, range(4))
    assert program.state["count"].tolist() == [160.0]


def test_kernels_keep_their_constants_and_their_calls(mgr, tmp_path):
    kernel = mgr.kernel(SCALE, name="scale").specialize(BY=5.0)
    program = again(kp.Program.record({"plain": mgr.kernel(SCALE), "five": kernel}), tmp_path).on(mgr)
    np.testing.assert_array_equal(program.five(X, plus=1.0), 5 * X + 1)
    np.testing.assert_array_equal(program.plain(X, plus=1.0), 2 * X + 1)
    np.testing.assert_array_equal(program.five(X[:3], plus=0.0), 5 * X[:3])
    out = mgr.zeros(8)
    program.five.submit(mgr.tensor(X), out, plus=2.0).wait()
    np.testing.assert_array_equal(out.read(), 5 * X + 2)
    assert program.five.kind == "kernel"
    assert program.five.signatures == (f"five{kernel.signature.text('')!s}",)
    with pytest.raises(kp.InvalidArgumentError, match="plus"):
        program.five(X)


@pytest.mark.each_driver
def test_bounds_of_kernels_are_kept(mgr, tmp_path):
    if "robustBufferAccess2" not in mgr.enabled_features:
        pytest.skip("the device has no robustBufferAccess2")
    kernel = mgr.kernel(SCALE, bounds="zero")
    program = again(kp.Program.record(kernel), tmp_path).on(mgr)
    assert program.main._target((), {})._version.zero


def test_functions_of_several_shapes(mgr, tmp_path):
    shapes = [(4, 8), (3,), (2, 2, 2)]
    with mgr.current():
        program = kp.Program.record({"exp": [(kp.ops.exp, kp.TensorSpec(shape)) for shape in shapes]})
    loaded = again(program, tmp_path).on(mgr)
    for shape in shapes:
        x = np.random.default_rng(1).random(shape, np.float32)
        np.testing.assert_array_equal(loaded.exp(x), kp.ops.exp(mgr.tensor_t(x)).read())
    with pytest.raises(
        kp.InvalidArgumentError, match=r"other shapes and dtypes than float32\[5\]: exp\(x: float32\[4, 8\]\)"
    ):
        loaded.exp(np.zeros(5, np.float32))
    assert len(loaded.exp.signatures) == 3


@pytest.mark.capability("W46", "one operation called, recorded and saved", "kp.Program", "guides/programs")
@pytest.mark.parametrize(
    ("function", "args"),
    [
        (kp.ops.fft, (np.arange(12, dtype=np.complex64),)),
        (kp.ops.softmax, (np.arange(12, dtype=np.float32).reshape(3, 4),)),
        (kp.ops.matmul, (np.ones((3, 4), np.float32), np.ones((4, 5), np.float32))),
        (kp.ops.concatenate, ([np.arange(3, dtype=np.int32), np.arange(4, dtype=np.int32)],)),
        (kp.ops.sort, (np.random.default_rng(2).random(1000, np.float32),)),
        (kp.ops.cumsum, (np.arange(5000, dtype=np.int32),)),
        (kp.ops.sum, (np.arange(100, dtype=np.uint8),)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_functions_compute_the_same_as_programs(mgr, tmp_path, function, args):
    with mgr.current():
        expected = function(*args)
        program = again(kp.Program.record(function, *args), tmp_path)
        given = args[0] if isinstance(args[0], list) else args
        for _ in range(2):
            np.testing.assert_array_equal(program.main(*given), expected)
        assert program.main(*given).dtype == expected.dtype


@pytest.mark.capability("", "state from call to call", "Program.state", "reference/programs")
def test_entries_share_memory(mgr, tmp_path):
    x, total = mgr.zeros(8), mgr.zeros(8)
    program = kp.Program.record(
        {
            "clear": kp.OpFill([total], 7.0),
            "add": kp.ops.add.bind(total, x, out=total),
            "get": kp.OpCopy([total, x]),
        },
        inputs={"x": x},
        outputs={"total": total},
        state={"total": total},
    )
    loaded = again(program, tmp_path).on(mgr)
    assert loaded.add.signatures == ("add(x: float32[8]) -> (total: float32[8])",)
    assert loaded.clear.signatures == ("clear() -> (total: float32[8])",)
    loaded.clear()
    loaded.add(X)
    np.testing.assert_array_equal(loaded.add(X), 7 + 2 * X)
    np.testing.assert_array_equal(loaded.state["total"].read(), 7 + 2 * X)


def test_repetitions_copies_fills_and_images(mgr, tmp_path):
    a, b = mgr.zeros(8), mgr.zeros(8)
    image = mgr.image(np.zeros((2, 4), np.float32))
    half = mgr.image(np.zeros((1, 4), np.float32))
    kernel = mgr.kernel(SCALE)
    sequence = mgr.sequence().record(
        kp.OpRepeat(kernel.bind(a, b, plus=1.0), 5, swap=[(a, b)]),
        kp.OpCopy([b, image]),
        kp.OpCopyRegion(image, half, source_region=np.s_[1:2, 0:4]),
        kp.OpFill([a[2:4]], 9.0),
    )
    program = again(
        kp.Program.record(sequence, inputs={"a": a}, outputs={"b": b, "a": a, "half": half}), tmp_path
    ).on(mgr)
    got = X.copy()
    for _ in range(5):
        got = 2 * got + 1
    b1, a1, half1 = program.main(X)
    np.testing.assert_array_equal(b1, got)
    np.testing.assert_array_equal(a1[2:4], [9, 9])
    np.testing.assert_array_equal(half1.reshape(-1), got[4:])
    results = program.main(mgr.tensor(X))
    assert [type(each) for each in results] == [kp.Tensor, kp.Tensor, kp.Image]
    np.testing.assert_array_equal(results[2].read().reshape(-1), got[4:])


SAMPLED = """
layout(local_size_x = 4) in;
layout(binding = 0) uniform sampler2D image;
layout(binding = 1) writeonly buffer Y { vec4 y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < y.length()) y[i] = texture(image, vec2(float(i) / 3.0, 1.3));
}
"""


def test_sampled_images(mgr, tmp_path):
    pixels = np.random.default_rng(3).random((4, 4, 4), np.float32)
    image, y = mgr.image(pixels), mgr.zeros((4, 4))
    sampler = mgr.sampler("linear", ("repeat", "mirrored_repeat"))
    sequence = mgr.sequence().record(mgr.kernel(SAMPLED).bind(image.sampled(sampler), y)).eval()
    program = again(kp.Program.record(sequence, outputs={"y": y}), tmp_path).on(mgr)
    np.testing.assert_array_equal(program.main(), y.read())
    given = again(kp.Program.record(sequence, inputs={"image": image}, outputs={"y": y}), tmp_path).on(mgr)
    np.testing.assert_array_equal(given.main(pixels), y.read())
    assert not np.array_equal(given.main(mgr.image(pixels[::-1].copy())).read(), y.read())


def test_device_side_numbers_of_groups(mgr, tmp_path):
    groups, x = mgr.tensor_t(np.array([1, 1, 1], np.uint32)), mgr.zeros(128)
    sequence = mgr.sequence().record(mgr.kernel(ADD).bind(x, by=1.0, indirect=groups))
    program = kp.Program.record(sequence, inputs={"groups": groups}, outputs={"x": x})
    loaded = again(program, tmp_path).on(mgr)
    assert loaded.main(np.array([1, 1, 1], np.uint32)).sum() == 64
    assert loaded.main(np.array([2, 1, 1], np.uint32)).sum() == 64 + 128


def test_uploads_of_recordings_are_kept_where_they_count(mgr, tmp_path):
    """Kompute's pattern: the host copy of what is written goes to the device again at each evaluation."""
    x, y = mgr.tensor(X), mgr.tensor(X * 10)
    sequence = mgr.sequence().record(kp.OpSyncDevice([x, y]), kp.ops.add.bind(x, y, out=y))
    program = again(kp.Program.record(sequence, outputs={"y": y}), tmp_path).on(mgr)
    sequence.eval()
    sequence.eval()
    np.testing.assert_array_equal(y.read(), 11 * X)
    for _ in range(3):
        np.testing.assert_array_equal(program.main(), 11 * X)


def test_edits_of_host_copies_that_a_recording_would_upload_are_in_the_program(mgr, tmp_path):
    x, y = mgr.tensor(X), mgr.zeros(8)
    sequence = mgr.sequence().record(kp.OpSyncDevice([x]), kp.OpCopy([x, y])).eval()
    x.data()[:] = 3
    program = again(kp.Program.record(sequence, outputs={"y": y}), tmp_path).on(mgr)
    np.testing.assert_array_equal(program.main(), np.full(8, 3))


def test_memory_keeps_what_partial_writes_leave(mgr, tmp_path):
    y = mgr.tensor(X)
    program = kp.Program.record(kp.OpFill([y[2:4]], 0.0), outputs={"y": y})
    expected = X.copy()
    expected[2:4] = 0
    np.testing.assert_array_equal(again(program, tmp_path).on(mgr).main(), expected)
    without = kp.Program.record(kp.OpFill([y[2:4]], 0.0), outputs={"y": y}, temporary=[y])
    np.testing.assert_array_equal(again(without, tmp_path).on(mgr).main(), np.zeros(8))


def test_parts_of_large_tensors_bring_their_bytes_alone(mgr, tmp_path):
    whole = mgr.tensor(np.arange(1 << 20, dtype=np.float32))
    y = mgr.zeros(64)
    part = whole[64 * 1000 : 64 * 1001]
    program = kp.Program.record(kp.OpCopy([part, y]), outputs={"y": y})
    loaded = again(program, tmp_path).on(mgr)
    np.testing.assert_array_equal(loaded.main(), np.arange(64000, 64064))
    assert program.memory_needs()[1:] == (0, 256, 256)
    assert (tmp_path / "program.kpp").stat().st_size < 4096


def test_steps_of_the_host_are_given_again(mgr, tmp_path):
    x, y = mgr.zeros(8), mgr.zeros(8)

    def negate() -> None:
        y.write(-y.read())

    sequence = mgr.sequence().record(
        mgr.kernel(SCALE).bind(x, y, plus=0.0),
        kp.OpHostCall(negate, reads=[y], writes=[y]),
        mgr.kernel(ADD).bind(y, by=1.0),
    )
    program = kp.Program.record(sequence, inputs={"x": x}, outputs={"y": y})
    program.save(tmp_path / "host.kpp")
    seen = []

    def other(tensor) -> None:
        seen.append(tensor.shape)
        tensor.write(-tensor.read())

    loaded = kp.load_program(tmp_path / "host.kpp", hosts={"negate": other}).on(mgr)
    given, out = mgr.tensor(X), mgr.zeros(8)
    for _ in range(3):
        np.testing.assert_array_equal(loaded.main(X), 1 - 2 * X)
        np.testing.assert_array_equal(loaded.main(given, out=out).read(), 1 - 2 * X)
    loaded.main.submit(given, out=out).wait()
    np.testing.assert_array_equal(out.read(), 1 - 2 * X)
    assert set(seen) == {(8,)}
    with pytest.raises(kp.NotFoundError, match=r"'negate' between two steps: give it"):
        kp.load_program(tmp_path / "host.kpp").on(mgr).main(X)
    undeclared = mgr.sequence().record(kp.OpHostCall(negate), kp.OpFill([y], 1))
    with pytest.raises(kp.InvalidArgumentError, match="reads= and writes="):
        kp.Program.record(undeclared)


@pytest.mark.capability("I62", "modules in a namespace", "kp.load_program", "reference/programs")
def test_modules(mgr, pipeline, tmp_path):
    both = kp.Program({"first": pipeline, "deep.second": kp.Program({"inner": pipeline})})
    loaded = again(both, tmp_path).on(mgr)
    assert loaded.exports == ("first.run", "deep.second.inner.run")
    np.testing.assert_array_equal(loaded.first.run(X), EXPECTED)
    np.testing.assert_array_equal(loaded["deep.second.inner.run"](X), EXPECTED)
    np.testing.assert_array_equal(loaded.deep.second.inner.run(X), EXPECTED)
    assert {name: t.tolist() for name, t in loaded.state.items()} == {
        "first.count": [1.0],
        "deep.second.inner.count": [2.0],
    }
    assert list(loaded.deep.state) == ["second.inner.count"]
    alone = again(loaded.deep, tmp_path).on(mgr)
    assert alone.exports == ("second.inner.run",)
    np.testing.assert_array_equal(alone.second.inner.run(X), EXPECTED)
    with pytest.raises(kp.NotFoundError, match=r"no entry 'first\.runs'.*did you mean 'first\.run'"):
        loaded["first.runs"]
    with pytest.raises(AttributeError, match="no entry 'third'"):
        _ = loaded.third
    for wrong in ({"1": pipeline}, {"a b": pipeline}, {2: pipeline}):
        with pytest.raises(kp.InvalidArgumentError, match="identifier"):
            kp.Program(wrong)
    with pytest.raises(kp.ArgumentTypeError):
        kp.Program({"a": 1})


@pytest.mark.capability("S34", "a program of several entries", "Program.exports", "reference/programs")
def test_entry_points_of_a_module(mgr, tmp_path):
    text = """
    OpCapability Shader
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %f "one"
    OpEntryPoint GLCompute %g "two"
    OpExecutionMode %f LocalSize 1 1 1
    OpExecutionMode %g LocalSize 2 1 1
    %void = OpTypeVoid
    %type = OpTypeFunction %void
    %f = OpFunction %void None %type
    %a = OpLabel
    OpReturn
    OpFunctionEnd
    %g = OpFunction %void None %type
    %b = OpLabel
    OpReturn
    OpFunctionEnd
    """
    module = kp.ShaderModule(kp.assemble(text), entry="one")
    program = again(kp.Program.record({"both": module}), tmp_path)
    assert program.exports == ("both.one", "both.two")
    program.on(mgr).both.two(groups=1)


@pytest.mark.capability("W24", "parameters of programs, by name", "Program.parameters", "guides/programs")
def test_parameters_by_reference(mgr, pipeline, tmp_path):
    path = tmp_path / "without.kpp"
    pipeline.save(path, parameters=False)
    assert b"parameters" not in path.read_bytes()
    with pytest.raises(kp.NotFoundError, match="no contents for 'weights'"):
        kp.load_program(path).on(mgr).run(X)
    weights = np.full(8, 5, np.float32)
    kp.save_tensors(tmp_path / "weights.safetensors", {"weights": weights})
    for given in (
        {"weights": weights},
        tmp_path / "weights.safetensors",
        kp.tensor_file_info(tmp_path / "weights.safetensors"),
    ):
        np.testing.assert_array_equal(kp.load_program(path, given).on(mgr).run(X), 2 * X + 6)
    np.testing.assert_array_equal(
        again(pipeline, tmp_path, parameters={"weights": weights}).on(mgr).run(X), 2 * X + 6
    )
    for wrong in (np.zeros(7, np.float32), np.zeros(8), np.zeros((2, 4), np.float32)):
        with pytest.raises(kp.InvalidArgumentError, match="weights"):
            kp.load_program(path, {"weights": wrong})
    both = kp.Program({"a": pipeline})
    both.save(path, parameters=False)
    np.testing.assert_array_equal(kp.load_program(path, {"a::weights": weights}).on(mgr).a.run(X), 2 * X + 6)


def test_programs_pickle_by_content(mgr, pipeline):
    copy = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(copy.on(mgr).run(X), EXPECTED)


def test_several_managers_have_memory_of_their_own(mgr, pipeline, tmp_path):
    program = again(pipeline, tmp_path)
    with kp.Manager() as other:
        for each in (mgr, other):
            given = each.tensor(X)
            result = program.run(given)
            assert result.manager is each
            np.testing.assert_array_equal(result.read(), EXPECTED)
            assert program.on(each).state["count"].tolist() == [1.0]
        with pytest.raises(kp.InvalidArgumentError, match="another Manager"):
            program.on(mgr).run(other.tensor(X))
        with pytest.raises(kp.InvalidArgumentError, match="another Manager"):
            program.run(other.tensor(X), out=mgr.zeros(8))
        with other.current():
            program.run(X)
            assert program.state["count"].tolist() == [2.0]
    np.testing.assert_array_equal(program.on(mgr).run(X), EXPECTED)
    with pytest.raises(kp.ArgumentTypeError, match="Manager"):
        program.on(1.5)


def test_memory_is_told_before(mgr):
    x, y = mgr.zeros(1 << 20), mgr.zeros(1 << 20)
    weights = mgr.tensor(np.ones(1 << 20))
    program = kp.Program.record(
        [kp.ops.multiply.bind(x, weights, out=y)],
        inputs={"x": x},
        outputs={"y": y},
        parameters={"w": weights},
    ).on(mgr)
    before = mgr.memory.used
    program.preload()
    used = mgr.memory.used - before
    needs = program.memory_needs()
    assert 0.9 * used <= needs.total <= 1.1 * used
    assert needs[1:] == (x.nbytes, y.nbytes, weights.nbytes)
    assert needs.code > 100
    assert program.main.memory_needs() == needs
    with pytest.raises(kp.ArgumentTypeError, match="give none"):
        program.main.memory_needs(x)


def test_the_first_call_of_a_preloaded_recording_is_prepared(mgr, monkeypatch):
    """With arrays, by position: it goes the short way, as the second does."""
    x, y = mgr.zeros(4), mgr.zeros(4)
    program = kp.Program.record(kp.ops.multiply.bind(x, 2, out=y), inputs={"x": x}, outputs={"y": y}).on(mgr)
    program.preload()
    assert program.main._target((), {}).forms[0].free().vk_command_buffer  # is recorded
    monkeypatch.setattr(RecordedForm, "call", None)
    assert program.main(np.arange(4, dtype=np.float32)).tolist() == [0, 2, 4, 6]


def test_shaders_of_recordings_have_run_when_they_are_preloaded(mgr, pipeline):
    """Some drivers compile when a pipeline runs first."""
    program = pipeline.on(mgr)
    for expected in (3, 0):
        with mgr.profile() as profile:
            program.preload()
        assert [each["name"] for each in profile.records].count("preload") == expected
    assert program.state["count"].tolist() == [0.0]
    np.testing.assert_array_equal(program.run(X), EXPECTED)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda m, t: kp.Program.record(3), kp.ArgumentTypeError, "'main' is an int"),
        (lambda m, t: kp.Program.record({"a b": m.kernel(ADD)}), kp.InvalidArgumentError, "identifier"),
        (lambda m, t: kp.Program.record(m.sequence()), kp.InvalidArgumentError, "nothing recorded"),
        (lambda m, t: kp.Program.record(m.kernel(ADD), 1), kp.ArgumentTypeError, "follow a function"),
        (
            lambda m, t: kp.Program.record(kp.OpFill([t]), inputs={"x": t}),
            kp.InvalidArgumentError,
            "reads it",
        ),
        (
            lambda m, t: kp.Program.record(kp.OpFill([t]), outputs={"x": m.zeros(1)}),
            kp.InvalidArgumentError,
            "output 'x': no recorded operation writes it",
        ),
        (
            lambda m, t: kp.Program.record(kp.OpFill([t]), outputs={"1": t}),
            kp.InvalidArgumentError,
            "identifier",
        ),
        (
            lambda m, t: kp.Program.record(kp.OpFill([t]), outputs={"signal": t}),
            kp.InvalidArgumentError,
            "none of out, donate, wait, signal",
        ),
        (
            lambda m, t: kp.Program.record(kp.OpFill([t]), outputs={"x": 1}),
            kp.ArgumentTypeError,
            "'x' is an int",
        ),
        (
            lambda m, t: kp.Program.record(kp.OpFill([t]), outputs=[t]),
            kp.ArgumentTypeError,
            "outputs is.* dict",
        ),
        (lambda m, t: kp.Program.record(kp.OpFill([t]), state=[t]), kp.ArgumentTypeError, "state is.* dict"),
        (
            lambda m, t: kp.Program.record(kp.OpFill([t]), temporary=[3]),
            kp.ArgumentTypeError,
            r"temporary\[0\]",
        ),
        (
            lambda m, t: kp.Program.record(kp.OpFill([t]), parameters={"x": t}),
            kp.InvalidArgumentError,
            "writes the parameter 'x'",
        ),
        (
            lambda m, t: kp.Program.record(kp.OpCopy([t, m.zeros(8)]), inputs={"x": t, "y": t[:4]}),
            kp.InvalidArgumentError,
            "overlap",
        ),
        (
            lambda m, t: kp.Program.record(kp.OpFill([t]), hosts={"f": 1}),
            kp.ArgumentTypeError,
            "functions by name",
        ),
        (lambda m, t: kp.Program.record(kp.OpFill([t]), sources={"f": ""}), kp.InvalidArgumentError, "'f'"),
        (lambda m, t: kp.Program.record(Custom()), kp.UnimplementedError, "Custom"),
        (
            lambda m, t: kp.Program.record(kp.OpFill([t]), state={"x": m.empty(2, "2u4,f4")}),
            kp.InvalidArgumentError,
            "state 'x': no recorded operation uses it",
        ),
    ],
)
def test_what_no_program_can_hold_is_refused(mgr, make, error, text):
    with pytest.raises(error, match=text), mgr.current():
        make(mgr, mgr.zeros(8))


class Custom(kp.OpBase):
    def record(self, cmd):
        pass


ADDRESSED = """
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 1) in;
layout(buffer_reference) buffer Data { float data[]; };
layout(push_constant) uniform P { Data data; };
void main() { data.data[0] = 1; }
"""


def test_recorded_addresses_are_refused_and_kernels_with_them_are_not(mgr, tmp_path):
    if "bufferDeviceAddress" not in mgr.enabled_features:
        pytest.skip("the device has no addresses")
    kernel = mgr.kernel(ADDRESSED)
    with pytest.raises(kp.UnimplementedError, match="by its address"), mgr.current():
        kp.Program.record(kernel.bind(data=mgr.zeros(4), groups=1))
    t = mgr.zeros(4)
    again(kp.Program.record(kernel), tmp_path).on(mgr).main(data=t, groups=1)
    assert t.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("args", "named", "error", "text"),
    [
        ((), {}, kp.ArgumentTypeError, r"given 0 by position and none by name: run\(x: float32\[8\]\)"),
        ((X, X), {}, kp.ArgumentTypeError, "given 2 by position and none by name"),
        ((X,), {"x": X}, kp.ArgumentTypeError, "given 1 by position and 'x' by name"),
        ((), {"z": X}, kp.ArgumentTypeError, "given 0 by position and 'z' by name"),
        ((X[:7],), {}, kp.InvalidArgumentError, r"shape \(7,\); it was recorded for \(8,\)"),
        ((X.astype(np.float64),), {}, kp.ArgumentTypeError, r"dtype float64.*astype"),
        ((X,), {"out": np.zeros(7, np.float32)}, kp.InvalidArgumentError, "shape"),
        ((X,), {"out": np.zeros(8)}, kp.ArgumentTypeError, "float64"),
        ((X,), {"out": (X, X)}, kp.InvalidArgumentError, "1 results; out has 2"),
    ],
)
def test_calls_that_do_not_fit_are_refused(mgr, pipeline, args, named, error, text):
    program = pipeline.on(mgr)
    with pytest.raises(error, match=text):
        program.run(*args, **named)
    assert program.state["count"].tolist() == [0.0]


# -- modules by name and version -----------------------------------------------------------------------------


@pytest.mark.capability("I63", "modules by name and version", "kp.load_program", "reference/programs")
def test_modules_are_given_by_name_and_version(mgr, pipeline, tmp_path):
    path = tmp_path / "application.kpp"

    def signs(version, **more):
        with mgr.current():
            return kp.Program.record(
                {"negative": (kp.ops.negative, kp.TensorSpec(8)), **more}, version=version
            )

    kp.Program({"app": pipeline, "signs": signs(3)}).save(path, without=["signs"])
    loaded = kp.load_program(path, modules={"signs": signs(3)}).on(mgr)
    assert loaded.exports == ("app.run", "signs.negative")
    assert loaded.versions == {"app": 0, "signs": 3}
    np.testing.assert_array_equal(loaded["signs.negative"](X), -X)
    np.testing.assert_array_equal(loaded["app.run"](X), EXPECTED)
    newer = signs(5, more=[kp.ops.multiply.bind(mgr.zeros(1), 2, out=mgr.zeros(1))])
    assert "signs.more" in kp.load_program(path, modules={"signs": newer})
    with pytest.raises(kp.NotFoundError, match="needs the module signs, version 3 or later"):
        kp.load_program(path)
    with pytest.raises(kp.FailedPreconditionError, match=r"version 3 of the module signs.*given version 2"):
        kp.load_program(path, modules={"signs": signs(2)})
    with mgr.current():
        fill = kp.Program.record({"other": mgr.kernel(SCALE)}, version=3)
    with pytest.raises(kp.NotFoundError, match=r"the entry signs\.negative"):
        kp.load_program(path, modules={"signs": fill})
    with pytest.raises(kp.InvalidArgumentError, match="'app' stands twice"):
        kp.load_program(path, modules={"signs": signs(3), "app": pipeline})
    with pytest.raises(kp.NotFoundError, match="no module 'sign'"):
        loaded.save(path, without=["sign"])
    with pytest.raises(kp.InvalidArgumentError, match="version is -1"):
        signs(-1)


# -- pickling ------------------------------------------------------------------------------------------------


def test_recordings_without_results_are_told(mgr):
    t = mgr.zeros(8)
    with pytest.warns(kp.KomputeWarning, match=r'main: calls return nothing.* outputs=\{"y": y\}'):
        kp.Program.record(mgr.sequence().record(kp.OpFill([t]), kp.OpSyncLocal([t])))
    for named in ({"outputs": {"t": t}}, {"state": {"t": t}}):
        kp.Program.record(kp.OpFill([t]), **named)


def test_functions_of_several_operations_and_those_that_are_only_called(mgr):
    with mgr.current():
        median = kp.Program.record(kp.ops.median, kp.TensorSpec(5))
        assert median.main(np.array([4, 1, 5, 2, 3], np.float32)) == 3
    for portable in (False, True):
        for given in ((kp.ops.nonzero, kp.TensorSpec(4)), ({"main": (kp.ops.nonzero, kp.TensorSpec(4))},)):
            with pytest.raises(
                kp.UnimplementedError, match=r"only be called\. .* use kp\.ops\.nonzero_places"
            ):
                kp.Program.record(*given, portable=portable)
    with pytest.raises(kp.ArgumentTypeError, match=r"arguments follow a function, .* not a.*ufunc"):
        kp.Program.record(np.sqrt, kp.TensorSpec(4))
