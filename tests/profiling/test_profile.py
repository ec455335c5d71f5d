"""mgr.profile(): every submission is noted, with its operations, times, bytes and lines."""

from __future__ import annotations

import json
import pickle
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._base.text import binary_size
from kompute_py.cli import main
from tests.support.child import python
from tests.support.threads import on_threads

HEAD = "#version 450\nlayout(local_size_x = 64) in;\nlayout(binding = 0) buffer X { float x[]; };\n"
SQUARE = HEAD + "void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= x[i]; }"
DOUBLE = HEAD + "void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= 2.0; }"
N = 1000
TRANSFERS = ("upload", "download")  # of devices whose memory the host does not see


def line_here(offset: int = 0) -> str:
    frame = sys._getframe(1)
    return f"{frame.f_code.co_filename}:{frame.f_lineno + offset}"


@pytest.fixture
def device(mgr, needs):
    needs(mgr, "timestamps")
    return mgr


def recorded(mgr, kernels, tensor, **options):
    return mgr.sequence(**options).record(*(kernel.bind(tensor) for kernel in kernels))


@pytest.mark.capability(
    "I60 S59",
    "profiles of all that a device runs, as table, trace and picture",
    "Manager.profile",
    "guides/timing",
)
def test_operations_of_a_sequence(device):
    square, double = device.kernel(SQUARE, name="square"), device.kernel(DOUBLE, name="double")
    t = device.tensor(np.arange(N))
    sequence = recorded(device, [square, double], t)
    sequence.name = "both"
    sequence.eval()  # built before the profile
    with device.profile() as p:
        sequence.eval()
        sequence.eval()
        line = line_here(-1)
    expected = np.arange(N, dtype=np.float32)
    for _ in range(3):
        expected = expected * expected * np.float32(2)
    np.testing.assert_array_equal(t.read(), expected)
    assert p.records["name"].tolist() == ["square", "double"] * 2
    assert p.records["submission"].tolist() == [0, 0, 1, 1]
    assert set(p.records["sequence"]) == {"sequence 'both'"}
    assert p.records["groups"].tolist() == [[16, 1, 1]] * 4
    assert set(p.records["bytes_read"]) == set(p.records["bytes_written"]) == {4 * N}
    assert p.records["line"][2] == line
    assert p.records["thread"].tolist() == [threading.get_ident()] * 4
    assert (p.records["seconds"] >= 0).all()
    assert (p.records["memory"] > 0).all()
    # One after the other, after their submission and within the block, as far as the clocks agree.
    begin, seconds, slack = p.records["begin"], p.records["seconds"], p.clock_uncertainty + 1e-6
    np.testing.assert_allclose(begin[1::2], (begin + seconds)[0::2], atol=1e-9)
    assert (begin >= p.records["submitted"] - slack).all()
    assert begin[2] >= begin[1] + seconds[1] - 1e-9
    assert (begin + seconds <= p.seconds + slack).all()
    assert p.device_seconds == pytest.approx(seconds.sum())
    assert p.submissions == 2


def test_the_line_that_recorded_each_operation(make_manager, needs):
    device = make_manager(validation=False)  # else lines are noted before, for the layer's messages
    needs(device, "timestamps")
    square, double = device.kernel(SQUARE, name="square"), device.kernel(DOUBLE, name="double")
    t = device.tensor(np.arange(N))
    before = device.sequence().record(square.bind(t))
    with device.profile() as p:
        sequence = device.sequence()
        lines = [line_here(1)]
        sequence.record(square.bind(t))
        lines.append(line_here(1))
        sequence.record(double.bind(t), kp.OpSyncLocal([t]))
        sequence.eval()
        sequence.rerecord()
        sequence.eval()
        lines.append(line_here(1))
        square(t)
        lines.append(line_here(1))
        before.eval()
    # A call records its operation itself; of what was recorded before, only the submission is known.
    first = [lines[0], lines[1], lines[1]]
    assert p.records["recorded"].tolist() == [*first, *first, lines[2], lines[3]]
    assert p.records["line"][0] != lines[0]
    totals = {total.name: total.line for total in p.totals()}
    assert totals["double"] == lines[1]
    # A new recording has its own.
    with device.profile() as p:
        sequence.clear()
        sequence.eval(double.bind(t))
        line = line_here(-1)
    assert p.records["recorded"].tolist() == [line]


