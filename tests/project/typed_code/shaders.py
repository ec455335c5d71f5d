# pyright: strict
"""Shaders, kernels, algorithms and their compile options."""

from pathlib import Path

import numpy as np
from typing_extensions import Unpack, assert_type

import kompute_py as kp
from kompute_py.typing import KernelOptions, Language, ShaderSource

mgr = kp.manager()
spirv = kp.compile("void main() {}", language="glsl", target="vulkan1.1", optimize="size")
assert_type(spirv, bytes)
kp.compile("void main() {}", language="gsl")  # error
kp.compile("void main() {}", target=1.9)  # error
kp.compile("void main() {}", optimize="fast")  # error
kp.compile("void main() {}", compiler="fxc")  # error
kp.compile("void main() {}", definess={})  # error

k = mgr.kernel("void main() {}", language="hlsl", name="k", defines={"N": 3}, entry="main", watch=False)
assert_type(k, kp.Kernel)
mgr.kernel("void main() {}", langage="hlsl")  # error
mgr.kernel("void main() {}", language="hsl")  # error
mgr.kernel("void main() {}", target=2)  # error
mgr.kernel(3)  # error
mgr.kernel(Path("blur.comp"))
mgr.kernel(np.zeros(5, np.uint32))
mgr.kernel(k, entry="blur")
mgr.kernel(kp.ShaderModule(spirv))
kp.ShaderModule("void main() {}", language="slang", target="vulkan1.3")
kp.ShaderModule("void main() {}", langauge="slang")  # error
kp.ShaderModule("void main() {}", optimise=True)  # error
kp.check(spirv, mgr, language="glsl", optimize=False)
kp.check(spirv, mgr, optimise=False)  # error
assert_type(kp.check(spirv), list[kp.Finding])
assert_type(kp.disassemble(k), str)
kp.decompile(spirv, "glsl")
kp.decompile(spirv, "wgsl")  # error
k.to("hlsl")
k.to("msl")  # error
kp.assemble("; SPIR-V", target=1.4)  # error

a = mgr.tensor([1, 2])
array = np.zeros(3, np.float32)
assert_type(k(a, out=array, factor=2.0), np.ndarray[tuple[int], np.dtype[np.float32]])
assert_type(k.submit(a, out=a), kp.Fence)
assert_type(k.bind(a, out=a), kp.OpKernel)
assert_type(k.specialize(N=3), kp.Kernel)
assert_type(k.module.language, Language | None)

algorithm = mgr.algorithm([a, mgr.image(np.zeros((2, 2))).sampled(), mgr.sampler()], spirv, (1, 1, 1))
assert_type(algorithm, kp.Algorithm)
mgr.algorithm([array], spirv)  # error
mgr.algorithm([a], 3)  # error


def load(source: ShaderSource, **options: Unpack[KernelOptions]) -> kp.Kernel:
    return mgr.kernel(source, **options)


load("blur.comp", optimize=False)
load("blur.comp", optmize=False)  # error
