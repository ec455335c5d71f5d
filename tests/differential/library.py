"""What operations do in a random program: called, recorded and submitted, over parts that are not dense,
with kernels that depend on a shape, by way of scratch memory, repeated with an exchange, drawing numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import kompute_py as kp
from tests.random import philox

from .memories import GONE, Item, Recorded

if TYPE_CHECKING:
    from .program import Program

AFFINE = """
#version 450
layout(local_size_x = 32) in;
layout(constant_id = 0) const uint more = 0;
layout(push_constant) uniform Params { uint scale; uint offset; };
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) buffer B { uint b[]; };
void main() {
    uint i = gl_GlobalInvocationID.x, n = min(a.length(), b.length());
    if (i < n) b[i] = b[i] * scale + a[n - 1 - i] + offset + more;
}
"""
affine = functools.cache(lambda: kp.compile(AFFINE))


@kp.CustomOp.register
class columns(kp.CustomOp):
    """Each word and the number of its column, which its kernels have for columns of their own alone."""

    signature = "columns(Tensor x) -> Tensor"

    def select(self, ksel: Any) -> None:
        x = ksel.arg_tensor("x")
        ksel.specialize(columns=x.shape[-1])
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel: Any, kb: Any) -> None:
        kb.yield_results(f"x_load(i) + uint(i % {ksel.special['columns']})")


@kp.CustomOp.register
class turned(kp.CustomOp):
    """The words backwards, by way of scratch memory."""

    signature = "turned(Tensor x) -> Tensor"

    def select(self, ksel: Any) -> None:
        x = ksel.arg_tensor("x")
        ksel.return_new_tensor(x.shape, x.dtype)

    def generate(self, ksel: Any, kb: Any) -> None:
        x = kb.arg_value("x")
        kb.scratch("back", x.size, x.dtype)
        for line in ("back_store(k, x_load(x_size - 1 - k))", "result_store(k, back_load(k))"):
            kb.begin_dispatch()
            kb.grid(x.size)
            kb.emit(f"uint k = gl_GlobalInvocationID.x; if (k < x_size) {line};")


def _with_columns(x: Any) -> Any:
    return x + np.arange(x.size, dtype=x.dtype).reshape(x.shape) % np.uint32(x.shape[-1])


_LIBRARY: tuple[tuple[Any, Callable[..., Any]], ...] = (
    (kp.ops.add, np.add), (kp.ops.bitwise_xor, np.bitwise_xor), (kp.ops.flip, np.flip),
    (kp.ops.sort, np.sort), (kp.ops.cummax, np.maximum.accumulate), (turned, np.flip),
    (columns, _with_columns),
)  # fmt: skip


def scratch_memory(mgr: kp.Manager) -> Item:
    """What stands for the scratch memory of a Manager, which all that uses it shares."""
    item = Item(mgr.empty(1, np.uint32, memory_type=kp.MemoryTypes.storage), np.zeros(4, np.uint8))
    item.thing = item.parts = GONE
    return item


STEPS = (1, 1, 1, 2, 3, -1, -2)


def _words(
    program: Program, item: Item, align: int, steps: tuple[int, ...] = STEPS
) -> tuple[int, int, slice] | None:
    """Some words of a tensor, every one or some, forwards or backwards: the bytes from the first to the
    last, and the words of these.
    """
    begin, end = program.span(item, 4, align)
    step = program.random.choice(steps)
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
    made_by, model = program.random.choice(_LIBRARY)
    steps = (1,) if made_by is columns else STEPS
    first, second = (_words(program, item, program.alignment, steps) for item in (source, target))
    if first is None or second is None:
        return None
    (a0, a1, a), (b0, b1, b) = first, second
    number = program.random.getrandbits(31)
    size = min(len(range((a1 - a0) // 4)[a]), len(range((b1 - b0) // 4)[b]))
    # The same number of each, from the first on.
    a, a0, a1 = _first(a, a0, a1, size)
    b, b0, b1 = _first(b, b0, b1, size)
    given: list[Any] = [source.words(a0, a1)[a], target.words(b0, b1)[b]]
    shape = (size,)
    if made_by is columns:
        shape = (size // (rows := program.random.choice([n for n in (1, 2, 3, 4, 8) if size % n == 0])), rows)
        given = [each.reshape(shape) for each in given]
    numbers = (np.uint32(number),) if made_by in (kp.ops.add, kp.ops.bitwise_xor) else ()

    def effect() -> None:
        read = source.device[a0:a1].view(np.uint32)[a]
        target.device[b0:b1].view(np.uint32)[b] = model(read.reshape(shape).copy(), *numbers).reshape(-1)

    kinds = {
        "strided argument": a.step != 1,
        "strided result": b.step != 1,
        "scratch": made_by is turned,
        "kernels by shape": len(shape) == 2,
    }
    made = Recorded(
        f"{made_by.__name__} of {source} {a0}:{a1} {a.step} {shape} to {target} {b0}:{b1} {b.step}",
        effect,
        made_by.op(given[0], *numbers, out=given[1]),
        kinds=[kind for kind, it_is in kinds.items() if it_is],
    )
    if made_by is turned:
        made.uses[program.shared] = True
    made.one_shot = functools.partial(made_by.submit, given[0], *numbers, out=given[1])
    made.call = functools.partial(made_by, given[0], *numbers, out=given[1])
    made.on_device(source, a0, a1, False)
    return made.on_device(target, b0, b1, True, b0 // program.alignment * program.alignment)


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
        if times == 0:
            return  # it uses nothing, so nothing is uploaded
        one, other = (item.device[at : at + size].view(np.uint32) for item, at in ((a, a0), (b, b0)))
        for _ in range(times):
            wide = other.astype(np.uint64) * scale + one[::-1] + offset
            other[:] = wide.astype(np.uint32)
            one, other = other, one

    made = Recorded(
        f"{times} x dispatch {a} {a0} to {b} {b0}, {size} bytes, exchanged",
        effect,
        kp.OpRepeat(operation, times, swap=[(first, second)]),
        kinds=["repeated with an exchange"] if times > 1 else [],
    )
    if times == 0:
        made.mention(a)
        made.mention(b)
        return made
    return made.on_device(a, a0, a0 + size, times > 1).on_device(b, b0, b0 + size, True)


def assign(program: Program) -> None:
    """``t[key] = x``, for some words: a slice, which the host writes; places or a mask, for the device."""
    free = program.live(tensors=True, free=True)
    if not free:
        return
    item = program.random.choice(free)
    by_device = program.dispatch and program.random.random() < 0.3
    chosen = _words(program, item, program.alignment if by_device else 4, (1,) if by_device else STEPS)
    if chosen is None:
        return
    begin, end, words = chosen
    key: Any = words
    if by_device:
        if program.held():
            program.release()  # what the call uses beside the tensor may be held
        count = (end - begin) // 4
        key = np.array(program.random.sample(range(count), program.random.randint(1, count)))
        key = np.isin(np.arange(count), key) if program.random.random() < 0.5 else key
    kind = "assigned at places" if by_device else "assigned"
    program.note(f"assign to {item} {begin}:{end} at {key}", kind)
    part: Any = item.words(begin, end)
    model = item.device[begin:end].view(np.uint32)
    data = program.bytes(model[key].nbytes).view(np.uint32)
    model[key] = data
    works = [work for work in item.work if item in work.touches]
    if by_device:
        part[key] = data
    else:
        program.store(part[key], data)
    item.write(begin, end)  # the words between count as well
    program.note_learned(works, "assignment")


def by_scratch(program: Program) -> Recorded | None:
    """A copy by way of scratch memory, beside which another scratch has been used."""
    tensors = program.live(tensors=True)
    if len(tensors) < 2:
        return None
    source, target = program.random.sample(tensors, 2)
    (begin, end), (to, last) = program.span(source, 4, 4), program.span(target, 4, 4)
    size = min(end - begin, last - to)
    if size <= 0:
        return None
    first, second = (program.mgr.scratch().empty(size // 4, np.uint32) for _ in range(2))
    operations = [kp.OpFill([first], 1), kp.OpFill([second], 2)]
    operations += [
        kp.OpCopy([source.words(begin, begin + size), first]),
        kp.OpCopy([first, target.words(to, to + size)]),
    ]
    made = Recorded(
        f"copy {source} {begin} by scratch to {target} {to}, {size} bytes",
        lambda: np.copyto(target.device[to : to + size], source.device[begin : begin + size]),
        *operations,
        kinds=["scratch"],
    )
    made.uses[program.shared] = True
    return made.on_device(source, begin, begin + size, False).on_device(target, to, to + size, True)


def drawn(program: Program) -> Recorded | None:
    """Random words, other ones in each evaluation."""
    tensors = program.live(tensors=True)
    if not program.dispatch or not tensors:
        return program.fill()
    target = program.random.choice(tensors)
    chosen = _words(program, target, program.alignment)
    if chosen is None:
        return None
    begin, end, words = chosen
    seed = program.random.getrandbits(32)
    state = kp.random.Generator(seed, manager=program.mgr).spawn(1)[0].state
    position = np.zeros(1, np.uint64)

    def effect() -> None:
        into = target.device[begin:end].view(np.uint32)[words]
        blocks = -(-into.size // 4)
        into[:] = philox.words({**state, "position": position[0]}, blocks).reshape(-1)[: into.size]
        position[0] += np.uint64(blocks)

    part = target.words(begin, end)[words]
    made = Recorded(
        f"draw {target} {begin}:{end} {words.step}",
        effect,
        kp.random.Generator(seed, manager=program.mgr).integers_op(part, 0, 2**32),
        kinds=["drawn"],
    )
    made.counted.append(position)
    return made.on_device(target, begin, end, True, begin // program.alignment * program.alignment)
