"""`python -m tests.corpus.launches`: how many published shaders get a default grid, and how many are refused.

Each kernel is bound to arguments of one, two and three axes, without a grid; integers among the push
constants are the length of an axis, or, by their names, the number of elements. It counts as "runs" if one
of them is taken, as "refused" if a refusal names the grid to give, and as "other" if the arguments do not fit
for another reason. Beside the archives, it takes the shaders in docs, examples and benchmarks of this
repository.
"""

from __future__ import annotations

import collections
import itertools
import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ..drivers import environment
from .archives import ARCHIVES
from .shaders import published

ROOT = Path(__file__).parents[2]
SHAPES = ((4096,), (64, 64), (16, 16, 16))
TEXT = re.compile(r"#version 4.*?(?=\"\"\"|'''|\n```)", re.DOTALL)


def main() -> int:
    """Print a row for each source of shaders; with an argument, write each shader's outcome to that file."""
    if "KP_NULL_DRIVER" not in os.environ:
        os.execve(
            sys.executable,
            [sys.executable, "-m", "tests.corpus.launches", *sys.argv[1:]],
            {**os.environ, **environment("null", config="profile=large_bar")},
        )
    import kompute_py as kp

    warnings.simplefilter("ignore")
    outcomes: dict[str, str] = {}
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    with kp.Manager(validation=False) as mgr:
        for origin, name, source, options in _sources():
            try:
                kernel = mgr.kernel(source, name="k", **options)
            except (kp.KomputeError, OSError):
                continue
            outcomes[name] = _outcome(kp, mgr, kernel)
            counts[origin][outcomes[name].split(":")[0]] += 1
    print("| from | kernels | run with a default grid | refused | other |\n|---|---:|---:|---:|---:|")
    for origin, each in counts.items():
        print(f"| {origin} | {each.total()} | {each['runs']} | {each['refused']} | {each['other']} |")
    for path in sys.argv[1:]:
        Path(path).write_text(json.dumps(outcomes, indent=1))
    return 0


def _sources() -> Any:
    for archive in ARCHIVES:
        if archive.quick:
            for each in published(archive):
                path = Path(each.path)
                options: dict[str, Any] = {"language": each.language, "defines": each.defines}
                source: Any = path.read_text() if each.language == "spvasm" else path
                yield archive.name, each.name, source, {} if each.language == "spvasm" else options
    for folder in ("docs", "examples", "kompute_py_gallery", "benchmarks", "jupyter"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md"):
                for number, found in enumerate(TEXT.findall(path.read_text())):
                    yield "docs, gallery, benchmarks", f"{path.relative_to(ROOT)} {number}", found, {}


def _outcome(kp: Any, mgr: Any, kernel: Any) -> str:
    said, runs = [], []
    for shape, counts in itertools.product(SHAPES, (True, False)):
        try:
            memories = [_argument(kp, mgr, each, shape) for each in kernel.signature.parameters]
            push = kernel.signature.push
            values = {} if push is None else {m["name"]: _constant(m, shape, counts) for m in push.members}
            given = {p.name: m for p, m in zip(kernel.signature.parameters, memories, strict=True)}
            kernel.bind(bind=given, push=values)
            if str(len(shape)) not in runs:
                runs.append(str(len(shape)))
        except Exception as error:  # its text tells
            said.append(str(error).splitlines()[0])
    if runs:
        return f"runs: {' '.join(runs)} axes"
    refused = [text for text in said if re.search(r"Choose the grid|Give grid=|grid=\(|Check [xyz] in", text)]
    return f"refused: {refused[0]}" if refused else f"other: {said[0]}"


def _argument(kp: Any, mgr: Any, parameter: Any, shape: tuple[int, ...]) -> Any:
    if parameter.descriptors != 1:
        raise ValueError("an array of bindings")
    if parameter.image is not None:
        format_ = parameter.image["format"] or "r32f"
        dims = {"1D": 1, "2D": 2, "3D": 3}[parameter.image["dim"]]
        axes = shape if len(shape) == dims else {1: (64,), 2: (64, 64), 3: (16, 16, 16)}[dims]
        image = mgr.image_t(
            np.zeros((*axes, *_channels(format_)), _component(format_)), format=format_, dims=dims
        )
        return image if parameter.kind == "storage image" else kp.SampledImage(image, mgr.sampler())
    members = parameter.layout["members"]
    if members and members[-1]["array"] and members[-1]["array"][0] == 0:
        stride = members[-1]["array_strides"][0] // 4
        if members[-1]["offset"] or stride < 1:
            return mgr.tensor_t(np.zeros(members[-1]["offset"] // 4 + max(1, stride) * 4096, np.uint32))
        return mgr.tensor_t(
            np.zeros((*shape, *((stride,) if stride > 1 else ())), parameter.dtype or np.uint32)
        )
    return mgr.tensor_t(np.zeros(-(-parameter.size // 4), parameter.dtype or np.uint32))


def _channels(format_: str) -> tuple[int, ...]:
    letters = len(re.match(r"[rgba]+", format_)[0])  # type: ignore[index]
    return () if letters == 1 else (letters,)


def _component(format_: str) -> Any:
    bits, kind = re.match(r"[rgba]+(\d+)(\w*)", format_).groups()  # type: ignore[union-attr]
    if kind == "f":
        return {"16": np.float16, "32": np.float32}[bits]
    return np.dtype(f"{'int' if kind in ('i', '_snorm') else 'uint'}{bits}")


def _constant(member: Any, shape: tuple[int, ...], counts: bool) -> Any:
    if member["members"]:
        return {each["name"]: _constant(each, shape, counts) for each in member["members"]}
    name = member["name"].lower()
    whole = counts and re.search(r"size|count|total|len|num|elem", name)
    value: Any = int(np.prod(shape)) if whole else shape[-1]
    count = max(1, member["rows"]) * max(1, member["columns"])
    given = [value] * count if count > 1 else value
    for length in reversed(member["array"]):
        given = [given] * length
    return given


if __name__ == "__main__":
    sys.exit(main())
