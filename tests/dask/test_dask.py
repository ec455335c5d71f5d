"""Blocks of Dask arrays on the workers of a real cluster of processes, against NumPy."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, Nanny, Scheduler, SpecCluster
from distributed.protocol.pickle import dumps
from distributed.utils import get_mp_context
from scipy import ndimage

import kompute_py as kp
import kompute_py.dask
from benchmarks import workers
from kompute_py._programs.running import Loaded
from tests.drivers import null_control
from tests.support.child import python, run_child
from tests.support.sampling import sampled, spread

pytestmark = pytest.mark.own_driver  # what Dask does with blocks; a driver's numbers are tested elsewhere

SCALE = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = factor * x[i]; }
"""
BLUR = """
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { uvec2 size; };
void main() {
    uvec2 p = gl_GlobalInvocationID.xy;
    if (p.x >= size.x || p.y >= size.y) return;
    float sum = 0.0;
    for (int j = -1; j <= 1; ++j)
        for (int i = -1; i <= 1; ++i) {
            uint column = uint(clamp(int(p.x) + i, 0, int(size.x) - 1));
            sum += x[uint(clamp(int(p.y) + j, 0, int(size.y) - 1)) * size.x + column];
        }
    y[p.y * size.x + p.x] = sum / 9.0;
}
"""


NEIGHBOURS = """
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { uint columns; };
void main() {
    uint c = gl_GlobalInvocationID.x, r = gl_GlobalInvocationID.y, rows = x.length() / columns;
    if (c >= columns || r >= rows) return;
    uint up = r > 0 ? r - 1 : 0, down = min(r + 1, rows - 1);
    y[r * columns + c] = x[up * columns + c] + x[r * columns + c] + x[down * columns + c];
}"""
GROUP_SUMS = """
#version 450
layout(local_size_x = 8) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer S { float s[]; };
void main() { if (gl_LocalInvocationID.x == 0) s[gl_WorkGroupID.x] = x[gl_GlobalInvocationID.x]; }"""


@pytest.fixture(scope="module", autouse=True)
def _forked_workers():
    """Workers are forked from a process that has imported this module; starting, each would take two seconds
    of processor time to do so. `./dev whole` starts them, as Dask does by itself.
    """
    with dask.config.set({"distributed.worker.multiprocessing-method": sampled("forkserver", "spawn")}):
        get_mp_context()  # sets modules of its own
        multiprocessing.get_context("forkserver").set_forkserver_preload([__name__])
        yield


