"""What editors see of a kernel: its arguments as Python's."""

from __future__ import annotations

import inspect
import pydoc
import re

import pytest

import kompute_py as kp
from kompute_py.ops._places.composed import Composed

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


def helped(thing):
    return pydoc.render_doc(thing, renderer=pydoc.plaintext)


def shows(text, called, thing):
    """Whether a text has the whole signature. Python 3.13 breaks long ones, and 3.14 writes types plainly."""
    whole, wanted = (re.sub(r"[\s']", "", each) for each in (text, f"{called}{inspect.signature(thing)}"))
    return wanted in whole


def test_help_shows_all_arguments_and_describes_the_shader(mgr):
    names = [f"a_rather_long_name_{n}" for n in range(9)]
    blocks = "".join(
        f"layout(binding = {n}) buffer B{n} {{ float {name}[]; }};" for n, name in enumerate(names)
    )
    body = " ".join(f"{name}[0] = 1;" for name in names)
    kernel = mgr.kernel(
        f"#version 450\nlayout(local_size_x = 1) in;\n{blocks}\nvoid main() {{ {body} }}", name="k"
    )
    text = helped(kernel)
    assert shows(text, "k", kernel) and all(name in text for name in names)
    assert "binding     0.8 a_rather_long_name_8" in text and "help(kp.Kernel)" in text
    assert inspect.getdoc(kp.Kernel).startswith("A compute shader to be called like a function")


@pytest.mark.parametrize(
    "function",
    [
        kp.ops.gaussian_filter,
        kp.ops.matmul,
        kp.ops.sum.specialize(axis=0),
        kp.ops.elementwise(" + ".join(f"a_rather_long_name_{n}" for n in range(9))),
    ],
)
def test_help_shows_all_parameters_of_functions(function):
    text = helped(function)
    assert shows(text, function.__name__, function) and function.__doc__.split("\n")[0] in text


def test_help_shows_all_parameters_of_functions_of_several_operations():
    several = [f for name in kp.ops.__all__ if isinstance(f := getattr(kp.ops, name), Composed)]
    assert several
    assert all(shows(helped(f), f.__name__, f) for f in several)


def test_a_kernel_in_a_class_is_not_bound_to_its_instances(mgr):
    class Held:
        kernel = mgr.kernel(
            "#version 450\nlayout(binding = 0) buffer A { float a[]; }; void main() { a[0] += 1; }"
        )
        function = kp.ops.negative

    x = mgr.tensor([1.0])
    Held().kernel(x)
    assert Held().function(x).tolist() == [-2.0]
