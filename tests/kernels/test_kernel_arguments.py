"""What kernels take and what they refuse: arguments, images, constants, and whether each error says
enough."""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.kernel_sources import FIXED, SCALE


@pytest.fixture
def scale(mgr):
    return mgr.kernel(SCALE, name="scale")


def test_a_block_of_one_member_takes_a_dict_too(mgr):
    kernel = mgr.kernel(
        """
        #version 450
        layout(local_size_x = 1) in;
        layout(set = 0, binding = 0) writeonly buffer A { float a[]; };
        layout(set = 0, binding = 1) uniform U { vec4 tint; };
        void main() { a[gl_GlobalInvocationID.x] = tint[gl_GlobalInvocationID.x]; }
        """
    )
    np.testing.assert_array_equal(kernel(np.zeros(4, np.float32), {"tint": (1, 2, 3, 4)}), [1, 2, 3, 4])
    with pytest.raises(kp.InvalidArgumentError, match="did you mean 'tint'"):
        kernel(np.zeros(4, np.float32), {"tin": (1, 2, 3, 4)})


def test_arrays_are_called_arrays(mgr):
    kernel = mgr.kernel(FIXED, name="fixed")
    cells = np.zeros((2, 4), np.uint32)
    with pytest.raises(
        kp.ArgumentTypeError, match=r"fixed: 'first' is .*; the array of shape \(17,\), float32 .*array\.view"
    ):
        kernel(np.zeros(17, np.float32), bind={"grid": cells})
    with pytest.raises(
        kp.InvalidArgumentError, match=r"fixed: 'first'.* 68 bytes.*the array of shape \(16,\), int32 has 64"
    ):
        kernel(np.zeros(16, np.int32), bind={"grid": cells})


@pytest.mark.parametrize(
    ("declared", "shape", "made", "mend"),
    [
        ("image3D", (4, 4), {}, r"is image3D; .* is image2D: make it with dims=3"),
        ("image2D", (4, 4, 4), {"dims": 3}, r"is image2D; .* is image3D: make it with dims=2"),
        ("image2DArray", (4, 4), {}, r"is image2DArray; .* is image2D: make it with dims=2, layers=True"),
        ("uimage2D", (4, 4), {}, r"is uimage2D; .* is image2D: make it with a format of uint components"),
        (
            "image2D",
            (4, 4),
            {"format": "r32i"},
            r"is image2D; .* is iimage2D: make it with a format of float",
        ),
        ("imageCube", (4, 4), {}, r"is imageCube; .* is image2D: kompute_py makes no image of that kind"),
    ],
)
def test_an_image_is_of_the_kind_that_the_shader_declares(mgr, declared, shape, made, mend):
    at, value = ("ivec2" if declared.endswith("2D") else "ivec3"), "uvec4" if declared[0] == "u" else "vec4"
    kernel = mgr.kernel(
        f"""
        #version 450
        layout(local_size_x = 1) in;
        layout(binding = 0) writeonly uniform {declared} picture;
        void main() {{ imageStore(picture, {at}(0), {value}(1)); }}
        """,
        name="draw",
    )
    image = mgr.image_empty(shape, **{"format": "r32f"} | made)
    with pytest.raises(kp.InvalidArgumentError, match=f"draw: 'picture' {mend}"):
        kernel(image)
    with pytest.raises(kp.InvalidArgumentError, match=f"draw: 'picture' {mend}"):
        kernel.bind(image)


def test_missing_push_constants_are_shown_with_their_types(mgr, scale):
    with pytest.raises(kp.InvalidArgumentError, match=r"missing push constant factor: it has float factor"):
        scale(mgr.zeros(4), mgr.zeros(4))


def test_a_push_constant_by_position_is_told_its_name(mgr, scale):
    with pytest.raises(kp.InvalidArgumentError, match=r"3 were given: scale.*by name: factor="):
        scale(mgr.zeros(4), mgr.zeros(4), 2.0)


def test_constants_decide_how_large_a_block_is(mgr):
    kernel = mgr.kernel(
        """
        #version 450
        layout(local_size_x = 1) in;
        layout(constant_id = 0) const int TAPS = 5;
        layout(binding = 0) writeonly buffer Out { float result; };
        layout(binding = 1) uniform U { vec4 taps[TAPS]; };
        void main() { result = taps[TAPS - 1].x; }
        """,
        name="taps",
    )
    result = mgr.zeros(1)
    for count in (5, 3, 9):
        special = kernel.specialize(TAPS=count)
        assert special.signature.text("taps") == f"taps(out float result, vec4[{count}] taps)"
        special(result, mgr.tensor(np.arange(4 * count, dtype=np.float32).reshape(count, 4)), grid=1)
        assert result.read() == 4 * count - 4
        with pytest.raises(
            kp.InvalidArgumentError, match=rf"'taps' \(vec4\[{count}\]\) has {16 * count} bytes"
        ):
            special(result, mgr.zeros((count - 1, 4)), grid=1)
    with pytest.raises(kp.InvalidArgumentError, match="80 bytes"):
        kernel(result, mgr.zeros((4, 4)), grid=1)


def test_what_the_device_cannot_run_names_the_kernel(mgr):
    head = "#version 450\nlayout(local_size_x_id = 0) in; layout(constant_id = 1) const int ROOM = 1;\n"
    kernel = mgr.kernel(
        head + "layout(binding = 0) buffer A { float a[]; }; shared float room[ROOM];\n"
        "void main() { room[0] = a[0]; a[0] = room[int(a[1])]; }",
        name="big",
    )
    a = mgr.zeros(4)
    for constants, expected in (
        ({"0": 0}, r"big: its constants give it the local size \(0, 1, 1\)"),
        ({"0": 10**6}, r"big: Local size 1000000 x 1 x 1.*maxComputeWorkGroupSize"),
        (
            {"ROOM": 10**8},
            r"big: The shader uses 400000000 bytes of shared memory.*maxComputeSharedMemorySize",
        ),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=expected):
            kernel.specialize(**constants)(a)
    kernel(a)