@pytest.fixture(scope="module")
def cluster():
    """Two processes with two threads each, and a Manager in each by the plugin."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, memory_limit="1 GiB", dashboard_address=None
        ) as made,
        Client(made) as client,
    ):
        client.register_plugin(kp.dask.ManagerPlugin("vulkan://0?memory_limit=512MiB", strict=False))
        yield client


def array(shape=(90, 100), chunks=(40, 30), seed=1):
    values = np.random.default_rng(seed).random(shape, np.float32)
    return values, da.from_array(values, chunks=chunks)


def test_kernels_functions_and_entries(mgr, cluster):
    values, x = array()
    kernel = mgr.kernel(SCALE, name="scale")
    program = kp.Program.record({"a": kernel, "twice": kernel})
    for work in (kernel, program["twice"], program.a):
        np.testing.assert_array_equal(kp.dask.map_blocks(work, x, factor=3.0).compute(), 3 * values)
    np.testing.assert_array_equal(kp.dask.map_blocks(kp.ops.multiply, x, x).compute(), values * values)
    mixed = kp.ops.elementwise("x * y + k", name="mixed")
    np.testing.assert_allclose(kp.dask.map_blocks(mixed, x, x[:1], 2.0).compute(), values * values[:1] + 2)
    np.testing.assert_array_equal(kp.dask.map_blocks(lambda block: block + 1, x).compute(), values + 1)
    bools = kp.dask.map_blocks(kp.ops.greater, x, 0.5, dtype=bool)
    assert bools.dtype == bool
    np.testing.assert_array_equal(bools.compute(), values > 0.5)


def test_kernels_that_write_their_argument_leave_blocks_alone(mgr, cluster):
    code = "x[gl_GlobalInvocationID.x] *= 2;"
    blocks = "layout(binding = 0) buffer X { float x[]; };"
    double = mgr.kernel(f"#version 450\nlayout(local_size_x = 1) in; {blocks} void main() {{ {code} }}")
    x = (da.from_array(np.arange(1, 9, dtype=np.float32), chunks=4) + 0).persist()
    for _ in range(2):
        found = (kp.dask.map_blocks(double, x) - x).compute()
        np.testing.assert_array_equal(found, np.arange(1, 9))
    ones = kp.dask.map_blocks(double, da.ones(8, dtype=np.float32, chunks=4))  # read-only
    assert ones.compute().tolist() == [2] * 8


def test_halos(mgr, cluster):
    values, x = array()

    def blur(block):  # the grid and the size follow from the block
        manager = kp.manager()
        result = manager.zeros(block.shape)
        size = block.shape[1], block.shape[0]
        manager.kernel(BLUR, name="blur")(manager.tensor_t(block), result, size=size, grid=size)
        return result.read()

    for boundary, mode in (("nearest", "nearest"), ("periodic", "wrap"), (0.0, "constant")):
        expected = ndimage.uniform_filter(values, 3, mode=mode)
        found = kp.dask.map_overlap(blur, x, depth=1, boundary=boundary).compute()
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_kernels_that_read_neighbours_need_no_grid(mgr, cluster):
    values, x = array((90, 64), (40, 64))  # the last block has fewer rows
    kernel = mgr.kernel(NEIGHBOURS, name="neighbours")
    expected = values.copy()
    expected[1:-1] = values[:-2] + values[1:-1] + values[2:]
    for work in (kernel, kp.Program.record({"neighbours": kernel})):
        found = kp.dask.map_overlap(work, x, depth={0: 1}, boundary="none", columns=64)
        np.testing.assert_allclose(found.compute()[1:-1], expected[1:-1], rtol=1e-6)
    whole = kp.dask.map_blocks(kernel, x.rechunk((90, 64)), columns=64)
    np.testing.assert_allclose(whole.compute()[1:-1], expected[1:-1], rtol=1e-6)
    sums = mgr.kernel(GROUP_SUMS, name="sums")
    with pytest.raises(kp.InvalidArgumentError, match="one element for each workgroup"):
        kp.dask.map_blocks(sums, x, grid=64).compute()


def test_halos_of_several_arrays(mgr, cluster):
    values, x = array()
    others, y = array(seed=2)
    halo = np.pad(others, 1, "edge")
    expected = values + halo[:-2, 1:-1]

    def shifted(one, other):
        return kp.ops.add(one, kp.ops.roll(other, 1, axis=0))

    found = kp.dask.map_overlap(shifted, x, y, depth=1, boundary="nearest")
    np.testing.assert_allclose(found.compute(), expected, rtol=1e-6)
    with pytest.raises(kp.ArgumentTypeError, match=r"not an? int.*give the halo as depth="):
        kp.dask.map_overlap(shifted, x, 1, depth=1)


def test_functions_learn_their_block(mgr, cluster):
    _, x = array((6, 4), (3, 2))

    def noise(block, block_id):
        return kp.random.Generator([7, *block_id]).random(block.shape).read()

    def place(block, block_info=None):
        return np.full(block.shape, sum(block_info[0]["array-location"][0]), block.dtype)

    first, second = (kp.dask.map_blocks(noise, x).compute() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    with mgr.current():
        np.testing.assert_array_equal(first[3:, 2:], noise(first[3:, 2:], (1, 1)))
    assert len(np.unique(first)) == first.size
    assert kp.dask.map_blocks(place, x).compute()[:, 0].tolist() == [3] * 3 + [9] * 3
    halos = kp.dask.map_overlap(noise, x, depth=1)
    assert len(np.unique(halos.compute())) == first.size


@pytest.mark.sampled
def test_reductions_in_two_stages(mgr, cluster):
    values, x = array()
    for axis, keepdims in spread([*itertools.product((None, 0, 1, (0, 1)), (False, True))], 3):
        total = kp.dask.reduction(kp.ops.sum, x, axis=axis, keepdims=keepdims).compute()
        np.testing.assert_allclose(total, values.sum(axis=axis, keepdims=keepdims), rtol=1e-5)
        largest = kp.dask.reduction(kp.ops.max, x, axis=axis, keepdims=keepdims).compute()
        np.testing.assert_array_equal(largest, values.max(axis=axis, keepdims=keepdims))
    squares = kp.ops.reduction("x * x", "a + b", 0.0, name="squares")
    found = kp.dask.reduction(squares, x, combine=kp.ops.sum, split_every=2).compute()
    np.testing.assert_allclose(found, (values.astype(np.float64) ** 2).sum(), rtol=1e-5)


def test_reductions_that_have_no_stages_are_refused():
    _, x = array()
    for work in (kp.ops.std, kp.ops.var, kp.ops.ptp, kp.ops.mean, kp.ops.argmax, np.std, np.median):
        name = work.__name__
        with pytest.raises(
            kp.InvalidArgumentError, match=rf"{name} of the results of {name} for blocks .*combine="
        ):
            kp.dask.reduction(work, x)
    counts = kp.dask.reduction(kp.ops.count_nonzero, x, combine=kp.ops.sum, dtype=np.int64)
    assert counts.dtype == np.int64


def test_a_program_of_one_entry_stands_for_it(mgr, cluster):
    values, x = array((8, 8), (4, 4))
    program = kp.Program.record(kp.ops.exp, kp.TensorSpec((4, 4)), portable=True)
    np.testing.assert_allclose(kp.dask.map_blocks(program, x).compute(), np.exp(values), rtol=1e-6)
    both = kp.Program({"one": program, "two": program})
    with pytest.raises(kp.InvalidArgumentError, match=r"takes one entry .* it has one\.main, two\.main"):
        kp.dask.map_blocks(both, x)


def test_parameters_go_to_each_worker_once(mgr, cluster):
    values, x = array((64, 8), (4, 8))
    weights = mgr.tensor_t(np.random.default_rng(2).random(1 << 18, np.float32))
    a, b = mgr.zeros((4, 8)), mgr.zeros((4, 8))
    add = kp.ops.add.bind(a, weights[:32].reshape(4, 8), out=b)
    program = kp.Program.record(add, inputs={"a": a}, outputs={"b": b}, parameters={"w": weights})
    added = values + np.tile(weights.read()[:32].reshape(4, 8), (16, 1))
    calls = [kp.dask.delayed(program)(each) for each in x.blocks.ravel()]

    def largest(block, axis, keepdims):
        return np.max(program.main(block) if block.shape == (4, 8) else block, axis=axis, keepdims=keepdims)

    for found, expected in (
        (kp.dask.map_blocks(program, x), added),
        (kp.dask.map_overlap(program, x, depth=0), added),
        (dask.delayed(np.concatenate)(calls), added),
        (kp.dask.reduction(largest, x, split_every=2), added.max()),
    ):
        tasks = dict(found.__dask_graph__())
        assert sum(len(dumps(each)) for each in tasks.values()) < 2 * weights.nbytes
        np.testing.assert_allclose(found.compute(), expected)


def overlap():
    """Of two blocks in two threads, the second is given to the device while that works on the first. For a
    child on the null driver.
    """
    mgr, control = kp.manager(), null_control()
    a, b, t = mgr.zeros(64), mgr.zeros(64), mgr.zeros(64)
    kernel = mgr.kernel(SCALE, name="scale")
    steps = [kernel.bind(a, t, factor=2.0), kernel.bind(t, b, factor=3.0)]
    recording = kp.Program.record(steps, inputs={"a": a}, outputs={"b": b}, temporary=[t])
    met, bind = threading.Event(), Loaded.bind
    Loaded.bind = lambda loaded: (met.set(), bind(loaded))
    x = da.zeros(128, chunks=64, dtype=np.float32)
    for work, named in (
        (recording, {}),
        (kernel, {"factor": 2.0}),
        (kp.ops.elementwise("x * 2", name="twice"), {}),
    ):
        made = kp.dask.map_blocks(work, x, **named)
        if work is recording:  # which is told that there are several threads when they meet
            made.compute(scheduler="synchronous")
            (entry,) = mgr._loaded.values()
            thread = threading.Thread(target=made.compute, kwargs={"scheduler": "synchronous"})
            with entry._target((), {}).loaded.running:
                thread.start()
                assert met.wait(60)
            thread.join()
        made.compute(scheduler="threads", num_workers=2)
        before = control.calls("vkQueueSubmit")
        with control.pausing():
            thread = threading.Thread(target=made.compute, kwargs={"scheduler": "threads", "num_workers": 2})
            thread.start()
            until = time.monotonic() + 60
            while control.calls("vkQueueSubmit") < before + 2:
                assert time.monotonic() < until, f"{work}: the second block waits for the first"
                time.sleep(0.01)
        thread.join()


def test_blocks_of_two_threads_overlap():
    run_child(overlap, driver="null", config="memory=unified,gpu_us=1000")


def test_two_workers_do_twice_the_work():
    """On devices that take their time and no core."""
    took = workers.seconds(workers.NULL, (2, 1, 2, 2))
    assert took[1] > 3.2 and took[1] / took[2] > 1.3, took


@pytest.mark.parametrize("host", [False, True], ids=["device", "host"])
def test_recordings_of_many_threads_are_right(mgr, host):
    """Their scratch memory is one, their inputs and outputs are not."""
    values, x = array((64, 32), (2, 32))
    a, b, t = mgr.zeros((2, 32)), mgr.zeros((2, 32)), mgr.zeros((2, 32))
    kernel = mgr.kernel(SCALE, name="scale")
    steps = [kernel.bind(a, t, factor=2.0), kernel.bind(t, b, factor=3.0)]
    if host:
        function = lambda there: there.write(there.read() + 1)  # noqa: E731
        steps.insert(1, kp.OpHostCall(lambda: None, reads=[t], writes=[t], name="more"))
    program = kp.Program.record(
        steps, inputs={"a": a}, outputs={"b": b}, temporary=[t], hosts={"more": function} if host else None
    )
    with mgr.current():
        for _ in range(3):
            found = kp.dask.map_blocks(program, x).compute(scheduler="threads", num_workers=4)
            np.testing.assert_allclose(found, 3 * (2 * values + host), rtol=1e-6)


def test_delayed_and_graphs_of_dask(cluster):
    values, x = array((64, 64), (32, 32))
    parts = [kp.dask.delayed(kp.ops.sum)(block) for block in x.to_delayed().ravel()]
    np.testing.assert_allclose(sum(dask.compute(*parts)), values.sum(), rtol=1e-5)
    # Equal work has equal names, so that Dask computes it once; another number is other work.
    names = [kp.dask.map_blocks(kp.ops.multiply, x, k).name for k in (2.0, 2.0, 3.0)]
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("multiply-")
    assert kp.dask.map_blocks(kp.ops.exp, x, name="grow").name.startswith("grow-")


def test_work_of_one_name_is_told_apart(cluster):
    values, x = array((64, 64), (32, 32))
    twice, thrice = (kp.ops.elementwise(f"x * {k}", name="f") for k in (2, 3))
    for call in (kp.dask.delayed, lambda work: lambda block: kp.dask.map_blocks(work, x)):
        found = dask.compute(call(twice)(values), call(thrice)(values))
        np.testing.assert_array_equal(found[0], 2 * values)
        np.testing.assert_array_equal(found[1], 3 * values)
    named = dask.compute(
        kp.dask.delayed(kp.ops.sum, name="s")(values), kp.dask.delayed(kp.ops.max, name="s")(values)
    )
    assert named[0] > named[1] == values.max()


def test_a_function_that_is_written_again_is_another(cluster, monkeypatch):
    """As in a notebook: both are __main__'s, and have one name."""
    values, x = array((64, 64), (32, 32))
    main = sys.modules["__main__"]
    for k in (2, 3):
        space = {"__name__": "__main__"}
        exec(f"def again(block): return {k} * block", space)
        monkeypatch.setattr(main, "again", space["again"], raising=False)
        np.testing.assert_array_equal(kp.dask.map_blocks(space["again"], x).compute(), k * values)


