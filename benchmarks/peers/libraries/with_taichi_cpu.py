"""Taichi on its own back end for the CPU, without Vulkan."""

from __future__ import annotations

import taichi as ti
from with_taichi import Taichi


class TaichiCpu(Taichi):
    """The same kernels."""

    arch = ti.cpu


LIBRARY = TaichiCpu
