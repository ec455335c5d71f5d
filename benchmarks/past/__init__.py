"""What was measured earlier, and what has moved since.

`./dev bench --save` appends a record to the file of this kind of machine in the repository's cache, and
`--publish` to the one in `published/`, which is part of the repository. `--compare` measures and tells which
figures moved beyond noise. `./dev bench past` lists the records and compares two of them.
"""

from .kind import MachineKind
from .moves import Comparison, Move, compare
from .records import PastError, Record, find, fitting, save

__all__ = ["Comparison", "MachineKind", "Move", "PastError", "Record", "compare", "find", "fitting", "save"]
