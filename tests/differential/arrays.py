"""Tensors over arrays: of one array several, over all of it, over parts, over parts that overlap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import kompute_py as kp

from .memories import Item

if TYPE_CHECKING:
    from .program import Program


def make(program: Program) -> None:
    """A tensor over an array."""
    array, again = program.array(3 * program.page)
    data = program.bytes(array.nbytes)
    array[:] = data.view(np.uint32)
    try:
        thing = program.mgr.from_host(array, copy="never")
    except kp.UnimplementedError:  # memory of the process is not coherent there
        program.page = 0
        return
    item = Item(thing, data, again, program.random.choice)
    program.note(f"make {item} over an array")
    program.items.append(item)


def import_again(program: Program) -> None:
    """One more tensor over an array that has one: over all of it, over a part, over one that overlaps
    others; or one less.
    """
    items = [item for item in program.items if item.array is not None]
    if not items:
        return
    item = program.random.choice(items)
    array = item.array
    assert array is not None
    if item.imports and program.random.random() < 0.4:
        tensor, (begin, end) = item.imports.pop(program.random.randrange(len(item.imports)))
        destroys = program.random.random() < 0.5
        program.note(f"{'destroy' if destroys else 'drop'} the import {begin}:{end} of {item}")
        if destroys:
            program.cannot_run_again(item)
            tensor.destroy()
        return
    first = program.random.randrange(3)
    begin, end = first * program.page, program.random.randint(first + 1, 3) * program.page
    program.note(f"import {item} {begin}:{end}", "imported again")
    part = array[begin // 4 : end // 4]
    if program.random.random() < 0.5:
        again = program.mgr.from_host(part, copy="never")
    else:
        again = kp.from_dlpack(part, program.mgr, copy=False)
    item.imports.append((again, (begin, end)))
