"""Strided parts of memory that the host does not address: dense ones are read with the bytes between them."""

from __future__ import annotations

import numpy as np
import pytest

# More than two slots of the staging ring.
COUNT = (10 << 20) // 4 + 13
PARTS = [
    ((COUNT,), np.s_[::2]), ((COUNT,), np.s_[5:-3:3]), ((COUNT,), np.s_[::-2]), ((COUNT,), np.s_[::11]),
    ((COUNT,), np.s_[7::1000]), ((COUNT // 9, 9), np.s_[:, 2]), ((COUNT // 9, 9), np.s_[1::2, 2:7]),
    ((COUNT // 9, 9), np.s_[:, ::-2]), ((60, 50, COUNT // 3000), np.s_[3:50:2, :, 1::3]),
    ((COUNT // 3000, 60, 50), np.s_[:, ::7, 4]),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["f4", "u1", "c16"])
@pytest.mark.parametrize("shape, key", PARTS, ids=repr)
def test_parts_are_those_of_numpy(make_manager, shape, key, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    array = np.random.default_rng(1).integers(0, 256, size, np.uint8).view(dtype).reshape(shape)
    # The validation layer compares each copy of a run with all others of its command.
    mgr = make_manager(force_staging=True, validation=False)
    t = mgr.empty(shape, dtype, "storage")
    t.write(array)
    part = t[key]
    assert part.read().tobytes() == array[key].tobytes()
    # In a view that begins inside of the tensor.
    inner = t[1:][key]
    assert inner.read().tobytes() == array[1:][key].tobytes()
    if (
        part.size() < 20_000
    ):  # written run by run, each of which the validation layer compares with the others
        new = array[key][::-1].copy()
        part.write(new)
        array[key] = new
        assert t.read().tobytes() == array.tobytes()


def test_it_waits_for_work(make_manager):
    mgr = make_manager(force_staging=True)
    t = mgr.zeros(COUNT)
    for value in range(1, 5):
        t.fill(value)
        assert (t[::2].read() == value).all()