def test_zarr_in_and_out(cluster, tmp_path):
    values, x = array()
    x.to_zarr(str(tmp_path / "in.zarr"))
    found = kp.dask.map_blocks(kp.ops.sqrt, da.from_zarr(str(tmp_path / "in.zarr")))
    found.to_zarr(str(tmp_path / "out.zarr"))
    np.testing.assert_allclose(da.from_zarr(str(tmp_path / "out.zarr")).compute(), np.sqrt(values), rtol=1e-6)


def test_what_dask_was_told_wrongly_is_refused(cluster):
    _, x = array()
    for made, message in (
        (kp.dask.map_blocks(kp.ops.greater, x, 0.5), r"gives bool, .* made for float32: give dtype=np\.bool"),
        (kp.dask.map_blocks(kp.ops.sum, x), r"gives the shape \(\) for a block of .*: give chunks="),
        (kp.dask.map_blocks(kp.ops.sum, x, axis=0), r"give chunks="),
        (kp.dask.map_overlap(kp.ops.sum, x, depth=1), r"give chunks="),
        (kp.dask.map_blocks(lambda block: (block, block), x), "gives a tuple .* needs one array"),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=message):
            made.compute()
    sums = kp.dask.map_blocks(kp.ops.sum, x, axis=0, drop_axis=0, chunks=(x.chunks[1],))
    assert sums.shape == (100,)
    for call in (kp.dask.map_blocks, kp.dask.map_overlap, kp.dask.reduction):
        more = {"depth": 1} if call is kp.dask.map_overlap else {}
        with pytest.raises(kp.ArgumentTypeError, match=f"{call.__name__} takes a kernel"):
            call(3, x, **more)
        with pytest.raises(kp.ArgumentTypeError, match=f"{call.__name__} needs a dask"):
            call(kp.ops.exp, np.zeros(3), **more)
    with pytest.raises(kp.ArgumentTypeError, match="delayed takes a kernel"):
        kp.dask.delayed("sum")


