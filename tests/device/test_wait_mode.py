"""How waits are done: the option, and what is measured with "auto"."""

from __future__ import annotations

import pytest

import kompute_py as kp
from tests.support.child import run_child


@pytest.mark.parametrize("mode", ["auto", "spin", "block", " Spin "])
def test_results_are_the_same(make_manager, mode, monkeypatch):
    monkeypatch.setenv("KOMPUTE_PY_WAIT_MODE", mode)
    mgr = make_manager()
    a, b = mgr.tensor([1, 2, 3]), mgr.tensor([0, 0, 0])
    seq = mgr.sequence().record(kp.OpSyncDevice([a]), kp.OpCopy([a, b]), kp.OpSyncLocal([b]))
    for i in range(20):
        a.data()[:] = i
        seq.eval()
        assert b.data().tolist() == [i] * 3
        seq.eval_async().fence.wait(10)
    assert mgr.waits == {"auto": mgr.waits}.get(mode, mode.strip().lower())
    assert mgr.waits in ("measuring", "spin", "block")


def test_misuse():
    with pytest.raises(kp.InvalidArgumentError, match="choose one of auto, spin, block"):
        kp.Manager(wait_mode="sleep")
    with pytest.raises(kp.ArgumentTypeError, match="choose one of auto, spin, block"):
        kp.Manager(wait_mode=3)


def check_measured():
    mgr = kp.Manager()
    assert mgr.waits == "measuring"
    t = mgr.tensor([1])
    seq = mgr.sequence().record(kp.OpSyncDevice([t]))
    for _ in range(2000):
        seq.eval_async()
        t.read()  # waits for work whose end nobody has looked at
        seq.eval_await()
        if mgr.waits != "measuring":
            break
    return mgr.waits


def test_auto_decides_after_some_short_waits():
    """Of work that is done when it is submitted, so that how long a wait takes depends on no other thread."""
    assert run_child(check_measured, driver="null") in ("spin", "block")
