"""Tracebacks, help() and pickles name the public modules, not the package's rooms."""

from __future__ import annotations

import inspect
import pickle
import pickletools
import pydoc
import re
import typing

import numpy as np
import pytest

import kompute_py as kp
from kompute_py import errors
from kompute_py import typing as names

pytestmark = pytest.mark.own_driver
ROOM = re.compile(r"kompute_py\._\w+")

CLASSES = {
    **{f"kp.{name}": thing for name in kp.__all__ if inspect.isclass(thing := getattr(kp, name))},
    **{f"kp.errors.{name}": getattr(errors, name) for name in errors.__all__},
    **{
        f"kp.typing.{name}": thing
        for name in names.__all__
        if inspect.isclass(thing := getattr(names, name)) and typing.get_origin(thing) is None
    },
}
FUNCTIONS = [name for name in kp.__all__ if not inspect.isclass(getattr(kp, name))]
SOURCE = """
#version 450
layout(local_size_x = 8) in;
layout(constant_id = 3) const uint N = 4;
layout(set = 0, binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { float factor; };
void main() { x[gl_GlobalInvocationID.x] *= factor * N; }
"""


def test_a_class_and_its_bases_are_public():
    for name, cls in CLASSES.items():
        for base in cls.__mro__:
            assert not ROOM.match(base.__module__), name
        module = __import__(cls.__module__, fromlist=["_"])
        assert getattr(module, cls.__name__) is cls, name


def test_a_function_is_public():
    for name in FUNCTIONS:
        assert getattr(kp, name).__module__ == "kompute_py", name


@pytest.mark.parametrize(
    ("module", "wrong", "near"),
    [
        (kp, "Manger", "Manager"), (kp.dask, "map_block", "map_blocks"),
        (errors, "KomputError", "KomputeError"), (kp.notebook, "slider", "sliders"),
        (kp.ops, "matmull", "matmul"), (kp.random, "Generatr", "Generator"), (names, "Langage", "Language"),
    ],
)  # fmt: skip
def test_a_module_offers_its_names_and_the_nearest_for_another(module, wrong, near):
    offered = {name for name in dir(module) if not name.startswith("__")}
    assert {*module.__all__, near} <= offered
    assert not any(name.startswith("_") or name in ("annotations", "Any") for name in offered)
    with pytest.raises(AttributeError, match=f"has no .*{wrong!r}: did you mean {near!r}\\?"):
        getattr(module, wrong)


def test_help_names_no_room():
    for thing in (*CLASSES.values(), *(getattr(kp, name) for name in FUNCTIONS)):
        assert not ROOM.search(pydoc.plain(pydoc.render_doc(thing))), thing


def named_by_pickle(thing: object) -> set[str]:
    """The modules that a pickle of `thing` names."""
    strings = [arg for _, arg, _ in pickletools.genops(pickle.dumps(thing, 5)) if isinstance(arg, str)]
    return {text for text in strings if text.startswith("kompute_py")}


def every_error() -> list[BaseException]:
    made: list[BaseException] = []
    for name in errors.__all__:
        cls = getattr(errors, name)
        if issubclass(cls, kp.ValidationError):
            made.append(cls("message", [("error", "id", "text")]))
        elif issubclass(cls, BaseException):
            made.append(cls("message"))
    return made


@pytest.mark.parametrize("error", every_error(), ids=lambda error: type(error).__name__)
def test_pickles_of_errors_name_no_room(error):
    assert named_by_pickle(error) == {"kompute_py.errors"}
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert again.args == error.args


def test_pickles_of_results_name_no_room(mgr):
    kernel = mgr.kernel(SOURCE).specialize(N=2)
    algorithm = mgr.algorithm([mgr.zeros(8)], kernel, (1, 1, 1))
    findings = [kp.Finding("limit", "maxImageDimension1D", 3, 2, "Too long.")]
    for thing in (
        kp.config_report(),
        mgr.config.validation,
        kp.list_devices(),
        mgr.memory.heaps,
        mgr.memory.labels(),
        mgr.memory.pipelines,
        list(kp.MemoryTypes) + list(kp.DataTypes) + list(kp.HostBufferSemantics),
        kernel.signature.parameters,
        algorithm.bindings,
        algorithm.push_constants,
        algorithm.spec_constants,
        findings,
        errors.Diagnostic("file", 1, 2, "error", "message"),
    ):
        found = named_by_pickle(thing)
        assert found and not any(map(ROOM.match, found))
        assert pickle.loads(pickle.dumps(thing)) == thing


def test_a_signature_is_pickled_as_its_reflection(mgr):
    signature = mgr.kernel(SOURCE, name="scale").specialize(N=2).signature
    assert named_by_pickle(signature) == {"kompute_py.typing"}
    again = pickle.loads(pickle.dumps(signature))
    assert type(again) is names.Signature
    assert again.text("scale") == signature.text("scale")
    assert again.parameters == signature.parameters
    assert again.push.pack_named({"factor": 2.0}, "") == signature.push.pack_named({"factor": 2.0}, "")


def test_the_error_for_attributes_of_arrays_is_public(mgr):
    with pytest.raises(errors.ArrayAttributeError) as caught:
        _ = mgr.zeros(3).flat
    assert named_by_pickle(caught.value) >= {"kompute_py.errors"}


def test_other_processes_read_the_pickles(mgr):
    # As in a pool of processes: nothing but the pickle is there.
    import subprocess
    import sys

    error = kp.ShaderCompileError("m", diagnostics=[errors.Diagnostic("f", 1, 2, "error", "text")])
    data = pickle.dumps([error, kp.config_report(), mgr.kernel(SOURCE).signature, np.float32(1)])
    done = subprocess.run(
        [sys.executable, "-c", "import pickle, sys; print(len(pickle.load(sys.stdin.buffer)))"],
        input=data,
        capture_output=True,
        timeout=500,
        check=False,
    )
    assert done.stdout.split() == [b"4"], done.stderr.decode()
