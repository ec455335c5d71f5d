"""What the library of operations does in a random program: called, recorded and submitted, over parts that
are not dense, repeated with an exchange; and what donates memory, draws numbers and runs in threads.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import kompute_py as kp

from .memories import Item, MismatchError, Recorded

if TYPE_CHECKING:
    from .program import Program

AFFINE = """
#version 450
layout(local_size_x = 32) in;
layout(push_constant) uniform Params { uint scale; uint offset; };
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) buffer B { uint b[]; };
void main() {
    uint i = gl_GlobalInvocationID.x, n = min(a.length(), b.length());
    if (i < n) b[i] = b[i] * scale + a[n - 1 - i] + offset;
}
"""
affine = functools.cache(lambda: kp.compile(AFFINE))
SIZES = (1, 3, 16, 17, 48, 256)
MEMORY_TYPES = tuple(kp.MemoryTypes)
_LIBRARY: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("add", np.add),
    ("bitwise_xor", np.bitwise_xor),
    ("flip", np.flip),
    ("sort", np.sort),
    ("cummax", np.maximum.accumulate),
)


def _words(program: Program, item: Item, align: int) -> tuple[int, int, slice] | None:
    """Some words of a tensor, every one or some, forwards or backwards: the bytes from the first to the
    last, and the words of these.
    """
    begin, end = program.span(item, 4, align)
    step = program.random.choice((1, 1, 1, 2, 3, -1, -2))
    count = len(range((end - begin) // 4)[::step])
    if count == 0:
        return None
    reach = 4 * ((count - 1) * abs(step) + 1)
    begin = end - reach if step < 0 else begin
    return begin, begin + reach, slice(None, None, step)


def _first(words: slice, begin: int, end: int, count: int) -> tuple[slice, int, int]:
    """The first `count` of some words: the words, and the bytes from the first to the last."""
    reach = 4 * ((count - 1) * abs(words.step or 1) + 1)
    return (words, end - reach, end) if (words.step or 1) < 0 else (words, begin, begin + reach)


def operation(program: Program) -> Recorded | None:
    """An operation of the library, on all words of something or on some."""
    tensors = program.live(tensors=True)
    if not program.dispatch or not tensors:
        return program.fill()
    source, target = program.random.choice(tensors), program.random.choice(tensors)
    chosen = _words(program, source, program.alignment), _words(program, target, program.alignment)
    if chosen[0] is None or chosen[1] is None:
        return None
    (a0, a1, a), (b0, b1, b) = chosen
    name, model = program.random.choice(_LIBRARY)
    number = program.random.getrandbits(31)
    size = min(len(range((a1 - a0) // 4)[a]), len(range((b1 - b0) // 4)[b]))
    # The same number of each, from the first on.
    a, a0, a1 = _first(a, a0, a1, size)
    b, b0, b1 = _first(b, b0, b1, size)
    given = source.words(a0, a1)[a], target.words(b0, b1)[b]
    numbers = (np.uint32(number),) if name in ("add", "bitwise_xor") else ()
    made_by = getattr(kp.ops, name)

    def effect() -> None:
        read = source.device[a0:a1].view(np.uint32)[a]
        target.device[b0:b1].view(np.uint32)[b] = model(read.copy(), *numbers)

    made = Recorded(
        f"{name} of {source} {a0}:{a1} {a.step} to {target} {b0}:{b1} {b.step}",
        made_by.op(given[0], *numbers, out=given[1]),
        effect,
    )
    made.one_shot = functools.partial(made_by.submit, given[0], *numbers, out=given[1])
    made.call = functools.partial(made_by, given[0], *numbers, out=given[1])
    return made.on_device(source, a0, a1, False).on_device(target, b0, b1, True)


def repetition(program: Program) -> Recorded | None:
    """A dispatch several times, with the two exchanged after each."""
    tensors = program.live(tensors=True)
    if not program.dispatch or len(tensors) < 2:
        return program.fill()
    a, b = program.random.sample(tensors, 2)
    (a0, a1), (b0, b1) = (program.span(item, 4, program.alignment) for item in (a, b))
    size = min(a1 - a0, b1 - b0)
    if size <= 0:
        return None
    times = program.random.choice((0, 1, 2, 3, 7))
    scale, offset = program.random.getrandbits(32), program.random.getrandbits(32)
    first, second = a.words(a0, a0 + size), b.words(b0, b0 + size)
    algorithm = program.mgr.algorithm([first, second], affine(), (-(-size // 128), 1, 1))
    operation = kp.OpAlgoDispatch(algorithm, [scale, offset])

    def effect() -> None:
        one, other = (item.device[at : at + size].view(np.uint32) for item, at in ((a, a0), (b, b0)))
        for _ in range(times):
            wide = other.astype(np.uint64) * scale + one[::-1] + offset
            other[:] = wide.astype(np.uint32)
            one, other = other, one

    made = Recorded(
        f"{times} x dispatch {a} {a0} to {b} {b0}, {size} bytes, exchanged",
        kp.OpRepeat(operation, times, swap=[(first, second)]),
        effect,
    )
    if times == 0:
        made.mention(a)
        made.mention(b)
        return made
    return made.on_device(a, a0, a0 + size, times > 1).on_device(b, b0, b0 + size, True)


def assign(program: Program) -> None:
    """``t[key] = x``, for some words."""
    free = program.live(tensors=True, free=True)
    if not free:
        return
    item = program.random.choice(free)
    chosen = _words(program, item, 4)
    if chosen is None:
        return
    begin, end, words = chosen
    program.note(f"assign to {item} {begin}:{end} {words.step}")
    part: Any = item.words(begin, end)
    model = item.device[begin:end].view(np.uint32)[words]
    model[:] = data = program.bytes(model.nbytes).view(np.uint32)
    works = [work for work in item.work if item in work.touches]
    part[words] = data
    item.newer[begin:end] = True  # the words between count as well
    program.note_learned(works, "assignment")


def donate(program: Program) -> None:
    """An operation takes an argument's memory for its result."""
    if not program.dispatch:
        return
    data = program.bytes(4 * program.random.choice(SIZES)).view(np.uint32)
    kind = program.random.choice(MEMORY_TYPES)
    given = program.mgr.tensor_t(data, kind)
    program.note(f"donate {data.size} words ({kind.name})")
    expected = data
    if program.random.random() < 0.5:
        given.fill(7)  # under way
        expected = np.full_like(data, 7)
    result = kp.ops.add(given, np.uint32(5), donate=0)
    program.require(result.read(), expected + np.uint32(5), np.arange(data.size), "the result of a donation")
    try:
        given.read()
    except kp.FailedPreconditionError:
        return
    raise MismatchError("a donated tensor is read")


