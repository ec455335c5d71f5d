"""Sorts of many short lines: each invocation merges one alone, from runs of eight that it sorts in registers.

Processors like it: no barrier, no counters, and each step loads and stores one element. Loops of an
invocation together stay below 65,535 turns, after which llvmpipe ends them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .keys import Key

if TYPE_CHECKING:
    from ..._custom.builder import FunctionBuilder
    from ..._custom.expressions import IntOrSize

MOST_MERGED = 4096
"""Elements of a line that one invocation merges."""
_FIRST = 8
"""Elements that are sorted in registers."""


def scratch_for_merge(kb: FunctionBuilder, key: Key, places: bool, total: IntOrSize) -> None:
    """The memory of `merge`, for `total` elements of all lines."""
    kb.scratch("merged", total * 2, "uint32" if places else key.dtype)


def merge(kb: FunctionBuilder, key: Key, places: bool, load: str, half: str, store: str) -> None:
    """Writes statements that sort the line of an invocation: ``kp_count`` elements.

    `load` is the expression of the bits of element "{}"; `store` stores the element that comes to ``kp_t``,
    with the place ``kp_p`` and the bits ``kp_r``. The line has ``kp_count`` elements of scratch memory from
    ``kp_at`` on, and as many `half` elements later. With `places`, the elements' places are moved, and their
    bits loaded by them; else the bits.
    """
    kind = key.type
    own = load if places else "merged_load({})"

    def take(place: str, bits: str, order: str, at: str) -> str:
        """Loads an element by where it is in the scratch memory."""
        if places:
            return f"{place} = merged_load({at}); {bits} = {load.format(place)}; {order} = kp_order({bits});"
        return f"{bits} = {own.format(at)}; {order} = kp_order({bits});"

    lines = [f"for (uint k = 0u; k < kp_count; k += {_FIRST}u) {{"]
    for n in range(_FIRST):
        lines.append(f"{kind} r{n} = {load.format(f'min(k + {n}u, kp_count - 1u)')};")
        lines.append(f"{kind} o{n} = k + {n}u < kp_count ? kp_order(r{n}) : ~{kind}(0);")
        if places:
            lines.append(f"uint p{n} = k + {n}u;")
    for turn in range(_FIRST):  # odd and even neighbours in turns: equal ones stay
        for n in range(turn % 2, _FIRST - 1, 2):
            lines.append(_exchange(kind, n, places))
    for n in range(_FIRST):
        moved = f"{'p' if places else 'r'}{n}"
        lines.append(f"if (k + {n}u < kp_count) merged_store(kp_at + k + {n}u, {moved});")
    lines.append("}")
    step = f"""
        uint kp_from = kp_at, kp_to = kp_at + {half};
        for (uint w = {_FIRST}u; w < kp_count; w *= 2u) {{
            for (uint begin = 0u; begin < kp_count; begin += 2u * w) {{
                uint i = begin, middle = min(kp_count, begin + w), j = middle;
                uint end = min(kp_count, begin + 2u * w);
                uint pa = 0u, pb = 0u;
                {kind} a, b, oa, ob;
                {take("pa", "a", "oa", "kp_from + i")}
                {take("pb", "b", "ob", "kp_from + min(j, kp_count - 1u)")}
                for (uint t = begin; t < end; ++t) {{
                    bool right = j < end && (i >= middle || ob < oa);
                    merged_store(kp_to + t, right ? {"pb : pa" if places else "b : a"});
                    if (right) ++j; else ++i;
                    uint p = 0u;
                    {kind} r, o;
                    {take("p", "r", "o", "kp_from + min(right ? j : i, kp_count - 1u)")}
                    if (right) {{ pb = p; b = r; ob = o; }} else {{ pa = p; a = r; oa = o; }}
                }}
            }}
            uint other = kp_from; kp_from = kp_to; kp_to = other;
        }}
        for (uint kp_t = 0u; kp_t < kp_count; ++kp_t) {{
            uint kp_p = {"merged_load(kp_from + kp_t)" if places else "0u"};
            {kind} kp_r = {load.format("kp_p") if places else "merged_load(kp_from + kp_t)"};
            {store}
        }}
    """
    kb.emit("\n".join(lines) + step)


def _exchange(kind: str, n: int, places: bool) -> str:
    """Statements that exchange neighbours unless they are in order."""
    m = n + 1
    text = f"{{ bool s = o{m} < o{n}; {kind} r = r{n}, o = o{n}; "
    text += f"r{n} = s ? r{m} : r; r{m} = s ? r : r{m}; o{n} = s ? o{m} : o; o{m} = s ? o : o{m};"
    if places:
        text += f" uint p = p{n}; p{n} = s ? p{m} : p; p{m} = s ? p : p{m};"
    return text + " }"
