"""Kompute's Python API, call by call: a script for Kompute 0.8, 0.9 or its main branch runs with `import`
changed.

Our own programs, in the argument forms that Kompute's documentation, tests and examples use, under both
generations of names. Here are the module, Manager, tensors, images and algorithms;
`test_kompute_compat_runs.py` has operations, sequences and whole scripts.
"""

from __future__ import annotations

import itertools
import logging

import numpy as np
import pytest

import kompute_py as kp

MULTIPLY = """
#version 450
layout(local_size_x = 1, local_size_y = 1, local_size_z = 1) in;
layout(set = 0, binding = 0) buffer Left { float left[]; };
layout(set = 0, binding = 1) buffer Right { float right[]; };
layout(set = 0, binding = 2) buffer Product { float product[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    product[i] = left[i] * right[i];
}
"""

# The names of the two generations: (upload, download, copy).
OLDER = ("OpTensorSyncDevice", "OpTensorSyncLocal", "OpTensorCopy")
NEWER = ("OpSyncDevice", "OpSyncLocal", "OpCopy")

# What each class has in Kompute's bindings, 0.8 to main.
METHODS = {
    "Manager": "algorithm destroy get_device_properties image image_t list_devices sequence tensor tensor_t",
    "Sequence": (
        "clear destroy eval eval_async eval_await get_timestamps is_init is_recording is_running record "
        "rerecord"
    ),
    "Tensor": "__len__ data data_type destroy is_init memory_type size tensor_type",
    "Image": "__len__ data data_type destroy is_init memory_type size",
    "Algorithm": "destroy get_mem_objects get_tensors is_init",
}
CLASSES = (
    "Algorithm DataTypes Image Manager Memory MemoryTypes OpAlgoDispatch OpBase OpCopy OpMult OpSyncDevice "
    "OpSyncLocal "
    "OpTensorCopy OpTensorSyncDevice OpTensorSyncLocal Sequence Shader Tensor TensorDataTypes TensorTypes"
)
DATA_TYPES = {
    "bool": 0, "int": 1, "uint": 2, "float": 3, "double": 4, "custom": 5, "short": 6, "ushort": 7, "char": 8,
    "uchar": 9,
}  # fmt: skip
MEMORY_TYPES = {"device": 0, "host": 1, "storage": 2, "deviceAndHost": 3}


@pytest.fixture(params=[OLDER, NEWER], ids=["older", "newer"])
def ops(request):
    """(upload, download, copy) of one generation."""
    return tuple(getattr(kp, name) for name in request.param)


@pytest.fixture
def multiply(mgr):
    return kp.compile(MULTIPLY)


# -- the module ----------------------------------------------------------------------------------------------


@pytest.mark.own_driver
def test_classes_and_methods():
    assert all(isinstance(getattr(kp, name), type) for name in CLASSES.split())
    for name, methods in METHODS.items():
        assert all(callable(getattr(getattr(kp, name), method)) for method in methods.split()), name


def test_inheritance():
    for op in (*OLDER, *NEWER, "OpAlgoDispatch", "OpMult"):
        assert issubclass(getattr(kp, op), kp.OpBase)
    assert issubclass(kp.Tensor, kp.Memory) and issubclass(kp.Image, kp.Memory)


def test_version():
    assert isinstance(kp.__version__, str) and kp.__version__


def test_imports_by_name():
    namespace: dict[str, object] = {}
    exec(
        "from kompute_py import Manager, Tensor, OpSyncDevice, OpSyncLocal, OpAlgoDispatch, device, host",
        namespace,
    )
    assert namespace["Manager"] is kp.Manager and namespace["device"] is kp.MemoryTypes.device


def test_star_import_leaves_the_built_ins():
    namespace: dict[str, object] = {}
    exec("from kompute_py import *\nassert float(1) == 1.0 and int('2') == 2 and bool(3) is True", namespace)
    assert namespace["Manager"] is kp.Manager


