"""The compilers' own options, which `compiler_options` passes on."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.cli import main
from tests.support.languages import needs_dxc, needs_slang

OUT = "RWStructuredBuffer<float> o;\n"
CHOOSES = f"""{OUT}[numthreads(1, 1, 1)] void main() {{
    float2 v = float2(o[0], 1), r = v > 0.5 ? float2(3, 4) : float2(5, 6);
    o[0] = r.x; o[1] = r.y;
}}"""
LAYOUT = f"""struct S {{ float3 a; float2 b; }}; StructuredBuffer<S> s; cbuffer C {{ float f[2]; float g; }};
{OUT}[numthreads(1, 1, 1)] void main() {{ o[0] = s[1].b.x + f[1] + g; }}"""
MATRIX = f"StructuredBuffer<float2x3> m; {OUT}[numthreads(1, 1, 1)] void main() {{ o[0] = m[1][0][1]; }}"
SHAPES = f"""interface IShape {{ float area(); }};
struct Circle : IShape {{ float r; float area() {{ return 3 * r * r; }} }};
struct Square : IShape {{ float a; float area() {{ return a * a; }} }};
StructuredBuffer<int> kinds; StructuredBuffer<float> sizes; {OUT}
[numthreads(1, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {{
    IShape shape = createDynamicObject<IShape>(kinds[id.x], sizes[id.x]);
    o[id.x] = shape.area();
}}"""


@needs_dxc
def test_the_version_of_hlsl(mgr):
    """2021, which has templates; 2018 for what only that takes; or the one that is named."""
    templates = f"""template<typename T> T twice(T x) {{ return x * 2; }}
{OUT}[numthreads(1, 1, 1)] void main() {{ o[0] = twice<float>(o[0]); }}"""
    kernels = [mgr.kernel(source, language="hlsl") for source in (CHOOSES, templates)]
    with pytest.raises(kp.ShaderCompileError, match="for non-scalar types use 'select'"):
        kp.compile(CHOOSES, language="hlsl", compiler_options="-HV 2021")
    with pytest.raises(kp.ShaderCompileError, match="template"):
        kp.compile(templates, language="hlsl", compiler_options=["-HV", "2018"])
    assert [k(np.zeros(2, np.float32), groups=1).tolist() for k in kernels] == [[5, 4], [0, 0]]


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("language", "options", "members"),
    [
        pytest.param("hlsl", "", (12, 20), marks=needs_dxc),
        pytest.param("hlsl", "-fvk-use-scalar-layout", (12, 8), marks=needs_dxc),
        pytest.param("hlsl", "-fvk-use-gl-layout", (16, 32), marks=needs_dxc),
        pytest.param("slang", "", (16, 32), marks=needs_slang),
        pytest.param("slang", "-fvk-use-scalar-layout", (12, 8), marks=needs_slang),
        pytest.param("slang", "-fvk-use-dx-layout", (12, 20), marks=needs_slang),
    ],
)
def test_layouts_of_blocks(language, options, members):
    module = kp.ShaderModule(LAYOUT, language=language, compiler_options=options)
    offsets = [kp.struct_dtype(module, name).fields[field][1] for name, field in (("s", "b"), ("C", "g"))]
    assert tuple(offsets) == members


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("language", "options", "shape"),
    [
        pytest.param("hlsl", "", (3, 2), marks=needs_dxc),
        pytest.param("hlsl", "-Zpr", (2, 3), marks=needs_dxc),
        pytest.param("slang", "", (2, 4), marks=needs_slang),
        pytest.param("slang", "-matrix-layout-column-major", (3, 2), marks=needs_slang),
    ],
)
def test_layouts_of_matrices(language, options, shape):
    module = kp.ShaderModule(MATRIX, language=language, compiler_options=options)
    assert kp.struct_dtype(module, "m").shape == shape


@needs_dxc
def test_small_types_and_shader_models():
    half = OUT.replace("float", "half") + "[numthreads(1, 1, 1)] void main() { o[0] = 1; }"
    for options in ("-enable-16bit-types", ["-enable-16bit-types", "-T", "cs_6_2"]):
        module = kp.ShaderModule(half, language="hlsl", compiler_options=options)
        assert module.signature.parameters[0].dtype == np.float16
    with pytest.raises(kp.ShaderCompileError, match=r"6\.2"):
        kp.compile(half, language="hlsl", compiler_options="-enable-16bit-types -T cs_6_0")


@needs_slang
def test_conformances(mgr):
    options = "-conformance Circle:IShape=0 -conformance Square:IShape=1"
    with pytest.raises(kp.ShaderCompileError, match="conformances"):
        kp.compile(SHAPES, language="slang")
    kernel = mgr.kernel(SHAPES, language="slang", compiler_options=options)
    assert kernel(np.int32([0, 1]), np.float32([2, 3]), np.zeros(2, np.float32)).tolist() == [12, 9]


@needs_slang
def test_the_memory_model_and_experimental_modules():
    source = OUT + "[numthreads(1, 1, 1)] void main() { o[0] = 1; }"
    model = kp.ShaderModule(source, language="slang", compiler_options="-capability vk_mem_model")
    assert "OpMemoryModel Logical Vulkan" in model.disassembly()
    module = "import slang.neural;\n" + source
    assert kp.compile(module, language="slang", compiler_options="-experimental-feature")
    with pytest.raises(kp.ShaderCompileError, match="-experimental-feature"):
        kp.compile(module, language="slang")


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("language", "options", "named"),
    [
        pytest.param("hlsl", "-Fo x", "-Fo", marks=needs_dxc),
        pytest.param("hlsl", "-E other", "-E", marks=needs_dxc),
        pytest.param("hlsl", "-T lib_6_5", "lib_6_5", marks=needs_dxc),
        pytest.param("hlsl", "-fspv-target-env=vulkan1.3", "-fspv-target-env", marks=needs_dxc),
        pytest.param("hlsl", "/etc/passwd;", "/etc/passwd;", marks=needs_dxc),
        pytest.param("slang", "-o x", "-o", marks=needs_slang),
        pytest.param("slang", "-target glsl", "-target", marks=needs_slang),
        ("glsl", "-O", "glslang takes none"),
    ],
)
def test_options_that_are_not_passed_on(language, options, named):
    with pytest.raises(kp.InvalidArgumentError, match=named):
        kp.compile(OUT, language=language, compiler_options=options)


@needs_dxc
def test_options_are_part_of_the_cached_result(tmp_path, monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(tmp_path))
    modules = [kp.compile(LAYOUT, language="hlsl", compiler_options=each) for each in ("", "-Zpr -WX", "")]
    assert modules[0] == modules[2] and len(list(tmp_path.iterdir())) == 2
    with pytest.raises(kp.ArgumentTypeError):
        kp.compile(LAYOUT, language="hlsl", compiler_options=[3])
    with pytest.raises(kp.ShaderCompileError, match="Unknown argument: '-fvk-nonsense'"):
        kp.compile(LAYOUT, language="hlsl", compiler_options="-fvk-nonsense")


@needs_dxc
def test_the_command_line_takes_them(tmp_path, capsys):
    path = tmp_path / "choose.hlsl"
    path.write_text(CHOOSES)
    assert main(["compile", str(path), "--compiler-options", "-HV 2021"]) == 1
    assert "'select'" in capsys.readouterr().err
    assert main(["compile", str(path), "--compiler-options=-HV 2018"]) == 0


@pytest.mark.parametrize(
    "language", [pytest.param("hlsl", marks=needs_dxc), pytest.param("slang", marks=needs_slang)]
)
def test_text_of_classes_of_others(language):
    """Arguments go to another process as plain values, of whatever class the caller's are."""

    class Text(str):
        pass

    class Number(int):
        pass

    source = Text(
        '#include "a.h"\nRWStructuredBuffer<float> d; [numthreads(X, 1, 1)] void main() { d[0] = 2; }'
    )
    given = {
        "includes": {Text("a.h"): np.str_("// nothing")},
        "defines": {Text("X"): Number(8)},
        "entry": Text("main"),
        "compiler_options": [Text("-fvk-use-scalar-layout")],
    }
    if language == "hlsl":
        given |= {"register_bases": {Text("u"): Number(3)}, "compiler_options": [np.str_("-Zpr")]}
    assert kp.compile(source, language=language, **given)
