"""Default grids that the shader's code contradicts: refused with both choices, of which the first is right in
every element.

The others run, and are right.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.cli import main

H, W = 5, 13  # not multiples of the groups
FLAT = """#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer S { uint s[]; };
layout(binding = 1) buffer B { float b[]; };
layout(binding = 2) readonly buffer A { float a[]; };
layout(binding = 3) readonly buffer I { uint index[]; };
"""
ROWS = """#version 450
layout(local_size_x = 4, local_size_y = 2) in;
layout(binding = 0) buffer B { float b[]; };
layout(binding = 1) readonly buffer A { float a[]; };
layout(push_constant) uniform P { float rows, columns; uint h, w; };
layout(constant_id = 0) const uint WIDTH = 13;
"""
DOWN = "uint r = gl_GlobalInvocationID.x, c = gl_GlobalInvocationID.y; "  # x counts the rows
ALONG = "uint r = gl_GlobalInvocationID.y, c = gl_GlobalInvocationID.x; "
TILES = (
    "uint r = gl_WorkGroupID.x * 4 + gl_LocalInvocationID.x, "
    "c = gl_WorkGroupID.y * 2 + gl_LocalInvocationID.y; "
)
ADD = "b[r * w + c] = a[r * w + c] + 1;"
BODIES = {
    "return": "if (r >= h || c >= w) return; " + ADD,
    "condition": "if (r < h && c < w) " + ADD,
    "no check": ADD,
    "constants": f"if (r < {H} && c < WIDTH) b[r * WIDTH + c] = a[r * WIDTH + c] + 1;",
    "floats": "if (r >= uint(rows) || c >= uint(columns)) return; "
    "b[r * uint(columns) + c] = a[r * uint(columns) + c] + 1;",
}


def choices(error):
    return [tuple(map(int, each.split(","))) for each in re.findall(r"grid=\(([\d, ]*\d),?\)", str(error))]


def sizes(h, w):
    return {"rows": h, "columns": w, "h": h, "w": w}


def called(kernel, shape, transposed=False, **options):
    a = np.arange(H * W, dtype=np.float32).reshape(shape)
    b = np.zeros(shape[::-1] if transposed else shape, np.float32)
    kernel(b, a, **sizes(*shape), **options)
    return b, (a.T if transposed else a + 1)


@pytest.mark.parametrize("count", [DOWN, TILES], ids=["global", "tiles"])
@pytest.mark.parametrize("body", BODIES)
def test_x_that_counts_rows_is_refused_and_the_first_choice_is_right(mgr, needs, count, body):
    needs(mgr, "dispatch")
    kernel = mgr.kernel(ROWS + "void main() {" + count + BODIES[body] + "}")
    with pytest.raises(
        kp.InvalidArgumentError, match=r"another order.*as the code counts.*reversed shape"
    ) as caught:
        called(kernel, (H, W))
    assert choices(caught.value) == [(H, W), (W, H)]
    b, right = called(kernel, (H, W), grid=choices(caught.value)[0])
    np.testing.assert_array_equal(b, right)
    with pytest.raises(kp.InvalidArgumentError, match="another order"):
        kernel.bind(mgr.zeros((H, W)), mgr.zeros((H, W)), **sizes(H, W))


@pytest.mark.parametrize("body", BODIES)
def test_x_that_counts_columns_runs_and_is_right(mgr, needs, body):
    needs(mgr, "dispatch")
    b, right = called(mgr.kernel(ROWS + "void main() {" + ALONG + BODIES[body] + "}"), (H, W))
    np.testing.assert_array_equal(b, right)


def test_a_transposition_is_refused_unless_it_counts_what_it_writes(mgr, needs):
    needs(mgr, "dispatch")
    read = mgr.kernel(ROWS + "void main() {" + ALONG + "if (r < h && c < w) b[c * h + r] = a[r * w + c]; }")
    with pytest.raises(kp.InvalidArgumentError, match="another order") as caught:
        called(read, (H, W), transposed=True)
    b, right = called(read, (H, W), transposed=True, grid=choices(caught.value)[0])
    np.testing.assert_array_equal(b, right)
    written = mgr.kernel(ROWS + "void main() {" + DOWN + "if (r < h && c < w) b[c * h + r] = a[r * w + c]; }")
    b, right = called(written, (H, W), transposed=True)
    np.testing.assert_array_equal(b, right)


def test_the_order_of_declared_rows_and_of_three_axes(mgr, needs):
    needs(mgr, "dispatch")
    nested = mgr.kernel(
        ROWS.replace("float b[]", "float b[][13]")
        + f"void main() {{ {DOWN} if (r < b.length() && c < {W}) b[r][c] = 1; }}"
    )
    with pytest.raises(kp.InvalidArgumentError, match="another order") as caught:
        nested(np.zeros((H, W), np.float32), **sizes(H, W))
    assert choices(caught.value)[0] == (H, W)
    deep = mgr.kernel(
        ROWS
        + "void main() { uvec3 p = gl_GlobalInvocationID; if (p.z < w && p.y < h) b[(p.x * h + p.y) * w + "
        "p.z] = 1; }"
    )
    with pytest.raises(kp.InvalidArgumentError, match="another order") as caught:
        deep(np.zeros((3, H, W), np.float32), **sizes(H, W))
    b = np.zeros((3, H, W), np.float32)
    deep(b, **sizes(H, W), grid=choices(caught.value)[0])
    assert (b == 1).all()


def test_orders_that_run_the_same_or_leave_out_the_same_are_not_refused(mgr, needs):
    needs(mgr, "dispatch")
    square = mgr.kernel(ROWS + "void main() {" + DOWN + f"if (r < h && c < w) {ADD} }}")
    a, b = np.ones((6, 6), np.float32), np.zeros((6, 6), np.float32)
    square(b, a, **sizes(6, 6))
    assert (b == 2).all()
    pitch = mgr.kernel(ROWS + "void main() {" + ALONG + f"if (c < w && r < h) b[r * {W} + c] = 1; }}")
    b = np.zeros((H, W), np.float32)
    pitch(b, **sizes(H, W - 4))
    assert (b[:, : W - 4] == 1).all() and (b[:, W - 4 :] == 0).all()
    inner = mgr.kernel(
        ROWS + "void main() {" + ALONG + "if (c < 1 || r < 1 || c >= w - 1 || r >= h - 1) return; "
        "uint i = r * w + c; b[i] = a[i - 1] + a[i + 1] + a[i - w] + a[i + w]; }"
    )
    b = np.zeros((H, W), np.float32)
    inner(b, np.ones((H, W), np.float32), **sizes(H, W))
    assert (b[1:-1, 1:-1] == 4).all() and b.sum() == 4 * (H - 2) * (W - 2)


COUNTS = {
    "a status": "uint i = gl_GlobalInvocationID.x; if (i == 0) s[0] = 7; if (i < b.length()) b[i] = a[i] + "
    "1;",
    "a status on a condition": "uint i = gl_GlobalInvocationID.x; if (i >= b.length()) return; if (a[i] < 0) "
    "s[0] = 7; "
    "else b[i] = a[i] + 1;",
    "several slots": "uint i = gl_GlobalInvocationID.x; if (i < b.length()) { s[i % 3] = 1; b[i] = a[i] + 1; "
    "}",
}


@pytest.mark.parametrize("body", COUNTS)
def test_a_first_array_that_is_not_counted_is_refused_if_another_has_other_elements(mgr, needs, body):
    needs(mgr, "dispatch")
    kernel = mgr.kernel(FLAT + "void main() {" + COUNTS[body] + "}")
    a = np.arange(1000, dtype=np.float32)
    s, b = np.zeros(3, np.uint32), np.zeros(1000, np.float32)
    with pytest.raises(kp.InvalidArgumentError, match="writes 's' first, but not one element") as caught:
        kernel(s=s, b=b, a=a)
    assert choices(caught.value) == [(1000,), (3,)]
    kernel(s=s, b=b, a=a, grid=choices(caught.value)[0])
    np.testing.assert_array_equal(b, a + 1)
    # The same groups either way: nothing is in doubt.
    b = np.zeros(4, np.float32)
    kernel(s=s, b=b, a=a[:4])
    np.testing.assert_array_equal(b, a[:4] + 1)


@pytest.mark.parametrize("check", ["if (i < index.length()) ", ""], ids=["checked", "unchecked"])
def test_scattered_writes_count_what_is_read(mgr, needs, check):
    needs(mgr, "dispatch")
    kernel = mgr.kernel(
        FLAT + "void main() { uint i = gl_GlobalInvocationID.x; " + check + "s[index[i]] = 1; }"
    )
    many = np.arange(1000, dtype=np.uint32) // 100
    with pytest.raises(kp.InvalidArgumentError, match="writes 's' first") as caught:
        kernel(s=np.zeros(10, np.uint32), index=many)
    s = np.zeros(10, np.uint32)
    kernel(s=s, index=many, grid=choices(caught.value)[0])
    assert s.all()
    few, s = np.arange(8, dtype=np.uint32) * 7 + 3, np.zeros(1000, np.uint32)
    if check:
        kernel(s=s, index=few)  # the rest does nothing
    else:  # the rest would read zeros, and write to s[0]
        with pytest.raises(kp.InvalidArgumentError, match="writes 's' first") as caught:
            kernel(s=s, index=few)
        kernel(s=s, index=few, grid=choices(caught.value)[0])
    assert np.array_equal(np.flatnonzero(s), few)
    order, s = np.random.default_rng(0).permutation(1000).astype(np.uint32), np.zeros(1000, np.uint32)
    kernel(s=s, index=order)
    assert s.all()


def test_an_array_whose_own_length_is_checked_warns_if_it_is_left_out(mgr, needs):
    needs(mgr, "dispatch")
    kernel = mgr.kernel(
        FLAT
        + "void main() { uint i = gl_GlobalInvocationID.x; if (i < s.length()) s[i] = 1; if (i < b.length()) "
        "b[i] = 1; }"
    )
    with pytest.warns(kp.KomputeWarning, match="the rest of 'b' is not used"):
        kernel(s=np.zeros(10, np.uint32), b=np.zeros(1000, np.float32))


def test_the_command_line_refuses_in_its_own_words(needs, mgr, tmp_path, capsys):
    needs(mgr, "dispatch")
    source = tmp_path / "rows.comp"
    source.write_text(ROWS + "void main() {" + DOWN + BODIES["condition"] + "}")
    a = np.arange(H * W, dtype=np.float32).reshape(H, W)
    np.save(tmp_path / "a.npy", a)
    command = ["run", str(source), "--in", f"a={tmp_path / 'a.npy'}", "--out", f"b={tmp_path / 'b.npy'}"]
    for name, value in sizes(H, W).items():
        command += ["--set", f"{name}={value}"]
    assert main(command) == 1
    assert f"--grid {H},{W} as the code counts" in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "b.npy").exists()
    assert main([*command, "--grid", f"{H},{W}"]) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), a + 1)
