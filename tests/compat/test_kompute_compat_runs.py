"""Kompute's Python API, call by call: operations, sequences, and whole scripts.

See `test_kompute_compat.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.compat.test_kompute_compat import NEWER, OLDER

MULTIPLY = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Left { float left[]; };
layout(set = 0, binding = 1) buffer Right { float right[]; };
layout(set = 0, binding = 2) buffer Product { float product[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    product[i] = left[i] * right[i];
}
"""


@pytest.fixture(params=[OLDER, NEWER], ids=["older", "newer"])
def ops(request):
    """(upload, download, copy) of one generation."""
    return tuple(getattr(kp, name) for name in request.param)


@pytest.fixture
def multiply(mgr):
    return kp.compile(MULTIPLY)


# -- operations ----------------------------------------------------------------------------------------------


def test_copy(mgr, ops):
    upload, download, copy = ops
    a, b, c = mgr.tensor([1, 2, 3]), mgr.tensor([0, 0, 0]), mgr.tensor([9, 9, 9])
    mgr.sequence().record(upload([a, b, c])).record(copy([a, b, c])).record(download([a, b, c])).eval()
    assert a.data().tolist() == b.data().tolist() == c.data().tolist() == [1, 2, 3]


def test_mult(mgr, ops):
    upload, download, _ = ops
    a, b, out = mgr.tensor([2, 2, 2]), mgr.tensor([1, 2, 3]), mgr.tensor([0, 0, 0])
    algorithm = mgr.algorithm()
    mgr.sequence().record(upload([a, b, out])).record(kp.OpMult([a, b, out], algorithm)).record(
        download([out])
    ).eval()
    assert out.data().tolist() == [2, 4, 6] and algorithm.is_init()
    assert mgr.algorithm([a, b, out]).get_tensors() == [a, b, out]


PUSH_ADD = """
#version 450
layout(local_size_x = 1) in;
layout(push_constant) uniform Constants {{ {type} x; {type} y; {type} z; }} pushed;
layout(set = 0, binding = 0) buffer Sum {{ {type} sum[]; }};
void main() {{ sum[0] += pushed.x; sum[1] += pushed.y; sum[2] += pushed.z; }}
"""


def test_push_constants_by_dispatch(mgr, ops):
    t = mgr.tensor([0, 0, 0])
    algorithm = mgr.algorithm([t], kp.compile(PUSH_ADD.format(type="float")), (1, 1, 1), [], [0.1, 0.2, 0.3])
    (
        mgr.sequence()
        .record(ops[0]([t]))
        .record(kp.OpAlgoDispatch(algorithm))
        .record(kp.OpAlgoDispatch(algorithm, [0.3, 0.2, 0.1]))
        .record(kp.OpAlgoDispatch(algorithm, push_consts=[0.3, 0.2, 0.1]))
        .record(kp.OpAlgoDispatch(algorithm=algorithm))
        .record(ops[1]([t]))
        .eval()
    )
    np.testing.assert_allclose(t.data(), [0.8, 0.8, 0.8], rtol=1e-6)


@pytest.mark.parametrize(
    ("type", "dtype"), [("int", np.int32), ("uint", np.uint32), ("float", np.float32), ("double", np.float64)]
)
def test_push_constants_as_arrays(mgr, needs, ops, type, dtype):
    if type == "double":
        needs(mgr, "shaderFloat64")
    t = mgr.tensor_t(np.zeros(3, dtype))
    first, second = np.array([1, 2, 3], dtype), np.array([40, 50, 60], dtype)
    algorithm = mgr.algorithm(
        [t], kp.compile(PUSH_ADD.format(type=type)), (1, 1, 1), np.array([], dtype), first
    )
    (
        mgr.sequence()
        .record(ops[0]([t]))
        .record(kp.OpAlgoDispatch(algorithm))
        .record(kp.OpAlgoDispatch(algorithm, second))
        .record(ops[1]([t]))
        .eval()
    )
    assert t.data().dtype == dtype and t.data().tolist() == [41, 52, 63]


# -- sequences -----------------------------------------------------------------------------------------------


