"""What is found by content lives while it is used, and a bounded number beyond: modules, pipelines, layouts,
pools, samplers.
"""

from __future__ import annotations

import gc
import os
import threading
import time

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._kernels.kernel import Kernel
from tests.drivers import null_control
from tests.soak.phases import PHASES, Phase
from tests.soak.running import judge, run
from tests.support.child import run_child
from tests.support.threads import on_threads

SPECIAL = """#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint N = 1;
layout(set = 0, binding = 0) buffer B { uint b[]; };
void main() { b[gl_GlobalInvocationID.x] = N; }
"""
DEFAULT_RECENT = 128


def source(n):
    """A module of its own for each `n`; it writes n."""
    return SPECIAL.replace("N = 1", f"N = {n}")


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def spirv(n):
    return kp.compile(source(n))


# -- how many are kept ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("recent", [0, 3, None])
def test_dropped_modules_and_pipelines_are_bounded(make_manager, recent):
    mgr = make_manager(recent_pipelines=recent)
    most = DEFAULT_RECENT if recent is None else recent
    out = mgr.zeros(1, np.uint32)
    count = most + 5
    words = [spirv(n) for n in range(count)]
    for n in range(count):
        algorithm = mgr.algorithm([out], words[n], (1, 1, 1))
        mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()
        assert out.read()[0] == n  # another module may have its address by now
        del algorithm
    mgr.synchronize()
    use = mgr.memory.pipelines
    # A pipeline keeps its module.
    assert use.modules == use.unused_modules == most
    assert use.pipelines == use.unused_pipelines == most
    assert use.module_bytes == use.unused_module_bytes == sum(len(w) for w in words[count - most :])
    assert use.layouts == use.set_layouts == min(most, 1)
    assert use.descriptor_pools <= 1
    mgr.memory.trim()
    assert mgr.memory.pipelines == kp.PipelineUse(*[0] * 10)


def test_what_is_used_stays_whatever_the_bound(make_manager):
    mgr = make_manager(recent_pipelines=2)
    outs = [mgr.zeros(1, np.uint32) for _ in range(8)]
    algorithms = [mgr.algorithm([out], spirv(n), (1, 1, 1)) for n, out in enumerate(outs)]
    sequences = [mgr.sequence().record(kp.OpAlgoDispatch(each)) for each in algorithms]
    mgr.memory.trim()
    use = mgr.memory.pipelines
    assert (use.modules, use.pipelines, use.unused_modules, use.unused_pipelines) == (8, 8, 0, 0)
    del algorithms  # the recordings hold them
    gc.collect()
    mgr.memory.trim()
    for n, (sequence, out) in enumerate(zip(sequences, outs, strict=True)):
        sequence.eval()
        assert out.read()[0] == n
    assert mgr.memory.pipelines.pipelines == 8
    del sequences, sequence
    gc.collect()
    mgr.synchronize()
    mgr.memory.trim()
    assert mgr.memory.pipelines.pipelines == 0


def test_dropped_specializations_are_bounded(make_manager):
    mgr = make_manager()
    kernel, out = mgr.kernel(SPECIAL), mgr.zeros(1, np.uint32)
    first = kernel.specialize(N=7)
    gc.collect()
    before = sum(isinstance(each, Kernel) for each in gc.get_objects())
    for n in range(DEFAULT_RECENT + 40):
        kernel.specialize(N=n)(out, groups=1)
        assert out.read()[0] == n
    assert kernel.specialize(N=7) is first  # it is in use
    gc.collect()
    assert sum(isinstance(each, Kernel) for each in gc.get_objects()) <= before + 16
    mgr.synchronize()
    use = mgr.memory.pipelines
    assert use.modules == 1 and use.unused_modules == 0
    assert use.pipelines <= DEFAULT_RECENT + 16
    mgr.memory.trim()
    gc.collect()
    assert sum(isinstance(each, Kernel) for each in gc.get_objects()) == before
    first(out, groups=1)
    assert out.read()[0] == 7
    use = mgr.memory.pipelines
    assert use.pipelines - use.unused_pipelines == 1


