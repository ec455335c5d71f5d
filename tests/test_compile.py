"""kp.compile: from text and files, with macros and includes; what its errors and warnings say; the shader then runs."""

from __future__ import annotations

import os
import random
import re
import threading
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from kompute_py import _native
from kompute_py.errors import Diagnostic
from kompute_py.shader import ShaderCompileWarning

HEAD = "#version 450\nlayout(local_size_x = 1) in;\nlayout(set = 0, binding = 0) buffer Data { float data[]; };\n"
HLSL = """RWStructuredBuffer<float> target : register(u0);
[numthreads(1, 1, 1)] void fill(uint3 id : SV_DispatchThreadID) { target[id.x] = 7; }
"""


def shader(body: str, before: str = "") -> str:
    return f"{HEAD}{before}\nvoid main() {{ {body} }}\n"


def run(mgr: kp.Manager, spirv: bytes, size: int = 1) -> list[float]:
    tensor = mgr.zeros(size)
    algorithm = mgr.algorithm([tensor], spirv)
    mgr.sequence().record(kp.OpSyncDevice([tensor])).record(kp.OpAlgoDispatch(algorithm)).record(
        kp.OpSyncLocal([tensor])
    ).eval()
    return tensor.numpy().tolist()


@pytest.mark.parametrize("optimize", [False, True])
def test_a_compiled_shader_runs(mgr, needs, optimize):
    needs(mgr, "dispatch")
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


def test_include_directories_are_searched_in_order(tmp_path, mgr, needs):
    needs(mgr, "dispatch")
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
    with pytest.raises(kp.ShaderCompileError):
        kp.compile("not_a_path.txt")
    assert kp.compile(HEAD + "void main() {} //.comp")
    with pytest.raises(kp.ShaderCompileError):  # compile_source takes text only
        kp.Shader.compile_source("no.comp")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2.0 + 1.0", 3),
        (7, 7),
        (-7, -7),
        (0.1, np.float32(0.1)),
        (1e-20, np.float32(1e-20)),
        (True, 1),
        (False, 0),
        (np.int32(5), 5),
        (np.float32(0.5), 0.5),
        (4294967295, 4294967295.0),
    ],
)
def test_macros(mgr, needs, value, expected):
    needs(mgr, "dispatch")
    spirv = kp.compile(shader("data[0] = float(VALUE);"), defines={"VALUE": value})
    assert run(mgr, spirv) == [np.float32(expected)]


def test_a_macro_of_none_is_defined_and_empty():
    source = shader("data[0] = 1.0 EMPTY;", "#ifndef EMPTY\n#error it is not defined\n#endif")
    assert kp.compile(source, defines={"EMPTY": None})
    with pytest.raises(kp.ShaderCompileError, match="it is not defined"):
        kp.compile(source)


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "größe", "A\nB", "\ud800"])
def test_macros_that_cannot_be_named_so(name):
    with pytest.raises(kp.InvalidArgumentError):
        kp.compile(shader(""), defines={name: 1})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1\n2", "\ud800", 2**32])
def test_macros_that_cannot_have_such_a_value(value):
    with pytest.raises(kp.InvalidArgumentError, match="A"):
        kp.compile(shader(""), defines={"A": value})


@pytest.mark.parametrize(
    "arguments",
    [
        {"defines": {"A": [1]}},
        {"defines": {"A": Fraction(1, 2)}},
        {"defines": {1: 2}},
        {"defines": 3},
        {"include_dirs": "folder"},
        {"entry": 5},
        {"target": 1},
    ],
)
def test_arguments_of_wrong_types(arguments):
    with pytest.raises(kp.ArgumentTypeError):
        kp.compile(shader(""), **arguments)


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
        "layout(set = 0, binding = 1) buffer Idle { uint idle[]; };\nlayout(constant_id = 4) const int IDLE = 2;",
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


