"""kompute-py compile, reflect, disasm, check and cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kompute_py as kp
from kompute_py.cli import main
from kompute_py.cli.output import one_line

SOURCE = """#version 450
layout(local_size_x = 32) in;
layout(binding = 0) buffer Data { float data[]; };
layout(constant_id = 4) const int SIZE = 8;
layout(push_constant) uniform P { float scale; };
shared float tile[SIZE];
#include "value.glsl"
void main() { tile[0] = scale; barrier(); data[0] = VALUE + tile[0]; }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "blur.comp").write_text(SOURCE)
    (tmp_path / "value.glsl").write_text("#ifndef VALUE\n#define VALUE 1.5\n#endif\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def piped(*arguments, content):
    return subprocess.run(
        [sys.executable, "-m", "kompute_py", *arguments],
        input=content, capture_output=True, env=os.environ, timeout=500,
    )  # fmt: skip


# -- compile -------------------------------------------------------------------------------------------------


def test_compile_writes_beside_the_source(folder, capsys):
    assert main(["compile", "blur.comp"]) == 0
    assert capsys.readouterr() == ("", "")
    assert (folder / "blur.spv").read_bytes() == kp.compile(Path("blur.comp"))


def test_compile_options(folder):
    (folder / "more").mkdir()
    (folder / "more" / "far.glsl").write_text("#define FAR 1\n")
    (folder / "blur.comp").write_text(SOURCE + "#include <far.glsl>\n")
    command = ["compile", "blur.comp", "-o", "out.bin", "-D", "VALUE=2.5", "-DEMPTY=", "-DONE", "-I", "more"]
    command += ["--target", "vulkan1.1", "--spirv", "1.2", "--entry", "blur", "-O", "none", "-g"]
    assert main(command) == 0
    expected = kp.compile(
        Path("blur.comp"), defines={"VALUE": "2.5", "EMPTY": None, "ONE": 1}, include_dirs=["more"],
        target="vulkan1.1", spirv_version="1.2", entry="blur", optimize="none", debug_info=True,
    )  # fmt: skip
    assert (folder / "out.bin").read_bytes() == expected and expected[4:8] == bytes((0, 2, 1, 0))


@pytest.mark.own_driver
def test_compile_through_pipes(folder):
    source = SOURCE.replace('#include "value.glsl"', "#define VALUE 1.0").encode()
    ran = piped("compile", "-", content=source)
    assert ran.returncode == 0 and ran.stdout == kp.compile(source.decode())
    again = piped("disasm", "-", content=ran.stdout)
    assert again.returncode == 0 and b"OpEntryPoint GLCompute" in again.stdout


def test_compile_errors_are_shown_with_their_lines(folder, capsys):
    (folder / "value.glsl").write_text("\n#define VALUE nothing\nfloat f() { return missing; }\n")
    assert main(["compile", "blur.comp"]) == 1
    shown = capsys.readouterr()
    assert "value.glsl:3:20: error: 'missing'" in shown.err and "      |                    ^" in shown.err
    assert "blur.comp:8:" in shown.err and shown.err.rstrip().endswith("2 errors") and "\x1b" not in shown.err
    assert shown.out == "" and not (folder / "blur.spv").exists()
    assert main(["compile", "blur.comp", "--traceback"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_compile_warnings_go_to_stderr(folder, capsys):
    (folder / "value.glsl").write_text("#extension GL_FOO_bar : enable\n#define VALUE 1.0\n")
    assert main(["compile", "blur.comp"]) == 0
    text = capsys.readouterr().err
    assert (
        "value.glsl:1:" in text and ": warning: " in text and "GL_FOO_bar" in text and text.count("\n") == 1
    )


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["compile", "none.comp"], "none.comp"),
        (["compile", "."], "Cannot read the shader file '.'"),
        (["compile", "blur.comp", "--target", "vulkan9"], "vulkan9"),
        (["compile", "blur.comp", "--target", "none.json"], "none.json"),
        (["compile", "blur.comp", "-O", "fast"], "fast"),
        (["compile", "blur.comp", "-o", "none/out.spv"], "cannot write none/out.spv"),
        (["compile", "blur.comp", "-o", "blur.comp"], "the shader itself"),
        (["compile", "blur.comp", "-D", "1A"], "1A"),
        (["disasm", "blur.comp", "--to", "wgsl"], "wgsl"),
        (["reflect", "none"], "none"),
        (["check", "blur.comp", "--device", "no such device"], "no such device"),
        (["check", "blur.comp", "--device", "none.json"], "none.json"),
        (["check", "blur.comp", "--device", "text.json"], "'text.json' is not JSON"),
        (["check", "blur.comp", "--device", "empty.json"], "'empty.json' describes no device"),
    ],
)
def test_errors_are_one_line(folder, one_line, arguments, word):
    (folder / "text.json").write_text("text")
    (folder / "empty.json").write_text("[]")
    assert main(arguments) == 1
    assert word in one_line()


