"""Mutated program files, for ``./dev fuzz --files``: the zip's bytes as in `fuzz_files`, and its members,
with right checksums around them, so that what checks the members sees them.

Each mutant is loaded, shown, and run if it asks for little. A refusal must be typed.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import random
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

import kompute_py as kp
from kompute_py._programs import content

SCALE = """
layout(local_size_x = 8) in;
layout(constant_id = 0) const float BY = 2.0;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(binding = 2) uniform Unused { vec4 unused; };
layout(push_constant) uniform P { float plus; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = BY * x[i] + plus; }
"""
SAMPLED = """
layout(local_size_x = 8) in;
layout(binding = 0) uniform sampler2D image;
layout(binding = 1, rgba32f) uniform writeonly image2D other;
void main() { imageStore(other, ivec2(gl_GlobalInvocationID.x % 4, 0), texture(image, vec2(0.3))); }
"""
MOST_INVOCATIONS = 1 << 16
MOST_BYTES = 1 << 20
GROUPS = list(np.array([1, 1, 1], np.uint32).tobytes())
_NUMBERS = (
    0, 1, 2, 3, 4, 7, 8, 16, 31, 32, 64, 255, 256, 2**16, 2**31, 2**32 - 1, 2**32, 2**62, 2**63, -1, 0.5,
)  # fmt: skip
_TEXTS = (
    "", "x", "y", "main", "float32", "int8", "float64", "device", "storage", "host", "dispatch", "copy",
    "fill",
)  # fmt: skip
_TEXTS += (
    "sync device", "repeat", "copy region", "input", "output", "rgba8", "block0", "0" * 64, "\ud800", "a.b",
    "7",
)  # fmt: skip


def seed_program(manager: kp.Manager) -> bytes:
    """A program with all that programs have."""
    x, y, kept = manager.zeros(8), manager.zeros(8), manager.tensor(np.arange(8))
    pixels = np.arange(16, dtype=np.float32).reshape(2, 2, 4)
    image, other = manager.image(pixels), manager.image(np.zeros((1, 4, 4), np.float32))
    groups = manager.tensor_t(np.array([1, 1, 1], np.uint32))
    scale = manager.kernel(SCALE).specialize(BY=3.0)
    numbers = manager.zeros(4)
    steps = manager.sequence().record(
        kp.OpSyncDevice([x, kept]),
        scale.bind(x, y, numbers, plus=1.0),
        kp.OpRepeat([scale.bind(x, y, numbers, plus=0.5)], 3, swap=[(x, y)]),
        scale.bind(x, y, numbers, plus=1.0, indirect=groups),
        manager.kernel(SAMPLED).bind(image.sampled(manager.sampler("linear", "repeat")), other, groups=1),
        kp.OpCopyRegion(other, image, source_region=np.s_[0:1, 0:2], target_region=np.s_[0:1, 0:2]),
        kp.OpFill([kept[2:4]], 1.0),
        kp.OpCopy([y[:4], numbers]),
        kp.OpHostCall(list, reads=[y], writes=[], name="look"),
        kp.OpCopy([kept, x]),
    )
    one = kp.Program.record(
        {"steps": steps, "scale": scale}, inputs={"x": x}, outputs={"y": y, "other": other},
        state={"kept": kept}, hosts={"look": lambda tensor: None}, sources={"scale": SCALE},
    )  # fmt: skip
    weights = manager.tensor(np.ones(8))
    product = kp.ops.multiply.bind(x, weights, out=y)
    specs = kp.TensorSpec(8), kp.TensorSpec((2, 4))
    entries = {"main": product, "cumsum": [(kp.ops.cumsum, each) for each in specs]}
    two = kp.Program.record(entries, inputs={"x": x}, outputs={"y": y}, parameters={"weights": weights})
    file = io.BytesIO()
    kp.Program({"one": one, "two": two}).save(file)
    return file.getvalue()


def mutant(whole: bytes, number: int, seed: int) -> bytes:
    """The mutant of that number: of the members."""
    chance = random.Random(f"program {number} {seed}")
    with zipfile.ZipFile(io.BytesIO(whole)) as zip:
        members = {name: zip.read(name) for name in zip.namelist()}
    chosen = chance.choice(["program.json"] * 6 + sorted(members))
    if chosen == "program.json":
        described = json.loads(members[chosen])
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            _alter(described, chance)
        members[chosen] = json.dumps(described).encode("utf-8", "surrogatepass")
        if chance.randrange(20) == 0:
            members[chosen] = members[chosen].replace(b'"entries":', b'"entries":' + b"[" * 5000, 1)
    else:
        made = bytearray(members[chosen])
        for _ in range(chance.choice((1, 2, 8))):
            at = chance.randrange(len(made))
            at -= at % chance.choice((1, 4))
            made[at : at + 4] = chance.choice((*_NUMBERS[:16], chance.randrange(300))).to_bytes(8, "little")[
                :4
            ]
        if chosen.startswith("shaders/"):
            digest = hashlib.sha256(made).hexdigest()
            old = chosen[8:-4]
            del members[chosen]
            members["program.json"] = members["program.json"].replace(old.encode(), digest.encode())
            chosen = f"shaders/{digest}.spv"
        members[chosen] = bytes(made)
    if chance.randrange(30) == 0:
        members.pop(chance.choice(sorted(members)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zip:
        for name, data in members.items():
            stored = name.startswith("parameters") and chance.randrange(10)
            zip.writestr(name, data, zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED)
    return file.getvalue()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of all values."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield value, key
        yield from _places(each)


def _alter(described: Any, chance: random.Random) -> None:
    places = list(_places(described))
    container, key = chance.choice(places)
    value = container[key]
    turn = chance.randrange(10)
    if turn == 0:
        del container[key]
    elif turn == 1:
        other, place = chance.choice(places)
        container[key] = copy.deepcopy(other[place])
    elif turn == 2 and isinstance(container, list):
        container.append(value)
    elif isinstance(value, str):
        digits = "".join(chance.choice("0123456789abcdef") for _ in range(chance.choice((2, 7, 8, 16))))
        container[key] = chance.choice((*_TEXTS, digits, value[1:], None))
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        container[key] = chance.choice((None, True, False, {}, [], 3, "x"))
    else:
        container[key] = chance.choice((*_NUMBERS, value + 1, value * 4, chance.randrange(300)))


def _work(steps: Any) -> int:
    """About how many invocations steps have."""
    total = 0
    for step in steps:
        total += 64 * step.groups[0] * step.groups[1] * step.groups[2]
        total += step.times * (_work(step.steps) + 1)
    return total


def _is_short(program: kp.Program) -> bool:
    """Whether it asks for little memory and work: it is code, which may as well run for hours."""
    if sum(block.nbytes for part in program._core.content.parts for block in part.blocks) > MOST_BYTES:
        return False
    for part in program._core.content.parts:
        steps = [step for entry in part.entries for each in entry.recordings for step in each.steps]
        if _work(steps) > MOST_INVOCATIONS:
            return False
        for step in steps:
            if step.indirect is None:
                continue
            begins = part.blocks[step.indirect.block].contents
            users = sum(step.indirect.block in content.blocks_of((each,)) for each in steps)
            if not begins or users > 1 or program._core.contents[part.name].read(begins).tolist() != GROUPS:
                return False
    return True


def use(data: bytes, manager: kp.Manager) -> bool:
    """Loads, shows and runs a program. False if it is refused, with a typed error."""
    try:
        program = kp.load_program(data, hosts={"look": lambda *tensors: None}).on(manager)
        str(program)
    except kp.KomputeError:
        return False
    if not _is_short(program):
        return True
    for entry in program.values():
        try:
            if entry.kind == "kernel":
                entry.preload()
                entry(np.zeros(8, np.float32), np.zeros(8, np.float32), np.zeros(4, np.float32), plus=1.0)
                continue
            for form in entry._target((), {}).forms:
                arrays = [np.zeros(each.shape, each.dtype) for each in form.inputs]
                entry(*arrays)
                entry(*map(manager.tensor_t, arrays))
        except kp.KomputeError:
            continue
    return True
