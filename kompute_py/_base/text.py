"""Text for people: durations, sizes, suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

Told = str | Callable[[], str]
"""What an error calls an object: the text, or a function that makes it. The function is called only if the
error is raised: most checks pass, and a text about a shape and a dtype takes longer than they do."""


def told(what: Told) -> str:
    """The text of `what`."""
    return what if isinstance(what, str) else what()


def duration(seconds: float) -> str:
    """`seconds` with three significant digits in a unit that fits: "1.23 ms"."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1.0:
            value = seconds * scale
            return f"{value:.{max(0, 3 - len(str(int(value))))}f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def binary_size(count: float) -> str:
    """A number of bytes in KiB, MiB, GiB or TiB: "128 MiB"."""
    value, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g} {unit}"


def nearest(name: object, known: Iterable[str], least: float = 0.65) -> str:
    """The end of a sentence about an unknown name: ": did you mean 'sigma'?", or "." if none has
    at least the ratio `least` of difflib.
    """
    import difflib  # only for messages

    text, names = str(name), tuple(known)
    near = difflib.get_close_matches(text, names, 1, least)
    if not near:
        lower = {each.lower(): each for each in names}
        near = [lower[each] for each in difflib.get_close_matches(text.lower(), lower, 1, least)]
    return f": did you mean {near[0]!r}?" if near else "."
