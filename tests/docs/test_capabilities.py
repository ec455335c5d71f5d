"""The tables of capabilities are what the tests say; each name exists, and its page has it."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path

import pytest

import kompute_py as kp

TOOL = runpy.run_path(str(Path(__file__).resolve().parents[2] / "tools" / "capabilities.py"))
PAGE = TOOL["PAGE"].read_text()
LISTED = TOOL["capabilities"]()

pytestmark = pytest.mark.own_driver


def test_the_tables_are_what_the_tests_say() -> None:
    assert TOOL["main"](["--check"]) == 0


def test_keys_without_a_test_or_a_reason_are_told() -> None:
    (frozen,) = [each for each in LISTED if "I6" in each.keys]
    assert TOOL["without_a_line"](PAGE, LISTED) == []
    less = [each for each in LISTED if each is not frozen]
    assert TOOL["without_a_line"](PAGE, less) == [
        "I6: no test is marked with it, and it is not listed as not offered"
    ]
    more = [*LISTED, frozen, frozen._replace(keys=("I83",))]
    assert TOOL["without_a_line"](PAGE, more) == [
        "I83: no document has this key",
        "I6: several tests are marked with it",
    ]
    assert TOOL["written"](PAGE, less) != PAGE == TOOL["written"](PAGE, LISTED)


@pytest.mark.parametrize("capability", LISTED, ids=lambda each: each.text)
def test_each_capability_is_there_and_documented(capability) -> None:
    """A name is documented where the page mentions it, or has the entry of its class."""
    text = (TOOL["DOCS"] / f"{capability.page}.md").read_text()
    for name in capability.calls:
        found: object = kp
        for part in name.removeprefix("kp.").split("."):
            owner, found = found, inspect.getattr_static(found, part, None) or getattr(found, part)
        entry = re.search(rf"^## {owner.__name__}$", text, re.MULTILINE) if inspect.isclass(owner) else None
        assert entry or re.search(rf"\b{part}\b", text), f"{capability.page}.md does not mention {name}"
