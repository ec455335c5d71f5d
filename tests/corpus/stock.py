"""What the tools that everybody has say about a shader: glslangValidator, DXC and spirv-as whether it is one,
SPIRV-Cross what it declares. None of them shares our reflection.

DXC is called by `kp.compile`: it has no command line here, and no other compiler declares what DXC does.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import kompute_py as kp

from .shaders import Published

_NEEDED = {"glslangValidator": "glslang-tools", "spirv-as": "spirv-tools", "spirv-cross": "spirv-cross"}


class Accepted(NamedTuple):
    """What the stock tools know of a shader."""

    declared: dict[str, Any]
    """Its arguments, in the terms of `judge.ours`, with all that a default or a size may be; None for what
    SPIRV-Cross leaves
    out (defaults of 8 and 16 bits)."""
    capabilities: list[str]
    valid: bool
    """Whether the stock validator takes what the stock compiler made."""


def missing_tools() -> list[str]:
    """Debian packages of the tools that are not here."""
    return [package for tool, package in _NEEDED.items() if shutil.which(tool) is None]


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=500, check=False)


def accepted(shader: Published, scratch: Path) -> Accepted | None:
    """None where the stock tools refuse it, or where it is no compute shader for Vulkan."""
    module = scratch / "module.spv"
    module.unlink(missing_ok=True)
    try:
        made = _assembled(shader, module) if shader.language == "spvasm" else _compiled(shader, module)
    except subprocess.TimeoutExpired:
        return None  # the stock compiler itself never ends
    if not made:
        return None
    text = _run("spirv-dis", "--no-color", str(module)).stdout.splitlines()
    if not any("OpEntryPoint GLCompute" in line for line in text):
        return None
    reflected = _run("spirv-cross", str(module), "--reflect")
    if reflected.returncode != 0:
        return None
    capabilities = [line.split()[-1] for line in text if line.split()[:1] == ["OpCapability"]]
    declared = _declared(json.loads(reflected.stdout))
    return Accepted(declared, capabilities, _valid(module, shader.target))


def _assembled(shader: Published, module: Path) -> bool:
    # It is of the version in its comments where it can be.
    stated = re.search(
        r"^; Version: (1\.[0-6])$", Path(shader.path).read_text(errors="replace"), re.MULTILINE
    )
    for target in [*([f"spv{stated[1]}"] if stated else []), shader.target]:
        done = _run("spirv-as", "--target-env", target, "-o", str(module), shader.path)
        if done.returncode == 0 and _valid(module, shader.target):
            return True
    return False


def _compiled(shader: Published, module: Path) -> bool:
    source = Path(shader.path)
    if shader.language == "hlsl":
        try:
            module.write_bytes(kp.compile(source, language="hlsl", target=shader.target, optimize=False))
        except kp.ShaderCompileError:
            return False
        return True
    options = [f"-D{name}={value}" for name, value in shader.defines.items()]
    options.append(f"-I{source.parent}")
    text = source.read_text(errors="replace")
    if "#include" in text and "GL_GOOGLE_include_directive" not in text:
        # Projects that call glslc leave this out: it is built in there.
        line = "#extension GL_GOOGLE_include_directive : enable"
        source = module.with_suffix(".comp")
        source.write_text(re.sub(r"^(\s*#version .*)$", rf"\1\n{line}", text, count=1, flags=re.MULTILINE))
    done = _run(
        "glslangValidator", "-V", "--target-env", shader.target, "-S", "comp", *options, "-o", str(module),
        str(source),
    )  # fmt: skip
    return done.returncode == 0 and module.is_file()


def _valid(module: Path, target: str) -> bool:
    lenient = ("--scalar-block-layout", "--workgroup-scalar-block-layout")
    return _run("spirv-val", "--target-env", target, *lenient, str(module)).returncode == 0


_KINDS = {
    "ssbos": "storage buffer", "ubos": "uniform buffer", "images": "storage image",
    "textures": "combined image sampler",
    "separate_images": "sampled image", "separate_samplers": "sampler",
    "acceleration_structures": "acceleration structure",
}  # fmt: skip
_TEXEL = {"storage image": "storage texel buffer"}


def _declared(reflected: dict[str, Any]) -> dict[str, Any]:
    constants = {c["variable_id"]: c for c in reflected.get("specialization_constants", [])}
    types = reflected.get("types", {})

    def lengths(of: dict[str, Any]) -> list[int] | None:
        found = []
        for length, literal in zip(of.get("array", []), of.get("array_size_is_literal", []), strict=True):
            if not literal and length not in constants:
                return None  # computed from constants: SPIRV-Cross does not say how
            found.append(length if literal else constants[length]["default_value"])
        return found

    def members(of: dict[str, Any]) -> list[list[Any]]:
        listed = types.get(of["type"], {}).get("members", [])
        # An @ is how glslang marks what it names itself.
        return [[m["name"].removeprefix("@"), m["offset"]] for m in listed if "offset" in m]

    bindings: dict[str, list[Any]] = {}
    for group, kind in _KINDS.items():
        for resource in reflected.get(group, []):
            texel = resource["type"].endswith("Buffer") and group not in ("ssbos", "ubos")
            array = lengths(resource)
            count: int | None = 1
            for length in array or []:
                count = (count or 0) * length
            entry = {
                "kind": _TEXEL.get(kind, "uniform texel buffer") if texel else kind,
                "count": None if array is None else count,
                "members": members(resource) if group in ("ssbos", "ubos") else [],
            }
            bindings.setdefault(f"{resource.get('set', 0)}.{resource.get('binding', 0)}", []).append(entry)
    point = next(p for p in reflected["entryPoints"] if p["mode"] == "comp")
    # Several constants may share an id, each with a default of its own.
    by_id: dict[int, list[Any]] = {}
    for constant in reflected.get("specialization_constants", []):
        by_id.setdefault(constant["id"], []).append(constant.get("default_value"))
    special = point.get("workgroup_size_is_spec_constant_id", [False] * 3)
    size = point.get("workgroup_size", [1, 1, 1])
    return {
        "bindings": bindings,
        "push": sorted([m for p in reflected.get("push_constants", []) for m in members(p)]),
        "constants": [[id_, by_id[id_]] for id_ in sorted(by_id)],
        "local_size": [by_id.get(n, [n]) if is_id else [n] for n, is_id in zip(size, special, strict=True)],
    }
