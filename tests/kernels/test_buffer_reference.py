"""Buffer references: tensors that a shader reaches by their addresses."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child

HEAD = """#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : enable
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float x[]; };
"""
SCALE = (
    HEAD
    + """
layout(set = 0, binding = 0) buffer Y { float y[]; };
layout(push_constant) uniform P { Floats data; float factor; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = factor * data.x[i]; }
"""
)
FILL = (
    HEAD
    + """
layout(push_constant) uniform P { Floats target; uint count; float value; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < count) target.x[i] += value; }
"""
)


@pytest.fixture(autouse=True)
def _has_addresses(mgr, needs):
    needs(mgr, "bufferDeviceAddress")


@pytest.mark.capability("", "addresses of tensors in shaders", "Manager.kernel", "reference/kernel_rules")
def test_a_tensor_is_given_for_a_reference(mgr):
    scale = mgr.kernel(SCALE)
    assert "Floats* data" in str(scale)
    x, y = mgr.tensor(np.arange(100, dtype=np.float32)), mgr.zeros(100)
    scale(y, data=x, factor=2.0)
    assert np.array_equal(y.read(), 2 * x.data())
    scale(y, push={"data": x}, factor=3.0)
    assert np.array_equal(y.read(), 3 * x.data())
    scale(y, data=x.device_address, factor=4.0)
    assert np.array_equal(y.read(), 4 * x.data())
    scale(y, data=x[10:], factor=1.0, grid=90)
    assert np.array_equal(y.read()[:90], np.arange(10, 100))
    result = scale(np.zeros(5, np.float32), data=x, factor=1.0)
    assert np.array_equal(result, np.arange(5))
    scale.submit(y, data=x, factor=5.0).wait()
    assert np.array_equal(y.read(), 5 * x.data())


def test_writes_through_references_are_ordered(mgr):
    fill, scale = mgr.kernel(FILL), mgr.kernel(SCALE)
    x, y, z = mgr.zeros(1000), mgr.zeros(1000), mgr.zeros(1000)
    sequence = mgr.sequence().record(
        kp.OpFill([x], 1.0), fill.bind(target=x, count=1000, value=2.0, grid=1000),
        fill.bind(target=x, count=1000, value=3.0, grid=1000), scale.bind(y, data=x, factor=10.0),
        kp.OpCopy([y, z]), fill.bind(target=z, count=1000, value=0.5, grid=1000), kp.OpSyncLocal([x, z]),
    )  # fmt: skip
    for _ in range(3):
        sequence.eval()
        assert np.array_equal(x.data(), np.full(1000, 6))
        assert np.array_equal(z.data(), np.full(1000, 60.5))


def test_the_operation_keeps_the_tensor(mgr):
    scale = mgr.kernel(SCALE)
    y = mgr.zeros(100)
    x = mgr.tensor(np.full(100, 7, np.float32), "storage")
    x.write(np.full(100, 7, np.float32))
    op = scale.bind(y, data=x, factor=1.0)
    sequence = mgr.sequence().record(op, kp.OpSyncLocal([y]))
    del x
    gc.collect()
    others = [mgr.zeros(100) for _ in range(8)]  # would be put where it was
    sequence.eval()
    assert np.array_equal(y.data(), np.full(100, 7))
    fresh = mgr.tensor(np.full(100, 8, np.float32))
    mgr.sequence().record(kp.OpSyncDevice([fresh])).eval()
    op.set(data=fresh, factor=2.0)
    del fresh
    gc.collect()
    sequence.eval()
    assert np.array_equal(y.data(), np.full(100, 16))
    assert op.push_constants["factor"] == 2.0
    del others


def test_a_destroyed_tensor_is_named(mgr):
    scale = mgr.kernel(SCALE)
    x, y = mgr.zeros(10), mgr.zeros(10)
    x.name = "weights"
    sequence = mgr.sequence().record(scale.bind(y, data=x, factor=1.0))
    x.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="weights"):
        sequence.eval()
    with pytest.raises(kp.FailedPreconditionError, match="weights"):
        scale(y, data=x, factor=1.0)


def test_calls_do_not_keep_tensors_alive(mgr):
    scale = mgr.kernel(SCALE)
    y = mgr.zeros(10)
    scale(y, data=mgr.zeros(10), factor=1.0)
    gc.collect()
    before = kp.alive()
    for _ in range(5):
        scale(y, data=mgr.zeros(10), factor=1.0)
        gc.collect()
    assert kp.alive() == before


def test_arrays_and_structs_of_references(mgr):
    kernel = mgr.kernel(
        HEAD
        + """
        struct Layer { Floats weights; float scale; };
        layout(set = 0, binding = 0) writeonly buffer Y { float y[]; };
        layout(push_constant) uniform P { Layer layers[2]; Floats more[2]; };
        void main() {
            uint i = gl_GlobalInvocationID.x;
            if (i >= y.length()) return;
            y[i] = layers[0].weights.x[i] * layers[0].scale + layers[1].weights.x[i] * layers[1].scale
                 + more[0].x[i] + more[1].x[i];
        }
        """
    )
    a, b, c = (mgr.tensor(np.full(10, v, np.float32)) for v in (1, 10, 100))
    y = mgr.zeros(10)
    kernel(y, layers=[{"weights": a, "scale": 2.0}, (b, 3.0)], more=[c, a])
    assert np.array_equal(y.read(), np.full(10, 2 + 30 + 100 + 1))


def test_addresses_in_memory(mgr):
    kernel = mgr.kernel(
        HEAD
        + """
        layout(set = 0, binding = 0) readonly buffer Table { Floats entries[3]; } table;
        layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
        void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = table.entries[i % 3].x[i];
        }
        """
    )
    parts = [mgr.tensor(np.full(9, v, np.float32)) for v in (1, 2, 3)]
    table = mgr.tensor_t(np.array([p.device_address for p in parts], np.uint64))
    y = mgr.zeros(9)
    kernel(table, y, uses=parts)  # uploads them
    assert np.array_equal(y.read(), [1, 2, 3] * 3)
    op = kernel.bind(table, y, uses=parts)
    sequence = mgr.sequence().record(op, kp.OpSyncLocal([y]))
    del parts
    gc.collect()
    others = [mgr.tensor(np.zeros(9, np.float32)) for _ in range(8)]
    mgr.sequence().record(kp.OpSyncDevice(others)).eval()
    sequence.eval()
    assert np.array_equal(y.data(), [1, 2, 3] * 3)


def test_what_is_no_tensor(mgr, make_manager):
    scale = mgr.kernel(SCALE)
    x, y = mgr.zeros(10), mgr.zeros(10)
    for wrong in (np.zeros(10, np.float32), [1.0, 2.0]):
        with pytest.raises(kp.ArgumentTypeError, match=r"data is a buffer reference \(Floats\).*mgr\.tensor"):
            scale(y, data=wrong, factor=1.0)
    for wrong in (1.5, "x", None, True):
        with pytest.raises(kp.ArgumentTypeError, match="give a Tensor, or an address as an int"):
            scale(y, data=wrong, factor=1.0)
    with pytest.raises(kp.ArgumentTypeError):
        scale(y, data=mgr.image(np.zeros((4, 4), np.float32)), factor=1.0)
    with pytest.raises(kp.InvalidArgumentError, match="belongs to"):
        scale(y, data=make_manager().zeros(4), factor=1.0)
    with pytest.raises(kp.InvalidArgumentError, match="missing push constant data"):
        scale(y, factor=1.0)
    with pytest.raises(kp.ArgumentTypeError):
        scale(y, data=x, factor=x)
    with pytest.raises(kp.ArgumentTypeError, match="uses="):
        scale(y, data=x, factor=1.0, uses=[np.zeros(3)])
    with pytest.raises(kp.InvalidArgumentError):
        scale(y, data=-1, factor=1.0)


def test_addresses(mgr):
    x = mgr.zeros(100)
    assert x.device_address > 0 and x.device_address % 16 == 0
    assert x[8:].device_address == x.device_address + 32
    for kind in ("host", "deviceAndHost", "storage"):
        assert mgr.empty(4, np.float32, kind).device_address > 0
    x.destroy()
    with pytest.raises(kp.FailedPreconditionError):
        _ = x.device_address


def test_an_algorithm_takes_addresses_by_position(mgr):
    """Not Tensors, which its push constants would not keep alive; what is no address is the same error as by
    name.
    """
    spirv, kernel = kp.compile(SCALE), mgr.kernel(SCALE, name="k")
    t, y = mgr.tensor([5.0]), mgr.zeros(1)
    for wrong in (5.0, True, np.float32(5), "5", None, [t], np.array([1, 2])):
        with pytest.raises(kp.ArgumentTypeError) as by_position:
            mgr.algorithm([y], spirv, (1, 1, 1), push_consts=[wrong, 2.0])
        with pytest.raises(kp.ArgumentTypeError) as by_name:
            kernel(y, data=wrong, factor=2.0)
        assert str(by_position.value).removeprefix("push_consts") == str(by_name.value).removeprefix("k")
    with pytest.raises(
        kp.ArgumentTypeError, match=r"data is a buffer reference.*give tensor\.device_address"
    ):
        mgr.algorithm([y], spirv, (1, 1, 1), push_consts=[t, 2.0])
    algorithm = mgr.algorithm([y], spirv, (1, 1, 1), push_consts=[t.device_address, 2.0])
    mgr.sequence().record(kp.OpSyncDevice([t])).eval(kp.OpAlgoDispatch(algorithm))
    np.testing.assert_array_equal(y.read(), [10])


def test_reloading_keeps_references(mgr, tmp_path):
    path = tmp_path / "scale.comp"
    path.write_text(SCALE)
    scale = mgr.kernel(path, watch=True)
    x, y = mgr.tensor(np.ones(10, np.float32)), mgr.zeros(10)
    sequence = mgr.sequence().record(
        kp.OpSyncDevice([x]), scale.bind(y, data=x, factor=2.0), kp.OpSyncLocal([y])
    )
    del x
    sequence.eval()
    path.write_text(SCALE.replace("Floats data; float factor;", "float factor; Floats data;"))
    sequence.eval()
    path.write_text(SCALE.replace("= factor", "= 10 * factor"))
    sequence.eval()
    assert np.array_equal(y.data(), np.full(10, 20))
    assert scale.error is None


def check_device_without_addresses():
    mgr = kp.Manager()
    x = mgr.zeros(10)
    with pytest.raises(kp.UnimplementedError, match="lacks the feature bufferDeviceAddress"):
        _ = x.device_address
    with pytest.raises(kp.UnimplementedError, match=r"^main: .*'bufferDeviceAddress'"):
        mgr.kernel(SCALE)


def test_a_device_without_addresses_is_told():
    run_child(check_device_without_addresses, driver="null", config="bda=0")


# -- prepared calls ------------------------------------------------------------------------------------------

DOUBLE = (
    HEAD
    + """
