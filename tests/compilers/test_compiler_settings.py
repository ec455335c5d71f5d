"""The settings of the compilers and the shader cache are options of a Manager, and of the process without
one.
"""

from __future__ import annotations

import itertools
import json
import math
import os

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._compilers.libraries import find_library
from kompute_py.cli import main

_numbers = itertools.count()
NAMES = (
    "shader_cache_dir", "shader_cache_size", "compile", "compile_timeout", "dump", "compiler", "dxc_library",
    "slang_library",
)  # fmt: skip
HLSL = (
    "RWStructuredBuffer<float> a : register(u0);\n"
    "[numthreads(1, 1, 1)] void main(uint3 i : SV_DispatchThreadID) { a[i.x] = %d; }\n"
)


def fresh(number=None):
    """A source that nothing has compiled yet."""
    number = f"{os.getpid()}{next(_numbers)}" if number is None else number
    return (
        "#version 450\n"
        "layout(local_size_x = 1) in;\n"
        f"layout(binding = 0) buffer A {{ float a[]; }};\n"
        f"void main() {{ a[0] = {number}; }}\n"
    )


def entries(folder):
    return list(folder.rglob("*.kpsh")) if folder.exists() else []


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(f"KOMPUTE_PY_{name.upper()}", raising=False)


def test_defaults():
    report = kp.config_report(env_prefix=None)
    assert report.shader_cache_dir.value.endswith(os.path.join("kompute_py", "shaders"))
    assert report.shader_cache_size.value == 128 * 2**20 and report.compile_timeout.value == 20
    assert report.compiler.value is None and report.slang_library.value is None
    assert {getattr(report, name).source for name in NAMES} == {"default"}


@pytest.mark.parametrize("prefix", ["KOMPUTE_PY_", "PROGRAM_"])
def test_variables_and_keywords(prefix, monkeypatch):
    given = {
        "shader_cache_dir": ("/some/where", "/some/where"), "shader_cache_size": ("1.5 MiB", 3 * 2**19),
        "compile_timeout": ("2.5", 2.5), "compile": ("Never", "never"),
        "compiler": (" SLang ", "slang"), "dxc_library": ("", ""), "slang_library": ("", ""),
    }  # fmt: skip
    for name, (text, _) in given.items():
        monkeypatch.setenv(prefix + name.upper(), text)
    report = kp.config_report(env_prefix=prefix)
    for name, (_, value) in given.items():
        assert getattr(report, name) == (name, value, prefix + name.upper())
    assert {getattr(kp.config_report(env_prefix=None), name).source for name in NAMES} == {"default"}
    report = kp.config_report(
        env_prefix=prefix, compiler="slang", shader_cache_size=7, compile_timeout=math.inf
    )
    assert [getattr(report, name).value for name in ("compiler", "shader_cache_size", "compile_timeout")] == [
        "slang",
        7,
        math.inf,
    ]
    assert report.compiler.source == "keyword"
    for name in ("shader_cache_size", "compile_timeout", "compiler"):  # no text is no setting
        monkeypatch.setenv(prefix + name.upper(), " ")
        assert getattr(kp.config_report(env_prefix=prefix), name).source == "default"


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("shader_cache_dir", 5, kp.ArgumentTypeError), ("shader_cache_dir", "a\0b", kp.InvalidArgumentError),
        ("shader_cache_size", "much", kp.InvalidArgumentError),
        ("compile_timeout", 0, kp.InvalidArgumentError),
        ("compile_timeout", "soon", kp.InvalidArgumentError), ("compile_timeout", [1], kp.ArgumentTypeError),
        ("compile_timeout", np.timedelta64(5), kp.ArgumentTypeError),
        ("compiler", "gcc", kp.InvalidArgumentError),
        ("compile", "sometimes", kp.InvalidArgumentError), ("compile", False, kp.ArgumentTypeError),
        ("compiler", 5, kp.ArgumentTypeError), ("slang_library", 5, kp.ArgumentTypeError),
    ],
)  # fmt: skip
def test_values_that_are_refused(option, value, error, monkeypatch):
    with pytest.raises(error, match=rf"Manager\({option}=\.\.\.\) is"):
        kp.config_report(**{option: value})
    if isinstance(value, str) and "\0" not in value:
        variable = f"KOMPUTE_PY_{option.upper()}"
        monkeypatch.setenv(variable, value)
        with pytest.raises(error, match=f"The environment variable {variable} is"):
            kp.config_report()