def test_the_logger_of_kompute_can_be_set():
    logger = logging.getLogger("kp")
    level = logger.level
    for wanted in (logging.INFO, logging.DEBUG):
        logger.setLevel(wanted)
        kp.Manager().destroy()
    logger.setLevel(level)


# -- enumerations --------------------------------------------------------------------------------------------


@pytest.mark.own_driver
@pytest.mark.parametrize(("name", "value"), list(DATA_TYPES.items()))
@pytest.mark.parametrize("enumeration", ["DataTypes", "TensorDataTypes"])
def test_data_types(enumeration, name, value):
    members = getattr(kp, enumeration)
    member = getattr(members, name)
    assert member.name == name and member.value == value and int(member) == value
    assert members.__members__[name] is member and members(value) is member
    assert getattr(kp, name) is member  # Kompute exports members into the module


@pytest.mark.own_driver
@pytest.mark.parametrize(("name", "value"), list(MEMORY_TYPES.items()))
@pytest.mark.parametrize("enumeration", ["MemoryTypes", "TensorTypes"])
def test_memory_types(enumeration, name, value):
    members = getattr(kp, enumeration)
    member = getattr(members, name)
    assert member.name == name and member.value == value and int(member) == value
    assert members.__members__[name] is member and members(value) is member
    assert getattr(kp, name) is member


def test_enumerations_print_as_pybind11_does():
    assert (
        str(kp.TensorTypes.device).endswith("Types.device") and str(kp.DataTypes.float) == "DataTypes.float"
    )


def test_members_compare_and_hash():
    assert kp.TensorTypes.device == kp.MemoryTypes.device != kp.MemoryTypes.host
    assert len({kp.DataTypes.float, kp.float, kp.DataTypes.int}) == 2


def test_a_name_that_is_no_member():
    with pytest.raises(AttributeError, match="eDevice"):
        _ = kp.eDevice


# -- Manager -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "keywords"),
    [
        ((), {}), ((0,), {}), ((0, []), {}), ((0, [0]), {}), ((0, [0], []), {}), ((0, (0,), ()), {}),
        ((), {"device": 0}),
        ((), {"family_queue_indices": [0]}), ((), {"desired_extensions": []}),
        ((), {"device": 0, "family_queue_indices": [], "desired_extensions": []}),
        ((np.int64(0), np.array([0])), {}),
    ],
)  # fmt: skip
def test_managers(make_manager, args, keywords):
    mgr = make_manager(*args, **keywords)
    assert mgr.is_init()
    mgr.destroy()
    assert not mgr.is_init()


def test_manager_with_extensions(make_manager):
    name = kp.list_devices()[0]["extensions"][0]
    assert name in make_manager(0, [0], [name]).enabled_extensions


def test_an_extension_that_is_missing_is_logged(messages):
    mgr = kp.Manager(0, [0], ["VK_EXT_no_such_extension"])
    assert mgr.is_init() and "VK_EXT_no_such_extension" in "\n".join(messages)
    mgr.destroy()


def test_debug_layers_by_environment(monkeypatch, make_manager):
    monkeypatch.setenv("KOMPUTE_ENV_DEBUG_LAYERS", "VK_LAYER_KHRONOS_validation VK_LAYER_KHRONOS_validation")
    assert make_manager(validation=False).is_init()


def test_device_properties(mgr):
    properties = mgr.get_device_properties()
    assert isinstance(properties, dict)
    assert isinstance(properties["device_name"], str) and properties["device_name"]
    assert properties["max_work_group_invocations"] >= 128
    for key in ("max_work_group_count", "max_work_group_size"):
        assert len(properties[key]) == 3 and all(n >= 64 for n in properties[key]) and properties[key][0] > 0
    assert properties["timestamps_supported"] in (True, False)
    assert "device_name" in properties and properties.get("no such key") is None


