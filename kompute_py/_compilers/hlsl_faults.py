"""The known faults of glslang's front end for HLSL, mended in its SPIR-V, or refused if that is impossible.

- WavePrefixSum and WavePrefixProduct become inclusive scans: they are made exclusive. HLSL has no inclusive
  ones.
- ``fmod`` and ``%`` become OpFMod and OpSMod, which give the divisor's sign: they are made OpFRem and
  OpSRem, which have the dividend's. Of constant floats, and of `int` variables that hold negative constants,
  they are folded to the wrong number, which does not show in SPIR-V: refused (hlsl_text.py), as are dot
  products of constant integers.
- ``*`` of two matrices is the product of matrices, as mul() is; ``any`` and ``all`` of a matrix are folded:
  refused.
- ``any`` and ``all`` of constant floats are folded to false: macros compare their argument with 0 first
  (`MACROS`). Of scalars they are refused, since they then become what is no SPIR-V.
- ``mad`` of integers becomes an operation on floats, which is no SPIR-V: a macro multiplies and adds.
- ``InterlockedCompareStore`` is left out, and ``lit`` multiplies by the exponent: refused.
- ``GetDimensions`` of a byte-address buffer gives words: it is multiplied by 4. Refused where the buffer is
  not named.
- The block of uniforms that are in none is called ``$Global``: it gets Slang's name, which is a word.
- ``[[vk::push_constant]]`` on a variable is ignored, so that push constants become a uniform buffer: refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .hlsl_text import matrices_misread, remainder_of_constants
from .hlsl_values import remainder_misread, shift_misread
from .spirv_words import (
    ARRAY_LENGTH,
    CONSTANT,
    DECORATE,
    FUNCTION,
    NAME,
    TYPE_INT,
    TYPE_POINTER,
    TYPE_RUNTIME_ARRAY,
    TYPE_STRUCT,
    TYPES,
    VARIABLE,
    Rewriter,
    encoded,
    instructions,
    text_at,
    words_of,
)

MACROS = (
    (b"any(kp_value)", b"any((kp_value) != 0)"),
    (b"all(kp_value)", b"all((kp_value) != 0)"),
    (b"mad(kp_a, kp_b, kp_c)", b"((kp_a) * (kp_b) + (kp_c))"),
)
"""Macros that go before a source, except those of which it has its own macro or function."""

_SCANS = range(349, 353)  # OpGroupNonUniformIAdd, FAdd, IMul, FMul
_INCLUSIVE, _EXCLUSIVE = 1, 2
_REMAINDERS = {141: 140, 139: 138}  # OpFMod to OpFRem, OpSMod to OpSRem
_SPEC_CONSTANT_OP = 52
_IMUL = 132
_MATRIX_TIMES_MATRIX = 146
_ARRAY_STRIDE = 6
_PUSH_CONSTANT = 9

_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PUSH = re.compile(rb"\[\[[^\]]*\bpush_constant\b")
_PLACES = re.compile(rb":\s*\w+\s*\([^)]*\)|\[\[[^\]]*\]\]")  # of registers
_BYTES = re.compile(rb"\b(?:RW)?ByteAddressBuffer\s+([^;{}()]*)")
_NAMES = re.compile(rb"(?:^|,)\s*([A-Za-z_]\w*)")
_MISREAD = {
    b"InterlockedCompareStore": "is left out; call InterlockedCompareExchange",
    b"lit": "multiplies by the exponent; call pow()",
}


def explained(message: str) -> str | None:
    """The cause behind a compiler's message; None if the message is about the source."""
    if "Expected operand to be vector bool: A" in message:
        return "any() and all() of a scalar are not understood; compare it with 0 instead"
    if "GLSL.std.450 Ldexp" in message:
        return "ldexp() is not understood; multiply by exp2() of the exponent"
    if "Matrix types can only be parameterized with floating-point" in message:
        return "matrices of integers or bools are not understood"
    return None


class Refused(Exception):
    """The source would compute something else than it says; says why."""


def without_comments(texts: Iterable[bytes]) -> bytes:
    """All the code."""
    return b"\n".join(_COMMENT.sub(b" ", text) for text in texts)


_COUNTERS = re.compile(
    rb"\b(?:Append|Consume)StructuredBuffer\b|\.\s*(?:Increment|Decrement)Counter(?=\s*\()"
)
_CONSTANT_ID = re.compile(rb"\[\[\s*vk\s*::\s*constant_id\s*\([^\]]*\]\]\s*([^;=]*?)\b([A-Za-z_]\w*)\s*=")
_NUMTHREADS = re.compile(rb"\[\s*numthreads\s*\(([^\]]*)\)\s*\]")


def hidden_counter(code: bytes) -> str | None:
    """The use of a buffer's hidden counter, which Vulkan lacks, with the alternative; None if
    nothing does.
    """
    found = _COUNTERS.search(code)
    if found is None:
        return None
    name = found[0].lstrip(b". \t\r\n").decode()
    return (
        f"{name} uses a buffer's hidden counter, which Vulkan does not have; declare a "
        "RWStructuredBuffer<uint> of one "
        "element for the count and call InterlockedAdd(count[0], 1, index)"
    )


def check_before(texts: Iterable[bytes]) -> None:
    """Raises Refused for what the front end crashes on, or leaves out; `texts` may lack files on disk."""
    code = without_comments(texts)
    counter = hidden_counter(code)
    if counter is not None:
        raise Refused(counter)
    constants = {name for _, name in _CONSTANT_ID.findall(code)}
    for arguments in _NUMTHREADS.findall(code):
        for name in re.findall(rb"[A-Za-z_]\w*", arguments):
            if name in constants:
                raise Refused(
                    f"[numthreads] with the specialization constant {name.decode()!r} is not understood; "
                    "write a number or a macro"
                )


