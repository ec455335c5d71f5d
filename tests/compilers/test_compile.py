"""kp.compile: from text and files, with macros and includes; what its errors and warnings say; the shader
then runs.
"""

from __future__ import annotations

import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from kompute_py import _native
from kompute_py._compilers.compile import ShaderCompileWarning
from kompute_py.errors import Diagnostic
from tests.support.compiling import HEAD, HLSL, run, shader


@pytest.mark.capability("P42", "GLSL, HLSL and Slang to SPIR-V", "kp.compile", "reference/shaders")
@pytest.mark.parametrize("optimize", [False, True])
def test_a_compiled_shader_runs(mgr, optimize):
    spirv = kp.compile(
        shader("data[gl_GlobalInvocationID.x] = float(gl_GlobalInvocationID.x) * SCALE;"),
        defines={"SCALE": 1.5},
        optimize=optimize,
    )
    assert run(mgr, spirv, 3) == [0, 1.5, 3]


def test_the_error_shows_every_message_with_its_line_and_caret():
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile(HEAD + "void main() {\n    float x = 1.0;\n    x = foo;\n\tdata[0] = bar(x);\n}\n")
    assert str(caught.value) == (
        "<source>:6:9: error: 'foo' : undeclared identifier\n"
        "    6 |     x = foo;\n"
        "      |         ^\n"
        "<source>:7:12: error: 'bar' : no matching overloaded function found\n"
        "    7 | \tdata[0] = bar(x);\n"
        "      | \t          ^\n"
        "2 errors"
    )
    assert caught.value.diagnostics[0] == Diagnostic(
        "<source>", 6, 9, "error", "'foo' : undeclared identifier", "    x = foo;"
    )
    assert isinstance(caught.value, ValueError)
    assert caught.value.code == kp.ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize("as_path", [Path, str])
def test_files_are_named_in_errors_and_searched_for_includes(tmp_path, as_path):
    (tmp_path / "lib.glsl").write_text("float one() { return 1.0; }\n")
    file = tmp_path / "größe.comp"
    file.write_text(shader("data[0] = one();", '#include "lib.glsl"'), encoding="utf-8")
    assert kp.compile(as_path(file))

    (tmp_path / "lib.glsl").write_text("\nfloat one() { return two; }\n")
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile(as_path(file))
    assert str(caught.value) == (
        f"{tmp_path}/lib.glsl:2:22: error: 'two' : undeclared identifier\n"
        "    2 | float one() { return two; }\n"
        "      |                      ^\n"
        "1 error"
    )


def test_include_directories_are_searched_in_order(tmp_path, mgr):
    for number, name in enumerate(("first", "second")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "value.glsl").write_text(f"#define VALUE {number + 1}.0\n")
    source = shader("data[0] = VALUE;", "#include <value.glsl>")
    for order, expected in ((("first", "second"), 1), (("second", "first"), 2)):
        spirv = kp.compile(source, include_dirs=[tmp_path / name for name in order])
        assert run(mgr, spirv) == [expected]
    with pytest.raises(kp.ShaderCompileError, match=r"value\.glsl.*elsewhere"):
        kp.compile(source, include_dirs=["elsewhere"])


def test_files_that_do_not_exist(tmp_path):
    for missing in (
        tmp_path / "no.comp",
        str(tmp_path / "no.comp"),
        "no.spv",
        Path("no.spvasm"),
        tmp_path / "no",
    ):
        with pytest.raises(kp.NotFoundError, match="no"):
            kp.compile(missing)
    (tmp_path / "folder.comp").mkdir()
    with pytest.raises(kp.NotFoundError, match="folder"):
        kp.compile(tmp_path / "folder.comp")
    with pytest.raises(kp.NotFoundError):
        kp.compile("a\0b.comp")


def test_a_str_is_a_path_only_with_a_suffix_and_on_one_line():
    with pytest.raises(kp.NotFoundError, match="not source text"):
        kp.compile("not_a_path.txt")
    assert kp.compile(HEAD + "void main() {} //.comp")
    with pytest.raises(kp.ShaderCompileError):  # compile_source takes text only
        kp.Shader.compile_source("no.comp")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2.0 + 1.0", 3), (7, 7), (-7, -7), (0.1, np.float32(0.1)), (1e-20, np.float32(1e-20)), (True, 1),
        (False, 0), (np.int32(5), 5), (np.float32(0.5), 0.5), (4294967295, 4294967295.0),
    ],
)  # fmt: skip
def test_macros(mgr, value, expected):
    spirv = kp.compile(shader("data[0] = float(VALUE);"), defines={"VALUE": value})
    assert run(mgr, spirv) == [np.float32(expected)]


def test_a_macro_of_none_is_defined_and_empty():
    source = shader("data[0] = 1.0 EMPTY;", "#ifndef EMPTY\n#error it is not defined\n#endif")
    assert kp.compile(source, defines={"EMPTY": None})
    with pytest.raises(kp.ShaderCompileError, match="it is not defined"):
        kp.compile(source)


