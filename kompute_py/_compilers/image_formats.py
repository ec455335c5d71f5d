"""Formats of images and texel buffers that a source in Slang or HLSL declares by their type alone.

The declared type says the format: `RWTexture2D<float4>`, which `RWTexture2D` alone stands for in Slang, is
rgba32f, `RWTexture2D<unorm float4>` is rgba8. Slang leaves floats without a format, and DXC takes unorm and
snorm for floats. Reading an image without a format needs the device's feature
shaderStorageImageReadWithoutFormat, and a texel buffer has no other source of it. Images that are only
written stay without a format with Slang, so that any image can be bound.
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
    r"((?:\[+[^\]]*\]+\s*)*)\b(?:(?:RW|RasterizerOrdered)(?:Texture[123]D(?:Array)?|Buffer)|Buffer)\b"
    r"\s*(?:<\s*([\w\s]+?)\s*>)?\s*([A-Za-z_][^;(){}<>]*)"
)
_NAME = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*)")
_UNKNOWN, _RGBA32F, _R32F, _RG32F = 0, 1, 3, 6
_FOUR = (_RGBA32F, 21, 30, 4, 5)  # rgba32i, rgba32ui, rgba8, rgba8_snorm
_FLOATS = {"float": _R32F, "float1": _R32F, "float2": _RG32F, "float4": _RGBA32F}
_NORMALIZED = {  # in 8 bits
    "unorm float": 15, "unorm float1": 15, "unorm float2": 13, "unorm float4": 4,
    "snorm float": 20, "snorm float1": 20, "snorm float2": 18, "snorm float4": 5,
}  # fmt: skip
_EXTENDED_FORMATS = {_RG32F, 15, 13, 20, 18}
_CAPABILITY, _TYPE_IMAGE, _LOAD, _ACCESS_CHAIN, _TEXEL_POINTER = 17, 25, 61, (65, 66), 60
_FETCH, _READ, _WRITE, _QUERIES = 95, 98, 99, (104, 106, 107)  # OpImageQuerySize, ...Levels, ...Samples
_OF_IMAGE = {_FETCH: 3, _READ: 3, _WRITE: 1, **dict.fromkeys(_QUERIES, 3)}  # word of the image
# Instructions that pass an image on: calls, composites, copies, choices, returns. All their operands are ids.
_PASSES = (57, 80, 83, 169, 245, 254)
_BUFFER, _STORAGE = 5, 2  # a dimension; "sampled" of storage images
_EXTENDED, _READ_UNKNOWN, _WRITE_UNKNOWN = 49, 55, 56  # capabilities
_ARRAYS = (TYPE_ARRAY, TYPE_RUNTIME_ARRAY)


def with_formats(spirv: bytes, code: str, tree: str) -> tuple[bytes, list[str]]:
    """The module with the formats that the declarations in `code`, which has no comments, stand for; and a
    sentence for each texel buffer of three channels, which no format has: with a flat array a read would give
    one number and two zeros. `tree` is DXC's syntax tree, which knows the types behind other names.
    """
    declared: dict[str, set[str]] = {}
    for attributes, element, listed in _DECLARED.findall(code):
        kind = "" if "format" in attributes else " ".join(element.split()) or "float4"
        for name in _NAME.findall(listed):
            declared.setdefault(name, set()).add(kind)
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
        return None if at is None or words[at + 8] not in (_UNKNOWN, *_FLOATS.values(), *_FOUR) else at

    roots: dict[int, int] = {}  # each variable, and what is made of it: pointers to elements, loaded images
    images: dict[int, int] = {}  # variable -> place of its image's type
    places: dict[int, list[int]] = {}  # variable -> places of the instructions that make these
    read: set[int] = set()
    written: set[int] = set()
    passed: set[int] = set()
    inside = False
    for opcode, at, length in instructions(words):
        inside = inside or opcode == FUNCTION
        if opcode == VARIABLE and not inside and (image := image_of(words[at + 1])) is not None:
            if words[image + 7] == _STORAGE or words[image + 3] == _BUFFER:
                roots[words[at + 2]] = words[at + 2]
                images[words[at + 2]] = image
                places[words[at + 2]] = [at]
        if not images or not inside:
            continue
        place = 3 if opcode in (_LOAD, _TEXEL_POINTER, *_ACCESS_CHAIN) else _OF_IMAGE.get(opcode, 0)
        root = roots.get(words[at + place]) if place else None
        if root is not None and opcode in (_LOAD, *_ACCESS_CHAIN):
            roots[words[at + 2]] = root
            places[root].append(at)
        elif root is not None:
            (written if opcode == _WRITE else read if opcode == _READ else set()).add(root)
        elif opcode in _PASSES:
            passed.update(roots[each] for each in words[at + 1 : at + length] if each in roots)

    if not images:
        return spirv, []
    chosen: dict[int, int] = {}
    refused: list[str] = []
    for variable, image in images.items():
        name = re.sub(r"_\d+$", "", names.get(variable, ""))
        last = name.rpartition(".")[2]  # of a member's
        kinds = declared.get(names.get(variable, ""), set()) | declared.get(last, set())
        kind = min(kinds) if len(kinds) == 1 else ""
        form = words[image + 8]
        if form == _UNKNOWN and (variable in read or words[image + 3] == _BUFFER):
            form = _FLOATS.get(kind, form)
        form = _NORMALIZED.get(kind, form)
        if form != words[image + 8] and variable not in passed:
            chosen[variable] = form
        elif form in (_UNKNOWN, *_FOUR) and words[image + 3] == _BUFFER and "" not in kinds:
            if any(each.endswith("3") for each in kinds) or re.search(
                rf" {re.escape(last)} '[^\n]*(?<!Structured)Buffer<vector<[\w ]+, 3>", tree
            ):
                refused.append(
                    f"{name!r} has texels of three channels, and no format has: write the format of its "
                    'tensor before it, as [[vk::image_format("rgba32f")]], or declare a StructuredBuffer'
                )
    out = Rewriter(words)
    added: list[array.array[int]] = []

    def with_format(kind: int, form: int) -> int:
        """The type with this format in place of its own."""
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
    left = {
        variable
        for variable, image in images.items()
        if variable not in chosen and words[image + 7] == _STORAGE and words[image + 8] == _UNKNOWN
    }
    dropped = set() if left & (read | passed) else {_READ_UNKNOWN}
    if not left & (written | passed):
        dropped.add(_WRITE_UNKNOWN)
    extended = _EXTENDED not in capabilities and not _EXTENDED_FORMATS.isdisjoint(chosen.values())
    for capability, at in capabilities.items():
        kept = [words[at : at + 2]] if capability not in dropped else []
        if at == min(capabilities.values()) and extended:
            kept.append(encoded(_CAPABILITY, [_EXTENDED]))
        out.replace(at, *kept)
    return out.result(), refused
