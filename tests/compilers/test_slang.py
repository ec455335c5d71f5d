"""Slang sources: what they mean, their includes and modules, the cache, hot reload; and one shader in three
languages.
"""

from __future__ import annotations

import os
import textwrap

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._compilers import compile as shader
from kompute_py._compilers import languages as shader_languages
from kompute_py._compilers.libraries import find_library
from tests.support.languages import needs_dxc, needs_slang, shape

pytestmark = needs_slang

SCALE = """
StructuredBuffer<float> x;
RWStructuredBuffer<float> y;
[shader("compute")] [numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uniform float factor) {
    uint n, stride;
    x.GetDimensions(n, stride);
    if (id.x < n) y[id.x] = factor * x[id.x];
}
"""


def test_a_kernel(mgr):
    kernel = mgr.kernel(SCALE, language="slang")
    assert kernel.module.language == "slang" and kernel.module.compiler.startswith("Slang 20")
    assert kernel.signature.text("k") == "k(float[] x, out float[] y, *, float factor)"
    x = np.arange(100, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x, np.zeros_like(x), factor=3, groups=2), 3 * x)


def test_generics_and_interfaces(mgr):
    source = """
interface IOperation { static float of(float a, float b); }
struct Add : IOperation { static float of(float a, float b) { return a + b; } }
struct Most : IOperation { static float of(float a, float b) { return max(a, b); } }
float folded<T : IOperation>(StructuredBuffer<float> x, uint n) {
    float value = x[0];
    for (uint i = 1; i < n; ++i) value = T::of(value, x[i]);
    return value;
}
StructuredBuffer<float> x;
RWStructuredBuffer<float> y;
[numthreads(1, 1, 1)] void main() { y[0] = folded<Add>(x, 4); y[1] = folded<Most>(x, 4); }
"""
    kernel = mgr.kernel(source, language="slang")
    assert kernel(np.float32([1, 5, 2, 3]), np.zeros(2, np.float32), groups=1).tolist() == [11, 5]


# -- one shader in three languages ---------------------------------------------------------------------------

GLSL = """#version 450
layout(local_size_x = 32) in;
struct Item { vec2 place; float weight; uint kind; };
layout(std140, binding = 0) uniform Arguments { float scale; uint count; vec4 offset; mat4 turn; };
layout(std430, binding = 1) readonly buffer Items { Item items[]; };
layout(std430, binding = 2) buffer Sums { float sums[]; };
layout(std430, binding = 3) writeonly buffer Kinds { uvec4 kinds[]; };
layout(constant_id = 3) const int TIMES = 2;
shared float part[32];
void main() {
    uint i = gl_GlobalInvocationID.x, local = gl_LocalInvocationIndex;
    part[local] = i < count ? items[i].weight * scale + (turn * vec4(items[i].place, 0,
    1) + offset).x * TIMES : 0;
    barrier();
    if (i >= count) return;
    sums[i] += part[local] + part[31 - local];
    kinds[i] = uvec4(items[i].kind, i, local, gl_WorkGroupID.x);
}
"""
HLSL = """
struct Item { float2 place; float weight; uint kind; };
[[vk::binding(0)]] cbuffer Arguments { float scale; uint count; float4 offset; float4x4 turn; };
[[vk::binding(1)]] StructuredBuffer<Item> items;
[[vk::binding(2)]] RWStructuredBuffer<float> sums;
[[vk::binding(3)]] RWStructuredBuffer<uint4> kinds;
[[vk::constant_id(3)]] const int TIMES = 2;
groupshared float part[32];
[numthreads(32, 1, 1)] void main(uint3 id : SV_DispatchThreadID, uint local : SV_GroupIndex,
uint3 group : SV_GroupID) {
    uint i = id.x;
    part[local] = 0;
    if (i < count) part[local] = items[i].weight * scale + (mul(turn, float4(items[i].place, 0,
    1)) + offset).x * TIMES;
    GroupMemoryBarrierWithGroupSync();
    if (i >= count) return;
    sums[i] += part[local] + part[31 - local];
    kinds[i] = uint4(items[i].kind, i, local, group.x);
}
"""
# In memory Slang's matrices have rows first, unless they are told otherwise.
SLANG = HLSL.replace("float4x4 turn", "column_major float4x4 turn")
THREE = {
    "glsl": (GLSL, {}),
    "hlsl": (HLSL, {"compiler": "slang"}),
    "hlsl by dxc": (HLSL, {"compiler": "dxc"}),
    "slang": (SLANG, {}),
}


