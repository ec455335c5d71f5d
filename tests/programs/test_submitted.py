"""Several calls of entries: order, results that wait when they are looked at, donated inputs, threads."""

from __future__ import annotations

import functools
import gc
import io
import threading

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._programs import running

from .test_programs import EXPECTED, SCALE, X, again, pipeline

__all__ = ["pipeline"]


def test_submitted_calls_are_ordered(mgr, pipeline):
    program = pipeline.on(mgr)
    semaphore = mgr.semaphore()
    given, outs = mgr.tensor(X), [mgr.zeros(8) for _ in range(4)]
    fences = [program.run.submit(given, out=outs[0], wait=(semaphore, 1), signal=(semaphore, 2))]
    fences += [program.run.submit(given, out=out) for out in (outs[0], *outs[1:])]
    assert not fences[0].done()
    semaphore.signal(1)
    for fence in fences:
        fence.wait(timeout=20)
    assert semaphore.query() == 2
    for out in outs:
        np.testing.assert_array_equal(out.read(), EXPECTED)
    assert program.state["count"].tolist() == [5.0]
    with pytest.raises(kp.ArgumentTypeError, match="x is an ndarray"):
        program.run.submit(X, out=outs[0])


@pytest.mark.capability(
    "",
    "results of submitted calls, which wait when they are looked at",
    "Fence.results",
    "guides/asynchronous",
)
def test_submitted_calls_make_their_results(mgr, tmp_path):
    """Several in flight: each has its own numbers, and finds the state that the one before it left."""
    x, y, total = mgr.zeros(8), mgr.zeros(8), mgr.zeros(8)
    sequence = mgr.sequence().record(
        kp.ops.add.bind(total, x, out=total), mgr.kernel(SCALE).bind(total, y, plus=1.0)
    )
    program = again(
        kp.Program.record(
            {"run": sequence, "scale": mgr.kernel(SCALE)},
            inputs={"x": x},
            outputs={"y": y},
            state={"total": total},
        ),
        tmp_path,
    ).on(mgr)
    gate = mgr.semaphore()
    for begin in (0, 20):
        givens = [mgr.tensor(X * number) for number in range(begin, begin + 20)]
        fences = [
            program.run.submit(each, wait=() if number else (gate, begin + 1))
            for number, each in enumerate(givens)
        ]
        scaled = [program.scale.submit(each, plus=float(number)) for number, each in enumerate(givens)]
        assert not fences[-1].done()
        gate.signal(begin + 1)
        for number in reversed(range(20)):
            n = begin + number
            np.testing.assert_array_equal(fences[number].results[0].read(), 2 * X * (n * (n + 1) // 2) + 1)
            np.testing.assert_array_equal(scaled[number].results[0].read(), 2 * X * n + number)
    np.testing.assert_array_equal(program.state["total"].read(), X * 780)
    assert program.run.submit(givens[0], out=mgr.zeros(8)).results == ()


def test_submitted_calls_take_donated_inputs(mgr, pipeline):
    program = pipeline.on(mgr)
    gate = mgr.semaphore()
    for number in range(1, 4):
        given = mgr.tensor(X)
        fence = program.run.submit(given, donate="x", wait=(gate, number))
        with pytest.raises(kp.errors.DonatedTensorError, match="donated to run"):
            given.read()
        others = [mgr.tensor(X * 0) for _ in range(4)]  # that want its memory
        gate.signal(number)
        np.testing.assert_array_equal(fence.results[0].read(), EXPECTED)
        assert not any(each.read().any() for each in others)
    given = mgr.tensor(X)
    for call in (program.run, program.run.submit):
        with pytest.raises(kp.InvalidArgumentError, match="shares memory with a result"):
            call(given, out=given, donate=True)
    with pytest.raises(kp.ArgumentTypeError, match="out for y"):
        program.run.submit(given, out=[X.tolist()], donate=True)
    np.testing.assert_array_equal(given.read(), X)


def test_bound_entries_have_steps_of_the_host(mgr, tmp_path):
    y = mgr.zeros(8)

    def double(tensor):
        tensor.write(tensor.read() * 2)

    step = kp.OpHostCall(lambda: None, reads=[y], writes=[y], name="double")
    sequence = mgr.sequence().record(kp.ops.add.bind(y, 1, out=y), step, kp.ops.add.bind(y, 1, out=y))
    program = again(
        kp.Program.record(sequence, inputs={"y": y}, outputs={"y": y}, hosts={"double": double}),
        tmp_path,
        hosts={"double": double},
    ).on(mgr)
    given, out = mgr.tensor(X), mgr.zeros(8)
    operation = program.main.bind(given, out=out)
    sequence = mgr.sequence().record(operation, operation)
    for number in range(1, 4):
        given.write(X * number)
        sequence.eval()
        np.testing.assert_array_equal(out.read(), 2 * X * number + 3)
    with pytest.raises(kp.UnimplementedError, match="OpRepeat: an OpHostCall is done by the host"):
        kp.OpRepeat(operation, 2)


# -- several calls and threads -------------------------------------------------------------------------------


def expected(number):
    """The pipeline's result for X + number."""
    return 2 * (X + np.float32(number)) + 1 + np.linspace(0, 1, 8).astype(np.float32)


@pytest.mark.capability(
    "S38", "calls in flight with memory of their own", "ProgramEntry.submit", "reference/programs"
)
def test_several_calls_are_in_flight_with_results_of_their_own(mgr, pipeline):
    entry = pipeline.on(mgr).run
    given, outs = [mgr.tensor(X + number) for number in range(40)], [mgr.zeros(8) for _ in range(40)]
    fences = [entry.submit(x, out=out) for x, out in zip(given, outs, strict=True)]
    fences += [entry.submit(x, out=out) for x, out in zip(given, outs, strict=True)]
    for fence in fences:
        fence.wait()
    for number, out in enumerate(outs):
        np.testing.assert_array_equal(out.read(), expected(number))
    assert pipeline.on(mgr).state["count"].tolist() == [80.0]
    results = [entry(x) for x in given[:3]]
    assert len({id(each._native) for each in results}) == 3
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result.read(), expected(number))


def test_calls_of_several_threads_get_their_own_results(mgr, pipeline):
    entry, wrong = pipeline.on(mgr).run, []

    def work(number):
        x, out = mgr.tensor(X + number), mgr.zeros(8)
        for turn in range(30):
            result = entry(x, out=out) if turn % 2 else entry(x)
            if not np.array_equal(result.read(), expected(number)):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


def run_at_once(works) -> None:
    """Runs functions on threads that begin together; raises their errors."""
    begin, errors = threading.Barrier(len(works)), []

    def run(work) -> None:
        try:
            begin.wait()
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=[work]) for work in works]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for error in errors:
        raise error


