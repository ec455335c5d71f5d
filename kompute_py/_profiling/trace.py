"""A profile in Chrome's trace event format, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

One process is the device, with a track for each queue and the memory in use; the other is the host, with a
track for each thread. Arrows lead from a submission to its first operation.
Source: the document "Trace Event Format" of Chrome's tracing.
"""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .records import Notes

_MICRO = 1e6


def write_trace(file: IO[str], profiles: Iterable[Notes]) -> None:
    """Writes the profiles, each with a process for its device; times count from the earliest start."""
    profiles = list(profiles)
    first = min((profile.start for profile in profiles), default=0)
    events = [event for number, profile in enumerate(profiles) for event in _events(profile, number, first)]
    other = [
        {
            "device": profile.device_name,
            "clock": "calibrated" if profile.clock_calibrated else "measured",
            "clock_uncertainty_ns": round(profile.clock_uncertainty * 1e9),
        }
        for profile in profiles
    ]
    json.dump({"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"devices": other}}, file)


def _events(profile: Notes, number: int, first: int) -> Iterator[dict[str, Any]]:
    shift = (profile.start - first) * 1e-9
    device, host = 2 * number + 1, 2 * number + 2
    yield _name("process_name", device, 0, profile.device_name)
    yield _name("process_name", host, 0, f"host, for {profile.device_name}")
    records, spans = profile.records, profile.spans
    for queue in np.unique(records["queue"]).tolist():
        yield _name("thread_name", device, queue, f"queue {queue}")
    names = profile.threads
    for thread in np.unique(np.concatenate([records["thread"], spans["thread"]])).tolist():
        yield _name("thread_name", host, thread, names[thread])
    for span in spans:
        yield {
            "ph": "X",
            "name": span["kind"] + (f" {span['text']}" if span["text"] else ""),
            "cat": "host",
            "pid": host,
            "tid": int(span["thread"]),
            "ts": (float(span["begin"]) + shift) * _MICRO,
            "dur": float(span["seconds"]) * _MICRO,
        }
    submitted = -1
    for record in records:
        if np.isnan(record["begin"]):
            continue
        begin = (float(record["begin"]) + shift) * _MICRO
        yield {
            "ph": "X",
            "name": record["name"],
            "cat": "device",
            "pid": device,
            "tid": int(record["queue"]),
            "ts": begin,
            "dur": float(record["seconds"]) * _MICRO,
            "args": {
                "sequence": record["sequence"],
                "line": record["line"],
                "recorded": record["recorded"],
                "bytes_read": int(record["bytes_read"]),
                "bytes_written": int(record["bytes_written"]),
                "groups": record["groups"].tolist(),
            },
        }
        if record["submission"] == submitted:
            continue
        submitted = int(record["submission"])
        moment = (float(record["submitted"]) + shift) * _MICRO
        arrow = {"name": "submission", "cat": "submit", "id": number << 32 | submitted}
        yield {**arrow, "ph": "s", "pid": host, "tid": int(record["thread"]), "ts": moment}
        yield {**arrow, "ph": "f", "bp": "e", "pid": device, "tid": int(record["queue"]), "ts": begin}
        yield {
            "ph": "C",
            "name": "device memory in use",
            "pid": device,
            "ts": moment,
            "args": {"bytes": int(record["memory"])},
        }


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