def test_kernels_of_several_threads_are_one(make_manager):
    kernel = make_manager().kernel(SPECIAL)
    found = [[] for _ in range(4)]

    def look(i):
        for n in range(100):
            found[i].append(kernel.specialize(N=n % 10))

    on_threads(look, range(4))
    assert len({id(each) for kernels in found for each in kernels}) == 10


def test_the_option(make_manager, monkeypatch):
    assert kp.config_report().recent_pipelines.value == DEFAULT_RECENT
    monkeypatch.setenv("KOMPUTE_PY_RECENT_PIPELINES", "5")
    setting = kp.config_report().recent_pipelines
    assert (setting.value, setting.source) == (5, "KOMPUTE_PY_RECENT_PIPELINES")
    assert make_manager(recent_pipelines=np.int64(4)).config.recent_pipelines.value == 4
    for wrong in (-1, 10**7, "many", "-1"):
        with pytest.raises(kp.InvalidArgumentError, match="recent_pipelines"):
            kp.Manager(recent_pipelines=wrong)
    for wrong in (True, 1.5):
        with pytest.raises(kp.ArgumentTypeError, match="recent_pipelines"):
            kp.Manager(recent_pipelines=wrong)


def test_memory_shows_them(make_manager):
    mgr = make_manager()
    kernel, out = mgr.kernel(SPECIAL), mgr.zeros(1, np.uint32)
    kernel(out, groups=1)
    use = mgr.memory.pipelines
    assert (use.modules, use.pipelines, use.unused_modules, use.unused_pipelines) == (1, 1, 0, 0)
    assert use.module_bytes >= len(kernel.to_spirv())
    text = str(mgr.memory)
    assert "shader modules" in text and "pipelines" in text and "pipelines" in mgr.memory._repr_html_()
    mgr.destroy()
    assert mgr.memory.pipelines == kp.PipelineUse(*[0] * 10)


def test_samplers_live_while_they_are_used(make_manager):
    mgr = make_manager()
    modes = ["clamp_to_edge", "repeat", "mirrored_repeat"]
    for u in modes:
        for v in modes:
            kept = mgr.sampler("nearest", address=(u, v, "repeat"))
            assert mgr.memory.pipelines.samplers <= 2  # the one before goes when the name is bound anew
    same = mgr.sampler("nearest", address=(u, v, "repeat"))
    assert mgr.memory.pipelines.samplers == 1
    del kept, same
    assert mgr.memory.pipelines.samplers == 0


# -- on the null driver --------------------------------------------------------------------------------------

pytest_own = pytest.mark.own_driver  # one pass of the suite is enough


def child_pools_and_caches(folder):
    control = null_control()
    with kp.Manager(pipeline_cache_dir=folder) as mgr:
        out = mgr.zeros(1, np.uint32)
        words = spirv(1)
        algorithms = [mgr.algorithm([out], words, (1, 1, 1)) for _ in range(1000)]
        assert mgr.memory.pipelines.descriptor_pools == control.live("VkDescriptorPool") == 16
        # Whatever the order in which they go.
        for start in range(7):
            algorithms[start::7] = [None] * len(algorithms[start::7])
        assert control.live("VkDescriptorPool") == 1 and control.live("VkDescriptorSet") == 0
        algorithms = [mgr.algorithm([out], words, (1, 1, 1)) for _ in range(65)]
        assert control.live("VkDescriptorPool") == 2
        del algorithms
        control.clear()
        for n in range(1100):
            mgr.algorithm([out], words, (1, 1, 1), [n])
        assert control.calls("vkCreateComputePipelines") == 1100
        # The driver's cache forgets nothing: a new one took its place, and what it had is on disk.
        assert control.live("VkPipelineCache") == 1
        assert control.live("VkPipeline") == control.live("VkShaderModule") + 127 == 128
        before = [os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder)]
        assert max(before) > 1000 * 8
    assert control.live() <= 3 and control.violations() == [], control.live_report()  # what `mgr` still is
    control.clear()
    with kp.Manager(pipeline_cache_dir=folder) as mgr:  # nothing of either was lost
        for name in os.listdir(folder):
            assert os.path.getsize(os.path.join(folder, name)) >= max(before) + 60 * 8 or "lock" in name
    return control.violations()


@pytest_own
def test_pools_and_the_drivers_cache_do_not_grow(tmp_path):
    assert run_child(child_pools_and_caches, str(tmp_path / "cache"), driver="null") == []