@pytest.mark.own_driver
@pytest.mark.parametrize(
    "wrong", [["compile"], ["check", "a", "b"], ["reflect", "--nonsense"], ["cache", "x"]]
)
def test_wrong_usage(wrong, capsys):
    assert main(wrong) == 2
    assert "Usage" in capsys.readouterr().err


# -- reflect and disasm --------------------------------------------------------------------------------------


def test_reflect(folder, capsys):
    assert main(["reflect", "blur.comp"]) == 0
    text = capsys.readouterr().out
    for word in (
        "set 0, binding 0: storage buffer Data (write)",
        "push constants P: 4 bytes",
        "constant 4: int32 SIZE = 8",
        "local size 32 x 1 x 1",
        "shared memory: 32 bytes",
        "capabilities: Shader",
        "SPIR-V 1.5",
        "scale",
    ):
        assert word in text


def test_reflect_as_json(folder, capsys):
    assert main(["reflect", "blur.comp", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    reflection = kp.ShaderModule(Path("blur.comp"), optimize="none").reflection
    assert found == json.loads(json.dumps(reflection))
    assert found["spec_constants"] == [{"id": 4, "name": "SIZE", "type": "int32", "default": 8}]


def test_disasm(folder, capsys):
    main(["compile", "blur.comp", "--target", "vulkan1.3"])
    spirv = (folder / "blur.spv").read_bytes()
    assert main(["disasm", "blur.spv"]) == 0
    assert capsys.readouterr().out == kp.disassemble(spirv)
    for language, word in (("glsl", "void main()"), ("hlsl", "numthreads(32, 1, 1)")):
        assert main(["disasm", "blur.spv", "--to", language]) == 0
        assert word in capsys.readouterr().out


# -- check ---------------------------------------------------------------------------------------------------


def test_check(folder, capsys, mgr):
    assert main(["check", "blur.comp"]) == 0
    assert capsys.readouterr().out == "nothing: the device accepts the shader\n"

    assert main(["info", "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    device = described["devices"][0]
    device["limits"]["maxComputeSharedMemorySize"] = 16
    device["limits"]["maxComputeWorkGroupInvocations"] = 16
    (folder / "poor.json").write_text(json.dumps(described))
    described["devices"] = [device]
    (folder / "poor.json").write_text(json.dumps(described))
    assert main(["check", "blur.comp", "--device", "poor.json"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and all(line.startswith("limit: ") for line in lines)
    assert "32 bytes of shared memory" in lines[0] and device["device_name"] in lines[0]
    (folder / "one.json").write_text(json.dumps(device))
    assert main(["check", "blur.comp", "--device", "one.json", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [finding["what"] for finding in found] == [
        "maxComputeSharedMemorySize",
        "maxComputeWorkGroupInvocations",
    ]
    assert (found[0]["needed"], found[0]["has"]) == (32, 16)


def test_check_with_constants(folder, capsys, mgr):
    for spec in ("SIZE=1048576", "4=1048576"):
        assert main(["check", "blur.comp", "--spec", spec]) == 1
        assert "4194304 bytes of shared memory" in capsys.readouterr().out
    assert main(["check", "blur.comp", "--spec", "SIZE=16"]) == 0
    assert main(["check", "blur.comp", "--spec", "SIZES=16"]) == 1
    assert "'SIZES', did you mean 'SIZE'?" in capsys.readouterr().err


# -- cache ---------------------------------------------------------------------------------------------------


def test_cache(folder, capsys, monkeypatch, make_manager):
    place = folder / "caches"
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(place / "shaders"))
    monkeypatch.setenv("KOMPUTE_PY_PIPELINE_CACHE_DIR", str(place))
    assert main(["cache"]) == 0
    text = capsys.readouterr().out
    assert "shaders: 0 entries" in text and "pipelines: 0 entries" in text and str(place) in text

    main(["compile", "blur.comp"])
    mgr = make_manager(pipeline_cache_dir=str(place))
    t = mgr.zeros(1)
    mgr.algorithm([t], kp.compile(Path("blur.comp")), (1, 1, 1))
    mgr.destroy()
    (place / "mine.bin").write_text("")
    assert main(["cache", "--list"]) == 0
    text = capsys.readouterr().out
    assert "shaders: 1 entry" in text and "of 128 MiB" in text and "blur.comp" in text
    assert "pipelines: 1 entry" in text
    assert list(place.glob("*.lock"))
    assert main(["cache", "--clear"]) == 0
    assert {path.name for path in place.iterdir()} == {"shaders", "mine.bin"}
    assert capsys.readouterr().out.count("deleted 1\n") == 2
    assert list((place / "shaders").iterdir()) == [] and (place / "mine.bin").exists()
    assert main(["cache"]) == 0 and "shaders: 0 entries" in capsys.readouterr().out


def test_cache_lists_what_is_damaged(folder, capsys, monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(folder))
    (folder / f"{'0' * 32}.kpsh").write_text("text")
    assert main(["cache", "--list"]) == 0
    assert "(damaged)" in capsys.readouterr().out


def test_caches_that_are_off(capsys):
    assert main(["cache"]) == 0
    text = capsys.readouterr().out
    assert "shaders: off" in text and "pipelines: off" in text


# -- colour --------------------------------------------------------------------------------------------------


@pytest.mark.own_driver
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
@pytest.mark.parametrize(
    ("variables", "colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_compile_errors_in_a_terminal(folder, variables, colored):
    import pty

    (folder / "value.glsl").write_text("float f() { return missing; }\n")
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal can be opened here: {error}")
    ran = subprocess.Popen(
        [sys.executable, "-m", "kompute_py", "compile", "blur.comp"],
        stderr=theirs, stdout=theirs, env=environment | {"TERM": "xterm"} | variables,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        pass  # Linux's way of saying that the other end is closed
    os.close(ours)
    assert ran.wait(100) == 1
    assert b"value.glsl:1:20: " in shown and (b"\x1b[1;31merror: \x1b[0m" in shown) is colored
    assert (b"\x1b[" in shown) is colored


def test_messages_name_options_and_keep_the_lines_of_compilers(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("one.comp").write_text(
        "#version 450\nlayout(local_size_x = 1) in;\nvoid main() { float f = SCALE; }\n"
    )
    assert main(["watch", "one.comp"]) == 1
    error = capsys.readouterr().err
    assert "SCALE" in error and error.splitlines()[-2].strip().endswith("^") and "1 error" in error
    error = kp.InvalidArgumentError('SPIR-V 1.6: compile it with target="vulkan1.1"')
    assert one_line(error) == "SPIR-V 1.6: compile it with --target vulkan1.1"


LAYOUT = """#version 450
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint L = 32;
struct Q { vec2 a; int n; };
layout(binding = 0, std140) uniform U { float k; Q q[2]; };
layout(binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; Q one; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < y.length()) y[i] = factor * one.n + k + q[1].a.y + L;
}
"""


def test_reflect_shows_layouts_and_check_two_defaults(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("layout.comp").write_text(LAYOUT)
    assert main(["reflect", "layout.comp"]) == 0
    text = capsys.readouterr().out
    for line in (
        " bytes, float factor @0; struct Q one @8\n",
        "  struct U { float k @0; struct Q[2] q @16 (16 apart) }\n",
        "  struct Q { vec2 a @0; int n @8 }\n",
    ):
        assert line in text
    assert main(["check", "layout.comp"]) == 0
    assert "two defaults, 32 (L) and 1" in (told := capsys.readouterr().err) and "--spec L=32" in told
    assert main(["check", "layout.comp", "--spec", "L=64"]) == 0
    assert capsys.readouterr().err == ""
    with pytest.warns(kp.KomputeWarning, match="two defaults.* spec_consts="):
        assert kp.check(LAYOUT) == []


@pytest.mark.parametrize("one", ['{"a":[1,2],"n":3}', "[[1,2],3]"])
def test_structs_are_given_as_the_help_says(tmp_path, monkeypatch, capsys, mgr, one):
    monkeypatch.chdir(tmp_path)
    Path("layout.comp").write_text(LAYOUT)
    command = ["run", "layout.comp", "--spec", "L=64", "--shape", "y=2", "--out", "y=-", "--set", "factor=2"]
    assert main([*command, "--set", f"one={one}", "--set", "k=1", "--set", "q=[[[0,0],0],[[0,5],0]]"]) == 0
    assert capsys.readouterr().out == "[76. 76.]\n"
    assert main(["bench", "layout.comp", "--out", "y=-"]) == 2
    assert "bench discards outputs" in capsys.readouterr().err
