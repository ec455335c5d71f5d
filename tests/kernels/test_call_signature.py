"""What editors see of a kernel: its arguments as Python's."""

from __future__ import annotations

import inspect

import pytest

import kompute_py as kp

OPTIONS = ("grid", "groups", "indirect", "out", "uses", "bind", "push", "wait", "signal", "donate")


def listed(kernel):
    """The names, "=" for a default and "*" for names alone."""
    kinds = inspect.signature(kernel).parameters.values()
    return [
        ("*" if each.kind is each.KEYWORD_ONLY else "") + each.name + ("=" if each.default is None else "")
        for each in kinds
        if each.name not in OPTIONS
    ]


@pytest.mark.parametrize(
    ("blocks", "body", "arguments"),
    [
        (
            "layout(binding = 0) readonly buffer X { float x[]; };"
            "layout(binding = 1) writeonly buffer Y { float y[]; };"
            "layout(push_constant) uniform P { float factor; uint n; };",
            "y[gl_GlobalInvocationID.x] = factor * x[n];",
            ["x", "y=", "*factor", "*n"],
        ),
        (
            "layout(binding = 0) writeonly buffer Y { float y[]; };"
            "layout(binding = 1) readonly buffer X { float x[]; };",
            "y[gl_GlobalInvocationID.x] = x[0];",
            ["y", "x"],
        ),
        ("layout(binding = 0) buffer A { float lambda[]; };", "lambda[0] = 1;", []),
        ("layout(binding = 0) buffer A { float grid[]; };", "grid[0] += 1;", []),
        ("", "", []),
    ],
)
def test_inspect_has_the_arguments(mgr, blocks, body, arguments):
    kernel = mgr.kernel(f"#version 450\nlayout(local_size_x = 1) in;\n{blocks}\nvoid main() {{ {body} }}")
    assert listed(kernel) == arguments
    assert tuple(inspect.signature(kernel).parameters)[-len(OPTIONS) :] == OPTIONS


def test_the_class_has_the_signature_of_its_construction():
    assert "args" not in listed(kp.Kernel)
    assert not hasattr(kp.Kernel, "__signature__")