def test_sequence_arguments(mgr, needs):
    for seq in (mgr.sequence(), mgr.sequence(0), mgr.sequence(queue_index=0), mgr.sequence(0, 0)):
        assert isinstance(seq, kp.Sequence) and seq.is_init()
    needs(mgr, "timestamps")
    for seq in (
        mgr.sequence(0, 7),
        mgr.sequence(total_timestamps=16),
        mgr.sequence(queue_index=0, total_timestamps=7),
    ):
        assert seq.is_init()


def test_a_chain(mgr, multiply, ops):
    upload, download, _ = ops
    params = [mgr.tensor([2, 2, 2]), mgr.tensor([1, 2, 3]), mgr.tensor([0, 0, 0])]
    seq = mgr.sequence()
    first = seq.record(upload(params))
    last = (
        first.record(kp.OpAlgoDispatch(mgr.algorithm(params, multiply))).record(download([params[2]])).eval()
    )
    assert first is seq and last is seq
    assert params[2].data().tolist() == [2.0, 4.0, 6.0] and np.all(params[2].data() == [2.0, 4.0, 6.0])


def test_evaluating_operations_one_by_one(mgr, multiply, ops):
    upload, download, _ = ops
    params = [mgr.tensor([2, 2, 2]), mgr.tensor([1, 2, 3]), mgr.tensor([0, 0, 0])]
    seq = mgr.sequence()
    assert seq.eval(upload(params)) is seq
    assert seq.eval(kp.OpAlgoDispatch(mgr.algorithm(params, multiply))) is seq
    assert seq.eval(download([params[2]])) is seq
    assert params[2].data().tolist() == [2, 4, 6]


def test_asynchronous_evaluation(mgr, multiply, ops):
    upload, download, _ = ops
    params = [mgr.tensor([2, 2, 2]), mgr.tensor([1, 2, 3]), mgr.tensor([0, 0, 0])]
    seq = mgr.sequence()
    assert seq.eval_async(upload(params)) is seq and seq.is_running()
    assert seq.eval_await() is seq and not seq.is_running()
    seq.record(kp.OpAlgoDispatch(mgr.algorithm(params, multiply)))
    assert seq.eval_async() is seq and seq.is_running()
    assert seq.eval_await(10_000) is seq and not seq.is_running()
    seq.eval_async(download([params[2]]))
    seq.eval_await()
    assert params[2].data().tolist() == [2, 4, 6]


def test_sequence_states(mgr, ops):
    t = mgr.tensor([1])
    seq = mgr.sequence()
    states = [(seq.is_init(), seq.is_recording(), seq.is_running())]
    for step in (
        lambda: seq.record(ops[0]([t])), seq.eval, lambda: seq.record(ops[0]([t])), seq.clear,
        lambda: seq.record(ops[0]([t])),
        seq.eval_async, seq.eval_await, seq.destroy,
    ):  # fmt: skip
        step()
        states.append((seq.is_init(), seq.is_recording(), seq.is_running()))
    yes, no = True, False
    assert states == [
        (yes, no, no), (yes, yes, no), (yes, no, no), (yes, yes, no), (yes, no, no), (yes, yes, no),
        (yes, no, yes),
        (yes, no, no), (no, no, no),
    ]  # fmt: skip


def test_clear_and_rerecord(mgr, ops):
    t = mgr.tensor([0, 0, 0])
    algorithm = mgr.algorithm([t], kp.compile(PUSH_ADD.format(type="float")), (1, 1, 1), [], [1, 2, 3])
    mgr.sequence().eval(ops[0]([t]))
    seq = mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).record(kp.OpAlgoDispatch(algorithm))
    assert seq.clear() is None
    seq.record(kp.OpAlgoDispatch(algorithm)).eval().eval()
    assert seq.rerecord() is None
    seq.eval()
    mgr.sequence().eval(ops[1]([t]))
    assert t.data().tolist() == [3, 6, 9]


