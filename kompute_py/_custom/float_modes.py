"""The modes for floats that generated kernels ask for if a device has them, and kernels without them.

They keep infinities, NaN, the signs of zeros and subnormal numbers. A device without them may assume that
there are none, or take them for zeros: kernels that are generated there do not ask. So a kernel that was
generated elsewhere, and comes in a program, runs there without the modes, too.
"""

from __future__ import annotations

import array
from collections.abc import Mapping

from .._compilers.spirv_words import CAPABILITY, EXTENSION, FUNCTION, HEADER

_EXTENSION = "SPV_KHR_float_controls"
_MODES = {"SignedZeroInfNanPreserve": (4466, 4461), "DenormPreserve": (4464, 4459)}
"""Capability and execution mode."""
_EXECUTION_MODE = 16


def lines_of(controls: Mapping[str, object], width: int) -> list[str]:
    """The lines of GLSL that ask for the modes, for floats of that width. `controls` are a device's."""
    return [
        f'spirv_execution_mode(extensions = ["{_EXTENSION}"], '
        f"capabilities = [{capability}], {mode}, {width});"
        for name, (capability, mode) in _MODES.items()
        if controls.get(f"shader{name}Float{width}")
    ]


def adapted(spirv: bytes, controls: Mapping[str, object]) -> bytes:
    """The module without the modes that a device lacks."""
    words = array.array("I", spirv)
    head, at = [], HEADER
    while at < len(words) and words[at] >> 16 and words[at] & 0xFFFF != FUNCTION:
        head.append((words[at] & 0xFFFF, at, at + (words[at] >> 16)))
        at = head[-1][2]
    kept, gone = set(), []
    names = {mode: name for name, (_, mode) in _MODES.items()}
    for opcode, first, end in head:
        if opcode == _EXECUTION_MODE and end - first == 4 and words[first + 2] in names:
            name = names[words[first + 2]]
            if controls.get(f"shader{name}Float{words[first + 3]}"):
                kept.add(name)
            else:
                gone.append((first, end))
    if not gone:
        return spirv
    unasked = {capability for name, (capability, _) in _MODES.items() if name not in kept}
    text = _EXTENSION.encode() + b"\0"
    for opcode, first, end in head:
        is_capability = opcode == CAPABILITY and end - first == 2 and words[first + 1] in unasked
        is_extension = opcode == EXTENSION and words[first + 1 : end].tobytes().startswith(text)
        if is_capability or (is_extension and not kept):
            gone.append((first, end))
    for first, end in sorted(gone, reverse=True):
        del words[first:end]
    return words.tobytes()
