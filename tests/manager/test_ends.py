"""Scripts end with their exit status and without a hang, whatever is left open; `./dev ends` runs each of
them fifty times.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import kompute_py as kp
from tests.ends.running import End, judge, run
from tests.ends.states import STATES
from tests.support.child import run_child

pytestmark = pytest.mark.own_driver

# One of each kind; `./dev ends` has all of them.
_SAMPLE = [
    "held", "held, raises", "held, warnings are errors", "held, destroyed", "held, Manager left by an error",
    "held, Manager dropped", "held, Ctrl-C in its await", "thread in eval", "thread in read",
    "thread in tensors", "thread in a long compile", "thread in kernels", "thread in await",
    "thread in a custom operation", "thread in an error", "threads while the Manager is destroyed",
    "Ctrl-C in eval", "Ctrl-C in stream", "Ctrl-C in compile, caught", "running work", "unfinished futures",
    "unclosed streams", "forked child",
]  # fmt: skip


@pytest.fixture(scope="module")
def ends(request):
    """Two scripts run at a time, ahead of the tests that judge them."""
    tests = [each for each in request.session.items if each.nodeid.startswith(f"{request.node.nodeid}::")]
    names = [each.callspec.params["name"] for each in tests if hasattr(each, "callspec")]
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(run, STATES[name], "lavapipe") for name in names}
        pool.shutdown(cancel_futures=True)


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("name", _SAMPLE)
def test_script_ends(name: str, ends: dict[str, Future[End]]):
    end = ends[name].result()
    assert not judge(STATES[name], end), f"{end.out}\n{end.err}"


def use_a_manager_of_the_process():
    mgr = kp.manager()
    double = mgr.kernel("""
    layout(local_size_x = 64) in;
    layout(binding = 0) buffer X { float x[]; };
    void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= 2.0; }""")
    t = mgr.tensor([1, 2, 3])
    double(t)
    return mgr.validation, t.tolist()


def test_a_manager_of_the_process_ends_before_a_layer_that_looks_into_shaders():
    """GPU-assisted validation has objects on the device, and frees them when the process unloads it."""
    env = {"KOMPUTE_PY_VALIDATION": "1", "VK_LAYER_GPUAV_ENABLE": "1"}
    found = run_child(use_a_manager_of_the_process, driver="lavapipe", layer="newer", env=env)
    assert found == [True, [2, 4, 6]]