def test_a_managers_kernels_use_its_cache(tmp_path, monkeypatch, clean):
    process, own = tmp_path / "process", tmp_path / "own"
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(process))
    with kp.Manager(shader_cache_dir=own) as mgr:
        assert mgr.config.shader_cache_dir == ("shader_cache_dir", str(own), "keyword")
        mgr.kernel(fresh())
        kp.Kernel(mgr, fresh())
        assert len(entries(own)) == 2 and not entries(process)
        kp.compile(fresh())  # has no Manager
        kp.ShaderModule(fresh())
        assert len(entries(own)) == len(entries(process)) == 2
    with kp.Manager(shader_cache_dir="") as mgr:
        mgr.kernel(fresh())
    with kp.Manager(shader_cache_dir=own, shader_cache_size="0") as mgr:
        mgr.kernel(fresh())
    assert len(entries(own)) == len(entries(process)) == 2
    with kp.Manager() as mgr:
        mgr.kernel(fresh())
    assert len(entries(own)) == 2 and len(entries(process)) == 3


def test_a_prefix_of_ones_own(tmp_path, monkeypatch, clean):
    process, own = tmp_path / "process", tmp_path / "own"
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(process))
    monkeypatch.setenv("PROGRAM_SHADER_CACHE_DIR", str(own))
    with kp.Manager(env_prefix="PROGRAM_") as mgr:
        mgr.kernel(fresh())
    assert len(entries(own)) == 1 and not entries(process)


def test_reloading_uses_the_managers_cache(tmp_path, monkeypatch, clean):
    own, file = tmp_path / "own", tmp_path / "fill.comp"
    file.write_text(fresh())
    with kp.Manager(shader_cache_dir=own) as mgr:
        kernel = mgr.kernel(file)
        file.write_text(fresh())
        assert kernel.reload()
    assert len(entries(own)) == 2


def test_a_managers_compiler(clean):
    with kp.Manager(compiler="slang", slang_library="", dxc_library="") as mgr:
        with pytest.raises(kp.UnavailableError, match="slang_library"):
            mgr.kernel(HLSL % next(_numbers), language="hlsl")
        with pytest.raises(kp.UnavailableError, match="dxc_library"):
            mgr.kernel(HLSL % next(_numbers), language="hlsl", compiler="dxc")


