"""Formats of images and texel buffers of floats that a source in Slang or HLSL declares by their type alone:
Slang infers formats of all other types, and leaves floats unknown.

Reading an image of unknown format needs the device's feature shaderStorageImageReadWithoutFormat, and a texel
buffer has no other source of it. The declared type says enough, as it does to DXC and glslang:
`RWTexture2D<float4>`, which `RWTexture2D` stands for, is rgba32f. Images that are only written stay without a
format, so that any image can be bound.
"""

from __future__ import annotations

import array
import re

from .spirv_words import (
    FUNCTION,
    NAME,
    TYPE_ARRAY,
    TYPE_POINTER,
    TYPE_RUNTIME_ARRAY,
    VARIABLE,
    Rewriter,
    encoded,
    instructions,
    text_at,
    words_of,
)

_DECLARED = re.compile(
    r"((?:\[\[[^\]]*\]\]\s*)*)\b(?:(?:RW|RasterizerOrdered)(?:Texture[123]D(?:Array)?|Buffer)|Buffer)\b"
    r"\s*(?:<\s*([\w\s]+?)\s*>)?\s*([A-Za-z_][^;(){}<>]*)"
)
_NAME = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*)")
_R32F, _RG32F, _RGBA32F = 3, 6, 1
_FORMATS = {"": _RGBA32F, "float": _R32F, "float1": _R32F, "float2": _RG32F, "float4": _RGBA32F}
_UNKNOWN = 0
_CAPABILITY, _TYPE_IMAGE, _LOAD, _ACCESS_CHAIN, _TEXEL_POINTER = 17, 25, 61, (65, 66), 60
_FETCH, _READ, _WRITE, _QUERIES = 95, 98, 99, (104, 106, 107)  # OpImageQuerySize, ...Levels, ...Samples
_OF_IMAGE = {_FETCH: 3, _READ: 3, _WRITE: 1, **dict.fromkeys(_QUERIES, 3)}  # word of the image
_BUFFER, _STORAGE = 5, 2  # a dimension; "sampled" of storage images
_EXTENDED, _READ_UNKNOWN, _WRITE_UNKNOWN = 49, 55, 56  # capabilities
_ARRAYS = (TYPE_ARRAY, TYPE_RUNTIME_ARRAY)
# OpVectorShuffle, OpCompositeExtract, OpCompositeInsert: words before their literals.
_LITERALS_FROM = {79: 5, 81: 4, 82: 5}


def with_formats(spirv: bytes, code: str) -> bytes:
    """The module with the formats that the declarations in `code`, which has no comments, stand for."""
    declared: dict[str, set[int]] = {}
    for attributes, element, listed in _DECLARED.findall(code):
        form = _UNKNOWN if "image_format" in attributes else _FORMATS.get(element, _UNKNOWN)
        for name in _NAME.findall(listed):
            declared.setdefault(name, set()).add(form)
    words = words_of(spirv)
    names: dict[int, str] = {}
    types: dict[int, int] = {}  # images, arrays and pointers: id -> place
    known: dict[tuple[int, ...], int] = {}
    capabilities: dict[int, int] = {}
    for opcode, at, length in instructions(words):
        if opcode == FUNCTION:
            break
        if opcode == _CAPABILITY:
            capabilities[words[at + 1]] = at
        elif opcode == NAME:
            names[words[at + 1]] = text_at(words, at + 2, at + length)
        elif opcode in (_TYPE_IMAGE, *_ARRAYS, TYPE_POINTER):
            types[words[at + 1]] = at
            known[(opcode, *words[at + 2 : at + length])] = words[at + 1]

    def inner(kind: int) -> int:
        """The type that a pointer points to, or an array consists of."""
        at = types[kind]
        return words[at + (3 if words[at] & 0xFFFF == TYPE_POINTER else 2)]

    def image_of(kind: int) -> int | None:
        while kind in types and words[types[kind]] & 0xFFFF != _TYPE_IMAGE:
            kind = inner(kind)
        at = types.get(kind)
        return None if at is None or words[at + 8] != _UNKNOWN else at

    roots: dict[int, int] = {}  # each variable, and what is made of it: pointers to elements, loaded images
    images: dict[int, int] = {}  # variable -> place of its image's type
    places: dict[int, list[int]] = {}  # variable -> places of the instructions that make these
    read: set[int] = set()
    written: set[int] = set()
    other: set[int] = set()  # used in other ways
    inside = False
    for opcode, at, length in instructions(words):
        inside = inside or opcode == FUNCTION
        if opcode == VARIABLE and not inside and (image := image_of(words[at + 1])) is not None:
            if words[image + 7] == _STORAGE or words[image + 3] == _BUFFER:
                roots[words[at + 2]] = words[at + 2]
                images[words[at + 2]] = image
                places[words[at + 2]] = [at]
        if not inside:
            continue
        place = 3 if opcode in (_LOAD, _TEXEL_POINTER, *_ACCESS_CHAIN) else _OF_IMAGE.get(opcode, 0)
        root = roots.get(words[at + place]) if place else None
        if root is not None and opcode in (_LOAD, *_ACCESS_CHAIN):
            roots[words[at + 2]] = root
            places[root].append(at)
        elif root is not None:
            (written if opcode == _WRITE else read if opcode == _READ else set()).add(root)
        for k in range(at + 1, at + _LITERALS_FROM.get(opcode, length)):
            if k not in (at + place, at + 2) and words[k] in roots and opcode not in (5, 71):
                other.add(roots[words[k]])

    chosen: dict[int, int] = {}
    for variable, image in images.items():
        name = names.get(variable, "")
        forms = declared.get(name, set()) | declared.get(re.sub(r"_\d+$", "", name), set())
        wanted = variable in read or words[image + 3] == _BUFFER
        if wanted and variable not in other and len(forms) == 1 and _UNKNOWN not in forms:
            chosen[variable] = min(forms)
    if not images:
        return spirv
    out = Rewriter(words)
    added: list[array.array[int]] = []

    def with_format(kind: int, form: int) -> int:
        """The type with this format in place of none."""
        at = types[kind]
        opcode, fields = words[at] & 0xFFFF, list(words[at + 2 : at + (words[at] >> 16)])
        if opcode == _TYPE_IMAGE:
            fields[6] = form
        else:
            fields[1 if opcode == TYPE_POINTER else 0] = with_format(inner(kind), form)
        made = known.get((opcode, *fields))
        if made is None:
            made = known[(opcode, *fields)] = out.fresh()
            added.append(encoded(opcode, [made, *fields]))
        return made

    changed: dict[int, array.array[int]] = {}
    for variable, form in sorted(chosen.items()):
        for at in places[variable]:
            instruction = words[at : at + (words[at] >> 16)]
            instruction[1] = with_format(instruction[1], form)
            changed[at] = instruction
    first = min(at for variable in images for at in places[variable][:1])
    changed[first] = sum(added, array.array("I")) + changed.get(
        first, words[first : first + (words[first] >> 16)]
    )
    for at, instruction in changed.items():
        out.replace(at, instruction)
    left = {v for v in images if v not in chosen and words[images[v] + 7] == _STORAGE}
    dropped = set() if left & (read | other) else {_READ_UNKNOWN}
    if not left & (written | other):
        dropped.add(_WRITE_UNKNOWN)
    for capability, at in capabilities.items():
        kept = [words[at : at + 2]] if capability not in dropped else []
        if at == min(capabilities.values()) and _RG32F in chosen.values() and _EXTENDED not in capabilities:
            kept.append(encoded(_CAPABILITY, [_EXTENDED]))
        out.replace(at, *kept)
    return out.result()