def test_device_list(mgr):
    devices = mgr.list_devices()
    assert isinstance(devices, list) and len(devices) > 0
    assert "device_name" in devices[0] and "max_work_group_size" in devices[0]


# -- tensors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        [2, 2, 2], [0.001, 0.001], (1, 2, 3), [7], np.array([1, 2, 3]), np.zeros([16, 8]),
        np.array([0.5], np.float32),
        np.arange(12.0).reshape(3, 4).T, np.arange(10)[::2], [[1, 2], [3, 4]], [True, False], range(5),
        np.float32(3),
    ],
    ids=str,
)  # fmt: skip
def test_tensor_takes(mgr, data):
    flat = np.ravel(np.asarray(data, np.float32))
    t = mgr.tensor(data)
    assert isinstance(t, kp.Tensor) and t.is_init()
    assert t.size() == len(t) == flat.size
    assert t.data_type() == kp.DataTypes.float == kp.TensorDataTypes.float
    assert t.tensor_type() == kp.TensorTypes.device and t.memory_type() == kp.MemoryTypes.device
    assert t.data().dtype == np.float32 and t.data().shape == (flat.size,)
    assert t.data().tolist() == flat.tolist() and np.all(t.data() == flat)


@pytest.mark.parametrize("where", list(MEMORY_TYPES))
def test_memory_type_arguments(mgr, where):
    member = kp.MemoryTypes.__members__[where]
    for t in (
        mgr.tensor([1, 2], member), mgr.tensor([1, 2], memory_type=member),
        mgr.tensor([1, 2], tensor_type=member),
        mgr.tensor(data=[1, 2], memory_type=member), mgr.tensor([1, 2], getattr(kp, where)),
        mgr.tensor_t(np.array([1, 2], np.uint32), member),
        mgr.tensor_t(data=np.array([1]), tensor_type=member),
        mgr.tensor_t(np.array([1, 2], np.int32), memory_type=kp.TensorTypes.__members__[where]),
    ):  # fmt: skip
        assert t.memory_type() is member and t.tensor_type() is member


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.float32, "float"), (np.uint32, "uint"), (np.int32, "int"), (np.float64, "double"),
        (np.bool_, "bool"),
        (np.int16, "short"), (np.uint16, "ushort"), (np.int8, "char"), (np.uint8, "uchar"),
    ],
)  # fmt: skip
def test_tensor_t_keeps_the_dtype(mgr, dtype, name, ops):
    upload, download, _ = ops
    data = np.array([[1, 0, 1], [0, 1, 1]]).astype(dtype)
    t = mgr.tensor_t(data)
    assert t.data_type() == kp.DataTypes.__members__[name]
    assert t.data().dtype == dtype and t.size() == 6 and t.data().tolist() == data.ravel().tolist()
    mgr.sequence().eval(upload([t]))
    t.data()[:] = 0
    mgr.sequence().eval(download([t]))
    np.testing.assert_array_equal(t.data(), data.ravel())


def test_the_data_is_copied_at_construction(mgr):
    array = np.array([1, 2, 3], np.float32)
    t = mgr.tensor(array)
    array[:] = 9
    assert t.data().tolist() == [1, 2, 3]


def test_what_scripts_do_with_data(mgr):
    t = mgr.tensor(np.zeros(6))
    t.data()[:] = [1, 2, 3, 4, 5, 6]
    t.data()[0] -= 0.5 * t.data()[1]
    t.data()[2:4] += np.float32(10)
    assert t.data().tolist() == [0, 2, 13, 14, 5, 6]
    assert t.data().reshape(2, 3)[1, 0] == 14 and t.data().reshape([2, 3]).sum() == 40
    assert (t.data() == [0, 2, 13, 14, 5, 6]).all() and np.array(t.data(), dtype=np.float64)[1] == 2.0
    t.data().fill(0)
    assert not t.data().any()
    assert t.data().view(np.uint64).shape == (3,) and memoryview(t.data()).nbytes == 24
    assert float(mgr.tensor([4]).data()[0]) == 4.0
    assert sum(t.data()[i] for i in range(t.size())) == 0


