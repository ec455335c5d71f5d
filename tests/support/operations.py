"""Operations that tests register or record."""

from __future__ import annotations

import kompute_py as kp


class Like(kp.CustomOp):
    """Operations whose result has the shape and the dtype of their first tensor."""

    def select(self, ksel: kp.FunctionSelection) -> None:
        x = ksel.arg_tensor(0)
        ksel.return_new_tensor(x.shape, x.dtype)


class Breaks(kp.OpBase):
    """Records a fill at an offset that is no multiple of 4, which the validation layer reports."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.reads, self.writes = [], [tensor]

    def record(self, cmd):
        import vulkan as vk

        vk.vkCmdFillBuffer(cmd.vk_command_buffer, self.tensor.vk_buffer, 3, 4, 0)
