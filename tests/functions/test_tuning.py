"""Variants of operations: by device, measured, kept, and forced."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import kompute_py as kp
from tests.support.operations import Like


@pytest.fixture(autouse=True)
def own_manager(monkeypatch, tmp_path):
    monkeypatch.setenv("KOMPUTE_PY_TUNING_DIR", str(tmp_path / "tuning"))
    from kompute_py._functions import tuning

    monkeypatch.setattr(tuning, "_choices", {})
    monkeypatch.setattr(tuning, "_THOROUGH", 0.1)


@pytest.fixture
def mgr():
    with kp.Manager() as made:
        yield made


def file_of(tmp_path):
    (path,) = (tmp_path / "tuning").iterdir()
    return path


def made(names=("slow", "fast"), written=None):
    """An operation whose first variant is far slower than the second."""
    seen = [] if written is None else written

    @kp.CustomOp.register
    class triple(Like):
        signature = "triple(Tensor x) -> Tensor"

        def variants(self, ksel):
            return list(names)

        def generate(self, ksel, kb):
            seen.append(ksel.variant)
            if ksel.variant == "fast":
                kb.yield_results("x_load(i) * 3")
            else:
                kb.grid(1)
                kb.workgroup(1)
                kb.emit("""
                    for (uint i = 0; i < x_size; ++i) {
                        float v = x_load(i);
                        for (uint round = 0; round < 800; ++round) v = sin(v);
                        result_store(i, v > 2 ? v : x_load(i) * 3);
                    }
                """)

    return triple


@pytest.mark.capability(
    "", "variants of a kernel, measured once and kept", "kp.tune", "reference/operation_rules"
)
def test_the_first_call_measures_and_others_know(mgr, tmp_path):
    written = []
    triple = made(written=written)
    x = np.random.default_rng(0).random(4_000, np.float32)
    t = mgr.tensor_t(x)
    for _ in range(3):
        np.testing.assert_array_equal(triple(t).read(), x * 3)
    assert written == ["slow", "fast"]
    content = json.loads(file_of(tmp_path).read_text())
    assert list(content["choices"].values()) == ["fast"]
    (key,) = content["choices"]
    assert "triple(x=float32[?])->float32[?]" in key
    # Another process knows: an operation of that name with nothing in its caches.
    from kompute_py._functions import tuning

    tuning._choices.clear()
    written.clear()
    triple.cache_clear()
    np.testing.assert_array_equal(triple(x), x * 3)
    triple.op(t)
    assert written == ["fast"]
    assert os.stat(file_of(tmp_path)).st_mode & 0o077 == 0


@pytest.mark.parametrize("mode", ["off", "stored"])
def test_without_measurements(monkeypatch, mode, tmp_path):
    monkeypatch.setenv("KOMPUTE_PY_TUNING", mode)
    written = []
    triple = made(written=written)
    with kp.Manager() as mgr:
        assert mgr.config.tuning.value == mode
        x = np.ones(4_000, np.float32)
        assert triple(x)[0] == 3 and written == ["slow"]
        assert not (tmp_path / "tuning").exists()
        tuned = kp.tune(triple, x)
        assert tuned.variant == "fast" and set(tuned.seconds) == {"slow", "fast"}
        assert tuned.seconds["fast"] < tuned.seconds["slow"]
        written.clear()
        triple.cache_clear()
        triple(x), triple(mgr.tensor_t(x))
        assert written == (["slow"] if mode == "off" else ["fast"])


def test_forced(mgr):
    written = []
    triple = made(written=written)
    for name in ("fast", "slow"):
        assert triple.variant(name)(np.ones(5, np.float32)).tolist() == [3] * 5
    assert written == ["fast", "slow"]
    with pytest.raises(kp.InvalidArgumentError, match=r"no variant 'other' for this call.*slow, fast"):
        triple.variant("other")(np.ones(5, np.float32))
    with pytest.raises(kp.InvalidArgumentError, match="bound to the variant 'fast'"):
        kp.tune(triple.variant("fast"), np.ones(5, np.float32))


def test_what_is_written_is_measured_on_copies(mgr):
    runs = []

    @kp.CustomOp.register
    class add(kp.CustomOp):
        signature = "add(Tensor(a!) total, Tensor[] terms, Tensor(b!) count) -> (Tensor(a!), Tensor(b!))"

        def select(self, ksel):
            total = ksel.arg_tensor("total", inplace_tied=True)
            ksel.arg_tensor_list("terms")
            count = ksel.arg_tensor("count", inplace_tied=True)
            ksel.return_tensor(total)
            ksel.return_tensor(count)

        def variants(self, ksel):
            return ["plain", "twin"]

        def generate(self, ksel, kb):
            runs.append(ksel.variant)
            kb.grid(kb.arg_value("total").size)
            terms = " + ".join(f"{t}_load(k)" for t in kb.arg_value("terms"))
            kb.emit(f"""
                uint k = gl_GlobalInvocationID.x;
                if (k < total_size) total_store(k, total_load(k) + {terms});
                if (k == 0) count_store(0, count_load(0) + 1);
            """)
            kb.yield_results()

    x, total, count = np.arange(70, dtype=np.float32), mgr.zeros(70), mgr.zeros((), np.uint32)
    add(total, [x, mgr.tensor_t(x)], count)
    assert sorted(runs) == ["plain", "twin"]
    np.testing.assert_array_equal(total.read(), 2 * x)
    assert int(count) == 1
    array = np.zeros(70, np.float32)
    kp.tune(add, array, [x, x], np.zeros((), np.uint32))
    assert not array.any()
    kp.tune(add, total, [x[::2], mgr.tensor_t(x)[::1]][1:], count)
    np.testing.assert_array_equal(total.read(), 2 * x)
    assert int(count) == 1


@pytest.mark.timeout(30)
@pytest.mark.parametrize("part", [slice(None), slice(None, None, 2), slice(None, None, -1)], ids=str)
def test_nothing_is_measured_while_work_is_held(mgr, part):
    """A trial would wait for the held work, and this thread could never signal it."""
    written = []
    triple = made(("fast", "slow"), written)
    x = mgr.tensor(np.zeros(70))
    out = mgr.zeros(x[part].shape)
    semaphore = mgr.semaphore()
    mgr.submit([mgr.sequence().record(kp.OpFill([x], 2.0))], wait=(semaphore, 1))
    fence = triple.submit(x[part], out=out)
    semaphore.signal(1)
    fence.wait()
    assert set(out.read()) == {6.0} and written == ["fast"]
    triple(mgr.tensor(np.ones(700)))  # another size
    assert sorted(set(written)) == ["fast", "slow"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"format": 1}', b"\xff\xfe", b"[" * 10000,
     b'{"format": 1, "device": DEVICE, "choices": {"a": 3}}',
     b'{"format": 1, "device": DEVICE, "choices": []}'],
)  # fmt: skip
def test_damaged_files_are_replaced(mgr, tmp_path, content, monkeypatch):
    from kompute_py._functions import tuning

    triple = made()
    x = np.ones(4_000, np.float32)
    triple(x)
    path = file_of(tmp_path)
    device = json.dumps(json.loads(path.read_text())["device"]).encode()
    path.write_bytes(content.replace(b"DEVICE", device))
    tuning._choices.clear()
    triple.cache_clear()
    with pytest.warns(kp.KomputeWarning, match="cannot be read and are ignored"):
        triple(x)
    assert list(json.loads(path.read_text())["choices"].values()) == ["fast"]


def test_choices_of_others_are_ignored(mgr, tmp_path):
    from kompute_py._functions import tuning

    triple = made()
    x = np.ones(4_000, np.float32)
    triple(x)
    path = file_of(tmp_path)
    content = json.loads(path.read_text())
    (key,) = content["choices"]
    path.write_text(json.dumps({**content, "choices": {key: "gone"}}))
    tuning._choices.clear()
    assert made()(x)[0] == 3  # measured again
    assert json.loads(path.read_text())["choices"] == {key: "fast"}
    path.chmod(0o666)
    tuning._choices.clear()
    with pytest.warns(kp.KomputeWarning, match="cannot be read"):
        made()(x)


def test_a_file_has_an_end(tmp_path):
    from kompute_py._functions import tuning

    choices = tuning.Choices("device", str(tmp_path))
    choices._known = {str(n): "a" for n in range(tuning._MOST_CHOICES)}
    choices.keep("one more", "b")
    assert len(choices._known) == tuning._MOST_CHOICES and choices._known["one more"] == "b"
    assert tuning.Choices("device", str(tmp_path)).find("one more", ["a", "b"]) == "b"
    assert tuning.Choices("device", str(tmp_path)).find("0", ["a"]) is None


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KOMPUTE_PY_TUNING_DIR", str(tmp_path / "file" / "tuning"))
    written = []
    triple = made(written=written)
    with kp.Manager(), pytest.warns(kp.KomputeWarning, match="cannot be read"):
        triple(np.ones(4_000, np.float32))
        triple.cache_clear()
        triple(np.ones(4_000, np.float32))
    assert written[:2] == ["slow", "fast"] and len(written) == 3  # the choice stays, whichever it is


def test_the_device_and_the_files(tmp_path):
    seen = []

    @kp.CustomOp.register
    class looks(Like):
        signature = "looks(Tensor x) -> Tensor"

        def variants(self, ksel):
            seen.append((ksel.device is None, ksel.has(), ksel.has("noSuchFeature")))
            return ["a"]

        def generate(self, ksel, kb):
            kb.yield_results("x_load(i)")

    kp.Program.record(looks, kp.TensorSpec((3,)), portable=True)
    with kp.Manager():
        looks(np.ones(3, np.float32))
    assert seen == [(True, True, False), (False, True, False)]
    assert looks.meta(kp.TensorSpec((3,))) == kp.TensorSpec((3,))


@pytest.mark.parametrize(
    ("found", "error"),
    [([], "one name or more"), (["a", "a"], "each once"), ("a", "list of names"), ([1], "list of names"),
     (None, "list of names"), ([""], "one name or more")],
)  # fmt: skip
def test_wrong_variants(mgr, found, error):
    with pytest.raises((kp.InvalidArgumentError, kp.ArgumentTypeError), match=error):
        _returning(found)(np.ones(3, np.float32))


def _returning(found):
    @kp.CustomOp.register
    class wrong(Like):
        signature = "wrong(Tensor x) -> Tensor"

        def variants(self, ksel):
            return found

    return wrong


def test_variants_that_the_device_cannot_run(mgr):
    @kp.CustomOp.register
    class two(Like):
        signature = "two(Tensor x) -> Tensor"
        failing = ("a",)

        def variants(self, ksel):
            return ["a", "b"]

        def generate(self, ksel, kb):
            if ksel.variant in self.failing:
                raise kp.UnimplementedError("no such instructions")
            kb.yield_results("x_load(i) * 2")

    assert two(np.ones(3, np.float32)).tolist() == [2] * 3
    two.__wrapped__.failing = ("a", "b")
    two.cache_clear()
    with pytest.raises(kp.UnimplementedError, match="no such instructions"):
        kp.tune(two, np.ones(3, np.float32))


def test_options(monkeypatch):
    for mode in ("auto", "stored", "off", " OFF "):
        assert kp.config_report(tuning=mode).tuning.value == mode.strip().lower()
    with pytest.raises(kp.InvalidArgumentError, match="choose one of auto, stored, off"):
        kp.config_report(tuning="never")
    with pytest.raises(kp.ArgumentTypeError, match=r"tuning=.*is 3"):
        kp.config_report(tuning=3)
    with pytest.raises(kp.ArgumentTypeError, match="tune takes a custom operation"):
        kp.tune(3)
