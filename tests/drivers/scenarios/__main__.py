"""Runs one check by name."""

from __future__ import annotations

import sys

from ..control import null_control
from . import scenarios


def main(name: str) -> int:
    """Run a check; what the driver noted and did not get an answer for is a failure."""
    control = null_control()
    left = scenarios[name].function() or {}
    assert not control.violations(), control.violations()
    assert control.live_report() == left, control.live_report()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