@pytest.mark.capability(
    "", "times of the device on the host's clock", "Profile.clock_calibrated", "reference/recording"
)
def test_the_drivers_clocks_are_used_where_it_relates_them(device):
    before = time.perf_counter()
    with device.profile() as p:
        device.kernel(SQUARE)(device.tensor(np.ones(N)))
    assert p.clock_calibrated == ("VK_EXT_calibrated_timestamps" in device.enabled_extensions)
    assert 0 <= p.clock_uncertainty < time.perf_counter() - before


def moved(profile, name):
    """(bytes read, bytes written) by all operations with this name."""
    named = profile.records[profile.records["name"] == name]
    return int(named["bytes_read"].sum()), int(named["bytes_written"].sum())


@pytest.mark.parametrize("staged", [False, True])
def test_the_bytes_of_a_stream_are_those_of_its_frames(make_manager, staged):
    device = make_manager(force_staging=staged)
    t, other = device.zeros(N), device.zeros(N)
    sequence = device.sequence().record(
        kp.OpSyncDevice([t]),
        device.kernel(SQUARE, name="square").bind(t),
        kp.OpCopy([t, other]),
        kp.OpSyncLocal([other]),
    )
    with device.profile() as p:
        for _ in sequence.stream([np.full(N, n, np.float32) for n in range(5)], inputs=t, outputs=other):
            pass
    assert moved(p, "OpSyncDevice") == (0, 5 * 4 * N)
    assert moved(p, "OpSyncLocal") == (5 * 4 * N, 0)
    assert moved(p, "square") == (5 * 4 * N, 5 * 4 * N)


def test_the_bytes_of_repetitions_are_those_of_all_turns(device):
    t, other = device.zeros(N), device.zeros(N)
    square, double = (
        device.kernel(SQUARE, name="square").bind(t),
        device.kernel(DOUBLE, name="double").bind(t),
    )
    with device.profile() as p:
        device.sequence().record(kp.OpRepeat([square, double], 10)).eval()
        device.sequence().record(kp.OpRepeat(square, 7, swap=[(t, other)])).eval()
        device.sequence().record(kp.OpRepeat(kp.OpCopy([t, other]), 3)).eval()
        device.sequence().record(kp.OpRepeat(square, 0)).eval()
    turns = [10 * 2, 7, 3, 0]
    assert p.records["bytes_read"].tolist() == [each * 4 * N for each in turns]
    assert p.records["bytes_written"].tolist() == [each * 4 * N for each in turns]


@pytest.mark.parametrize("staged", [False, True])
def test_copies_between_managers_are_spans_with_their_bytes(make_manager, staged):
    here, there = make_manager(force_staging=staged), make_manager(force_staging=staged)
    t, other = here.tensor(np.arange(N)), there.zeros(N)
    with here.profile() as p, there.profile() as q:
        here.sequence().record(kp.OpCopy([t, other])).eval()
        t.to(there)
        other.write(other.read())
    for profile in (p, q):
        spans = profile.spans
        assert spans["bytes"][spans["kind"] == "copy"].tolist() == [4 * N, 4 * N]
        assert spans["bytes"][spans["kind"] == "write"][-1] == 4 * N
        assert "copy " in str(profile) and f"(2, {binary_size(8 * N)})" in str(profile)


@pytest.mark.capability("W25", "times of single calls", "Profile.records", "reference/recording")
def test_kernels_functions_and_arrays(device):
    square = device.kernel(SQUARE, name="square")
    t = device.tensor(np.arange(N))
    with device.profile() as p:
        square(t)
        square(np.arange(8, dtype=np.float32))
        fence = square.submit(t)
        fence.wait()
        assert float(kp.ops.sum(device.tensor(np.ones(N)))) == N
        kp.ops.sort(t)
    names = [name for name in p.records["name"] if name not in TRANSFERS]
    assert names[:3] == ["square"] * 3
    assert any(name.split(".")[0] == "sum" for name in names)
    assert any(name.startswith("sort.") for name in names)
    assert p.totals()[0].name in names
    assert sum(total.calls for total in p.totals()) == len(p.records)
    assert sum(total.seconds for total in p.totals()) == pytest.approx(p.device_seconds)
    kinds = set(p.spans["kind"])
    assert {"submit", "build"} <= kinds
    assert (np.diff(p.spans["begin"]) >= 0).all()


