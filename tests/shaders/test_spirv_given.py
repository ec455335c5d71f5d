"""SPIR-V from what the caller gave: every kind works in every call that takes a shader, every bad kind is one
error in all of them.
"""

from __future__ import annotations

import array
import ctypes
import mmap
import os
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from kompute_py.cli import main

from .test_entry_points import module as module_of

DOUBLE = """#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer Data { float data[]; };
void main() { data[gl_GlobalInvocationID.x] *= 2.0; }
"""
SPIRV = kp.compile(DOUBLE)
WORDS = np.frombuffer(SPIRV, np.uint32)
SWAPPED = WORDS.byteswap().tobytes()


class Convertible:
    """Any object that has SPIR-V."""

    def __init__(self, made):
        self._made = made

    def to_spirv(self):
        return self._made


class PathLike:
    def __init__(self, path):
        self._path = path

    def __fspath__(self):
        return self._path


def anonymous_map(content):
    mapped = mmap.mmap(-1, len(content))
    mapped.write(content)
    return mapped


def written(folder, content=SPIRV, name="double.spv"):
    (folder / name).write_bytes(content)
    return folder / name


KINDS = {
    "bytes": lambda folder: SPIRV,
    "bytearray": lambda folder: bytearray(SPIRV),
    "memoryview": lambda folder: memoryview(SPIRV),
    "memoryview of words": lambda folder: memoryview(WORDS),
    "memoryview of floats": lambda folder: memoryview(WORDS.view(np.float32)),
    "memoryview, not contiguous": lambda folder: memoryview(np.repeat(WORDS, 2))[::2],
    "memoryview, two axes": lambda folder: memoryview(
        np.stack([np.frombuffer(SPIRV, np.uint8)] * 2, 1)[:, :1]
    ),
    "uint32": lambda folder: WORDS,
    "uint32, big-endian": lambda folder: WORDS.astype(">u4"),
    "uint32, not contiguous": lambda folder: np.repeat(WORDS, 3)[::3],
    "uint32, read-only": lambda folder: np.array(WORDS).view(),
    "uint8": lambda folder: np.frombuffer(SPIRV, np.uint8),
    "int32": lambda folder: WORDS.view(np.int32),
    "int64": lambda folder: WORDS.astype(np.int64),
    "uint64, big-endian": lambda folder: WORDS.astype(">u8"),
    "array.array": lambda folder: array.array("I", SPIRV),
    "ctypes": lambda folder: (ctypes.c_uint32 * len(WORDS)).from_buffer_copy(SPIRV),
    "mmap": lambda folder: anonymous_map(SPIRV),
    "list": lambda folder: WORDS.tolist(),
    "tuple": lambda folder: tuple(WORDS.tolist()),
    "list of NumPy's ints": lambda folder: list(WORDS),
    "str of a path": lambda folder: str(written(folder)),
    "str of a path, .SPV": lambda folder: str(written(folder, name="double.SPV")),
    "Path": lambda folder: written(folder),
    "Path, unknown suffix": lambda folder: written(folder, name="double.module"),
    "PathLike of bytes": lambda folder: PathLike(os.fsencode(written(folder))),
    "ShaderModule": lambda folder: kp.ShaderModule(SPIRV),
    "to_spirv": lambda folder: Convertible(SPIRV),
    "to_spirv of an array": lambda folder: Convertible(WORDS.astype(">u4")),
    "to_spirv of a list": lambda folder: Convertible(WORDS.tolist()),
    "the other byte order": lambda folder: SWAPPED,
    "the other byte order, words": lambda folder: WORDS.byteswap(),
    "the other byte order, list": lambda folder: WORDS.byteswap().tolist(),
    "the other byte order, file": lambda folder: written(folder, SWAPPED),
}


def ran(mgr, operation, tensor):
    mgr.sequence().record(kp.OpSyncDevice([tensor])).record(operation).record(kp.OpSyncLocal([tensor])).eval()
    return tensor.numpy().tolist()


