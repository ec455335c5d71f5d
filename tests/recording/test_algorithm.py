"""Algorithms: binding, default workgroups, constants that reach the shader."""

from __future__ import annotations

import warnings
from functools import lru_cache

import numpy as np
import pytest

import kompute_py as kp
import kompute_py._recording.algorithm as module

MULTIPLY = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 0, binding = 1) buffer B { float b[]; };
layout(set = 0, binding = 2) buffer C { float c[]; };
void main() { uint i = gl_GlobalInvocationID.x; c[i] = a[i] * b[i]; }
"""

CONSTANTS = """
#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint count = 3;
layout(constant_id = 1) const float factor = 2.0;
layout(constant_id = 2) const bool negate = false;
layout(push_constant) uniform Params { float scale; uint steps; int shift; } p;
layout(set = 0, binding = 0) buffer Out { float values[]; };
void main() {
    values[0] = float(count); values[1] = factor; values[2] = negate ? 1.0 : 0.0;
    values[3] = p.scale; values[4] = float(p.steps); values[5] = float(p.shift);
}
"""

SPARSE = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 1) readonly buffer In { float source[]; };
layout(set = 0, binding = 3) buffer Out { float target[]; };
void main() { target[gl_GlobalInvocationID.x] = source[gl_GlobalInvocationID.x] + 1.0; }
"""

GROUPS = """
#version 450
layout(local_size_x = 4, local_size_y = 2) in;
layout(set = 0, binding = 0) buffer Counts { uint invocations; uvec3 groups; };
void main() { atomicAdd(invocations, 1); groups = gl_NumWorkGroups; }
"""