def test_a_record_after_an_eval_evaluates_only_what_is_new(mgr, ops):
    """Kompute's README: "evaluates only last recorded operation"."""
    t = mgr.tensor([0, 0, 0])
    algorithm = mgr.algorithm([t], kp.compile(PUSH_ADD.format(type="float")), (1, 1, 1), [], [1, 1, 1])
    seq = mgr.sequence().record(ops[0]([t])).record(kp.OpAlgoDispatch(algorithm)).eval()
    seq.record(kp.OpAlgoDispatch(algorithm, [10, 20, 30])).eval()
    seq.record(ops[1]([t])).eval()
    assert t.data().tolist() == [11, 21, 31]


def test_timestamps(mgr, needs, ops):
    needs(mgr, "timestamps")
    t = mgr.tensor(np.zeros(1000))
    seq = mgr.sequence(total_timestamps=16).record(ops[0]([t])).record(ops[1]([t])).eval()
    stamps = seq.get_timestamps()
    assert isinstance(stamps, list) and len(stamps) == 3 and all(type(tick) is int for tick in stamps)
    assert stamps[-1] - stamps[0] >= 0


def test_destroying_each(mgr, multiply, ops):
    params = [mgr.tensor([2, 2, 2]), mgr.tensor([1, 2, 3]), mgr.tensor([0, 0, 0])]
    algorithm = mgr.algorithm(params, multiply)
    seq = (
        mgr.sequence()
        .record(ops[0](params))
        .record(kp.OpAlgoDispatch(algorithm))
        .record(ops[1](params))
        .eval()
    )
    for thing in (seq, algorithm, *params, mgr):
        assert thing.is_init() is True
        assert thing.destroy() is None
        assert thing.is_init() is False


def test_the_manager_destroys_its_children(mgr, multiply, ops):
    params = [mgr.tensor([2, 2, 2]), mgr.tensor([1, 2, 3]), mgr.tensor([0, 0, 0])]
    algorithm = mgr.algorithm(params, multiply)
    seq = mgr.sequence().record(ops[0](params))
    mgr.destroy()
    assert not any(thing.is_init() for thing in (*params, algorithm, seq))


# -- whole scripts -------------------------------------------------------------------------------------------


def test_the_readme_in_one(mgr, ops):
    """Two outputs of another dtype, constants of both kinds, an override, and a second, asynchronous
    sequence.
    """
    upload, download, _ = ops
    a, b = mgr.tensor([2, 2, 2]), mgr.tensor([1, 2, 3])
    products, sums = mgr.tensor_t(np.zeros(3, np.uint32)), mgr.tensor_t(np.array([0, 0, 0], dtype=np.uint32))
    params = [a, b, products, sums]
    code = kp.compile("""
        #version 450
        layout(local_size_x = 1) in;
        layout(set = 0, binding = 0) buffer A { float a[]; };
        layout(set = 0, binding = 1) buffer B { float b[]; };
        layout(set = 0, binding = 2) buffer Products { uint products[]; };
        layout(set = 0, binding = 3) buffer Sums { uint sums[]; };
        layout(push_constant) uniform Constants { float pushed; };
        layout(constant_id = 0) const float special = 0;
        void main() {
            uint i = gl_GlobalInvocationID.x;
            products[i] += uint(a[i] * b[i]);
            sums[i] += uint(special * pushed);
        }
    """)
    algorithm = mgr.algorithm(params, code, (3, 1, 1), [2], [2])
    (
        mgr.sequence()
        .record(upload(params))
        .record(kp.OpAlgoDispatch(algorithm))
        .record(kp.OpAlgoDispatch(algorithm, [3]))
        .eval()
    )
    seq = mgr.sequence()
    seq.eval_async(download(params))
    seq.eval_await()
    assert products.data().tolist() == [4, 8, 12]
    assert sums.data().tolist() == [10, 10, 10]


def test_sequences_that_take_turns(mgr, ops):
    upload, download, _ = ops
    x, step, y = mgr.tensor([1, 2, 3]), mgr.tensor([1, 1, 1]), mgr.tensor([0, 0, 0])
    add = kp.compile(MULTIPLY.replace(" * ", " + "))
    mgr.sequence().eval(upload([x, step, y]))
    there, back, sync = mgr.sequence(), mgr.sequence(), mgr.sequence()
    there.record(kp.OpAlgoDispatch(mgr.algorithm([x, step, y], add)))
    back.record(kp.OpAlgoDispatch(mgr.algorithm([y, step, x], add)))
    sync.record(download([x, y]))
    for _ in range(10):
        there.eval()
        back.eval()
    sync.eval()
    assert x.data().tolist() == [21, 22, 23] and y.data().tolist() == [20, 21, 22]


