"""The processes that compile HLSL and Slang: a compiler that crashes, hangs or prints ends nothing but
itself.
"""

from __future__ import annotations

import itertools
import marshal
import os
import signal
import subprocess
import sys
import time
import types

import pytest

import kompute_py as kp
from kompute_py._compilers import process as shader_process
from tests.support.child import python
from tests.support.languages import COMPILERS, needs_dxc, needs_slang
from tests.support.threads import on_threads

pytestmark = pytest.mark.own_driver

GOOD = "RWStructuredBuffer<float> o;\n[numthreads(1, 1, 1)] void main() { o[0] = 1; }"
# Takes every preprocessor longer than any limit.
SLOW = "#define A0 x+x\n" + "".join(f"#define A{i + 1} A{i}+A{i}+A{i}+A{i}\n" for i in range(12))
_BOMB = SLOW
SLOW += "RWStructuredBuffer<float> o;\n[numthreads(1, 1, 1)] void main() { float x = o[0]; o[0] = A12; }"
GOOD_GLSL = "#version 450\nlayout(binding = 0) buffer O { float o[]; };\nvoid main() { o[0] = 1; }"
SLOW_GLSL = "#version 450\n" + _BOMB + "layout(binding = 0) buffer O { float o[]; };\n"
SLOW_GLSL += "void main() { float x = o[0]; o[0] = A12; }"


@pytest.fixture(autouse=True)
def _uncached(monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", "")
    monkeypatch.delenv("KOMPUTE_PY_COMPILER", raising=False)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_crash_is_an_error_of_the_source(monkeypatch, compiler):
    """It is played: a version of a compiler may mend any source that it crashes on."""
    real = shader_process._Process.ask

    def ask(self, request, seconds):
        self.process.kill()
        return real(self, request, seconds)

    with monkeypatch.context() as played:
        played.setattr(shader_process._Process, "ask", ask)
        with pytest.raises(
            kp.ShaderCompileError, match=r"(DXC|Slang.*) crashed on this source \(SIGKILL"
        ) as caught:
            kp.compile(GOOD, language="hlsl", compiler=compiler)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.file, diagnostic.severity) == ("<source>", "error")
    kp.compile(GOOD, language="hlsl", compiler=compiler)


@needs_dxc
@needs_slang
def test_a_crash_of_the_optimizer_is_not_the_compilers(monkeypatch):
    """The crash is played: an optimizer without faults has none."""
    real = shader_process._Process.ask

    def ask(self, request, seconds):
        self._answers.put("optimizer")
        self.process.kill()
        return real(self, request, seconds)

    monkeypatch.setattr(shader_process._Process, "ask", ask)
    for compiler, who in (("slang", "Slang"), ("dxc", "DXC")):
        with pytest.raises(
            kp.ShaderCompileError,
            match=rf"the SPIR-V optimizer crashed on what {who}.*made of this source .SIGKILL",
        ) as caught:
            kp.compile(GOOD, language="hlsl", compiler=compiler)
        assert 'optimize="none"' in str(caught.value)


def test_the_process_says_when_the_compiler_has_finished(monkeypatch):
    said = []

    def load(source):
        said.append(marshal.load(source))
        return said[-1]

    monkeypatch.setattr(shader_process, "marshal", types.SimpleNamespace(load=load))
    kp.compile(GOOD, language="hlsl")
    assert said[0] == "optimizer" and "spirv" in said[1]


def test_a_process_is_kept():
    kp.compile(GOOD, language="hlsl")
    before = {process.process.pid for process in shader_process._pool.everyone()}
    for _ in range(3):
        kp.compile(GOOD, language="hlsl")
    assert {process.process.pid for process in shader_process._pool.everyone()} == before


def test_one_that_died_while_idle_is_replaced():
    kp.compile(GOOD, language="hlsl")
    for process in shader_process._pool.everyone():
        os.kill(process.process.pid, signal.SIGKILL)
    kp.compile(GOOD, language="hlsl")


def test_a_time_limit(monkeypatch):
    kp.compile(GOOD, language="hlsl")
    monkeypatch.setenv("KOMPUTE_PY_COMPILE_TIMEOUT", "0.5")
    with pytest.raises(kp.ShaderCompileError, match=r"longer than 0\.5 s; KOMPUTE_PY_COMPILE_TIMEOUT"):
        kp.compile(SLOW, language="hlsl")
    monkeypatch.setenv("KOMPUTE_PY_COMPILE_TIMEOUT", "30")
    kp.compile(GOOD, language="hlsl")


def test_a_time_limit_of_a_process_that_starts(monkeypatch):
    """The limit holds for the first source, and for each one after a source that took too long and ended its
    process.
    """
    for process in shader_process._pool.everyone():
        os.kill(process.process.pid, signal.SIGKILL)
    for _ in range(2):
        with pytest.raises(kp.CompileTimeoutError, match=r"longer than 0\.5 s"):
            kp.compile(SLOW, language="hlsl", timeout=0.5)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal on this system")
def test_a_process_that_stops_while_it_starts(monkeypatch):
    """It holds the caller no longer than the limit."""
    for process in shader_process._pool.everyone():
        os.kill(process.process.pid, signal.SIGKILL)
    looks = itertools.count()

    class Stopped(shader_process._Process):
        def __init__(self) -> None:
            super().__init__()
            os.kill(self.process.pid, signal.SIGSTOP)

    # A clock that goes a second at each look.
    monkeypatch.setattr(shader_process, "time", types.SimpleNamespace(monotonic=lambda: next(looks)))
    monkeypatch.setattr(shader_process, "_SLICE", 0.01)
    monkeypatch.setattr(shader_process, "_Process", Stopped)
    with pytest.raises(kp.CompileTimeoutError, match=r"longer than 2 s"):
        kp.compile(GOOD, language="hlsl", timeout=2)
    assert next(looks) < 6


