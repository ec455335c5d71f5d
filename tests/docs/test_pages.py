"""The pages run: every block of code does what the page shows."""

from __future__ import annotations

import gc
import inspect
import re
import time
from pathlib import Path

import pytest

import kompute_py as kp
from kompute_py._programs.capture import finish
from tests.conftest import ROOT
from tests.support.pages import SHELL, NotAsShown, Page, blocks_of, matches, pages

pytestmark = pytest.mark.own_driver

PAGES = list(pages(ROOT))
# In these folders a reader follows commands that no test can run for him: building, measuring.
_WITH_COMMANDS = (ROOT / "docs" / "inside", ROOT)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(autouse=True)
def _imports_stay():
    """Pages import PyTorch, Dask and others; the collections in `clean` need not look at them again."""
    gc.freeze()


@pytest.fixture
def folder(tmp_path, monkeypatch, clean):
    """An empty folder; nothing of the page is alive after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    return tmp_path


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_page(path, folder, record_property):
    page = Page(path)
    began = time.perf_counter()
    page.run()
    finish()  # what the page captures is written here, not at the end of all tests
    record_property("seconds", time.perf_counter() - began)
    for line, reason in page.not_run:
        print(f"{name_of(path)}:{line}: not run: {reason}")


def test_count_what_is_not_run(capsys):
    marked = {
        f"{name_of(path)}:{block.line}": block.not_run
        for path in PAGES
        for block in blocks_of(path.read_text())
        if block.not_run is not None
    }
    with capsys.disabled():
        print(f"\nblocks of the documentation that are not run: {len(marked)}")
        for place, reason in marked.items():
            print(f"  {place}: {reason}")
    assert all(marked.values()), marked


@pytest.mark.parametrize("path", [path for path in PAGES if path.parent not in _WITH_COMMANDS], ids=name_of)
def test_commands_are_run_or_marked(path):
    """Shell commands are ``console`` blocks, which run, or say why not."""
    for block in blocks_of(path.read_text()):
        if block.language in SHELL:
            assert block.not_run, (
                f'{path}:{block.line}: use ```console with "$ ", or <!-- not run: REASON -->'
            )


# ------------------------------------------------------------------------------------- the runner itself

SHADER = """#version 450
layout(local_size_x = 8) in;
layout(binding = 0) buffer A { float a[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < a.length()) a[i] *= 2.0; }"""


def run(text: str) -> Page:
    page = Page(Path("page.md"), text)
    page.run()
    return page


def block(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```\n"


def test_blocks_share_names_and_outputs_are_compared(folder):
    run(block("python", "x = 2") + "Text.\n\n" + block("python", "print(x + 1)") + "\n" + block("text", "3"))
    with pytest.raises(NotAsShown, match=r"page\.md:6: the page shows\n    4\n[\s\S]*prints\n    3"):
        run(block("python", "x = 2") + "\n" + block("python", "print(x + 1)") + "\n" + block("text", "4"))


def test_output_is_a_block_directly_after(folder):
    run(block("python", "print(1)") + "\nAn unrelated text:\n\n" + block("text", "2"))


def test_blocks_after_and_inside_of_directives_run(folder):
    table = "```{kp-options}\n```\n"
    inside = f"````{{note}}\n{block('python', 'print(2)')}{block('text', '2')}````\n"
    run(table + block("python", "print(1)") + block("text", "1") + inside)
    for wrong in (
        table + block("python", "print(1)") + block("text", "2"),
        inside.replace("\n2\n", "\n3\n"),
        inside + block("python", "print(1)") + block("text", "2"),
    ):
        with pytest.raises(NotAsShown, match="prints"):
            run(wrong)


def test_an_error_must_be_shown(folder):
    wrong = "raise ValueError('no')"
    with pytest.raises(NotAsShown, match=r"page\.md:2: raises ValueError: no"):
        run(block("python", wrong))
    run(block("python", f"print(1)\n{wrong}") + block("text", "1\nValueError: no"))
    with pytest.raises(NotAsShown, match="ValueError: no"):
        run(block("python", wrong) + block("text", "ValueError: yes"))
    with pytest.raises(NotAsShown, match="prints"):
        run(block("python", "pass") + block("text", "ValueError: no"))


def test_shaders_are_compiled(folder):
    run(block("glsl", SHADER) + block("glsl", "float part(float x) { return y; }"))
    wrong = SHADER.replace("2.0", "factor")
    with pytest.raises(NotAsShown, match=r"does not compile[\s\S]*factor"):
        run(block("glsl", wrong))
    run(block("glsl", wrong) + block("text", "...'factor' : undeclared identifier..."))


def test_commands_run_with_files_of_the_page(folder):
    shader = block("glsl", f"// twice.comp\n{SHADER}")
    command = block("console", "$ kompute-py run twice.comp --in a=1,2,3 --out a=-\n[2. 4. 6.]")
    run(shader + command)
    with pytest.raises(NotAsShown, match="prints"):
        run(shader + command.replace("4", "5"))
    with pytest.raises(NotAsShown, match="exit status 1"):
        run(block("console", "$ kompute-py run missing.comp"))
    with pytest.raises(NotAsShown, match='"rm" is not run here'):
        run(block("console", "$ rm -rf build"))


def test_a_script_of_the_page_runs(folder):
    script = block("python", "# script.py\nimport sys\nprint(len(sys.argv))")
    run(script + block("console", "$ python script.py x\n2"))


def test_hidden_code_runs(folder):
    run("<!-- run before:\nx = 5\n-->\n" + block("python", "print(x)") + block("text", "5"))


def test_cells_of_a_notebook_run(folder):
    run(
        block("ipython", "%load_ext kompute_py")
        + block("ipython", f"%%glsl twice --quiet\n{SHADER}")
        + block("ipython", "import numpy as np\nprint(twice(np.ones(2, np.float32)))")
        + block("text", "[2. 2.]")
    )


def test_what_is_not_run_says_why(folder):
    page = run("<!-- not run: needs a network -->\n" + block("python", "1 / 0"))
    assert page.not_run == [(3, "needs a network")]
    with pytest.raises(NotAsShown, match="give a reason"):
        run("<!-- not run: -->\n" + block("python", "1 / 0"))


def test_what_needs_a_package_runs_if_it_is_installed(folder):
    page = run("<!-- needs: no_such_package -->\n" + block("python", "1 / 0") + block("python", "x = 1"))
    assert page.not_run == [(3, "needs no_such_package")]
    with pytest.raises(NotAsShown, match="ZeroDivisionError"):
        run("<!-- needs: numpy -->\n" + block("python", "1 / 0"))


def test_dots_match_anything():
    assert matches("a 12 b\nc\n", "a ... b\n...")
    assert matches("a  \n", "a")
    assert not matches("a 12 c", "a ... b") and not matches("ab", "a")


def test_nothing_stays_alive(folder):
    before = kp.alive()
    run(block("python", "import kompute_py as kp\nmgr = kp.Manager()\nt = mgr.tensor([1])"))
    assert kp.alive() == before


def test_every_page_is_found():
    found = {name_of(path) for path in PAGES}
    assert {"README.md", "docs/index.md", "docs/start/install.md", "docs/guides/options.md"} <= found
    listed = re.findall(r"^[\w/]+$", (ROOT / "docs" / "index.md").read_text(), re.M)
    missing = [
        name for name in listed if not (ROOT / "docs" / f"{name}.md").exists() and "notebooks/" not in name
    ]
    assert not missing, missing


# Names that sentences use for these classes, and what is meant not to be there.
_OWNERS = {
    "kp": kp, "mgr": kp.Manager, "t": kp.Tensor, "tensor": kp.Tensor, "image": kp.Image, "kernel": kp.Kernel,
    "fence": kp.Fence, "seq": kp.Sequence, "sequence": kp.Sequence, "semaphore": kp.Semaphore,
    "algorithm": kp.Algorithm, "program": kp.Program,
}  # fmt: skip
_EXAMPLES = {"kp.ops.mine.softmax", "program.entry", "program.json", "t.copy", "t.sum"}
_FENCED = re.compile(r"^(```+|~~~+).*?^\1", re.MULTILINE | re.DOTALL)
_DOTTED = re.compile(rf"(?<![\w.])(?:{'|'.join(_OWNERS)})(?:\.[A-Za-z_]\w*)+")


def names_that_are_not_there(text):
    """The dotted names in sentences and tables that lead to nothing."""
    wrong = []
    for name in _DOTTED.findall(" ; ".join(re.findall(r"`([^`\n]+)`", _FENCED.sub("", text)))):
        first, *parts = name.split(".")
        found = _OWNERS[first]
        for part in parts:
            if not (inspect.ismodule(found) or inspect.isclass(found)):
                break
            if inspect.isclass(found):
                found = inspect.getattr_static(found, part, None)
            else:
                found = getattr(found, part, None)
            if found is None or type(found).__name__ == "OnlyOfArrays":
                wrong.append(name)
                break
    return [name for name in wrong if name not in _EXAMPLES]


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_names_in_sentences_and_tables_exist(path):
    if "inside" not in path.parts:
        assert names_that_are_not_there(path.read_text(encoding="utf-8")) == []


def test_a_name_that_does_not_exist_is_found():
    text = (
        "Give `kp.sho(x)`, or `t.reed()`:\n\n```python\nkp.nothing\n```\n\n| `kp.ops.sum` | `mgr.tensr` |\n"
    )
    assert names_that_are_not_there(text) == ["kp.sho", "t.reed", "mgr.tensr"]
