"""Records: each operation's results in a folder, and the first difference of two such folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.errors import InvalidArgumentError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._base.annotations import Array
    from .values import OperationValues

_STEPS = "operations.jsonl"


class Recorder:
    """Writes the results of operations to a folder, one file for each operation.

    ``operations.jsonl`` has a line for each: {"operation", "sequence", "line", "names", "dtypes"}. The arrays
    of line 0 are in ``000000.npz``, in the order of the names.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        for old in (*self._folder.glob("[0-9]*.npz"), self._folder / _STEPS):
            old.unlink(missing_ok=True)
        (self._folder / _STEPS).touch()
        self._count = 0

    def look(self, values: OperationValues) -> None:
        """Writes the results of an operation."""
        arrays = [np.ascontiguousarray(each) for each in values.outputs.values()]
        # Dtypes of other packages are bytes here, and their names say what they are.
        plain = [each.view(np.uint8) if _is_foreign(each.dtype) else each for each in arrays]
        np.savez(self._folder / f"{self._count:06}.npz", *plain)
        step = {
            "operation": values.operation,
            "sequence": values.sequence,
            "line": values.line,
            "names": list(values.outputs),
            "dtypes": [each.dtype.name if _is_foreign(each.dtype) else "" for each in arrays],
        }
        with open(self._folder / _STEPS, "a", encoding="utf-8") as file:
            file.write(json.dumps(step) + "\n")
        self._count += 1


def _is_foreign(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "V" and dtype.names is None


class Step(NamedTuple):
    """A line of a record."""

    operation: str
    line: str
    arrays: dict[str, Array]


def read_record(folder: Path) -> Iterator[Step]:
    """The operations of a record. Raises NotFoundError if the folder has none, InvalidArgumentError if it is
    damaged.
    """
    try:
        lines = (folder / _STEPS).read_text(encoding="utf-8").splitlines()
    except OSError:
        raise NotFoundError(
            f"{folder} has no record: make one with kp.Manager(debug='record=FOLDER') or mgr.watch(folder)"
        ) from None
    for number, line in enumerate(lines):
        try:
            step = json.loads(line)
            names, dtypes = step["names"], step["dtypes"]
            with np.load(folder / f"{number:06}.npz") as file:
                arrays = [file[f"arr_{i}"] for i in range(len(names))]
            for i, dtype in enumerate(dtypes):
                if dtype:
                    import ml_dtypes

                    arrays[i] = arrays[i].view(getattr(ml_dtypes, dtype)).astype(np.float32)
            yield Step(step["operation"], step["line"], dict(zip(names, arrays, strict=True)))
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise InvalidArgumentError(
                f"{folder}, operation {number + 1}: the record is damaged: {error}"
            ) from None
