"""Code in messages works: what an error or a warning says to write instead is taken out of its text, run, and
given in place of what was refused.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import kompute_py as kp

COPY = """#version 450
layout(local_size_x = 4) in;
layout(binding = 0) readonly buffer A { FROM a[]; };
layout(binding = 1) writeonly buffer B { TO b[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < b.length()) b[i] = TO(a[i]); }
"""
PAIRS = """#version 450
layout(local_size_x = 4) in;
struct S { vec3 at; uint n; };
layout(binding = 0) buffer A { S a[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) a[i].n = 7u; }
"""


def copier(source, target="float"):
    return COPY.replace("FROM", source).replace("TO", target)


def code_in(text, pattern):
    found = re.search(pattern, " ".join(str(text).split()))
    assert found is not None, text
    return found[1]


def warned(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    assert found
    return found[0].message


def silent(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call()


# -- dtypes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "dtype"),
    [
        ("float", np.float64), ("uint", np.float32), ("uint", np.int32), ("int", np.int64),
        ("uint", np.bool_), ("float", np.uint8),
    ],
)  # fmt: skip
def test_a_kernel_takes_the_array_and_the_tensor_that_its_refusal_names(mgr, declared, dtype):
    kernel, data = mgr.kernel(copier(declared)), np.array([1, 0, 1, 1], dtype)
    for given, pattern in (
        (data, r"(array\.astype\([\w.]+\))"),
        (mgr.tensor_t(data), r"(mgr\.tensor_t\(data\.astype\([\w.]+\)\))"),
    ):
        with pytest.raises(kp.ArgumentTypeError) as raised:
            kernel(given, np.zeros(4, np.float32))
        instead = eval(code_in(raised.value, pattern), {"array": data, "data": data, "mgr": mgr, "np": np})
        np.testing.assert_array_equal(kernel(instead, np.zeros(4, np.float32)), data.astype(np.float32))
        bits = re.search(r"((?:array|tensor)\.view\([\w.]+\))", str(raised.value))
        if bits is not None:
            kernel(eval(bits[1], {"array": given, "tensor": given, "np": np}), np.zeros(4, np.float32))


@pytest.mark.parametrize(
    ("declared", "dtype"),
    [("float", np.float64), ("uint", np.float32), ("int", np.uint32), ("uint", np.bool_)],
)
def test_an_algorithm_takes_the_tensor_that_its_warning_names(mgr, declared, dtype):
    data, out, spirv = np.ones(4, dtype), mgr.zeros(4), kp.compile(copier(declared))
    message = warned(lambda: mgr.algorithm([mgr.tensor_t(data), out], spirv, (1, 1, 1)))
    instead = eval(
        code_in(message, r"(mgr\.tensor_t\(data\.astype\([\w.]+\)\))"), {"data": data, "mgr": mgr, "np": np}
    )
    silent(lambda: mgr.algorithm([instead, out], spirv, (1, 1, 1)))


@pytest.mark.parametrize(
    "data",
    [
        np.array(["2026-01-01"], "M8[s]"), np.array([b"abc"]), np.array(["abc"]), np.zeros(2, np.longdouble),
        np.zeros(2, np.clongdouble),
    ],
    ids=lambda data: str(data.dtype),
)  # fmt: skip
def test_a_dtype_that_no_device_has_is_told_one_that_it_has(mgr, data):
    with pytest.raises(kp.ArgumentTypeError) as raised:
        mgr.tensor_t(data)
    mgr.tensor_t(eval(code_in(raised.value, r"(data\.\w+\([\w.]+\))"), {"data": data, "np": np}))


@pytest.mark.parametrize("make", ["tensor", "tensor_t"])
def test_bytes_and_text_are_told_how_to_become_numbers(mgr, make):
    for data in (b"\1\2\3\4", "text"):
        with pytest.raises(kp.ArgumentTypeError) as raised:
            getattr(mgr, make)(data)
        code = code_in(raised.value, r"(np\.frombuffer\([\w.]+(?:\(\))?, [\w.]+\))")
        assert getattr(mgr, make)(eval(code, {"np": np, "data": data, "dtype": np.uint8})).size() == 4


def test_what_is_written_is_told_how_to_convert(mgr):
    t, data = mgr.zeros(3, np.int32), np.array([1.0, 2.0, 3.0])
    with pytest.raises(kp.ArgumentTypeError) as raised:
        t.write(data)
    t.write(eval(code_in(raised.value, r"(data\.astype\('\w+'\))")))
    np.testing.assert_array_equal(t.read(), [1, 2, 3])
    wide = np.empty((3, 1), np.int32)
    with pytest.raises(kp.InvalidArgumentError) as raised:
        t.read(out=wide)
    np.testing.assert_array_equal(
        t.read(out=eval(code_in(raised.value, r"give (out\.reshape\(.*\))"), {"out": wide})), [1, 2, 3]
    )


def test_a_struct_is_told_its_dtype(mgr):
    kernel = mgr.kernel(PAIRS)
    with pytest.raises(kp.KomputeError) as raised:
        kernel(np.zeros(5, [("at", "f4", 3), ("n", "f4")]))
    advice = code_in(raised.value, r"dtype=(kp\.struct_dtype\([^)]*\))")
    for shader in (kernel, kernel.to_spirv()):
        dtype = eval(advice, {"kp": kp, "shader": shader})
        np.testing.assert_array_equal(kernel(np.zeros(5, dtype))["n"], np.full(5, 7))


@pytest.mark.parametrize("declared", ["float", "vec4", "uint"])
def test_a_list_for_results_is_told_an_array_of_its_size(mgr, declared):
    kernel = mgr.kernel(copier(declared, declared))
    given = np.ones((3, 4) if declared == "vec4" else 3, np.uint32 if declared == "uint" else np.float32)
    with pytest.raises(kp.ArgumentTypeError) as raised:
        kernel(given, np.zeros_like(given).tolist())
    out = eval(code_in(raised.value, r"(np\.zeros\(.*?, np\.\w+\))"), {"np": np})
    np.testing.assert_array_equal(kernel(given, out), given)


# -- sizes and grids -----------------------------------------------------------------------------------------


def test_what_a_default_grid_leaves_out_is_told_the_grid_that_says_so(mgr):
    kernel = mgr.kernel(copier("float"))
    a, b = np.arange(8, dtype=np.float32), np.zeros(5, np.float32)
    grid = eval(code_in(warned(lambda: kernel(a, b)), r"grid=(\([\d,]+\))"))
    silent(lambda: kernel(a, b, grid=grid))
    np.testing.assert_array_equal(b, a[:5])


def test_the_default_workgroup_is_told_both_ways_to_run_each_element_once(mgr, monkeypatch):
    monkeypatch.setattr("kompute_py._recording.algorithm._default_workgroup_warned", False)
    a, b = mgr.tensor(np.arange(10)), mgr.zeros(10)
    spirv = kp.compile(copier("float"))
    message = warned(lambda: mgr.algorithm([a, b], spirv))
    workgroup = eval(code_in(message, r"workgroup=(\([\d, ]+\))"))
    algorithm = mgr.algorithm([a, b], spirv, workgroup)
    operation = eval(
        code_in(message, r"(kp\.OpAlgoDispatch\(algorithm, grid=\([\d,]+\)\))"),
        {"kp": kp, "algorithm": algorithm},
    )
    assert workgroup == (3, 1, 1)
    for each in (kp.OpAlgoDispatch(algorithm), operation):
        b.fill(0)
        mgr.sequence().eval(each)
        np.testing.assert_array_equal(b.read(), np.arange(10))


# -- images --------------------------------------------------------------------------------------------------


def test_a_format_is_told_the_dtype_of_its_data(mgr):
    data = np.ones((4, 4, 4), np.int16)
    with pytest.raises(kp.ArgumentTypeError) as raised:
        mgr.image(data, format="rgba8")
    made = eval(
        code_in(raised.value, r"(mgr\.image_t\(data\.astype\([\w.]+\), format='\w+'\))"),
        {"mgr": mgr, "np": np, "data": data},
    )
    assert made.dtype == np.uint8


# -- sharing and copying -------------------------------------------------------------------------------------


def test_what_cannot_be_shared_is_told_how_to_be_copied(make_manager):
    mgr = make_manager(force_staging=True)
    t = mgr.tensor([1, 2, 3])
    with pytest.raises(kp.ExchangeError) as raised:
        np.from_dlpack(t)
    assert "t.read()" in str(raised.value)
    if tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1):
        np.testing.assert_array_equal(
            eval(code_in(raised.value, r"(np\.from_dlpack\(t, device='cpu'\))"), {"np": np, "t": t}),
            [1, 2, 3],
        )
    with pytest.raises(kp.KomputeError) as raised:
        memoryview(t)
    for code in ("t.data()", "t.read()"):
        assert code in str(raised.value) and memoryview(eval(code, {"t": t})).nbytes == 12
    shared = mgr.tensor([1, 2, 3], "deviceAndHost")
    assert memoryview(shared).nbytes == 12


def test_a_part_that_is_not_dense_is_told_how_to_be_copied(mgr):
    t = mgr.tensor(np.arange(12).reshape(3, 4))
    with pytest.raises(kp.ArgumentTypeError) as raised:
        kp.OpSyncDevice([t[:, 1]])
    code = code_in(raised.value, r"(mgr\.tensor_t\(view\))")
    np.testing.assert_array_equal(eval(code, {"mgr": mgr, "view": t[:, 1]}).read(), [1, 5, 9])


def test_a_host_array_is_told_what_makes_it_fit(mgr):
    for array, pattern, share in (
        (
            np.arange(12, dtype=np.float32).reshape(3, 4).T,
            r"(np\.ascontiguousarray)",
            lambda code, a: (eval(code, {"np": np})(a), {}),
        ),
        (
            np.broadcast_to(np.float32(1), (3,)).copy(),
            r"(kp\.HostBufferSemantics\.IMMUTABLE_ZERO_COPY)",
            None,
        ),
    ):
        if share is None:
            array.flags.writeable = False
        with pytest.raises(kp.KomputeError) as raised:
            mgr.from_host(array, copy="never")
        code = code_in(raised.value, pattern)
        if share is not None:
            array = share(code, array)[0]
            assert array.flags.c_contiguous
            np.testing.assert_array_equal(mgr.from_host(array).read(), array)
        else:
            made = mgr.from_host(array, semantics=eval(code, {"kp": kp}))
            np.testing.assert_array_equal(made.read(), array)


def test_a_list_is_told_of_a_single_tensor(mgr):
    tensor = mgr.zeros(3)
    for use in (kp.OpSyncDevice, kp.OpSyncLocal, lambda given: kp.OpFill(given, 1)):
        with pytest.raises(kp.ArgumentTypeError) as raised:
            use(tensor)
        assert mgr.sequence().record(use(eval(code_in(raised.value, r"(\[tensor\])"), {"tensor": tensor})))


def test_timestamps_are_told_how_to_be_taken(mgr, needs):
    needs(mgr, "timestamps")
    with pytest.raises(kp.KomputeError) as raised:
        mgr.sequence().record(kp.OpFill([mgr.zeros(3)], 1)).eval().get_timestamps()
    for pattern in (r"(mgr\.sequence\(timestamps=True\))", r"(mgr\.sequence\(total_timestamps=n\))"):
        seq = eval(code_in(raised.value, pattern), {"mgr": mgr, "n": 3})
        assert len(seq.record(kp.OpFill([mgr.zeros(3)], 1)).eval().get_timestamps()) == 2