@pytest.mark.parametrize("wrong", ["soon", "0", "-1", "nan", "1e300"])
def test_limits_that_cannot_be(monkeypatch, wrong):
    monkeypatch.setenv("KOMPUTE_PY_COMPILE_TIMEOUT", wrong)
    with pytest.raises(kp.InvalidArgumentError, match="KOMPUTE_PY_COMPILE_TIMEOUT"):
        kp.compile(GOOD, language="hlsl")


def test_one_that_stops_reading(monkeypatch):
    """Neither a full pipe nor a stopped process holds the caller for longer than the limit."""
    kp.compile(GOOD, language="hlsl")
    for process in shader_process._pool.everyone():
        os.kill(process.process.pid, signal.SIGSTOP)
    monkeypatch.setenv("KOMPUTE_PY_COMPILE_TIMEOUT", "0.5")
    with pytest.raises(kp.ShaderCompileError, match="longer than"):
        kp.compile(GOOD + "//" + "x" * (1 << 20), language="hlsl")


def test_large_sources_and_messages():
    filler = "".join(f"float f{i}(float x) {{ return x + {i}; }}\n" for i in range(5000))
    kp.compile(filler + GOOD, language="hlsl")
    wrong = "".join(f"float g{i} = undefined{i};\n" for i in range(500))
    with pytest.raises(kp.ShaderCompileError):
        kp.compile(wrong + "//" + "é" * 100_000 + "\n" + GOOD, language="hlsl")


def test_threads():
    sources = [GOOD.replace("= 1", f"= {i}") for i in range(24)]
    results: dict[int, bytes] = {}

    def work(first):
        for i in range(first, len(sources), 4):
            if i % 8 == 5:
                with pytest.raises(kp.ShaderCompileError):
                    kp.compile(GOOD.replace("= 1", "= x"), language="hlsl")
            results[i] = kp.compile(sources[i], language="hlsl")

    on_threads(work, range(4))
    assert results == {i: kp.compile(source, language="hlsl") for i, source in enumerate(sources)}
    assert len(shader_process._pool.everyone()) <= shader_process._MOST


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork():
    kp.compile(GOOD, language="hlsl")
    before = shader_process._pool.everyone()[0].process.pid
    child = os.fork()
    if child == 0:
        try:
            kp.compile(GOOD, language="hlsl")
            own = [process.process.pid for process in shader_process._pool.everyone()]
            os._exit(0 if before not in own and len(own) == 1 else 3)
        except BaseException:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    kp.compile(GOOD, language="hlsl")
    assert before in [process.process.pid for process in shader_process._pool.everyone()]


_SCRIPT = """
import sys, threading, time
import kompute_py as kp
from kompute_py._compilers import process as shader_process
good, slow = sys.argv[1:]
kp.compile(good, language="hlsl")
print(shader_process._pool.everyone()[0].process.pid, flush=True)
if slow:
    kp.compile(slow, language="hlsl")
"""


def _gone(pid, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="asks /proc what runs")
@pytest.mark.parametrize("how", ["ends", "is killed", "is killed while compiling"])
def test_it_ends_with_its_parent(how):
    slow = SLOW if how == "is killed while compiling" else ""
    with subprocess.Popen(
        [sys.executable, "-c", _SCRIPT, GOOD, slow], stdout=subprocess.PIPE, text=True
    ) as parent:
        pid = int(parent.stdout.readline())
        if how == "is killed while compiling":
            time.sleep(0.3)
        if how != "ends":
            parent.kill()
    assert _gone(pid)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("language", ["hlsl", "glsl"])
@pytest.mark.parametrize("call", ["compile", "check"])
def test_interrupts_end_the_wait_and_the_process(call, language):
    code = (
        "import sys, threading, os, signal, time\nimport kompute_py as kp\n"
        f"good, slow = sys.argv[1:]\nkp.{call}(good, language={language!r})\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\nbegan = time.monotonic()\n"
        f"try:\n    kp.{call}(slow, language={language!r}, timeout=100)\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
        f"assert time.monotonic() - began < 20\nkp.{call}(good, language={language!r})\n"
        "print('works')"
    )
    sources = (GOOD, SLOW) if language == "hlsl" else (GOOD_GLSL, SLOW_GLSL)
    done = python("-c", code, *sources, timeout=100)
    assert done.stdout.split() == ["interrupted", "works"], done.stderr


def test_what_cannot_be_started_is_an_error(monkeypatch):
    monkeypatch.setattr(shader_process, "_pool", shader_process._Pool())
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(kp.KomputeError, match="process of its own, which cannot be started"):
        kp.compile(GOOD, language="hlsl")


def test_nothing_is_started_for_glsl():
    code = (
        "import sys, kompute_py as kp\nkp.compile('#version 450\\nlayout(local_size_x=1) in;\\nvoid main() "
        "{}')\n"
        "print([n for n in ('kompute_py._compilers.process', 'subprocess', 'ctypes', 'slangpy') if n in "
        "sys.modules and n != 'ctypes'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "shader_process" not in done.stdout and "slangpy" not in done.stdout
