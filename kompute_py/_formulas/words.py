"""The words of GLSL."""

from __future__ import annotations

import itertools

_SHAPES = (
    "1D",
    "1DArray",
    "2D",
    "2DArray",
    "2DMS",
    "2DMSArray",
    "2DRect",
    "3D",
    "Buffer",
    "Cube",
    "CubeArray",
)
_SHADOWS = ("", "1D", "1DArray", "2D", "2DArray", "2DRect", "3DRect", "Cube", "CubeArray")
_SIZES = ("2", "3", "4")


def _types() -> list[str]:
    """The types that differ by dimensions and widths."""
    found = [f"{a}mat{m}x{n}" for a in ("", "d") for m, n in itertools.product(_SIZES, _SIZES)]
    for letter, kind, shape in itertools.product(("", "i", "u"), ("sampler", "image", "texture"), _SHAPES):
        found.append(f"{letter}{kind}{shape}")
    found += [f"sampler{shape}Shadow" for shape in _SHADOWS] + ["sampler3DRect"]
    found += [f"{letter}subpassInput{ms}" for letter in ("", "i", "u") for ms in ("", "MS")]
    for letter, name, widths in (("i", "int", (8, 16, 32, 64)), ("u", "uint", (8, 16, 32, 64)),
                                 ("f", "float", (16, 32, 64))):  # fmt: skip
        for width in widths:
            found.append(f"{name}{width}_t")
            found += [f"{letter}{width}vec{n}" for n in _SIZES]
    for width in (16, 32, 64):
        found += [f"f{width}mat{n}" for n in _SIZES]
        found += [f"f{width}mat{m}x{n}" for m, n in itertools.product(_SIZES, _SIZES)]
    return found


# The keywords of GLSL 4.50 with the extensions of generated kernels, and the words that it reserves, without
# those that no Python identifier can be; and names in all kernels.
GLSL_WORDS = frozenset(
    [
        *_types(),
        "active",
        "asm",
        "atomic_uint",
        "attribute",
        "bool",
        "break",
        "buffer",
        "bvec2",
        "bvec3",
        "bvec4",
        "case",
        "cast",
        "centroid",
        "class",
        "coherent",
        "common",
        "const",
        "continue",
        "default",
        "discard",
        "dmat2",
        "dmat3",
        "dmat4",
        "do",
        "double",
        "dvec2",
        "dvec3",
        "dvec4",
        "else",
        "enum",
        "extern",
        "external",
        "false",
        "filter",
        "fixed",
        "flat",
        "float",
        "for",
        "fvec2",
        "fvec3",
        "fvec4",
        "goto",
        "half",
        "highp",
        "hvec2",
        "hvec3",
        "hvec4",
        "if",
        "image1D",
        "image2D",
        "image3D",
        "in",
        "inline",
        "inout",
        "input",
        "int",
        "interface",
        "invariant",
        "isampler2D",
        "isampler3D",
        "ivec2",
        "ivec3",
        "ivec4",
        "layout",
        "long",
        "lowp",
        "mat2",
        "mat3",
        "mat4",
        "mediump",
        "namespace",
        "noinline",
        "noperspective",
        "out",
        "output",
        "partition",
        "patch",
        "precise",
        "precision",
        "public",
        "readonly",
        "resource",
        "restrict",
        "return",
        "sample",
        "sampler",
        "sampler1D",
        "sampler2D",
        "sampler3D",
        "shared",
        "short",
        "sizeof",
        "smooth",
        "static",
        "struct",
        "subroutine",
        "superp",
        "switch",
        "template",
        "texture2D",
        "this",
        "true",
        "typedef",
        "uint",
        "uimage2D",
        "uniform",
        "union",
        "unsigned",
        "using",
        "usampler2D",
        "uvec2",
        "uvec3",
        "uvec4",
        "varying",
        "vec2",
        "vec3",
        "vec4",
        "void",
        "volatile",
        "while",
        "writeonly",
        "devicecoherent",
        "nonprivate",
        "pervertexEXT",
        "pervertexNV",
        "queuefamilycoherent",
        "shadercallcoherent",
        "subgroupcoherent",
        "workgroupcoherent",
        "main",
        "barrier",
        "gl",  # a tensor x has the name x_load
        "i",
    ]
)
