"""Mutated SPIR-V modules, for ``./dev fuzz``: bits flipped, operands exchanged, instructions dropped,
doubled, moved or replaced.

Each goes through `kp.ShaderModule`, its signature, `kp.check`, the disassembler and `mgr.kernel`. What is
taken becomes a pipeline, and runs if it has no loop: a mutant may well loop for ever.
"""

from __future__ import annotations

import random
from functools import cache

import numpy as np

import kompute_py as kp

_HEAD = (
    "#version 450\n"
    "#extension GL_EXT_shader_explicit_arithmetic_types : enable\n"
    "layout(local_size_x = 8) in;\n"
)
SOURCES = [
    _HEAD + "layout(binding = 0) buffer A { float a[]; };\nvoid main() { uint i = gl_GlobalInvocationID.x; "
    "if (i < a.length()) a[i] = sqrt(a[i]) * 2.0; }",
    _HEAD
    + "layout(binding = 0) buffer A { uint a[]; };\nlayout(push_constant) uniform P { int k; vec2 v[3]; };\n"
    "layout(constant_id = 3) const uint N = 8;\nshared uint s[N];\nvoid main() { uint i = "
    "gl_LocalInvocationIndex; "
    "s[i] = a[i]; barrier(); atomicAdd(s[k], 3u); barrier(); a[i] = s[N - 1u - i] + uint(v[k & 1].x); }",
    _HEAD + "layout(binding = 0, rgba8) uniform image2D im;\nlayout(binding = 1) uniform sampler2D t;\n"
    "void main() { ivec2 p = ivec2(gl_GlobalInvocationID.xy); imageStore(im, p, texelFetch(t, p, 0) + "
    "imageLoad(im, p)); }",
    _HEAD + "struct S { vec3 p; float w; mat3 m; };\nlayout(std430, binding = 0) buffer A { S s[]; };\n"
    "layout(std140, binding = 1) uniform U { vec4 c[4]; mat4 t; } u;\nvec3 f(S x, int i) { vec3 q = x.m * "
    "x.p; "
    "q[i] += u.c[i].y; return q; }\nvoid main() { uint i = gl_GlobalInvocationID.x; s[i].p = f(s[i], int(i) "
    "& 3); "
    "s[i].w = (u.t * vec4(s[i].p, 1)).x; }",
    _HEAD
    + "#extension GL_KHR_shader_subgroup_arithmetic : enable\nlayout(binding = 0) buffer A { int a[]; };\n"
    "layout(binding = 1) buffer B { float x[]; } b[3];\nvoid main() { uint i = gl_GlobalInvocationID.x; "
    "a[i] = subgroupAdd(a[i]) << 1; switch (a[i]) { case 1: b[0].x[i] = 1; break; case 2: b[1].x[i] = 2; "
    "break; "
    "default: b[2].x[i] = float(a[i]); } float p[5]; p[a[i] % 5] = 3; a[0] = int(p[2]); }",
    _HEAD
    + "layout(binding = 0) buffer A { float a[]; };\nvoid main() { float t = 0; for (int i = 0; i < 9; ++i) "
    "{ "
    "if (a[i] > 4.0) continue; t += a[i]; } do { t *= 0.5; } while (t > 1.0); a[0] = t; }",
]
LOOP_MERGE, MAGIC_WORDS = 246, 5


@cache
def seeds() -> list[np.ndarray]:
    """The modules that are mutated, as words."""
    found = []
    for source in SOURCES:
        for optimize in ("none", "performance"):
            target = "vulkan1.1" if "subgroup" in source else "vulkan1.2"
            found.append(np.frombuffer(kp.compile(source, optimize=optimize, target=target), np.uint32))
    return found


def _instructions(words: list[int]) -> list[int]:
    """Where each instruction begins."""
    at, found = MAGIC_WORDS, []
    while at < len(words) and 0 < words[at] >> 16 <= len(words) - at:
        found.append(at)
        at += words[at] >> 16
    return found


def module(number: int, seed: int) -> bytes:
    """The mutant of that number."""
    chance = random.Random(f"spirv {number} {seed}")
    words = [int(word) for word in chance.choice(seeds())]
    if chance.random() < 0.6:
        for _ in range(chance.choice((1, 1, 2, 3))):
            _mild(words, chance)
        return np.array(words, np.uint32).tobytes()
    for _ in range(chance.choice((1, 1, 1, 1, 2, 3, 8))):
        places = _instructions(words)
        if not places:
            break
        at = chance.choice(places)
        length = words[at] >> 16
        other = chance.choice(places)
        turn = chance.randrange(10)
        if turn == 0:  # anywhere
            words[chance.randrange(len(words))] ^= 1 << chance.randrange(32)
        elif turn <= 2 and length > 1:  # an operand for one of elsewhere: mostly another id
            size = words[other] >> 16
            if size > 1:
                words[at + chance.randrange(1, length)] = words[other + chance.randrange(1, size)]
        elif turn == 3 and length > 1:  # a small number: ids, literals, storage classes, decorations
            words[at + chance.randrange(1, length)] = chance.choice(
                (0, 1, 2, 3, chance.randrange(64), 0xFFFFFFFF)
            )
        elif turn == 4:
            del words[at : at + length]
        elif turn == 5:
            words[at:at] = words[other : other + (words[other] >> 16)]
        elif turn == 6:  # another opcode of the same length
            words[at] = length << 16 | (
                words[other] & 0xFFFF if chance.random() < 0.7 else chance.randrange(450)
            )
        elif turn == 7:
            moved = words[at : at + length]
            del words[at : at + length]
            places = _instructions(words)
            if places:
                place = chance.choice(places)
                words[place:place] = moved
        elif turn == 8 and length > 1:
            words[at + chance.randrange(1, length)] ^= 1 << chance.randrange(8)
        elif turn == 9:
            words[at] = (max(1, length + chance.choice((-1, 1)))) << 16 | (words[at] & 0xFFFF)
    if chance.random() < 0.02:
        del words[chance.randrange(len(words)) :]
    return np.array(words, np.uint32).tobytes()