def test_the_plugin_gives_each_worker_a_manager(cluster):
    def limits():
        return {each.name: each.value for each in kp.manager().config}["memory_limit"], os.getpid()

    found = cluster.run(limits)
    assert len({pid for _, pid in found.values()}) == 2
    assert {limit for limit, _ in found.values()} == {512 << 20}
    with pytest.raises(kp.InvalidArgumentError, match="devices is empty"):
        kp.dask.ManagerPlugin(devices=[])
    with pytest.raises(kp.ArgumentTypeError, match="give programs"):
        kp.dask.ManagerPlugin(preload=[3])


def test_kernels_follow_the_current_manager(mgr):
    values, x = array((8, 8), (4, 4))
    kernel = mgr.kernel(SCALE, name="scale")

    def closure(block):
        return kernel(block, np.empty_like(block), factor=3.0)

    others = [kp.Manager() for _ in range(2)]
    for work in (kernel, kp.Program.record({"scale": kernel}), closure):
        arguments = {} if work is closure else {"factor": 3.0}
        for here in (*others, others[0]):
            with here.current(), here.profile(operations=False) as records:
                found = kp.dask.map_blocks(work, x, **arguments).compute(scheduler="synchronous")
            np.testing.assert_array_equal(found, 3 * values)
            assert records.submissions >= 4, work  # one for each block, and transfers
    others[0].destroy()
    with others[1].current():
        again = kp.dask.map_blocks(kernel, x, factor=3.0).compute(scheduler="synchronous")
    np.testing.assert_array_equal(again, 3 * values)
    others[1].destroy()


