"""Which machines are of one kind, so that times of one may be compared with times of the other.

A kind is what no commit changes and no update of the day: the processor with its stepping, how many of its
logical processors this process may use, whether a hypervisor runs below (system calls and page faults then
cost more), and the system's release, which brings the C library and the compiler. Hypervisors hide a
processor's name behind one for many models, so the stepping and the size of its cache belong to the kind.

Drivers, Python and NumPy have versions of their own, which are updated on one machine: they stand in each
record, and `moves` compares only what the same driver and the same Python ran.
"""

from __future__ import annotations

import hashlib
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from ..machine import processor_count, processor_model, system

_CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class MachineKind:
    """A kind of machine. Two are equal if their times may be compared."""

    architecture: str
    processor: str
    stepping: str
    """Family, model, stepping and cache, as "6-167-1, 491520 KB"; empty where the system does not say."""
    count: int
    """Logical processors that the process may use."""
    virtual: bool
    """Whether a hypervisor runs below."""
    system: str

    @staticmethod
    def here() -> MachineKind:
        """The kind of this machine, for this process."""
        try:
            text = _CPUINFO.read_text()
        except OSError:
            text = ""
        stepping, virtual = _details(text)
        return MachineKind(
            platform.machine(), processor_model(), stepping, processor_count(), virtual, system()
        )

    @property
    def file_name(self) -> str:
        """Readable, with a digest of all fields: one name for one kind."""
        words = f"{self.processor} {self.count} cpu {self.system}".lower()
        words = re.sub(r"\((?:r|tm|c)\)", "", words)
        slug = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:60].strip("-")
        return f"{slug}-{hashlib.sha256(repr(self).encode()).hexdigest()[:8]}.json"

    def text(self) -> str:
        """For people."""
        plural = "s" if self.count != 1 else ""
        parts = [f"{self.processor} ({self.stepping})" if self.stepping else self.processor]
        parts.append(f"{self.count} logical processor{plural}" + (" of a virtual machine" * self.virtual))
        return ", ".join([*parts, self.system, self.architecture])


def _details(cpuinfo: str) -> tuple[str, bool]:
    """The stepping's text and whether a hypervisor is there, from the first processor of /proc/cpuinfo."""
    found: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    numbers = [found[name] for name in ("cpu family", "model", "stepping") if name in found]
    stepping = ", ".join(filter(None, ("-".join(numbers), found.get("cache size", ""))))
    return stepping, "hypervisor" in found.get("flags", "").split()
