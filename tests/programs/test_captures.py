"""capture=: what a script submitted, as a program that repeats it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._programs.capture import finish
from kompute_py.cli import main
from tests.support.child import run_child

SCALE = """
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float plus; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = 2 * x[i] + plus; }
"""
X = np.arange(1, 9, dtype=np.float32)


@pytest.fixture
def captured(make_manager, mgr, tmp_path):
    """Makes a Manager that captures; the second result ends the capture and loads it on another Manager."""
    path = tmp_path / "script.kpp"

    def make(**options):
        manager = make_manager(capture=path, **options)

        def load():
            finish()
            return kp.load_program(path).on(mgr)

        return manager, load

    yield make
    finish()


def outputs(entry: kp.ProgramEntry) -> dict[str, np.ndarray]:
    """A replay's results by name."""
    found = entry()
    found = found if isinstance(found, tuple) else (found,)
    return dict(zip([value.name for value in entry._target((), {}).forms[0].outputs], found, strict=True))


def test_a_replay_repeats_calls_functions_sequences_and_transfers(captured, capsys):
    manager, load = captured()
    scale = manager.kernel(SCALE, name="scale")
    x, y, total = manager.tensor(X), manager.zeros(8), manager.zeros(8)
    x.name, y.name, total.name = "x", "y", "total"
    sequence = manager.sequence().record(
        kp.OpSyncDevice([x]),
        scale.bind(x, y, plus=0.25),
        kp.OpHostCall(lambda: y.write(y.read() + 3), reads=[y], writes=[y]),
        kp.ops.add.bind(total, y, out=total),
        kp.OpSyncLocal([total]),
    )
    for number in range(3):
        x.data()[2] = 10.0 * number  # uploaded by the recording
        sequence.eval()
        y[4:6].write(np.array([1, 2], np.float32))  # by a transfer
        kp.ops.add(total, y, out=total)
    scale(total, y, plus=1.0)
    mapped = scale(X, np.zeros(8, np.float32), plus=2.0)
    np.testing.assert_array_equal(mapped, 2 * X + 2)
    expected = {"total": total.read(), "y": y.read(), "x": x.read()}
    program = load()
    assert "kompute_py: wrote" in capsys.readouterr().err
    replayed = outputs(program.main)
    for name in ("total", "y"):
        np.testing.assert_array_equal(replayed[name], expected[name])
    assert any(np.array_equal(each[:8], mapped) for each in replayed.values() if each.dtype == np.float32)
    # Each submission with its line and operations.
    lines = program.main.source.splitlines()
    assert len(lines) == 3 * 3 + 2
    assert "test_captures.py:" in lines[0] and lines[0].endswith("OpSyncDevice, scale")
    names = [step.name for step in program._core.parts[""].entries[0].recordings[0].steps]
    assert names.count("scale") == 5 and "data of x" in names and "data of y" in names


def test_the_file_alone_locates_a_difference(captured, tmp_path, capsys):
    manager, load = captured()
    x, y = manager.tensor(X), manager.zeros(8)
    manager.kernel(SCALE, name="scale")(x, y, plus=1.0)
    kp.ops.multiply(y, 2, out=y)
    load()
    path = str(tmp_path / "script.kpp")
    driver = manager.driver.path if manager.driver else ""
    if driver:
        capsys.readouterr()
        assert main(["program", "compare", path, f"--driver={driver}", f"--driver={driver}"]) == 0
        assert "equal" in capsys.readouterr().out
    assert main(["program", "info", path]) == 0
    assert "main() -> (" in capsys.readouterr().out


def test_memory_that_comes_again_holds_what_it_held_then(captured):
    manager, load = captured()
    scale, total = manager.kernel(SCALE, name="scale"), manager.zeros(64)
    total.name = "total"
    for number in range(20):
        short_lived = manager.tensor(np.full(64, number, np.float32))
        made = manager.zeros(64)
        scale(short_lived, made, plus=1.0)
        kp.ops.add(total, made, out=total)
        del short_lived, made
    expected = total.read()
    np.testing.assert_array_equal(outputs(load().main)["total"], expected)


def test_threads_are_captured_in_the_order_in_which_they_ran(captured):
    manager, load = captured()
    scale = manager.kernel(SCALE, name="scale")
    results = [manager.zeros(8) for _ in range(4)]
    for number, each in enumerate(results):
        each.name = f"result{number}"

    def work(number):
        for turn in range(6):
            scale(manager.tensor(X + turn), results[number], plus=float(number))

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    replayed = outputs(load().main)
    for number in range(4):
        np.testing.assert_array_equal(replayed[f"result{number}"], 2 * (X + 5) + number)


def test_repeats_copies_and_fills(captured):
    manager, load = captured()
    scale = manager.kernel(SCALE, name="scale")
    a, b, c = manager.tensor(X), manager.zeros(8), manager.zeros(16)
    a.name, b.name, c.name = "a", "b", "c"
    manager.sequence().record(
        kp.OpRepeat([scale.bind(a, b, plus=1.0)], 5, swap=[(a, b)]),
        kp.OpFill([c], 3),
        kp.OpCopy([a, c[8:]]),
    ).eval()
    expected = {each.name: each.read() for each in (a, b, c)}
    replayed = outputs(load().main)
    np.testing.assert_array_equal(replayed["c"], expected["c"])


