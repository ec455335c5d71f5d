"""Arrays of different sizes in one call: which ones are refused, which ones warn, and which programs are left
alone.

Beyond the end of an array a device reads zeros, so a wrong size is a wrong number without a word.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.cli import main

N = 8
HEAD = """#version 450
layout(local_size_x = LOCAL) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) buffer C { float c[]; };
layout(set = 0, binding = 3) uniform U { uint limit; };
layout(push_constant) uniform P { uint n; uint width; };
layout(constant_id = 0) const bool ADD_B = true;
shared float sum[LOCAL];
uint only_once(uint k) { return k; }
float both(uint k) { return a[k] + b[k]; }
"""

# Each adds a and b, index by index, with everything that says how far the invocations go.
TIED = {
    "no check": "uint i = gl_GlobalInvocationID.x; c[i] = a[i] + b[i];",
    "the output's length": "uint i = gl_GlobalInvocationID.x; if (i < c.length()) c[i] = a[i] + b[i];",
    "early return": "uint i = gl_GlobalInvocationID.x; if (i >= c.length()) return; c[i] = a[i] + b[i];",
    "signed": "int i = int(gl_GlobalInvocationID.x); if (!(i > c.length() - 1)) c[i] = a[i] + b[i];",
    "two checks": "uint i = gl_GlobalInvocationID.x; if (i < a.length() && i < c.length()) c[i] = a[i] + "
    "b[i];",
    "either fails": "uint i = gl_GlobalInvocationID.x; if (i >= a.length() || i >= c.length()) return; c[i] "
    "= a[i] + b[i];",
    "minimum": "uint i = gl_GlobalInvocationID.x; if (i < min(a.length(), c.length())) c[i] = a[i] + b[i];",
    "push constant": "uint i = gl_GlobalInvocationID.x; if (i < n) c[i] = a[i] + b[i];",
    "vector": "uvec3 id = gl_GlobalInvocationID; uint i = id.x; if (i < n) c[i] = a[i] + b[i];",
    "group and local": "uint i = gl_WorkGroupID.x * gl_WorkGroupSize.x + gl_LocalInvocationID.x; "
    "if (i < c.length()) c[i] = a[i] + b[i];",
    "function": "uint i = only_once(gl_GlobalInvocationID.x); uint j = gl_GlobalInvocationID.x; "
    "if (j < c.length()) c[j] = both(j);",
    "rows": "uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y; if (x >= width || y >= 1) "
    "return; "
    "uint i = y * width + x; if (i < c.length()) c[i] = a[i] + b[i];",
    "constant": "uint i = gl_GlobalInvocationID.x; if (ADD_B) c[i] = a[i] + b[i]; else c[i] = a[i];",
    "a condition before": "uint i = gl_GlobalInvocationID.x; float f = 1; if (a[0] > 1e30) f = 2; c[i] = f * "
    "(a[i] + b[i]);",
}


@pytest.fixture
def make(mgr):

    def kernel(body, push=True, **options):
        head = "".join(line for line in HEAD.splitlines(True) if push or "push_constant" not in line)
        return mgr.kernel(head.replace("LOCAL", "4") + "void main() {" + body + "}", name="add", **options)

    return kernel


def call(kernel, a, b, c, **more):
    known = kernel.signature.push.names if kernel.signature.push is not None else ()
    values = {"n": N, "width": N}
    return kernel(
        np.arange(1, a + 1, dtype=np.float32),
        np.full(b, 10, np.float32),
        np.full(c, -1, np.float32),
        bind={"limit": {"limit": N}} if any(p.name == "limit" for p in kernel.signature.parameters) else {},
        push={name: values[name] for name in known},
        **more,
    )


@pytest.mark.parametrize("how", TIED)
@pytest.mark.parametrize("optimize", [False, True], ids=["plain", "optimized"])
def test_an_array_that_ends_before_the_invocations_do_is_refused(make, how, optimize):
    kernel = make(TIED[how], optimize=optimize)
    wanted = np.arange(11, 11 + N)
    # Code that counts in x and y leaves the rows of a flat array open.
    said = {"grid": (N, 1)} if how == "rows" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(call(kernel, N, N, N, **said), wanted)
        # Longer inputs give the same, and a grid that is given says that it is meant.
        np.testing.assert_array_equal(call(kernel, N, N + 3, N, grid=N), wanted)
    for short in (1, 2, N - 1):
        with pytest.raises(
            kp.InvalidArgumentError, match=rf"add: 'b' has {short} elements?, '[ac]' has {N}.*np\.full.*grid="
        ):
            call(kernel, N, short, N, **said)


def test_rows(make):
    body = "uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y; if (x >= width || y >= n) return; "
    kernel = make(body + "uint i = y * width + x; c[i] = a[i] + b[i];")
    arrays = [np.ones((3, 5), np.float32), np.ones((3, 5), np.float32), np.zeros((3, 5), np.float32)]
    np.testing.assert_array_equal(kernel(*arrays, n=3, width=5, grid=(5, 3)), np.full((3, 5), 2))
    with pytest.raises(kp.InvalidArgumentError, match=r"'b' has 14 elements, .* 15 invocations"):
        kernel(arrays[0], np.ones(14, np.float32), arrays[2], n=3, width=5, grid=(5, 3))
    # Fewer rows need fewer elements, whatever the others hold.
    kernel(arrays[0], np.ones(10, np.float32), arrays[2], n=2, width=5, grid=(5, 3))


# Programs whose arrays may have sizes of their own: none of them is refused, and none warns.
FREE = {
    "a table": ("uint i = gl_GlobalInvocationID.x; if (i < c.length()) c[i] = a[i] + b[i % 2];", N, 2, N),
    "one value": ("uint i = gl_GlobalInvocationID.x; if (i < c.length()) c[i] = a[i] + b[0];", N, 1, N),
    "a gather": ("uint i = gl_GlobalInvocationID.x; if (i < c.length()) c[i] = b[uint(a[i])];", N, 2 * N, N),
    "a difference": ("uint i = gl_GlobalInvocationID.x; if (i < c.length()) c[i] = a[i + 1] - a[i];", N, 1,
    N - 1),
    "its own check": (
        "uint i = gl_GlobalInvocationID.x; if (i >= c.length()) return; c[i] = a[i] + (i < b.length() ? b[i] "
        ": 0);", N, 3, N,
    ),
    "a condition": ("uint i = gl_GlobalInvocationID.x; if (a[i] < 0) c[i] = a[i] + b[i]; else c[i] = a[i];",
    N, 1, N),
    "a uniform bound": ("uint i = gl_GlobalInvocationID.x; if (i < limit) c[i] = a[i] + b[i];", 2 * N, N,
    2 * N),
    "a loop": (
        "uint i = gl_GlobalInvocationID.x; float s = 0; for (uint k = 0; k < b.length(); ++k) s += b[k] * "
        "a[i]; c[i] = s;",
        N, 3, N,
    ),
    "strides": (
        "for (uint i = gl_GlobalInvocationID.x; i < a.length(); i += gl_NumWorkGroups.x * "
        "gl_WorkGroupSize.x) "
        "if (i < c.length() && i < b.length()) c[i] = a[i] + b[i];", N, 3, N,
    ),
    "groups": (
        "sum[gl_LocalInvocationID.x] = a[gl_GlobalInvocationID.x]; barrier(); "
        "if (gl_LocalInvocationID.x == 0) c[gl_WorkGroupID.x] = sum[0] + b[gl_WorkGroupID.x];", N, 2, 2,
    ),
    "pairs": ("uint i = gl_GlobalInvocationID.x; if (2 * i + 1 < a.length()) c[i] = a[2 * i] + a[2 * i + 1];",
    N, 1, N // 2),
    "fewer by a push constant": ("uint i = gl_GlobalInvocationID.x; if (i < n) c[i] = a[i] + b[i];", 2 * N, N,
    3 * N),
    "changed index": (
        "uint i = gl_GlobalInvocationID.x; if (a[0] > 0) i = 0; c[i] = a[i] + b[i];", N, 1, N,
    ),
    "written through a parameter": (
        "uint i = gl_GlobalInvocationID.x; uint j; j = i % 1; c[i] = a[i] + b[j];", N, 1, N,
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", FREE)
@pytest.mark.parametrize("optimize", [False, True], ids=["plain", "optimized"])
def test_programs_whose_sizes_differ_for_a_reason_are_left_alone(make, how, optimize):
    body, a, b, c = FREE[how]
    kernel = make(body, optimize=optimize)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(kernel, a, b, c, **({"grid": N} if how in ("groups", "changed index") else {}))


def test_a_grid_rounded_by_hand_is_no_fault_of_equal_arrays(make):
    kernel = make(TIED["no check"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(call(kernel, 6, 6, 6, grid=8), np.arange(11, 17))
        np.testing.assert_array_equal(call(kernel, 6, 6, 6, groups=3), np.arange(11, 17))


def test_elements_that_nobody_uses_warn_where_the_grid_was_left_out(make):
    kernel = make(TIED["two checks"])
    with pytest.warns(kp.KomputeWarning, match=r"add: 'a' has 8 elements, 'c' has 5.*not used.*grid=\(5,\)"):
        result = call(kernel, N, N, 5)
    np.testing.assert_array_equal(result, np.arange(11, 16))
    with pytest.warns(kp.KomputeWarning, match=r"'c' has 10 elements, '[ab]' has 8.*not used"):
        result = call(kernel, N, N, 10)
    np.testing.assert_array_equal(result, [*range(11, 19), -1, -1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(kernel, N, N, 5, grid=5)
        call(kernel, N, N, 5, groups=2)


def test_tensors_bound_submitted_and_set_are_checked_as_well(make, mgr):
    kernel = make(TIED["no check"], push=False)
    a, b, c = (mgr.zeros(n) for n in (N, 3, N))
    for use in (kernel, kernel.bind, kernel.submit):
        with pytest.raises(kp.InvalidArgumentError, match="'b' has 3 elements"):
            use(a, b, c)
        with pytest.raises(kp.InvalidArgumentError, match="'b' has 3 elements"):
            use(a, a[:3], c)
    operation = kernel.bind(a, b, c, grid=3)
    with pytest.raises(kp.InvalidArgumentError, match="'b' has 3 elements"):
        operation.set(grid=4)
    assert operation.groups == (1, 1, 1)
    operation.set(grid=2)


def test_sizes_count_elements_as_the_shader_has_them(make, mgr):
    source = HEAD.replace("LOCAL", "4").replace("float b[]", "vec4 b[]").replace("+ b[k]", "+ b[k].x")
    kernel = mgr.kernel(
        source
        + "void main() { uint i = gl_GlobalInvocationID.x; if (i < c.length()) c[i] = a[i] + b[i].w; }",
        name="add",
    )
    a, c = np.ones(N, np.float32), np.zeros(N, np.float32)
    rows = np.arange(4 * N, dtype=np.float32).reshape(N, 4)
    np.testing.assert_array_equal(kernel(a, rows, c, n=0, width=0, grid=N), 1 + rows[:, 3])
    with pytest.raises(kp.InvalidArgumentError, match="'b' has 2 elements"):
        kernel(a, np.ones(N, np.float32), c, n=0, width=0, grid=N)


def test_specialization_decides_what_is_used(make):
    kernel = make(TIED["constant"])
    with pytest.raises(kp.InvalidArgumentError, match="'b' has 1 element"):
        call(kernel, N, 1, N)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(call(kernel.specialize(ADD_B=False), N, 1, N), np.arange(1, N + 1))


@pytest.mark.parametrize("number", [2, 2.5, True, np.float32(2), np.int64(3)])
def test_one_number_for_an_array_is_refused(make, number):
    kernel = make(TIED["no check"], push=False)
    a, c = np.ones(N, np.float32), np.zeros(N, np.float32)
    value = number.item() if isinstance(number, np.generic) else number
    with pytest.raises(
        kp.InvalidArgumentError,
        match=rf"'b' is float\[\], an array, and {re.escape(repr(value))} is one number.*uniform P {{ float "
        r"b; }.*np\.full",
    ) as raised:
        kernel(a, number, c)
    advice = re.search(r"np\.full\(.*\)", str(raised.value))
    assert advice is not None
    given = eval(advice[0], {"np": np})
    np.testing.assert_array_equal(kernel(a, given, c), a + np.float32(number))


SCALED = """
#version 450
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Count { uint count[]; };
layout(set = 0, binding = 1) readonly buffer T { float table[]; };
layout(set = 0, binding = 2) readonly buffer A { FROM a[]; };
layout(set = 0, binding = 3) readonly buffer B { TO b[]; };
layout(set = 0, binding = 4) writeonly buffer C { TO c[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i >= c.length()) return;
    c[i] = TO(a[i]) * b[i] + TO(table[2]);
    atomicAdd(count[0], 1u);
}
"""


@pytest.mark.parametrize(
    ("source", "target", "shape", "written"),
    [
        ("float", "float", (5,), (5,)), ("float", "float", (2, 3), (2, 3)), ("float", "vec4", (6,), (6, 4)),
        ("vec4", "float", (2, 3, 4), (6,)), ("vec2", "vec2", (3, 2), (3, 2)), ("vec2", "vec2", (6,), (6,)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("tensors", [False, True])
def test_the_advice_for_one_number_has_as_many_elements_as_the_array_beside_it(
    mgr, source, target, shape, written, tensors
):
    text = SCALED.replace(
        "TO(a[i])", f"{target}(a[i]{'.x' if source != 'float' and target == 'float' else ''})"
    )
    kernel = mgr.kernel(text.replace("FROM", source).replace("TO", target))
    a, table, count = np.ones(shape, np.float32), np.ones(3, np.float32), np.zeros(1, np.uint32)
    given = [
        mgr.tensor_t(each) if tensors else each for each in (count, table, a, np.zeros(written, np.float32))
    ]
    with pytest.raises(kp.InvalidArgumentError) as raised:
        kernel(*given[:3], 2.5, given[3])
    advice = re.search(r"np\.full\(.*\)", str(raised.value))
    assert advice is not None
    kernel(*given[:3], eval(advice[0], {"np": np}), given[3])
    np.testing.assert_array_equal(np.asarray(given[3]), np.full(written, 3.5))


def test_the_other_advice_for_one_number_compiles(mgr):
    with pytest.raises(kp.InvalidArgumentError) as raised:
        mgr.kernel(SCALED.replace("FROM", "float").replace("TO", "vec2"))(
            np.zeros(1, np.uint32), np.ones(3, np.float32), np.ones(2, np.float32), 2,
            np.zeros((2, 2), np.float32),
        )  # fmt: skip
    advice = re.search(r"\((layout\(push_constant\).*?;)\)", str(raised.value))
    assert advice is not None
    lines = SCALED.replace("FROM", "float").replace("TO", "vec2").replace("b[i]", "b").splitlines()
    kernel = mgr.kernel("\n".join(advice[1] if "binding = 3" in line else line for line in lines))
    count, c = np.zeros(1, np.uint32), np.zeros((2, 2), np.float32)
    kernel(count, np.ones(3, np.float32), np.ones(2, np.float32), c, b=(2, 3))
    np.testing.assert_array_equal(c, [[3, 4], [3, 4]])


def test_numbers_that_no_element_of_the_array_holds_are_refused_first(mgr):
    kernel = mgr.kernel(SCALED.replace("FROM", "float").replace("TO", "ivec2"))
    others = np.zeros(1, np.uint32), np.ones(3, np.float32), np.ones(2, np.float32)
    with pytest.raises(kp.InvalidArgumentError, match=r"holds int32; 2.5 has other values"):
        kernel(*others, 2.5, np.zeros((2, 2), np.int32))
    kernel = mgr.kernel(SCALED.replace("FROM", "float").replace("TO", "float"))
    with pytest.raises(kp.InvalidArgumentError, match=r"np\.full\(\(2,\), float\('inf'\), np\.float32\)"):
        kernel(*others, np.inf, np.zeros(2, np.float32))


def test_numbers_for_blocks_of_fixed_size_and_lists_of_one_are_taken(mgr):
    kernel = mgr.kernel(
        """
        #version 450
        layout(local_size_x = 4) in;
        layout(set = 0, binding = 0) buffer A { float a[]; };
        layout(set = 0, binding = 1) readonly buffer S { float factor; };
        layout(set = 0, binding = 2) readonly buffer T { float offsets[]; };
        void main() { a[gl_GlobalInvocationID.x] = a[gl_GlobalInvocationID.x] * factor + offsets[0]; }
        """
    )
    np.testing.assert_array_equal(kernel(np.ones(5, np.float32), 3, [0.5]), np.full(5, 3.5))


def test_the_command_line_refuses_both(tmp_path, monkeypatch, capsys, mgr):
    monkeypatch.chdir(tmp_path)
    Path("add.comp").write_text(HEAD.replace("LOCAL", "4") + "void main() {" + TIED["early return"] + "}")
    np.save("a.npy", np.ones(N, np.float32))
    np.save("b.npy", np.ones(3, np.float32))
    common = ["run", "add.comp", "--in", "a=a.npy", "--set", "n=8", "--set", "width=8"]
    assert main([*common, "--in", "b=2", "--out", "c=-"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "b (float[]) is an array, and 2 is one number" in said and "--in b=b.npy" in said
    assert main([*common, "--in", "b=b.npy", "--out", "c=-"]) == 1
    assert "'b' has 3 elements, 'a' has 8" in " ".join(capsys.readouterr().err.split())
    assert main([*common, "--in", "b=a.npy", "--out", "c=-"]) == 0
    assert "[2. 2. 2. 2. 2. 2. 2. 2.]" in capsys.readouterr().out