def child_in_flight():
    control = null_control()
    with kp.Manager(recent_pipelines=0, pipeline_cache_dir="") as mgr:
        out = mgr.zeros(1, np.uint32)
        smooth = mgr.sampler("linear")
        picture = mgr.image(np.zeros((4, 4), np.float32))
        look = kp.compile("""#version 450
            layout(set = 0, binding = 0) uniform sampler2D s;
            layout(set = 0, binding = 1) buffer B { float b[]; };
            void main() { b[0] = texture(s, vec2(0.5)).x; }""")
        empty = kp.compile("#version 450\nvoid main() {}")
        ends = []
        for n in range(6):
            algorithms = [
                mgr.algorithm([out], spirv(n), (1, 1, 1)),
                mgr.algorithm([picture.sampled(smooth), out], look, (1, 1, 1)),
                mgr.algorithm([], empty, (1, 1, 1)),
            ]
            sequence = mgr.sequence()
            for algorithm in algorithms:
                sequence.record(kp.OpAlgoDispatch(algorithm))
            sequence.eval_async()
            ends.append(sequence.fence)
            if n % 2:
                algorithms[0].destroy()
            if n % 3 == 0:
                sequence.destroy()
            del algorithms, algorithm, sequence
            mgr.memory.trim()
        del smooth
        kernel = mgr.kernel(SPECIAL)
        operation = kernel.specialize(N=3).bind(out, groups=1)
        sequence = mgr.sequence().record(operation).eval_async()
        # More groups than one axis takes: a pipeline that only the operation has, and does not keep.
        operation.set(groups=(2**20, 1, 1))
        sequence.eval_await()
        sequence.eval_async()
        operation.set(groups=1)
        mgr.memory.trim()
        sequence.eval_await()
        del sequence, operation, kernel
        assert control.violations() == []
        mgr.synchronize()
        gc.collect()
        mgr.memory.trim()
        left = {k: control.live(k) for k in ("VkPipeline", "VkShaderModule", "VkSampler", "VkPipelineLayout")}
        assert not any(left.values()), left
        del picture, out, ends
    return control.violations()


@pytest_own
def test_pipelines_in_flight_stay_until_their_work_is_done():
    assert run_child(child_in_flight, driver="null", config="gpu_us=3000") == []


def in_thread(call):
    """Runs it on a thread; its result or error is in the list when that has ended."""
    result = []

    def run():
        try:
            result.append(call())
        except Exception as error:
            result.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, result


def child_compiling():
    control = null_control()
    mgr = kp.Manager(pipeline_cache_dir="")
    out = mgr.zeros(1, np.uint32)

    def algorithm(n):
        return mgr.algorithm([out], spirv(n), (1, 1, 1))

    known = algorithm(0)
    control.clear()
    with control.holding("vkCreateComputePipelines"):
        slow = [in_thread(lambda: algorithm(1)), in_thread(lambda: algorithm(2))]
        until(lambda: control.waiting == 2)  # two pipelines are compiled at a time
        same = [in_thread(lambda: algorithm(1)) for _ in range(3)]
        # Meanwhile what is known is found, modules are made and checked, and what is not compiled goes.
        for _ in range(20):
            assert algorithm(0).is_init()
        mgr.kernel(source(77))
        assert mgr.memory.pipelines.pipelines == 1
        mgr.memory.trim()
        assert control.waiting == 2 and control.calls("vkCreateComputePipelines") == 2
    for thread, result in slow + same:
        thread.join(60)
        assert result[0].is_init(), result
    # The same one was compiled once, whoever came first.
    assert control.calls("vkCreateComputePipelines") == 2 and mgr.memory.pipelines.pipelines == 3

    # One fails: that thread is told, and the next of those that wait compiles it.
    with control.holding("vkCreateComputePipelines"):
        first = in_thread(lambda: algorithm(5))
        until(lambda: control.waiting == 1)
        second = in_thread(lambda: algorithm(5))
        time.sleep(
            0.05
        )  # so that it waits; if not, it compiles after the first has failed, with the same results
        control.fail("vkCreateComputePipelines", 1)
    for thread, _ in (first, second):
        thread.join(60)
    assert isinstance(first[1][0], kp.OutOfMemoryError), first
    assert second[1][0].is_init(), second

    # destroy() waits for the compilation, and nothing is left.
    with control.holding("vkCreateComputePipelines"):
        late = in_thread(lambda: algorithm(9))
        until(lambda: control.waiting == 1)
        ending = in_thread(mgr.destroy)
        time.sleep(0.1)
        assert not ending[1] and mgr.is_init()
    for thread, _ in (late, ending):
        thread.join(60)
        assert not thread.is_alive()
    assert ending[1] == [None]
    assert isinstance(late[1][0], kp.FailedPreconditionError) or not late[1][0].is_init()
    del slow, same, first, second, late, known
    gc.collect()
    return control.violations(), control.live_report()


