"""A sample of the compute shaders that other projects publish; `./dev corpus` judges all of them.

`./dev test` fetches them before the tests. Where they cannot be had (no network, no apt) the test is skipped
and says so; where every change is judged, that is a failure.
"""

from __future__ import annotations

import os

import pytest

from tests.corpus import ARCHIVES, CorpusUnavailableError, Published, judged, published
from tests.corpus.judge import compare
from tests.corpus.stock import missing_tools
from tests.support.sampling import sampled

pytestmark = pytest.mark.own_driver
_EVERY = sampled(24, 4)  # of each archive's shaders; all of them take minutes


def unavailable(why: str) -> None:
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("archive", [a for a in ARCHIVES if a.quick], ids=lambda a: a.name)
def test_each_loads_with_a_right_signature_or_names_what_is_missing(archive):
    if tools := missing_tools():
        unavailable(f"apt install {' '.join(tools)}")
    try:
        shaders = published(archive)
    except CorpusUnavailableError as error:
        unavailable(str(error))
    sample = shaders[:: _EVERY if len(shaders) > 10 else 1]
    verdicts = list(judged(sample))
    wrong = [f"{v.name}: {v.outcome}\n{v.detail}" for v in verdicts if not v.fine]
    assert not wrong, "\n\n".join(wrong)
    # Else an archive of another layout, or a broken tool, would pass.
    loaded = sum(v.outcome == "loads" for v in verdicts)
    assert loaded >= len(sample) * 2 // 5, f"{loaded} of {len(sample)} load"


def test_a_wrong_signature_would_be_noticed():
    binding = {"kind": "storage buffer", "count": 1, "members": [["a", 0], ["b", 4]], "used": True}
    expected = {
        "bindings": {"0.0": [binding]}, "push": [["x", 0]], "constants": [[0, [1]], [1, [None]]],
        "local_size": [[8, 4], [1], [1]],
    }  # fmt: skip
    right = {
        "bindings": {"0.0": binding},
        "push": [["x", 0]],
        "constants": [[0, 1], [1, 7]],
        "local_size": [8, 1, 1],
    }
    assert compare(dict(right), expected) == []
    unused = binding | {"used": False}
    assert compare(right | {"bindings": {"0.0": binding, "0.1": unused}}, expected) == []
    for part, wrong in (
        ("bindings", {}),
        ("bindings", {"0.0": binding, "0.1": binding}),
        ("bindings", {"0.0": binding | {"kind": "uniform buffer"}}),
        ("bindings", {"0.0": binding | {"count": 2}}),
        ("bindings", {"0.0": binding | {"members": [["a", 0], ["b", 8]]}}),
        ("push", [["x", 4]]),
        ("constants", [[0, 2], [1, 7]]),
        ("constants", [[0, 1]]),
        ("local_size", [8, 8, 1]),
    ):
        assert compare(right | {part: wrong}, expected) != [], (part, wrong)


def test_a_crash_is_a_verdict_and_spoils_no_other(tmp_path, monkeypatch):
    if tools := missing_tools():
        unavailable(f"apt install {' '.join(tools)}")
    source = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n"
    path = tmp_path / "a.comp"
    path.write_text(source)
    (tmp_path / "sitecustomize.py").write_text(
        "import kompute_py, os\n"
        "real = kompute_py.Manager.kernel\n"
        "def kernel(self, source, **options):\n"
        "    if 'CRASH' in options['defines']: os.abort()\n"
        "    return real(self, source, **options)\n"
        "kompute_py.Manager.kernel = kernel\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    shaders = [Published(name, str(path), "glsl", {name: "1"}) for name in ("FIRST", "CRASH", "LAST")]
    assert [v.outcome for v in judged(shaders)] == ["loads", "crash", "loads"]
