"""The table of capabilities: each name exists, and its page has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kompute_py as kp

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "reference" / "capabilities.md"
OBJECTS = {"mgr": kp.Manager, "t": kp.Tensor, "seq": kp.Sequence, "info": kp.DeviceInfo, "kp": kp}
ROW = re.compile(r"^\|[^|]+\|(?P<calls>[^|]+)\| \[[^]]+\]\((?P<page>[^)]+)\) \|$", re.MULTILINE)

pytestmark = pytest.mark.own_driver


def offered():
    return PAGE.read_text().split("## Not offered")[0]


def rows():
    return [(row["calls"], row["page"]) for row in ROW.finditer(offered())]


def test_the_table_is_read():
    lines = [line for line in offered().splitlines() if line.startswith("|")]
    assert len(rows()) == len(lines) - 2 * offered().count("| capability |") > 40


@pytest.mark.parametrize(("calls", "page"), rows())
def test_each_capability_is_there_and_documented(calls, page):
    names = re.findall(r"`([\w.]+)`", calls)
    assert names and re.sub(r"`[\w.]+`|[ ,]", "", calls) == ""
    text = (PAGE.parent / page).resolve().read_text()
    for name in names:
        first, *rest = name.split(".")
        found = OBJECTS[first]
        for part in rest:
            if found is kp.DeviceInfo and part in kp.list_devices()[0]:
                break
            found = getattr(found, part)
        assert re.search(rf"\b{rest[-1]}\b", text), f"{page} does not mention {name}"
