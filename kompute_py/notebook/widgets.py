"""The common part of widgets that call a kernel again and again.

Needs ipywidgets (the extra ``notebook``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from .._base.errors import FailedPreconditionError
from .._kernels.kernel import Kernel
from .._live.call import Knob, LiveCall
from .._memory.memory import Memory
from .._recording.sequence import Sequence

try:
    import ipywidgets
except ImportError:
    raise FailedPreconditionError(
        "sliders and play need ipywidgets: pip install 'kompute-py[notebook]'"
    ) from None

if TYPE_CHECKING:

    class Box:
        """The part of ipywidgets.VBox that has to have types: ipywidgets has none."""

        def __init__(self, children: list[Any]) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
        def close(self) -> None:
            """Removes it from the browser."""

        def _repr_mimebundle_(self, **options: Any) -> Any: ...

else:
    Box = ipywidgets.VBox


class Live(Box):
    """A widget that calls a kernel, or evaluates a sequence, again and again.

    It holds the kernel and its arguments until it is closed. When a cell runs again, the widgets that it made
    before are closed, if the front end tells which cell runs (JupyterLab and Notebook 7 do).
    """

    def __init__(
        self,
        call: LiveCall,
        knobs: dict[str, Any],
        *,
        above: list[Any] | None = None,
        below: list[Any] | None = None,
    ) -> None:
        self._call: LiveCall | None = call
        self._knobs = knobs
        self._parts = [*(above or []), *knobs.values(), *(below or [])]
        super().__init__(self._parts)
        _replace_earlier(self)

    @property
    def kernel(self) -> Kernel | Sequence:
        """The kernel or the sequence. Raises FailedPreconditionError if the widget is closed."""
        return self._open().source

    @property
    def shown(self) -> Memory:
        """The tensor or image in the picture. Raises FailedPreconditionError if the widget is closed."""
        return self._open().shown

    @property
    def knobs(self) -> dict[str, Any]:
        """The sliders by push constant. Set ``.value`` to move one from Python.

        Raises FailedPreconditionError if the widget is closed.
        """
        self._open()
        return self._knobs

    @property
    def values(self) -> dict[str, Any]:
        """The push constants of the current slider positions.

        Raises FailedPreconditionError if the widget is closed.
        """
        self._open()
        return self._positions()

    def _positions(self) -> dict[str, Any]:
        return {name: knob.value for name, knob in self._knobs.items()}

    def close(self) -> None:
        """Removes the widgets and releases the kernel and its memory.

        Without it, ipywidgets keeps them alive.
        """
        if getattr(self, "_call", None) is None:
            return
        self._call = None
        parts, self._parts, self._knobs = self._parts, [], {}
        for part in [*parts, self]:
            # ipywidgets makes these beside each widget, and keeps them.
            for name in ("layout", "style"):
                beside = getattr(part, name, None)
                if isinstance(beside, ipywidgets.Widget):
                    beside.close()
        for part in parts:
            part.close()
        super().close()

    def _open(self) -> LiveCall:
        if self._call is None:
            raise FailedPreconditionError(
                f"The {type(self).__name__} is closed: run its cell again, or make a new one"
            )
        return self._call


# The widgets that each cell's last execution made: cell -> (execution, widgets).
_made_by: dict[str, tuple[str, WeakSet[Live]]] = {}


def _replace_earlier(made: Live) -> None:
    found = executing_cell()
    if found is None:
        return
    cell, execution = found
    earlier, widgets = _made_by.get(cell, ("", WeakSet()))
    if earlier != execution:
        for each in list(widgets):
            each.close()
        widgets = WeakSet()
        _made_by[cell] = (execution, widgets)
    widgets.add(made)


def executing_cell() -> tuple[str, str] | None:
    """The ids of the cell that runs and of its execution, if the front end told them."""
    try:
        from IPython import get_ipython  # type: ignore[attr-defined, unused-ignore]

        shell = get_ipython()  # type: ignore[no-untyped-call, unused-ignore]
        parent = shell.kernel.get_parent("shell")
        return str(parent["metadata"]["cellId"]), str(parent["header"]["msg_id"])
    except (ImportError, AttributeError, KeyError, TypeError):
        return None


def knobs_of(call: LiveCall) -> dict[str, Any]:
    """A widget for each knob, by name."""
    return {name: _widget(knob) for name, knob in call.knobs.items()}


def _widget(knob: Knob) -> Any:
    if knob.kind is bool:
        return ipywidgets.Checkbox(description=knob.name)
    range_ = {"min": knob.low, "max": knob.high, "step": knob.step, "description": knob.name}
    if knob.kind is int:
        return ipywidgets.IntSlider(knob.start, **range_)
    return ipywidgets.FloatSlider(knob.start, readout_format=".4g", **range_)