class Own:
    """An array of another library."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self.array, dtype)


def test_lists_take_the_bindings_dtype_and_must_fit(mgr):
    kernel = mgr.kernel(
        """
        #version 450
        layout(local_size_x = 1) in;
        layout(binding = 0) readonly buffer X { int x[]; };
        layout(binding = 1) writeonly buffer Y { float y[]; };
        void main() { y[gl_GlobalInvocationID.x] = float(x[gl_GlobalInvocationID.x]); }
        """,
        name="k",
    )
    y = np.zeros(2, np.float32)
    for fine in ([3, -4], (3.0, -4.0), np.array([3, -4], np.int32), Own(np.array([3, -4], np.int32))):
        np.testing.assert_array_equal(kernel(fine, y), [3, -4])
    for wrong, error in (
        ([1.5, 2], kp.InvalidArgumentError),
        ([2**31, 0], kp.InvalidArgumentError),
        ([2**80, 0], kp.InvalidArgumentError),
        ([float("nan"), 0], kp.InvalidArgumentError),
        ([1, [2, 3]], kp.ArgumentTypeError),
        (["1", "2"], kp.ArgumentTypeError),
        ([None, 1], kp.ArgumentTypeError),
        ([1j, 1], kp.ArgumentTypeError),
        (Own(np.zeros(2, np.float32)), kp.ArgumentTypeError),
    ):
        with pytest.raises(error, match="k: 'x' is"):
            kernel(wrong, y)


def test_a_kernel_is_no_operation_and_says_how_to_make_one(mgr, scale):
    with pytest.raises(kp.ArgumentTypeError, match=r"not Kernel; make one: scale\.bind"):
        mgr.sequence().record(scale)


def test_arguments_called_self(mgr):
    kernel = mgr.kernel(
        """
        #version 450
        layout(local_size_x = 1) in;
        layout(binding = 0) writeonly buffer A { float self[]; };
        layout(binding = 1) writeonly buffer B { float other[]; };
        void main() { self[0] = 2; other[0] = 3; }
        """
    )
    a, b = mgr.zeros(1), mgr.zeros(1)
    kernel(self=a, other=b)
    kernel.submit(self=a, other=b).wait()
    mgr.sequence().record(kernel.bind(self=a, other=b)).eval()
    assert (a.read(), b.read()) == (2, 3)


def test_a_constant_does_not_take_the_default_of_the_local_size(mgr):
    kernel = mgr.kernel(
        """
        #version 450
        layout(local_size_x_id = 0) in;
        layout(constant_id = 0) const uint TILE = 8;
        layout(binding = 0) buffer A { uint a[]; };
        void main() { a[0] = TILE; a[1] = gl_WorkGroupSize.x; }
        """
    )
    seen = mgr.zeros(2, np.uint32)
    assert kernel.spec_constants == {"TILE": 8}
    assert kernel.local_size[0] == 1
    with pytest.raises(kp.InvalidArgumentError, match=r"8 \(TILE\) and 1 .*specialize\({'TILE': 8}\)"):
        kernel(seen, groups=1)
    kernel.specialize(TILE=4)(seen, groups=1)
    assert seen.read().tolist() == [4, 4]


@pytest.mark.parametrize(
    "source",
    [
        "#version 450\nlayout(local_size_x = 1) in;\nvoid main() { nowhere = 1; }",
        '#version 450\n#include "nowhere.h"\nvoid main() {}',
        "#version 450\nvoid other() {}",
        "#version 450\nlayout(location = 0) out vec4 c;\nvoid main() { c = vec4(1); }",
        "; SPIR-V\nOpNowhere\n",
    ],
)
def test_compile_errors_name_the_shader(mgr, source):
    with pytest.raises(kp.ShaderCompileError, match=r"^<blur>(:\d|: )") as caught:
        mgr.kernel(source, name="blur")
    assert caught.value.diagnostics[0].file == "<blur>"
    with pytest.raises(kp.ArgumentTypeError, match="name is an int"):
        mgr.kernel(source, name=5)


def test_a_module_is_checked_against_a_target_that_is_given(mgr):
    source = "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}"
    old, new = (kp.compile(source, target=target) for target in ("vulkan1.0", "vulkan1.2"))
    with pytest.raises(
        kp.InvalidArgumentError, match=r"blur is not valid SPIR-V for target='vulkan1\.0': .*1\.5"
    ):
        mgr.kernel(new, name="blur", target="vulkan1.0")
    assert mgr.kernel(old, name="blur", target="vulkan1.0").name == "blur"


@pytest.mark.parametrize(
    ("declared", "wanted"), [("rgba8", "mgr.image(..., format='rgba8')"), ("", "mgr.image(...)")]
)
def test_an_array_for_an_image_names_the_call_and_the_format(mgr, declared, wanted):
    layout = f"binding = 0, {declared}" if declared else "binding = 0"
    kernel = mgr.kernel(f"""
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout({layout}) uniform writeonly image2D picture;
void main() {{ imageStore(picture, ivec2(gl_GlobalInvocationID.xy), vec4(1.0)); }}""")
    with pytest.raises(kp.ArgumentTypeError) as raised:
        kernel(np.zeros((4, 4, 4), np.uint8))
    assert str(raised.value).endswith(f"make it with {wanted}")
