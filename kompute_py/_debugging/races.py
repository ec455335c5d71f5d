"""Races between invocations, as shaders report them: see native/core/instruments/instrument.hpp."""

from __future__ import annotations

from typing import NamedTuple

ACCESS = {"r": "reads", "w": "writes", "a": "changes"}
_SITE_BITS = 12
_GROUP_BITS = 20
_LOCAL_BITS = 11
_PLAIN = 1 << 28
_ONLY_FAR = 1 << 29
_WAS_READ = 1 << 30


class Race(NamedTuple):
    """Two accesses to one element that are in no order."""

    indices: tuple[int, ...]
    """The index for each "[]" of the element's name."""
    site: int
    """The place of the earlier access in its module, from 1 on; 0 if unknown."""
    earlier: str
    """The verb for the earlier access: "read", "wrote" or "changed"."""
    other: tuple[int, int, int] | None
    """The invocation of the earlier access; None if it is unknown: one of several, the last of which is not
    in a race."""
    same_group: bool

    def text(self, element: str, access: str, place: str) -> str:
        """The race in words. `element`: "x[]"; `access`: the letters of the site of the later access."""
        for index in self.indices:
            element = element.replace("[]", f"[{index}\0]", 1)
        element = element.replace("\0", "") or "an element"
        who = "another invocation" if self.other is None else f"invocation {self.other}"
        noun = {"read": "read", "wrote": "write", "changed": "change"}[self.earlier]
        at = f" at {place}" if self.other else f" (the last {noun} is at {place})"
        where = at if place else ""
        why = "no barrier is between" if self.same_group else "workgroups are in no order"
        group = "" if self.same_group else " of another workgroup"
        return f"{ACCESS[access[0]]} {element}, which {who}{group} {self.earlier}{where}: {why}"


def race_of(payload: list[int], indices: int) -> Race:
    """The race that a record's words tell, with so many indices."""
    other_group, other, group, local = payload[:4]
    size, groups = payload[4:7], payload[7:9]
    number = (other_group >> _SITE_BITS) - 1  # -1: it is not known, or the last that the bits can count
    same_group = number < 0 or number == group % (1 << _GROUP_BITS)
    number = group if same_group else number
    other_local = other % (1 << _LOCAL_BITS)
    who: tuple[int, int, int] | None = None
    if other & _ONLY_FAR:
        same_group = False
    elif not (same_group and other_local == local):
        x, y, z = _split(other_local, size)
        of_x, of_y, of_z = _split(number, groups)
        who = of_x * size[0] + x, of_y * size[1] + y, of_z * size[2] + z
    earlier = "read" if other & _WAS_READ else "wrote" if other & _PLAIN else "changed"
    return Race(tuple(payload[9 : 9 + indices]), other_group % (1 << _SITE_BITS), earlier, who, same_group)


def _split(number: int, sizes: list[int]) -> tuple[int, int, int]:
    x, y = max(sizes[0], 1), max(sizes[1], 1)
    return number % x, number // x % y, number // (x * y)
