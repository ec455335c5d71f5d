"""Mappings and sets in the place of a sequence: each is refused, with the argument's name."""

from __future__ import annotations

import re

import numpy as np
import pytest

import kompute_py as kp

SCALE = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { float factor; float other; };
layout(constant_id = 0) const float added = 0;
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] = x[i] * factor + added + other; }
"""


def calls(mgr):
    """{what the error names: a call that takes the value there}"""
    t = mgr.zeros(8)
    kernel = mgr.kernel(SCALE)
    algorithm = mgr.algorithm([t], kernel.to_spirv(), (1, 1, 1), [1.0], [1.0, 1.0])
    image = mgr.image(np.zeros((2, 3)))
    push = {"factor": 1.0, "other": 2.0}

    def other_manager(**options):
        kp.Manager(**options).destroy()

    return {
        "main: grid": lambda x: kernel(t, grid=x, **push),
        "main: groups": lambda x: kernel(t, groups=x, **push),
        "main(uses=...)": lambda x: kernel(t, uses=x, **push),
        "shape": lambda x: mgr.zeros(x),
        "The shape of empty": lambda x: mgr.empty(x),
        "shape of full": lambda x: mgr.full(x, 1),
        "The shape": lambda x: t.reshape(x),
        "workgroup": lambda x: mgr.algorithm([t], kernel.to_spirv(), x, [1.0], [1.0, 1.0]),
        "spec": lambda x: mgr.algorithm([t], kernel.to_spirv(), (1, 1, 1), x, [1.0, 1.0]),
        "push": lambda x: mgr.algorithm([t], kernel.to_spirv(), (1, 1, 1), [1.0], x),
        "push of a dispatch": lambda x: kp.OpAlgoDispatch(algorithm, x),
        "grid of a dispatch": lambda x: kp.OpAlgoDispatch(algorithm, grid=x),
        "OpSyncDevice": lambda x: kp.OpSyncDevice(x),
        "submit": lambda x: mgr.submit(x),
        "family_queue_indices": lambda x: kp.Manager(0, x),
        "device": lambda x: kp.Manager(x),
        "visible_devices": lambda x: other_manager(visible_devices=x),
        "address": lambda x: mgr.sampler("nearest", x),
        "image_empty": lambda x: mgr.image_empty(x, "r32f"),
        "include_dirs": lambda x: kp.compile(SCALE, include_dirs=x),
        "include_dirs of a kernel": lambda x: mgr.kernel(SCALE, include_dirs=x),
        "dl_device": lambda x: t.__dlpack__(dl_device=x),
        "items": lambda x: list(mgr.sequence().record(kernel.bind(t, **push)).stream(x, inputs=t, outputs=t)),
        "region": lambda x: t.read(region=x),
        "region of an image": lambda x: image.read(region=x),
        "index": lambda x: t[x],
        "value": lambda x: t.__setitem__(slice(None), x),
        "data of write": lambda x: t.write(x),
        "data of tensor": lambda x: mgr.tensor(x),
        "data of tensor_t": lambda x: mgr.tensor_t(x),
        "data of image": lambda x: mgr.image(x),
        "argument": lambda x: kernel(x, **push),
        "push of a kernel": lambda x: kernel(t, push=x),
        "wait": lambda x: mgr.sequence().record(kp.OpSyncDevice([t])).eval_async(wait=x),
    }


NAMED = ("grid", "groups", "uses", "shape", "workgroup", "family_queue_indices", "visible_devices", "address",
         "include_dirs", "dl_device", "items", "submit", "OpSyncDevice", "wait", "device")  # fmt: skip


@pytest.mark.parametrize("given", [{0: 1}, {1}, {2: 8, 1: 4}, {4, 2}, frozenset([8]), {"factor": 3}], ids=str)
def test_mappings_and_sets_are_no_sequences(mgr, given):
    failed = {}
    for name, call in calls(mgr).items():
        if "spec" in name or "push" in name:
            continue  # these take {name: value}; see below
        try:
            call(given)
        except kp.KomputeError as error:
            assert isinstance(error, (TypeError, ValueError, IndexError)), (name, error)
            word = name.split()[-1] if " of " in name else name.split(":")[-1].split("(")[0]
            if name.split()[0] in NAMED and not re.search(name.split()[0], str(error)):
                failed[name] = (word, error)
            continue
        failed[name] = "nothing raised"
    assert not failed


def test_constants_are_given_by_name_or_in_order(mgr):
    for name, call in calls(mgr).items():
        if "spec" in name or "push" in name:
            for given in ({1.0}, {1.0, 2.0}, frozenset([1.0]), {"nothing": 1.0}):
                with pytest.raises(kp.KomputeError):
                    call(given)


def test_lists_without_an_order_take_sets(mgr, tmp_path):
    kp.save_tensors(tmp_path / "t.safetensors", {"a": mgr.zeros(2), "b": mgr.zeros(3), "c": mgr.zeros(4)})
    assert set(kp.load_tensors(tmp_path / "t.safetensors", manager=mgr, names={"a", "c"})) == {"a", "c"}
    assert mgr.zeros({2: 0, 3: 0}.keys()).shape == (2, 3)  # in the order of the dict