def test_hlsl_by_suffix_and_by_name(tmp_path, mgr, needs):
    needs(mgr, "dispatch")
    file = tmp_path / "fill.hlsl"
    file.write_text(HLSL.replace("fill(", "main("))
    assert run(mgr, kp.compile(file)) == [7]
    assert run(mgr, kp.compile(HLSL.replace("fill(", "main("), language="hlsl")) == [7]
    spirv = kp.compile(HLSL, language="hlsl", entry="fill")
    assert '"fill"' in _native.disassemble_spirv(spirv)
    with pytest.raises(kp.ShaderCompileError, match="'blur'"):
        kp.compile(HLSL, language="hlsl", entry="blur")


def test_virtual_includes_come_before_files_and_their_errors_name_them(tmp_path, mgr, needs):
    needs(mgr, "dispatch")
    (tmp_path / "value.glsl").write_text("#define VALUE 1.0\n")
    source = shader("data[0] = VALUE;", '#include "value.glsl"')
    texts = {"value.glsl": '#include "lib/more.glsl"\n', "lib/more.glsl": "#define VALUE 2.0\n"}
    assert run(mgr, kp.compile(source, include_dirs=[tmp_path])) == [1]
    assert run(mgr, kp.compile(source, include_dirs=[tmp_path], includes=texts)) == [2]
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile(source, includes={"value.glsl": "\n\nfloat f() { return nothing; }\n"})
    assert caught.value.diagnostics[0][:3] == ("value.glsl", 3, 20)
    for wrong in ({"a": b"b"}, {1: "b"}, ["a"]):
        with pytest.raises(kp.ArgumentTypeError):
            kp.compile(source, includes=wrong)


def test_line_directives_are_followed(tmp_path):
    (tmp_path / "lib.glsl").write_text("#line 70\nfloat f() { return nothing; }\n")
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile(shader("data[0] = f();", '#include "lib.glsl"'), include_dirs=[tmp_path])
    (found,) = caught.value.diagnostics
    assert (found.file, found.line) == (f"{tmp_path}/lib.glsl", 70)
    assert found.source_line == "float f() { return nothing; }" and found.column == 20


def test_levels_of_optimization(mgr, needs):
    needs(mgr, "dispatch")
    source = shader(
        "data[0] = float(f(3) + f(5));",
        "int f(int n) { int s = 7; for (int i = 0; i < n; ++i) { if (data[i] < 0.0) return s; s += i; } return s; }",
    )
    modules = {level: kp.compile(source, optimize=level) for level in ("none", "size", "performance")}
    assert len(set(modules.values())) == 3
    for spirv in modules.values():
        assert run(mgr, spirv, 8) == [27, 0, 0, 0, 0, 0, 0, 0]
    calls = {
        level: _native.disassemble_spirv(spirv).count("OpFunctionCall") for level, spirv in modules.items()
    }
    assert calls == {"none": 2, "size": 0, "performance": 0}
    assert kp.compile(source, optimize=False) == modules["none"]
    assert kp.compile(source, optimize=True) == kp.compile(source) == modules["performance"]
    with pytest.raises(kp.InvalidArgumentError, match=r"fast.*none, size, performance"):
        kp.compile(source, optimize="fast")


@pytest.mark.parametrize(("target", "newest"), [("vulkan1.1", 3), ("vulkan1.2", 5), ("vulkan1.3", 6)])
def test_versions_of_spirv(target, newest):
    for minor in range(newest + 1):
        spirv = kp.compile(shader("data[0] = 1.0;"), target=target, spirv_version=f"1.{minor}")
        assert spirv[4:8] == bytes((0, minor, 1, 0))
        assert _native.validate_spirv(spirv, int(target[-1])) == ""
    for wrong in (f"1.{newest + 1}", "2", "1", "1.33"):
        with pytest.raises(kp.InvalidArgumentError, match=rf"{target}.*1\.0.*1\.{newest}"):
            kp.compile(shader(""), target=target, spirv_version=wrong)
    with pytest.raises(kp.InvalidArgumentError, match=r"HLSL.*1\.3$"):
        kp.compile(HLSL, language="hlsl", entry="fill", spirv_version="1.4")
    with pytest.raises(kp.ArgumentTypeError):
        kp.compile(shader(""), spirv_version=1.3)


