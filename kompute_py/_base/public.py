"""Where users find a class: the module that tracebacks, help() and pickles name."""

from __future__ import annotations

import sys
from types import FunctionType


def publish(cls: type, module: str) -> None:
    """Makes `module` the one that `cls` names, and from Python 3.13 on its functions: help() shows theirs for
    inherited methods.
    """
    cls.__module__ = module
    if sys.version_info < (3, 13):
        return
    for each in vars(cls).values():
        function = getattr(each, "__func__", None) or getattr(each, "fget", None) or each
        if isinstance(function, FunctionType) and function.__module__.startswith("kompute_py._"):
            function.__module__ = module
            if "<locals>" in function.__qualname__:
                function.__qualname__ = f"{cls.__qualname__}.{function.__name__}"
