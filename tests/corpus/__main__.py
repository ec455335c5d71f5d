"""`python -m tests.corpus`: judges every published shader and prints what became of them."""

from __future__ import annotations

import argparse
import collections
import sys

from .archives import ARCHIVES, CorpusUnavailableError
from .judge import Verdict, judged
from .shaders import published
from .stock import missing_tools


def main() -> int:
    """Print the table; exit with 1 where a shader crashes, is misread, or is refused without a reason."""
    parser = argparse.ArgumentParser(prog="./dev corpus", description=__doc__)
    names = [archive.name for archive in ARCHIVES]
    parser.add_argument(
        "archives", nargs="*", metavar="ARCHIVE", help=f"of {', '.join(names)}; by default all"
    )
    parser.add_argument("--fetch", action="store_true", help="only fetch what the test suite needs")
    parser.add_argument(
        "--verbose", "-v", action="store_true", help="show each shader that is refused, and why"
    )
    options = parser.parse_args()
    unknown = sorted(set(options.archives) - set(names))
    if unknown:
        parser.error(f"there is no archive {unknown[0]!r}; choose of {', '.join(names)}")
    if tools := missing_tools():
        print(f"missing tools; on Debian and Ubuntu: apt install {' '.join(tools)}", file=sys.stderr)
        return 2
    chosen = [a for a in ARCHIVES if a.name in options.archives or not options.archives]
    try:
        if options.fetch:
            for archive in chosen:
                if archive.quick:
                    archive.folder()
            return 0
        verdicts = {archive.name: _judge(archive) for archive in chosen}
    except CorpusUnavailableError as error:
        print(error, file=sys.stderr)
        return 2
    return _report(verdicts, options.verbose)


def _judge(archive) -> list[Verdict]:
    print(f"{archive.name} ({archive.of}) ...", file=sys.stderr, flush=True)
    return list(judged(published(archive)))


def _report(verdicts: dict[str, list[Verdict]], verbose: bool) -> int:
    every = [verdict for of in verdicts.values() for verdict in of]
    wrong = [v for v in every if not v.fine]
    refused = [v for v in every if v.outcome == "refused"]
    for verdict in wrong + (refused if verbose else []):
        print(f"\n{verdict.name}: {verdict.outcome}\n{verdict.detail}")
    print("\n| from | shaders | accepted by its compiler | load with a right signature | refused | wrong |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, of in {**verdicts, "all": every}.items():
        count = collections.Counter(v.outcome for v in of)
        known = len(of) - count["not accepted"]
        bad = known - count["loads"] - count["refused"]
        print(f"| {name} | {len(of)} | {known} | {count['loads']} | {count['refused']} | {bad} |")
    print("\nmissing features:")
    for name, times in collections.Counter(v.missing for v in refused).most_common():
        print(f"- {name}: {times}")
    slowest = max(every, key=lambda v: v.seconds)
    print(f"\nthe slowest took {slowest.seconds:.1f} s: {slowest.name}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
