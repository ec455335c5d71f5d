"""Bases of the operations that tests register."""

from __future__ import annotations

import kompute_py as kp


class Like(kp.CustomOp):
    """Operations whose result has the shape and the dtype of their first tensor."""

    def select(self, ksel: kp.FunctionSelection) -> None:
        x = ksel.arg_tensor(0)
        ksel.return_new_tensor(x.shape, x.dtype)
