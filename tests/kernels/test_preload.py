"""preload: pipelines are built before the first call, in parallel, and calls that build one first say so."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._recording import preload
from tests.drivers import null_control
from tests.support.child import run_child

SOURCE = """#version 450
layout(local_size_x = 8) in;
layout(constant_id = 0) const float EXTRA = {number}.0;
layout(binding = 0) readonly buffer X {{ float x[]; }};
layout(binding = 1) writeonly buffer Y {{ float y[]; }};
layout(binding = 2) uniform U {{ vec4 u[20]; }};
layout(push_constant) uniform P {{ float factor; }};
void main() {{ uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = factor * x[i] + EXTRA + u[1].x; }}
"""
IMAGE = """#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, r32f) uniform writeonly image2D img;
void main() { imageStore(img, ivec2(gl_GlobalInvocationID.xy), vec4(7.0)); }
"""
SEVERAL = """#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer X { float x[]; } many[2];
layout(binding = 1) buffer Unused { float unused[]; };
void main() { many[0].x[0] += 1.0; many[1].x[0] += 2.0; }
"""


OF_TWO = """#version 450
layout(local_size_x = 4) in;
layout(constant_id = 0) const uint FACTOR = 2;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
void main() { y[gl_GlobalInvocationID.x] = FACTOR * x[gl_GlobalInvocationID.x]; }
"""


@pytest.fixture
def own():
    """A Manager that knows no pipelines yet."""
    with kp.Manager(pipeline_cache_dir="") as manager:
        yield manager


@pytest.fixture
def said(caplog):
    """What calls said about pipelines that they built."""
    caplog.set_level(logging.INFO, "kompute_py")
    return lambda: [each.getMessage() for each in caplog.records if "pipeline was built" in each.getMessage()]


def source(number):
    return SOURCE.format(number=number)


def result(kernel, mgr):
    return kernel(
        np.arange(3, dtype=np.float32), np.zeros(3, np.float32), np.ones((20, 4), np.float32), factor=2
    )


def test_a_call_that_builds_its_pipeline_says_so_once(own, said):
    kernel = own.kernel(source(1), name="first")
    assert not said()
    assert result(kernel, own).tolist() == [2, 4, 6]
    (line,) = said()
    assert line.startswith("first: its pipeline was built first, in ")
    assert "its first run took" in line
    assert "preload()" in line
    result(kernel, own)
    kernel(*[own.tensor(np.zeros(n, np.float32)) for n in (5, 5, 80)], factor=1)
    assert len(said()) == 1
    result(kernel.specialize(EXTRA=5.0), own)
    assert len(said()) == 2


@pytest.mark.parametrize("call", ["bind", "submit"])
def test_bind_and_submit_say_so(own, said, call):
    kernel = own.kernel(source(1))
    tensors = [own.tensor(np.zeros(n, np.float32)) for n in (5, 5, 80)]
    for _ in range(2):
        getattr(kernel, call)(*tensors, factor=1)
        assert len(said()) == 1


def test_an_algorithm_that_builds_its_pipeline_says_so(own, said):
    spirv = kp.compile(OF_TWO)
    tensors = [own.zeros(4), own.zeros(4)]
    algorithm = own.algorithm(tensors, spirv, (1, 1, 1))
    (line,) = said()
    assert line.startswith("Algorithm of 2 tensors, entry point 'main': its pipeline was built, in ")
    assert "drivers may compile more in its first run" in line
    assert line.endswith("preload()")
    own.algorithm(tensors, spirv, (2, 1, 1))
    algorithm.preload()
    own.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()
    assert len(said()) == 1
    algorithm.rebuild(spec_consts=[8])
    assert len(said()) == 2
    kernel = own.kernel(source(1))
    kernel.preload()
    assert len(said()) == 2


@pytest.mark.capability(
    "W22", "kernels built before their first call", "Manager.preload", "guides/performance"
)
def test_nothing_is_built_after_preload(own, said):
    kernels = [own.kernel(source(n)) for n in range(4)]
    kernels.append(kernels[0].specialize(EXTRA=9.0))
    kernels[0].preload()
    own.preload(kernels)
    built = own.memory.pipelines
    for n, kernel in zip((0, 1, 2, 3, 9), kernels, strict=True):
        assert result(kernel, own).tolist() == [n + 1, n + 3, n + 5]
    assert own.memory.pipelines == built
    assert not said()


PLAIN = """
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; uint shift; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = factor * x[i] + float(shift); }
"""


def test_calls_with_tensors_and_arrays_are_prepared_too(own, monkeypatch):
    kernel = own.kernel(PLAIN)
    kernel.preload()
    alive = kp.alive(manager=own)
    kernel.preload()
    assert kp.alive(manager=own) == alive  # no memory is left
    monkeypatch.setattr("kompute_py._kernels.kernel.Call", None)  # what the first call goes through else
    for count in (3, 64, 100):
        x, y = own.tensor(np.arange(count)), own.zeros(count)
        assert kernel(x, y, factor=2.0, shift=1) is None
        assert y.tolist() == [2 * i + 1 for i in range(count)]
        array = np.zeros(count, np.float32)
        assert kernel(np.arange(count, dtype=np.float32), array, factor=2.0, shift=1) is array
        assert array.tolist() == y.tolist()
    with pytest.raises(TypeError):
        kernel(x, own.zeros(3), factor=2.0, shift=1)  # of other sizes: not prepared


def test_kinds_of_shaders(own, said):
    several, image = own.kernel(SEVERAL), own.kernel(IMAGE)
    own.preload([several, image])
    a, b = own.zeros(1), own.zeros(1)
    several([a, b])
    assert (a.read()[0], b.read()[0]) == (1, 2)
    target = own.image(np.zeros((4, 4), np.float32))
    image(target)
    assert (target.read() == 7).all()
    assert not said()


def test_algorithms_are_preloaded_and_their_memory_is_not_touched(own):
    t = own.tensor(np.ones(4))
    algorithm = own.algorithm(
        [t],
        kp.compile("""#version 450
