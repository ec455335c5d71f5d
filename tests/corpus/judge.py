"""Makes Kernels of published shaders and compares their signatures, in a process of its own.

`judged` feeds that process and starts another after a crash, so that one shader spoils no other's verdict.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from .shaders import Published
from .stock import Accepted, accepted

_LONGEST = 60.0  # seconds that one shader may take


class Verdict(NamedTuple):
    """What became of one shader."""

    name: str
    outcome: str
    """"loads", "refused", or what must not be: "crash", "hang", "wrong signature", "unnamed refusal",
    "untyped error"; "not
    accepted" where the stock tools refuse it, too."""
    detail: str = ""
    seconds: float = 0.0
    missing: str = ""
    """Of a refusal: what the device lacks."""

    @property
    def fine(self) -> bool:
        """Whether it is as it should be."""
        return self.outcome in ("loads", "refused", "not accepted")


def judged(shaders: Iterable[Published]) -> Iterator[Verdict]:
    """A verdict for each shader, in their order."""
    child = _Child()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for shader in shaders:
                stock = accepted(shader, Path(scratch))
                if stock is None:
                    yield Verdict(shader.name, "not accepted")
                else:
                    yield child.judge(shader, stock)
    finally:
        child.stop()


class _Child:
    """The process that loads shaders."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 # stop() closes it

    def judge(self, shader: Published, stock: Accepted) -> Verdict:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.corpus.judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self._errors, text=True, cwd=Path(__file__).parents[2],
                env=os.environ | {"KOMPUTE_PY_SHADER_CACHE_DIR": ""},
            )  # fmt: skip
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        began = time.monotonic()
        try:
            process.stdin.write(json.dumps([asdict(shader), stock._asdict()]) + "\n")
            process.stdin.flush()
            hangs = not select.select([process.stdout], [], [], _LONGEST)[0]
            if hangs:
                process.kill()
            line = process.stdout.readline()
        except BrokenPipeError:
            hangs, line = False, ""
        spent = time.monotonic() - began
        if line:
            return Verdict(shader.name, **json.loads(line), seconds=spent)
        status = process.wait()
        self._process = None
        self._errors.seek(0)
        said = self._errors.read().strip().splitlines()[-15:]
        return Verdict(
            shader.name, "hang" if hangs else "crash", f"exit status {status}\n" + "\n".join(said), spent
        )

    def stop(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait(timeout=60)
        self._errors.close()


def _serve() -> None:
    """The child: a line with a shader in, a line with what became of it out."""
    import faulthandler

    faulthandler.enable()
    import kompute_py as kp

    with kp.Manager(validation=False) as mgr:
        for line in sys.stdin:
            shader, stock = json.loads(line)
            print(json.dumps(_one(kp, mgr, Published(**shader), Accepted(**stock))), flush=True)


def _one(kp: Any, mgr: Any, shader: Published, stock: Accepted) -> dict[str, str]:
    import warnings

    options: dict[str, Any] = {}
    source: Any = Path(shader.path)
    if shader.language == "spvasm":
        source = source.read_text()
    else:
        options = {"language": shader.language, "target": shader.target, "defines": shader.defines}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kernel = mgr.kernel(source, name="published", **options)
    except kp.KomputeError as error:
        text = str(error)
        missing = _named(text, stock)
        if missing:
            return {"outcome": "refused", "detail": text, "missing": missing}
        return {"outcome": "unnamed refusal", "detail": f"{type(error).__name__}: {text}"}
    except Exception as error:
        return {"outcome": "untyped error", "detail": f"{type(error).__name__}: {error}"}
    differences = compare(ours(kernel.reflection), stock.declared)
    if not str(kernel).startswith("published("):
        differences.append(f"its text is {str(kernel)!r}")
    return {
        "outcome": "wrong signature" if differences else "loads",
        "detail": "\n".join(differences),
    }


def _named(message: str, stock: Accepted) -> str:
    """What a refusal says is missing: a capability of the module, a feature, an extension or a limit of the
    device.
    """
    if not stock.valid and re.search(
        r"The SPIR-V is not valid for Vulkan|made SPIR-V that is not valid", message
    ):
        return "valid SPIR-V (the stock validator refuses it, too)"
    if found := re.search(r"a buffer's hidden counter(?=, which Vulkan does not have)", message):
        return found.group()
    if re.search(r"declares set \d+, binding \d+ as an? .* and as an? .*; a binding has one kind", message):
        return "one kind for each binding"
    for capability in stock.capabilities:
        if re.search(rf"\b{capability}\b", message):
            return capability
    found = re.search(r"\b(max[A-Z]\w+|VK_\w+|shader[A-Z]\w+|SPIR-V 1\.\d)\b", message)
    return found.group() if found else ""


def ours(reflection: dict[str, Any]) -> dict[str, Any]:
    """A Kernel's signature in the terms that SPIRV-Cross's can be put in, too."""

    def members(layout: dict[str, Any]) -> list[list[Any]]:
        return [[m["name"] or f"_m{i}", m["offset"]] for i, m in enumerate(layout["members"])]

    push = reflection["push_constants"]
    return {
        "bindings": {
            f"{b['set']}.{b['binding']}": {
                "kind": b["kind"], "count": b["count"], "used": b["used"],
                "members": members(b["layout"]) if b["kind"] in ("storage buffer", "uniform buffer") else [],
            }
            for b in reflection["bindings"]
        },
        "push": sorted(members(push["layout"])) if push else [],
        "constants": [[c["id"], c["default"]] for c in reflection["spec_constants"]],
        "local_size": list(reflection["local_size"]),
    }  # fmt: skip


def compare(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """How a signature differs from what SPIRV-Cross says; [] where it does not."""
    differences = []
    # What only other entry points use is an optional argument of ours, and none of SPIRV-Cross's (from SPIR-V
    # 1.4 on).
    needed = {place for place, b in found["bindings"].items() if b["used"] or place in expected["bindings"]}
    if needed != set(expected["bindings"]):
        differences.append(f"bindings {sorted(needed)}, not {sorted(expected['bindings'])}")
    for place, entries in expected["bindings"].items():
        own = found["bindings"].get(place)
        # Several variables may share a binding: the signature is one of theirs.
        if own is not None and not any(_same(own, each) for each in entries):
            differences.append(f"binding {place} is {own}, not {' or '.join(map(str, entries))}")
    if found["push"] != expected["push"]:
        differences.append(f"push: {found['push']}, not {expected['push']}")
    defaults = dict(expected["constants"])
    if [id_ for id_, _ in found["constants"]] != list(defaults) or not all(
        default in defaults[id_] or None in defaults[id_] for id_, default in found["constants"]
    ):
        differences.append(f"constants: {found['constants']}, not {expected['constants']}")
    if not all(
        size in sizes for size, sizes in zip(found["local_size"], expected["local_size"], strict=True)
    ):
        differences.append(f"local size: {found['local_size']}, not {expected['local_size']}")
    return differences


def _same(own: dict[str, Any], other: dict[str, Any]) -> bool:
    counts = other["count"] is None or own["count"] == other["count"]
    return counts and own["kind"] == other["kind"] and own["members"] == other["members"]


if __name__ == "__main__":
    _serve()