LOGISTIC = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Xi { float x_i[]; };
layout(set = 0, binding = 1) buffer Xj { float x_j[]; };
layout(set = 0, binding = 2) buffer Y { float y[]; };
layout(set = 0, binding = 3) buffer W { float w[]; };
layout(set = 0, binding = 4) buffer Gi { float grad_i[]; };
layout(set = 0, binding = 5) buffer Gj { float grad_j[]; };
layout(set = 0, binding = 6) buffer B { float bias[]; };
layout(set = 0, binding = 7) buffer Gb { float grad_b[]; };
layout(set = 0, binding = 8) buffer L { float loss[]; };
layout(set = 0, binding = 9) buffer M { float count[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    float guess = 1.0 / (1.0 + exp(-(dot(vec2(w[0], w[1]), vec2(x_i[i], x_j[i])) + bias[0])));
    float delta = (guess - y[i]) / count[0];
    grad_i[i] = delta * x_i[i];
    grad_j[i] = delta * x_j[i];
    grad_b[i] = delta;
    loss[i] = -(y[i] * log(guess) + (1.0 - y[i]) * log(1.0 - guess));
}
"""


def test_logistic_regression(mgr, ops):
    """One recorded sequence that uploads the weights of each step, ten bindings, gradients applied on the
    host.
    """
    upload, download, _ = ops
    x_i, x_j, y = np.float32([0, 1, 1, 1, 1]), np.float32([0, 0, 0, 1, 1]), np.float32([0, 0, 0, 1, 1])
    t_xi, t_xj, t_y = mgr.tensor(x_i), mgr.tensor(x_j.tolist()), mgr.tensor(y)
    weights, bias = mgr.tensor(np.array([0.001, 0.001])), mgr.tensor([0.0])
    grad_i, grad_j, grad_b, loss = (mgr.tensor(np.zeros(5)) for _ in range(4))
    count = mgr.tensor([t_y.size()])
    params = [t_xi, t_xj, t_y, weights, grad_i, grad_j, bias, grad_b, loss, count]
    mgr.sequence().eval(upload(params))
    seq = mgr.sequence()
    seq.record(upload([weights, bias]))
    seq.record(kp.OpAlgoDispatch(mgr.algorithm(params, kp.compile(LOGISTIC))))
    seq.record(download([grad_i, grad_j, grad_b, loss]))
    w, b = np.array([0.001, 0.001]), 0.0
    losses = []
    for _ in range(100):
        seq.eval()
        for j in range(grad_b.size()):
            weights.data()[0] -= 0.1 * grad_i.data()[j]
            weights.data()[1] -= 0.1 * grad_j.data()[j]
            bias.data()[0] -= 0.1 * grad_b.data()[j]
        losses.append(loss.data().mean())
        delta = 0.1 * (1 / (1 + np.exp(-(w[0] * x_i + w[1] * x_j + b))) - y) / 5
        w, b = w - [(delta * x_i).sum(), (delta * x_j).sum()], b - delta.sum()
    np.testing.assert_allclose(weights.data(), w, rtol=1e-3)
    assert bias.data()[0] == pytest.approx(b, rel=1e-3)
    assert losses[-1] < 0.8 * losses[0] and weights.data()[1] > 0.5 > weights.data()[0]


TILED = """
#version 450
layout(local_size_x = {tile}, local_size_y = {tile}) in;
layout(set = 0, binding = 0) readonly buffer Left {{ float left[]; }};
layout(set = 0, binding = 1) readonly buffer Right {{ float right[]; }};
layout(set = 0, binding = 2) writeonly buffer Product {{ float product[]; }};
layout(constant_id = 0) const float size_as_float = 0;
shared float tile_left[{tile}][{tile}];
shared float tile_right[{tile}][{tile}];
void main() {{
    uint size = uint(size_as_float), x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y;
    uint lx = gl_LocalInvocationID.x, ly = gl_LocalInvocationID.y;
    float sum = 0.0;
    for (uint k = 0; k < size; k += {tile}) {{
        tile_left[ly][lx] = left[y * size + k + lx];
        tile_right[ly][lx] = right[(k + ly) * size + x];
        barrier();
        for (uint j = 0; j < {tile}; ++j) sum += tile_left[ly][j] * tile_right[j][lx];
        barrier();
    }}
    product[y * size + x] = sum;
}}
"""


class MatMul:
    """As Kompute's example has it: the algorithm is made anew when the parameters change."""

    def __init__(self, manager: kp.Manager, tile: int) -> None:
        properties = manager.get_device_properties()
        assert tile * tile <= properties["max_work_group_invocations"]
        assert tile <= min(properties["max_work_group_size"][:2])
        self.manager, self.tile = manager, tile
        self.code = kp.Shader.compile_source(TILED.format(tile=tile))
        self.algorithm: kp.Algorithm | None = None
        self.params: list[kp.Tensor] = []
        self.made = 0

    def __call__(self, shape: list[int], *params: kp.Tensor) -> None:
        if self.algorithm is None or self.params != list(params):
            self.params = list(params)
            groups = (shape[0] // self.tile, shape[1] // self.tile, 1)
            self.algorithm = self.manager.algorithm(self.params, self.code, groups, [float(shape[0])], [])
            self.made += 1
        (
            self.manager.sequence()
            .record(kp.OpTensorSyncDevice([params[0], params[1]]))
            .record(kp.OpAlgoDispatch(self.algorithm))
            .record(kp.OpTensorSyncLocal([params[2]]))
            .eval()
        )


def test_tiled_matrix_multiplication(mgr):
    shape = [16, 16]
    left, right = np.triu(np.ones(shape)), np.arange(256.0).reshape(shape) % 7
    t_left, t_right, out = mgr.tensor(left), mgr.tensor(right), mgr.tensor(np.zeros(shape))
    multiply = MatMul(mgr, 4)
    for _ in range(3):
        multiply(shape, t_left, t_right, out)
    assert multiply.made == 1
    assert (out.data().reshape(shape) == left @ right).all()
    multiply(shape, t_right, t_left, out)
    assert multiply.made == 2 and (out.data().reshape(shape) == right @ left).all()


def test_layers_that_stay_on_the_device(mgr):
    """As in Kompute's image network: tensors of each layer are made as it goes, and only the last is
    downloaded.
    """
    code = kp.compile("""
        #version 450
        layout(local_size_x = 8, local_size_y = 2) in;
        layout(set = 0, binding = 0) buffer In { readonly restrict vec4 source[]; };
        layout(set = 0, binding = 1) buffer Weight { readonly restrict mat4 weight[]; };
        layout(set = 0, binding = 2) buffer Out { writeonly restrict vec4 target[]; };
        layout(constant_id = 0) const float width = 0;
        layout(constant_id = 1) const float height = 0;
        void main() {
            if (gl_GlobalInvocationID.x < uint(width) && gl_GlobalInvocationID.y < uint(height)) {
                uint i = gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * uint(width);
                target[i] = weight[0] * source[i];
            }
        }
    """)
    h, w = 5, 19
    random = np.random.default_rng(1)
    expected = random.random((h, w, 4), np.float32)
    current = mgr.tensor(expected)
    for layer in range(3):
        weight = random.random((4, 4), np.float32)
        target, weights = mgr.tensor(np.zeros(h * w * 4)), mgr.tensor(weight)
        upload = mgr.sequence()
        upload.eval_async(kp.OpSyncDevice([weights] + [current] * (layer == 0)))
        upload.eval_await()
        algorithm = mgr.algorithm(
            [current, weights, target], code, ((w + 7) // 8, (h + 1) // 2, 1), [w, h], []
        )
        mgr.sequence().record(kp.OpAlgoDispatch(algorithm, [])).eval()
        expected, current = expected @ weight, target
    last = mgr.sequence()
    last.eval_async(kp.OpSyncLocal([current]))
    last.eval_await()
    np.testing.assert_allclose(current.data().reshape(h, w, 4), expected, rtol=1e-5)
