"""Misuse, row by row: a typed exception that names the object, the limit and the fix; the Manager works on
after it.

Many of these kill Kompute's process or pass silently. `test_misuse_drivers.py` has what a missing loader,
another driver or a signal does; `test_lifetime.py` has destroying, in all orders.
"""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

import kompute_py as kp

SUM = """
#version 450
layout(local_size_x = 1) in;
layout(push_constant) uniform Params { int bias; } params;
layout(constant_id = 3) const uint special = 1;
layout(set = 0, binding = 0) readonly buffer Left { float left[]; };
layout(set = 0, binding = 1) readonly buffer Right { float right[]; };
layout(set = 0, binding = 2) writeonly buffer Sum { float sum[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    sum[i] = left[i] + right[i] + float(params.bias) * float(special);
}
"""
PAINT = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, r32f) uniform image2D canvas;
void main() { imageStore(canvas, ivec2(gl_GlobalInvocationID.xy), vec4(1.0)); }
"""
WRONG = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {\n    float x = nothing;\n}\n"


@pytest.fixture
def world(mgr, make_manager):
    """Objects to misuse; `foreign()` makes a tensor of another Manager."""
    code = kp.compile(SUM)
    tensors = [mgr.tensor([1, 2, 3]), mgr.tensor([4, 5, 6]), mgr.tensor([0, 0, 0])]
    return SimpleNamespace(
        mgr=mgr, code=code, tensors=tensors, image=mgr.image(np.zeros((2, 2), np.float32)),
        foreign=lambda: make_manager().tensor([1, 2, 3]), algorithm=mgr.algorithm(tensors, code, (3, 1, 1)),
        properties=mgr.get_device_properties(),
    )  # fmt: skip


MISUSES = []


def misuse(error, *patterns):
    """Adds a test: the function raises `error`, whose text has each of `patterns` in it."""

    def add(function):
        name = function.__name__.strip("_")
        MISUSES.append(pytest.param(function, error, patterns, id=name))
        return function

    return add


@pytest.mark.parametrize(("commit", "error", "patterns"), MISUSES)
def test_misuse(world, commit, error, patterns):
    with pytest.raises(error) as caught:
        commit(world)
    text = str(caught.value)
    assert isinstance(caught.value, kp.KomputeError) and isinstance(caught.value.code, kp.ErrorCode)
    for pattern in patterns:
        assert re.search(pattern, text), f"{pattern!r} is not in: {text}"
    a, b = world.mgr.tensor([5, 6]), world.mgr.zeros(2)
    world.mgr.sequence().record(kp.OpSyncDevice([a])).record(kp.OpCopy([a, b])).eval()
    assert b.read().tolist() == [5, 6]


# -- managers ------------------------------------------------------------------------------------------------


@misuse(kp.NotFoundError, "99", r"\[0\]", "index")
def _no_such_device(w):
    kp.Manager(99)


@misuse(kp.NotFoundError, "-1", r"list_devices")
def _negative_device(w):
    kp.Manager(-1)


@misuse(kp.NotFoundError, "no such gpu", r"name does not contain", r"\[0\]")
def _no_such_name(w):
    kp.Manager("no such gpu")


@misuse(kp.ArgumentTypeError, "device", "index", "name")
def _a_device_of_another_type(w):
    kp.Manager(1.5)


@misuse(kp.OutOfRangeError, "family 9", r"which has \d+")
def _no_such_queue_family(w):
    kp.Manager(0, [9])


@misuse(kp.ArgumentTypeError, "desired_extensions", r"\['VK_")
def _extensions_as_one_str(w):
    kp.Manager(0, [], "VK_KHR_8bit_storage")


@misuse(kp.KomputeError, "VK_EXT_no_such_thing")
def _a_required_extension_that_is_missing(w):
    kp.Manager(required_extensions=["VK_EXT_no_such_thing"])


@misuse(kp.InvalidArgumentError, "validate", "known options", "validation")
def _no_such_option(w):
    kp.Manager(validate=True)


@misuse(kp.UnavailableError, "VK_LAYER_no_such_thing", "VK_LAYER_KHRONOS_validation")
def _no_such_layer(w):
    kp.Manager(debug_layers="VK_LAYER_no_such_thing")


# -- tensors and images --------------------------------------------------------------------------------------


@misuse(kp.InvalidArgumentError, "negative")
def _a_shape_with_a_negative_axis(w):
    w.mgr.zeros((3, -1))


@misuse(kp.ArgumentTypeError, "object", "convert")
def _objects(w):
    w.mgr.tensor_t(np.array([object()]))


@misuse(kp.ArgumentTypeError, "<U1|str")
def _text(w):
    w.mgr.tensor_t(np.array(["a"]))


@misuse(kp.ArgumentTypeError, "datetime64", "view")
def _dates(w):
    w.mgr.tensor_t(np.array(["2024-01-01"], "datetime64[D]"))


@misuse(kp.ArgumentTypeError, "complex128", "real")
def _complex_numbers_as_float32(w):
    w.mgr.tensor([1j])


@misuse(kp.InvalidArgumentError, "not an array")
def _uneven_rows(w):
    w.mgr.tensor([[1, 2], [3]])


@misuse(kp.InvalidArgumentError, "gpu", "device, host, storage")
def _no_such_memory_type(w):
    w.mgr.tensor([1], "gpu")


@misuse(kp.ArgumentTypeError, "DataTypes", "MemoryTypes")
def _a_member_of_the_other_enumeration(w):
    w.mgr.tensor([1], kp.DataTypes.float)


@misuse(kp.InvalidArgumentError, "tensor_type", "memory_type")
def _both_names_of_one_argument(w):
    w.mgr.tensor([1], kp.MemoryTypes.host, tensor_type=kp.MemoryTypes.host)


@misuse(kp.FailedPreconditionError, "storage", r"read\(\)", "OpSyncLocal")
def _data_of_a_storage_tensor(w):
    w.mgr.tensor([1], kp.MemoryTypes.storage).data()


@misuse(kp.FailedPreconditionError, "weights", "destroyed", r"data\(\)")
def _data_of_a_destroyed_tensor(w):
    t = w.mgr.tensor([1])
    t.name = "weights"
    t.destroy()
    t.data()


@misuse(kp.OutOfMemoryError, r"35184372088832 bytes|needs 33554432 MiB", "split|smaller")
def _more_memory_than_there_is(w):
    w.mgr.empty(1 << 45, np.uint8)


@misuse(kp.InvalidArgumentError, "3 elements", "4")
def _a_write_of_another_size(w):
    w.tensors[0].write([1, 2, 3, 4])


@misuse(kp.ArgumentTypeError, "int32", "float", "astype")
def _a_write_that_would_lose_fractions(w):
    w.mgr.tensor_t(np.zeros(2, np.int32)).write([1.5, 2.5])


@misuse(kp.InvalidArgumentError, "int8", "300")
def _a_write_out_of_range(w):
    w.mgr.tensor_t(np.zeros(1, np.int8)).write([300])


@misuse(kp.InvalidArgumentError, "1, 2 or 4 channels", "not 5")
def _five_channels(w):
    w.mgr.image(np.zeros((4, 5, 5), np.float32), 5, 4, 5)


@misuse(kp.InvalidArgumentError, "2 x 2", "4 components", "5")
def _an_image_of_another_size(w):
    w.mgr.image(np.zeros(5), 2, 2, 1)


@misuse(kp.ArgumentTypeError, "float64", "float32")
def _an_image_of_float64(w):
    w.mgr.image_t(np.zeros((2, 2)))


@misuse(kp.InvalidArgumentError, "maxImageDimension2D")
def _an_image_that_is_too_wide(w):
    limit = w.properties["limits"]["maxImageDimension2D"]
    w.mgr.image_t(np.zeros(limit + 1, np.uint8), limit + 1, 1, 1)


# -- shaders and algorithms ----------------------------------------------------------------------------------


@misuse(kp.ShaderCompileError, ":4:", "float x = nothing;", r"\^", "undeclared")
def _source_that_is_wrong(w):
    kp.compile(WRONG)


@misuse(kp.InvalidArgumentError, "SPIR-V", "compile")
def _bytes_that_are_not_spirv(w):
    w.mgr.algorithm(w.tensors, b"certainly no SPIR-V.")


@misuse(kp.InvalidArgumentError, "SPIR-V", "0x03020100|magic")
def _other_bytes(w):
    w.mgr.algorithm(w.tensors, bytes(range(64)))


@misuse(kp.InvalidArgumentError, "SPIR-V")
def _no_bytes(w):
    w.mgr.algorithm(w.tensors, b"")


@misuse(kp.InvalidArgumentError, "SPIR-V")
def _half_a_shader(w):
    w.mgr.algorithm(w.tensors, w.code[: len(w.code) // 8 * 4])


@misuse(kp.InvalidArgumentError, "SPIR-V")
def _a_shader_with_a_broken_word(w):
    words = np.frombuffer(w.code, np.uint32).copy()
    words[len(words) // 2] = 0xFFFFFFFF
    w.mgr.algorithm(w.tensors, words.tobytes())


@misuse(kp.ArgumentTypeError, "str", r"kp\.compile\(")
def _source_as_spirv(w):
    w.mgr.algorithm(w.tensors, SUM)


@misuse(kp.InvalidArgumentError, "3 tensors", "1 were given|1 was given", "'Right'|'right'|Right")
def _too_few_tensors(w):
    w.mgr.algorithm(w.tensors[:1], w.code)


@misuse(kp.InvalidArgumentError, "Binding 1", "storage buffer", "Image", r"mgr\.tensor\(")
def _an_image_for_a_buffer(w):
    w.mgr.algorithm([w.tensors[0], w.image, w.tensors[2]], w.code)


@misuse(kp.InvalidArgumentError, "canvas", "storage image", "Tensor", r"mgr\.image\(")
def _a_buffer_for_an_image(w):
    w.mgr.algorithm([w.tensors[0]], kp.compile(PAINT), (2, 2, 1))


@misuse(kp.ArgumentTypeError, r"tensors\[1\]", "ndarray", "Tensor or Image")
def _an_array_for_a_tensor(w):
    w.mgr.algorithm([w.tensors[0], np.zeros(3), w.tensors[2]], w.code)


@misuse(kp.ArgumentTypeError, "list", r"\[tensor\]")
def _a_tensor_for_a_list(w):
    w.mgr.algorithm(w.tensors[0], w.code)


@misuse(kp.InvalidArgumentError, r"tensors\[2\]", "belongs to", "one Manager")
def _another_managers_tensor(w):
    w.mgr.algorithm([*w.tensors[:2], w.foreign()], w.code)


@misuse(kp.FailedPreconditionError, "destroyed", r"tensors\[0\]")
def _a_destroyed_tensor(w):
    w.tensors[0].destroy()
    w.mgr.algorithm(w.tensors, w.code)


@misuse(kp.InvalidArgumentError, "2 values", "8 bytes", "4 bytes", "bias")
def _too_many_push_constants(w):
    w.mgr.algorithm(w.tensors, w.code, (3, 1, 1), [], [1, 2])


@misuse(kp.InvalidArgumentError, "bias", "1.5", "int32", "integers only")
def _a_fraction_for_an_integer(w):
    w.mgr.algorithm(w.tensors, w.code, (3, 1, 1), [], [1.5])


@misuse(kp.InvalidArgumentError, "bias", "4294967296", "out of range", "2147483647")
def _a_push_constant_out_of_range(w):
    kp.OpAlgoDispatch(w.algorithm, [2**32])


@misuse(kp.ArgumentTypeError, "bias", "'a'", "int32")
def _text_as_push_constants(w):
    kp.OpAlgoDispatch(w.algorithm, ["a"])


@misuse(kp.InvalidArgumentError, "specialization constant 9", r"3 \(special\)")
def _no_such_specialization_id(w):
    w.mgr.algorithm(w.tensors, w.code, (3, 1, 1), {9: 1})


@misuse(kp.InvalidArgumentError, "id 0", r"3 \(special\)", r"\{id: value\}")
def _specialization_ids_with_a_gap(w):
    w.mgr.algorithm(w.tensors, w.code, (3, 1, 1), [7])


@misuse(kp.InvalidArgumentError, "special", "-1", "uint32")
def _a_negative_value_for_an_unsigned_one(w):
    w.mgr.algorithm(w.tensors, w.code, (3, 1, 1), {"special": -1})


@misuse(kp.InvalidArgumentError, "workgroup", "groups in x", "maxComputeWorkGroupCount")
def _too_many_groups(w):
    most = w.properties["max_work_group_count"]
    w.mgr.algorithm(w.tensors, w.code, (most[0] + 1, most[1] + 1, 1))


@misuse(kp.InvalidArgumentError, "grid", "groups in x", "maxComputeWorkGroupCount")
def _too_large_a_grid(w):
    kp.OpAlgoDispatch(w.algorithm, grid=2**40)


@misuse(kp.InvalidArgumentError, "4 numbers", "three")
def _four_dimensions(w):
    w.mgr.algorithm(w.tensors, w.code, (1, 1, 1, 1))


@misuse(kp.InvalidArgumentError, "-3", "negative")
def _negative_groups(w):
    w.mgr.algorithm(w.tensors, w.code, (-3, 1, 1))


@misuse(kp.ArgumentTypeError, "workgroup", "2.5")
def _a_fraction_of_a_group(w):
    w.mgr.algorithm(w.tensors, w.code, (2.5, 1, 1))


@misuse(kp.InvalidArgumentError, "workgroup", "no tensors|no default")
def _a_default_workgroup_without_tensors(w):
    w.mgr.algorithm([], kp.compile("#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n"))


@misuse(kp.FailedPreconditionError, "no shader", "spirv")
def _dispatching_an_algorithm_without_a_shader(w):
    kp.OpAlgoDispatch(w.mgr.algorithm())


# -- operations ----------------------------------------------------------------------------------------------


@misuse(kp.InvalidArgumentError, "OpSyncDevice", "empty")
def _nothing_to_upload(w):
    kp.OpSyncDevice([])


@misuse(kp.ArgumentTypeError, "OpSyncLocal", r"OpSyncLocal\(\[tensor\]\)")
def _a_tensor_for_the_list_of_an_operation(w):
    kp.OpSyncLocal(w.tensors[0])


@misuse(kp.InvalidArgumentError, "OpCopy", "at least two")
def _a_copy_to_nowhere(w):
    kp.OpCopy(w.tensors[:1])


@misuse(kp.InvalidArgumentError, "OpCopy", "3 elements", "4")
def _a_copy_to_another_size(w):
    kp.OpCopy([w.tensors[0], w.mgr.zeros(4)])


@misuse(kp.ArgumentTypeError, "OpCopy", "dtype", "int32")
def _a_copy_to_another_dtype(w):
    kp.OpCopy([w.tensors[0], w.mgr.zeros(3, np.int32)])


@misuse(kp.InvalidArgumentError, "three tensors", "2")
def _a_product_of_one(w):
    kp.OpMult(w.tensors[:2], w.mgr.algorithm())


@misuse(kp.ArgumentTypeError, "Algorithm", "Tensor")
def _dispatching_a_tensor(w):
    kp.OpAlgoDispatch(w.tensors[0])


@misuse(kp.InvalidArgumentError, "OpFill", "12 bytes", "pattern of 8")
def _a_fill_with_a_pattern_that_does_not_fit(w):
    kp.OpFill([w.mgr.zeros(3, np.float32)], b"12345678")


# -- sequences -----------------------------------------------------------------------------------------------


@misuse(kp.OutOfRangeError, "7", "1 queue", "family_queue_indices")
def _no_such_queue(w):
    w.mgr.sequence(7)


@misuse(kp.OutOfRangeError, "timestamps", "1 operations", "total_timestamps")
def _more_operations_than_timestamps(w):
    seq = w.mgr.sequence(0, 1).record(kp.OpSyncDevice(w.tensors))
    seq.record(kp.OpSyncLocal(w.tensors))


@misuse(kp.FailedPreconditionError, "no timestamps", r"timestamps=True")
def _timestamps_of_a_sequence_without(w):
    w.mgr.sequence().record(kp.OpSyncDevice(w.tensors)).eval().get_timestamps()


@misuse(kp.FailedPreconditionError, "not evaluated")
def _timestamps_before_the_first_evaluation(w):
    w.mgr.sequence(0, 4).record(kp.OpSyncDevice(w.tensors)).get_timestamps()


@misuse(kp.ArgumentTypeError, "kp.OpBase", "Tensor")
def _recording_a_tensor(w):
    w.mgr.sequence().record(w.tensors[0])


@misuse(kp.ArgumentTypeError, r"kp\.OpSyncDevice\(")
def _recording_a_class(w):
    w.mgr.sequence().record(kp.OpSyncDevice)


@misuse(kp.InvalidArgumentError, "OpSyncDevice", "another Manager")
def _recording_another_managers_tensor(w):
    w.mgr.sequence().record(kp.OpSyncDevice([w.foreign()]))


@misuse(kp.InvalidArgumentError, "OpSyncDevice", "Manager")
def _syncing_tensors_of_two_managers(w):
    w.mgr.sequence().record(kp.OpSyncDevice([w.tensors[0], w.foreign()]))


@misuse(kp.FailedPreconditionError, "running", r"eval_await")
def _recording_while_running(w):
    seq = w.mgr.sequence().record(kp.OpSyncDevice(w.tensors)).eval_async()
    try:
        seq.record(kp.OpSyncLocal(w.tensors))
    finally:
        seq.eval_await()


@misuse(kp.FailedPreconditionError, "running", r"eval_await")
def _evaluating_while_running(w):
    seq = w.mgr.sequence().record(kp.OpSyncDevice(w.tensors)).eval_async()
    try:
        seq.eval()
    finally:
        seq.eval_await()


@misuse(kp.FailedPreconditionError, "bias", "destroyed")
def _evaluating_with_a_destroyed_tensor(w):
    w.tensors[1].name = "bias"
    seq = w.mgr.sequence().record(kp.OpSyncDevice(w.tensors)).eval()
    w.tensors[1].destroy()
    seq.eval()


@misuse(kp.FailedPreconditionError, "adder", "destroyed")
def _evaluating_a_destroyed_algorithm(w):
    w.algorithm.name = "adder"
    seq = w.mgr.sequence().record(kp.OpAlgoDispatch(w.algorithm))
    w.algorithm.destroy()
    seq.eval()


@misuse(kp.FailedPreconditionError, "destroyed")
def _evaluating_a_destroyed_sequence(w):
    seq = w.mgr.sequence()
    seq.destroy()
    seq.eval()


@misuse(kp.FailedPreconditionError, "record", "Silent")
def _an_operation_that_records_nothing(w):
    class Silent(kp.OpBase):
        pass

    w.mgr.sequence().record(Silent()).eval()


@misuse(kp.InvalidArgumentError, "milliseconds", "timeout", "both")
def _two_times_to_wait(w):
    w.mgr.sequence().eval_await(5, timeout=1)


# -- what is right here and wrong in Kompute (features.md, appendix A) ---------------------------------------


def test_queues_of_one_family_are_shared_when_there_are_too_few(messages):
    mgr = kp.Manager(0, [0] * 20)
    assert len(mgr.queues) == 20 and mgr.queues[-1]["shared"]
    t = mgr.tensor([1, 2])
    for index in range(20):
        mgr.sequence(index).record(kp.OpSyncDevice([t])).eval()
    assert t.read().tolist() == [1, 2] and any("share" in text for text in messages)
    mgr.destroy()


def test_an_override_holds_for_its_dispatch_only(world):
    algorithm = world.mgr.algorithm(world.tensors, world.code, (3, 1, 1), [], [1])
    world.mgr.sequence().eval(kp.OpSyncDevice(world.tensors))
    total = world.tensors[2]
    for op, bias in ((kp.OpAlgoDispatch(algorithm, [9]), 9), (kp.OpAlgoDispatch(algorithm), 1)):
        world.mgr.sequence().eval(op)
        assert total.read().tolist() == [5 + bias, 7 + bias, 9 + bias]


def test_a_copy_leaves_host_copies_alone(world):
    a, b = world.mgr.tensor([1, 1]), world.mgr.tensor([2, 2])
    world.mgr.sequence().eval(kp.OpSyncDevice([a]))
    a.data()[:] = 5
    world.mgr.sequence().eval(kp.OpCopy([a, b]))
    assert b.data().tolist() == [2, 2] and b.read().tolist() == [1, 1]


def test_surplus_arguments_warn(world):
    with pytest.warns(kp.KomputeWarning, match="4 tensors.*3 bindings"):
        world.mgr.algorithm([*world.tensors, world.image], world.code)
    with pytest.warns(kp.KomputeWarning, match="1 of the spec_consts"):
        world.mgr.algorithm([world.image], kp.compile(PAINT), (1, 1, 1), [5])
    with pytest.warns(kp.KomputeWarning, match="no push constants"):
        world.mgr.algorithm([world.image], kp.compile(PAINT), (1, 1, 1), [], [5])