def test_times_agree_with_the_sequence_s_own(device):
    t = device.tensor(np.arange(100_000))
    sequence = recorded(device, [device.kernel(SQUARE), device.kernel(DOUBLE)], t, timestamps=True)
    # Both write their timestamps at the same places, one after the other. On a busy machine the driver may be
    # held up between the two.
    for _ in range(20):
        with device.profile() as p:
            sequence.eval()
        own = [seconds for _, seconds in sequence.timings()]
        if np.allclose(p.records["seconds"], own, rtol=0.25, atol=20e-6):
            return
    np.testing.assert_allclose(p.records["seconds"], own, rtol=0.25, atol=20e-6)


def test_transfers(make_manager, needs):
    device = make_manager(force_staging=True)
    needs(device, "timestamps")
    t = device.zeros(N)
    t.read()
    with device.profile() as p:
        t.write(np.ones(N, np.float32))
        back = t.read()
    np.testing.assert_array_equal(back, 1)
    names = p.records["name"].tolist()
    assert names == ["upload", "download"]
    assert p.records["bytes_written"].tolist() == [4 * N] * 2
    assert (p.records["seconds"] >= 0).all()
    assert {"read", "write"} <= set(p.spans["kind"])


def test_streams_threads_and_queues(device, make_manager):
    family = device.queues[0]["family"]
    two = make_manager(family_queue_indices=[family, family])
    tensors = [two.tensor(np.arange(N)) for _ in range(2)]
    double = two.kernel(DOUBLE, name="double")
    sequences = [
        two.sequence(queue).record(double.bind(t)) for queue, t in zip(range(2), tensors, strict=True)
    ]
    source, target = two.zeros(N), two.zeros(N)
    copy = two.sequence().record(kp.OpCopy([source, target]))

    def work(sequence):
        for _ in range(20):
            sequence.eval()

    with two.profile() as p:
        on_threads(work, sequences)
        frames = list(
            copy.stream([np.full(N, i, np.float32) for i in range(5)], inputs=[source], outputs=target)
        )
    assert [frame[0] for frame in frames] == [0, 1, 2, 3, 4]
    for t in tensors:
        np.testing.assert_array_equal(t.read(), np.arange(N, dtype=np.float32) * 2.0**20)
    doubled = p.records[p.records["name"] == "double"]
    assert len(doubled) == 40
    assert len(set(doubled["thread"])) == 2
    assert np.count_nonzero(p.records["name"] == "OpSyncLocal") == 5  # one for each frame
    timed = p.records[~np.isnan(p.records["seconds"])]
    assert len(timed) == len(p.records)


def test_whole_sequences(device):
    t = device.tensor(np.arange(N))
    sequence = recorded(device, [device.kernel(DOUBLE)] * 3, t)
    sequence.name = "three"
    with device.profile(operations=False) as p:
        sequence.eval()
    assert p.records["name"].tolist() == ["sequence 'three'"]
    assert p.records["bytes_written"].tolist() == [3 * 4 * N]
    assert p.records["seconds"][0] >= 0


def test_barriers_stay_what_they_were(device):
    t, u = device.tensor(np.arange(N)), device.tensor(np.arange(N))
    double = device.kernel(DOUBLE)
    sequence = device.sequence().record(double.bind(t), double.bind(u), double.bind(t), kp.OpCopy([t, u]))
    sequence.eval()
    before = sequence._native.barriers()
    with device.profile():
        sequence.eval()
        assert sequence._native.barriers() == before
    sequence.eval()
    assert sequence._native.barriers() == before


def test_profiles_in_profiles(device):
    double, t = device.kernel(DOUBLE, name="double"), device.tensor(np.arange(N))
    with device.profile() as outer:
        double(t)
        with device.profile() as inner:
            double(t)
            double(t)
        double(t)
        with pytest.raises(kp.FailedPreconditionError, match="operations=True"):
            device.profile(operations=False).__enter__()
    assert len(inner.records) == 2
    assert len(outer.records) == 4
    np.testing.assert_allclose(inner.records["seconds"], outer.records["seconds"][1:3], atol=1e-9)