layout(binding = 0) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { Floats data; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = 2.0 * data.x[i]; }
"""
)
POINTER = """#version 450
#extension GL_EXT_buffer_reference_uvec2 : require
layout(local_size_x = 32) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float x[]; };
layout(binding = 0) readonly buffer Rows { uvec2 rows[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { uint row; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = Floats(rows[row]).x[i]; }
"""


def _arange(n):
    return np.arange(n, dtype=np.float32)


def test_a_tensor_in_place_of_a_reference_is_recognized(mgr):
    double = mgr.kernel(DOUBLE)
    one, two = mgr.tensor(_arange(9)), mgr.tensor(_arange(9) + 100)
    y = mgr.zeros(9)
    for data in (one, two):
        double(y, data=data)
    assert double._table.call((y,), {"data": one}) is None  # without Python
    assert np.array_equal(y.read(), 2 * _arange(9))
    assert double._table.call((y,), {"data": one.device_address}) is NotImplemented
    assert double._table.call((y,), {"data": [one]}) is NotImplemented
    double(y, data=two)
    assert np.array_equal(y.read(), 2 * _arange(9) + 200)
    one.fill(3.0)  # ordered with what the shader reads
    double(y, data=one)
    assert (y.read() == 6).all()
    double.submit(y, data=two).wait()
    assert np.array_equal(y.read(), 2 * _arange(9) + 200)


def test_addresses_as_numbers_are_read_anew(mgr):
    double = mgr.kernel(DOUBLE)
    x, y = mgr.tensor(_arange(16)), mgr.zeros(4)
    mgr.sequence().record(kp.OpSyncDevice([x])).eval()
    for n in range(5):
        double(y, data=x.device_address + 4 * n)
        assert np.array_equal(y.read(), 2 * x.read()[n : n + 4])


def test_calls_with_uses_are_recognized(mgr):
    follow = mgr.kernel(POINTER)
    rows = [mgr.tensor(_arange(5) + 10 * n) for n in range(3)]
    addresses = mgr.tensor_t(np.array([each.device_address for each in rows], np.uint64).view(np.uint32))
    addresses = addresses.reshape(3, 2)
    y = mgr.zeros(5)
    follow(addresses, y, row=0, uses=rows)
    follow(addresses, y, row=0, uses=(x for x in rows))
    assert follow._table.call((addresses, y), {"row": 1, "uses": tuple(rows)}) is None
    assert np.array_equal(y.read(), _arange(5) + 10)
    assert follow._table.call((addresses, y), {"row": 1, "uses": rows[:2]}) is NotImplemented
    assert follow._table.call((addresses, y), {"row": 1}) is NotImplemented
    for n, row in enumerate(rows):
        row.fill(float(n))  # ordered with what the shader reads
        follow(addresses, y, row=n, uses=rows)
        assert (y.read() == n).all()
        follow.submit(addresses, y, row=n, uses=rows).wait()


def test_a_list_of_tensors_is_told_by_what_it_holds(mgr):
    follow = mgr.kernel(POINTER)
    rows = [mgr.tensor(_arange(5) + 10 * n) for n in range(2)]
    addresses = mgr.tensor_t(np.array([each.device_address for each in rows], np.uint64).view(np.uint32))
    y = mgr.zeros(5)
    uses = list(rows)
    follow(addresses.reshape(2, 2), y, row=0, uses=uses)
    uses[1].destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        follow(addresses.reshape(2, 2), y, row=0, uses=uses)
    uses.pop()
    follow(addresses.reshape(2, 2), y, row=0, uses=uses)
    del rows, uses
    gc.collect()
    assert len(follow._table) == 0


def test_a_dict_with_references_is_read_anew(mgr):
    kernel = mgr.kernel(
        HEAD
        + """
struct One { Floats data; float factor; };
layout(binding = 0) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { One one; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = one.factor * one.data.x[i]; }"""
    )
    x, z, y = mgr.tensor(_arange(4)), mgr.tensor(_arange(4) + 10), mgr.zeros(4)
    one = {"data": x, "factor": 2.0}
    for data, factor in ((x, 2.0), (z, 2.0), (x, 3.0)):
        one.update(data=data, factor=factor)
        kernel(y, one=one)
        assert np.array_equal(y.read(), factor * data.read())
