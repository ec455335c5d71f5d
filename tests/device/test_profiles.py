"""The library, kernels and images on each kind of device that the null driver stands for: no message of the
validation layer, and nothing that such a device forbids.
"""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from benchmarks.library.calls import CALLS
from kompute_py.testing.watching import watched
from tests.drivers import PROFILES, null_control
from tests.support.child import run_child
from tests.support.sampling import sampled

pytestmark = pytest.mark.own_driver

TONE = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) uniform sampler2D picture;
layout(binding = 1, rgba8) uniform writeonly image2D shown;
layout(binding = 2) uniform Curve { vec4 gain; } curve;
layout(binding = 3) buffer Sums { uint sums[]; };
layout(push_constant) uniform P { float gamma; };
void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(at, imageSize(shown)))) return;
    vec4 c = pow(texelFetch(picture, at, 0) * curve.gain, vec4(gamma));
    imageStore(shown, at, c);
    atomicAdd(sums[uint(c.r * 255.0) % sums.length()], 1u);
}"""
TEXELS = """#version 450
layout(local_size_x = 32) in;
layout(binding = 0, r32f) uniform readonly imageBuffer x;
layout(binding = 1) uniform samplerBuffer t;
layout(binding = 2) writeonly buffer Y { float y[]; };
void main() {
    int i = int(gl_GlobalInvocationID.x);
    if (i < y.length()) y[i] = imageLoad(x, i).r + texelFetch(t, i).r;
}"""
NEEDS_ITS_VALUES = {"average": "weights add up to zero"}
"""Calls that refuse what the null driver, which runs no shader, gives them."""


def check_messages(messages):
    found = messages.of_validation + null_control().violations()
    assert not found, found


def check_library(first, every):
    """One of `every` functions of `kp.ops`."""
    with watched() as messages, kp.Manager(validation=True, strict=True, tuning="off"):
        for name in sorted(CALLS)[first::every]:
            args, named = CALLS[name].make(np.random.default_rng(0), 5000)
            function = kp.ops
            for part in name.split("."):
                function = getattr(function, part)
            try:
                function(*args, **named)
            except kp.InvalidArgumentError as error:
                assert NEEDS_ITS_VALUES.get(name, "no error") in str(error), name
        kp.random.default_rng(1).normal(size=1000)
        kp.ops.sort(np.ones((3, 5000), np.float32))
    check_messages(messages)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_library_on_every_kind_of_device(profile):
    every = sampled(80, 1)  # the profiles take different functions
    first = PROFILES.index(profile) * 7 % every
    run_child(check_library, first, every, driver="null", layer="newer", config=f"profile={profile}")


def check_kernels():
    with watched() as messages, kp.Manager(validation=True, strict=True) as mgr:
        tone, texels = mgr.kernel(TONE), mgr.kernel(TEXELS)
        picture = np.zeros((37, 51, 4), np.uint8)
        for kind in ("device", "host", "deviceAndHost", "storage"):
            shown = mgr.image_t(picture, memory_type=kind, format="rgba8")
            sums = mgr.zeros(16, np.uint32, memory_type=kind)
            given = {
                "picture": mgr.image_t(picture, memory_type=kind, format="rgba8").sampled("nearest"),
                "shown": shown,
                "sums": sums,
            }
            given["curve"] = mgr.tensor([1, 1, 1, 1], memory_type=kind)
            tone(**given, gamma=0.5)
            seq = mgr.sequence(timestamps=True)
            for _ in range(3):
                seq.record(tone.bind(**given, gamma=2.0)).record(kp.OpSyncLocal([shown, sums]))
            seq.eval()
            seq.eval_async()
            seq.eval_await()
            x = mgr.zeros(1000, memory_type=kind)
            texels(x=x, t=x, y=mgr.zeros(1000))
            assert shown.read().shape == picture.shape and sums.read().shape == (16,)
        tone(**{**given, "sums": np.zeros(16, np.uint32), "curve": (1, 1, 1, 1)}, gamma=1.0)
        program = kp.Program.record(seq, outputs={"shown": shown})
        program.on(mgr).preload()
    check_messages(messages)


@pytest.mark.parametrize("profile", PROFILES)
def test_kernels_and_images_on_every_kind_of_device(profile):
    run_child(check_kernels, driver="null", layer="newer", config=f"profile={profile}")
