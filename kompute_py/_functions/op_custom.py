"""Functions bound to their arguments for recording, and cache statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from .._base.errors import ArgumentTypeError
from .._memory.tensor import Tensor
from .._recording.operations import OpBase
from .forms import Form


class CacheInfo(NamedTuple):
    """The size and use of an operation's caches."""

    hits: int
    """Calls with a specialization that was compiled already."""
    misses: int
    """Calls that generated and compiled kernels."""
    specializations: int
    """Compiled specializations, over all Managers."""
    prepared: int
    """Calls that are ready to run again with other memory of the same shapes and dtypes."""


CacheInfo.__module__ = "kompute_py.typing"  # where users find it


class OpCustom(OpBase):
    """A function with its arguments bound, to be recorded: made by ``f.bind(...)``.

    `results` are the tensors that it writes. Raises ArgumentTypeError if it is called: functions create it.

    >>> @kp.CustomOp.register
    ... class negative(kp.CustomOp):
    ...     signature = "negative(Tensor x) -> Tensor"
    ...     def select(self, ksel):
    ...         x = ksel.arg_tensor("x")
    ...         ksel.return_new_tensor(x.shape, x.dtype)
    ...     def generate(self, ksel, kb):
    ...         kb.yield_results("-x_load(i)")
    >>> operation = negative.bind(mgr.tensor([1, 2]))
    >>> mgr.sequence().record(operation).eval()
    <kp.Sequence ...>
    >>> operation.results[0].tolist()
    [-1.0, -2.0]
    """

    __module__ = "kompute_py"

    __slots__ = {
        "_again": "",
        "_earlier": "",
        "_kept": "",
        "_name": "",
        "_parts": "",
        "results": "The tensors that it writes.",
    }

    _plain = False  # recorded part by part

    def __init__(
        self,
        name: str,
        form: Form,
        parts: Iterable[Any],
        results: tuple[Tensor, ...],
        again: Callable[[], OpCustom] | None = None,
    ) -> None:
        if not isinstance(form, Form):
            raise ArgumentTypeError("An OpCustom is made by a function: f.bind(...)")
        self._again = again
        self._name = name
        self._kept = form
        self._earlier: tuple[OpCustom, ...] = ()
        self._parts = tuple(parts)
        self.results: tuple[Tensor, ...] = results

    def __getattr__(self, name: str) -> Any:
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name == "set":
            text += ": a number that changes is a tensor of one element, written between evaluations"
        raise AttributeError(text, name=name, obj=self)

    @staticmethod
    def _joined(name: str, operations: Sequence[OpCustom], results: tuple[Tensor, ...]) -> OpCustom:
        """The operations one after the other, as one."""
        parts = [part for each in operations for part in each._parts]

        def again() -> OpCustom:
            return OpCustom._joined(name, [each._over_any_memory() for each in operations], results)

        made = OpCustom(name, operations[-1]._kept, parts, results, again)
        made._earlier = tuple(operations[:-1])
        return made

    def _over_any_memory(self) -> OpCustom:
        """The same operation over copies, which tensors at bytes that shaders cannot bind may replace."""
        return self if self._again is None else self._again()

    def __repr__(self) -> str:
        count = len(self._parts)
        return f"<kp.OpCustom {self._name}, {count} dispatch{'es' if count != 1 else ''}>"