layout(local_size_x = 1) in;
layout(binding = 0) buffer X { float x[]; };
void main() { x[gl_GlobalInvocationID.x] += 1.0; }"""),
    )
    algorithm.preload()
    t.data()[:] = 5  # not uploaded yet
    own.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()
    assert t.read().tolist() == [6, 6, 6, 6]
    algorithm.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        algorithm.preload()
    with pytest.raises(kp.FailedPreconditionError, match="no shader"):
        own.algorithm([t]).preload()


def test_what_may_be_listed(own):
    kernel = own.kernel(source(1))
    own.preload([])
    own.preload(each for each in (kernel, kernel))
    assert result(kernel, own).tolist() == [2, 4, 6]


@pytest.mark.parametrize("wrong", [[1], [kp.Kernel], "text", 5, None], ids=str)
def test_what_cannot_be_preloaded(own, wrong):
    with pytest.raises(kp.ArgumentTypeError, match="preload takes kernels and algorithms"):
        own.preload(wrong)


def test_kernels_of_another_manager_are_refused(mgr):
    with kp.Manager() as other, pytest.raises(kp.InvalidArgumentError, match="belongs to"):
        mgr.preload([other.kernel(source(1))])


def test_pipelines_are_built_on_several_threads(own, monkeypatch):
    monkeypatch.setattr(preload.os, "cpu_count", lambda: 3)
    together = threading.Barrier(3, timeout=20)
    real = preload._algorithm

    def meet(manager, ahead):
        together.wait()  # broken unless three threads are here at once
        return real(manager, ahead)

    monkeypatch.setattr(preload, "_algorithm", meet)
    kernels = [own.kernel(source(n)) for n in range(3)]
    own.preload(kernels)
    for n, kernel in enumerate(kernels):
        assert result(kernel, own).tolist() == [n + 1, n + 3, n + 5]


def compile_together(folder):
    """What the null driver said to four kernels built at once, and the sizes of the cache's file afterwards
    and after one more kernel in a second Manager.
    """
    sizes = []
    for numbers in (range(4), range(5)):
        with kp.Manager(pipeline_cache_dir=folder) as mgr:
            mgr.preload([mgr.kernel(source(n)) for n in numbers])
        (file,) = [each for each in Path(folder).iterdir() if each.suffix != ".lock"]
        sizes.append(file.stat().st_size)
    return [null_control().violations(), *sizes]


@pytest.mark.own_driver
def test_kernels_built_at_once_do_not_wait_for_each_others_cache(tmp_path):
    # Some drivers hold a pipeline cache's lock while they compile. All that was compiled reaches the disk.
    config = "compile_ms=100"
    violations, four, five = run_child(
        compile_together, str(tmp_path / "cache"), driver="null", config=config
    )
    assert violations == []
    assert five - four == 8  # the hash of a pipeline: nothing was lost, nothing doubled
    assert four > 4 * 8


def test_an_error_does_not_keep_the_others_from_being_built(own, said, monkeypatch):
    real = preload._algorithm

    def fail(manager, ahead):
        if ahead.shader is wrong._version.native:
            raise kp.InvalidArgumentError("too large")
        return real(manager, ahead)

    monkeypatch.setattr(preload, "_algorithm", fail)
    right, wrong = own.kernel(source(1)), own.kernel(source(2))
    with pytest.raises(kp.InvalidArgumentError, match="too large"):
        own.preload([wrong, right])
    assert result(right, own).tolist() == [2, 4, 6]
    assert not said()
