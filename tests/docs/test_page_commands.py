"""The commands of README.md and the pages run from an installed wheel, in an empty folder.

The suite takes README or the page of the commands; `./dev whole tests/docs/test_page_commands.py` takes
all pages.
"""

from __future__ import annotations

import sys

import pytest

from tests.conftest import ROOT
from tests.support.pages import pages
from tests.support.sampling import sampled

sys.path.append(str(ROOT / "tools"))

import page_commands

pytestmark = [pytest.mark.own_driver, pytest.mark.sampled]

SOME = [ROOT / "README.md", ROOT / "docs/guides/command_line.md"]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader")
    wheel = page_commands.built(folder / "wheel")
    return page_commands.Reader(page_commands.installed(folder / "installed", wheel), folder)


@pytest.mark.timeout(1200)
@pytest.mark.sampled(every=2)
@pytest.mark.parametrize(
    "page", sampled(SOME, list(pages(ROOT))), ids=lambda page: str(page.relative_to(ROOT))
)
def test_commands_of_a_page_run_from_a_wheel(reader, page):
    assert reader.read(page) == []


def test_a_command_that_fails_is_found(reader, tmp_path):
    page, faults = (
        tmp_path / "page.md",
        [
            "kompute-py run missing.comp",
            "python -m kompute_py_gallery heet",
            "kompute-py bench --no-such",
            "kompute-py wach blur.comp",
        ],
    )
    block = "```python\nprint(1)\n```\n\n```text\n2\n```\n\n"
    page.write_text(block + "".join(f"Write `{each}`.\n" for each in faults), encoding="utf-8")
    assert [each for each, _ in reader.read(page)] == ["its blocks", *faults]
