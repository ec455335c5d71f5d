"""Options of kp.compile, and the other forms that a shader comes in: SPIR-V files, assembly; and back to
source.
"""

from __future__ import annotations

import re
import warnings

import pytest

import kompute_py as kp
from kompute_py import _native
from tests.support.compiling import HLSL, run, shader
from tests.support.languages import COMPILERS, dxc_is_old


def test_virtual_includes_come_before_files_and_their_errors_name_them(tmp_path, mgr):
    (tmp_path / "value.glsl").write_text("#define VALUE 1.0\n")
    source = shader("data[0] = VALUE;", '#include "value.glsl"')
    texts = {"value.glsl": '#include "lib/more.glsl"\n', "lib/more.glsl": "#define VALUE 2.0\n"}
    assert run(mgr, kp.compile(source, include_dirs=[tmp_path])) == [1]
    assert run(mgr, kp.compile(source, include_dirs=[tmp_path], includes=texts)) == [2]
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile(source, includes={"value.glsl": "\n\nfloat f() { return nothing; }\n"})
    assert caught.value.diagnostics[0][:3] == ("value.glsl", 3, 20)
    for wrong in ({"a": b"b"}, {1: "b"}, ["a"]):
        with pytest.raises(kp.ArgumentTypeError):
            kp.compile(source, includes=wrong)


def test_line_directives_are_followed(tmp_path):
    (tmp_path / "lib.glsl").write_text("#line 70\nfloat f() { return nothing; }\n")
    with pytest.raises(kp.ShaderCompileError) as caught:
        kp.compile(shader("data[0] = f();", '#include "lib.glsl"'), include_dirs=[tmp_path])
    (found,) = caught.value.diagnostics
    assert (found.file, found.line) == (f"{tmp_path}/lib.glsl", 70)
    assert found.source_line == "float f() { return nothing; }" and found.column == 20


def test_levels_of_optimization(mgr):
    source = shader(
        "data[0] = float(f(3) + f(5));",
        "int f(int n) { int s = 7; for (int i = 0; i < n; ++i) { if (data[i] < 0.0) return s; s += i; } "
        "return s; }",
    )
    modules = {level: kp.compile(source, optimize=level) for level in ("none", "size", "performance")}
    assert len(set(modules.values())) == 3
    for spirv in modules.values():
        assert run(mgr, spirv, 8) == [27, 0, 0, 0, 0, 0, 0, 0]
    calls = {
        level: _native.disassemble_spirv(spirv).count("OpFunctionCall") for level, spirv in modules.items()
    }
    assert calls == {"none": 2, "size": 0, "performance": 0}
    assert kp.compile(source, optimize=False) == modules["none"]
    assert kp.compile(source, optimize=True) == kp.compile(source) == modules["performance"]
    with pytest.raises(kp.InvalidArgumentError, match=r"fast.*none, size, performance"):
        kp.compile(source, optimize="fast")


@pytest.mark.parametrize(("target", "newest"), [("vulkan1.1", 3), ("vulkan1.2", 5), ("vulkan1.3", 6)])
def test_versions_of_spirv(target, newest):
    for minor in range(newest + 1):
        spirv = kp.compile(shader("data[0] = 1.0;"), target=target, spirv_version=f"1.{minor}")
        assert spirv[4:8] == bytes((0, minor, 1, 0))
        assert _native.validate_spirv(spirv, int(target[-1])) == ""
    for wrong in (f"1.{newest + 1}", "2", "1", "1.33"):
        with pytest.raises(kp.InvalidArgumentError, match=rf"{target}.*1\.0.*1\.{newest}"):
            kp.compile(shader(""), target=target, spirv_version=wrong)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_versions_of_spirv_from_hlsl(compiler):
    old = compiler == "dxc" and dxc_is_old()  # it does not know 1.4
    for version in ("1.3", "1.5") if old else ("1.3", "1.4", "1.5"):
        spirv = kp.compile(HLSL, language="hlsl", entry="fill", spirv_version=version, compiler=compiler)
        assert spirv[4:8] == bytes((0, int(version[2]), 1, 0))
    assert kp.compile(HLSL, language="hlsl", entry="fill", compiler=compiler)[5] == 3
    with pytest.raises(kp.InvalidArgumentError, match=r"1\.6.*belongs to vulkan1\.2.*1\.5$"):
        kp.compile(HLSL, language="hlsl", entry="fill", spirv_version="1.6", compiler=compiler)
    with pytest.raises(
        (kp.ShaderCompileError, kp.InvalidArgumentError), match=r"writes SPIR-V 1\.3.*not 1\.1"
    ):
        kp.compile(HLSL, language="hlsl", entry="fill", spirv_version="1.1", compiler=compiler)