def test_data_owns_the_tensor(mgr):
    view = mgr.tensor([1, 2, 3]).data()
    assert isinstance(view.base, kp.Tensor) and view.base.is_init()
    assert np.all(view == [1, 2, 3])
    mgr.destroy()
    assert not view.base.is_init()
    assert np.all(view == [1, 2, 3])  # in Kompute this memory is gone


def test_tensors_compare_by_identity(mgr):
    a, b = mgr.tensor([1, 2]), mgr.tensor([1, 2])
    assert a == a and a != b and [a, b] == [a, b] and [a, b] != [b, a]
    assert len({a, b, a}) == 2


def test_tensor_destroy(mgr):
    t = mgr.tensor([1, 2])
    assert t.is_init() is True
    assert t.destroy() is None
    assert t.is_init() is False


# -- images --------------------------------------------------------------------------------------------------

IMAGE_MULTIPLY = """
#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0, {format}) uniform {prefix}image2D left;
layout(set = 0, binding = 1, {format}) uniform {prefix}image2D right;
layout(set = 0, binding = 2, {format}) uniform {prefix}image2D product;
void main() {{
    ivec2 at = ivec2(gl_GlobalInvocationID.x, 0);
    imageStore(product, at, imageLoad(left, at) * imageLoad(right, at));
}}
"""
SMALL_FORMATS = "shaderStorageImageExtendedFormats"  # r16i and the like; a feature of Vulkan 1.0


@pytest.mark.parametrize(
    ("dtype", "format", "prefix", "name"),
    [
        (np.float32, "r32f", "", "float"), (np.int32, "r32i", "i", "int"), (np.uint32, "r32ui", "u", "uint"),
        (np.int16, "r16i", "i", "short"), (np.uint16, "r16ui", "u", "ushort"), (np.int8, "r8i", "i", "char"),
        (np.uint8, "r8ui", "u", "uchar"),
    ],
)  # fmt: skip
def test_image_types(mgr, needs, ops, dtype, format, prefix, name):
    if "32" not in format:
        needs(mgr, SMALL_FORMATS)
    upload, download, _ = ops
    left, right = np.array([12, 15, 3], dtype), np.array([9, 2, 23], dtype)
    images = [mgr.image_t(array, 3, 1, 1) for array in (left, right, np.zeros(3, dtype))]
    product = images[-1]
    code = kp.compile(IMAGE_MULTIPLY.format(format=format, prefix=prefix))
    (
        mgr.sequence()
        .record(upload(images))
        .record(kp.OpAlgoDispatch(mgr.algorithm(images, code)))
        .record(download([product]))
        .eval()
    )
    assert product.data_type() == kp.DataTypes.__members__[name] and product.data().dtype == dtype
    assert np.all(product.data() == left * right)


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("where", list(MEMORY_TYPES))
def test_image_arguments(mgr, channels, where):
    member = kp.MemoryTypes.__members__[where]
    data = np.arange(5 * 3 * channels, dtype=np.float32)
    for image in (
        mgr.image(data, 5, 3, channels, member),
        mgr.image(data, width=5, height=3, num_channels=channels, memory_type=member),
        mgr.image_t(data, 5, 3, channels, member),
        mgr.image_t(data=data, width=5, height=3, num_channels=channels, memory_type=member),
        mgr.image(data.tolist(), 5, 3, channels, member),
    ):  # fmt: skip
        assert isinstance(image, kp.Image) and image.is_init()
        assert image.size() == len(image) == 15 * channels
        assert image.memory_type() is member and image.data_type() == kp.DataTypes.float