def test_the_command_line_shows_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("KOMPUTE_PY_SHADER_CACHE_SIZE", "5 MB")
    monkeypatch.setenv("KOMPUTE_PY_COMPILE_TIMEOUT", "inf")
    assert main(["info", "--json"]) == 0
    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)["options"]}
    assert found["shader_cache_size"] == {
        "name": "shader_cache_size",
        "value": 5 * 10**6,
        "source": "KOMPUTE_PY_SHADER_CACHE_SIZE",
    }
    assert found["compile_timeout"]["value"] == "inf" and found["compiler"]["source"] == "default"
    assert main(["info"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "shader_cache_size = 5000000, from KOMPUTE_PY_SHADER_CACHE_SIZE" in shown
    assert main(["cache"]) == 0
    shown = capsys.readouterr().out
    assert "shader_cache_dir from KOMPUTE_PY_SHADER_CACHE_DIR" in shown and "4.768 MiB" in shown


@pytest.mark.capability(
    "W19", "shaders from the cache alone, without a compiler", "kp.compile", "guides/options"
)
def test_without_a_compiler_sources_come_from_the_cache(tmp_path):
    source = (
        "layout(local_size_x = 1) in; layout(binding = 0) buffer X { float x[]; }; void main() { x[0] = 4; }"
    )
    options = {"shader_cache_dir": tmp_path, "compile": "never"}
    with kp.Manager(**options) as mgr:
        with pytest.raises(
            kp.NotFoundError, match=rf"compile=\"never\" allows no compiler: it would be {tmp_path}"
        ):
            mgr.kernel(source)
        with kp.Manager(shader_cache_dir=tmp_path) as other:
            spirv = other.kernel(source).to_spirv()
        assert mgr.kernel(source).to_spirv() == spirv == mgr.kernel(spirv).to_spirv()
    with (
        kp.Manager(shader_cache_dir="", compile="never") as mgr,
        pytest.raises(kp.NotFoundError, match="no cache"),
    ):
        mgr.kernel(source)


@pytest.mark.skipif(os.name == "nt", reason="the SDK has another folder there")
def test_where_dxc_is_looked_for(tmp_path, monkeypatch):
    """The extra's is the first, then that of the SDK; the old one of compushady is the last."""
    package, sdk = tmp_path / "compushady", tmp_path / "sdk" / "lib"
    for folder in (package / "backends", sdk):
        folder.mkdir(parents=True)
        (folder / "libdxcompiler.so").write_text("")
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("VULKAN_SDK", str(tmp_path / "sdk"))

    def found():
        library = find_library("dxc")
        return library and os.path.dirname(library.path)

    assert found() == str(sdk)
    (tmp_path / "compushady_lrtu.libs").mkdir()
    assert found() == str(package / "backends")
    monkeypatch.setenv("KOMPUTE_PY_DXC_LIBRARY", str(sdk))
    assert found() == str(sdk)
    monkeypatch.setenv("KOMPUTE_PY_DXC_LIBRARY", "")
    assert found() is None


@pytest.mark.capability(
    "P44", "compilers' options and kept sources by environment", "kp.compile", "guides/options"
)
def test_dump_keeps_sources_and_spirv(tmp_path, monkeypatch, make_manager):
    source = fresh()
    folder = tmp_path / "dumped"
    made = make_manager(dump=folder)
    kernel = made.kernel(source, name="scale up/1")
    made.kernel(source, name="scale up/1")  # the same source again: the same files
    found = sorted(folder.iterdir())
    assert {path.suffix for path in found} == {".comp", ".spv", ".spvasm"} and len(found) == 3
    assert all(path.name.startswith("scale_up_1-") for path in found)
    by_suffix = {path.suffix: path for path in found}
    assert by_suffix[".comp"].read_text() == source
    assert made.kernel(by_suffix[".spv"]).to_spirv() == kernel.to_spirv()
    assert by_suffix[".spvasm"].read_text() == kp.disassemble(by_suffix[".spv"])
    # By the variable, for what has no Manager; a source that does not compile is kept, too.
    monkeypatch.setenv("KOMPUTE_PY_DUMP", str(tmp_path / "others"))
    wrong = source + "nonsense"
    with pytest.raises(kp.ShaderCompileError):
        kp.compile(wrong)
    (kept,) = (tmp_path / "others").iterdir()
    assert kept.read_text() == wrong and kept.suffix == ".comp"
    monkeypatch.setenv("KOMPUTE_PY_DUMP", "")
    assert kp.compile(source)
    # Operations' own kernels are kept by name.
    kp.ops.cumsum(made.tensor(np.arange(9.0)))
    assert len(list(folder.iterdir())) > 3
    (tmp_path / "file").write_text("")
    with pytest.raises(kp.UnavailableError, match=r"KOMPUTE_PY_DUMP.*cannot be written"):
        make_manager(dump=tmp_path / "file" / "folder").kernel(source)
