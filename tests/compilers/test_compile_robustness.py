"""What the compiler is not to fall over: threads, garbage, deep nesting, paths that are no text, extensions
that crash an optimizer.
"""

from __future__ import annotations

import os
import random
import threading
import warnings
from pathlib import Path

import pytest

import kompute_py as kp
from kompute_py import _native
from kompute_py._compilers.compile import ShaderCompileWarning
from tests.support.compiling import HEAD, shader
from tests.support.threads import on_threads

pytestmark = pytest.mark.own_driver  # none at all


def test_threads_compile_at_the_same_time():

    def work(number: int) -> None:
        for _ in range(5):
            spirv = kp.compile(shader(f"data[0] = {number}.25;"))
            assert f"OpConstant %float {number}.25" in _native.disassemble_spirv(spirv)
            with pytest.raises(kp.ShaderCompileError, match=f"'missing{number}'"):
                kp.compile(shader(f"data[0] = missing{number};"))

    on_threads(work, range(8))


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


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps the folder that a process is in")
def test_in_a_folder_that_was_deleted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    for name in ("blur.comp", "blur.cmp"):
        with pytest.raises(kp.NotFoundError, match=name):
            kp.compile(name)
    kp.compile(shader("data[0] = 1;"), include_dirs=["includes"])