def by_algorithm(mgr, given):
    t = mgr.tensor([1, 2, 3, 4])
    assert ran(mgr, kp.OpAlgoDispatch(mgr.algorithm([t], given, (1, 1, 1))), t) == [2, 4, 6, 8]


def by_class(mgr, given):
    t = mgr.tensor([1, 2, 3, 4])
    assert ran(mgr, kp.OpAlgoDispatch(kp.Algorithm(mgr, [t], given, (1, 1, 1))), t) == [2, 4, 6, 8]


def by_rebuild(mgr, given):
    t = mgr.tensor([1, 2, 3, 4])
    algorithm = mgr.algorithm([t], kp.compile(DOUBLE.replace("2.0", "7.0")), (1, 1, 1))
    algorithm.rebuild(spirv=given)
    assert ran(mgr, kp.OpAlgoDispatch(algorithm), t) == [2, 4, 6, 8]


def by_operation(mgr, given):
    t = mgr.tensor([1, 2, 3, 4])
    assert ran(mgr, kp.OpAlgoBase([t], given, (1, 1, 1)), t) == [2, 4, 6, 8]


def by_kernel(mgr, given):
    t = mgr.tensor([1, 2, 3, 4])
    mgr.kernel(given)(t)
    assert t.read().tolist() == [2, 4, 6, 8]


def by_kernel_class(mgr, given):
    t = mgr.tensor([1, 2, 3, 4])
    kp.Kernel(mgr, given)(t)
    assert t.read().tolist() == [2, 4, 6, 8]


def by_module(mgr, given):
    assert kp.ShaderModule(given).to_spirv() == SPIRV


def by_struct_dtype(mgr, given):
    assert kp.struct_dtype(given, 0) == np.float32


def by_check(mgr, given):
    assert kp.check(given, mgr) == []


def by_disassemble(mgr, given):
    assert kp.disassemble(given) == kp.disassemble(SPIRV)


def by_decompile(mgr, given):
    assert kp.decompile(given) == kp.decompile(SPIRV)


