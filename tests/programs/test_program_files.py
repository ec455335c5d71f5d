"""Program files: their layout, what is refused, and mutants."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import time
import zipfile

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._custom import float_modes
from kompute_py._programs.content import Shader
from kompute_py._programs.modules import module_of
from tests.support import fuzz_files, fuzz_programs
from tests.support.sampling import sampled

X = np.arange(8, dtype=np.float32)


@pytest.fixture
def saved(mgr, tmp_path):
    x, y, weights = mgr.zeros(8), mgr.zeros(8), mgr.tensor(X)
    product = kp.ops.multiply.bind(x, weights, out=y)
    program = kp.Program.record(
        product, inputs={"x": x}, outputs={"y": y}, parameters={"weights": weights},
        sources={"main": "x * weights"},
    )  # fmt: skip
    program.save(tmp_path / "program.kpp")
    return tmp_path / "program.kpp"


def changed(path, change) -> bytes:
    """The file with another description, and checksums that fit."""
    file = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "program.json":
                described = json.loads(data)
                described = change(described) or described
                data = described if isinstance(described, bytes) else json.dumps(described).encode()
            new.writestr(name, data)
    return file.getvalue()


def test_a_file_is_a_zip_that_others_read(saved, mgr):
    with zipfile.ZipFile(saved) as file:
        names = file.namelist()
        described = json.loads(file.read("program.json"))
        data = file.read("parameters.safetensors")
    assert described["format"] == "kompute_py program" and described["version"] == 1
    (part,) = described["parts"]
    assert [entry["name"] for entry in part["entries"]] == ["main"]
    assert {f"shaders/{shader['file']}.spv" for shader in part["shaders"]} < set(names)
    np.testing.assert_array_equal(kp.tensor_file_info(data).read("weights"), X)
    assert kp.load_program(saved).main.source == "x * weights"


@pytest.mark.capability(
    "P51", "programs saved and loaded elsewhere", "Program.save, kp.load_program", "guides/programs"
)
def test_a_program_is_loaded_from_paths_bytes_and_files(saved, mgr):
    with open(saved, "rb") as file:
        for source in (saved, str(saved), saved.read_bytes(), bytearray(saved.read_bytes()), file):
            np.testing.assert_array_equal(kp.load_program(source).on(mgr).main(X), X * X)
    made = io.BytesIO()
    kp.load_program(saved).save(made)
    assert made.getvalue() == saved.read_bytes()


def test_code_that_uses_more_than_it_declares_does_not_end_the_process(saved, mgr):
    with zipfile.ZipFile(saved) as file:
        shader = json.loads(file.read("program.json"))["parts"][0]["shaders"][0]
        words = np.frombuffer(file.read(f"shaders/{shader['declared']}.spv"), np.uint32).copy()
    at = 5
    while at < len(words):
        length, opcode = divmod(int(words[at]), 1 << 16)
        if opcode in (57, 61, 62, 65):  # calls, loads, stores and access chains, which are now nothing
            words[at] = length << 16
        at += length
    made, digest = changed(saved, lambda whole: None), hashlib.sha256(words).hexdigest()
    with zipfile.ZipFile(file := io.BytesIO(made), "a") as zip:
        zip.writestr(f"shaders/{digest}.spv", words.tobytes())
    bad = changed(file, lambda whole: whole["parts"][0]["shaders"][0].update(declared=digest))
    reflected = kp.ShaderModule(words.tobytes()).reflection
    assert not any(each["used"] for each in reflected["bindings"])
    np.testing.assert_array_equal(kp.load_program(bad).on(mgr).main(X), X * X)


def test_a_file_that_is_not_there_or_cannot_be_read(tmp_path):
    with pytest.raises(kp.NotFoundError, match="no file"):
        kp.load_program(tmp_path / "no.kpp")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(kp.errors.KomputeError, match="read"):
            kp.load_program(path)
    for source, error in (
        (3, kp.ArgumentTypeError),
        (None, kp.ArgumentTypeError),
        ("\0", kp.InvalidArgumentError),
    ):
        with pytest.raises(error):
            kp.load_program(source)
    with pytest.raises(kp.ArgumentTypeError, match="functions by name"):
        kp.load_program(b"", hosts={"f": 3})


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\5\6" + bytes(18), os.urandom(1000)])
def test_what_is_no_program(data):
    with pytest.raises(kp.InvalidArgumentError, match="the given bytes"):
        kp.load_program(data)


def _set(path: str, value):
    def change(described):
        *where, last = [int(each) if each.isdigit() else each for each in path.split("/")]
        place = described
        for each in where:
            place = place[each]
        if value is KeyError:
            del place[last]
        else:
            place[last] = value

    return change


STEP = "parts/0/entries/0/recordings/0/steps/0"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (_set("format", "zip"), "not a program"),
        (_set("version", 0.5), "whole number"),
        (_set("version", True), "whole number"),
        (_set("parts", KeyError), "lacks the field 'parts'"),
        (_set("other", 1), "unknown field 'other'"),
        (_set("parts/0/name", "a b"), "identifier"),
        (_set("parts/0/shaders/0/file", "../../etc/passwd"), "digest"),
        (_set("parts/0/shaders/0/file", "0" * 64), "it has no shaders"),
        (_set("parts/0/shaders/0/file", ""), "digest"),
        (_set("parts/0/shaders/0/entry", "other"), "other"),
        (_set("parts/0/blocks/0/nbytes", -1), "it is 0 to"),
        (_set("parts/0/blocks/0/nbytes", 2**70), "it is 0 to"),
        (_set("parts/0/blocks/0/nbytes", 4), "ends at byte"),
        (_set("parts/0/blocks/0/memory_type", "disk"), "memory type"),
        (_set("parts/0/values/0/dtype", "object"), "not a dtype"),
        (_set("parts/0/values/0/dtype", "f4,f4"), "not a dtype"),
        (_set("parts/0/values/0/dtype", "02"), "not a dtype"),
        (_set("parts/0/values/0/dtype", "4float32"), "not a dtype"),
        (_set("parts/0/values/0/shape", [2**40, 2**40]), "shape"),
        (_set("parts/0/values/0/offset", 1), "ends at byte"),
        (_set("parts/0/values/0/name", "out"), "none of out"),
        (_set("parts/0/values/0/role", "judge"), "role"),
        (_set("parts/0/entries/0/name", "1"), "identifier"),
        (_set("parts/0/entries/0/recordings", []), "neither"),
        (_set("parts/0/entries/0/recordings/0/inputs", [7]), "no input 7"),
        (_set("parts/0/entries/0/recordings/0/inputs", [1]), "no input 1"),
        (_set(f"{STEP}/kind", "explode"), "kind is 'explode'; it has to be one of dispatch, copy,"),
        (_set(f"{STEP}/groups", [1, 1]), "a list of 3"),
        (_set(f"{STEP}/groups", [2**33, 1, 1]), "32 bits"),
        (_set(f"{STEP}/push", "xyz"), "hexadecimal"),
        (_set(f"{STEP}/shader", 9), "the shader 9"),
        (_set(f"{STEP}/arguments/0/range", {"block": 9, "offset": 0, "nbytes": 4}), "block 9"),
        (_set(f"{STEP}/arguments/0/range", {"block": 0, "offset": 32, "nbytes": 4}), "ends at byte 36"),
        (_set(f"{STEP}/constants", {"data": "00", "places": [[0, 0, 4]]}), "a constant lies"),
        (_set(f"{STEP}/constants", {"data": "00000000", "places": [[0, 0, 3]]}), "a constant lies"),
        (_set(STEP, {"kind": "copy", "name": "c", "ranges": []}), "0 ranges"),
        (_set(STEP, {"kind": "repeat", "name": "r", "times": 3}), "repeats 0 steps"),
        (lambda described: b"[" * 100000, "damaged"),
        (lambda described: b'{"format": "\xff"}', "damaged"),
        (lambda described: b"{}", "lacks the field"),
    ],
)
def test_descriptions_that_do_not_fit_are_refused(saved, change, text):
    with pytest.raises(kp.InvalidArgumentError, match=text):
        kp.load_program(changed(saved, change)).main.signatures  # noqa: B018
        kp.load_program(changed(saved, change)).needs  # noqa: B018


@pytest.mark.parametrize(
    "change",
    [
        _set(f"{STEP}/constants", {"data": "00000000", "places": [[5, 0, 4]]}),
        _set(f"{STEP}/push", "00" * 64),
        _set(f"{STEP}/arguments", []),
        _set(f"{STEP}/groups", [2**32 - 1] * 3),
        _set(f"{STEP}/arguments/0/range", None),
        _set(f"{STEP}/arguments/0/sampler", {
            "filter": "linear", "address": ["repeat"] * 3, "border": "x", "integer": False,
            "unnormalized": False,
        }),
        _set("parts/0/shaders/0/subgroup_size", 3),
        _set(STEP, {"kind": "copy", "name": "c", "ranges": [{"block": 0, "offset": 0, "nbytes": 32}] * 2}),
        _set(STEP, {
            "kind": "repeat", "name": "r", "times": 2,
            "steps": [{"kind": "fill", "name": "f", "ranges": [{"block": 0, "offset": 0, "nbytes": 32}],
                       "patterns": ["0000000000"]}],
        }),
    ],
)  # fmt: skip
def test_what_a_device_refuses(saved, mgr, change):
    program = kp.load_program(changed(saved, change)).on(mgr)
    with pytest.raises(kp.errors.KomputeError):
        program.main(X)


def test_later_versions_are_refused(saved):
    def later(described):
        described["parts"][0]["new"] = 1
        return described | {"version": 2}

    for change in (_set("version", 2), later):
        with pytest.raises(kp.UnimplementedError, match="version 2"):
            kp.load_program(changed(saved, change))
    with pytest.raises(kp.InvalidArgumentError, match="not a program"):
        kp.load_program(changed(saved, lambda described: later(described) | {"format": "zip"}))


def test_damage_is_noticed(saved):
    whole = saved.read_bytes()
    for at in range(0, len(whole), max(1, len(whole) // sampled(60, 2000))):
        for size in (1, 40):
            damaged = bytearray(whole)
            damaged[at : at + size] = bytes(byte ^ 0x5A for byte in damaged[at : at + size])
            try:
                program = kp.load_program(bytes(damaged))
            except kp.errors.KomputeError:
                continue
            # Some bytes of a zip, such as dates, mean nothing.
            assert str(program) == str(kp.load_program(saved))


def test_code_that_is_not_spirv_is_refused(saved):
    """Small files cannot ask for much memory: zeros, which shrink to nothing, are not code."""
    zeros = bytes(1 << 20)
    name = hashlib.sha256(zeros).hexdigest()
    file = io.BytesIO(changed(saved, lambda d: d["parts"][0]["shaders"][0].update(file=name)))
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as more:
        more.writestr(f"shaders/{name}.spv", zeros)
    with pytest.raises(kp.InvalidArgumentError, match="is not the code that its name says"):
        kp.load_program(file.getvalue())


def file_of(described) -> bytes:
    """A file without shaders and data."""
    text = described if isinstance(described, str) else json.dumps(described)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("program.json", text)
    return made.getvalue()


def test_descriptions_have_a_limit(saved, tmp_path, monkeypatch):
    """Of bytes and of items: six kilobytes may hold millions of lists."""
    head = '{"format": "kompute_py program", "version": 1, "parts": ['
    lists = file_of(head + "[]," * 2_200_000 + "[]]}")
    assert len(lists) < 10_000
    with pytest.raises(kp.InvalidArgumentError, match=r"has 44\d+ items; 4194304 is the most"):
        kp.load_program(lists)
    with pytest.raises(kp.InvalidArgumentError, match="bytes; 33554432 is the most"):
        kp.load_program(file_of(head + " " * (1 << 25) + "]}"))
    program = kp.load_program(saved)
    monkeypatch.setattr("kompute_py._programs.file._MOST_ITEMS", 20)  # nor is a file written that none reads
    with pytest.raises(kp.InvalidArgumentError, match="items; 20 is the most that is read"):
        program.save(tmp_path / "other.kpp")
    assert not (tmp_path / "other.kpp").exists()


MANY = 30_000


def _values(role: str, **more) -> list[dict]:
    form = {"role": role, "block": 0, "offset": 0, "shape": [1], "dtype": "uint8"}
    return [{**form, "name": f"v{n}", **{key: make(n) for key, make in more.items()}} for n in range(MANY)]


MEMORY = {"nbytes": MANY, "memory_type": "device"}
RECORDINGS = [{"inputs": [n], "outputs": [], "steps": []} for n in range(MANY)]


@pytest.mark.parametrize(
    ("parts", "refused"),
    [
        ([{
            "name": "", "entries": [{"name": "main", "recordings": RECORDINGS}], "blocks": [MEMORY],
            "values": _values("input", shape=lambda n: [n + 1]),
        }], None),
        ([{
            "name": "", "entries": [],
            "blocks": [{**MEMORY, "nbytes": 1, "contents": f"v{n}"} for n in range(MANY)],
            "values": _values("parameter", block=lambda n: n),
        }], None),
        ([{
            "name": "", "entries": [], "blocks": [MEMORY],
            "values": _values("state", name=lambda n: f"v{min(n, MANY - 2)}"),
        }], "stands twice"),
    ],
    ids=["recordings", "parameters", "names"],
)  # fmt: skip
def test_small_files_take_no_minutes(parts, refused):
    """The time grows with the file, not with its square, which here would be ten seconds and more."""
    data = file_of({"format": "kompute_py program", "version": 1, "parts": parts})
    began = time.process_time()
    if refused is None:
        kp.load_program(data)
    else:
        with pytest.raises(kp.InvalidArgumentError, match=refused):
            kp.load_program(data)
    assert time.process_time() - began < 5


def test_memory_of_many_names_takes_no_minutes(mgr):
    """As above, when the memory is made."""
    blocks = [{**MEMORY, "nbytes": 1} for _ in range(MANY // 2)]
    values = _values("state", block=lambda n: n)[: MANY // 2]
    part = {"name": "", "entries": [], "blocks": blocks, "values": values}
    program = kp.load_program(file_of({"format": "kompute_py program", "version": 1, "parts": [part]}))
    began = time.process_time()
    state = program.on(mgr).state
    assert time.process_time() - began < 5 and state["v7"].name == "v7"


def test_all_shaders_have_a_limit(saved, tmp_path, monkeypatch):
    program = kp.load_program(saved)
    monkeypatch.setattr("kompute_py._programs.file._MOST_CODE", 100)
    with pytest.raises(kp.InvalidArgumentError, match=r"its shaders have \d+ bytes or more; 100 is the most"):
        kp.load_program(saved)
    with pytest.raises(kp.InvalidArgumentError, match="100 is the most that is read"):
        program.save(tmp_path / "other.kpp")  # a file that nothing could read
    assert not (tmp_path / "other.kpp").exists()


def test_files_report_their_progress(mgr, tmp_path):
    """The data of a file, and each tensor on its way to the device, as in parameter files."""
    weight, x, y = mgr.tensor(np.arange(1 << 21)), mgr.zeros(1 << 21), mgr.zeros(1 << 21)
    program = kp.Program.record(
        kp.OpMult([x, weight, y]), inputs={"x": x}, outputs={"y": y}, parameters={"weight": weight}
    )
    path, seen = tmp_path / "large.kpp", []

    def report(*state):
        seen.append(state)

    def spans():
        """The last report, after reports in order."""
        assert seen == sorted(seen)
        done, total, name = seen[-1]
        seen.clear()
        return done == total, name

    program.save(path, progress=report)
    assert spans() == (True, "weight")
    loaded = kp.load_program(path, progress=report).on(mgr)
    assert spans() == (True, "parameters.safetensors")
    loaded.preload()
    assert spans() == (True, "weight")
    loaded.main(np.ones(1 << 21, np.float32))
    assert not seen


@pytest.mark.parametrize("error", [ValueError, OSError, kp.InvalidArgumentError])
def test_errors_of_progress_are_not_of_the_file(saved, tmp_path, error):
    def stop(done, total, name):
        raise error("stop")

    with pytest.raises(error, match="stop"):
        kp.load_program(saved, progress=stop)
    program, path = kp.load_program(saved), tmp_path / "other.kpp"
    with pytest.raises(error, match="stop"):
        program.save(path, progress=stop)
    assert list(tmp_path.iterdir()) == [saved]
    with pytest.raises(kp.ArgumentTypeError, match="progress is a str"):
        program.save(path, progress="bar")
    with pytest.raises(kp.ArgumentTypeError, match="progress is a str"):
        kp.load_program(saved, progress="bar")


def test_a_file_that_changes_is_noticed(saved, mgr):
    program = kp.load_program(saved).on(mgr)
    data = saved.read_bytes()
    os.truncate(saved, len(data) // 2)
    with pytest.raises(kp.UnavailableError, match="changed"):
        program.main(X)


@pytest.mark.parametrize("parameters", [True, False])
def test_a_program_is_saved_onto_its_own_file(saved, mgr, parameters):
    program = kp.load_program(saved).on(mgr)
    again = kp.load_program(saved)  # another one, which knows nothing of it
    program.save(saved, parameters=parameters)
    np.testing.assert_array_equal(program.main(X), X * X)
    with pytest.raises(kp.UnavailableError, match="changed"):
        again.on(mgr).main(X)
    program.save(saved)
    np.testing.assert_array_equal(kp.load_program(saved).on(mgr).main(X), X * X)


@pytest.mark.sampled
def test_mutants(mgr):
    whole = fuzz_programs.seed_program(mgr)
    assert fuzz_programs.use(whole, mgr)
    taken = [
        fuzz_programs.use((fuzz_files if n % 4 == 0 else fuzz_programs).mutant(whole, n, 1), mgr)
        for n in range(sampled(200, 20_000))
    ]
    assert any(taken) and not all(taken)


SIZED = """#version 450
layout(local_size_x = 64, local_size_x_id = 0) in;
layout(binding = 0) buffer X { float x[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += 1.0; }"""


@pytest.mark.capability(
    "", "a program checked for a device, of this machine or another", "Program.check", "guides/programs"
)
def test_a_program_is_checked_for_a_device(mgr, tmp_path):
    info = mgr.get_device_properties()
    limits = {**info.limits, "maxComputeWorkGroupInvocations": 100}
    small = kp.DeviceInfo({**info, "limits": limits, "max_work_group_invocations": 100})
    kernel, x = mgr.kernel(SIZED), mgr.zeros(8)
    special = kernel.specialize({0: 128})
    repeated = kp.OpRepeat(special.bind(x), times=3)
    for made, refused in (
        ({"run": kernel}, 0),
        ({"run": special}, 1),
        ({"run": [kernel.bind(x), special.bind(x)]}, 1),
        ({"one": special, "two": [repeated, special.bind(x)]}, 1),
    ):
        recorded = any(isinstance(each, list) for each in made.values())
        program = kp.Program.record(made, **({"inputs": {"x": x}, "outputs": {"x": x}} if recorded else {}))
        program.save(tmp_path / "program.kpp")
        program = kp.load_program(tmp_path / "program.kpp")
        assert program.check(mgr) == program.check(info) == []
        found = program.check(small)
        assert [finding.what for finding in found] == ["maxComputeWorkGroupInvocations"] * refused
    with pytest.raises(kp.NotFoundError):
        program.check(77)


ASKS = """#version 450
#extension GL_EXT_spirv_intrinsics : require
layout(local_size_x = 64) in;
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4464], 4459, 32);
layout(binding = 0) buffer X { float x[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += 1.0; }"""


PUSHES = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { layout(offset = %d) float by; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += by; }"""


def test_code_of_another_entry_point_or_beside_its_push_constants_is_refused():
    """What was declared makes the layout, and the code runs with it."""
    code = kp.compile(PUSHES % 64)
    for declared, what in (
        (code, ""),
        (code.replace(b"main\0", b"mail\0"), "entry point"),
        (kp.compile(PUSHES % 0), "push constants"),
        (kp.compile(PUSHES % 128), "push constants"),
    ):
        shader = Shader("code", "main", "pushes", "declared")
        refused = pytest.raises(kp.InvalidArgumentError, match=what) if what else contextlib.nullcontext()
        with refused:
            module_of(shader, {"code": code, "declared": declared})


@pytest.mark.each_driver
def test_generated_kernels_run_without_modes_that_a_device_lacks(mgr, tmp_path):
    """As if they came from a device with all modes. A script's own kernel needs what it asks for."""
    module = kp.ShaderModule(ASKS, name="asks")
    info = mgr.get_device_properties()
    without = kp.DeviceInfo({**info, "float_controls": {}})
    own = kp.Program.record(module)
    assert own.needs == ("DenormPreserve",) and own.check(without)
    if not info.float_controls["shaderDenormPreserveFloat32"]:
        with pytest.raises(kp.UnimplementedError, match="DenormPreserve"):
            own.on(mgr).main(X)
    module._generated = True
    kp.Program.record(module).save(tmp_path / "generated.kpp")
    program = kp.load_program(tmp_path / "generated.kpp")
    assert program.needs == () and not program.check(without) and not program.check(mgr)
    np.testing.assert_array_equal(program.on(mgr).main(X.copy()), X + 1)


def test_modes_for_floats_are_left_out_one_by_one():
    every = {f"shader{name}PreserveFloat32": True for name in ("Denorm", "SignedZeroInfNan")}
    lines = float_modes.lines_of(every, 32)
    text = ASKS.replace(
        next(line for line in ASKS.splitlines() if line.startswith("spirv_")), "\n".join(lines)
    )
    made = kp.compile(text)
    assert float_modes.adapted(made, every) == made
    for has in (["Denorm"], ["SignedZeroInfNan"], []):
        adapted = float_modes.adapted(made, {f"shader{name}PreserveFloat32": True for name in has})
        found = kp.ShaderModule(adapted).reflection["capabilities"]
        assert set(found) - {"Shader"} == {f"{name}Preserve" for name in has}
        assert (b"SPV_KHR_float_controls" in adapted) == bool(has)


def test_what_functions_generate_is_known_in_programs(mgr, tmp_path):
    x, y = mgr.zeros(8), mgr.zeros(8)
    steps = [kp.ops.exp.bind(x, out=y), mgr.kernel(SIZED).bind(y)]
    program = kp.Program.record(steps, inputs={"x": x}, outputs={"y": y}).on(mgr)
    for _ in range(2):  # also when it is recorded again
        part = program._core.content.parts[0]
        assert [shader.generated for shader in part.shaders] == [True, False]
        bound = program.main.bind(x, out=y)
        program = kp.Program.record(bound, inputs={"x": x}, outputs={"y": y}).on(mgr)
    np.testing.assert_allclose(program.main(np.zeros(8, np.float32)), 2)
