"""Every public way to look at a tensor or an image, in every state: see docs/concepts/host_and_device.md."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from tests.support.kernel_sources import COPY

PAGE = Path(__file__).resolve().parents[2] / "docs" / "concepts" / "host_and_device.md"
COLUMNS = {"device": 0, "storage": 1, "host": 2, "deviceAndHost": 2}
SIDES = {"the newer", "host copy", "the device", "the one memory", "refused", "its shape only"}
DATA, EDIT, WORK = (np.array([n, n + 0.5, n + 1, n + 1.5] * 32, np.float32) for n in (10, 20, 30))


def table():
    """The page's table: {name of a way: what it shows for each column}."""
    rows = {}
    for line in PAGE.read_text().split("## The result of each call")[1].split("\n## ")[0].splitlines():
        if line.startswith("| ") and ("`" in line or "card" in line) and not line.startswith("| call"):
            way, *shown = (cell.strip() for cell in line.strip("|").split("|"))
            assert set(shown) <= SIDES, line
            for each in re.findall(r"`[^`]+`|the notebook's card|an argument of a kernel", way):
                rows[each.strip("`")] = shown
    rows["an argument of a kernel"] = rows.get("an argument of a kernel") or next(
        [c.strip() for c in line.strip("|").split("|")][1:]
        for line in PAGE.read_text().splitlines()
        if line.startswith("| an argument")
    )
    return rows


TABLE = table()


def numbers(text):
    return [float(each) for each in re.findall(r"\d+\.\d*", text.split("[", 1)[1].split("]")[0])]


def through_a_file(t, tmp_path):
    kp.save_tensors(tmp_path / "t.safetensors", {"t": t})
    return kp.load_tensors(tmp_path / "t.safetensors", manager=t.manager)["t"].read()


def into(t, move):
    target = t.to(t.manager, copy=True)
    move(target).wait()
    return target.read()


def copied(t):
    target = t.to(t.manager, copy=True)
    t.manager.sequence().eval(kp.OpCopy([t, target]))
    return target.read()


def elsewhere(t):
    other = kp.Manager()
    try:
        return t.to(other).read()
    finally:
        other.destroy()


def mapped(t):
    with t.map(read=True) as array:
        return array.copy()


def by_kernel(t):
    return t.manager.kernel(COPY)(t, np.zeros(t.shape, np.float32))


class Interface:
    def __init__(self, t):
        self.__array_interface__ = t.__array_interface__
        self.kept = t