def test_the_version_of_glsl_can_be_forced():
    of_450 = shader("data[0] = 1.0;").replace("450", "330")
    with pytest.raises(kp.ShaderCompileError):
        kp.compile(of_450)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kp.compile(of_450, glsl_version=450)
        assert kp.compile(of_450, glsl_version="450 core") == kp.compile(of_450, glsl_version="450core")
        assert kp.compile(shader("data[0] = 1.0;"), glsl_version="310 es")
    with pytest.raises(kp.ShaderCompileError, match="float"):  # 310 es knows no implicit conversion
        kp.compile(shader("data[0] = 1;"), glsl_version="310 es")
    for wrong in (330, "450 es", "310", "es", "450 corn", 99999999999):
        with pytest.raises(kp.InvalidArgumentError, match=re.escape(str(wrong))):
            kp.compile(of_450, glsl_version=wrong)
    with pytest.raises(kp.InvalidArgumentError, match="HLSL"):
        kp.compile(HLSL, language="hlsl", entry="fill", glsl_version=450)


def test_bindings_are_numbered_on_request():
    source = shader("data[0] = more[0];", "buffer More { float more[]; };")
    with pytest.raises(kp.ShaderCompileError, match="binding"):
        kp.compile(source)
    bindings = kp.ShaderModule(source, auto_bind=True).reflection["bindings"]
    assert [(b["binding"], b["name"] or b["block_name"]) for b in bindings] == [(0, "Data"), (1, "More")]


def test_registers_of_hlsl_can_be_kept_apart(mgr, needs):
    needs(mgr, "dispatch")
    source = """StructuredBuffer<float> source : register(t0);
    RWStructuredBuffer<float> target : register(u0);
    cbuffer Numbers : register(b0) { float scale; };
    [numthreads(1, 1, 1)] void main(uint3 id : SV_DispatchThreadID) { target[id.x] = source[id.x] * scale; }
    """
    with pytest.warns(ShaderCompileWarning, match=r"both binding 0.*register_bases"):
        kp.compile(source, language="hlsl")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        spirv = kp.compile(source, language="hlsl", register_bases={"u": 1, "b": 2})
    found = {b["binding"]: b["kind"] for b in _native.reflect_spirv(spirv)["bindings"]}
    assert found == {0: "storage buffer", 1: "storage buffer", 2: "uniform buffer"}
    tensors = [mgr.tensor([1, 2, 3]), mgr.zeros(3), mgr.tensor([10, 0, 0, 0])]
    algorithm = mgr.algorithm(tensors, spirv)
    mgr.sequence().record(kp.OpSyncDevice(tensors)).record(kp.OpAlgoDispatch(algorithm)).record(
        kp.OpSyncLocal(tensors)
    ).eval()
    assert tensors[1].numpy().tolist() == [10, 20, 30]
    for wrong, error in (
        ({"x": 1}, kp.InvalidArgumentError),
        ({"u": -1}, kp.InvalidArgumentError),
        ({"u": 2**40}, kp.InvalidArgumentError),
        ({"u": 1.5}, kp.ArgumentTypeError),
        (3, kp.ArgumentTypeError),
    ):
        with pytest.raises(error):
            kp.compile(source, language="hlsl", register_bases=wrong)


def test_types_of_16_bits_in_hlsl():
    source = """RWStructuredBuffer<float> target : register(u0);
    [numthreads(1, 1, 1)] void main() { min16float x = (min16float)target[0]; target[0] = x * x; }
    """
    assert "Float16" not in kp.ShaderModule(source, language="hlsl").reflection["capabilities"]
    wide = kp.ShaderModule(source, language="hlsl", hlsl_16bit_types=True)
    assert "Float16" in wide.reflection["capabilities"]


def test_blocks_can_be_laid_out_as_in_hlsl():
    source = shader("data[0] = b.x;", "layout(set = 0, binding = 1) uniform U { float a; vec3 b; float c; };")

    def offsets(**options):
        block = kp.ShaderModule(source, **options).reflection["bindings"][1]["layout"]
        return [member["offset"] for member in block["members"]]

    assert offsets() == [0, 16, 28]
    assert offsets(hlsl_offsets=True) == [0, 4, 16]