def test_image_round_trip(mgr, ops):
    upload, download, copy = ops
    data = np.linspace(0, 1, 4 * 4, dtype=np.float32)
    a, b = mgr.image(data.reshape(4, 4), 4, 4, 1), mgr.image(np.zeros(16), 4, 4, 1)
    mgr.sequence().record(upload([a])).record(copy([a, b])).record(download([b])).eval()
    assert np.all(b.data() == data) and np.all(b.data().reshape(4, 4) == data.reshape(4, 4))
    a.destroy()
    assert not a.is_init() and b.is_init()


# -- algorithms ----------------------------------------------------------------------------------------------

ADD_CONSTANTS = """
#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const {spec} special = {spec}(0);
layout(push_constant) uniform Constants {{ {push} value[3]; }} pushed;
layout(set = 0, binding = 0) buffer Out {{ float result[]; }};
void main() {{
    uint i = gl_GlobalInvocationID.x;
    result[i] = float(pushed.value[i]) + float(special);
}}
"""
GLSL = {"float32": "float", "int32": "int", "uint32": "uint", "float64": "double"}


@pytest.mark.parametrize(("spec", "push"), list(itertools.product(GLSL, GLSL)))
def test_typed_constants(mgr, needs, ops, spec, push):
    """Each of Kompute's four dtypes for each kind of constant, as arrays of the shader's type."""
    if "float64" in (spec, push):
        needs(mgr, "shaderFloat64")
    code = kp.compile(ADD_CONSTANTS.format(spec=GLSL[spec], push=GLSL[push]))
    special = np.array([2.5], np.dtype(spec)).astype(spec)
    pushed = np.array([1.25, 7.5, 9.0]).astype(push)
    out = mgr.tensor([0, 0, 0])
    algorithm = mgr.algorithm([out], code, (3, 1, 1), special, pushed)
    (mgr.sequence().record(ops[0]([out])).record(kp.OpAlgoDispatch(algorithm)).record(ops[1]([out])).eval())
    np.testing.assert_array_equal(out.data(), pushed.astype(np.float32) + special.astype(np.float32)[0])


@pytest.mark.parametrize("glsl", ["float", "int", "uint"])
@pytest.mark.parametrize(
    "values",
    [[1, 2, 3], [1.0, 2.0, 3.0], (1, 2, 3), np.array([1, 2, 3]), np.array([1.0, 2.0, 3.0])],
    ids=repr,
)
def test_constants_are_converted_to_what_the_shader_declares(mgr, glsl, values):
    out = mgr.tensor([0, 0, 0])
    code = kp.compile(ADD_CONSTANTS.format(spec=glsl, push=glsl))
    algorithm = mgr.algorithm([out], code, (3, 1, 1), [10], values)
    mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()
    assert out.read().tolist() == [11, 12, 13]


def test_an_int_array_beside_an_empty_list(mgr):
    """Kompute sends the bits of floats here: 7 arrives as 1088421888."""
    out = mgr.tensor([0, 0, 0])
    code = kp.compile(ADD_CONSTANTS.format(spec="float", push="int"))
    algorithm = mgr.algorithm([out], code, (3, 1, 1), [], np.array([7, -8, 9], np.int32))
    mgr.sequence().eval(kp.OpAlgoDispatch(algorithm))
    assert out.read().tolist() == [7, -8, 9]


def test_empty_arrays_of_constants(mgr, multiply):
    tensors = [mgr.tensor([2, 2]), mgr.tensor([1, 2]), mgr.tensor([0, 0])]
    empty = np.array([], np.int32)
    for algorithm in (
        mgr.algorithm(tensors, multiply, (2, 1, 1), empty, empty),
        mgr.algorithm(tensors, multiply, (2, 1, 1), [], []),
        mgr.algorithm(tensors, multiply, (2, 1, 1), (), np.array([], np.float32)),
    ):  # fmt: skip
        mgr.sequence().record(kp.OpSyncDevice(tensors)).record(kp.OpAlgoDispatch(algorithm, [])).eval()
        assert tensors[2].read().tolist() == [2, 4]