IMAGE = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, r32f) uniform image2D picture;
layout(set = 0, binding = 1) buffer Out { float values[]; };
void main() { values[0] = imageLoad(picture, ivec2(0)).r; }
"""

NOTHING = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n"


@lru_cache
def spirv(source):
    return kp.compile(source)


def run(mgr, algorithm, out, *ops):
    seq = mgr.sequence()
    for op in ops or [kp.OpAlgoDispatch(algorithm)]:
        seq.record(op)
    seq.record(kp.OpSyncLocal([out])).eval()
    return out.data().copy()


@pytest.fixture
def abc(mgr):
    return [mgr.tensor([2, 4, 6]), mgr.tensor([1, 2, 3]), mgr.tensor([0, 0, 0])]


@pytest.mark.capability(
    "K5", "a pipeline of a shader with its memory and constants", "Manager.algorithm", "concepts/recording"
)
def test_multiply(mgr, abc):
    algorithm = mgr.algorithm(abc, spirv(MULTIPLY))
    mgr.sequence().record(kp.OpSyncDevice(abc)).eval()
    np.testing.assert_array_equal(run(mgr, algorithm, abc[2]), [2, 8, 18])


@pytest.mark.capability(
    "K54 K55",
    "the bound tensors; whether the pipeline is alive",
    "Algorithm.get_tensors, Algorithm.is_init",
    "reference/recording",
)
def test_what_it_shows(mgr, abc):
    algorithm = mgr.algorithm(abc, spirv(MULTIPLY))
    assert algorithm.is_init() and algorithm.get_tensors() == abc == algorithm.get_mem_objects()
    assert all(x is y for x, y in zip(algorithm.get_tensors(), abc, strict=True))
    assert [b.binding for b in algorithm.bindings] == [0, 1, 2]
    assert [b.access for b in algorithm.bindings] == ["read", "read", "write"]
    assert algorithm.local_size == (1, 1, 1) and algorithm.workgroup == (3, 1, 1)
    assert algorithm.push_constants is None and algorithm.spec_constants == ()
    assert (
        algorithm.vk_pipeline > 0
        and algorithm.vk_pipeline_layout > 0
        and len(algorithm.vk_descriptor_sets) == 1
    )
    assert algorithm.manager is mgr and "3 tensors" in repr(algorithm)
    algorithm.name = "product"
    assert algorithm.name == "product" and "product" in repr(algorithm)


def test_reflection_of_constants(mgr):
    algorithm = mgr.algorithm([mgr.zeros(6)], spirv(CONSTANTS), (1, 1, 1))
    assert algorithm.push_constants.name == "Params" and algorithm.push_constants.size == 12
    assert algorithm.push_constants.components == ("scale", "steps", "shift")
    assert [(c.id, c.type, c.default) for c in algorithm.spec_constants] == [
        (0, "uint32", 3), (1, "float32", 2.0), (2, "bool", False),
    ]  # fmt: skip


@pytest.mark.capability(
    "K8", "SPIR-V as bytes, array, file or module", "Manager.algorithm", "reference/manager"
)
@pytest.mark.parametrize(
    "form", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint32), "file", "str"]
)
def test_forms_of_spirv(mgr, abc, form, tmp_path):
    code = spirv(MULTIPLY)
    if isinstance(form, str):
        path = tmp_path / "multiply.spv"
        path.write_bytes(code)
        given = path if form == "file" else str(path)
    else:
        given = form(code)
    assert mgr.algorithm(abc, given).is_init()


@pytest.mark.capability("K9", "numbers of workgroups", "Algorithm.workgroup", "reference/recording")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((5, 1, 1), (5, 1, 1)), ([2, 3, 4], (2, 3, 4)), ((7,), (7, 1, 1)), ([7, 2], (7, 2, 1)),
        (6, (6, 1, 1)),
        ((3, 0, 0), (3, 1, 1)), ((0, 9, 9), (3, 1, 1)), (np.array([2, 2, 1]), (2, 2, 1)), ((), (3, 1, 1)),
        ((np.int64(4), 1, 1), (4, 1, 1)),
    ],
)  # fmt: skip
def test_workgroup_forms(mgr, abc, given, expected):
    assert mgr.algorithm(abc, spirv(MULTIPLY), given).workgroup == expected


def test_workgroup_errors(mgr, abc):
    code = spirv(MULTIPLY)
    limit = mgr.get_device_properties().max_work_group_count
    with pytest.raises(kp.InvalidArgumentError, match="maxComputeWorkGroupCount"):
        mgr.algorithm(abc, code, (limit[0] + 1, limit[1] + 1, 1))
    with pytest.raises(kp.InvalidArgumentError, match="negative"):
        mgr.algorithm(abc, code, (-1, 1, 1))
    with pytest.raises(kp.InvalidArgumentError, match="up to three"):
        mgr.algorithm(abc, code, (1, 1, 1, 1))
    for bad in ("abc", (1.5, 1, 1), None):
        with pytest.raises(kp.ArgumentTypeError, match="workgroup"):
            mgr.algorithm(abc, code, bad)
    with pytest.raises(kp.InvalidArgumentError, match="no tensors"):
        mgr.algorithm([], spirv(NOTHING))
    assert mgr.algorithm([], spirv(NOTHING), (1, 1, 1)).is_init()


def test_the_default_workgroup_warns_once(mgr, monkeypatch):
    monkeypatch.setattr(module, "_default_workgroup_warned", False)
    t = mgr.zeros(8, np.uint32)
    with pytest.warns(kp.KomputeWarning, match=r"8 groups.*workgroup=\(2, 1, 1\)") as caught:
        mgr.algorithm([t], spirv(GROUPS))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mgr.algorithm([t], spirv(GROUPS))
        mgr.algorithm([t], spirv(GROUPS), (1, 1, 1))


def test_group_counts(mgr):
    out = mgr.tensor_t(np.zeros(8, np.uint32))
    algorithm = mgr.algorithm([out], spirv(GROUPS), (3, 2, 2))
    got = run(mgr, algorithm, out, kp.OpSyncDevice([out]), kp.OpAlgoDispatch(algorithm))
    assert got[0] == 3 * 2 * 2 * 8 and list(got[4:7]) == [3, 2, 2]
    got = run(mgr, algorithm, out, kp.OpSyncDevice([mgr.zeros(1)]), kp.OpAlgoDispatch(algorithm, grid=(9, 5)))
    assert list(got[4:7]) == [3, 3, 1]


def constants_of(mgr, spec=(), push=(), override=None):
    out = mgr.zeros(6)
    algorithm = mgr.algorithm([out], spirv(CONSTANTS), (1, 1, 1), spec, push)
    op = kp.OpAlgoDispatch(algorithm) if override is None else kp.OpAlgoDispatch(algorithm, override)
    return list(run(mgr, algorithm, out, op))


@pytest.mark.capability(
    "K6 K10 K11",
    "push and specialization constants of each type",
    "Algorithm.push_consts, Algorithm.spec_consts",
    "reference/kernel_rules",
)
@pytest.mark.parametrize(
    ("spec", "push", "expected"),
    [
        ([], [], [3, 2, 0, 0, 0, 0]),
        ([5, 0.25, True], [1.5, 7, -2], [5, 0.25, 1, 1.5, 7, -2]),
        ([5], [1, 2, 3], [5, 2, 0, 1, 2, 3]),
        (np.array([5.0, 0.25]), np.array([1.5, 7, -2]), [5, 0.25, 0, 1.5, 7, -2]),
        ({1: 4}, (1, 2, 3), [3, 4, 0, 1, 2, 3]),
        ({"factor": 4, "negate": 1}, [1, 2, 3], [3, 4, 1, 1, 2, 3]),
        ([], np.array((0.5, 3, -4), [("a", "f4"), ("b", "u4"), ("c", "i4")]), [3, 2, 0, 0.5, 3, -4]),
        ([], np.array([7, 8, 9], np.int64), [3, 2, 0, 7, 8, 9]),
        ([], np.array([1.0, 0, 0], np.float32), [3, 2, 0, 1, 0, 0]),
    ],
)
def test_constants_reach_the_shader(mgr, spec, push, expected):
    assert constants_of(mgr, spec, push) == expected


@pytest.mark.capability(
    "K60", "a dispatch, with constants of its own", "kp.OpAlgoDispatch", "concepts/recording"
)
def test_push_constants_of_one_dispatch(mgr):
    out = mgr.zeros(6)
    algorithm = mgr.algorithm([out], spirv(CONSTANTS), (1, 1, 1), [], [1, 1, 1])
    assert list(run(mgr, algorithm, out, kp.OpAlgoDispatch(algorithm, [9, 8, 7])))[3:] == [9, 8, 7]
    assert list(run(mgr, algorithm, out, kp.OpAlgoDispatch(algorithm)))[3:] == [1, 1, 1]
    assert list(run(mgr, algorithm, out, kp.OpAlgoDispatch(algorithm, [])))[3:] == [1, 1, 1]
    both = (kp.OpAlgoDispatch(algorithm, [9, 8, 7]), kp.OpAlgoDispatch(algorithm))
    assert list(run(mgr, algorithm, out, *both))[3:] == [1, 1, 1]


def test_constant_errors(mgr):
    code = spirv(CONSTANTS)
    out = mgr.zeros(6)
    algorithm = mgr.algorithm([out], code, (1, 1, 1))
    for push in ([1, 2], [1, 2, 3, 4], np.zeros(5, np.float32), b"12345"):
        with pytest.raises(kp.InvalidArgumentError, match="12 bytes"):
            mgr.algorithm([out], code, (1, 1, 1), [], push)
        with pytest.raises(kp.InvalidArgumentError, match="12 bytes"):
            kp.OpAlgoDispatch(algorithm, push)
    with pytest.raises(kp.InvalidArgumentError, match="steps"):
        kp.OpAlgoDispatch(algorithm, [1, -1, 1])
    with pytest.raises(kp.InvalidArgumentError, match="ids 0"):
        mgr.algorithm([out], code, (1, 1, 1), {7: 1})


def test_surplus_warns(mgr, abc):
    code = spirv(MULTIPLY)
    with pytest.warns(kp.KomputeWarning, match="4 tensors.*3 bindings") as caught:
        algorithm = mgr.algorithm([*abc, mgr.zeros(1)], code)
    assert caught[0].filename == __file__
    assert len(algorithm.get_tensors()) == 4
    with pytest.warns(kp.KomputeWarning, match="push_consts") as caught:
        mgr.algorithm(abc, code, (1, 1, 1), [], [1.0])
    assert caught[0].filename == __file__
    with pytest.warns(kp.KomputeWarning, match="spec_consts"):
        mgr.algorithm(abc, code, (1, 1, 1), [1.0])
    with pytest.warns(kp.KomputeWarning, match="push_consts"):
        kp.OpAlgoDispatch(algorithm, [1.0])


def test_a_path_with_no_spirv(mgr, tmp_path):
    with pytest.raises(kp.NotFoundError, match=r"no SPIR-V file 'gone\.spv'"):
        mgr.algorithm([mgr.zeros(1)], "gone.spv")
    with pytest.raises(kp.NotFoundError, match="Cannot read the SPIR-V file"):
        mgr.algorithm([mgr.zeros(1)], tmp_path)


def test_the_default_workgroup_says_so_in_errors(mgr):
    count = mgr.get_device_properties().max_work_group_count[0] + 1
    if count > 2**24:
        pytest.skip(f"one group more than the device runs takes a tensor of {count} elements")
    said = rf"default workgroup .one group for each element.* {count} groups.*gl_NumWorkGroups"
    with pytest.raises(kp.InvalidArgumentError, match=said):
        mgr.algorithm([mgr.empty(count, np.uint32)], spirv(GROUPS))


def test_too_few_tensors(mgr, abc):
    with pytest.raises(kp.InvalidArgumentError, match=r"needs 3 tensors; 1 was given \(binding 1"):
        mgr.algorithm(abc[:1], spirv(MULTIPLY))


@pytest.mark.capability(
    "K7", "tensors in the order of the bindings", "Algorithm.bindings", "reference/recording"
)
def test_sparse_bindings(mgr):
    unused, source, target = mgr.zeros(4), mgr.tensor([1, 2, 3, 4]), mgr.zeros(4)
    algorithm = mgr.algorithm([unused, source, unused, target], spirv(SPARSE))
    got = run(mgr, algorithm, target, kp.OpSyncDevice([source]), kp.OpAlgoDispatch(algorithm))
    np.testing.assert_array_equal(got, [2, 3, 4, 5])


def test_wrong_kinds(mgr, abc):
    with pytest.raises(kp.InvalidArgumentError, match=r"storage image.*mgr\.image"):
        mgr.algorithm(abc, spirv(IMAGE))
    picture = mgr.image(np.zeros((2, 2)))
    with pytest.raises(kp.InvalidArgumentError, match=r"storage buffer.*mgr\.tensor"):
        mgr.algorithm([picture, picture, picture], spirv(MULTIPLY))
    for bad in ([1, 2, 3], [np.zeros(3)] * 3, abc[0], 5):
        with pytest.raises(kp.ArgumentTypeError, match="tensors"):
            mgr.algorithm(bad, spirv(MULTIPLY))


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (b"", kp.InvalidArgumentError), (b"abc", kp.InvalidArgumentError),
        (b"not SPIR-V at all, really", kp.InvalidArgumentError),
        (MULTIPLY.encode(), kp.InvalidArgumentError), (MULTIPLY, kp.ArgumentTypeError),
        (5, kp.ArgumentTypeError),
    ],
)  # fmt: skip
def test_what_is_not_spirv(mgr, abc, code, error):
    with pytest.raises(error):
        mgr.algorithm(abc, code)


def test_damaged_spirv(mgr, abc):
    code = bytearray(spirv(MULTIPLY))
    refused = 0
    for at in range(20, len(code), 36):
        damaged = bytes(code[:at]) + b"\xff\xff\xff\x7f" + bytes(code[at + 4 :])
        try:
            mgr.algorithm(abc, damaged)  # where only a name was hit, the module stays valid
        except kp.KomputeError:
            refused += 1
    assert refused > 10
    for cut in (20, 21, 24, len(code) // 2, len(code) - 4):
        with pytest.raises(kp.InvalidArgumentError):
            mgr.algorithm(abc, bytes(code[:cut]))


@pytest.mark.capability("K56", "a pipeline given back early", "Algorithm.destroy", "reference/recording")
def test_after_destroy(mgr, abc):
    algorithm = mgr.algorithm(abc, spirv(MULTIPLY))
    seq = mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()
    algorithm.destroy()
    algorithm.destroy()
    assert not algorithm.is_init() and "destroyed" in repr(algorithm)
    with pytest.raises(kp.FailedPreconditionError):
        seq.eval()
    with pytest.raises(kp.FailedPreconditionError):
        mgr.sequence().record(kp.OpAlgoDispatch(algorithm))
    abc[0].destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        mgr.algorithm(abc, spirv(MULTIPLY))


def test_another_managers_tensor(mgr, make_manager, abc):
    other = make_manager()
    with pytest.raises(kp.InvalidArgumentError, match=r"tensors\[1\].*belongs to"):
        mgr.algorithm([abc[0], other.zeros(3), abc[2]], spirv(MULTIPLY))
    with pytest.raises(kp.InvalidArgumentError):
        other.sequence().record(kp.OpAlgoDispatch(mgr.algorithm(abc, spirv(MULTIPLY))))


@pytest.mark.capability(
    "K53", "an algorithm made directly, its shader later", "kp.Algorithm", "reference/recording"
)
def test_made_directly_and_without_a_shader(mgr, abc):
    assert kp.Algorithm(mgr, abc, spirv(MULTIPLY)).workgroup == (3, 1, 1)
    empty = mgr.algorithm()
    assert not empty.is_init() and empty.get_tensors() == []
    empty.destroy()
    for use in (lambda: empty.workgroup, lambda: empty.bindings, lambda: kp.OpAlgoDispatch(empty)):
        with pytest.raises(kp.FailedPreconditionError, match="no shader"):
            use()


def test_the_same_spirv_again_is_one_shader(mgr, abc):
    first = mgr.algorithm(abc, spirv(MULTIPLY))
    shaders = kp.alive(detail=True)["shader"]
    again = [mgr.algorithm(abc, bytes(bytearray(spirv(MULTIPLY)))) for _ in range(3)]
    assert kp.alive(detail=True)["shader"] == shaders
    assert first.is_init() and all(a.is_init() for a in again)


@pytest.mark.parametrize("language", ["glsl", "hlsl"])
def test_the_only_entry_point_needs_no_name(mgr, language):
    sources = {
        "glsl": """#version 450
            layout(local_size_x = 1) in;
            layout(binding = 0) buffer Data { float data[]; };
            void main() { data[gl_GlobalInvocationID.x] += 1; }""",
        "hlsl": """RWStructuredBuffer<float> data : register(u0);
            [numthreads(1, 1, 1)] void increment(uint3 id : SV_DispatchThreadID) { data[id.x] += 1; }""",
    }
    t = mgr.tensor([1, 2, 3])
    algorithm = mgr.algorithm([t], kp.compile(sources[language], language=language, entry="increment"))
    seq = mgr.sequence().record(kp.OpSyncDevice([t])).record(kp.OpAlgoDispatch(algorithm))
    seq.record(kp.OpSyncLocal([t])).eval()
    np.testing.assert_array_equal(t.data(), [2, 3, 4])


# -- changing what is there ----------------------------------------------------------------------------------

CHANGING = """
#version 450
layout(local_size_x = 1) in;
layout(constant_id = 2) const int BASE = 100;
layout(constant_id = 5) const bool NEGATE = false;
layout(push_constant) uniform Push { float factor; int shift; bool twice; } push;
layout(set = 0, binding = 0) buffer V { float v[]; };
void main() {
    float x = float(BASE) + push.factor * float(gl_GlobalInvocationID.x) + float(push.shift);
    v[gl_GlobalInvocationID.x] = (NEGATE ? -x : x) * (push.twice ? 2.0 : 1.0);
}
"""


def values(t, seq):
    seq.eval()
    return t.read().tolist()


def test_push_constants_and_workgroup_can_be_changed(mgr):
    t = mgr.zeros(4)
    algorithm = mgr.algorithm([t], kp.compile(CHANGING), push_consts=[1, 2, False])
    assert algorithm.push_consts == (1.0, 2, False) and algorithm.workgroup == (4, 1, 1)
    seq = mgr.sequence().record(kp.OpAlgoDispatch(algorithm))
    own = mgr.sequence().record(kp.OpAlgoDispatch(algorithm, [0, 7, False]))
    assert values(t, seq) == [102, 103, 104, 105]
    algorithm.push_consts = np.array([10, 0, 0], np.float32)
    assert algorithm.push_consts == (10.0, 0, False)
    assert values(t, seq) == [100, 110, 120, 130]
    algorithm.push_consts = [0, 1, True]
    algorithm.workgroup = 2
    assert algorithm.workgroup == (2, 1, 1) and "workgroup=(2, 1, 1)" in repr(algorithm)
    assert values(t, seq) == [202, 202, 120, 130]
    assert values(t, own) == [107] * 4  # what it was made with
    assert values(t, mgr.sequence().record(kp.OpAlgoDispatch(algorithm, grid=3))) == [202, 202, 202, 107]
    assert values(t, mgr.sequence().record(kp.OpAlgoDispatch(algorithm, [0, 8, False]))) == [
        108, 108, 202, 107,
    ]  # fmt: skip

    for wrong, error in (
        ([1, 2], kp.InvalidArgumentError),
        ([1, 2.5, False], kp.InvalidArgumentError),
        ("a", kp.ArgumentTypeError),
    ):
        with pytest.raises(error):
            algorithm.push_consts = wrong
    for wrong, error in (
        (0, kp.InvalidArgumentError),
        (1 << 33, kp.InvalidArgumentError),
        ("a", kp.ArgumentTypeError),
    ):
        with pytest.raises(error):
            algorithm.workgroup = wrong
    assert algorithm.push_consts == (0.0, 1, True) and algorithm.workgroup == (2, 1, 1)
    algorithm.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        algorithm.push_consts = [1, 2, False]
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        algorithm.workgroup = 1


def test_changes_reach_a_recording_that_runs(mgr):
    t = mgr.zeros(4)
    algorithm = mgr.algorithm([t], kp.compile(CHANGING), push_consts=[0, 1, False])
    seq = mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval_async()
    algorithm.push_consts = [0, 2, False]
    seq.eval_await()
    assert t.read().tolist() == [101] * 4
    assert values(t, seq) == [102] * 4


@pytest.mark.capability(
    "K57", "another shader, memory or constants", "Algorithm.rebuild", "concepts/recording"
)
def test_rebuilding(mgr):
    t, longer = mgr.zeros(2), mgr.zeros(3)
    algorithm = mgr.algorithm([t], kp.compile(CHANGING), spec_consts={"BASE": 10}, push_consts=[1, 0, False])
    assert algorithm.spec_consts == {2: 10, 5: False}
    before = mgr.sequence().record(kp.OpAlgoDispatch(algorithm))
    algorithm.rebuild([longer], spec_consts={2: 20, 5: True})
    assert algorithm.get_tensors() == [longer] and algorithm.workgroup == (3, 1, 1)
    assert algorithm.spec_consts == {2: 20, 5: True} and algorithm.push_consts == (1.0, 0, False)
    assert values(longer, mgr.sequence().record(kp.OpAlgoDispatch(algorithm))) == [-20, -21, -22]
    assert values(t, before) == [10, 11]

    algorithm.rebuild(workgroup=1, push_consts=[0, 5, False])
    assert values(longer, mgr.sequence().record(kp.OpAlgoDispatch(algorithm))) == [-25, -21, -22]
    algorithm.rebuild([t])
    assert algorithm.workgroup == (1, 1, 1) and algorithm.spec_consts == {2: 20, 5: True}
    algorithm.rebuild(spirv=kp.compile(CHANGING.replace("100", "200")))
    assert algorithm.workgroup == (1, 1, 1)  # what was given stays
    assert values(t, mgr.sequence().record(kp.OpAlgoDispatch(algorithm)))[0] == 200
    algorithm.rebuild(spirv=kp.compile(CHANGING.replace("100", "300")), workgroup=2)
    assert algorithm.spec_consts == {2: 300, 5: False} and algorithm.push_consts == (0.0, 0, False)
    assert values(t, mgr.sequence().record(kp.OpAlgoDispatch(algorithm))) == [300, 300]

    for wrong in ({"spirv": b"1234"}, {"tensors": []}, {"push_consts": [1]}, {"spec_consts": {9: 1}}):
        with pytest.raises(kp.InvalidArgumentError):
            algorithm.rebuild(**wrong)
    assert values(t, mgr.sequence().record(kp.OpAlgoDispatch(algorithm))) == [300, 300]
    with pytest.raises(kp.FailedPreconditionError, match="no shader"):
        mgr.algorithm().rebuild(workgroup=1)
    begun = mgr.algorithm()
    begun.rebuild([longer], kp.compile(CHANGING))
    assert begun.workgroup == (3, 1, 1)


def test_what_is_recorded_again_runs_what_an_algorithm_became(mgr):
    t, other = mgr.zeros(2), mgr.zeros(4)
    algorithm = mgr.algorithm([t], kp.compile(CHANGING), push_consts=[1, 0, False])
    plain = kp.OpAlgoDispatch(algorithm)
    ops = (
        plain,
        kp.OpAlgoDispatch(algorithm, [0, 7, False]),
        kp.OpAlgoDispatch(algorithm, grid=1),
        kp.OpAlgoDispatch(algorithm, [0, 7, False], grid=3),
    )
    built = [mgr.sequence().record(op) for op in ops]
    for seq in built:
        seq.eval()
    together = mgr.sequence().record(kp.OpFill([t], 0)).record(plain)
    assert values(t, together) == [100, 101]
    for base in (300, 200):  # twice: the second one stands for both
        algorithm.rebuild([other], spec_consts={"BASE": base})
    # Until they are recorded again, which is said once.
    for seq, before in ((together, [100, 101]), (built[1], [107, 107])):
        with pytest.warns(kp.KomputeWarning, match=r"that was rebuilt since: call rerecord\(\)"):
            assert values(t, seq) == before
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert values(t, seq) == before
    for seq in built:
        seq.rerecord()
    together.rerecord()
    wanted = ([200, 201, 202, 203], [207] * 4, [200, -1, -1, -1], [207, 207, 207, -1])
    for seq, op, expected in zip(built, ops, wanted, strict=True):
        for way in (seq, mgr.sequence().record(op)):
            other.fill(-1)
            assert values(other, way) == expected
    t.fill(5)
    assert values(other, together) == wanted[0] and t.read().tolist() == [0, 0]
    # What is set later counts for them, too.
    algorithm.push_consts = [2, 0, False]
    assert values(other, built[0]) == [200, 202, 204, 206]


@pytest.mark.capability(
    "K35", "a recording made anew after changes", "Sequence.rerecord", "concepts/recording"
)
@pytest.mark.parametrize("anew", ["clear", "record"])
def test_each_recording_of_a_sequence_tells_of_rebuilt_algorithms(mgr, anew):
    t = mgr.zeros(2)
    algorithm = mgr.algorithm([t], kp.compile(CHANGING), push_consts=[1, 0, False])
    seq = mgr.sequence()
    for base in (300, 200):
        if anew == "clear":
            seq.clear()
        seq.record(kp.OpAlgoDispatch(algorithm))  # after an evaluation, this begins a recording
        seq.eval()
        algorithm.rebuild(spec_consts={"BASE": base})
        with pytest.warns(kp.KomputeWarning, match="that was rebuilt since"):
            seq.eval()


def test_the_grid_of_an_operation_follows_the_local_size_of_the_new_shader(mgr):
    source = CHANGING.replace(
        "v[gl_GlobalInvocationID.x] =",
        "if (gl_GlobalInvocationID.x < v.length()) v[gl_GlobalInvocationID.x] =",
    )
    t = mgr.zeros(40)
    algorithm = mgr.algorithm([t], kp.compile(source), workgroup=1)
    seq = mgr.sequence().record(kp.OpAlgoDispatch(algorithm, [1, 0, False], grid=40))
    seq.eval()
    algorithm.rebuild(spirv=kp.compile(source.replace("local_size_x = 1", "local_size_x = 16")), workgroup=1)
    seq.rerecord()
    t.fill(0)
    assert values(t, seq) == [100 + i for i in range(40)]


def test_an_operation_that_does_not_fit_the_new_shader_is_refused_and_nothing_changes(mgr):
    t = mgr.zeros(2)
    algorithm = mgr.algorithm([t], kp.compile(CHANGING))
    op = kp.OpAlgoDispatch(algorithm, [0, 7, False])
    seq = mgr.sequence().record(op)
    assert values(t, seq) == [107, 107]
    algorithm.rebuild(spirv=kp.compile(CHANGING.replace("bool twice;", "bool twice; vec4 more;")))
    for again in (seq.rerecord, lambda: mgr.sequence().record(op)):
        with pytest.raises(kp.InvalidArgumentError, match="Push constants of 12 bytes do not fit"):
            again()
    t.fill(0)
    assert values(t, seq) == [107, 107]


def test_an_algorithm_that_is_rebuilt_again_and_again_lets_go_of_what_was_between(mgr):
    t = mgr.zeros(2)
    algorithm = mgr.algorithm([t], kp.compile(CHANGING))
    kept = [
        mgr.sequence().record(kp.OpAlgoDispatch(algorithm)),
        mgr.sequence().record(kp.OpAlgoDispatch(algorithm, [0, 7, False])),
    ]
    before = kp.alive(detail=True)["algorithm"]
    for _ in range(50):
        algorithm.rebuild(workgroup=2)
    assert kp.alive(detail=True)["algorithm"] == before + 1
    for seq in kept:
        seq.rerecord()
    assert values(t, kept[0]) == [100, 100]
    gone = algorithm
    del algorithm, gone
    assert values(t, kept[1]) == [107, 107]


@pytest.mark.capability("K59", "operations that bring their shader", "kp.OpAlgoBase", "reference/recording")
def test_operations_that_bring_their_shader(mgr):

    class Count(kp.OpAlgoBase):
        def __init__(self, tensor, start):
            super().__init__([tensor], kp.compile(CHANGING), push_consts=[1, start, False])

    t = mgr.zeros(3)
    op = Count(t, 5)
    assert values(t, mgr.sequence().record(op)) == [105, 106, 107]
    assert op.algorithm.get_tensors() == [t]
    with pytest.raises(kp.InvalidArgumentError, match="OpAlgoBase"):
        kp.OpAlgoBase([], kp.compile(CHANGING))


def test_a_shader_module_is_a_shader(mgr):
    module = kp.ShaderModule(CHANGING)
    assert mgr.algorithm([mgr.zeros(2)], module).spec_consts == {2: 100, 5: False}


OVERLAPPED = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = 2 * x[i]; }"""


def test_written_bindings_that_overlap_others_elsewhere_warn(mgr):
    kernel = mgr.kernel(OVERLAPPED)
    t = mgr.zeros(1024)
    says = r"^The shader writes the tensor \(bytes 256 to 512\) and has the tensor \(bytes 0 to 1024\)"
    for use in (
        lambda: kernel(t[:256], t[64:128]),
        lambda: kernel(t[:256], t[64:128]),  # its form is known by now
        lambda: kernel.submit(t[:256], t[64:128]),
        lambda: kernel.bind(t[:256], t[64:128]),
        lambda: mgr.algorithm([t[:256], t[64:128]], kernel, (4, 1, 1)),
    ):
        with pytest.warns(kp.KomputeWarning, match=says):
            use()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x, y in ((t, t), (t[:64], t[64:128]), (t[64:128], t[:64])):
            kernel(x, y)
        before = kp.alive(manager=mgr)
        with pytest.raises(kp.KomputeWarning):
            mgr.algorithm([t, t[64:128]], kernel, (1, 1, 1))
    assert kp.alive(manager=mgr) == before