CALLS = {
    "mgr.algorithm": by_algorithm, "kp.Algorithm": by_class, "Algorithm.rebuild": by_rebuild,
    "OpAlgoBase": by_operation, "mgr.kernel": by_kernel, "kp.Kernel": by_kernel_class,
    "kp.ShaderModule": by_module, "kp.struct_dtype": by_struct_dtype, "kp.check": by_check,
    "kp.disassemble": by_disassemble, "kp.decompile": by_decompile,
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_every_kind(call, mgr, clean, tmp_path):
    failed = {}
    for kind, make in KINDS.items():
        try:
            CALLS[call](mgr, make(tmp_path))
        except Exception as error:  # shown for all kinds at once
            failed[kind] = error
    assert not failed


def test_a_kernel_is_a_shader(mgr, clean):
    for use in CALLS.values():
        use(mgr, mgr.kernel(SPIRV))


# What is wrong, the error, and a part of its text. The files are written by the test.
WRONG = {
    "empty": (b"", kp.InvalidArgumentError, "they are 0,"),
    "empty list": ([], kp.InvalidArgumentError, "they are 0,"),
    "odd length": (SPIRV[:-1], kp.InvalidArgumentError, "whole number of 4-byte words"),
    "odd length, swapped": (SWAPPED[:-2], kp.InvalidArgumentError, "whole number of 4-byte words"),
    "wrong magic": (bytes(64), kp.InvalidArgumentError, "not SPIR-V"),
    "a program": (b"\x7fELF" + bytes(60), kp.InvalidArgumentError, "ELF"),
    "text": (DOUBLE.encode().ljust(256), kp.InvalidArgumentError, "GLSL source"),
    "words of 16 bits": (np.frombuffer(SPIRV, np.uint16), kp.InvalidArgumentError, "not SPIR-V"),
    "only a number": (np.uint32(0x07230203), kp.InvalidArgumentError, ""),
    "floats": (WORDS.astype(np.float32), kp.ArgumentTypeError, "float32"),
    "bools": (WORDS != 0, kp.ArgumentTypeError, "bool"),
    "masked": (np.ma.masked_array(WORDS), kp.ArgumentTypeError, "masked"),
    "objects": (WORDS.astype(object), kp.ArgumentTypeError, "object"),
    "int64 beyond a word": (np.append(WORDS.astype(np.int64), 2**32), kp.InvalidArgumentError, "4294967296"),
    "int64 below 0": (np.append(WORDS.astype(np.int64), -1), kp.InvalidArgumentError, "-1"),
    "list beyond a word": ([*WORDS.tolist(), 2**32], kp.InvalidArgumentError, "from 0 to 2"),
    "list below 0": ([*WORDS.tolist(), -1], kp.InvalidArgumentError, "from 0 to 2"),
    "list of floats": ([1.5, 2.5], kp.ArgumentTypeError, "has ints"),
    "list of text": (["a"], kp.ArgumentTypeError, "has ints"),
    "to_spirv of text": (Convertible(DOUBLE), kp.ArgumentTypeError, "must return bytes"),
    "to_spirv of itself": (Convertible(Convertible(SPIRV)), kp.ArgumentTypeError, "must return bytes"),
    "to_spirv of odd bytes": (Convertible(b"123"), kp.InvalidArgumentError, "not SPIR-V"),
    "text of odd length": (DOUBLE.encode().ljust(257), kp.InvalidArgumentError, "GLSL source"),
    "the class": (kp.ShaderModule, kp.ArgumentTypeError, "not type"),
    "a number": (5, kp.ArgumentTypeError, "not int"),
    "a dict": ({}, kp.ArgumentTypeError, "not dict"),
    "no file": (Path("gone.spv"), kp.NotFoundError, "gone.spv"),
    "no file, str": ("gone.spv", kp.NotFoundError, "gone.spv"),
    "a file of text": (Path("text.spv"), kp.InvalidArgumentError, "text.spv"),
    "an empty file": ("empty.spv", kp.InvalidArgumentError, "empty.spv"),
}
# Those whose bytes can be had, and are no module.
CONTENT = {
    "empty", "empty list", "odd length", "odd length, swapped", "wrong magic", "a program", "text",
    "text of odd length",
    "words of 16 bits", "only a number", "to_spirv of odd bytes", "a file of text", "an empty file",
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_every_wrong_kind(call, mgr, clean, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, DOUBLE.encode().ljust(256), "text.spv")
    written(tmp_path, b"", "empty.spv")
    failed = {}
    for kind, (given, expected, text) in WRONG.items():
        if call == "kp.check" and kind in CONTENT:
            continue  # a finding, see below
        try:
            CALLS[call](mgr, given)
            failed[kind] = "nothing raised"
        except Exception as error:
            if type(error) is not expected or text not in str(error):
                failed[kind] = error
    assert not failed


def test_every_call_raises_the_same_text(mgr, clean, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, DOUBLE.encode().ljust(256), "text.spv")
    written(tmp_path, b"", "empty.spv")
    for kind, (given, expected, _) in WRONG.items():
        if kind in ("no file", "no file, str", "only a number"):
            # A call that also takes source says "shader file"; one word is a module without its header
            continue
        texts = set()
        for call, use in CALLS.items():
            if call == "kp.check" and kind in CONTENT:
                continue
            with pytest.raises(expected) as caught:
                use(mgr, given)
            texts.add(str(caught.value))
        assert len(texts) == 1, (kind, texts)


def test_check_reports_content_that_is_no_module(mgr, clean):
    for kind in CONTENT - {"only a number", "a file of text", "an empty file"}:
        given, expected, text = WRONG[kind]
        (finding,) = kp.check(given, mgr)
        assert finding.kind == "validation" and text in str(finding)
        with pytest.raises(expected) as caught:
            kp.disassemble(given)
        assert str(finding) == str(caught.value)


# Only some calls take source, and these alone.
@pytest.mark.parametrize(
    "call",
    ["mgr.algorithm", "kp.Algorithm", "Algorithm.rebuild", "OpAlgoBase", "kp.disassemble", "kp.decompile"],
)
def test_source_where_spirv_alone_is_taken(call, mgr, clean, tmp_path):
    for source in (DOUBLE, "void main() {}", ""):
        with pytest.raises(
            kp.ArgumentTypeError, match=r"takes SPIR-V\. Compile the source first: kp\.compile"
        ):
            CALLS[call](mgr, source)
    for name in ("double.comp", "double.GLSL", "double.spvasm"):
        file = written(tmp_path, DOUBLE.encode(), name)
        for path in (file, str(file)):
            with pytest.raises(kp.InvalidArgumentError, match=rf"{name}' is a file of source.*kp\.compile"):
                CALLS[call](mgr, path)


def test_files_of_compile_and_the_command_line(tmp_path, capsys):
    for name in ("double.spv", "double.SPV", "double.module", "double.comp"):
        for content in (SPIRV, SWAPPED):
            file = written(tmp_path, content, name)
            assert kp.compile(file) == SPIRV
            assert kp.ShaderModule(file).to_spirv() == SPIRV
            out = tmp_path / "made.bin"
            assert main(["compile", str(file), "-o", str(out)]) == 0 and out.read_bytes() == SPIRV
            assert main(["disasm", str(file)]) == 0 and capsys.readouterr().out == kp.disassemble(SPIRV)
            assert main(["reflect", str(file)]) == 0 and "double(" in capsys.readouterr().out
    odd = written(tmp_path, SPIRV[:-1])
    for call in (kp.compile, kp.ShaderModule, kp.disassemble):
        with pytest.raises(kp.InvalidArgumentError, match=r"double\.spv: these bytes are not SPIR-V"):
            call(odd)
    assert main(["disasm", str(odd)]) != 0 and "double.spv" in capsys.readouterr().err


def test_a_path_that_is_none():
    for call in (kp.compile, kp.ShaderModule, kp.disassemble):
        with pytest.raises(kp.ArgumentTypeError, match="does not give a path"):
            call(PathLike(5))


def test_a_file_is_taken_as_its_bytes_are(tmp_path):
    """Only a target that is given is checked: a module is as new as it is, in a file or not."""
    newest = kp.compile(DOUBLE, target="vulkan1.3")
    file = written(tmp_path, newest)
    assert kp.ShaderModule(file).to_spirv() == kp.ShaderModule(newest).to_spirv() == newest
    for given in (file, newest):
        with pytest.raises(kp.InvalidArgumentError, match=r"vulkan1\.2"):
            kp.ShaderModule(given, target="vulkan1.2")
    with pytest.raises(kp.InvalidArgumentError, match=r"vulkan1\.2"):
        kp.compile(file)


def test_the_chosen_entry_goes_with_the_module(mgr, clean):
    spirv = kp.assemble(module_of("first", "second"))
    with pytest.raises(kp.InvalidArgumentError, match="'first', 'second'"):
        kp.decompile(spirv)
    module = kp.ShaderModule(spirv, entry="second")
    for given in (module, mgr.kernel(module)):
        assert (
            kp.decompile(given) == kp.decompile(spirv, entry="second") != kp.decompile(given, entry="first")
        )
        assert kp.check(given, mgr) == []
        assert kp.ShaderModule(given).entry == "second"
        a, b, factor = mgr.tensor([1] * 8), mgr.tensor([2]), mgr.tensor([3])
        algorithm = mgr.algorithm([a, b, factor], given, (1, 1, 1))
        assert algorithm.local_size == (8, 1, 1)
    (finding,) = kp.check(spirv, mgr)
    assert "second" in str(finding)


@pytest.mark.own_driver
def test_blocks_of_one_binding_are_shown_as_the_first():
    module = kp.ShaderModule("""#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer A { float x[]; };
layout(binding = 0) buffer B { uint y[]; };
void main() { x[0] = 1.0; y[1] = 2u; }""")
    (found,) = module.signature.parameters
    assert (found.name, found.dtype) == ("x", np.float32)
