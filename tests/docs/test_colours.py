"""Shaders in the strings of the site's programs are coloured as shaders."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import ROOT

pytest.importorskip("pygments")
sys.path.append(str(ROOT / "docs" / "_ext"))

from pygments.token import Comment, Keyword, String
from shaders_in_strings import PythonWithShaders

pytestmark = pytest.mark.own_driver


def tokens(text):
    return [(kind, value) for _, kind, value in PythonWithShaders().get_tokens_unprocessed(text)]


@pytest.mark.parametrize("folder", ["examples", "kompute_py_gallery", "tests/kernels"])
def test_no_text_is_lost(folder):
    for path in (ROOT / folder).rglob("*.py"):
        text = path.read_text()
        assert "".join(value for _, value in tokens(text)) == text, path


def test_glsl_in_a_string_is_glsl():
    found = tokens(
        'A = """\n#version 450\nlayout(local_size_x = 1) in;\nvoid main() { uint i = 1; }\n"""\nB = 1\n'
    )
    assert any("version" in value and kind in Comment.Preproc for kind, value in found)
    assert any(value == "layout" and kind in Keyword for kind, value in found)


def test_glsl_on_the_line_after_a_call_is_glsl():
    text = 'k = mgr.kernel(\n    """\n#version 450\nlayout(local_size_x = 1) in;\n""",\n    name="k",\n)\n'
    found = tokens(text)
    assert "".join(value for _, value in found) == text
    assert any(value == "layout" and kind in Keyword for kind, value in found)
    assert ("k" in [value for kind, value in found if kind in String]) and found[-1][1] == "\n"


def test_hlsl_in_a_string_is_hlsl():
    text = 'k = f(\n    """\nRWBuffer<float> y;\n[numthreads(1, 1, 1)] void main() { float x = 1; }""")\n'
    found = tokens(text)
    assert "".join(value for _, value in found) == text
    assert any(value == "float" and kind in Keyword for kind, value in found)


def test_other_strings_stay_strings():
    found = tokens('def f():\n    """Calls a kernel::\n\n        #version 450\n    """\n\nC = """layout"""\n')
    assert [value for kind, value in found if kind in String] == [
        '"""Calls a kernel::\n\n        #version 450\n    """',
        '"""',
        "layout",
        '"""',
    ]
