"""A profile as a picture: what the device's queues and the host's threads did, over time (matplotlib)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import ArgumentTypeError, FailedPreconditionError, shown
from .table import totals_of

if TYPE_CHECKING:
    from .records import Notes

_MOST_COLOURS = 10
_KINDS = ("submit", "wait", "build", "pipeline", "compile", "read", "write")


def draw(profile: Notes, axes: Any) -> Any:
    """Draws a bar for each operation and each span of the host; returns the Axes."""
    try:
        import matplotlib as mpl
        import matplotlib.axes
        from matplotlib.figure import Figure
    except ImportError:
        raise FailedPreconditionError(
            "Profile.plot() needs matplotlib: pip install 'kompute_py[plot]'"
        ) from None
    if axes is not None and not isinstance(axes, mpl.axes.Axes):
        raise ArgumentTypeError(f"axes is {shown(axes)}; give matplotlib's Axes, or None for new ones")
    records, spans = profile.records, profile.spans
    timed = records[~np.isnan(records["begin"])]
    if axes is None:
        lanes = len(np.unique(timed["queue"])) + len(np.unique(spans["thread"]))
        axes = Figure(figsize=(10, 1.2 + 0.6 * lanes), layout="constrained").subplots()
    palette = mpl.color_sequences["tab10"]
    names = [total.name for total in totals_of(records)]
    colours = {name: palette[i] for i, name in enumerate(names[: _MOST_COLOURS - 1])}
    rest = (0.6, 0.6, 0.6)
    lanes_named: list[str] = []
    for queue in np.unique(timed["queue"]).tolist():
        _bars(axes, lanes_named, f"queue {queue}", timed[timed["queue"] == queue], "name", colours, rest)
    host = dict(zip(_KINDS, mpl.color_sequences["Pastel1"], strict=False))
    for thread in np.unique(spans["thread"]).tolist():
        label = profile.threads[thread]
        _bars(axes, lanes_named, label, spans[spans["thread"] == thread], "kind", host, rest)
    axes.set_yticks(range(len(lanes_named)), lanes_named)
    axes.invert_yaxis()
    axes.set_xlabel("ms")
    axes.set_title(profile.device_name)
    used = [name for name in colours if name in timed["name"]]
    handles = [mpl.patches.Patch(color=colours[name], label=name) for name in used]
    handles += [
        mpl.patches.Patch(color=host[kind], label=kind) for kind in host if kind in set(spans["kind"])
    ]
    if handles:
        axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1, 1), fontsize="small", frameon=False)
    return axes


def _bars(
    axes: Any, lanes: list[str], label: str, rows: Any, key: str, colours: dict[str, Any], rest: Any
) -> None:
    lanes.append(label)
    axes.broken_barh(
        list(zip(rows["begin"] * 1e3, rows["seconds"] * 1e3, strict=True)),
        (len(lanes) - 1.4, 0.8),
        facecolors=[colours.get(name, rest) for name in rows[key]],
    )
