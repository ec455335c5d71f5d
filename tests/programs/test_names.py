"""The names of entries and modules: as attributes, and by `program[name]`."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

import kompute_py as kp

HIDDEN = [
    "_core", "_prefix", "_managers", "_entries", "_parts", "_x", "__array__", "save", "exports", "on", "get",
]  # fmt: skip
X = np.ones(2, np.float32)


@pytest.mark.parametrize("name", HIDDEN)
def test_names_that_programs_have_are_reached_by_index_alone(mgr, name):
    entries = {name: (kp.ops.negative, kp.TensorSpec(2)), "other": (kp.ops.exp, kp.TensorSpec(2))}
    program = kp.Program.record(entries, portable=True)
    file = io.BytesIO()
    program.save(file)
    for each in (program, kp.load_program(file.getvalue()), pickle.loads(pickle.dumps(program))):
        on = each.on(mgr)
        assert on[name](X).tolist() == [-1, -1]
        assert on.other(np.zeros(2, np.float32)).tolist() == [1, 1]
        assert on.exports == (name, "other") and on.memory_needs() and str(on)
        assert not isinstance(getattr(on, name, None), kp.ProgramEntry)
    joined = kp.Program({name: program, "other": program}).on(mgr)
    assert joined[f"{name}.{name}"](X).tolist() == joined.other[name](X).tolist() == [-1, -1]
    assert joined.exports[0] == f"{name}.{name}"


def test_what_type_has_is_a_name_like_others(mgr):
    entries = {name: (kp.ops.negative, kp.TensorSpec(2)) for name in ("mro", "register", "main")}
    program = kp.Program.record(entries, portable=True).on(mgr)
    assert program.mro(X).tolist() == program.register(X).tolist() == [-1, -1]
    assert {"mro", "register", "main", "save"} <= set(dir(program))


def test_an_unknown_name_lists_those_that_there_are(mgr):
    entries = {name: (kp.ops.negative, kp.TensorSpec(2)) for name in ("first", "second", "_third")}
    program = kp.Program.record(entries, portable=True)
    with pytest.raises(kp.NotFoundError, match=r"no entry 'zzz'\. It has first, second, _third"):
        program["zzz"]
    with pytest.raises(kp.NotFoundError, match=r"no entry 'frist': did you mean 'first'\? It has first"):
        program["frist"]
    with pytest.raises(AttributeError, match=r"but program\['_third'\] is an entry"):
        _ = program._third


SLANG = """
RWStructuredBuffer<float> x;
// [numthreads(64, 1, 1)] void none(uint3 i : SV_DispatchThreadID) {}
[shader("compute")] [numthreads(64, 1, 1)] void one(uint3 i : SV_DispatchThreadID) { x[i.x] += 1; }
/* [numthreads(64, 1, 1)] void other(uint3 i : SV_DispatchThreadID) {} */
[shader("compute")]
[numthreads(64, 1, 1)]
void two(uint3 i : SV_DispatchThreadID) { x[i.x] *= 2; }
"""
GLSL = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= 3.0; }"""


def test_a_file_of_shaders_has_an_entry_for_each_entry_point(mgr, tmp_path):
    for name, text in (
        ("both.slang", SLANG),
        ("one.slang", SLANG[: SLANG.index("/*")]),
        ("three.comp", GLSL),
    ):
        (tmp_path / name).write_text(text)
    files = {"both": "both.slang", "one": "one.slang", "three": "three.comp"}
    program = kp.Program.record({name: tmp_path / file for name, file in files.items()})
    assert program.exports == ("both.one", "both.two", "one", "three")
    on, x = program.on(mgr), np.ones(64, np.float32)
    assert on.both.one(x.copy())[0] == on.one(x.copy())[0] == on["both.two"](x.copy())[0] == 2
    assert on.three(x.copy())[0] == 3
    (tmp_path / "none.slang").write_text("")
    for path, error in (("none.slang", kp.ShaderCompileError), ("missing.slang", kp.NotFoundError)):
        with pytest.raises(error):
            kp.Program.record(tmp_path / path)