def test_versions_are_text():
    with pytest.raises(kp.ArgumentTypeError):
        kp.compile(shader(""), spirv_version=1.3)


def test_the_version_of_glsl_can_be_forced():
    of_450 = shader("data[0] = 1.0;").replace("450", "330")
    with pytest.raises(kp.ShaderCompileError):
        kp.compile(of_450)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kp.compile(of_450, glsl_version=450)
        assert kp.compile(of_450, glsl_version="450 core") == kp.compile(of_450, glsl_version="450core")
        assert kp.compile(shader("data[0] = 1.0;"), glsl_version="310 es")
    with pytest.raises(kp.ShaderCompileError, match="float"):  # 310 es knows no implicit conversion
        kp.compile(shader("data[0] = 1;"), glsl_version="310 es")
    for wrong in (330, "450 es", "310", "es", "450 corn", 99999999999):
        with pytest.raises(kp.InvalidArgumentError, match=re.escape(str(wrong))):
            kp.compile(of_450, glsl_version=wrong)
    with pytest.raises(kp.InvalidArgumentError, match="HLSL"):
        kp.compile(HLSL, language="hlsl", entry="fill", glsl_version=450)


def test_bindings_are_numbered_on_request():
    source = shader("data[0] = more[0];", "buffer More { float more[]; };")
    with pytest.raises(kp.ShaderCompileError, match="binding"):
        kp.compile(source)
    bindings = kp.ShaderModule(source, auto_bind=True).reflection["bindings"]
    assert [(b["binding"], b["name"] or b["block_name"]) for b in bindings] == [(0, "Data"), (1, "More")]


