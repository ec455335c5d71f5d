"""What DXC and Slang compile to other numbers than the source says is refused by name; the rest is right:
constants against Python's numbers, conversions against NumPy's, functions of an intrinsic's name.
"""

from __future__ import annotations

import operator
from itertools import product

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._compilers.dxc import Dxc
from kompute_py._compilers.faults import of_dxc, of_module
from kompute_py._compilers.libraries import find_library
from kompute_py._compilers.request import Request
from kompute_py._compilers.spirv_words import Module
from tests.support.languages import COMPILERS, dxc_is_old, needs_dxc, needs_slang
from tests.support.sampling import sampled

TYPES = {
    "int16_t": "i2", "uint16_t": "u2", "int": "i4", "uint": "u4", "int64_t": "i8", "uint64_t": "u8",
    "half": "f2", "float": "f4", "double": "f8",
}  # fmt: skip
INTEGERS = [name for name, code in TYPES.items() if code[0] != "f"]
SMALL, LARGE = ("shaderInt16", "storageBuffer16BitAccess"), ("shaderInt64",)


def ready(needs, mgr, *features):
    for each in features:
        needs(mgr, each)


MAIN = '[shader("compute")] [numthreads(1, 1, 1)] void main(uint3 id : SV_DispatchThreadID)'


def chosen(compiler):
    if compiler == "slang":
        return {"language": "slang"}
    return {"language": "hlsl", "compiler": compiler, "hlsl_16bit_types": True}


def compiled(compiler, code, head=""):
    """The SPIR-V of statements, which know arrays of all types: i2, u2, i4 and so on."""
    arrays = "".join(f"RWStructuredBuffer<{kind}> {kind[0]}{size[1]}; " for kind, size in TYPES.items())
    return kp.compile(f"{head}\n{arrays}\n{MAIN} {{ {code} }}", **chosen(compiler))


def quotient(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<": operator.lt, ">=": operator.ge, "==": operator.eq, "<<": operator.lshift,
    ">>": operator.rshift, "/": quotient, "%": lambda a, b: a - b * quotient(a, b),
}  # fmt: skip
# How a constant is written; both operands, but not both as numbers without a type.
FORMS = sampled(
    [("typed", "plain"), ("cast", "static")],
    [
        pair
        for pair in product(("typed", "plain", "static", "local", "cast"), repeat=2)
        if set(pair) != {"plain"}
    ],
)


