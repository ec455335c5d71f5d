"""What the tests of the command line share."""

from __future__ import annotations

import pytest


@pytest.fixture
def one_line(capsys):
    """`one_line()`: what the command has printed to stderr, which is one line of an error."""

    def text():
        shown = capsys.readouterr().err
        assert shown.startswith("kompute-py: error: ") and shown.count("\n") == 1, shown
        return shown

    return text