def draw(program: Program) -> None:
    """Recorded draws give the numbers that another recording of the same generator gives."""
    if not program.dispatch:
        return
    seed, count = program.random.getrandbits(32), program.random.choice(SIZES)
    queues = [program.random.randrange(program.queues) for _ in range(2)]
    program.note(f"draw {count} numbers on the queues {queues}")
    drawn = []
    for queue in queues:
        out = program.mgr.zeros(count, memory_type=program.random.choice(MEMORY_TYPES))
        sequence = program.mgr.sequence(queue)
        sequence.record(kp.random.Generator(seed, manager=program.mgr).random_op(out))
        drawn.append([sequence.eval() and out.read() for _ in range(3)])
    one, other = np.array(drawn)
    program.require(one.ravel(), other.ravel(), np.arange(one.size), "recorded draws")
    if count > 15 and any(np.array_equal(one[0], each) for each in one[1:]):
        raise MismatchError("two evaluations drew the same numbers")


def threads(program: Program) -> None:
    """Threads work on parts of one array, each through tensors of its own."""
    if not program.dispatch or not program.page:
        return
    program.note("threads")
    words = program.page // 4
    array = kp.aligned_empty(3 * words, np.uint32, program.page)
    array[:] = before = program.bytes(array.nbytes).view(np.uint32)
    operands = [program.random.getrandbits(31) for _ in range(3)]
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(3):
                part = program.mgr.from_host(array[number * words : (number + 1) * words], copy="never")
                kp.ops.add(part, np.uint32(operands[number]), out=part)
                whole = program.mgr.from_host(array, copy="never")
                whole[number * words : number * words + 8].read()
        except BaseException as error:
            failed.append(error)

    running = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failed:
        raise failed[0]
    added = before + 3 * np.repeat(np.array(operands, np.uint32), words)
    program.require(program.mgr.from_host(array).read(), added, np.arange(array.size), "an array of threads")