def test_what_ends_within_the_block(device):
    double = device.kernel(DOUBLE, name="double")
    with device.profile() as p:
        for count in range(1, 4):  # sequences that are gone before the end, and new tensors in their place
            t = device.tensor(np.arange(count * 100))
            device.sequence().record(double.bind(t)).eval()
            device.sequence().record(double.bind(t)).eval_async().eval_await()
            del t
    assert p.records["name"].tolist() == ["double"] * 6
    assert not np.isnan(p.records["seconds"]).any()


def test_a_manager_that_ends_within_the_block(make_manager, needs):
    device = make_manager()
    needs(device, "timestamps")
    with device.profile() as p:
        device.kernel(DOUBLE, name="double")(device.tensor(np.arange(N)))
        device.destroy()
    assert p.records["name"].tolist() == ["double"]
    assert not np.isnan(p.records["seconds"]).any()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        device.profile()


def test_held_and_cancelled_work(device):
    double, t = device.kernel(DOUBLE, name="double"), device.tensor(np.arange(N))
    semaphore = device.semaphore()
    sequence = device.sequence().record(double.bind(t))
    with device.profile() as p:
        sequence.eval_async(wait=(semaphore, 1))
    assert len(p.records) == 0  # it is not submitted yet
    with device.profile() as p:
        semaphore.signal(1)
        sequence.eval_await()
    # Its commands are those of before.
    assert p.records["name"].tolist() == ["submission"]
    assert p.records["seconds"][0] >= 0
    with device.profile() as p:
        sequence.eval()
    assert p.records["name"].tolist() == ["double"]


def test_an_exception_leaves_the_records(device):
    double, t = device.kernel(DOUBLE, name="double"), device.tensor(np.arange(N))
    with pytest.raises(ZeroDivisionError), device.profile() as p:
        double(t)
        raise ZeroDivisionError
    assert len(p.records) == 1
    np.testing.assert_array_equal(t.read()[:3], [0, 2, 4])


def test_text_and_card(device):
    double, t = device.kernel(DOUBLE, name="<double>"), device.tensor(np.arange(N))
    with device.profile() as p:
        for _ in range(3):
            double(t)
    text = str(p)
    assert device.get_device_properties()["device_name"] in text
    row = next(line for line in text.splitlines() if line.startswith("<double>"))
    assert row.split()[1] == "3"
    assert f"{Path(__file__).name}:" in row
    assert "100.0%" in row
    assert "host: " in text
    # Where timestamps are dear, the table says so.
    dear = device.get_device_properties()["driver_name"] == "llvmpipe"
    assert ("takes for its timestamp: mgr.profile(operations=False)" in text) is dear
    with device.profile(operations=False) as whole:
        double(t)
    assert "for its timestamp" not in str(whole)
    card = p._repr_html_()
    assert "&lt;double&gt;" in card
    assert "<double>" not in card
    assert "3 submissions" in repr(p)


def check_trace(trace):
    """The rules of Chrome's trace event format for the events that are used here."""
    assert set(trace) >= {"traceEvents", "displayTimeUnit"}
    flows: dict[int, list[str]] = {}
    for event in trace["traceEvents"]:
        assert isinstance(event["pid"], int)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
        elif event["ph"] == "X":
            assert event["dur"] >= 0
            assert isinstance(event["ts"], float)
            assert isinstance(event["tid"], int)
        elif event["ph"] in "sf":
            flows.setdefault(event["id"], []).append(event["ph"])
        else:
            assert event["ph"] == "C"
            assert all(isinstance(value, int) for value in event["args"].values())
    assert all(kinds == ["s", "f"] for kinds in flows.values())


def test_trace(device, tmp_path):
    double, t = device.kernel(DOUBLE, name="double"), device.tensor(np.arange(N))
    with device.profile() as p:
        for _ in range(3):
            double(t)
    p.to_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    check_trace(trace)
    device_events = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "device"]
    assert [e["name"] for e in device_events] == ["double"] * 3
    np.testing.assert_allclose([e["dur"] for e in device_events], p.records["seconds"] * 1e6)
    assert device_events[0]["args"]["bytes_read"] == 4 * N
    assert {e["name"] for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] == "host"} >= {
        "submit sequence 'double'"
    }
    with pytest.raises(OSError):
        p.to_trace(tmp_path / "no folder" / "trace.json")


