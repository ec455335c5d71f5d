"""Formats of images that a source in Slang or HLSL reads without naming one: Slang infers those of integers,
and leaves floats unknown.

Reading an image of unknown format needs the device's feature shaderStorageImageReadWithoutFormat. The
declared type says enough, as it does to glslang: `RWTexture2D<float4>` is rgba32f. Images that are only
written stay without a format, so that any image can be bound.
"""

from __future__ import annotations

import re

from .spirv_words import (
    FUNCTION,
    NAME,
    TYPE_POINTER,
    VARIABLE,
    Rewriter,
    encoded,
    instructions,
    text_at,
    words_of,
)

_DECLARED = re.compile(
    r"(\[\[[^\]]*\]\]\s*)*\b(?:RW|RasterizerOrdered)(?:Texture[123]D(?:Array)?|Buffer)\s*<\s*([\w\s]+?)\s*>\s*([^;(){}]*)"
)
_NAME = re.compile(r"(?:^|,)\s*([A-Za-z_]\w*)")
_FORMATS = {"float": 3, "float1": 3, "float2": 6, "float4": 1}  # R32f, Rg32f, Rgba32f
_CAPABILITY, _TYPE_IMAGE, _LOAD, _IMAGE_READ, _IMAGE_WRITE = 17, 25, 61, 98, 99
_IMAGE_QUERIES = (104, 106, 107)  # OpImageQuerySize, OpImageQueryLevels, OpImageQuerySamples
_EXTENDED, _READ, _WRITE = (
    49,
    55,
    56,
)  # capabilities: StorageImageExtendedFormats, ...ReadWithoutFormat, ...WriteWithoutFormat
_ANNOTATIONS = (5, 71)  # OpName, OpDecorate
_ARRAYS = (28, 29)  # OpTypeArray, OpTypeRuntimeArray
_LITERALS_FROM = {
    79: 5,
    81: 4,
    82: 5,
}  # OpVectorShuffle, OpCompositeExtract, OpCompositeInsert: words before their literals
_UNKNOWN = 0


def with_formats(spirv: bytes, code: str) -> bytes:
    """The module with the formats that the declarations in `code`, which has no comments, stand for."""
    declared: dict[str, set[int]] = {}
    for attributes, element, listed in _DECLARED.findall(code):
        known = _FORMATS.get(element, _UNKNOWN) if "image_format" not in attributes else _UNKNOWN
        for name in _NAME.findall(listed):
            declared.setdefault(name, set()).add(known)
    words = words_of(spirv)
    names: dict[int, str] = {}
    images: dict[int, int] = {}  # types of images of unknown format: id -> place
    same: dict[tuple[int, ...], int] = {}
    pointers: dict[int, int] = {}
    pointer_to: dict[int, int] = {}
    variables: dict[int, tuple[int, int]] = {}  # id -> place, type of the image
    loads: dict[int, tuple[int, int]] = {}  # id -> variable, place
    read: set[int] = set()
    written: set[int] = set()
    other: set[int] = set()  # used in other ways
    capabilities: dict[int, int] = {}
    inside = False
    for opcode, at, length in instructions(words):
        inside = inside or opcode == FUNCTION
        if opcode == _CAPABILITY:
            capabilities[words[at + 1]] = at
        elif opcode == NAME:
            names[words[at + 1]] = text_at(words, at + 2, at + length)
        elif opcode == _TYPE_IMAGE:
            same[tuple(words[at + 2 : at + length])] = words[at + 1]
            if words[at + 7] == 2 and words[at + 8] == _UNKNOWN:
                images[words[at + 1]] = at
        elif opcode == TYPE_POINTER:
            pointers[words[at + 1]] = words[at + 3]
            if words[at + 2] == 0:
                pointer_to[words[at + 3]] = words[at + 1]
        elif opcode == VARIABLE and not inside:
            if pointers.get(words[at + 1]) in images:
                variables[words[at + 2]] = (at, pointers[words[at + 1]])
        elif inside:
            if opcode == _LOAD and words[at + 3] in variables:
                loads[words[at + 2]] = (words[at + 3], at)
                continue
            place = {_IMAGE_READ: 3, _IMAGE_WRITE: 1}.get(opcode, 3 if opcode in _IMAGE_QUERIES else 0)
            if place and words[at + place] in loads:
                {_IMAGE_READ: read, _IMAGE_WRITE: written}.get(opcode, set()).add(loads[words[at + place]][0])
            for k in range(at + 1, at + _LITERALS_FROM.get(opcode, length)):
                if k != at + place and opcode not in _ANNOTATIONS:
                    if words[k] in variables:
                        other.add(words[k])
                    elif words[k] in loads:
                        other.add(loads[words[k]][0])
    chosen = {}
    for variable in read - other:
        forms = declared.get(re.sub(r"_\d+$", "", names.get(variable, "")), set()) | declared.get(
            names.get(variable, ""), set()
        )
        if len(forms) == 1 and _UNKNOWN not in forms:
            chosen[variable] = min(forms)
    if not variables and not chosen:
        return spirv
    out = Rewriter(words)
    added: dict[int, list[list[int]]] = {}  # by the type that they follow
    made: dict[tuple[int, int], tuple[int, int]] = {}  # image type, format -> the new one, its pointer
    for variable, form in sorted(chosen.items()):
        at, kind = variables[variable]
        if (kind, form) not in made:
            place = images[kind]
            fields = list(words[place + 2 : place + (words[place] >> 16)])
            fields[6] = form
            image = same.get(tuple(fields), 0)
            pointer = pointer_to.get(image, 0)
            parts = added.setdefault(kind, [])
            if not image:
                image = out.fresh()
                parts.append([_TYPE_IMAGE, image, *fields])
            if not pointer:
                pointer = out.fresh()
                parts.append([TYPE_POINTER, pointer, 0, image])
            made[kind, form] = (image, pointer)
        out.replace(
            at, encoded(VARIABLE, [made[kind, form][1], variable, *words[at + 3 : at + (words[at] >> 16)]])
        )
    first = min(at for at, _ in variables.values())
    changed = next(
        (
            encoded(VARIABLE, [made[kind, chosen[each]][1], each, *words[at + 3 : at + (words[at] >> 16)]])
            for each, (at, kind) in variables.items()
            if at == first and each in chosen
        ),
        words[first : first + (words[first] >> 16)],
    )
    types = [encoded(part[0], part[1:]) for parts in added.values() for part in parts]
    out.replace(first, *types, changed)
    for result, (variable, at) in loads.items():
        if variable in chosen:
            image = made[variables[variable][1], chosen[variable]][0]
            out.replace(at, encoded(_LOAD, [image, result, *words[at + 3 : at + (words[at] >> 16)]]))
    left = set(variables) - set(chosen)
    in_arrays = any(opcode in _ARRAYS and words[at + 2] in images for opcode, at, _ in instructions(words))
    dropped = set()
    if not in_arrays and not left & (read | other):
        dropped = {_READ} if left else {_READ, _WRITE}
    for capability, at in capabilities.items():
        kept = [words[at : at + 2]] if capability not in dropped else []
        if at == min(capabilities.values()) and 6 in chosen.values() and _EXTENDED not in capabilities:
            kept.append(encoded(_CAPABILITY, [_EXTENDED]))
        out.replace(at, *kept)
    return out.result()