def macros(texts: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    """The macros to define for a source with these texts."""
    code = without_comments(texts)
    return [each for each in MACROS if not _has_own(code, each[0].split(b"(")[0])]


def _has_own(code: bytes, name: bytes) -> bool:
    """Whether `code` defines a macro or a function of this name."""
    return (
        re.search(
            rb"#[ \t]*define[ \t]+%s\b|\b(?!return\b|else\b)[A-Za-z_]\w*\s+%s\s*\(" % (name, name), code
        )
        is not None
    )


def mended(spirv: bytes, texts: Iterable[bytes], defines: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The module as its source means it. `texts` are the source and all that it includes. Raises Refused."""
    words = words_of(spirv)
    code = without_comments(texts)
    out = Rewriter(words)
    names: dict[int, str] = {}
    pointers: dict[int, int] = {}
    variables: dict[int, int] = {}  # -> type of the pointer
    structs: dict[int, list[int]] = {}
    arrays: dict[int, int] = {}
    strides: dict[int, int] = {}
    whole: set[int] = set()
    pushes = products = False
    first_function = 0
    lengths: list[tuple[int, int, int, int]] = []
    four = 0
    for opcode, at, length in instructions(words):
        if opcode == NAME:
            names[words[at + 1]] = text_at(words, at + 2, at + length)
            if names[words[at + 1]] == "$Global":
                out.replace(at, encoded(NAME, [words[at + 1]], "GlobalParams"))
        elif opcode == DECORATE and words[at + 2] == _ARRAY_STRIDE:
            strides[words[at + 1]] = words[at + 3]
        elif opcode in TYPES:
            if opcode == TYPE_POINTER:
                pointers[words[at + 1]] = words[at + 3]
            elif opcode == TYPE_STRUCT:
                structs[words[at + 1]] = list(words[at + 2 : at + length])
            elif opcode == TYPE_RUNTIME_ARRAY:
                arrays[words[at + 1]] = words[at + 2]
            elif opcode == TYPE_INT and words[at + 2] == 32:
                whole.add(words[at + 1])
        elif opcode == VARIABLE:
            variables[words[at + 2]] = words[at + 1]
            pushes = pushes or words[at + 3] == _PUSH_CONSTANT
        elif opcode == FUNCTION:
            first_function = first_function or at
        elif opcode in _SCANS and words[at + 4] == _INCLUSIVE:
            changed = words[at : at + length]
            changed[4] = _EXCLUSIVE
            out.replace(at, changed)
        elif opcode in _REMAINDERS:
            changed = words[at : at + length]
            changed[0] = _REMAINDERS[opcode] | length << 16
            out.replace(at, changed)
        elif opcode == _SPEC_CONSTANT_OP and words[at + 3] in _REMAINDERS:
            changed = words[at : at + length]
            changed[3] = _REMAINDERS[changed[3]]
            out.replace(at, changed)
        elif opcode == _MATRIX_TIMES_MATRIX:
            products = True
        elif opcode == ARRAY_LENGTH:
            lengths.append((at, words[at + 1], words[at + 2], words[at + 3]))
    macros = [(name.decode(errors="replace"), value.decode(errors="replace")) for name, value in defines]
    found = remainder_of_constants(code.decode(errors="replace"), macros)
    if found is not None:
        raise Refused(f"{found}, of constants, is folded to a wrong number")
    found = remainder_misread(code.decode(errors="replace"), macros)
    if found is not None:
        raise Refused(
            f"{found}, if of constants, is folded to a number with the divisor's sign; make an operand a uint"
        )
    found = shift_misread(code.decode(errors="replace"), macros, True)
    if found is not None:
        raise Refused(f"{found}: a shift by as many bits as there are, or more, is folded to 0; write & 31")
    found = matrices_misread(code.decode(errors="replace"), products)
    if found is not None:
        raise Refused(f"{found}, of matrices, is not done component by component")
    for name, instead in _MISREAD.items():
        if re.search(rb"\b%s\s*\(" % name, code) and not _has_own(code, name):
            raise Refused(f"{name.decode()}() {instead}")
    if _PUSH.search(code) and not pushes:
        raise Refused("[[vk::push_constant]] on a variable is ignored, so that it would be a uniform buffer")

    counter = hidden_counter(code)
    if counter is not None:
        raise Refused(counter)
    if lengths and b"ByteAddressBuffer" in code:
        code = _PLACES.sub(b"", code)
        named = {name for each in _BYTES.findall(code) for name in _NAMES.findall(each)}
        constant = None
        for at, kind, result, pointer in lengths:
            members = structs.get(pointers.get(variables.get(pointer, 0), 0), [])
            if len(members) != 1 or strides.get(members[0]) != 4 or arrays.get(members[0]) not in whole:
                if pointer in variables:
                    continue  # structures: their number is what was asked for
                raise Refused("GetDimensions of a buffer that is passed to a function may count words")
            name = names.get(pointer, "").encode()
            if name not in named:
                if re.search(
                    rb"StructuredBuffer\s*<[^>]*>\s*([^;{}()]*,\s*)?" + re.escape(name) + rb"\b", code
                ):
                    continue
                raise Refused(f"GetDimensions of {name.decode()!r} may count words")
            if constant is None:
                constant = out.fresh()
                four = kind
                begin = words[first_function : first_function + (words[first_function] >> 16)]
                out.replace(first_function, encoded(CONSTANT, [four, constant, 4]), begin)
            count = out.fresh()
            out.replace(
                at,
                encoded(ARRAY_LENGTH, [kind, count, pointer, words[at + 4]]),
                encoded(_IMUL, [kind, result, count, constant]),
            )
    return out.result()