def test_plot(device):
    pytest.importorskip("matplotlib")
    double, t = device.kernel(DOUBLE, name="double"), device.tensor(np.arange(N))
    with device.profile() as p:
        double(t)
        double(t)
    axes = p.plot()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0] == "queue 0"
    assert "MainThread" in labels
    bars = axes.collections[0].get_paths()
    assert len(bars) == 2
    assert bars[0].vertices[:, 0].min() == pytest.approx(p.records["begin"][0] * 1e3)
    assert "double" in [text.get_text() for text in axes.get_legend().get_texts()]
    assert p.plot(axes) is axes


def test_misuse(device):
    p = device.profile()
    for look in (lambda: p.records, lambda: p.seconds, p.totals, lambda: p.to_trace("x"), p.plot):
        with pytest.raises(kp.FailedPreconditionError, match="has not begun"):
            look()
    with p:
        for look in (lambda: p.records, lambda: p.spans, lambda: p.clock_uncertainty):
            with pytest.raises(kp.FailedPreconditionError, match="has not ended"):
                look()
        assert "running" in repr(p)
        assert "running" in str(p)
    with pytest.raises(kp.FailedPreconditionError, match="used before"):
        p.__enter__()
    assert len(p.records) == 0
    assert len(p.totals()) == 0
    assert "0 submissions" in str(p)
    with pytest.raises(TypeError, match="copied or pickled"):
        pickle.dumps(p)
    with pytest.raises(kp.ArgumentTypeError, match="operations"):
        device.profile(operations=np.ones(2))
    with pytest.raises(kp.ArgumentTypeError, match="Manager"):
        kp.Profile(3)


SCRIPT = """
import sys
import numpy as np
import kompute_py as kp

square = kp.manager().kernel('''SQUARE''', name="square")
print(square(np.arange(4, dtype=np.float32)), sys.argv[1:])
with kp.Manager() as own:
    print(kp.ops.sum(own.tensor([1, 2, 3])).read())
""".replace("SQUARE", SQUARE)


@pytest.fixture
def script(tmp_path, device):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_a_whole_program_by_the_variable(script, tmp_path):
    trace = tmp_path / "trace.json"
    done = python(script, cwd=tmp_path, KOMPUTE_PY_PROFILE=str(trace))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "[0. 1. 4. 9.] []"
    assert "trace.json" in done.stderr
    read = json.loads(trace.read_text())
    check_trace(read)
    names = [e["name"] for e in read["traceEvents"] if e["ph"] == "X" and e["cat"] == "device"]
    names = [name for name in names if name not in TRANSFERS]
    assert names[0] == "square"
    assert "sum" in names[1]
    assert len(read["otherData"]["devices"]) == 2


def test_a_trace_that_cannot_be_written(script, tmp_path):
    done = python(script, cwd=tmp_path, KOMPUTE_PY_PROFILE=str(tmp_path / "no folder" / "trace.json"))
    assert done.returncode == 1 and "there is no folder" in done.stderr, done.stderr  # before anything ran
    done = python(script, cwd=tmp_path, KOMPUTE_PY_PROFILE=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "was not written" in done.stderr


def test_the_command(script, tmp_path):
    command = ["kompute_py", "profile", "--out", "out.json", script, "--flag", "x"]
    done = python("-m", *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "[0. 1. 4. 9.] ['--flag', 'x']"
    assert any(line.startswith("square ") for line in lines)
    assert any(line.startswith("sum") for line in lines)
    check_trace(json.loads((tmp_path / "out.json").read_text()))


def test_the_command_of_a_script_that_fails(script, tmp_path):
    """Its traceback is that of Python, and what ran before is in the trace."""
    Path(script).write_text(
        Path(script).read_text() + "\ndef ends():\n    raise ValueError('early')\nends()\n"
    )
    done = python("-m", "kompute_py", "profile", "--out", "out.json", script, "--flag", cwd=tmp_path)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and lines[1].startswith(
        f'  File "{script}", line '
    )
    assert "    raise ValueError('early')" in lines and "ValueError: early" in lines
    assert "runpy" not in done.stderr and "square" in done.stdout
    check_trace(json.loads((tmp_path / "out.json").read_text()))


def test_the_command_without_a_script(capsys):
    assert main(["profile", "nowhere.py"]) == 1
    assert "there is no script nowhere.py" in capsys.readouterr().err
