# pyright: strict
"""Tensors, images and samplers: memory types, formats and filters."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from typing_extensions import assert_type

import kompute_py as kp
from kompute_py.typing import Array, FormatName, MemoryTypeLike

mgr = kp.manager()
x = np.zeros(4, np.float32)

t = mgr.tensor(x, memory_type="device")
mgr.tensor(x, memory_type="devcie")  # error
mgr.tensor(x, kp.MemoryTypes.storage)
mgr.tensor(x, "storge")  # error
mgr.tensor_t(x, "deviceAndHost")
mgr.tensor_t(x, "deviceandhost")  # error
mgr.zeros(3, np.int32, "host")
mgr.empty((2, 3), "float32", memory_type="hots")  # error
mgr.full(3, 1.5, memory_type="storage")
mgr.full(3, 1.5, memory_typ="storage")  # error
mgr.from_host(x, copy="never", semantics="IMMUTABLE_ZERO_COPY")
mgr.from_host(x, copy="sometimes")  # error
kp.Tensor(mgr, x, "devicee")  # error
t.to(mgr, "hostt")  # error
assert_type(t, kp.Tensor[np.float32])
assert_type(t[1:3], kp.Tensor | Any)  # a StridedView if the part is not dense
assert_type(t.read(), np.ndarray[Any, np.dtype[np.float32]])
assert_type(t.fill(0), kp.Fence)
assert_type(t.memory_type(), kp.MemoryTypes)
assert_type(t.to(mgr), kp.Tensor[np.float32])

# Rows of annotations: the element type of a tensor is that of its arrays.
floats: kp.Tensor[np.float32] = mgr.zeros(3)
ints = mgr.tensor_t(np.zeros(3, np.int32))
assert_type(ints, kp.Tensor[np.int32])
assert_type(ints.data(), np.ndarray[Any, np.dtype[np.int32]])
assert_type(ints.dtype, np.dtype[np.int32])
assert_type(mgr.empty(3, np.uint8).numpy(), np.ndarray[Any, np.dtype[np.uint8]])
assert_type(mgr.empty(3, "float32"), kp.Tensor)
unsure: kp.Tensor = ints
floats = ints  # error
mgr.tensor(x, t.memory_type())

with t.map(write=True) as array:
    assert_type(array, np.ndarray[Any, Any])
assert_type(t.map(read=True).array, np.ndarray[Any, Any])
t.map(raed=True)  # error

# Tensors have no arithmetic; arrays read them.
t + 1  # error
-t  # error
t < 3  # error
np.add(t, 1)

image = mgr.image(x, 2, 2, 1, format="r32f")
assert_type(image, kp.Image)
mgr.image(x, 2, 2, 1, format="r32ff")  # error
mgr.image(x, 2, 2, dims=4)  # error
mgr.image(x, 2, 2, dim=2)  # error
mgr.image_t(x, 2, 2, format="R32_SFLOAT", layers=True)
mgr.image_t(x, 2, 2, format="R32_FLOAT")  # error
mgr.image_t(x, 2, 2, memory_type="devic")  # error
mgr.image_empty((2, 2), "rgba8")
mgr.image_empty((2, 2), "rgb8")  # error
assert_type(image.format, FormatName)
mgr.image_empty((2, 2), image.format)
mgr.image_empty((2, 2), next(iter(mgr.image_formats())))

mgr.sampler("linear", "repeat", border="opaque_black")
mgr.sampler("liner")  # error
mgr.sampler("linear", "repeet")  # error
mgr.sampler("linear", ["repeat", "clamp_to_edge"], unnormalized=True)
mgr.sampler("linear", border="black")  # error
mgr.sampler(integers=True)  # error
assert_type(image.sampled("linear", "mirrored_repeat"), kp.SampledImage)
image.sampled("lienar")  # error

loaded = kp.load_tensors("weights.safetensors", mgr, memory_type="storage")
assert_type(loaded["weight"], kp.Tensor)
kp.load_tensors("weights.safetensors", mgr, memory_type="storag")  # error


def upload(data: Array, where: MemoryTypeLike = "device") -> kp.Tensor:
    return mgr.tensor_t(data, where)


# The dtype of a new tensor is checked against an annotation.
given: kp.Tensor[np.int32] = mgr.zeros(3, np.int32)
given = mgr.zeros(3, np.float32)  # error
given = mgr.zeros(3)  # error
given = mgr.empty(3, np.dtype(np.uint8))  # error
given = mgr.full(3, 1, np.int32)
given = mgr.full(3, 1, np.int64)  # error
given = mgr.tensor(np.zeros(3, np.int32))  # error
given = mgr.tensor_t(np.zeros(3, np.int32))
given = mgr.tensor_t(x)  # error
given = mgr.tensor_t(memoryview(b"1234"))
given = mgr.as_tensor(x)  # error
given = mgr.as_tensor([1, 2], np.int32)
given = mgr.as_tensor([1, 2], np.float16)  # error
given = mgr.from_host(np.zeros(3, np.int32))
given = mgr.from_host(x)  # error
given = mgr.shared(3, np.int32)
given = mgr.shared(3, np.float32)  # error
# Those that no checker knows are taken for what the annotation says.
given = mgr.zeros(3, "int32")
given = mgr.zeros(3, int)
given = mgr.empty(3, kp.DataTypes.int)
given = mgr.full(3, 1, "int32")
given = mgr.tensor_t([1, 2, 3])


def several(dtype: DTypeLike, data: ArrayLike, array: Array, kind: "np.dtype[Any]") -> None:
    given: kp.Tensor[np.int32] = mgr.zeros(3, kind)
    given = mgr.tensor_t(array)
    unknown: kp.Tensor = mgr.zeros(3, dtype)
    unknown = mgr.as_tensor(data, dtype)
    unknown = mgr.tensor_t(data)
    del given, unknown


def needs(tensor: kp.Tensor[np.int32]) -> None: ...


needs(mgr.zeros(3, np.int32))
needs(mgr.zeros(3, np.float32))  # error
needs(mgr.tensor_t(x))  # error