def test_options_that_do_not_exist():
    with pytest.raises(kp.ArgumentTypeError, match=r"optimise.*optimize"):
        kp.ShaderModule(shader(""), optimise=True)


def test_the_entry_point_is_renamed():
    spirv = kp.compile(shader("data[0] = 1.0;"), entry="another_name")
    assert _native.validate_spirv(spirv) == ""
    assert 'OpEntryPoint GLCompute %main "another_name"' in _native.disassemble_spirv(spirv) or (
        'OpEntryPoint GLCompute %another_name "another_name"' in _native.disassemble_spirv(spirv)
    )


@pytest.mark.parametrize("minor", [0, 1, 2, 3])
def test_targets(minor):
    spirv = kp.compile(shader("data[0] = 1.0;"), target=f"vulkan1.{minor}")
    version = {0: 0x10000, 1: 0x10300, 2: 0x10500, 3: 0x10600}[minor]
    assert int.from_bytes(spirv[4:8], "little") == version
    assert _native.validate_spirv(spirv, minor) == ""


def test_spirv_files(tmp_path):
    spirv = kp.compile(shader("data[0] = 1.0;"))
    file = tmp_path / "made.spv"
    file.write_bytes(spirv)
    assert kp.compile(file) == spirv
    assert kp.compile(str(file)) == spirv
    with pytest.raises(kp.InvalidArgumentError, match=r"made\.spv.*vulkan1\.0"):
        kp.compile(file, target="vulkan1.0")
    with pytest.raises(kp.InvalidArgumentError, match="language"):
        kp.compile(file, language="glsl")
    for content in (b"", b"text", spirv[:-4], spirv[:-1], spirv[::-1]):
        file.write_bytes(content)
        with pytest.raises(kp.InvalidArgumentError, match=r"made\.spv"):
            kp.compile(file)


def test_assembly_files(tmp_path, mgr, needs):
    needs(mgr, "dispatch")
    # SPIR-V of Vulkan 1.1 lists fewer variables with the entry point.
    text = _native.disassemble_spirv(kp.compile(shader("data[0] = 9.0;"), target="vulkan1.1"))
    file = tmp_path / "made.spvasm"
    file.write_text(text)
    assert run(mgr, kp.compile(file, target="vulkan1.1")) == [9]
    assert kp.compile(file, target="vulkan1.1")[4:8] == bytes((0, 3, 1, 0))

    text = _native.disassemble_spirv(kp.compile(shader("data[0] = 9.0;")))
    file.write_text(text)
    assert run(mgr, kp.compile(file)) == [9]

    file.write_text(text.replace("OpReturn\n", "OpBackflip\n"))
    with pytest.raises(kp.ShaderCompileError, match=r"made\.spvasm:\d+:\d+: error: .*OpBackflip") as caught:
        kp.compile(file)
    assert caught.value.diagnostics[0].source_line.strip() == "OpBackflip"
    file.write_text(text.replace("OpReturn\n", ""))
    with pytest.raises(kp.InvalidArgumentError, match=r"made\.spvasm is not valid"):
        kp.compile(file)


def test_modules_come_back_as_source():
    spirv = kp.compile(shader("data[0] = 1.0;"))
    assert kp.compile(_native.decompile_spirv(spirv, "glsl", "main"))
    assert "numthreads" in _native.decompile_spirv(spirv, "hlsl", "main")
    with pytest.raises(kp.NotFoundError, match="'main'"):
        _native.decompile_spirv(spirv, "glsl", "blur")
    for function in (_native.disassemble_spirv, lambda data: _native.decompile_spirv(data, "glsl", "main")):
        for data in (b"", b"123", bytes(64)):
            with pytest.raises(kp.InvalidArgumentError):
                function(data)


def test_komputes_own_compile_source(mgr, needs):
    needs(mgr, "dispatch")
    spirv = kp.Shader.compile_source(shader("data[0] = SCALE;"), "main", [("SCALE", "4.0")])
    assert run(mgr, spirv) == [4]
    assert kp.Shader.compile_source(source=shader(""), entryPoint="main", definitions=[])


