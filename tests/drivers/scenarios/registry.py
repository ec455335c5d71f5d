"""Registers scenarios, and what all of them use to check."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..control import null_control

Function = Callable[[], "dict[str, str] | None"]


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A check of the null driver and the KP_NULL_DRIVER that it needs."""

    function: Function
    config: str | None


scenarios: dict[str, Scenario] = {}


def scenario(config: str | None = None) -> Callable[[Function], Function]:
    """Register a check. It returns the live objects that it leaves on purpose, by type, or None."""

    def register(function: Function) -> Function:
        scenarios[function.__name__] = Scenario(function, config)
        return function

    return register


def raises(kind: type[Exception], call: Callable[[], Any]) -> None:
    """Check that a call raises an exception of a kind."""
    try:
        call()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")


def violated(text: str) -> None:
    """Check that the driver noted one violation since the last look, with that text."""
    found = null_control().violations()
    assert len(found) == 1 and text in found[0], (text, found)
    null_control().clear()