def test_another_plugin_takes_the_place_of_the_first(mgr, cluster):
    values, x = array((8, 8), (4, 4))
    kernel = mgr.kernel(SCALE, name="scale again")
    for factor in (2.0, 3.0):
        cluster.register_plugin(kp.dask.ManagerPlugin("vulkan://0?memory_limit=512MiB", strict=False))
        found = kp.dask.map_blocks(kernel, x, factor=factor).compute()
        np.testing.assert_array_equal(found, np.float32(factor) * values)


def memory_limit():
    return {each.name: each.value for each in kp.manager().config}["memory_limit"] >> 20


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("names", [["gpu-0", "gpu-1", "gpu-2"], [None] * 3])
def test_devices_are_dealt_out_in_turn(names):
    """Whatever the names. Those that begin later go on, and one that begins again gets its device again."""
    devices = [f"vulkan://0?memory_limit={mib}MiB" for mib in (100, 200, 300)]

    def worker(name):
        options = {"name": name, "host": "127.0.0.1", "nthreads": 1, "dashboard": False}
        return {"cls": Nanny, "options": options}

    spec = {number: worker(name) for number, name in enumerate(names[:2])}
    options = {"dashboard_address": ":0", "port": 0, "host": "127.0.0.1"}
    scheduler = {"cls": Scheduler, "options": options}
    with SpecCluster(workers=spec, scheduler=scheduler) as made, Client(made) as client:
        client.wait_for_workers(2, timeout=60)
        client.register_plugin(kp.dask.ManagerPlugin(devices))
        first = client.run(memory_limit)
        assert sorted(first.values()) == [100, 200]
        made.worker_spec[2] = worker(names[2])
        made.scale(3)
        client.wait_for_workers(3, timeout=60)
        assert sorted(client.run(memory_limit).values()) == [100, 200, 300]
        before = client.run(memory_limit)
        client.restart_workers([address for address, limit in before.items() if limit == 100], timeout=60)
        client.wait_for_workers(3, timeout=60)
        assert sorted(client.run(memory_limit).values()) == [100, 200, 300]