def test_threads_compile_at_the_same_time():
    problems: list[object] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                spirv = kp.compile(shader(f"data[0] = {number}.25;"))
                assert f"OpConstant %float {number}.25" in _native.disassemble_spirv(spirv)
                with pytest.raises(kp.ShaderCompileError, match=f"'missing{number}'"):
                    kp.compile(shader(f"data[0] = missing{number};"))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []


def test_garbage_raises_and_does_no_more():
    choose = random.Random(5)
    words = [
        "void",
        "main",
        "(",
        ")",
        "{",
        "}",
        ";",
        "#if ",
        "\n",
        "#define X(",
        "/*",
        '"',
        "\\\n",
        "float",
        "ä",
        "\x01",
        "##",
    ]
    for number in range(50):
        text = " ".join(choose.choices(words, k=choose.randrange(1, 80)))
        source = (HEAD if number % 2 else "") + text + "\n"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShaderCompileWarning)
            with pytest.raises(kp.ShaderCompileError) as caught:
                kp.compile(source, language="hlsl" if number % 5 == 0 else "glsl")
        assert caught.value.diagnostics


@pytest.mark.parametrize("language", ["glsl", "hlsl"])
def test_deep_nesting_raises_in_a_thread_with_a_small_stack(language):
    body = "(" * 9000 + "1.0" + ")" * 9000
    sources = {
        "glsl": shader(f"data[0] = {body};"),
        "hlsl": f"RWStructuredBuffer<float> d;\n[numthreads(1,1,1)] void main() {{ d[0] = {body}; }}\n",
    }
    outcome: list[object] = []

    def work() -> None:
        try:
            outcome.append(kp.compile(sources[language], language=language))
        except kp.ShaderCompileError as error:
            outcome.append(error)

    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert len(outcome) == 1


def test_a_path_of_bytes_that_are_no_text(tmp_path):
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.comp"))
    try:
        file.write_text(shader("data[0] = foo;"))
    except OSError:
        pytest.skip("this file system refuses such names")
    with pytest.raises(kp.ShaderCompileError, match="'foo'"):
        kp.compile(file)


COOPERATIVE = """
#version 450
#extension GL_KHR_memory_scope_semantics : enable
#extension GL_NV_cooperative_matrix : enable
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) coherent buffer Block { float y[1024]; float x[]; } block;
void main() {
    fcoopmatNV<32, gl_ScopeSubgroup, 16, 8> m = fcoopmatNV<32, gl_ScopeSubgroup, 16, 8>(0.0);
    m = m + m;
    coopMatLoadNV(m, block.x, 16, 128, false);
    coopMatStoreNV(m, block.x, 16, 128, false);
}
"""
COOPERATIVE_KHR = """
#version 450
#extension GL_KHR_memory_scope_semantics : enable
#extension GL_KHR_cooperative_matrix : enable
layout(local_size_x = 32) in;
layout(set = 0, binding = 0) coherent buffer Block { float y[1024]; float x[]; } block;
void main() {
    coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator> m =
        coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator>(0.0);
    m = m + m;
    coopMatLoad(m, block.x, 16, 128, 0);
    coopMatStore(m, block.x, 16, 128, 0);
}
"""


@pytest.mark.parametrize("source", [COOPERATIVE, COOPERATIVE_KHR])
@pytest.mark.parametrize("optimize", ["performance", "size", "none"])
def test_cooperative_matrices_do_not_crash_the_optimizer(source, optimize):
    """Passes of SPIRV-Tools dereference null on their types: such modules stay as the compiler wrote them."""
    try:
        spirv = kp.compile(source, optimize=optimize)
    except kp.ShaderCompileError as error:
        # A compiler of before the extension of Khronos says so.
        assert source is COOPERATIVE_KHR and "GL_KHR_cooperative_matrix" in str(error)
        return
    assert b"block" in spirv and kp.ShaderModule(spirv).signature.parameters[0].access == "read_write"