def test_algorithm_arguments(mgr, multiply):
    t = [mgr.tensor([2, 2, 2]), mgr.tensor([1, 2, 3]), mgr.tensor([0, 0, 0])]
    mgr.sequence().eval(kp.OpSyncDevice(t))
    for algorithm in (
        mgr.algorithm(t, multiply),
        mgr.algorithm(tuple(t), multiply),
        mgr.algorithm(t, multiply, (3, 1, 1)),
        mgr.algorithm(t, multiply, [3, 1, 1]),
        mgr.algorithm(t, multiply, (0, 0, 0)),
        mgr.algorithm(t, multiply, [0, 0, 0], [], []),
        mgr.algorithm(t, multiply, (np.ceil(2.5).astype(int), 1, 1)),
        mgr.algorithm(tensors=t, spirv=multiply, workgroup=(3, 1, 1), spec_consts=[], push_consts=[]),
        mgr.algorithm(t, spirv=multiply, push_consts=[], workgroup=[3, 1, 1]),
        mgr.algorithm(t, bytearray(multiply), (len(t[0]), 1, 1)),
    ):
        assert isinstance(algorithm, kp.Algorithm) and algorithm.is_init()
        assert algorithm.get_tensors() == algorithm.get_mem_objects() == t
        assert all(mine is theirs for mine, theirs in zip(t, algorithm.get_tensors(), strict=True))
        mgr.sequence().record(kp.OpFill([t[2]])).record(kp.OpAlgoDispatch(algorithm)).eval()
        assert t[2].read().tolist() == [2, 4, 6]
        assert algorithm.destroy() is None and not algorithm.is_init()


def test_workgroups_are_groups(mgr, ops):
    code = kp.compile("""
        #version 450
        layout(local_size_x = 1) in;
        layout(set = 0, binding = 0) buffer A { float a[]; };
        layout(set = 0, binding = 1) buffer B { float b[]; };
        void main() {
            uint i = gl_WorkGroupID.x * gl_NumWorkGroups.y + gl_WorkGroupID.y;
            a[i] = float(gl_GlobalInvocationID.x);
            b[i] = float(gl_GlobalInvocationID.y);
        }
    """)
    a, b = mgr.tensor(np.zeros([16, 8])), mgr.tensor(np.zeros([16, 8]))
    algorithm = mgr.algorithm([a, b], code, (16, 8, 1))
    mgr.sequence().record(ops[0]([a, b])).record(kp.OpAlgoDispatch(algorithm)).record(ops[1]([a, b])).eval()
    rows, columns = np.indices((16, 8))
    assert np.all(a.data() == rows.ravel()) and np.all(b.data() == columns.ravel())


def test_dtypes_are_not_checked_against_the_shader(mgr, multiply, ops):
    """A Kompute test binds a uint32 tensor where the shader has floats."""
    left, right = mgr.tensor_t(np.float32([1.5, 2, 3])), mgr.tensor_t(np.uint32([2, 3, 4]))
    out = mgr.tensor_t(np.zeros(3, np.float32))
    params = [left, right, out]
    mgr.sequence().record(ops[0](params)).record(kp.OpAlgoDispatch(mgr.algorithm(params, multiply))).record(
        ops[1]([out])
    ).eval()
    assert np.all(out.data() != left.data() * right.data())


def test_compile_source():
    code = kp.Shader.compile_source(MULTIPLY)
    assert isinstance(code, bytes) and code[:4] == b"\x03\x02\x23\x07"
    with_definition = MULTIPLY.replace("* right", "* FACTOR * right")
    assert kp.Shader.compile_source(with_definition, "main", [("FACTOR", "2")])[:4] == code[:4]
    assert (
        kp.Shader.compile_source(with_definition, entryPoint="main", definitions=[("FACTOR", "2")])[:4]
        == code[:4]
    )
