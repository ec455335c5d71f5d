"""README.md's length and commands, the flat pages' code, and all links. The pages of the site: tests/docs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import kompute_py as kp

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text()


def code_of(page, language="python"):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def lines_of(script):
    return len([line for line in script.splitlines() if line.strip()])


def test_scripts_of_the_readme_are_short():
    first, second, in_hlsl = code_of("README.md")
    assert lines_of(first) < 10 and lines_of(second) <= 20 and lines_of(in_hlsl) <= 20


SOURCE = """
#version 450
#ifndef SIZE
#define SIZE 1
#endif
layout(local_size_x = SIZE) in;
layout(binding = 0) buffer A { float a[]; };
layout(binding = 1) buffer B { float b[]; };
layout(push_constant) uniform Constants { uint number; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < b.length()) b[i] += a[i] * float(number);
}
"""


FROM_KOMPUTE = "docs/coming_from/kompute.md"
PAIRS = [code for code in code_of(FROM_KOMPUTE) if code.startswith("# ")]  # before, after, before, ...


def test_the_page_from_kompute_has_pairs():
    assert len(PAIRS) == 16


@pytest.mark.parametrize("number", range(len(PAIRS) // 2))
def test_code_of_the_page_from_kompute(number, mgr, needs, capsys):
    """Each replacement works alone; tests/docs runs the page as a whole."""
    needs(mgr, "timestamps")
    before, after = PAIRS[2 * number : 2 * number + 2]
    assert before.startswith("# Kompute") and after.startswith("# kompute_py: ")
    a, b = mgr.tensor([1, 2, 3]), mgr.zeros(3)
    spirv = kp.compile(SOURCE)
    names = {
        "kp": kp,
        "np": np,
        "mgr": mgr,
        "a": a,
        "b": b,
        "n": 3,
        "params": [a, b],
        "source": SOURCE,
        "spirv": spirv,
        "algorithm": mgr.algorithm([a, b], spirv, (3, 1, 1), [], [1]),
        "sequence": mgr.sequence(),
    }
    mgr.sequence().eval(kp.OpSyncDevice([a, b]))
    if after.startswith("sequence.eval", after.index("\n") + 1):
        names["sequence"].record(kp.OpAlgoDispatch(names["algorithm"]))
    exec(compile(after, FROM_KOMPUTE, "exec"), names)
    if "sequence" in after and "eval" not in after:
        names["sequence"].eval()
    elif "sequence" not in after and "algorithm" in after:
        mgr.sequence().eval(kp.OpAlgoDispatch(names["algorithm"]))
        assert b.read().tolist() == [7, 14, 21]


@pytest.mark.own_driver
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = page.read_text()
    headings = {
        re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("#")
    }
    prose = re.sub(r"^(`{3,}).*?^\1", "", text, flags=re.M | re.S)  # `float[](2.0)` is no link
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if target.startswith("#"):
            assert target[1:] in headings, target
        elif "://" not in target:
            assert (page.parent / target.partition("#")[0]).exists(), target


def test_picture_of_the_readme():
    path = ROOT / "docs" / "images" / "contact_sheet.png"
    assert "docs/images/contact_sheet.png" in README
    assert path.stat().st_size < 500_000
    with Image.open(path) as picture:
        assert picture.width > 800


def test_readme_lists_every_example():
    for path in (ROOT / "examples").glob("*.py"):
        assert f"examples/{path.name}" in README
