"""Donated tensors and threads: who gets the memory, and what everybody else is told."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import kompute_py as kp

from .memories import MismatchError

if TYPE_CHECKING:
    from .program import Array, Program

SIZES = (1, 3, 16, 17, 48, 256)
MEMORY_TYPES = tuple(kp.MemoryTypes)
MOST_RESULTS = 6
_meanwhile: list[Callable[[], None]] = []


@kp.CustomOp.register
class plus(kp.CustomOp):
    """The sum; before it is computed, what is in `_meanwhile` happens."""

    signature = "plus(Tensor x, int y) -> Tensor"

    def eager_execute(self, x: Any, y: int) -> Any:
        for each in _meanwhile:
            each()
        return NotImplemented

    def select(self, ksel: Any) -> None:
        x = ksel.arg_tensor("x")
        ksel.arg_int("y")
        ksel.return_new_tensor(x.shape, x.dtype, may_reuse="x")

    def generate(self, ksel: Any, kb: Any) -> None:
        kb.yield_results("x_load(i) + uint(y)")


def _in_threads(*works: Callable[[], None]) -> None:
    """Runs them at once; raises the first error of one."""
    failed: list[BaseException] = []
    start = threading.Barrier(len(works))

    def run(work: Callable[[], None]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:
            failed.append(error)

    running = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failed:
        raise failed[0]


def _refused(use: Callable[[], object], what: str) -> None:
    try:
        use()
    except kp.errors.DonatedTensorError:
        return
    raise MismatchError(f"{what} of a tensor that a call has taken")


def compare(program: Program) -> None:
    """What donations gave is still what it was."""
    for result, expected in program.results:
        program.require(result.read(), expected, np.arange(expected.size), "the result of a donation")


def _uses(program: Program, given: kp.Tensor) -> list[tuple[str, Callable[[], object]]]:
    """What a program may do with a tensor."""
    out = program.mgr.empty(given.size(), np.uint32)
    return [
        ("a read", given.read),
        ("a write", lambda: given.write(np.zeros(given.size(), np.uint32))),
        ("an assignment", lambda: given.__setitem__(slice(None), 3)),
        ("a call", lambda: kp.ops.add(given, np.uint32(1))),
        ("a call into another", lambda: kp.ops.add(given, np.uint32(1), out=out)),
        ("a donation", lambda: kp.ops.add(given, np.uint32(1), donate=0)),
        ("a submission", lambda: kp.ops.add.submit(given, np.uint32(1), out=out)),
        ("a recording", lambda: program.mgr.sequence().record(kp.OpFill([given], 3))),
    ]


def donate(program: Program) -> None:
    """An operation takes an argument's memory, for its result if nothing else refers to it. Another thread
    that comes later, while the operation runs, does not get it.
    """
    if not program.dispatch:
        return
    compare(program)
    random = program.random
    expected = data = program.bytes(4 * random.choice(SIZES)).view(np.uint32)
    kind = random.choice(MEMORY_TYPES)
    given = program.mgr.tensor_t(data, kind)
    uses = _uses(program, given)
    special = []  # of what there is before
    host: Array | None = None
    how = random.choice(("alone", "alone", "filled", "viewed", "recorded", "running", "with an array"))
    program.note(f"donate {data.size} words ({kind.name}), {how}", "donated")
    if how == "filled":
        given.fill(7)  # under way
        expected = np.full_like(data, 7)
    elif how == "viewed":
        special = [("a view", given[: data.size // 2 + 1].read), ("a strided view", given[::-2].read)]
    elif how in ("recorded", "running"):
        sequence = program.mgr.sequence(random.randrange(program.queues)).record(kp.OpFill([given], 9))
        sequence.eval() if how == "recorded" else sequence.eval_async()
        special = [("an evaluation", lambda: (sequence.eval_await(), sequence.eval()))]
        expected = np.full_like(data, 9)
    elif how == "with an array" and kind is not kp.MemoryTypes.storage:
        host = given.data()
    number = random.getrandbits(31)
    if random.random() < 0.5:
        result = kp.ops.add(given, np.uint32(number), donate=0)
    else:
        what, use = random.choice(uses)
        program.note(f"... in another thread {what}", "used by another thread while it is donated")
        _meanwhile.append(functools.partial(_in_threads, functools.partial(_refused, use, what)))
        try:
            result = plus(given, number, donate="x")
        finally:
            _meanwhile.clear()
    program.results = [*program.results[1 - MOST_RESULTS :], (result, expected + np.uint32(number))]
    what, use = random.choice(special or uses)
    _refused(use, what)
    if host is not None:
        seen = data if kind is kp.MemoryTypes.device else expected
        program.require(host, seen, np.arange(data.size), "an array of what was donated")
    compare(program)


def threads(program: Program) -> None:
    """Threads work at once: each with memory of its own, on parts of one array, on one tensor that one of
    them gives away.
    """
    kinds = [_with_own_memory]
    if program.dispatch:
        kinds += [_give_away]
        kinds += [_over_one_array] if program.page else []
    kind = program.random.choice(kinds)
    program.note(f"threads {kind.__name__}", "threads")
    kind(program)


def _with_own_memory(program: Program) -> None:
    def work(data: Array, queue: int, value: int) -> None:
        one, other = program.mgr.tensor_t(data), program.mgr.empty(data.size, np.uint32)
        half = data.size // 2
        sequence = program.mgr.sequence(queue).record(kp.OpCopy([one, other]), kp.OpFill([one[half:]], value))
        sequence.record(kp.OpSyncLocal([one, other]))
        for _ in range(3):
            one.write(data)
            sequence.eval()
            wanted = np.concatenate([data[:half], np.full(data.size - half, value, np.uint32), data])
            seen = np.concatenate([one.data(), other.data()])
            program.require(seen, wanted, np.arange(wanted.size), "memory of a thread")

    random = program.random
    _in_threads(
        *[
            functools.partial(
                work,
                program.bytes(4 * random.choice((16, 48, 256))).view(np.uint32),
                random.randrange(program.queues),
                random.getrandbits(32),
            )
            for _ in range(3)
        ]
    )


def _over_one_array(program: Program) -> None:
    """Threads work on parts of one array, each through tensors of its own."""
    words = program.page // 4
    array = kp.aligned_empty(3 * words, np.uint32, program.page)
    array[:] = before = program.bytes(array.nbytes).view(np.uint32)
    operands = [program.random.getrandbits(31) for _ in range(3)]

    def work(number: int) -> None:
        for _ in range(3):
            part = program.mgr.from_host(array[number * words : (number + 1) * words], copy="never")
            kp.ops.add(part, np.uint32(operands[number]), out=part)
            whole = program.mgr.from_host(array, copy="never")
            whole[number * words : number * words + 8].read()

    _in_threads(*[functools.partial(work, number) for number in range(3)])
    added = before + 3 * np.repeat(np.array(operands, np.uint32), words)
    program.require(program.mgr.from_host(array).read(), added, np.arange(array.size), "an array of threads")


def _give_away(program: Program) -> None:
    """Of threads that take one tensor one gets it; another's results are right, or it is told."""
    data = program.bytes(4 * program.random.choice(SIZES)).view(np.uint32)
    given = program.mgr.tensor_t(data, program.random.choice(MEMORY_TYPES))
    got: list[kp.Tensor] = []
    gives = [True, program.random.random() < 0.5, program.random.random() < 0.5]

    def work(donates: bool) -> None:
        try:
            found = kp.ops.add(given, np.uint32(5), donate=0 if donates else ())
        except kp.errors.DonatedTensorError:
            return
        program.require(found.read(), data + np.uint32(5), np.arange(data.size), "a result of a thread")
        if donates:
            got.append(found)

    _in_threads(*[functools.partial(work, donates) for donates in gives])
    if len(got) != 1:
        raise MismatchError(f"{len(got)} threads were given one tensor")
    program.results = [*program.results[1 - MOST_RESULTS :], (got[0], data + np.uint32(5))]
    _refused(given.read, "a read")