# Operations of the same shape.
_ALIKE = [
    (128, 130, 132, 134, 137, 197, 198, 199, 194, 195, 196),  # IAdd ISub IMul UDiv UMod, bits, shifts
    (129, 131, 133, 136, 141, 140),  # of floats
    (170, 171, 172, 174, 176, 178, 173, 175, 177, 179),  # comparisons of integers
    (65, 66),
]
_CONSTANT, _TYPES, _DECORATE, _MEMBER_DECORATE, _EXECUTION_MODE = 43, range(19, 33), 71, 72, 16
_NUMBERS = (
    0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 64, 100, 1000, 4096, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
)  # fmt: skip


def _mild(words: list[int], chance: random.Random) -> None:
    """A change that often leaves a valid module: a constant, a decoration's value, an operand for another of
    its type, an operation.
    """
    places = _instructions(words)
    turn = chance.randrange(6)
    if turn == 0:  # constants: indices, lengths, sizes, scopes
        which = [at for at in places if words[at] & 0xFFFF == _CONSTANT]
        words[chance.choice(which) + 3] = chance.choice(_NUMBERS)
    elif turn == 1:  # offsets, strides, bindings, the local size
        which = [at for at in places if words[at] & 0xFFFF in (_DECORATE, _MEMBER_DECORATE, _EXECUTION_MODE)]
        at = chance.choice(which)
        words[at + (words[at] >> 16) - 1] = chance.choice(_NUMBERS)
    elif turn == 2:  # an operation for another
        which = [at for at in places if any(words[at] & 0xFFFF in each for each in _ALIKE)]
        if which:
            at = chance.choice(which)
            other = next(each for each in _ALIKE if words[at] & 0xFFFF in each)
            words[at] = (words[at] & 0xFFFF0000) | chance.choice(other)
    elif turn == 3:  # a type's width, count or length, an image's format
        which = [at for at in places if words[at] & 0xFFFF in _TYPES and words[at] >> 16 > 2]
        at = chance.choice(which)
        words[at + chance.randrange(2, words[at] >> 16)] = chance.choice(
            (1, 2, 3, 4, 8, 16, 32, 64, *words[5:40])
        )
    else:  # an id for another of the same type
        types: dict[int, list[int]] = {}
        for at in places:
            if words[at] & 0xFFFF > 42 and words[at] >> 16 > 3 and words[at] & 0xFFFF not in (62, 71, 72):
                types.setdefault(words[at + 1], []).append(words[at + 2])
        of = {each: ids for ids in types.values() for each in ids}
        spots = [
            at + i for at in places for i in range(3, words[at] >> 16) if len(of.get(words[at + i], ())) > 1
        ]
        if spots:
            at = chance.choice(spots)
            words[at] = chance.choice(of[words[at]])


def _may_loop(spirv: bytes) -> bool:
    words = [int(word) for word in np.frombuffer(spirv, np.uint32)]
    return any(words[at] & 0xFFFF == LOOP_MERGE for at in _instructions(words))


def _arguments(manager: kp.Manager, kernel: kp.Kernel) -> dict[str, object]:
    """Something for each binding."""
    made: dict[str, object] = {}
    for p in kernel.signature.parameters:
        if p.descriptors == 0 or p.descriptors > 8:
            raise kp.InvalidArgumentError("too many descriptors")
        each = []
        for _ in range(p.descriptors):
            if p.image is not None:
                image = manager.image_empty((16, 16), format=p.image["format"] or "rgba8")
                each.append(image.sampled() if "sampler" in p.kind else image)
            else:
                each.append(manager.zeros(1024, "float32" if p.dtype is None else p.dtype))
        made[p.name] = each if p.descriptors > 1 else each[0]
    return made


def attempt(spirv: bytes, manager: kp.Manager) -> str:
    """What becomes of it: "ran", "taken", or the class of the refusal."""
    outcome = "taken"
    try:
        module = kp.ShaderModule(spirv)
        module.signature.text("k")
        found = kp.check(spirv, manager)
        kp.disassemble(spirv)
        kernel = manager.kernel(module)
        if any(each.kind != "limit" for each in found):  # the pipeline checks those
            raise AssertionError(f"check found {found}, and the kernel was made")
        arguments = _arguments(manager, kernel)
        push = kernel.signature.push
        members = (
            {name: _zero(member) for name, member in zip(push.names, push.members, strict=True)}
            if push
            else {}
        )
        operation = kernel.bind(bind=arguments, push=members, groups=1)
        if not _may_loop(spirv):
            manager.sequence().eval(operation)
            outcome = "ran"
    except kp.KomputeError as error:
        str(error)
        return type(error).__name__
    return outcome


def _zero(member: dict[str, object]) -> object:
    if member["array"]:
        inner = {**member, "array": member["array"][1:]}
        return [_zero(inner)] * member["array"][0]
    if member["kind"] == "struct":
        return [_zero(each) for each in member["members"]]
    rows, columns = max(1, member["rows"]), max(1, member["columns"])
    if columns > 1:
        return [[0] * columns] * rows
    return [0] * rows if rows > 1 else 0