def test_registers_of_hlsl_can_be_kept_apart(mgr):
    source = """StructuredBuffer<float> source : register(t0);
    RWStructuredBuffer<float> target : register(u0);
    cbuffer Numbers : register(b0) { float scale; };
    [numthreads(1, 1, 1)] void main(uint3 id : SV_DispatchThreadID) { target[id.x] = source[id.x] * scale; }
    """
    for bases, numbers in (({"u": 1, "b": 2}, (0, 1, 2)), (None, (0, 1, 2))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            spirv = kp.compile(source, language="hlsl", register_bases=bases)
        found = {b["binding"]: b["kind"] for b in _native.reflect_spirv(spirv)["bindings"]}
        assert found == dict(
            zip(numbers, ("storage buffer", "storage buffer", "uniform buffer"), strict=True)
        )
        tensors = [mgr.tensor([1, 2, 3]), mgr.zeros(3), mgr.tensor([10, 0, 0, 0])]
        algorithm = mgr.algorithm(tensors, spirv)
        mgr.sequence().record(kp.OpSyncDevice(tensors)).record(kp.OpAlgoDispatch(algorithm)).record(
            kp.OpSyncLocal(tensors)
        ).eval()
        assert tensors[1].numpy().tolist() == [10, 20, 30]
    for wrong, error in (
        ({"x": 1}, kp.InvalidArgumentError),
        ({"u": -1}, kp.InvalidArgumentError),
        ({"u": 2**40}, kp.InvalidArgumentError),
        ({"u": 1.5}, kp.ArgumentTypeError),
        (3, kp.ArgumentTypeError),
    ):
        with pytest.raises(error):
            kp.compile(source, language="hlsl", register_bases=wrong)


def test_types_of_16_bits_in_hlsl():
    source = """RWStructuredBuffer<float> target : register(u0);
    [numthreads(1, 1, 1)] void main() { min16float x = (min16float)target[0]; target[0] = x * x; }
    """
    assert "Float16" not in kp.ShaderModule(source, language="hlsl").reflection["capabilities"]
    wide = kp.ShaderModule(source, language="hlsl", hlsl_16bit_types=True)
    assert "Float16" in wide.reflection["capabilities"]


def test_blocks_can_be_laid_out_as_in_hlsl():
    source = shader("data[0] = b.x;", "layout(set = 0, binding = 1) uniform U { float a; vec3 b; float c; };")

    def offsets(**options):
        block = kp.ShaderModule(source, **options).reflection["bindings"][1]["layout"]
        return [member["offset"] for member in block["members"]]

    assert offsets() == [0, 16, 28]
    assert offsets(hlsl_offsets=True) == [0, 4, 16]


def test_options_that_do_not_exist():
    with pytest.raises(kp.ArgumentTypeError, match=r"optimise.*optimize"):
        kp.ShaderModule(shader(""), optimise=True)


def test_the_entry_point_is_renamed():
    spirv = kp.compile(shader("data[0] = 1.0;"), entry="another_name")
    assert _native.validate_spirv(spirv) == ""
    assert 'OpEntryPoint GLCompute %main "another_name"' in _native.disassemble_spirv(spirv) or (
        'OpEntryPoint GLCompute %another_name "another_name"' in _native.disassemble_spirv(spirv)
    )


@pytest.mark.own_driver
@pytest.mark.parametrize("minor", [0, 1, 2, 3])
def test_targets(minor):
    spirv = kp.compile(shader("data[0] = 1.0;"), target=f"vulkan1.{minor}")
    version = {0: 0x10000, 1: 0x10300, 2: 0x10500, 3: 0x10600}[minor]
    assert int.from_bytes(spirv[4:8], "little") == version
    assert _native.validate_spirv(spirv, minor) == ""


def test_spirv_files(tmp_path):
    spirv = kp.compile(shader("data[0] = 1.0;"))
    file = tmp_path / "made.spv"
    file.write_bytes(spirv)
    assert kp.compile(file) == spirv
    assert kp.compile(str(file)) == spirv
    with pytest.raises(kp.InvalidArgumentError, match=r"made\.spv.*vulkan1\.0"):
        kp.compile(file, target="vulkan1.0")
    with pytest.raises(kp.InvalidArgumentError, match="language"):
        kp.compile(file, language="glsl")
    for content in (b"", b"text", spirv[:-4], spirv[:-1], spirv[::-1]):
        file.write_bytes(content)
        with pytest.raises(kp.InvalidArgumentError, match=r"made\.spv"):
            kp.compile(file)


def test_assembly_without_a_version(tmp_path, mgr):
    """The newest version in which it is valid: later ones want all variables in the interface."""
    text = re.sub(
        r"(?m)^;.*\n",
        "",
        kp.disassemble(
            kp.compile(
                "layout(local_size_x = 8) in; layout(binding = 0) buffer A { float a[]; }; "
                "void main() { a[0] = 1; }",
                target="vulkan1.1",
            )
        ),
    )
    file = tmp_path / "old.spvasm"
    file.write_text(text)
    made = [kp.assemble(text), kp.compile(file), mgr.kernel(text).to_spirv(), mgr.kernel(file).to_spirv()]
    assert {bytes(each[4:8]) for each in made} == {b"\0\3\1\0"}
    assert kp.check(text, mgr) == kp.check(file, mgr) == kp.check(text, mgr, target="vulkan1.1") == []
    with pytest.raises(kp.InvalidArgumentError, match=r"not valid SPIR-V for target='vulkan1\.1'"):
        kp.assemble(text.replace("OpReturn\n", ""), target="vulkan1.1")


def test_assembly_files(tmp_path, mgr):
    # SPIR-V of Vulkan 1.1 lists fewer variables with the entry point.
    text = _native.disassemble_spirv(kp.compile(shader("data[0] = 9.0;"), target="vulkan1.1"))
    file = tmp_path / "made.spvasm"
    file.write_text(text)
    assert run(mgr, kp.compile(file, target="vulkan1.1")) == [9]
    assert kp.compile(file, target="vulkan1.1")[4:8] == bytes((0, 3, 1, 0))

    text = _native.disassemble_spirv(kp.compile(shader("data[0] = 9.0;")))
    file.write_text(text)
    assert run(mgr, kp.compile(file)) == [9]

    file.write_text(text.replace("OpReturn\n", "OpBackflip\n"))
    with pytest.raises(kp.ShaderCompileError, match=r"made\.spvasm:\d+:\d+: error: .*OpBackflip") as caught:
        kp.compile(file)
    assert caught.value.diagnostics[0].source_line.strip() == "OpBackflip"
    file.write_text(text.replace("OpReturn\n", ""))
    with pytest.raises(kp.InvalidArgumentError, match=r"made\.spvasm is not valid"):
        kp.compile(file)


def test_modules_come_back_as_source():
    spirv = kp.compile(shader("data[0] = 1.0;"))
    assert kp.compile(_native.decompile_spirv(spirv, "glsl", "main"))
    assert "numthreads" in _native.decompile_spirv(spirv, "hlsl", "main")
    with pytest.raises(kp.NotFoundError, match="'main'"):
        _native.decompile_spirv(spirv, "glsl", "blur")
    for function in (_native.disassemble_spirv, lambda data: _native.decompile_spirv(data, "glsl", "main")):
        for data in (b"", b"123", bytes(64)):
            with pytest.raises(kp.InvalidArgumentError):
                function(data)
