"""Kernel.specialize: which constant a name or an id means, and what runs where none is given."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp

SIZES = """#version 450
layout(local_size_x_id = 0, local_size_y_id = 1) in;
layout(binding = 0) buffer B { uint b[]; };
void main() { b[0] = gl_WorkGroupSize.x; b[1] = gl_WorkGroupSize.y; }"""

ALIASES = """#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint M = 1;
layout(constant_id = 1) const uint N = 1;
const uint strideB = N;
const uint strideC = N;
layout(binding = 0) buffer B { uint b[]; };
void main() { b[0] = M; b[1] = strideB; b[2] = strideC + N; }"""

TWO_DEFAULTS = """#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint TILE = 16;
layout(binding = 0) buffer B { uint b[]; };
void main() { b[0] = TILE; b[1] = gl_WorkGroupSize.x; }"""


def run(kernel, count=2):
    return list(map(int, kernel(np.zeros(count, np.uint32), groups=1)))


def test_constants_without_names_are_told_apart(mgr):
    kernel = mgr.kernel(SIZES, name="sizes")
    wide, tall = kernel.specialize({0: 8, 1: 2}), kernel.specialize({0: 2, 1: 8})
    assert wide is not tall
    assert (run(wide), run(tall)) == ([8, 2], [2, 8])
    assert (wide.local_size, tall.local_size) == ((8, 2, 1), (2, 8, 1))
    assert run(kernel.specialize({0: 4})) == [4, 1]
    assert run(kernel.specialize({1: 4})) == [1, 4]
    # However the id is written, and in whatever order.
    assert wide is kernel.specialize(**{"0": 8, "1": 2}) is kernel.specialize({np.int64(1): 2, "0": 8})
    # What is given again replaces what was given, under whatever key.
    again = wide.specialize({"0": 4}).specialize({0: 2})
    assert again.local_size == (2, 2, 1) and run(again) == [2, 2]
    assert wide.spec_constants == {"0": 8, "1": 2} and kernel.spec_constants == {"0": 1, "1": 1}
    assert "8 (constant 0) x 2 (constant 1) x 1" in str(wide)


@pytest.mark.parametrize("optimize", ["none", "performance"])
def test_constants_keep_their_first_name(mgr, optimize):
    kernel = mgr.kernel(ALIASES, optimize=optimize)
    assert kernel.spec_constants == {"M": 1, "N": 1}
    assert run(kernel.specialize(N=4), 3) == [1, 4, 8]
    assert kernel.specialize({1: 4}) is kernel.specialize(N=4) is kernel.specialize({"N": 4})
    assert [c.name for c in mgr.algorithm([mgr.zeros(4, "uint32")], kernel, (1, 1, 1)).spec_constants] == [
        "M",
        "N",
    ]


def test_what_names_no_constant(mgr):
    kernel = mgr.kernel(ALIASES, name="aliases")
    for constants, named, error, says in (
        (
            {0: 1},
            {"M": 2},
            kp.InvalidArgumentError,
            r"^aliases: Specialization constant 0 \(M\) is given twice",
        ),
        ({"M": 1}, {"M": 2}, kp.InvalidArgumentError, "'M' is given twice"),
        ({2: 1}, {}, kp.InvalidArgumentError, "no specialization constant 2: the shader has the ids 0"),
        ({-1: 1}, {}, kp.InvalidArgumentError, "no specialization constant -1"),
        ({"m": 1}, {}, kp.InvalidArgumentError, "no specialization constant 'm'"),
        ({"²": 1}, {}, kp.InvalidArgumentError, "no specialization constant"),
        ({True: 1}, {}, kp.ArgumentTypeError, "named by its id, an int, or its name, not by True"),
        ({0.0: 1}, {}, kp.ArgumentTypeError, "not by 0.0 of type float"),
        ({None: 1}, {}, kp.ArgumentTypeError, "not by None"),
        ([1, 2], {}, kp.ArgumentTypeError, "constants are a list; give"),
    ):
        with pytest.raises(error, match=says):
            kernel.specialize(constants, **named)
    with pytest.raises(kp.InvalidArgumentError, match="constant 1 \\(N\\) is given twice"):
        mgr.algorithm([mgr.zeros(4, "uint32")], kernel, (1, 1, 1), spec_consts={"N": 1, 1: 2})
    assert kernel.specialize() is kernel and kernel.specialize({}) is kernel


def test_a_name_of_several_constants_is_refused(mgr):
    text = kp.disassemble(kp.compile(ALIASES, optimize="none"), friendly_names=False)
    renamed = "\n".join(
        line.replace('"M"', '"N"')
        for line in text.splitlines()
        if "strideB" not in line and "strideC" not in line
    )
    kernel = mgr.kernel(renamed)
    with pytest.raises(
        kp.InvalidArgumentError, match="2 specialization constants are named 'N', ids 0, 1: give the id"
    ):
        kernel.specialize(N=3)
    assert run(kernel.specialize({0: 5, 1: 2}), 3) == [5, 2, 4]
    assert kernel.specialize({0: 5}).spec_constants == {"0": 5, "1": 1}


def test_two_defaults_of_a_constant_are_refused_where_none_is_given(mgr):
    kernel = mgr.kernel(TWO_DEFAULTS, name="tiles")
    assert run(kernel.specialize(TILE=8)) == [8, 8]
    mgr.algorithm([mgr.zeros(4, "uint32")], kernel, (1, 1, 1), [8])
    assert kp.check(kernel.to_spirv(), mgr) == []
    says = r"constant 0 is declared with two defaults, 16 \(TILE\) and 1 \(.*local size"
    with pytest.raises(kp.InvalidArgumentError, match=rf"^tiles: .* {says}.*specialize\({{'TILE': 16}}\)"):
        run(kernel)
    with pytest.raises(kp.InvalidArgumentError, match=rf"{says}.*ts={{'TILE': 16}}, .*_x = 16, local"):
        mgr.algorithm([mgr.zeros(4, "uint32")], kernel, (1, 1, 1))


def test_one_default_does_not_warn(mgr, recwarn):
    agreed = TWO_DEFAULTS.replace("local_size_x_id", "local_size_x = 16, local_size_x_id")
    assert run(mgr.kernel(agreed)) == [16, 16]
    assert not recwarn.list


ARRAYS = {
    "shared": "shared float x[N];",
    "shared, by an expression": "shared float x[N - 2];",
    "local": "",
}


@pytest.mark.parametrize("where", ARRAYS)
def test_an_array_of_no_element_is_refused(mgr, where):
    local = "float x[N];" if where == "local" else ""
    spirv = kp.compile(
        f"""#version 450
        layout(local_size_x = 1) in;
        layout(constant_id = 0) const int N = 4;
        {ARRAYS[where]}
        layout(binding = 0) buffer A {{ float a[]; }};
        void main() {{ {local} for (int i = 0; i < int(a.length()); ++i) x[i % 2] = a[i]; a[0] = x[0]; }}"""
    )
    t = mgr.zeros(8)
    least = 3 if "expression" in where else 1
    mgr.algorithm([t], spirv, spec_consts=[least])
    for number in (least - 1, least - 2):
        text = (
            rf"The shader's array 'x' has the length {number - least + 1} with these specialization constants"
        )
        with pytest.raises(kp.InvalidArgumentError, match=text):
            mgr.algorithm([t], spirv, spec_consts=[number])
        found = [each.message for each in kp.check(spirv, mgr, spec_consts=[number])]
        assert any("'x' has the length" in each for each in found), found
