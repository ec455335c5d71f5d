"""An operation that the validation layer reports."""

from __future__ import annotations

import kompute_py as kp


class Breaks(kp.OpBase):
    """Records a fill at an offset that is no multiple of 4."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.reads, self.writes = [], [tensor]

    def record(self, cmd):
        import vulkan as vk

        vk.vkCmdFillBuffer(cmd.vk_command_buffer, self.tensor.vk_buffer, 3, 4, 0)