@pytest.mark.parametrize("name", THREE)
def test_one_shader_in_three_languages(mgr, name):
    """The same signature but for the matrix's name, and the same result."""
    source, options = THREE[name]
    language = name.split()[0]
    module = kp.ShaderModule(source, language=language, **options)
    reference = kp.ShaderModule(GLSL)
    assert shape(module.signature) == shape(reference.signature)
    expected = reference.signature.text("k")
    if language != "glsl":
        expected = expected.replace("mat4 turn", "float4x4 turn")
    assert module.signature.text("k") == expected

    rng = np.random.default_rng(0)
    items = np.zeros(50, kp.struct_dtype(module, "items"))
    items["place"], items["weight"], items["kind"] = rng.normal(size=(50, 2)), rng.normal(size=50), range(50)
    turn, offset = rng.normal(size=(4, 4)).astype(np.float32), np.float32([1, 2, 3, 4])
    kernel = mgr.kernel(module)
    for each in (kernel, kernel.specialize(TIMES=5)):
        times = 2 if each is kernel else 5
        arguments = {"scale": 0.5, "count": 50, "offset": offset, "turn": turn}
        sums, kinds = mgr.tensor_t(np.ones(50, np.float32)), mgr.tensor_t(np.zeros((50, 4), np.uint32))
        each(items=items, sums=sums, kinds=kinds, groups=2, bind={"Arguments": arguments})
        place = np.column_stack([items["place"], np.zeros(50), np.ones(50)])
        part = np.zeros(64)
        part[:50] = items["weight"] * 0.5 + (place @ turn.T + offset)[:, 0] * times
        both = part + part.reshape(2, 32)[:, ::-1].ravel()
        np.testing.assert_allclose(sums.read(), 1 + both[:50], rtol=1e-4, atol=1e-4)
    wanted = np.column_stack([range(50), range(50), np.arange(50) % 32, np.arange(50) // 32])
    np.testing.assert_array_equal(kinds.read().reshape(50, 4), wanted)


@pytest.mark.parametrize("language", ["hlsl", "slang"])
def test_names_and_interfaces_survive_the_optimizer(language):
    source = """struct Pair { float2 a; float b; };
ConstantBuffer<Pair> pair;
cbuffer Only { float only; }
StructuredBuffer<Pair> unread;
RWStructuredBuffer<float> o;
[numthreads(1, 1, 1)] void main() { o[0] = pair.b + only; }"""
    texts = set()
    for optimize in ("none", "size", "performance"):
        module = kp.ShaderModule(source, language=language, optimize=optimize)
        texts.add(module.signature.text("k"))
        assert [p.binding for p in module.signature.parameters] == [0, 1, 2, 3]
    (text,) = texts
    assert text == "k(Pair { vec2 a; float b } pair, float only, unused struct Pair[] unread, out float[] o)"


@pytest.mark.parametrize("target", ["vulkan1.1", "vulkan1.2", "vulkan1.3"])
def test_targets(target):
    spirv = kp.compile(SCALE, language="slang", target=target)
    assert int.from_bytes(spirv[4:8], "little") == 0x10300
    newer = kp.compile(SCALE, language="slang", target="vulkan1.3", spirv_version="1.6")
    assert int.from_bytes(newer[4:8], "little") == 0x10600
    assert kp.ShaderModule(spirv, target=target).entry == "main"  # valid for the target
    with pytest.raises(kp.InvalidArgumentError, match="version of SPIR-V"):
        kp.compile(SCALE, language="slang", target="vulkan1.1", spirv_version="1.6")


def test_what_no_target_can_be():
    with pytest.raises(kp.ShaderCompileError, match=r"needs SPIR-V 1\.3, which vulkan1\.0 lacks"):
        kp.compile(SCALE, language="slang", target="vulkan1.0")
    with pytest.raises(kp.InvalidArgumentError, match="'vulkan9' is not a target"):
        kp.compile(SCALE, language="slang", target="vulkan9")


def test_debug_information_names_the_source(tmp_path):
    path = tmp_path / "shown.slang"
    path.write_text(SCALE)
    assert "shown.slang" in kp.disassemble(kp.compile(path, debug_info=True, optimize=False))
    assert "shown.slang" not in kp.disassemble(kp.compile(path, optimize=False))


POINTED = """
struct Node { float v; Node* next; };
struct P { float a; [mutating] void inc() { a += 1; } };
RWStructuredBuffer<P> x;
uniform Node* first;
void vector(inout float3 a) { a += 1; }
void array(inout float a[4]) { a[0] += 1; }
float read(RWStructuredBuffer<P> b, uint i) { return b[i].a; }
[shader("compute")] [numthreads(1, 1, 1)] void main() {
    P p = x[0]; p.inc(); float3 q = p.a; vector(q); float z[4] = {q.x, 1, 2, 3}; array(z);
    if (first != nullptr && first->next != nullptr) z[0] = first->next->v;
    p.a = z[0] + read(x, 0); x[0] = p; }"""


@pytest.mark.parametrize("optimize", [True, False])
def test_debug_information_of_what_is_passed_by_reference(optimize):
    """The module is valid, and has its lines."""
    text = kp.disassemble(kp.compile(POINTED, language="slang", debug_info=True, optimize=optimize))
    assert "DebugLine" in text or "OpLine" in text
    assert "DebugTypeComposite" in text
    assert "DebugTypePointer" not in text


# -- macros, includes, modules -------------------------------------------------------------------------------

FILL = "RWStructuredBuffer<float> o;\n[numthreads(1, 1, 1)] void main() {{ o[0] = {}; }}"


def value(mgr, source, **options):
    return mgr.kernel(source, **{"language": "slang", **options})(np.zeros(1, np.float32), groups=1)[0]


@pytest.mark.parametrize("language", ["hlsl", "slang"])
def test_macros(mgr, language):
    source = "#ifdef EMPTY\n" + FILL.format("SQUARE(N) + FLAG + HALF") + "\n#endif"
    defines = {"N": 3, "FLAG": True, "HALF": 0.5, "EMPTY": None, "SQUARE(x)": "((x) * (x))"}
    assert value(mgr, source, language=language, defines=defines) == 10.5
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile(FILL.format("\n nothing"), language=language, defines=defines)
    (found,) = [d for d in caught.value.diagnostics if d.severity == "error"]
    assert (found.file, found.line, found.column, found.source_line) == ("<source>", 3, 2, " nothing; }")


@pytest.mark.parametrize("language", ["hlsl", "slang"])
def test_includes(mgr, tmp_path, language):
    """Beside the file that includes, then in the folders that are given; texts by name before any file."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "near.h").write_text('#include "inner/deep.h"\n')
    (tmp_path / "inner" / "deep.h").write_text('#include "beside.h"\n#define DEEP BESIDE\n')
    (tmp_path / "inner" / "beside.h").write_text("#define BESIDE 5\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "far.h").write_text("#define FAR 20\n")
    path = tmp_path / f"top.{language}"
    path.write_text(
        '#include "near.h"\n#include "far.h"\n#include "virtual.h"\n' + FILL.format("DEEP + FAR + VIRTUAL")
    )
    (tmp_path / "virtual.h").write_text("#error the text by name comes first")
    options = {
        "language": language,
        "include_dirs": [tmp_path / "elsewhere"],
        "includes": {"virtual.h": "#define VIRTUAL 100\n"},
    }
    module = kp.ShaderModule(path, **options)
    names = sorted(os.path.relpath(each, tmp_path) for each in module.files)
    assert names == sorted([f"top.{language}", "near.h", "inner/deep.h", "inner/beside.h", "elsewhere/far.h"])
    assert value(mgr, path, **options) == 125


def test_source_text_includes_nothing_from_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "here.h").write_text("#define HERE 1\n")
    monkeypatch.chdir(tmp_path)
    source = '#include "here.h"\n' + FILL.format("HERE")
    with pytest.raises(kp.ShaderCompileError, match=r"<source>:1:10: error: .*here\.h"):
        kp.compile(source, language="slang")
    kp.compile(source, language="slang", include_dirs=["."])


def test_errors_in_includes_name_their_file(tmp_path):
    (tmp_path / "broken.h").write_text("float f() {\n    return wrong;\n}\n")
    path = tmp_path / "top.slang"
    path.write_text('#include "broken.h"\n' + FILL.format("f()"))
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile(path)
    first = caught.value.diagnostics[0]
    assert (first.file, first.line, first.column) == (str(tmp_path / "broken.h"), 2, 12)
    assert first.source_line == "    return wrong;"
    assert f"{first.file}:2:12: error: undefined identifier 'wrong'" in str(caught.value)


def test_modules_are_imported(mgr, tmp_path):
    (tmp_path / "numbers.slang").write_text("public float seven() { return 7; }\n")
    path = tmp_path / "top.slang"
    path.write_text("import numbers;\n" + FILL.format("seven()"))
    assert value(mgr, path) == 7
    assert str(tmp_path / "numbers.slang") in kp.ShaderModule(path).files


# -- the cache and hot reload --------------------------------------------------------------------------------


@pytest.fixture
def cached(tmp_path, monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("KOMPUTE_PY_SHADER_CACHE_SIZE", raising=False)
    calls = []

    def counted(request, *rest):
        calls.append(request.language)
        return real(request, *rest)

    real = shader.compile_elsewhere
    monkeypatch.setattr(shader, "compile_elsewhere", counted)
    return calls


def test_the_cache_keeps_results_and_notices_edits(tmp_path, cached, monkeypatch):
    include = tmp_path / "value.h"
    include.write_text("#define VALUE 1\n")
    path = tmp_path / "top.slang"
    path.write_text('#include "value.h"\n' + FILL.format("VALUE"))
    first = kp.ShaderModule(path)
    again = kp.ShaderModule(path)
    assert len(cached) == 1 and again.to_spirv() == first.to_spirv()
    assert again.compiler == first.compiler and again.files == first.files
    include.write_text("#define VALUE 2\n")
    assert kp.compile(path) != first.to_spirv() and len(cached) == 2


@needs_dxc
def test_the_cache_knows_compilers_and_libraries_apart(tmp_path, cached, monkeypatch):
    source = FILL.format(3)
    for compiler in ("slang", "dxc", "slang", "dxc"):
        assert (
            kp.ShaderModule(source, language="hlsl", compiler=compiler).compiler.lower().startswith(compiler)
        )
    assert len(cached) == 2
    library = find_library("slang")
    other = library._replace(identity="another version")
    monkeypatch.setattr(shader_languages, "find_library", lambda kind, setting: other)
    kp.compile(source, language="hlsl", compiler="slang")
    assert len(cached) == 3


def test_hot_reload_of_includes(mgr, tmp_path):
    include = tmp_path / "value.h"
    include.write_text("#define VALUE 1\n")
    path = tmp_path / "top.slang"
    path.write_text('#include "value.h"\n' + FILL.format("VALUE"))
    kernel = mgr.kernel(path, watch=True)

    def now():
        return kernel(np.zeros(1, np.float32), groups=1)[0]

    assert now() == 1
    include.write_text("#define VALUE 22\n")
    assert now() == 22
    include.write_text("#define VALUE broken\n")
    with pytest.warns(kp.KomputeWarning, match="broken"):
        assert now() == 22
    include.write_text("#define VALUE 333\n")
    assert now() == 333


def test_a_suffix_tells_the_language(tmp_path):
    path = tmp_path / "s.slang"
    path.write_text(textwrap.dedent(SCALE))
    assert kp.ShaderModule(path).language == "slang"
    assert kp.ShaderModule(str(path)).name == "s"


IMAGES = {  # the declared type, numbers of a texel
    "float": 1,
    "float2": 2,
    "float4": 4,
}
SHADER = '[shader("compute")] [numthreads(4, 1, 1)] void main(uint3 t : SV_DispatchThreadID)'


@pytest.mark.parametrize("language", ["hlsl", "slang"])
@pytest.mark.parametrize("element", IMAGES)
def test_formats_of_images_are_inferred(mgr, language, element):
    """From the declared type, if the image is read: no device feature is needed.

    Two formats stay two types.
    """
    channels = IMAGES[element]
    source = (
        f"[[vk::binding(0)]] RWTexture2D<{element}> image; [[vk::binding(1)]] RWTexture2D<float> other;"
        "[[vk::binding(2)]] RWTexture2D<uint> ids;"
        "[numthreads(1, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {"
        "    other[id.xy] = other[id.xy] + 1; image[id.xy] = image[id.xy] * 2 + other[id.xy]; ids[id.xy] += "
        "3; }"
    )
    code = kp.compile(source, language=language, compiler="slang")
    text = kp.disassemble(code)
    assert "ReadWithoutFormat" not in text and "WriteWithoutFormat" not in text and "2 Unknown" not in text
    texels = np.arange(12 * channels, dtype=np.float32).reshape(3, 4, channels).squeeze()
    image, other = mgr.image(texels), mgr.image(np.full((3, 4), 5, np.float32))
    ids = mgr.image(np.zeros((3, 4), np.uint32), format="r32ui")
    mgr.kernel(code)(image, other, ids, groups=(4, 3))
    np.testing.assert_array_equal(image.read(), texels * 2 + 6)
    np.testing.assert_array_equal(ids.read(), np.full((3, 4), 3))


def test_images_that_are_only_written_have_no_format():
    text = kp.disassemble(
        kp.compile(
            "RWTexture2D<float4> image; [numthreads(1, 1, 1)] void main() { image[uint2(0, 0)] = 1; }",
            language="slang",
        )
    )
    assert "WriteWithoutFormat" in text and "ReadWithoutFormat" not in text


def test_formats_of_arrays_of_images_beside_local_variables(mgr):
    kernel = mgr.kernel(
        f"RWTexture2D<float2> images[2]; {SHADER} {{ for (uint i = 0; i < 2; ++i) images[i][t.xy] *= 2; }}",
        language="slang",
    )
    texels = np.arange(8, dtype=np.float32).reshape(1, 4, 2)
    images = [mgr.image(texels + k) for k in range(2)]
    kernel(images, groups=1)
    for k, image in enumerate(images):
        np.testing.assert_array_equal(image.read(), (texels + k) * 2)


def test_pointers_in_a_struct(mgr, needs):
    needs(mgr, "bufferDeviceAddress")
    kernel = mgr.kernel(
        "struct Job { float* from; float* to; uint n; };"
        f"{SHADER[:-1]}, uniform Job job) {{ if (t.x < job.n) job.to[t.x] = job.from[t.x] * 2; }}",
        language="slang",
    )
    x, y = mgr.tensor(np.arange(4)), mgr.zeros(4)
    kernel(job={"from": x, "to": y, "n": 3}, groups=1)
    np.testing.assert_array_equal(y.read(), [0, 2, 4, 0])


NORMALIZED = {
    "unorm float2": ("rg8", np.uint8), "unorm float4": ("rgba8", np.uint8),
    "snorm float4": ("rgba8_snorm", np.int8), "unorm float": ("r8", np.uint8),
}  # fmt: skip


@pytest.mark.parametrize(
    ("language", "element"),
    [
        pytest.param(language, element, marks=needs_dxc if language == "hlsl" else ())
        for language in ("hlsl", "slang")
        for element in NORMALIZED
        if (language, element) != ("slang", "unorm float")  # Slang makes SPIR-V of it that is not valid
    ],
)
def test_images_of_normalized_floats_have_8_bits(mgr, language, element):
    form, dtype = NORMALIZED[element]
    kernel = mgr.kernel(
        f"RWTexture2D<{element}> image; RWTexture2D<float> other;"
        f"{SHADER} {{ image[t.xy] = 1 - image[t.xy]; other[t.xy] += 1; }}",
        language=language,
    )
    most = np.iinfo(dtype).max
    texels = np.arange(0, 4 * len(form), len(form), dtype=dtype).reshape(1, 4, 1)
    texels = np.repeat(texels, form.count("g") + 1 + 2 * form.count("a"), axis=2).squeeze(
        axis=2 if form == "r8" else ()
    )
    image, other = mgr.image(texels, format=form), mgr.image(np.zeros((1, 4), np.float32))
    kernel(image=image, other=other, groups=1)
    np.testing.assert_array_equal(image.read(), most - texels)
    np.testing.assert_array_equal(other.read(), np.ones((1, 4)))


def test_registers_of_slang_are_shifted_apart(mgr):
    source = f"""ByteAddressBuffer bytes : register(t1); StructuredBuffer<float> x : register(t0);
RWStructuredBuffer<float> y : register(u0);
{SHADER} {{ y[t.x] = x[t.x] * 2 + bytes.Load<float2>(8 * t.x).y + bytes.Load<uint>(0); }}"""
    kernel = mgr.kernel(source, language="slang")
    assert {p.name: p.binding for p in kernel.signature.parameters} == {"x": 0, "bytes": 1, "y": 2}
    x, y = np.float32([1, 2, 3, 4]), np.zeros(4, np.float32)
    kernel(x=x, bytes=np.zeros(8, np.uint32), y=y, groups=1)
    np.testing.assert_array_equal(y, 2 * x)
    block = "struct A { float k; StructuredBuffer<float> b; }; ParameterBlock<A> block;"
    with pytest.raises(
        kp.ShaderCompileError, match=r"shift registers together with \[\[vk::binding\]\] or a Param"
    ):
        kp.compile(block + source.replace("* 2", "* block.k + block.b[0]"), language="slang")


def test_a_format_that_cannot_be_inferred_is_asked_for(mgr):
    source = (
        "RWTexture2D<float3> image; [numthreads(1, 1, 1)] void main() { image[uint2(0, 0)] = image[uint2(1, "
        "1)]; }"
    )
    code = kp.compile(source, language="slang")
    if "shaderStorageImageReadWithoutFormat" in mgr.enabled_features:
        pytest.skip("the device reads images without a format")
    with pytest.raises(kp.UnimplementedError, match=r'\[\[vk::image_format\("r32f"\)\]\]'):
        mgr.kernel(code)


@pytest.mark.parametrize("option", ["-fvk-nonsense", "-capability nonsense", "-std nonsense"])
def test_options_that_slang_does_not_take_are_named(option):
    with pytest.raises(kp.ShaderCompileError, match=r"error: compiler_options: un.* '?-?(fvk-)?nonsense"):
        kp.compile(f"{SHADER} {{}}", language="slang", compiler_options=option, cache=False)