def test_entries_of_programs_are_pickled(mgr):
    x, y = mgr.tensor([1, 2, 3]), mgr.zeros(3)
    program = kp.Program.record(kp.OpMult([x, x, y]), inputs={"x": x}, outputs={"y": y})
    entry = pickle.loads(pickle.dumps(program.on(mgr).main))
    assert entry.name == "main"
    with mgr.current():
        np.testing.assert_array_equal(entry(np.array([4, 5, 6], np.float32)), [16, 25, 36])


@pytest.mark.sampled
@pytest.mark.parametrize("kills", [sampled(1, 10)])
def test_a_worker_that_is_killed_loses_nothing(cluster, kills):
    values, x = array((400, 100 * kills), (20, 20))

    def slow(block):
        time.sleep(0.05)
        return kp.ops.multiply(block, 2.0)

    random, killed = np.random.default_rng(5), []

    def kill():
        for _ in range(kills):
            # Dask's nanny gives up on a worker that dies while it starts.
            pids: list[int] = []
            while len(pids) < 2:
                cluster.wait_for_workers(2, timeout=120)
                time.sleep(1 + random.random())
                pids = list(cluster.run(os.getpid, on_error="ignore").values())
            killed.append(pids[random.integers(len(pids))])
            os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    # Dask gives up on a name whose worker is missing fifteen seconds after another one's end.
    patient = {
        "distributed.scheduler.allowed-failures": 30,
        "distributed.deploy.lost-worker-timeout": "1 hour",
    }
    with dask.config.set(patient):
        cluster.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 30))
        killer.start()
        found = kp.dask.map_blocks(slow, x).compute()
        killer.join()
    assert len(set(killed)) == kills
    np.testing.assert_array_equal(found, 2 * values)
    cluster.wait_for_workers(2, timeout=120)


@pytest.mark.sampled
@pytest.mark.parametrize("gib", [sampled(0.25, 16)])
def test_more_than_the_workers_hold(cluster, gib):
    """Blocks of 16 MiB, made in the workers, of which each may hold 1 GiB."""
    count = int(gib * 64)
    x = da.random.default_rng(3).random((count * 2048, 2048), chunks=(2048, 2048), dtype=np.float32)
    same = da.random.default_rng(3).random((count * 2048, 2048), chunks=(2048, 2048), dtype=np.float32)
    made = kp.dask.map_blocks(kp.ops.elementwise("x * x", name="square"), x)
    found, expected = dask.compute(kp.dask.reduction(kp.ops.sum, made), (same * same).sum(dtype=np.float64))
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_without_dask_the_extra_is_named():
    script = (
        "import sys; sys.modules['dask'] = None\nimport kompute_py as kp\n"
        "try: kp.dask.map_blocks\nexcept kp.FailedPreconditionError as error: print(error)"
    )
    done = python("-c", script)
    assert "pip install 'kompute-py[dask]'" in done.stdout and not done.returncode, done.stderr
