"""Settings: a keyword, else an environment variable, else a default; and the report that names the source of
each.

The tables of settings lie with what they set: `_device/options.py` and `_compilers/settings.py`.
"""

from __future__ import annotations

import operator
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from .errors import ArgumentTypeError, InvalidArgumentError, shown

PREFIX = "KOMPUTE_PY_"


class Setting(NamedTuple):
    """One option's value and where it comes from."""

    name: str
    value: Any
    source: str
    """"keyword", "default", or the name of the environment variable."""


Setting.__module__ = "kompute_py.typing"  # where users find it


class ConfigReport(tuple[Setting, ...]):
    """The settings of a Manager: a tuple of Setting; as text, a table.

    >>> mgr.config.recent_pipelines.value
    128
    """

    __slots__ = ()

    def __str__(self) -> str:
        rows = [(each.name, repr(each.value), each.source) for each in self]
        first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
        return "\n".join(f"{name:{first}}  {value:{second}}  {source}" for name, value, source in rows)

    def __getattr__(self, name: str) -> Setting:
        for each in self:
            if each.name == name:
                return each
        raise AttributeError(
            f"There is no option {shown(name)}; there are: {', '.join(each.name for each in self)}"
        )


class Option(NamedTuple):
    """How the value of a setting is found, and its meaning."""

    about: str
    """What it does, for the documentation: sentences in Markdown."""
    convert: Callable[[Any, str], Any]
    """Makes the value of what was given. The second argument says where that was, for errors."""
    default: Callable[[], Any]
    other_variables: tuple[str, ...] = ()
    empty_is_default: bool = False
    """Whether a variable with no text counts as not set."""
    is_path: bool = False
    """Whether a variable may have bytes that are not text."""


def find_setting(name: str, option: Option, keywords: Mapping[str, Any], prefix: str | None) -> Setting:
    """The setting from `keywords`, where None counts as not given, else from the environment unless `prefix`
    is None.

    Raises what ``option.convert`` raises, and InvalidArgumentError for a variable that is not text.
    """
    value = keywords.get(name)
    if value is not None:
        return Setting(name, option.convert(value, f"Manager({name}=...)"), "keyword")
    variables = () if prefix is None else (prefix + name.upper(), *option.other_variables)
    for variable in variables:
        text = os.environ.get(variable)
        if text is None or (option.empty_is_default and not text.strip()):
            continue
        if not option.is_path:
            require_text(text, variable)
        return Setting(name, option.convert(text, f"The environment variable {variable}"), variable)
    return Setting(name, option.default(), "default")


def require_text(value: str, variable: str) -> None:
    """Raises InvalidArgumentError if an environment variable has bytes that are not text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgumentError(
            f"The environment variable {variable} is {shown(value)}, which is not text in this system's "
            "encoding "
            f"({sys.getfilesystemencoding()})"
        ) from None


def to_path(value: Any, source: str, takes: str) -> str:
    """A file or folder of `takes`, as text.

    Raises ArgumentTypeError or InvalidArgumentError if it is not a path.
    """
    try:
        text = os.fspath(value)
    except TypeError:
        raise ArgumentTypeError(f"{source} is {shown(value)}; use {takes}") from None
    # From the environment it may have bytes that are not text: os.fsencode gives them back.
    text = os.fsdecode(text)
    try:
        valid = "\0" not in os.fsencode(text).decode(errors="ignore")
    except UnicodeEncodeError:
        valid = False
    if not valid:
        raise InvalidArgumentError(f"{source} is {text!r}, which no folder is called")
    return text


def to_choice(value: Any, source: str, choices: Collection[str]) -> str:
    """`value`, one of `choices` in any case.

    Raises ArgumentTypeError or InvalidArgumentError, naming `source`, for anything else.
    """
    choice = value.strip().lower() if isinstance(value, str) else None
    if choice is None or choice not in choices:
        wrong = ArgumentTypeError if choice is None else InvalidArgumentError
        raise wrong(f"{source} is {shown(value)}; choose one of {', '.join(choices)}")
    return choice


def default_cache_dir() -> str:
    """The system's folder for the user's caches, which may be deleted at any time. "" if there is none."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        root = os.path.expanduser("~/Library/Caches")
    else:
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    # Without a home folder, expanduser leaves the tilde: the user then has no place to write to.
    return os.path.join(root, "kompute_py") if os.path.isabs(root) else ""


# A size in bytes: one grammar for options, environment variables and arguments.
_UNITS = {"": 1, "b": 1, "byte": 1, "bytes": 1}
for _power, _letter in enumerate("kmgt", 1):
    _UNITS |= {
        _letter: 2 ** (10 * _power),
        f"{_letter}ib": 2 ** (10 * _power),
        f"{_letter}b": 10 ** (3 * _power),
    }
_TEXT = re.compile(r"\s*([0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})\s*([A-Za-z]*)\s*", re.ASCII)
GRAMMAR = (
    'give an int of bytes, or text: "128 MiB" or "128M" (binary: KiB, MiB, GiB, TiB), '
    '"128 MB" (decimal: kB, MB, GB, TB), "1.5 GiB", "0"'
)


def as_bytes(value: Any, what: str) -> int:
    """The bytes that `value` says: an int, or text, such as "128 MiB", "128M" (the same), "128 MB" (128 *
    10**6) or "1.5 GiB".

    Case does not count; spaces around the number and the unit may be left out. Raises InvalidArgumentError,
    naming `what` and the grammar, for other text, a size below 0 or above 2**63 - 1, and a fraction of a
    byte; ArgumentTypeError for other types.
    """
    if isinstance(value, str):
        found = _TEXT.fullmatch(value)
        if found is None or found[2].lower() not in _UNITS:
            raise InvalidArgumentError(f"{what} is {shown(value)}, which is not a size; {GRAMMAR}")
        unit = _UNITS[found[2].lower()]
        whole, _, part = found[1].partition(".")
        digits = int(whole + part)
        size, rest = divmod(digits * unit, 10 ** len(part))
        if (digits and not size) or (rest and unit == 1):
            raise InvalidArgumentError(f"{what} is {shown(value)}, a fraction of a byte; {GRAMMAR}")
    else:
        try:
            if isinstance(value, bool):
                raise TypeError
            size = operator.index(value)
        except Exception:  # of the object's own __index__
            raise ArgumentTypeError(f"{what} is {shown(value)}, which is not a size; {GRAMMAR}") from None
    if not 0 <= size < 2**63:
        raise InvalidArgumentError(
            f"{what} is {shown(value)}; sizes are from 0 to 2**63 - 1 bytes: {GRAMMAR}"
        )
    return size
