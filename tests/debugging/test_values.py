"""debug="nans", mgr.watch and records: what operations read and wrote."""

from __future__ import annotations

import itertools
import json
import sys

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.cli import main
from kompute_py.errors import NonFiniteError
from tests.drivers import null_control
from tests.support.child import run_child

N = 100
HEAD = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
"""
INVERT = HEAD + "void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = 1 / x[i]; }"
ADD = HEAD + "void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] += x[i]; }"


def line_here(offset: int = 0) -> str:
    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno + offset}"


@pytest.fixture
def debugged(make_manager):
    manager = make_manager(debug="nans")
    return manager


def with_zero(manager, place=17):
    x = np.arange(1, N + 1, dtype=np.float32)
    x[place] = 0
    return manager.tensor(x)


# -- NaNs ----------------------------------------------------------------------------------------------------


@pytest.mark.capability(
    "", "the first operation that writes a NaN", "kp.errors.NonFiniteError", "guides/debugging"
)
def test_the_first_operation_that_writes_one(debugged):
    invert, add = debugged.kernel(INVERT, name="invert"), debugged.kernel(ADD, name="add")
    x, y, z = with_zero(debugged), debugged.zeros(N), debugged.zeros(N)
    x.name, y.name = "divisor", "quotient"
    sequence = debugged.sequence()
    sequence.record(kp.OpFill([y], 1))
    line = line_here(1)
    sequence.record(invert.bind(x, y), add.bind(y, z))
    for _ in range(2):  # what was there before does not hide it
        with pytest.raises(NonFiniteError) as caught:
            sequence.eval()
        error = caught.value
        assert (error.operation, error.tensor, error.index) == ("invert", y, (17,))
        assert error.inputs == {"divisor": 0.0}
        assert error.line == line
        assert isinstance(error, FloatingPointError)
        assert "operation 2 of the sequence" in str(error) and "quotient (float32, 100) at [17]" in str(error)
        assert "divisor 0.0" in str(error) and line in str(error)
    x.write(np.ones(N, np.float32))
    z.write(np.zeros(N, np.float32))
    sequence.eval()
    np.testing.assert_array_equal(z.read(), np.ones(N))


def test_what_shaders_said_comes_with_the_error(make_manager):
    manager = make_manager(debug="nans,printf")
    said = []
    manager.on_message(said.append)
    said_first = '{ debugPrintfEXT("of %f", x[i]); y[i] = 1 / x[i]; }'
    source = INVERT.replace("y[i] = 1 / x[i];", said_first)
    source = source.replace("450", "450\n#extension GL_EXT_debug_printf : require")
    invert = manager.kernel(source, name="invert")
    sequence = manager.sequence().record(kp.OpFill([y := manager.zeros(N)], 1))
    sequence.record(invert.bind(with_zero(manager, 0), y, grid=1))
    with pytest.raises(NonFiniteError, match="invert, operation 2 of the sequence"):
        sequence.eval()
    assert any("of 0.0" in str(each) and "'invert', operation 2," in str(each) for each in said)


@pytest.mark.parametrize(
    "how", ["call", "array", "submit", "async", "together", "function", "out", "program"]
)
def test_each_way_to_run(debugged, how, tmp_path):
    invert = debugged.kernel(INVERT, name="invert")
    x, y = with_zero(debugged), debugged.zeros(N)
    good = debugged.tensor(np.ones(N))
    sequence = debugged.sequence().record(invert.bind(x, y))
    divide = kp.ops.divide
    if how == "program":
        program = kp.Program.record({"entry": sequence}, inputs={"x": x}, outputs={"y": y})
        loaded = program.on(debugged)["entry"]

    def run(given):
        if how == "call":
            invert(given, y)
        elif how == "array":
            invert(given.read(), np.zeros(N, np.float32))
        elif how == "submit":
            invert.submit(given, y).wait()
        elif how == "async":
            debugged.sequence().record(invert.bind(given, y)).eval_async().eval_await()
        elif how == "together":
            debugged.submit([debugged.sequence().record(invert.bind(given, y))]).wait()
        elif how == "function":
            divide(1, given)
        elif how == "out":
            divide.submit(1, given, out=y).wait()
        else:
            loaded(given)

    for _ in range(3):  # the first call, and those that are prepared
        run(good)
        with pytest.raises(NonFiniteError, match=r"at \[17\]"):
            run(x)
    run(good)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "bfloat16"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_dtypes(debugged, dtype, value):
    if dtype == "bfloat16":
        kind = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    else:
        kind = np.dtype(dtype)
    data = np.zeros((4, 5))
    data[2, 3] = value
    source, target = debugged.tensor_t(data.astype(kind)), debugged.tensor_t(np.zeros((4, 5), kind))
    with pytest.raises(NonFiniteError) as caught:
        debugged.sequence().eval(kp.OpCopy([source, target]))
    assert caught.value.index == (2, 3)
    # The same bytes as integers are none.
    integers = debugged.tensor_t(np.frombuffer(data.astype(kind).tobytes(), np.uint16))
    debugged.sequence().eval(kp.OpCopy([integers, debugged.tensor_t(integers.read())]))


def test_what_is_left_as_it_was_is_no_fault(debugged):
    add = debugged.kernel(ADD, name="add")
    gaps = np.full(2 * N, np.nan, np.float32)
    gaps[:N] = 1
    t, ones = debugged.tensor(gaps), debugged.tensor(np.ones(N))
    add(ones, t, grid=N)  # in place, over one half
    add(ones, t[:N])
    with pytest.raises(NonFiniteError, match=r"add,.* at \[3\]"):
        bad = np.ones(N, np.float32)
        bad[3] = np.inf
        add(debugged.tensor(bad), t, grid=N)


def test_what_a_kernel_that_only_writes_leaves(debugged):
    only_writes = "y[i] = x[i] - 2.0 + sqrt(x[i] - 1.0); }"
    write = debugged.kernel(
        INVERT.replace("buffer Y", "writeonly buffer Y").replace("y[i] = 1 / x[i]; }", only_writes),
        name="write",
    )
    gaps = np.full(2 * N, np.nan, np.float32)
    t, given, ones = debugged.tensor(gaps), gaps.copy(), debugged.tensor(np.ones(N))
    for half in (t, given):
        write(ones, half, grid=N)
        assert np.isnan(given[N:]).all()
    zeros = debugged.zeros(N)
    for _ in range(3):  # again, though the elements are then left as they were
        for half in (t, given):
            with pytest.raises(NonFiniteError, match=r"write,.* at \[0\]"):
                write(zeros, half, grid=N)


SAME = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < x.length()) y[i] = uintBitsToFloat(x[i]);
}"""
FLIPPED = {
    "kernel": lambda m, x, y: m.kernel(SAME)(x.view(np.uint32)),
    "kernel of arrays": lambda m, x, y: m.kernel(SAME)(x.read().view(np.uint32)),
    "function": lambda m, x, y: kp.ops.flip(x),
    "function of arrays": lambda m, x, y: kp.ops.flip(x.read()),
    "function, out": lambda m, x, y: kp.ops.flip(x, out=y),
    "function, array": lambda m, x, y: kp.ops.flip(x.read(), out=y.read()),
    "function, part": lambda m, x, y: kp.ops.flip(x[: N // 2], out=y[::2]),
    "in two dispatches": lambda m, x, y: kp.ops.concatenate([x[: N // 2], x[N // 2 :]], out=y),
    "recording": lambda m, x, y: m.sequence().record(kp.ops.flip.bind(x)).eval(),
    "recording, out": lambda m, x, y: m.sequence().record(kp.ops.flip.bind(x, out=y)).eval(),
    "program": lambda m, x, y: kp.Program.record(kp.ops.flip, kp.TensorSpec(N)).on(m).main(x, out=y),
    "copy": lambda m, x, y: m.sequence().record(kp.OpCopy([x, y])).eval(),
}


@pytest.mark.parametrize("how", FLIPPED)
def test_results_in_memory_that_has_the_same_nans(debugged, how):
    x, *others = [debugged.tensor(np.full(N, np.nan, np.float32)) for _ in range(8)]
    with debugged.current():
        for each in (x, *others):
            kp.ops.isnan(each)  # now the device has them
        for each in others[1:]:
            each.destroy()  # new memory is found here
        with pytest.raises(NonFiniteError, match=r"wrote nan to"):
            FLIPPED[how](debugged, x, others[0])


def test_results_that_are_written_in_parts(debugged):
    """What a dispatch leaves for the next one is not its fault, also once a NaN was found."""
    nans = np.full(2 * N, np.nan, np.float32)
    ones, y = debugged.tensor(np.ones(N)), debugged.tensor(nans)
    for _ in range(2):
        kp.ops.concatenate([ones, ones], out=y)
        assert kp.ops.selected(debugged.tensor(np.arange(N) % 2), ones)[0].tolist() == [1] * 50 + [0] * 50
        y.write(nans)
        with pytest.raises(NonFiniteError, match=r"part 1, .* at \[150\]"):
            bad = np.ones(N, np.float32)
            bad[N // 2] = np.nan
            kp.ops.concatenate([ones, debugged.tensor(bad)], out=y)


STRUCTS = """
#version 450
layout(local_size_x = 64) in;
struct Body { vec3 place; uint number; vec2 speed[2]; };
layout(binding = 0) buffer Bodies { Body bodies[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < bodies.length()) bodies[i].speed[1].y = 1.0 / float(bodies[i].number);
}"""
HEADED = """
#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer Block { uint count; float x[]; };
void main() { for (uint i = 0; i < count; ++i) x[i] = 1.0 / x[i]; }"""


@pytest.mark.parametrize("dtype", ["uint8", "uint32"])
def test_structs_in_tensors_of_plain_numbers(debugged, dtype):
    bodies = np.zeros(10, kp.struct_dtype(STRUCTS, 0))
    bodies["number"] = np.arange(10)[::-1]
    plain = bodies.view(np.uint8).view(dtype)
    kernel = debugged.kernel(STRUCTS, name="bodies")
    t = debugged.tensor_t(plain)
    t.name = "t"
    algorithm = debugged.algorithm([t], kp.compile(STRUCTS), workgroup=(1, 1, 1))
    sequence = debugged.sequence().record(kp.OpAlgoDispatch(algorithm))
    for call in (lambda: kernel(t), lambda: kernel(t), lambda: kernel(plain), sequence.eval):
        t.write(plain)
        with pytest.raises(NonFiniteError, match=r"wrote speed\[1, 1\] = inf to (t|array) .* at \[9\]"):
            call()
    block = np.array([4, *np.array([1, 2, 0, 4], np.float32).view(np.uint32)], np.uint32)
    with pytest.raises(NonFiniteError, match=r"wrote x\[2\] = inf to array .* at \[0\]"):
        debugged.kernel(HEADED)(block.view(dtype), grid=1)


def test_views(debugged):
    t = debugged.zeros((4, 8))
    bad = np.zeros(8, np.float32)
    bad[6] = np.inf
    source = debugged.tensor(bad)
    with pytest.raises(NonFiniteError) as caught:
        debugged.sequence().eval(kp.OpCopy([source, t[2]]))
    assert (caught.value.tensor, caught.value.index) == (t, (2, 6))
    plain = debugged.tensor_t(np.zeros(64, np.uint8))
    view = plain[32:].view(np.float32)
    with pytest.raises(NonFiniteError) as caught:
        debugged.sequence().eval(kp.OpCopy([source, view]))
    assert (caught.value.tensor, caught.value.index) == (view, (6,))


def test_functions_of_the_library_raise_nothing_for_finite_numbers(debugged):
    rng = np.random.default_rng(32)
    a, b = rng.random((40, 30), np.float32) + 1, rng.random((30, 20), np.float32)
    t = debugged.tensor(a)
    for name in ("sum", "max", "min", "argmax", "mean", "std", "sort", "cumsum", "softmax", "exp", "median"):
        if hasattr(kp.ops, name):
            getattr(kp.ops, name)(t)
    np.testing.assert_allclose(kp.ops.matmul(t, debugged.tensor(b)).read(), a @ b, rtol=1e-4)


@pytest.mark.parametrize("staging", [False, True])
def test_streams_of_frames(make_manager, staging):
    debugged = make_manager(debug="nans", force_staging=staging)
    invert, add = debugged.kernel(INVERT, name="invert"), debugged.kernel(ADD, name="add")
    for between in (False, True):
        x, y = debugged.zeros(N), debugged.zeros(N)
        middle = debugged.zeros(N) if between else y
        sequence = debugged.sequence().record(invert.bind(x, middle))
        if between:
            sequence.record(add.bind(middle, y))
        frames = [np.full(N, value, np.float32) for value in (1, 2, 0, 4)]
        got = []
        with pytest.raises(NonFiniteError, match="invert, operation 2"):
            for result in sequence.stream(frames, inputs=x, outputs=y):
                got.append(float(np.ravel(result)[0]))
        assert got[:2] == [1.0, 1.5 if between else 0.5]
        assert len(got) <= 3  # the fourth frame does not run


@pytest.mark.parametrize("staging", [False, True])
def test_frames_of_a_stream_are_those_of_the_tensors(make_manager, staging):
    """Each frame has memory of its own; what looks at values is told the tensors that it stands for."""
    debugged = make_manager(debug="values", force_staging=staging)
    x, middle, y = debugged.zeros(N), debugged.zeros(N), debugged.zeros(N)
    x.name, y.name = "first", "last"
    add = debugged.kernel(ADD, name="add")
    sequence = debugged.sequence().record(add.bind(x, middle), add.bind(middle, y))
    frames = [np.full(N, value, np.float32) for value in (1, 2, 3)]
    for watched, seen in ((None, ["first", "tensor", "tensor", "last"] * 3), ([y], ["tensor", "last"] * 3)):
        got = []
        with debugged.watch(got.append, tensors=watched):
            results = [np.ravel(each)[0] for each in sequence.stream(frames, inputs=[x], outputs=[y])]
        ran = [each for each in got if each.operation == "add"]
        assert [each.name.split()[0] for values in ran for each in values.snapshots] == seen
        assert {each.tensor for values in ran for each in values.snapshots} <= {x, middle, y}
        last = [each.after.ravel()[0] for v in ran for each in v.snapshots if each.tensor is y]
        np.testing.assert_array_equal(last, results)


def test_without_the_option_nothing_is_seen(mgr):
    assert np.isinf(kp.ops.divide(1, mgr.zeros(3)).read()).all()


# -- memory that stands for arguments ------------------------------------------------------------------------

BAD = np.array([1, -1, 2, -2], np.float32)
ON_ARRAYS = {
    "array": lambda m: kp.ops.log(BAD),
    "axes": lambda m: kp.ops.log(BAD.reshape(2, 2).T),
    "large": lambda m: kp.ops.log(np.full(100_000, -1, np.float32)),
    "out": lambda m: kp.ops.log(BAD, out=np.zeros(4, np.float32)),
    "mixed": lambda m: kp.ops.multiply(m.tensor([np.inf]), np.ones(1, np.float32)),
    "part": lambda m: kp.ops.log(m.tensor(BAD)[1::2]),
    "out part": lambda m: kp.ops.log(m.tensor(BAD[:2]), out=m.zeros(4)[::2]),
    "out part of array": lambda m: kp.ops.log(BAD[:2], out=m.zeros(4)[1::2]),
    "bound part": lambda m: m.sequence().record(kp.ops.log.bind(m.tensor(BAD)[1::2])).eval(),
    "elementwise": lambda m: kp.ops.elementwise("log(x)")(BAD),
    "cumsum": lambda m: kp.ops.cumsum(np.array([np.inf, -np.inf], np.float32)),
    "sum": lambda m: kp.ops.sum(np.array([np.inf, -np.inf], np.float32)),
    "float16": lambda m: kp.ops.log(BAD[:3].astype(np.float16)),
    "odd tensor": lambda m: kp.ops.log(m.tensor_t(BAD[:3].astype(np.float16))),
    "complex": lambda m: kp.ops.divide(np.zeros(2, np.complex64), np.zeros(2, np.complex64)),
    "program": lambda m: kp.Program.record(kp.ops.log, kp.TensorSpec(4)).on(m).main(BAD),
    "image": lambda m: kp.ops.log(m.image(BAD.reshape(2, 2))),
    "out image": lambda m: kp.ops.log(m.tensor(BAD.reshape(2, 2)), out=m.image(np.zeros((2, 2), np.float32))),
    "bound image": lambda m: m.sequence().record(kp.ops.log.bind(m.image(BAD.reshape(2, 2)))).eval(),
}


@pytest.mark.parametrize("how", ON_ARRAYS)
def test_what_stands_for_arguments(debugged, how):
    with debugged.current():
        for _ in range(3):  # the first call, and those that are prepared
            with pytest.raises(NonFiniteError, match=r"wrote (nan|inf|\(nan\+nanj\)) to"):
                ON_ARRAYS[how](debugged)
            assert kp.ops.log(np.ones(4, np.float32)).tolist() == [0] * 4


def test_arrays_of_other_sizes(debugged):
    invert = debugged.kernel(INVERT, name="invert")
    for count in (4, 60, 30, 2, 1000):
        data = np.ones(count, np.float32)
        invert(data, debugged.zeros(count)), invert(debugged.tensor(data), debugged.zeros(count))
        data[-1] = 0
        with pytest.raises(NonFiniteError) as caught:
            invert(data, np.zeros(count, np.float32))
        assert (caught.value.tensor, caught.value.index) == (None, (count - 1,))


STORE = """
#version 450
layout(local_size_x = 4, local_size_y = 4) in;
layout(binding = 0, FORMAT) writeonly uniform image2D y;
layout(push_constant) uniform P { uint bits; };
void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    if (all(lessThan(p, imageSize(y))))
        imageStore(y, p, vec4(p == ivec2(2, 1) ? uintBitsToFloat(bits) : 0.5));
}"""


@pytest.mark.parametrize(
    ("format", "bits"),
    [
        *itertools.product(["r32f", "rgba16f", "rgba32f", "rgba8"], [0x7FC00000, 0x7F800000]),
        ("r11f_g11f_b10f", 0x7F800000),  # SwiftShader packs no NaN
    ],
)
def test_images_of_kernels(debugged, format, bits):
    if "store" not in debugged.image_formats().get(format, ()):
        pytest.skip(f"the device stores no {format}")
    image = debugged.image_empty((3, 4), format=format)
    store = debugged.kernel(STORE.replace("FORMAT", format), name="store")
    store(image, bits=0)
    if format == "rgba8":  # which has no NaN
        store(image, bits=bits)
        return
    sequence = debugged.sequence().record(store.bind(image, bits=bits))
    for run in (lambda: store(image, bits=bits), sequence.eval):
        with pytest.raises(NonFiniteError, match=rf"store, .* to image 1 \({format}, 3x4") as caught:
            run()
        assert (caught.value.tensor, caught.value.index[:2]) == (image, (1, 2))


def test_memory_of_several_operations_has_one_dtype_each(debugged):
    """Their scratch memory; -1 as int is a NaN as float."""
    ints = debugged.tensor_t(np.r_[np.int32(-1), np.zeros(99_999, np.int32)])
    floats = debugged.tensor(np.ones(100_000))
    sequence = debugged.sequence().record(kp.ops.cumsum.bind(ints))
    for _ in range(2):
        assert kp.ops.cumsum(ints).read()[-1] == -1
        assert kp.ops.cumsum(floats).read()[-1] == 100_000
        sequence.eval()


def test_values_of_arrays(make_manager, tmp_path):
    manager = make_manager(debug="values")
    seen = []
    with manager.current(), manager.watch(seen.append), manager.watch(tmp_path):
        for count in (2, 3):
            kp.ops.add(np.ones((count, 2), np.float32), 1)
    for values, count, number in zip(seen, (2, 3), (0, 1), strict=True):
        np.testing.assert_array_equal(values.inputs["array"], np.ones((count, 2), np.float32))
        np.testing.assert_array_equal(values.outputs["array"], np.full((count, 2), 2, np.float32))
        assert values.outputs["array"].dtype == np.float32
        with np.load(tmp_path / f"{number:06}.npz") as file:
            np.testing.assert_array_equal(file["arr_0"], values.outputs["array"])


def test_watching_an_image(make_manager):
    manager = make_manager(debug="values")
    image, other, third = (manager.image(np.full((2, 3), value, np.float32)) for value in (1, 2, 3))
    seen = []
    with manager.watch(seen.append, [image]):
        manager.sequence().record(kp.OpCopy([other, image]), kp.OpCopy([other, third])).eval()
    [values] = seen
    assert [each.tensor for each in values.snapshots] == [other, image]
    np.testing.assert_array_equal(values.outputs["image 2"], np.full((2, 3), 2))


def test_names_are_of_one_tensor_each(make_manager):
    manager = make_manager(debug="values")
    names = []
    with manager.watch(lambda values: names.extend(values.outputs)):
        for _ in range(5):
            tensor = manager.zeros(4)
            manager.sequence().eval(kp.OpFill([tensor], 1))
    assert len(set(names)) == 5


# -- watching ------------------------------------------------------------------------------------------------


@pytest.mark.capability(
    "I72", "a callback with the values of each operation", "Manager.watch", "guides/debugging"
)
def test_a_callback_with_the_values_of_each_operation(make_manager):
    manager = make_manager(debug="values")
    add = manager.kernel(ADD, name="add")
    x, y = manager.tensor(np.arange(N)), manager.zeros(N)
    x.name, y.name = "x", "y"
    sequence = manager.sequence().record(add.bind(x, y), add.bind(x, y), kp.OpCopy([y, x]))
    sequence.eval()
    seen = []
    with manager.watch(seen.append):
        sequence.eval()
        kp.ops.add(x, 1)
    start = np.arange(N, dtype=np.float32)
    assert [each.operation for each in seen] == ["add", "add", "OpCopy", "add"]
    assert [each.number for each in seen] == [0, 1, 2, 0]
    assert seen[0].inputs.keys() == {"x", "y"} and seen[0].outputs.keys() == {"y"}
    expected = [4 * start, 6 * start]
    np.testing.assert_array_equal(seen[0].inputs["y"], 2 * start)
    for values, result in zip(seen, expected, strict=False):
        np.testing.assert_array_equal(values.inputs["x"], 2 * start)
        np.testing.assert_array_equal(values.outputs["y"], result)
    np.testing.assert_array_equal(seen[2].outputs["x"], 6 * start)
    np.testing.assert_array_equal(next(iter(seen[3].outputs.values())), 6 * start + 1)
    assert seen[3].submission == seen[0].submission + 1
    # After the block, nothing is seen.
    sequence.eval()
    assert len(seen) == 4


def test_chosen_tensors(make_manager):
    manager = make_manager(debug="values")
    a, b, c = (manager.full(4, value) for value in (1, 2, 3))
    seen = []
    with manager.watch(seen.append, [b[1:]]):
        manager.sequence().record(kp.OpFill([a], 5), kp.OpCopy([c, b]), kp.OpCopy([a, c])).eval()
    assert [each.operation for each in seen] == ["OpCopy"]
    assert next(iter(seen[0].outputs.values())).tolist() == [3] * 4


def test_an_error_of_the_callback(make_manager):
    manager = make_manager(debug="values")
    t = manager.zeros(4)
    sequence = manager.sequence().record(kp.OpFill([t], 1))

    def refuse(values):
        raise ZeroDivisionError(values.operation)

    with manager.watch(refuse), pytest.raises(ZeroDivisionError, match="OpFill"):
        sequence.eval()
    sequence.eval()
    assert t.read().tolist() == [1] * 4


def test_several_queues(make_manager):
    family = make_manager().queues[0]["family"]
    manager = make_manager(family_queue_indices=[family, family], debug="values")
    t = manager.zeros(4)
    first = manager.sequence(0).record(kp.OpFill([t], 1))
    second = manager.sequence(1).record(kp.OpFill([t], 2))
    seen = []
    with manager.watch(seen.append):
        for _ in range(3):
            manager.submit([first])
            second.eval()
            first.eval_await()
    assert [next(iter(each.outputs.values()))[0] for each in seen] == [1, 2] * 3


def test_misuse_of_watch(make_manager, mgr):
    manager = make_manager(debug="values")
    with pytest.raises(kp.FailedPreconditionError, match=r'kp\.Manager\(debug="values"\)'):
        mgr.watch(print)
    with pytest.raises(kp.ArgumentTypeError, match="not an int"):
        manager.watch(3)
    with pytest.raises(kp.ArgumentTypeError, match="tensors"):
        manager.watch(print, [3])
    with pytest.raises(kp.InvalidArgumentError, match="nans, disjoint, values, record=FOLDER"):
        kp.Manager(debug="nan")
    with (
        pytest.raises(kp.FailedPreconditionError, match="one after the other"),
        manager.watch(print),
        manager.profile(),
    ):
        pass
    with manager.profile() as p:
        manager.sequence().eval(kp.OpFill([manager.zeros(3)], 1))
        with pytest.raises(kp.FailedPreconditionError, match="one after the other"):
            manager.watch(print).__enter__()
    assert p.records["name"].tolist() == ["OpFill"]


def check_memory_that_is_not_coherent():
    """The copies are invalidated, and nothing is left at the end."""
    control = null_control()
    manager = kp.Manager(debug="values")
    a, b = manager.tensor(np.arange(100)), manager.zeros(100)
    sequence = manager.sequence().record(kp.OpFill([b], 7), kp.OpCopy([a, b[:100]]), kp.OpFill([b[50:]], 3))
    seen = []
    with manager.watch(seen.append):
        sequence.eval()
        sequence.eval()
    results = [each.snapshots[-1].after for each in seen]
    assert results[0].tolist() == results[3].tolist() == [7] * 100
    assert results[1].tolist() == list(range(100))
    assert results[2].tolist() == [3] * 50
    sequence.eval()
    del sequence, a, b, seen, results
    manager.destroy()
    assert not control.violations(), control.violations()
    assert control.live("VkBuffer") == 0


@pytest.mark.own_driver
@pytest.mark.parametrize("config", ["memory=noncoherent", "gpu_us=500"])
def test_other_memory(config):
    run_child(check_memory_that_is_not_coherent, driver="null", config=config)


# -- records -------------------------------------------------------------------------------------------------


def test_the_first_difference_of_two_records(make_manager, tmp_path, capsys):
    manager = make_manager(debug="values")
    add = manager.kernel(ADD, name="add")
    folders = [tmp_path / name for name in ("one", "two", "three")]
    for number, folder in enumerate(folders):
        x, y = manager.tensor(np.arange(N)), manager.zeros(N)
        x.name, y.name = "x", "y"
        with manager.watch(folder):
            manager.sequence().record(kp.OpFill([y], 1), add.bind(x, y)).eval()
            if number == 2:
                x.write(np.arange(N, dtype=np.float32) + 0.5)
            add(x, y)
    steps = [json.loads(line) for line in (folders[0] / "operations.jsonl").read_text().splitlines()]
    assert [step["operation"] for step in steps] == ["OpFill", "add", "add"]
    assert main(["diff", str(folders[0]), str(folders[1])]) == 0
    assert "3 operations, all equal" in capsys.readouterr().out
    assert main(["diff", str(folders[0]), str(folders[2])]) == 1
    out = capsys.readouterr()
    assert out.out.startswith("operation 3, add (") and "y: 100 differ: at most 0.5" in out.out
    assert "differ in 1 of 3 operations" in out.err
    assert main(["diff", str(folders[0]), str(folders[2]), "--atol", "0.5"]) == 0
    # Another program, a shorter one, none, and a damaged one.
    (folders[1] / "operations.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps[:2]))
    assert main(["diff", str(folders[0]), str(folders[1])]) == 1
    assert "ends here" in capsys.readouterr().out
    steps[1]["operation"] = "multiply"
    (folders[1] / "operations.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    assert main(["diff", str(folders[0]), str(folders[1])]) == 1
    assert "operation 2: add -> y" in capsys.readouterr().out
    assert main(["diff", str(folders[0]), str(tmp_path)]) == 1
    (folders[1] / "000000.npz").write_bytes(b"no")
    assert main(["diff", str(folders[0]), str(folders[1])]) == 1
    assert "damaged" in capsys.readouterr().err


def test_a_record_by_the_option(make_manager, tmp_path):
    manager = make_manager(debug=["nans", f"record={tmp_path / 'run'}"])
    t = manager.zeros(3)
    manager.sequence().eval(kp.OpFill([t], 2))
    with np.load(tmp_path / "run" / "000000.npz") as file:
        assert file["arr_0"].tolist() == [2, 2, 2]
