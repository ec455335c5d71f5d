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

from .spirv_words import CAPABILITY, HEADER, PASSES, TYPE_POINTER, Module, encoded

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
_TYPE_IMAGE, _READ, _WRITE = 25, 98, 99
_PARTS = (61, 65, 66)  # loads and access chains
_OF_IMAGE = {**dict.fromkeys((*_PARTS, _READ), 3), _WRITE: 1}  # the word of the image
_BUFFER, _STORAGE = 5, 2  # a dimension; "sampled" of storage images
_EXTENDED, _READ_UNKNOWN, _WRITE_UNKNOWN = 49, 55, 56  # capabilities


def set_formats(module: Module, code: str, tree: str) -> list[str]:
    """Gives the module the formats that the declarations in `code`, which has no comments, stand for. Returns
    a sentence for each texel buffer of three channels, which no format has: with a flat array a read would
    give one number and two zeros. `tree` is DXC's syntax tree, which knows the types behind other names.
    """
    declared: dict[str, set[str]] = {}
    for attributes, element, listed in _DECLARED.findall(code):
        kind = "" if "format" in attributes else " ".join(element.split()) or "float4"
        for name in _NAME.findall(listed):
            declared.setdefault(name, set()).add(kind)
    words = module.words
    images: dict[int, int] = {}  # variable -> index of its image's type
    places: dict[int, list[int]] = {}  # variable -> indices of the instructions that make it and its parts
    for variable, at in module.variables():
        held = words[at + 1]
        while inner := module.inner(held):
            held = inner
        image = module.places.get(held, 0)
        if module.kind(held) == _TYPE_IMAGE and words[image + 8] in (_UNKNOWN, *_FLOATS.values(), *_FOUR):
            if words[image + 7] == _STORAGE or words[image + 3] == _BUFFER:
                images[variable], places[variable] = image, [at]
    if not images:
        return []
    roots = {each: each for each in images}  # and what is made of them: pointers to elements, loaded images
    read: set[int] = set()
    written: set[int] = set()
    passed: set[int] = set()
    for opcode, at, length in module.body:
        if opcode in PASSES:
            passed.update(roots[each] for each in words[at + 1 : at + length] if each in roots)
        elif (root := roots.get(words[at + _OF_IMAGE[opcode]]) if opcode in _OF_IMAGE else None) is None:
            continue
        elif opcode in _PARTS:
            roots[words[at + 2]] = root
            places[root].append(at)
        elif opcode in (_READ, _WRITE):
            (written if opcode == _WRITE else read).add(root)

    chosen: dict[int, int] = {}
    refused: list[str] = []
    for variable, image in images.items():
        name = re.sub(r"_\d+$", "", module.names.get(variable, ""))
        last = name.rpartition(".")[2]  # of a member's
        kinds = declared.get(module.names.get(variable, ""), set()) | declared.get(last, set())
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

    known = {
        (words[at : at + 1] + words[at + 2 : at + (words[at] >> 16)]).tobytes(): each
        for each, at in module.places.items()
    }
    added: list[array.array[int]] = []

    def with_format(kind: int, form: int) -> int:
        """The type with this format in place of its own."""
        at = module.places[kind]
        made = words[at : at + (words[at] >> 16)]
        if module.kind(kind) == _TYPE_IMAGE:
            made[8] = form
        else:
            place = 3 if module.kind(kind) == TYPE_POINTER else 2
            made[place] = with_format(made[place], form)
        key = (made[:1] + made[2:]).tobytes()
        if key not in known:
            known[key] = made[1] = module.fresh()
            added.append(made)
        return known[key]

    for variable, form in sorted(chosen.items()):
        for at in places[variable]:
            words[at + 1] = with_format(words[at + 1], form)
    module.insert(min(each[0] for each in places.values()), *added)
    left = {
        variable
        for variable, image in images.items()
        if variable not in chosen and words[image + 7] == _STORAGE and words[image + 8] == _UNKNOWN
    }
    capabilities = {words[at + 1]: at for opcode, at, _ in module.head if opcode == CAPABILITY}
    for capability, users in ((_READ_UNKNOWN, read), (_WRITE_UNKNOWN, written)):
        if capability in capabilities and not left & (users | passed):
            module.replace(capabilities[capability])
    if _EXTENDED not in capabilities and not _EXTENDED_FORMATS.isdisjoint(chosen.values()):
        module.insert(HEADER, encoded(CAPABILITY, [_EXTENDED]))
    return refused