def test_first_calls_of_several_threads_make_memory_once(mgr, pipeline):
    file = io.BytesIO()
    pipeline.save(file)
    given = [mgr.tensor(X + number) for number in range(4)]
    for _ in range(25):
        entry = kp.load_program(file.getvalue()).on(mgr).run

        def check(number, entry=entry):
            np.testing.assert_array_equal(entry(given[number]).read(), expected(number))

        run_at_once([functools.partial(check, number) for number in range(4)])


def test_entries_that_share_memory_run_one_after_the_other(mgr):
    x, y, z = mgr.zeros(8), mgr.zeros(8), mgr.zeros(8)
    kernel = mgr.kernel(SCALE)
    program = kp.Program.record(
        {"one": kernel.bind(x, y, plus=1.0), "other": kernel.bind(x, z, plus=2.0)},
        inputs={"x": x},
        outputs={"y": y, "z": z},
    ).on(mgr)

    def check(entry, number, plus):
        for turn in range(60):
            np.testing.assert_array_equal(entry(X * (number + turn)), 2 * X * (number + turn) + plus)

    run_at_once(
        [
            functools.partial(check, entry, number, plus)
            for number in (0, 100)
            for entry, plus in ((program.one, 1), (program.other, 2))
        ]
    )


def test_threads_call_and_submit_the_same_entry(mgr, pipeline):
    entry = pipeline.on(mgr).run
    given, out = mgr.tensor(X), mgr.zeros(8)

    def call():
        for _ in range(150):
            np.testing.assert_array_equal(entry(given, out=out).read(), EXPECTED)

    def submit():
        for _ in range(150):
            entry.submit(given, out=out)

    run_at_once([call, submit, call, submit])
    mgr.synchronize()
    assert pipeline.on(mgr).state["count"].tolist() == [600.0]


def test_calls_over_the_same_memory_need_no_python(mgr, pipeline, monkeypatch):
    """By position, by name, with new results, submitted: the table of prepared calls runs them."""
    entry = pipeline.on(mgr).run
    x, out = mgr.tensor(X), mgr.zeros(8)
    calls = [
        lambda: entry(x, out=out), lambda: entry(x=x, out=(out,))[0], lambda: entry(x),
        lambda: entry.submit(x, out=out).wait() and out, lambda: entry.submit(x=x).results[0],
        lambda: mgr.tensor(entry(x.read())),
        lambda: mgr.tensor(entry(x=x.read(), out=np.empty(8, np.float32))),
    ]  # fmt: skip
    for call in calls * 3:
        np.testing.assert_array_equal(call().read(), EXPECTED)
    monkeypatch.setattr(running.Recorded, "form", lambda *_: pytest.fail("Python prepares a call again"))
    for number, call in enumerate(calls * 2):
        x.write(X + number)
        result = call()
        np.testing.assert_array_equal(result.read(), expected(number))
        assert (result is out) == (number % 7 in (0, 1, 3))
    assert pipeline.on(mgr).state["count"].tolist() == [35.0]
    monkeypatch.undo()
    operation = entry.bind(x)
    bound = mgr.sequence().record(operation)
    for number in range(3):  # beside a recording with the same memory
        np.testing.assert_array_equal(entry(X - number), expected(-number))
        bound.eval()
        np.testing.assert_array_equal(operation.results[0].read(), expected(13))


def test_calls_without_memory_run_on_the_current_manager(mgr):
    """Also if they are repeated: results are arrays, of the Manager's own state."""
    count = mgr.zeros(4)
    step = kp.ops.add.bind(count, 1, out=count)
    program = kp.Program.record({"step": step}, outputs={"count": count})
    with kp.Manager() as other:
        for number in range(1, 5):
            for manager in (mgr, other):
                with manager.current():
                    result = program.step()
                    assert type(result) is np.ndarray and result.tolist() == [number] * 4
        with mgr.current():
            entry = kp.Program.record(kp.ops.sqrt, kp.TensorSpec(4)).main
        for number in range(8):
            with (mgr, other)[number % 2].current():
                assert entry(np.full(4, number**2, np.float32)).tolist() == [number] * 4


def test_tables_of_calls_let_go_of_memory(mgr, pipeline):
    entry, out, alive = pipeline.on(mgr).run, mgr.zeros(8), []
    for number in range(3):
        x = mgr.tensor(X + number)
        for _ in range(3):
            np.testing.assert_array_equal(entry(x, out=out).read(), expected(number))
        x.destroy()
        with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
            entry(x, out=out)
        del x
        gc.collect()
        alive.append(kp.alive(manager=mgr))
    assert len(set(alive)) == 1, alive