@pytest_own
def test_a_compilation_holds_up_those_alone_who_want_the_same():
    violations, live = run_child(child_compiling, driver="null")
    assert violations == [] and set(live) <= {"VkInstance", "VkDevice", "VkSemaphore"}  # of the Manager


def child_owners_outlive_the_manager():
    control = null_control()
    mgr = kp.Manager(pipeline_cache_dir="")
    kernel = mgr.kernel(SPECIAL)
    special = kernel.specialize(N=3)
    special(mgr.zeros(1, np.uint32), groups=1)
    sampler = mgr.sampler("linear")
    mgr.destroy()
    assert control.live("VkShaderModule") == control.live("VkPipeline") == control.live("VkSampler") == 0
    del mgr, kernel, special, sampler
    gc.collect()

    # In a child process nothing of the parent's is freed.
    with kp.Manager(pipeline_cache_dir="") as mgr:
        kernel = mgr.kernel(SPECIAL)
        special = kernel.specialize(N=4)
        special(mgr.zeros(1, np.uint32), groups=1)
        control.clear()
        child = os.fork()
        if child == 0:
            del kernel, special
            gc.collect()
            assert mgr.memory.pipelines.modules == 0
            mgr.memory.trim()
            freed = sum(
                control.calls(f"vkDestroy{what}") for what in ("ShaderModule", "Pipeline", "PipelineLayout")
            )
            os._exit(0 if freed == 0 else 1)
        assert os.waitpid(child, 0)[1] == 0
    return control.violations()


@pytest_own
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_owners_that_outlive_the_manager_free_nothing():
    assert run_child(child_owners_outlive_the_manager, driver="null") == []


# -- over and over -------------------------------------------------------------------------------------------


@pytest.mark.sampled(every=4)
@pytest_own
@pytest.mark.parametrize("phase", list(PHASES))
def test_a_sample_of_the_soak(phase):
    """`./dev soak` has the whole, on a driver that compiles."""
    assert judge(run_child(run, phase, 0.02, driver="null")) == ""


def _keeps(size: int) -> Phase:
    """A phase that keeps something of so many bytes in every turn."""

    def begin(mgr: kp.Manager, folder: object, turns: int) -> object:
        kept: list[object] = []
        return lambda n: kept.append(mgr.zeros(1) if size == 0 else np.ones(size, np.uint8))

    return Phase(begin, 2000)


def child_growing(size):
    PHASES["growing"] = _keeps(size)
    return judge(run("growing", 1.0))


@pytest_own
@pytest.mark.parametrize(
    ("size", "says"), [(1 << 16, "resident memory grew from"), (0, "alive after the first tenth")]
)
def test_the_soak_finds_what_grows(size, says):
    """Memory, and objects that are too small to be seen in it."""
    assert says in run_child(child_growing, size, driver="null")


def child_only_made():
    """Algorithms that nothing runs: lavapipe frees destroyed pipelines with a submission only."""
    marks = []
    with kp.Manager(recent_pipelines=0, pipeline_cache_dir="") as mgr:
        out, words = mgr.zeros(1, np.uint32), spirv(1)
        for n in range(600):
            mgr.algorithm([out], words, (1, 1, 1), [n])
            if n in (199, 599):
                with open("/proc/self/statm") as file:
                    marks.append(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    return marks


@pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="the system does not tell what is resident"
)
def test_pipelines_that_never_run_are_freed():
    after_a_third, last = run_child(child_only_made)
    assert last < after_a_third + 20 * 2**20  # 400 of them were 40 MB
