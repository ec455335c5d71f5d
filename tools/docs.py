"""Builds the documentation site, and looks at it in a browser.

    python tools/docs.py build [SPHINX OPTIONS]     to build/docs/html; warnings are errors
    python tools/docs.py look [PAGE ...]            light and dark, wide and narrow, to build/docs/look

`./dev docs` and `./dev docs --look` prepare what this needs. `look` fails if a page is wider than its window,
if its script reports an error, or if a picture is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from browser import Browser

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "build" / "docs"
HTML = BUILT / "html"
LOOK = BUILT / "look"
# Window sizes in CSS pixels: a desktop's and a telephone's.
SIZES = {"wide": (1400, 900), "narrow": (400, 800)}
SCHEMES = ("light", "dark")
SHOWN = (
    "index",
    "start/install",
    "start/first_kernel",
    "concepts/ordering",
    "guides/kernels",
    "guides/options",
    "guides/command_line",
    "coming_from/kompute",
    "gallery/index",
    "gallery/notebooks/reaction_diffusion",
    "reference/functions",
    "reference/memory",
    "reference/errors",
    "inside/performance",
)


def build(options: list[str]) -> int:
    """Builds the site on lavapipe; the exit status."""
    sys.path.insert(0, str(ROOT))
    from tests.drivers import environment

    # The same device, caches and colours on each machine: the pages show what their code prints.
    os.environ.update(environment("lavapipe"))
    for name in [name for name in os.environ if name.startswith("KOMPUTE_PY_") and "TEST" not in name]:
        del os.environ[name]
    # A notebook runs in a process of its own, which finds the package as this one does.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.environ.setdefault("IPYTHONDIR", str(BUILT / "ipython"))
    os.environ.setdefault("MPLCONFIGDIR", str(BUILT / "matplotlib"))
    from sphinx.cmd.build import main as sphinx

    began = time.monotonic()
    shutil.rmtree(HTML, ignore_errors=True)  # Sphinx leaves the files of pages that are gone
    status = sphinx(
        [
            "-W",
            "--keep-going",
            "-n",
            "-q",
            "-b",
            "html",
            "-d",
            str(BUILT / "doctrees"),
            *options,
            str(ROOT / "docs"),
            str(HTML),
        ]
    )
    if status == 0:
        print(f"{HTML / 'index.html'} ({time.monotonic() - began:.0f} s)")
    return status


# What a page must not do, asked of the page itself.
_ASKED = """JSON.stringify({
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  widest: [...document.querySelectorAll('article *, main *')]
    .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .filter(e => {
      for (let p = e; p; p = p.parentElement)
        if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(p).overflowX)) return false;
      return true; })
    .slice(0, 3).map(e => e.tagName + '.' + e.className + ': ' + e.textContent.trim().slice(0, 60)),
  missing: [...document.images].filter(i => i.complete && i.naturalWidth === 0).map(i => i.src),
  height: document.documentElement.scrollHeight,
})"""


@contextlib.contextmanager
def served() -> Iterator[str]:
    """The address of the built site: a search may not fetch pages from files."""
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(HTML))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def look(pages: list[str], tall: int) -> int:
    """Writes screenshots and checks each page; the exit status."""
    import json

    from browser import Browser

    if not (HTML / "index.html").exists():
        print("there is no site: ./dev docs builds it", file=sys.stderr)
        return 1
    wrong = []
    with served() as address, Browser() as browser:
        for page in pages:
            if not (HTML / f"{page}.html").exists():
                print(f"there is no page {page}", file=sys.stderr)
                return 1
            for scheme in SCHEMES:
                for size, (width, height) in SIZES.items():
                    browser.window(width, height, scheme)
                    problems = browser.open(f"{address}/{page}.html")
                    found = json.loads(browser.value(_ASKED))
                    if found["wide"] > 0:
                        problems.append(f"{found['wide']} pixels wider than its window: {found['widest']}")
                    problems += [f"missing picture {source}" for source in found["missing"]]
                    browser.window(width, min(max(found["height"], height), tall), scheme)
                    picture = LOOK / f"{page.replace('/', '.')}.{scheme}.{size}.png"
                    picture.parent.mkdir(parents=True, exist_ok=True)
                    browser.screenshot(picture)
                    wrong += [f"{page} ({scheme}, {size}): {problem}" for problem in problems]
        wrong += _ways_in(browser, address)
    print(f"{len(pages) * len(SCHEMES) * len(SIZES)} screenshots in {LOOK}")
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    return int(bool(wrong))


# Words that readers look for, and the entry that has to be among the first three results.
SEARCHED = {
    "matrix product": "ops.matmul",
    "fourier": "ops.fft",
    "sort descending": "ops.sort",
    "prefix sum": "ops.cumsum",
    "mean filter": "ops.uniform_filter",
    "standard deviation": "ops.std",
    "gather": "ops.take",
    "upload": "Tensor.write",
    "download": "Tensor.read",
}
_FIRST = """JSON.stringify([...document.querySelectorAll('#search-results li > a')].slice(0, 3)
  .map(a => decodeURIComponent(a.href)))"""


def _ways_in(browser: Browser, address: str) -> list[str]:
    """What is wrong with the search and the copy buttons."""
    import json
    from urllib.parse import quote

    browser.window(*SIZES["wide"])
    problems = []
    for words, name in SEARCHED.items():
        problems += browser.open(f"{address}/search.html?q={quote(words)}")
        found: list[str] = []
        for _ in range(50):
            found = json.loads(browser.value(_FIRST))
            if any(each.partition("?")[0].endswith(f"#kompute_py.{name}") for each in found):
                break
            time.sleep(0.1)
        else:
            problems.append(f"the search for {words!r} does not begin with {name}, but with {found}")
    browser.open(f"{address}/start/first_kernel.html")
    if not browser.value("document.querySelectorAll('button.copybtn').length"):
        problems.append("blocks of code have no copy button")
    return [f"search and copy: {problem}" for problem in problems]


def main() -> int:
    """Runs one of the two."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("build", "look"))
    parser.add_argument("--all", action="store_true", help="look at every page")
    parser.add_argument("--tall", type=int, default=2400, metavar="PIXELS", help="the most of a page to show")
    given, rest = parser.parse_known_args()
    if given.what == "build":
        return build(rest)
    pages = rest or list(SHOWN)
    if given.all:
        skipped = ("genindex", "search", "py-modindex")
        pages = [str(p.relative_to(HTML).with_suffix("")) for p in sorted(HTML.rglob("*.html"))]
        pages = [page for page in pages if page not in skipped and not page.startswith("_")]
    return look(pages, given.tall)


if __name__ == "__main__":
    sys.exit(main())
