"""Random kernels: a default grid that runs leaves out nothing, and no invocation that only fills up a group
changes an element of others.

Each kernel writes one element for each invocation, at an index of a random form, with the invocation's own
number as its value. A model computes which elements the invocations of the grid write, those that fill up its
groups, and those of a far larger grid.
"""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

from ..support.sampling import sampled

HEAD = """#version 450
layout(local_size_x = LX, local_size_y = LY) in;
layout(binding = 0) buffer B { uint b[]; };
layout(binding = 1) readonly buffer A { uint a[]; };
layout(binding = 2) readonly buffer X { uint place[]; };
layout(push_constant) uniform P { uint n, w, h; };
void main() {
    uint x = gl_GlobalInvocationID.x, y = COUNTED;
"""


class Form:
    """A GLSL expression, and its value for arrays of numbers, as uint32."""

    def __init__(self, text, value):
        self.text, self.value = text, value


def index_of(random, axes, sizes):
    """A random index."""
    n, w, h, places = sizes["n"], sizes["w"], sizes["h"], sizes["place"].astype(np.int64)
    c = int(random.integers(1, 6))
    number = Form("x", lambda x, y: x)
    if axes == 2:
        flat = [
            Form("(y * w + x)", lambda x, y: y * w + x),
            Form("(x * h + y)", lambda x, y: x * h + y),
            Form("((h - 1 - y) * w + x)", lambda x, y: (h - 1 - y) * w + x),
            Form(f"(y * (w + {c}) + x)", lambda x, y: y * (w + c) + x),
            Form("(y * w)", lambda x, y: y * w),
            Form("(y / 2 * w + x / 2)", lambda x, y: y // 2 * w + x // 2),
        ]
        number = flat[int(random.choice(6, p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1]))]
    t, v = number.text, number.value
    forms = [
        number,
        number,
        Form(f"({t} / {c})", lambda x, y: v(x, y) // c),
        Form(f"({t} % {c})", lambda x, y: v(x, y) % c),
        Form(f"({t} * {c})", lambda x, y: v(x, y) * c),
        Form(f"({t} + {c})", lambda x, y: v(x, y) + c),
        Form(f"({t} - {c})", lambda x, y: v(x, y) - c),
        Form(f"(n - 1 - {t})", lambda x, y: n - 1 - v(x, y)),
        Form(f"({t} ^ {c})", lambda x, y: v(x, y) ^ c),
        Form(f"({t} & {c})", lambda x, y: v(x, y) & c),
        Form(f"({t} % w * h + {t} / w)", lambda x, y: v(x, y) % w * h + v(x, y) // w),
        Form(f"({t} / w * w + {t} % w)", lambda x, y: v(x, y)),
        Form(f"min({t}, {c}u)", lambda x, y: np.minimum(v(x, y), c)),
        Form(f"place[{t}]", lambda x, y: np.where(v(x, y) % 2**32 < n, places[v(x, y) % n], 0)),
        Form(f"{c}u", lambda x, y: 0 * x + c),
    ]
    return forms[int(random.integers(len(forms)))]


def condition_of(random, index, axes, sizes):
    """A random condition of the write."""
    n, w, h = sizes["n"], sizes["w"], sizes["h"]
    c = int(random.integers(1, 9))
    forms = [
        Form("true", lambda x, y: x >= 0),
        Form("x < n", lambda x, y: x < n),
        Form(f"x < n + {c}", lambda x, y: x < n + c),
        Form("x < w && y < h", lambda x, y: (x < w) & (y < h)),
        Form("!(x >= w)", lambda x, y: x < w),
        Form(f"{index.text} < b.length()", lambda x, y: index.value(x, y) % 2**32 < n),
        Form("(x & 1) == 0", lambda x, y: x % 2 == 0),
        Form(f"x == {c}", lambda x, y: x == c),
        Form(f"x > {c}", lambda x, y: x > c),
        Form("x / w < h", lambda x, y: x // w < h),
        Form(f"x < w || y < {c}", lambda x, y: (x < w) | (y < c)),
    ]
    if axes == 1:
        forms += [Form("x < a.length()", lambda x, y: x < n)] * 2
    return forms[int(random.integers(len(forms)))]


def written(index, condition, n, width, height):
    """element -> the numbers of the invocations that write it, of a grid."""
    y, x = np.mgrid[:height, :width]
    x, y = x.ravel().astype(np.int64), y.ravel().astype(np.int64)
    at = index.value(x, y) % 2**32
    found = {}
    for k in np.flatnonzero(condition.value(x, y) & (at < n)):
        found.setdefault(int(at[k]), set()).add((int(x[k]), int(y[k])))
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("axes", [1, 2])
def test_default_grids_that_run_are_right(mgr, axes):
    ran = 0
    count = sampled(60, 1500)
    for seed in range(count):
        random = np.random.default_rng([seed, axes])
        w, h = (int(random.integers(1, 12)) for _ in range(2))
        n = w * h
        sizes = {"n": n, "w": w, "h": h, "place": random.permutation(n).astype(np.uint32)}
        index = index_of(random, axes, sizes)
        condition = condition_of(random, index, axes, sizes)
        beside = bool(random.integers(2))
        local = (8, 1) if axes == 1 else (4, 2)
        value = "x * 1000 + y + 1" + (" + a[x]" if beside and axes == 1 else "")
        body = f"if ({condition.text}) b[{index.text}] = {value}; }}"
        head = HEAD.replace("LX", str(local[0])).replace("LY", str(local[1]))
        head = head.replace("COUNTED", "0" if axes == 1 else "gl_GlobalInvocationID.y")
        kernel = mgr.kernel(head + body, name="k")
        b, a = np.zeros((h, w) if axes == 2 else n, np.uint32), np.zeros(n, np.uint32)
        given = {"b": b, "a": a, "place": sizes["place"]}
        names = {p.name for p in kernel.signature.parameters if p.used}
        try:
            kernel(
                bind={name: each for name, each in given.items() if name in names},
                push={name: sizes[name] for name in kernel.signature.push.names},
            )
        except kp.InvalidArgumentError:
            continue
        ran += 1
        width, height = (n, 1) if axes == 1 else (w, h)
        across, down = -(-width // local[0]) * local[0], -(-height // local[1]) * local[1]
        inside, run = (written(index, condition, n, *size) for size in ((width, height), (across, down)))
        far = written(index, condition, n, across + 8 * n, 1 if axes == 1 else down + 4 * n)
        # Another array has an element for each invocation, which tells their number.
        agreed = "place" in index.text or (axes == 1 and beside)
        # Rows belong to the grid's invocations, also where a condition lets them write nothing.
        always = Form("true", lambda x, y: x >= 0)
        rows = written(index, always, n, across, down) if axes == 2 else {}
        for element in far if not agreed else ():
            assert element in run or element in rows, f"{body} leaves out {element} with {sizes}"
        for element, numbers in inside.items():
            assert run[element] in (numbers, far[element]), f"{body} spills to {element} with {sizes}"
        for element, value in enumerate(b.ravel().tolist()):
            possible = {i * 1000 + j + 1 for i, j in run.get(element, ())} or {0}
            assert value in possible, f"{body} gives {b} with {sizes}"
    assert count / 5 < ran < count
