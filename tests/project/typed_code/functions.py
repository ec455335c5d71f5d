# pyright: strict
"""Functions of `kp.ops` and kernels: arguments and results."""

import array

import numpy as np
from typing_extensions import assert_type

import kompute_py as kp
from kompute_py.typing import Array

mgr = kp.manager()
x = np.zeros((4, 4), np.float32)
t = mgr.tensor(x)
image = mgr.image(x)
total = np.zeros((), np.float32)

assert_type(kp.ops.exp(t), kp.Tensor)
assert_type(kp.ops.exp(x), Array)
assert_type(kp.ops.exp(2.0), Array)
assert_type(kp.ops.exp(array.array("f", [1, 2])), Array)
assert_type(kp.ops.exp(image), kp.Tensor | kp.Image)
assert_type(kp.ops.add(x, t), kp.Tensor)
assert_type(kp.ops.add(t, 1), kp.Tensor)
assert_type(kp.ops.add(x, 1j), Array)
assert_type(kp.ops.abs(x), Array)
assert_type(kp.ops.sum(t, 0, keepdims=True), kp.Tensor)
assert_type(kp.ops.sum(image, (0, 1)), kp.Tensor)
assert_type(kp.ops.sum(t, out=total), np.ndarray[tuple[()], np.dtype[np.float32]])
assert_type(kp.ops.sum(x, axis=[0, 1], wait=mgr.sequence().eval_async()), Array)
assert_type(kp.ops.arange(4), kp.Tensor)
assert_type(kp.ops.topk(x, 2), tuple[Array, Array])
assert_type(kp.ops.topk(t, 2, largest=False), tuple[kp.Tensor, kp.Tensor])
assert_type(kp.ops.concatenate([t, x], axis=1), kp.Tensor)
assert_type(kp.ops.concatenate([x, x]), Array)
assert_type(kp.ops.einsum("ij,jk,kl->il", t, t, t), kp.Tensor)
assert_type(kp.ops.pad(x, ((1, 1), (2, 2)), "wrap"), Array)
assert_type(kp.ops.repeat(x, [1, 2, 1, 2], 0), Array)
assert_type(kp.ops.sort(t, None, donate=True), kp.Tensor)
assert_type(kp.ops.astype(t, np.int32), kp.Tensor)
assert_type(kp.ops.clip(t, None, 2.0), kp.Tensor)
assert_type(kp.ops.median([1.0, 2.0]), Array)
assert_type(kp.ops.median(t, axis=1), kp.Tensor)
assert_type(kp.ops.average(t, weights=t), kp.Tensor)
assert_type(kp.ops.average(t, weights=t, returned=True), tuple[kp.Tensor, kp.Tensor])
assert_type(kp.ops.average(x, 0, x), Array)
assert_type(kp.ops.unique(t), kp.Tensor)
assert_type(kp.ops.unique(x, return_counts=True), tuple[Array, Array])
assert_type(kp.ops.unique(t, return_index=True, return_inverse=True), tuple[kp.Tensor, kp.Tensor, kp.Tensor])
assert_type(kp.ops.histogram(t, "auto")[0], kp.Tensor)
kp.ops.histogram(x, bins=[0, 1, 2])[1].tolist()
kp.ops.quantile(t, [0.1, 0.9], axis=(0,)).read()
kp.ops.tensordot(t, t, axes=([0], [0])).read()
kp.ops.matrix_norm(t, ord=2).read()
kp.ops.matmul(t.T, t.T[0]).read()
assert_type(kp.ops.split(t, 2), list[kp.Tensor])
assert_type(kp.ops.nonzero(x), tuple[Array, ...])
assert_type(kp.ops.matmul.bind(t, t).results, tuple[kp.Tensor, ...])
assert_type(kp.ops.matmul.submit(t, t, out=t), kp.Fence)
assert_type(kp.ops.sum.specialize(axis=0), kp.Function)

kp.ops.matmul(t, [[1.0], [2.0]]).read()
assert_type(kp.ops.exp([1, 2.0]), Array)

kp.ops.exp()  # error
kp.ops.exp([["1"]])  # error
kp.ops.exp(t, t)  # error
kp.ops.exp("t")  # error
kp.ops.exp(t, outt=t)  # error
kp.ops.exp(t, out="t")  # error
kp.ops.add(t)  # error
kp.ops.add(t, None)  # error
kp.ops.sum(t, axis="0")  # error
kp.ops.sum(t, 0, np.float32, True)  # error
kp.ops.sum(t, keepdim=True)  # error
kp.ops.sum([t, t])  # error
kp.ops.max(t, axis=1.5)  # error
kp.ops.concatenate(t, t)  # error
kp.ops.concatenate([t, "x"])  # error
kp.ops.matmul(t)  # error
kp.ops.topk(t, 2.5)  # error
kp.ops.take(t)  # error
kp.ops.pad(t, mode="wrap")  # error
kp.ops.arange("3")  # error
kp.ops.arange(t)  # error
kp.ops.where(t > t)  # error
kp.ops.median(t, axes=1)  # error
kp.ops.median(t, axis="rows")  # error
kp.ops.quantile(t, q="half")  # error
kp.ops.average(t).reed()  # error
kp.ops.unique(t).reed()  # error
kp.ops.histogram(t, bins=10)[1].reed()  # error
a, b, c = kp.ops.unique(t, return_counts=True)  # error
kp.ops.quantile(t)  # error
kp.ops.unique(t, counts=True)  # error
kp.ops.split(t, 2.5)  # error
kp.ops.sort(t, descend=True)  # error
kp.ops.sort(t, wait=3)  # error
kp.ops.exp.bind(x)  # error
kp.ops.exp.bind(t, axis=0)  # error
kp.ops.sum.submit(x)  # error
kp.ops.fft(t, norm=1)  # error
kp.ops.full((2, 2))  # error
kp.ops.elementwise(3)  # error

blur: kp.Kernel[kp.Tensor] = mgr.kernel("void main() {}")
assert_type(blur(t), kp.Tensor)
assert_type(blur.specialize(N=3)(t), kp.Tensor)
assert_type(blur(t, out=t), None)
blur(t).raed()  # error
both: kp.Kernel[tuple[kp.Tensor, Array]] = mgr.kernel("void main() {}")
first, second = both(t)
assert_type(first, kp.Tensor)
assert_type(second, Array)
first, second, third = both(t)  # error
inside: kp.Kernel[None] = mgr.kernel("void main() {}")
assert_type(inside(t), None)

lists = [mgr.zeros(3, np.uint32), mgr.zeros(3), mgr.image(x)]
kp.OpSyncDevice([mgr.zeros(3, np.uint32), mgr.zeros(3)])
seq = mgr.sequence().record(kp.OpSyncDevice(lists))
