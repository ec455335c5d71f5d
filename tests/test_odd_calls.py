"""Every public callable with arguments of wrong types: what is raised is an error of ours, and no text of the bindings' own.

pybind11 answers arguments that it cannot convert with all signatures and the repr of every argument, a shader's whole source among them.
"""

from __future__ import annotations

import functools
import inspect
import warnings

import numpy as np
import pytest

import kompute_py as kp

SOURCE = """#version 450
layout(local_size_x = 4) in;
layout(binding = 0) buffer Data { float data[]; };
layout(push_constant) uniform Push { float f; };
void main() { data[gl_GlobalInvocationID.x] *= f; }"""


class Odd:
    """Nothing that any function takes."""

    def __repr__(self) -> str:
        return "odd"


ODD = [
    None, Odd(), -1, 2**32, 2**70, 1.5, float("nan"), "x", "\ud800", "a\0b", b"x", [], [1], (), [None], ["\ud800"], {1: 2}, {"a": 1},
    {"\ud800": None}, np.zeros(3), np.float32(1), int, True, 3j,
]  # fmt: skip
# What ends or replaces objects that the others need, waits for what does not come, or writes to the screen.
LEFT_OUT = {"destroy", "manager", "wait", "show", "plot", "synchronize", "Manager", "reload"}
# Python's own classes, and what they do with such arguments.
PYTHONS = (dict, tuple)


def objects(mgr, tmp_path):
    t, spirv = mgr.tensor([1, 2, 3, 4]), kp.compile(SOURCE)
    kernel, algorithm = mgr.kernel(SOURCE), mgr.algorithm([t], spirv, (1, 1, 1), [], [1.0])
    seq = mgr.sequence().record(kp.OpFill([t], 1)).eval()
    path = tmp_path / "x.safetensors"
    kp.save_tensors(path, {"a": t})
    things = {
        "t": t, "image": mgr.image(np.zeros((4, 4))), "k": kernel, "a": algorithm, "s": seq, "f": seq.eval_async().fence,
        "sem": mgr.semaphore(), "sampler": mgr.sampler(), "module": kernel.module, "fill": kp.OpFill([t], 0),
        "mapping": mgr.zeros(1).map(write=True), "memory": mgr.memory, "mgr": mgr,
    }  # fmt: skip
    # What the other arguments are while one is odd.
    good = {
        "kp.compile": [SOURCE], "kp.check": [SOURCE], "mgr.kernel": [SOURCE], "mgr.algorithm": [[t], spirv, (1, 1, 1), [], [1.0]],
        "mgr.tensor": [[1]], "mgr.tensor_t": [[1]], "mgr.zeros": [3], "mgr.empty": [3], "mgr.full": [3, 1], "mgr.from_host": [np.zeros(4)],
        "mgr.image": [np.zeros((4, 4))], "mgr.image_t": [np.zeros((4, 4), np.float32)], "mgr.image_empty": [(4, 4)], "mgr.submit": [[]],
        "kp.OpFill": [[t], 1], "kp.OpAlgoDispatch": [algorithm, [1.0]], "kp.OpCopy": [[t, t]], "kp.OpMult": [[t], algorithm],
        "kp.save_tensors": [str(path), {"a": t}], "kp.load_tensors": [str(path)], "kp.decompile": [spirv], "kp.Tensor": [mgr, [1]],
        "kp.Image": [mgr, np.zeros((4, 4))], "kp.Sampler": [mgr], "kp.Sequence": [mgr], "kp.Kernel": [mgr, SOURCE],
    }  # fmt: skip
    return things, good


def callables(things):
    for name, thing in things.items():
        for member in dir(type(thing)):
            if member.startswith("_") or member in LEFT_OUT:
                continue
            static = inspect.getattr_static(type(thing), member)
            if isinstance(static, property):
                if static.fset is not None:
                    yield f"{name}.{member} =", functools.partial(setattr, thing, member)
            elif callable(getattr(thing, member)):
                yield f"{name}.{member}", getattr(thing, member)
    for name in kp.__all__:
        value = getattr(kp, name)
        own = isinstance(value, type) and issubclass(value, (*PYTHONS, int, BaseException))
        if name not in LEFT_OUT and callable(value) and not own:
            yield f"kp.{name}", value


def calls(function, good):
    """(positional arguments, keywords) with one odd argument."""
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    needed = {p.name: [] for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty}
    for odd in ODD:
        for place in range(len(positional) or int(several)):
            yield [*good[:place], *[1] * (place - len(good)), odd, *good[place + 1 :]], needed
        for p in parameters:
            if p.kind is p.KEYWORD_ONLY:
                yield good, {**needed, p.name: odd}


def is_ours(error):
    text = str(error)
    if "incompatible" in text or "Invoked with" in text or "_native" in text:
        return False
    python = isinstance(error, TypeError) and ("positional argument" in text or "unexpected keyword" in text)
    return (
        isinstance(error, kp.KomputeError)
        or python
        or (isinstance(error, OSError) and error.filename is not None)
    )


@pytest.mark.filterwarnings("ignore")
def test_wrong_types_raise_errors_of_ours(mgr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    things, good = objects(mgr, tmp_path)
    wrong, count = [], 0
    for name, function in callables(things):
        if name == "kp.OpKernel":
            continue  # made by Kernel.bind
        for args, keywords in calls(function, good.get(name, [])):
            if "progress" in keywords:
                continue  # a function of the user's
            count += 1
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(*args, **keywords)
            except Exception as error:
                if not is_ours(error):
                    wrong.append((name, args, keywords, type(error).__name__, str(error)[:80]))
    assert not wrong
    assert count > 5000
    things["mapping"].close()
    kp.manager().destroy()  # some of them make it


OPTIONS = [
    "device", "family_queue_indices", "desired_extensions", "validation", "strict", "env_prefix", "memory_limit", "wait_mode",
    "required_extensions", "debug_layers", "memory_block_size", "visible_devices", "robust_access", "memory_debug",
]  # fmt: skip


@pytest.mark.parametrize("option", OPTIONS)
def test_options_of_wrong_types_raise_errors_of_ours(option):
    of_devices = option in ("device", "family_queue_indices", "desired_extensions")
    wrong = []
    for odd in ODD:
        if odd is None:
            continue
        try:
            if of_devices:
                kp.Manager(**{option: odd}).destroy()
            else:
                kp.config_report(**{option: odd})
        except Exception as error:
            if not is_ours(error):
                wrong.append((odd, type(error).__name__, str(error)[:80]))
    assert not wrong