BLUR = """
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, r32f) readonly uniform image2D a;
layout(binding = 1, r32f) writeonly uniform image2D b;
layout(binding = 2) uniform sampler2D s;
void main() {
    ivec2 p = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(p, imageSize(b)))) return;
    imageStore(b, p, imageLoad(a, p) * 0.5 + texelFetch(s, p, 0) + 1.0);
}
"""


def test_images(captured):
    manager, load = captured()
    kernel = manager.kernel(BLUR, name="blur")
    texels = np.arange(24, dtype=np.float32).reshape(4, 6)
    a, b, other = manager.image(texels), manager.image(np.zeros_like(texels)), manager.image(texels * 3)
    t = manager.zeros(24)
    b.name, t.name = "b", "t"
    for number in range(3):
        a.write(texels + number)
        kernel(a, b, other.sampled("nearest", "clamp_to_edge"))
        kernel(b, a, other.sampled("nearest", "clamp_to_edge"))
        manager.sequence().eval(kp.OpCopyRegion(b, t))
    other.write(texels)
    kernel(a, b, other.sampled("nearest", "clamp_to_edge"))
    replayed = outputs(load().main)
    np.testing.assert_array_equal(replayed["b"], b.read())
    np.testing.assert_array_equal(replayed["t"], t.read())
    assert any(np.array_equal(each, a.read()) for each in replayed.values() if each.shape == (4, 6))


def test_what_a_capture_cannot_hold_ends_it_with_the_reason(captured):
    manager, load = captured()
    if not manager.host_import_alignment:
        pytest.skip("the device imports no memory of the process")
    y = manager.zeros(8)
    y.name = "y"
    manager.sequence().eval(kp.OpFill([y], 3))
    array = kp.aligned_zeros(2048, np.uint32, manager.host_import_alignment)
    one, same = manager.from_host(array, copy="never"), manager.from_host(array, copy="never")
    manager.sequence().eval(kp.OpFill([one], 1))  # one of them is as good as any
    with pytest.raises(
        kp.UnimplementedError,
        match=r"ends with 2 submissions, before .*test_captures.py:\d+\): .*over the same shared memory",
    ):
        manager.sequence().record(
            kp.OpFill([one], 5), kp.OpCopy([same, manager.zeros(2048, np.uint32)])
        ).eval()
    manager.sequence().eval(kp.OpFill([y], 5))  # the script may go on
    assert y.read().tolist() == [5] * 8
    np.testing.assert_array_equal(outputs(load().main)["y"], np.full(8, 3))


def test_vulkan_commands_of_a_script_end_it(captured):
    class Foreign(kp.OpBase):
        def record(self, recorder):
            pass

    manager, _ = captured()
    with pytest.raises(kp.UnimplementedError, match="records Vulkan commands by code of its own"):
        manager.sequence().eval(Foreign())
    with pytest.warns(kp.KomputeWarning, match="nothing was captured"):
        finish()


def test_the_limit(captured):
    manager, load = captured(capture_limit="8 KiB")
    first = manager.full(512, 7)
    first.name = "first"
    manager.sequence().eval(kp.OpCopy([first, manager.zeros(512)]))
    large = manager.zeros(4096)
    with pytest.raises(
        kp.FailedPreconditionError, match="more than 8 KiB of data: give a larger capture_limit"
    ):
        manager.sequence().eval(kp.OpCopy([large, manager.zeros(4096)]))
    program = load()
    assert len(program.main.source.splitlines()) == 1


def test_two_managers_are_two_modules(make_manager, captured, tmp_path):
    manager, load = captured()
    other = make_manager(capture=tmp_path / "script.kpp")
    for each, value in ((manager, 1), (other, 2)):
        t = each.zeros(4)
        t.name = "t"
        each.sequence().eval(kp.OpFill([t], value))
    program = load()
    assert program.exports == ("manager0.main", "manager1.main")
    assert outputs(program["manager1.main"])["t"].tolist() == [2] * 4


def test_nothing_submitted_writes_no_file(captured, tmp_path):
    captured()
    with pytest.warns(kp.KomputeWarning, match="nothing was captured"):
        finish()
    assert not (tmp_path / "script.kpp").exists()


def test_the_file_lies_where_the_script_was_when_it_named_it(make_manager, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    manager = make_manager(capture="here.kpp")
    manager.zeros(4).fill(1).wait()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    finish()
    assert (tmp_path / "here.kpp").exists() and "wrote here.kpp," in capsys.readouterr().err


def child_script():
    with kp.Manager() as mgr:
        t = mgr.zeros(4)
        t.name = "t"
        mgr.sequence().eval(kp.OpFill([t], 6))


@pytest.mark.capability(
    "", "a program of all that a script submits, with its data", "kp.load_program", "guides/debugging"
)
def test_the_variable_captures_a_script(mgr, tmp_path):
    path = tmp_path / "from_variable.kpp"
    run_child(child_script, env={"KOMPUTE_PY_CAPTURE": str(path)})
    assert outputs(kp.load_program(path).on(mgr).main)["t"].tolist() == [6] * 4