def drawn(t):
    pytest.importorskip("matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    try:
        axes = t.show()
        return np.asarray(axes.lines[0].get_ydata())
    finally:
        plt.close("all")


# The page's words for each way -> (what it does, on tensors, on images)
WAYS = {
    "t.data()": (lambda t, _: t.data(), True),
    "t.numpy()": (lambda t, _: t.numpy(), True),
    "t.read()": (lambda t, _: t.read(), True),
    "t.read(out=...)": (lambda t, _: t.read(np.empty(t.shape, np.float32)), True),
    "np.asarray(t)": (lambda t, _: np.asarray(t), True),
    "np.array(t)": (lambda t, _: np.array(t), True),
    "np.array(t, copy=False)": (lambda t, _: t.__array__(copy=False), True),
    "t[key].read()": (lambda t, _: t[::-1].read()[::-1], False),
    "t.read(region=key)": (lambda t, _: t.read(region=np.s_[::-1])[::-1], False),
    "t.tolist()": (lambda t, _: t.tolist(), True),
    "t.astype(dtype)": (lambda t, _: t.astype(np.float64), True),
    "t.__array_interface__": (lambda t, _: np.asarray(Interface(t)), False),
    "t.item()": (lambda t, _: [t[i].item() for i in range(t.size())], False),
    "int(t)": (lambda t, _: [int(t[i]) for i in range(t.size())], False),
    "float(t)": (lambda t, _: [float(t[i]) for i in range(t.size())], False),
    "memoryview(t)": (lambda t, _: memoryview(t), False),
    "np.frombuffer(t)": (lambda t, _: np.frombuffer(t, np.float32), False),
    "np.from_dlpack(t)": (lambda t, _: np.from_dlpack(t), False),
    "t.map(read=True)": (lambda t, _: mapped(t), False),
    "t.to(other)": (lambda t, _: elsewhere(t), True),
    "t.to(mgr, copy=True)": (lambda t, _: t.to(t.manager, copy=True).read(), True),
    "t.copy_to(x)": (lambda t, _: into(t, t.copy_to), True),
    "x.copy_from(t)": (lambda t, _: into(t, lambda x: x.copy_from(t)), True),
    "OpCopy": (lambda t, _: copied(t), True),
    "an argument of a kernel": (lambda t, _: by_kernel(t), False),
    "kp.save_tensors": (through_a_file, False),
    "t.show()": (lambda t, _: drawn(t), False),
    "kp.plot(t)": (lambda t, _: drawn(t), False),
    "list(t)": (lambda t, _: list(t), True),
    "pickle.dumps(t)": (lambda t, _: pickle.dumps(t), True),
    "copy.copy(t)": (lambda t, _: copy.copy(t), True),
}
REFUSALS = (kp.KomputeError, TypeError, ValueError, AttributeError)


def test_the_page_lists_every_way_that_is_tested_and_no_other():
    others = {"repr(t)", "the notebook's card"}  # below: what they show is text
    assert set(TABLE) == set(WAYS) | others


def made(mgr, kind, where, shape=(128,)):
    if kind == "image":
        return mgr.image(DATA.reshape(4, 8, 4), memory_type=where)
    t = mgr.tensor(DATA.reshape(shape), where)
    return t[64:96] if kind == "view" else t


def expected(whole, kind):
    return whole[64:96] if kind == "view" else whole


def in_state(t, state):
    """Brings it there: fresh (made from DATA), edited (EDIT in the host copy, later than the upload), written
    (WORK on the device).
    """
    mgr = t.manager
    if state == "fresh":
        return
    mgr.sequence().eval(kp.OpSyncDevice([t]))
    count = t.size()
    if state == "edited":
        t.data()[:] = EDIT[:count]
        return
    # Not waited for: the ways that look at the device's contents wait by themselves.
    source = mgr.image(WORK.reshape(4, 8, 4)) if t._is_image else mgr.tensor(WORK[:count])
    mgr.sequence().eval(kp.OpSyncDevice([source]))
    t.copy_from(source)


def holds(side, state, kind, where):
    """The numbers that `side` holds in `state`."""
    if state == "fresh" or (state == "edited" and side == "the device"):
        return expected(DATA, kind)
    if state == "edited":
        return EDIT[: expected(DATA, kind).size]
    return expected(DATA, kind) if side == "host copy" else WORK[: expected(DATA, kind).size]


@pytest.mark.parametrize("where", COLUMNS)
@pytest.mark.parametrize("kind", ["tensor", "view", "image"])
def test_each_way_shows_what_the_page_says(mgr, tmp_path, kind, where):
    for (name, (way, of_images)), state in itertools.product(WAYS.items(), ("fresh", "edited", "written")):
        if (kind == "image" and not of_images) or (state == "edited" and where == "storage"):
            continue
        side = TABLE[name][COLUMNS[where]]
        t = made(mgr, kind, where)
        if kind == "image" and side == "the one memory" and not t._is_single():
            side = "host copy" if name in ("t.data()", "t.numpy()") else "the device"
            side = "refused" if name == "np.array(t, copy=False)" else side
        if name == "np.from_dlpack(t)" and t.__dlpack_device__() != (1, 0):
            side = "refused"
        in_state(t, state)
        if name in ("t.data()", "t.numpy()"):
            mgr.synchronize()  # these two do not wait
        what = (name, kind, where, state)
        if side == "refused":
            with pytest.raises(REFUSALS) as caught:
                way(t, tmp_path)
            assert len(str(caught.value)) > 20, what
            continue
        if name in ("t.data()", "t.numpy()"):
            t.manager.synchronize()  # they wait for nothing
        shown = np.asarray(way(t, tmp_path), np.float32).reshape(-1)
        wanted = holds(side, state, kind, where)
        if name == "int(t)":
            wanted = np.trunc(wanted)
        np.testing.assert_array_equal(shown, wanted, err_msg=str(what))
