"""What tests of HLSL and Slang share: the compilers that are here, and wave operations that a device
lacks."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterator
from typing import Any

import pytest

import kompute_py as kp
from kompute_py._compilers.libraries import INSTALL, find_library

needs_dxc = pytest.mark.skipif(find_library("dxc") is None, reason=f"needs DXC: {INSTALL['dxc']}")
needs_slang = pytest.mark.skipif(find_library("slang") is None, reason=f"needs Slang: {INSTALL['slang']}")
COMPILERS = [pytest.param("dxc", marks=needs_dxc), pytest.param("slang", marks=needs_slang)]


@functools.cache
def dxc_is_old() -> bool:
    """Whether DXC is one before 1.8: the guide "HLSL and Slang" says how these differ."""
    if find_library("dxc") is None:
        return False
    module = kp.ShaderModule("[numthreads(1, 1, 1)] void main() {}", language="hlsl", compiler="dxc")
    return tuple(map(int, re.findall(r"\d+", module.compiler or ""))) < (1, 8)


@contextlib.contextmanager
def skipping_missing_waves() -> Iterator[None]:
    """Skips the test where the device lacks an operation on subgroups, and names it."""
    try:
        yield
    except kp.UnimplementedError as error:
        if "subgroup" not in str(error):
            raise
        pytest.skip(str(error))


def shape(signature: Any) -> dict[str, Any]:
    """All that a signature says, but the names that a language has for types of matrices."""
    members = signature.push.members if signature.push is not None else ()
    return {
        "parameters": [
            (p.name, p.set, p.binding, p.kind, p.access, p.dtype, [_layout(m) for m in p.layout["members"]])
            for p in signature.parameters
        ],
        "push": [_layout(member) for member in members],
        "constants": [(c["id"], c["name"], c["type"], c["default"]) for c in signature.spec_constants],
        "local_size": signature.local_size,
    }


def _layout(layout: Any) -> dict[str, Any]:
    kept = {k: v for k, v in layout.items() if k not in ("members", "hlsl_matrix", "type_name", "name")}
    if layout["array"] != [0]:
        kept["name"] = layout["name"]  # of the array that is all a buffer has, HLSL has no name
    return {**kept, "members": [_layout(member) for member in layout["members"]]}