@pytest.mark.filterwarnings("ignore::kompute_py.ShaderCompileWarning")
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("forms", FORMS, ids="-".join)
@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.sampled
def test_operators_of_constants(mgr, needs, kind, forms, compiler):
    dtype = np.dtype(TYPES[kind])
    ready(needs, mgr, *{2: SMALL, 8: LARGE}.get(dtype.itemsize, ()))
    bits, info = 8 * dtype.itemsize, np.iinfo(dtype)
    numbers = [0, 1, 7, info.max, info.max // 2 + 6, *((-1, -7, -info.max) if info.min else ())]
    if compiler == "slang" and bits == 64 and not info.min:
        numbers = [
            each for each in numbers if each < 1 << 63
        ]  # Slang compares them as signed (the guide says so)
    amounts = [0, 1, bits - 1]
    cases = [
        (sign, a, b)
        for sign in OPERATORS
        for a, b in product(numbers, amounts if sign in ("<<", ">>") else numbers)
        if not (sign in "/%" and b == 0) and not (sign in ("<<", ">>") and forms[0] == "plain")
    ]
    suffix = {"int": "", "uint": "u", "int64_t": "ll", "uint64_t": "ull"}.get(kind)

    def written(form, number):
        typed = f"(({kind})({number}))" if suffix is None or form == "cast" else f"({number}{suffix})"
        name = f"{form}_{str(number).replace('-', 'm')}"
        return {"plain": f"({number})", "static": name, "local": name, "value": typed}.get(form, typed)

    def declared(form):
        prefix = "static " * (form == "static")
        every = {*numbers, *amounts} if form in forms else ()
        return "".join(
            f"{prefix}const {kind} {written(form, each)} = {written('value', each)};\n" for each in every
        )

    lines = "".join(
        f"o[{n}] = ({kind})({written(forms[0], a)} {sign} {written(forms[1], b)});\n"
        for n, (sign, a, b) in enumerate(cases)
    )
    code = (
        f'{declared("static")}RWStructuredBuffer<{kind}> o;\n[shader("compute")] [numthreads(1, 1, 1)] '
        f"void main() {{\n{declared('local')}{lines}}}"
    )
    got = mgr.kernel(code, **chosen(compiler))(np.zeros(len(cases), dtype), groups=1)
    want = [int(OPERATORS[sign](a, b)) % (1 << bits) for sign, a, b in cases]
    wrong = [case for case, g, w in zip(cases, got, want, strict=True) if int(g) % (1 << bits) != w]
    assert not wrong


SHIFTS = [
    "u4[0] = 3u << 33;", "i8[0] = 1l << 40;", "u4[0] = 0x10u << 36;", "u4[0] = 1u << M;",
    "i4[0] = int(ONE << K);",
    "u4[0] = ONE >> (K + 1);",
    "u4[0] = 1u << -1;", "i8[0] = 1 << 40ll;", "i8[0] = 1ll << 64;",
    "u4[0] = 1u << TOO;",
    "i2[0] = (int16_t)1 << 16;", "const uint k = 33; u4[0] = 5u >> k;", "u4[0] = (1u + 2u) << (K / 1);",
]  # fmt: skip
HEAD = """#define M 33
#define ONE 1u
static const uint K = 32;
enum Far { FAR = 31, TOO };
"""
RIGHT = [
    "i8[0] = 1 << 40;", "i8[0] = (ONE << 31) + (1ull << 40) + (1ll << K);", "u4[0] = u4[1] << 33;",
    "i4[0] = i4[1] >> K;",
    "u4[0] = (uint2(3, 4) << uint2(32, 33)).y;", "uint f = 5; u4[0] = f >> 35;", "u4[0] = 1u << (FAR % 32);",
]  # fmt: skip


@pytest.mark.own_driver
@needs_dxc
@pytest.mark.parametrize("code", SHIFTS)
def test_constants_shifted_too_far_are_refused(code):
    with pytest.raises(
        kp.ShaderCompileError, match=r"wrong numbers: a constant of (16|32|64) bits shifted by"
    ):
        compiled("dxc", code, HEAD)


@pytest.mark.own_driver
@needs_dxc
@pytest.mark.parametrize("code", RIGHT)
def test_shifts_that_are_right_are_taken(code):
    assert compiled("dxc", code, HEAD + "uint idle() { return 1u << 40; }")


@pytest.mark.own_driver
@needs_slang
@pytest.mark.parametrize(
    "code",
    [
        "i8[0] = 1l << 40;", "i8[0] = ONE << 33;", "u4[0] = 1u << M;", "u4[0] = ONE << K;",
        "i8[0] = (ONE << M);",
    ],
)  # fmt: skip
def test_constants_shifted_too_far_in_slang_are_refused(code):
    with pytest.raises(kp.ShaderCompileError, match=r"is 0: .* has 32 bits"):
        compiled("slang", code, HEAD)
    assert compiled("slang", "u4[0] = ONE << 31; const uint k = 3; u4[1] = K << k; u4[2] = u4[3] << M;", HEAD)


@needs_dxc
@pytest.mark.parametrize("number", ["3000000000l", "0x1ffffffffu", "4294967296ul"])
def test_numbers_of_more_bits_than_their_suffix_has_are_refused(number):
    with pytest.raises(kp.ShaderCompileError, match=f"{number} has 32 bits, which are too few"):
        compiled("dxc", f"i8[0] = {number};")
    assert compiled("dxc", "i8[0] = 3000000000 + 3000000000ll + 4294967295u + 0xffffffffl + 0x1ffffffffull;")


@needs_slang
@pytest.mark.parametrize("code", ["(int16_t)-1", "int16_t(-1)", "SMALL"])
def test_countbits_of_small_constants_in_slang_is_refused(code):
    with pytest.raises(kp.ShaderCompileError, match="countbits of an int16_t counts its sign"):
        compiled("slang", f"u4[0] = countbits({code});", "static const int16_t SMALL = -1;")


def numbers(dtype):
    """Numbers of a type, some of which other types do not have."""
    values = [
        0, 1, -1, 7, -7, 32767, -32768, 40000, 70000, 2**31 - 1, -(2**31), 2**32 - 1, 2**40, -(2**40),
        2**53 + 1, 2**62,
    ]  # fmt: skip
    if dtype.kind == "f":
        values = [
            each for each in [*values, 0.75, -0.75, 2.5, 2048.5] if abs(each) <= float(np.finfo(dtype).max)
        ]
    else:
        values = [each for each in values if np.iinfo(dtype).min <= each <= np.iinfo(dtype).max]
    return np.array(values, dtype)


def kept(values, target):
    """Whether a number becomes one of the other type: those of floats that are too large do not."""
    if values.dtype.kind != "f" or target.kind == "f":
        return np.ones(values.size, bool)
    info = np.iinfo(target)
    return np.array([info.min <= int(each) <= info.max for each in values.tolist()])


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", TYPES)
def test_conversions(mgr, needs, kind, compiler):
    dtype = np.dtype(TYPES[kind])
    targets = {name: np.dtype(code) for name, code in TYPES.items()}
    ready(needs, mgr, *SMALL, *LARGE, "shaderFloat16", "shaderFloat64")
    values = numbers(dtype)
    head = f"StructuredBuffer<{kind}> x; " + "".join(
        f"RWStructuredBuffer<{each}> {each}s; " for each in targets
    )

    def code(names):
        body = "".join(f"{each}s[id.x] = ({each})x[id.x]; " for each in names)
        return f"{head}{MAIN} {{ {body}}}"

    narrow = [
        name
        for name, each in targets.items()
        if compiler == "dxc" and dtype.kind != "f" and each.kind == "f" and each.itemsize < dtype.itemsize
    ]
    for name in narrow:
        with pytest.raises(
            kp.ShaderCompileError, match="wrong numbers: a float made of an integer with more bits"
        ):
            mgr.kernel(code([name]), **chosen(compiler))
    rounds = compiler == "dxc" and dxc_is_old() and dtype.kind == "f"
    rounded = [
        name
        for name, each in targets.items()
        if rounds and each.itemsize < dtype.itemsize and each.kind != "f"
    ]
    for name in rounded:
        with pytest.raises(kp.ShaderCompileError, match=r"wrong numbers: an int\w* of a \w+ is rounded"):
            mgr.kernel(code([name]), **chosen(compiler))
    outs = {f"{name}s": np.zeros(values.size, each) for name, each in targets.items()}
    names = [name for name in targets if name not in narrow + rounded]
    mgr.kernel(code(names), **chosen(compiler))(x=values, **outs, groups=values.size)
    for name in names:
        right = kept(values, targets[name])
        with np.errstate(all="ignore"):
            want = values[right].astype(targets[name])
        np.testing.assert_array_equal(outs[f"{name}s"][right], want, err_msg=name)


NARROWED = [
    "f4[0] = i8[0];", "f4[0] += u8[0];", "float2 v = { i8[0], 1 }; f4[0] = v.x;",
    "f4[0] = (float3(1, i8[1], 2)).y;",
    "struct P { float a; float b; }; P p = (P)i8[0]; f4[0] = p.b;",
    "f4[0] = of(i8[0]);", "h2[0] = (half)i4[0];",
    "half2 v = int2(i4[0], 2); h2[0] = v.x;", "f4[0] = sqrt(u8[0]);", "f4[0] = u8[0] * 0.5f;",
]  # fmt: skip
CONVERTED = [
    "f4[0] = (float)(double)i8[0];", "f4[0] = (float)(uint)(u8[0] >> 40);", "int n = (int)i8[0]; f4[0] = n;",
    "h2[0] = (half)(float)i4[0];", "const int64_t k = 1ll << 40; f4[0] = (float)k + (half)3;",
    "d8[0] = i8[0]; d8[1] = i4[0]; f4[0] = u4[0];", "f4[0] = i8[0] < 3 ? 1 : 0;",
]  # fmt: skip


@pytest.mark.own_driver
@needs_dxc
@pytest.mark.parametrize("code", NARROWED)
def test_floats_of_longer_integers_are_refused(code):
    head = "template<typename T> float of(T x) { return x; } float idle(int64_t x) { return x; }"
    with pytest.raises(kp.ShaderCompileError, match="a float made of an integer with more bits"):
        compiled("dxc", code, head)


@pytest.mark.own_driver
@needs_dxc
@pytest.mark.parametrize("code", CONVERTED)
def test_floats_of_integers_that_are_right_are_taken(code):
    assert compiled("dxc", code)


@needs_dxc
def test_doubles_of_ints_compare_with_zero(mgr, needs):
    """lavapipe compares a double of an int64 of an int with 0 wrongly."""
    ready(needs, mgr, *LARGE, "shaderFloat64")
    code = """StructuredBuffer<int> x; RWStructuredBuffer<int> o;
[numthreads(1, 1, 1)] void main(uint3 id : SV_DispatchThreadID) { o[id.x] = (double)x[id.x] < 0 ? 2 : 3; }"""
    for optimize in (True, False):
        kernel = mgr.kernel(code, language="hlsl", compiler="dxc", optimize=optimize)
        assert kernel(np.int32([-7, 0, 7]), np.zeros(3, np.int32), groups=3).tolist() == [2, 3, 3]


CALLS = {  # functions with an intrinsic's name, and calls for which DXC has the intrinsic
    "float saturate(float x) { return 42; }": ["f4[0] = saturate(f4[1]);", "f4[0] = saturate(0.5);"],
    "uint min(uint a, uint b) { return 42; }": ["u4[0] = min(u4[1], u4[2]);", "u4[0] = min(id.x, 3);"],
    "float3 lerp(float3 a, float3 b, float3 t) { return 42; }": ["float3 a = id; f4[0] = lerp(a, a, a).x;"],
    "template<typename T> T clamp(T a, T b, T c) { return 42; }": ["f4[0] = clamp(f4[1], 1.0f, f4[2]);"],
    "namespace my { float rcp(float x) { return 42; } float f(float x) { return rcp(x); } }": [
        "f4[0] = my::f(f4[1]);"
    ],
}
OTHER_CALLS = {
    "struct S { int n; }; int min(S a, S b) { return 42; }":
        "S s = { 3 }; i4[0] = min(s, s) + min(i4[1], i4[2]);",
    "namespace my { float saturate(float x) { return 42; } }":
        "f4[0] = my::saturate(f4[1]) + saturate(f4[2]);",
    "struct S { float saturate(float x) { return 42; } };":
        "S s; f4[0] = s.saturate(f4[1]) + saturate(f4[2]);",
    "float saturate(float x) { return 42; }": "f4[0] = saturate(float2(f4[1], 1)).x;",
    "float twice(float x) { return 2 * x; }": "f4[0] = twice(saturate(f4[1]));",
}  # fmt: skip


@pytest.mark.own_driver
@needs_dxc
@pytest.mark.parametrize(("head", "code"), [(head, code) for head in CALLS for code in CALLS[head]])
def test_functions_behind_an_intrinsic_are_refused(head, code):
    with pytest.raises(kp.ShaderCompileError, match="is the intrinsic, not your function: name it otherwise"):
        compiled("dxc", code, head)


@pytest.mark.own_driver
@needs_dxc
@pytest.mark.parametrize("head", OTHER_CALLS)
def test_functions_beside_an_intrinsic_are_taken(head):
    assert compiled("dxc", OTHER_CALLS[head], head)


@needs_slang
def test_functions_of_an_intrinsics_name_are_called_in_slang(mgr):
    code = """float saturate(float x) { return 42; } uint min(uint a, uint b) { return 43; }
RWStructuredBuffer<float> x;
[shader("compute")] [numthreads(1, 1, 1)] void main() {
    x[0] = saturate(x[0]); x[1] = min(uint(x[1]), 1u); }"""
    assert mgr.kernel(code, language="slang")(np.ones(2, np.float32), groups=1).tolist() == [42, 43]


# -- older DXC -----------------------------------------------------------------------------------------------


@needs_dxc
@pytest.mark.parametrize(
    ("head", "code", "fault"),
    [
        ("struct P { uint a : 5; };", "P p; p.a = u4[0]; u4[1] = p.a;", "a bit field has"),
        ("", "i2[0] = (int16_t)f4[0];", "an int16_t of a float"),
        ("", "u2[0] = (uint16_t)d8[0];", "an int16_t of a float"),
        ("", "u4[0] = (uint)d8[0];", "an int of a double"),
        ("", "i4[0] = d8[0];", "an int of a double"),
        (
            "struct In { uint3 a : SV_GroupID; };",
            "i2[0] = (int16_t)(int)f4[0]; i2[1] = i2[2]; i4[0] = (int)f4[1]; i4[1] = (int)(int64_t)d8[0];",
            None,
        ),
    ],
)
def test_what_dxc_before_1_8_makes_wrong_numbers_of_is_refused(head, code, fault):
    """Seen with the library in compushady 0.17.5, by the tree of this one."""
    arrays = "".join(f"RWStructuredBuffer<{kind}> {kind[0]}{size[1]}; " for kind, size in TYPES.items())
    text = f"{head} {arrays} {MAIN} {{ {code} }}".encode()
    library = find_library("dxc")
    assert library is not None
    given = Request(text, "<x>", language="hlsl", hlsl_16bit_types=True)
    made = Dxc(library.path).compile(given)
    tree = made.tree()
    assert tree
    assert [each for _, each in of_dxc(Module(made.spirv), "", tree, False)] == []
    found = [each for _, each in of_dxc(Module(made.spirv), "", tree, True)]
    assert found == [] if fault is None else found and found[0].startswith(fault)


def test_the_highest_bit_of_signed_numbers_by_an_unsigned_operation_is_refused():
    def module(kind):
        return kp._native.assemble_spirv(
            f"""OpCapability Shader
%1 = OpExtInstImport "GLSL.std.450"
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 1 1 1
%void = OpTypeVoid
%function = OpTypeFunction %void
%uint = OpTypeInt 32 0
%int = OpTypeInt 32 1
%number = OpConstant %{kind} 5
%main = OpFunction %void None %function
%label = OpLabel
%found = OpExtInst %uint %1 FindUMsb %number
OpReturn
OpFunctionEnd
""".encode(),
            2,
            b"<x>",
        )

    assert of_module(Module(module("uint"))) is None
    assert "firstbithigh of a signed integer" in (of_module(Module(module("int"))) or "")
