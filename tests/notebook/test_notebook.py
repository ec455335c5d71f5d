"""The magics of ``%load_ext kompute_py``, in IPython's own shell."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import traceback

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import kompute_py as kp
from tests.support.child import run_child

CELL = """%%glsl {line}
#version 450
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer X {{ float x[]; }};
void main() {{ uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] {code}; }}
"""

pytestmark = pytest.mark.usefixtures("clean")


@pytest.fixture
def shell(mgr):
    """A shell with the extension, and a Manager of the test in the variable `mgr`."""
    shell = InteractiveShell()
    shell.user_ns["mgr"] = mgr
    shell.extension_manager.load_extension("kompute_py")
    yield shell
    shell.extension_manager.unload_extension("kompute_py")
    shell.reset(new_session=False)
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()
    # What went wrong last is kept for debuggers, with the variables of its frames.
    sys.last_exc = sys.last_value = sys.last_traceback = shell.InteractiveTB.tb = None


def run(shell, cell):
    """(result, what it printed)"""
    with capture_output() as captured:
        result = shell.run_cell(cell, store_history=False)
    return result, captured.stdout + captured.stderr


def test_a_cell_becomes_a_kernel(shell, mgr):
    result, text = run(shell, CELL.format(line="twice -m mgr", code="*= 2"))
    assert result.success and "twice" in text
    kernel = shell.user_ns["twice"]
    assert isinstance(kernel, kp.Kernel) and kernel.manager is mgr
    array = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(kernel(array), [0, 2, 4, 6, 8])


def test_options_reach_the_compiler(shell, mgr, tmp_path):
    folder = tmp_path / "with space"
    folder.mkdir()
    (folder / "by.h").write_text("#define BY 3\n")
    cell = CELL.format(line=f'k -m mgr -q -D "OP=*= BY" -D FLAG -I "{folder.as_posix()}" -O none', code="OP")
    cell = cell.replace(
        "#version 450\n",
        '#extension GL_GOOGLE_include_directive : require\n#include "by.h"\n#ifndef FLAG\n#error '
        "no\n#endif\n",
    )
    result, text = run(shell, cell)
    assert result.success, text
    assert text == ""
    assert shell.user_ns["k"].signature.parameters[0].name == "x"


def test_hlsl(shell):
    cell = (
        "%%hlsl fill -m mgr -e go\nRWStructuredBuffer<float> y : register(u0);\n"
        "[numthreads(8, 1, 1)] void go(uint3 id : SV_DispatchThreadID) { y[id.x] = 1; }\n"
    )
    result, text = run(shell, cell)
    assert result.success, text
    assert shell.user_ns["fill"].local_size == (8, 1, 1)


def test_compile_errors_show_the_cell_and_no_traceback(shell):
    result, text = run(shell, CELL.format(line="bad -m mgr", code="= nonsense"))
    assert isinstance(result.error_in_exec, kp.ShaderCompileError)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert re.search(
        r"\x1b\[1;38;2;255;255;255;48;2;[\d;]+merror: \x1b\[0m", text
    )  # on light and on dark red
    # Line 5 of the cell, the magic's own counted, as a notebook numbers them.
    assert re.search(r":5:\d+: error: 'nonsense'", plain), plain
    assert "x[i] = nonsense;" in plain and re.search(r"\| +\^", plain)
    assert "Traceback" not in plain and "magics.py" not in plain
    assert "bad" not in shell.user_ns
    assert "color:#e53935" in result.error_in_exec._repr_html_()


def check_tracebacks():
    shell = InteractiveShell.instance()
    with kp.Manager() as mgr:
        shell.user_ns.update(mgr=mgr, kp=kp, kept=[])
        cell = """
            def outer():
                try:
                    mgr.tensor([1])[5]
                except kp.OutOfRangeError as error:
                    kept.append(error)
                    mgr.sequence().record(5)
            outer()
        """
        for mode in ("Minimal", "Plain", "Verbose", "Context"):
            shell.run_line_magic("xmode", mode)
            result, text = run(shell, textwrap.dedent(cell))
            plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
            assert isinstance(result.error_in_exec, kp.ArgumentTypeError), text
            assert "kompute_py/" not in plain and "ArgumentTypeError" in plain, plain
            if mode != "Minimal":
                for own in ("mgr.sequence().record(5)", "mgr.tensor([1])[5]", "outer()"):
                    assert own in plain, plain
            # The error keeps its frames, for debuggers; they are shown on request.
            files = [frame.filename for frame in traceback.extract_tb(result.error_in_exec.__traceback__)]
            assert any("sequence.py" in file for file in files), files
        _, text = run(shell, "mgr.tensor([1]).sum()")
        assert "t.read().sum(...)" in text and "array_habits" not in text, text
        shell.InteractiveTB.skip_hidden = False
        _, text = run(shell, "outer()")
        assert "sequence.py" in text, text


def test_tracebacks_are_the_users_own_frames():
    # In a process of its own: the shell keeps the results of cells, and with them the errors' frames.
    run_child(check_tracebacks)


@pytest.mark.parametrize("language", ["glsl", "hlsl", "slang"])
@pytest.mark.parametrize("line", ["--help", "-h", "name --help", "  --help \n\n"])
def test_help_needs_no_shader(shell, language, line):
    before = set(shell.user_ns)
    result, text = run(shell, f"%%{language} {line}")
    assert result.success and f"usage: %%{language}" in text and "--define" in text, text
    assert set(shell.user_ns) == before


def test_a_cell_with_no_shader_is_an_error_of_ipythons(shell):
    for cell in ("%%glsl name", "%%glsl name --helpless", "%%timeit --help"):
        _, text = run(shell, cell)
        assert "cell body is empty" in text, text


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "name"),
        ("two words", "unrecognized arguments: words"),
        ("1a -m mgr", "'1a' is not the name of a variable"),
        ("k -m nobody", "'nobody' is not a variable that holds a kp.Manager"),
        ("k -O fast", "invalid choice"),
        ("k -m mgr -t vulkan9", "vulkan9"),
        ("k 'open", "No closing quotation"),
    ],
)
def test_wrong_options_are_one_line(shell, line, expected):
    result, text = run(shell, CELL.format(line=line, code="= 1"))
    assert result.error_in_exec is not None or result.error_before_exec is not None
    assert expected in text and "Traceback" not in text
    assert "k" not in shell.user_ns


def test_help(shell):
    for cell in (CELL.format(line="--help", code="= 1"), "%kp --help"):
        result, text = run(shell, cell)
        assert result.success and "--manager" in text and "usage:" in text


def test_kp_shows_device_and_memory(shell, mgr):
    with capture_output() as captured:
        result = shell.run_cell("%kp -m mgr", store_history=False)
    assert result.success
    assert mgr.get_device_properties()["device_name"] in captured.stdout
    assert "reserved" in captured.stdout  # the table of mgr.memory


def test_kp_time_measures_an_expression(shell, mgr, needs):
    needs(mgr, "timestamps")
    shell.user_ns.update(calls=[], t=mgr.zeros(8), kp=kp)
    result, text = run(shell, "%kp time calls.append(kp.ops.sum(t))")
    assert result.success and re.match(r"host .* \(.* to .*\), device .* \(.* to .*\)\n", text), text
    assert len(shell.user_ns["calls"]) > 10
    shell.user_ns["calls"].clear()
    for line, expected in (("x = 1", "not an expression"), ("", "write %kp time k(x)")):
        result, text = run(shell, f"%kp time {line}")
        assert not result.success and expected in text and "Traceback" not in text
    result, text = run(shell, "%kp time absent(1)")
    assert isinstance(result.error_in_exec, NameError)


def test_the_default_manager_serves(shell):
    result, text = run(shell, CELL.format(line="k -q", code="= 1"))
    try:
        assert result.success, text
        assert shell.user_ns["k"].manager is kp.manager()
    finally:
        shell.user_ns.pop("k", None)
        kp.manager().destroy()


def test_nothing_is_imported_before_it_is_used():
    code = (
        "import sys, kompute_py as kp; heavy = {'IPython', 'matplotlib', 'ipywidgets', "
        "'kompute_py.notebook'} & set(sys.modules);"
        "assert not heavy, heavy; kp.manager()._repr_html_(); assert 'IPython' not in sys.modules; "
        "kp.manager().destroy()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
