"""Misuse: each row kills Kompute's process or is silently wrong there; here it is a typed error that names
the fix.
"""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.kernel_sources import INT64

pytestmark = pytest.mark.each_driver

SHADER = """
#version 450
layout(local_size_x = 1) in;
layout(push_constant) uniform Params { uint n; } p;
layout(set = 0, binding = 0) buffer A { float a[]; };
layout(set = 0, binding = 1) buffer B { float b[]; };
void main() { b[gl_GlobalInvocationID.x] = a[gl_GlobalInvocationID.x] + float(p.n); }
"""
TOO_WIDE = "#version 450\nlayout(local_size_x = 65535, local_size_y = 64) in;\nvoid main() {}\n"
TOO_WIDE_BY_CONSTANT = "#version 450\nlayout(local_size_x_id = 0) in;\nvoid main() {}\n"
OTHER_SET = """
#version 450
layout(local_size_x = 1) in;
layout(set = 1, binding = 0) buffer A { float a[]; };
void main() { a[0] = 1.0; }
"""
ARRAYED = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { float a[]; } many[2];
void main() { many[1].a[0] = 1.0; }
"""


def wide_push(size):
    return f"""
#version 450
layout(local_size_x = 1) in;
layout(push_constant) uniform Params {{ uint values[{size // 4}]; }} p;
layout(set = 0, binding = 0) buffer A {{ uint a[]; }};
void main() {{ a[0] = p.values[{size // 4 - 1}]; }}
"""


@pytest.fixture
def code():
    return kp.compile(SHADER)


def test_every_error_is_a_kompute_error_and_a_built_in():
    pairs = [
        (kp.InvalidArgumentError, ValueError), (kp.ArgumentTypeError, TypeError),
        (kp.OutOfRangeError, IndexError),
        (kp.NotFoundError, LookupError), (kp.OutOfMemoryError, MemoryError),
        (kp.EvalTimeoutError, TimeoutError),
        (kp.UnimplementedError, NotImplementedError), (kp.ShaderCompileError, kp.InvalidArgumentError),
        (kp.FailedPreconditionError, RuntimeError), (kp.UnavailableError, RuntimeError),
        (kp.DeviceLostError, RuntimeError),
    ]  # fmt: skip
    for error, built_in in pairs:
        assert issubclass(error, kp.KomputeError) and issubclass(error, built_in)
        assert isinstance(error("x").code, kp.ErrorCode)


def test_errors_can_be_caught_as_built_ins(mgr):
    with pytest.raises(ValueError):
        mgr.tensor([[1, 2], [3]])
    with pytest.raises(TypeError):
        mgr.tensor(["a"])
    with pytest.raises(IndexError):
        mgr.sequence(7)
    with pytest.raises(LookupError):
        kp.Manager("no such device")


@pytest.mark.capability(
    "P55", "misuse raises errors and ends no process", "kp.KomputeError", "concepts/errors"
)
def test_what_kills_kompute(mgr, make_manager, code):
    t = mgr.tensor([1.0])
    t.destroy()
    with pytest.raises(kp.FailedPreconditionError):
        t.data()
    with pytest.raises(kp.OutOfRangeError):
        mgr.sequence(7)
    a = mgr.tensor([1.0])
    if mgr.get_device_properties().timestamps_supported:
        seq = mgr.sequence(0, 1).record(kp.OpSyncDevice([a]))
        with pytest.raises(kp.OutOfRangeError, match="timestamps"):
            seq.record(kp.OpSyncDevice([a]))
    foreign = make_manager().tensor([1.0])
    with pytest.raises(kp.InvalidArgumentError):
        mgr.sequence().record(kp.OpSyncDevice([foreign]))
    with pytest.raises(kp.InvalidArgumentError):
        mgr.algorithm([a], b"this is not SPIR-V.")


def test_silently_wrong_in_kompute(mgr, code):
    a, b = mgr.tensor([1.0]), mgr.zeros(1)
    with pytest.raises(kp.FailedPreconditionError, match="storage"):
        mgr.tensor([1.0], "storage").data()
    with pytest.raises(kp.InvalidArgumentError, match="needs 2 tensors"):
        mgr.algorithm([a], code)
    with pytest.raises(kp.InvalidArgumentError, match="n"):
        mgr.algorithm([a, b], code, push_consts=[-1])


def test_a_mixed_manager_in_one_operation(mgr, make_manager):
    foreign = make_manager().tensor([1.0])
    for make in (
        lambda: kp.OpFill([mgr.tensor([1.0]), foreign], 0),
        lambda: kp.OpSyncDevice([mgr.tensor([1.0]), foreign]),
        lambda: kp.OpMult([mgr.tensor([1.0]), foreign, mgr.tensor([1.0])]),
    ):
        with pytest.raises(kp.InvalidArgumentError):
            mgr.sequence().record(make())


def test_capabilities_are_named(mgr):
    code = kp.compile(INT64)
    t = mgr.zeros(2, np.int64)
    if "shaderInt64" in mgr.enabled_features:
        assert mgr.algorithm([t], code).is_init()
    else:
        with pytest.raises(kp.UnimplementedError, match="Int64"):
            mgr.algorithm([t], code)


def test_local_size_limits(mgr):
    with pytest.raises(kp.InvalidArgumentError, match=r"(?i)local size|workgroup|work group"):
        mgr.algorithm([], kp.compile(TOO_WIDE), (1, 1, 1))
    limit = mgr.get_device_properties().max_work_group_size[0]
    code = kp.compile(TOO_WIDE_BY_CONSTANT)
    assert mgr.algorithm([], code, (1, 1, 1), [limit]).local_size == (limit, 1, 1)
    for bad in (limit + 1, 0):
        with pytest.raises(kp.InvalidArgumentError):
            mgr.algorithm([], code, (1, 1, 1), [bad])


def test_push_constants_beyond_the_device(mgr):
    limit = mgr.get_device_properties().limits["maxPushConstantsSize"]
    t = mgr.zeros(1, np.uint32)
    assert mgr.algorithm([t], kp.compile(wide_push(limit))).is_init()
    with pytest.raises(kp.InvalidArgumentError, match=f"{limit + 4} bytes.*{limit}.*maxPushConstantsSize"):
        mgr.algorithm([t], kp.compile(wide_push(limit + 4)))


def test_descriptors_that_are_not_bound(mgr):
    t = mgr.zeros(1)
    with pytest.raises(kp.UnimplementedError, match="set 1"):
        mgr.algorithm([t], kp.compile(OTHER_SET))
    with pytest.raises(kp.UnimplementedError, match="array"):
        mgr.algorithm([t, t], kp.compile(ARRAYED))


def test_out_of_device_memory(mgr):
    huge = 1 << 50
    for memory_type in kp.MemoryTypes.__members__:
        with pytest.raises(kp.OutOfMemoryError, match=r"\d"):
            mgr.empty(huge, np.uint8, memory_type)
    assert mgr.tensor([1.0]).is_init()


@pytest.mark.each_driver
def test_buffers_beyond_the_storage_range(mgr):
    limit = mgr.get_device_properties().limits["maxStorageBufferRange"]
    if limit > 1 << 28:
        try:
            t = mgr.empty(limit + 1, np.uint8, "storage")
        except kp.OutOfMemoryError:
            pytest.skip(f"no memory for a buffer beyond maxStorageBufferRange ({limit})")
    else:
        t = mgr.empty(limit + 1, np.uint8, "storage")
    with pytest.raises(kp.InvalidArgumentError, match="maxStorageBufferRange"):
        mgr.algorithm([t, t], kp.compile(SHADER), (1, 1, 1))


def test_hook_errors_are_not_wrapped(mgr):
    class Fails(kp.OpBase):
        def record(self, cmd):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        mgr.sequence().record(Fails()).eval()


def test_messages_name_the_object(mgr):
    t = mgr.tensor([1.0])
    t.name = "weights"
    t.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="weights"):
        t.data()
    u = mgr.tensor([1.0])
    u.name = "bias"
    seq = mgr.sequence().record(kp.OpSyncDevice([u])).eval()
    u.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="bias"):
        seq.eval()
