"""The arguments of a kernel's call as Python's `inspect` has them, and a text: for completion and help()."""

from __future__ import annotations

import inspect
import keyword
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._shaders.signature import Signature
    from .kernel import Kernel

_OPTIONS = ("grid", "groups", "indirect", "out", "uses", "bind", "push", "wait", "signal", "donate")


class CallSignature:
    """The attribute ``__signature__`` of kernels, made when it is looked at; the class has none."""

    def __get__(self, kernel: Kernel | None, kind: type) -> inspect.Signature:
        if kernel is None:
            raise AttributeError("__signature__")
        return _python_signature(kernel.signature)


class CallText:
    """The attribute ``__doc__``: a kernel's describes its shader; the class has `text`."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    def __get__(self, kernel: Kernel | None, kind: type) -> str | None:
        if kernel is None:
            return self._text
        return f"{kernel}\n\nhelp(kp.Kernel) describes the options of calls, and bind, submit and specialize."


def _python_signature(signature: Signature) -> inspect.Signature:
    """Bindings by position or name, then push constants and the options of a call by name.

    What only `bind=` and `push=` take is left out: names that are not Python's, or those of the options.
    """
    bindings = [each.name for each in signature.parameters]
    names = [name for name in bindings if _is_plain(name)]
    made = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in dict.fromkeys(names)]
    # A binding that the shader only writes may be left out, if none stands behind it.
    for number in reversed(range(len(made))):
        each = next(p for p in signature.parameters if p.name == made[number].name)
        if each.access != "write":
            break
        made[number] = made[number].replace(default=None)
    pushed = signature.push.names if signature.push is not None else ()
    for name in pushed:
        if _is_plain(name) and name not in names:
            made.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY))
    made += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in _OPTIONS]
    return inspect.Signature(made)


def _is_plain(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name not in _OPTIONS
