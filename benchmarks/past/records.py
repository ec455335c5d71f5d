"""Records of earlier measurements: one file for each kind of machine, the newest record last.

A record is one run of one part of the benchmarks: `rows` (times) or `instructions` (counts). Several records
of one commit are wanted: what differs between them is noise, and `moves` takes it into account.

A file may be written by one command while another reads it: it is replaced as a whole.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..paths import ROOT, cache_directory
from ..table import Row
from .kind import MachineKind

PUBLISHED = Path(__file__).resolve().parent / "published"
KEPT = 60
"""Records of a part that a file keeps: the newest."""
# What decides the figures; a change elsewhere, as in the documentation, leaves the commit's figures its own.
_ENGINE = ("kompute_py", "native", "shaders", "benchmarks", "tests/drivers", "CMakeLists.txt")


class PastError(RuntimeError):
    """There is no such record, or a file is damaged; the message says what there is."""


@dataclass(frozen=True)
class Record:
    """What one run of one part measured."""

    part: str
    """ "rows" or "instructions"."""
    commit: str
    """The commit's hash; empty outside a repository."""
    subject: str
    changed: bool
    """Whether the engine or the benchmarks had changes that were in no commit."""
    date: str
    machine: dict[str, str]
    """Versions of Python, NumPy and the system, as `machine.describe` tells them."""
    drivers: dict[str, str] = field(default_factory=dict)
    """By driver: the device and the driver's version."""
    yardstick: float | None = None
    """Seconds of a fixed piece of work that no commit changes: how fast the machine was at that time."""
    rows: tuple[Row, ...] = ()
    counts: dict[str, float] = field(default_factory=dict)
    """Instructions by piece of work."""

    @property
    def name(self) -> str:
        """The commit, and whether more than it was measured."""
        return (self.commit[:10] or "no commit") + (" with changes" if self.changed else "")

    def text(self) -> str:
        """For people: commit, subject and day."""
        return f"{self.name} ({self.subject}), {self.date}" if self.subject else f"{self.name}, {self.date}"


def default_folders() -> tuple[Path, Path]:
    """Where records are looked for: the repository's cache, then the published ones."""
    return cache_directory() / "past", PUBLISHED


def commit_here() -> tuple[str, str, bool]:
    """The commit that is checked out, its subject, and whether what decides the figures has changes."""
    try:
        commit, subject = _git("log", "-1", "--format=%H%n%s").splitlines()
        return commit, subject, bool(_git("status", "--porcelain", "--", *_ENGINE, f":!{_inside(PUBLISHED)}"))
    except (OSError, subprocess.CalledProcessError, ValueError):
        return "", "", False


def save(record: Record, kind: MachineKind, folder: Path) -> Path:
    """Appends the record to the file of `kind` in `folder`, and drops the oldest of its part beyond `KEPT`.

    Gives the file.
    """
    path = folder / kind.file_name
    records = read(path)[1] if path.exists() else []
    same = [each for each in records if each.part == record.part][-(KEPT - 1) :]
    records = [each for each in records if each.part != record.part or each in same]
    folder.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=folder, prefix=".new-")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(_content(kind, [*records, record]))
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise
    return path


def read(path: Path) -> tuple[MachineKind, list[Record]]:
    """The kind of machine and the records of a file that `save` wrote.

    Raises PastError.
    """
    try:
        content = json.loads(path.read_text())
        kind = MachineKind(**content["kind"])
        return kind, [_record(each) for each in content["records"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PastError(f"{path} holds no records of benchmarks: {type(error).__name__}: {error}") from None


def find(
    part: str, asked: str, kind: MachineKind, folders: Sequence[Path] | None = None, *, before: str = ""
) -> tuple[MachineKind, list[Record]]:
    """The records of one commit to compare with: all of them, since they differ by noise alone.

    `asked` is a file that `--save` or `--publish` wrote, whose newest commit counts, or a commit as git
    names it; empty means the newest commit saved on this kind of machine, other than `before` where there is
    one.
    Raises PastError.
    """
    if asked and Path(asked).is_file():
        found_kind, records = read(Path(asked))
        records = [record for record in records if record.part == part]
        if not records:
            raise PastError(f"{asked} has no records of {part}")
        return found_kind, fitting(records, records[-1])
    records = [
        record
        for folder in folders or default_folders()
        if (folder / kind.file_name).exists()
        for record in read(folder / kind.file_name)[1]
        if record.part == part
    ]
    if not records:
        raise PastError(
            f"there are no records of {part} for this kind of machine: {kind.text()}. Save one of the commit "
            f"that you want to compare with: ./dev bench {part} --save"
        )
    records.sort(key=lambda record: record.date)
    if not asked:
        others = [record for record in records if record.commit != before or record.changed]
        return kind, fitting(records, (others or records)[-1])
    commit = _resolved(asked)
    of_commit = [record for record in records if commit and record.commit.startswith(commit)]
    if not of_commit:
        have = ", ".join(dict.fromkeys(record.name for record in reversed(records)))
        raise PastError(f"there are no records of {part} of {asked!r}; there are: {have}")
    # Those of the commit itself, where there are some.
    return kind, fitting(of_commit, min(reversed(of_commit), key=lambda record: record.changed))


def fitting(records: Sequence[Record], wanted: Record) -> list[Record]:
    """Those of the same commit as `wanted`; of a tree with changes only itself: the changes may differ."""
    if wanted.changed or not wanted.commit:
        return [wanted]
    return [each for each in records if each.commit == wanted.commit and not each.changed]


def _resolved(asked: str) -> str:
    """The hash of what git calls `asked`; `asked` itself where git knows nothing of it."""
    try:
        return _git("rev-parse", "--verify", "--quiet", f"{asked}^{{commit}}").strip()
    except (OSError, subprocess.CalledProcessError):
        return asked


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def _inside(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _record(content: dict[str, Any]) -> Record:
    rows = tuple(Row(**row) for row in content.pop("rows", ()))
    return Record(rows=rows, **content)


def _content(kind: MachineKind, records: list[Record]) -> str:
    """JSON with a line for each row, so that git shows what changed."""
    made = []
    for record in records:
        fields = dataclasses.asdict(record)
        rows = ",\n".join(f"   {json.dumps(row)}" for row in fields.pop("rows"))
        head = json.dumps(fields)[:-1]
        made.append(f"  {head}, " + (f'"rows": [\n{rows}\n  ]}}' if rows else '"rows": []}'))
    listed = ",\n".join(made)
    return f'{{\n "kind": {json.dumps(dataclasses.asdict(kind))},\n "records": [\n{listed}\n ]\n}}\n'