@pytest.mark.own_driver
@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "größe", "A\nB", "\ud800"])
def test_macros_that_cannot_be_named_so(name):
    with pytest.raises(kp.InvalidArgumentError):
        kp.compile(shader(""), defines={name: 1})


@pytest.mark.own_driver
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1\n2", "\ud800", 2**32])
def test_macros_that_cannot_have_such_a_value(value):
    with pytest.raises(kp.InvalidArgumentError, match="A"):
        kp.compile(shader(""), defines={"A": value})


@pytest.mark.own_driver
@pytest.mark.parametrize(
    "arguments",
    [
        {"defines": {"A": [1]}}, {"defines": {"A": Fraction(1, 2)}}, {"defines": {1: 2}}, {"defines": 3},
        {"include_dirs": "folder"}, {"entry": 5}, {"target": 1},
    ],
)  # fmt: skip
def test_arguments_of_wrong_types(arguments):
    with pytest.raises(kp.ArgumentTypeError):
        kp.compile(shader(""), **arguments)


@pytest.mark.own_driver
@pytest.mark.parametrize("source", [None, 5, b"#version 450", ["text"]])
def test_sources_of_wrong_types(source):
    with pytest.raises(kp.ArgumentTypeError):
        kp.compile(source)


def test_values_that_name_nothing():
    with pytest.raises(kp.InvalidArgumentError, match=r"cuda.*glsl, hlsl"):
        kp.compile(shader(""), language="cuda")
    with pytest.raises(
        kp.InvalidArgumentError, match=r"vulkan9.*vulkan1\.0, vulkan1\.1, vulkan1\.2, vulkan1\.3"
    ):
        kp.compile(shader(""), target="vulkan9")
    with pytest.raises(kp.InvalidArgumentError, match="no name"):
        kp.compile(shader(""), entry="no name")


@pytest.mark.own_driver
@pytest.mark.parametrize("source", ["", "   \n\t", "// nothing\n", "#version 450\n\0", "\ud800", "\n" * 100])
def test_texts_that_are_no_shader(source):
    with pytest.raises(kp.InvalidArgumentError):
        kp.compile(source)


def test_bytes_of_another_encoding(tmp_path):
    file = tmp_path / "latin.comp"
    file.write_bytes(shader("data[0] = 1.0; /* größe */").encode("latin-1"))
    assert kp.compile(file)  # in a comment they do no harm
    file.write_bytes(shader("data[0] = größe;").encode("latin-1"))
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile(file)
    assert caught.value.diagnostics[0].line == 5


@pytest.mark.own_driver
@pytest.mark.parametrize("version", ["110", "330", "abc", ""])
def test_versions_without_compute_shaders_print_nothing(capfd, version):
    with pytest.raises(kp.ShaderCompileError, match="<source>:1:"):
        kp.compile(shader("").replace("450", version))
    assert capfd.readouterr() == ("", "")


def test_warnings_point_at_the_caller():
    source = shader("", "#extension GL_FOO_bar : enable")
    with pytest.warns(ShaderCompileWarning, match=r"<source>:4:\d+: .*GL_FOO_bar") as caught:
        kp.compile(source)
    assert caught[0].filename == __file__
    with pytest.warns(ShaderCompileWarning) as caught:
        kp.Shader.compile_source(source)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kp.compile(shader(""))


def test_optimizing_keeps_what_an_algorithm_reports():
    source = shader(
        "float x = data[0]; data[0] = x + x;",
        "layout(set = 0, binding = 1) buffer Idle { uint idle[]; };\nlayout(constant_id = 4) const int IDLE "
        "= 2;",
    )
    text = _native.disassemble_spirv(kp.compile(source))
    for kept in ('"data"', '"idle"', '"IDLE"', "Binding 1", "SpecId 4"):
        assert kept in text
    assert len(kp.compile(source, optimize=False)) > len(kp.compile(source))


def test_debug_information_names_the_file(tmp_path):
    file = tmp_path / "named.comp"
    file.write_text(shader("data[0] = 1.0;"))
    assert str(file).encode() in kp.compile(file, debug_info=True)
    assert b"named.comp" not in kp.compile(file)


def test_hlsl_by_suffix_and_by_name(tmp_path, mgr):
    file = tmp_path / "fill.hlsl"
    file.write_text(HLSL.replace("fill(", "main("))
    assert run(mgr, kp.compile(file)) == [7]
    assert run(mgr, kp.compile(HLSL.replace("fill(", "main("), language="hlsl")) == [7]
    spirv = kp.compile(HLSL, language="hlsl", entry="fill")
    assert '"fill"' in _native.disassemble_spirv(spirv)
    with pytest.raises(kp.ShaderCompileError, match="'blur'"):
        kp.compile(HLSL, language="hlsl", entry="blur")


def test_komputes_own_compile_source(mgr):
    spirv = kp.Shader.compile_source(shader("data[0] = SCALE;"), "main", [("SCALE", "4.0")])
    assert run(mgr, spirv) == [4]
    assert kp.Shader.compile_source(source=shader(""), entryPoint="main", definitions=[])
