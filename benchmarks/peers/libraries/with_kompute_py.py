"""kompute_py: recorded sequences, and write() and read()."""

from __future__ import annotations

import numpy as np
from base import GLSL, LOCAL_SIZE, Library, Multiplication, Transfer

import kompute_py as kp


class KomputePy(Library):
    """One Manager with the defaults of a user's."""

    def __init__(self) -> None:
        self._manager = kp.Manager(pipeline_cache_dir="")
        self._spirv = kp.compile(GLSL)

    def about(self) -> str:
        return f"kompute_py {kp.__version__}, {self._manager.get_device_properties()['device_name']}"

    def transfer(self, array: np.ndarray) -> Transfer:
        tensor, out = self._manager.empty(array.shape), np.zeros_like(array)
        return Transfer(lambda: tensor.write(array), lambda: tensor.read(out))

    def multiplication(self, left: np.ndarray, right: np.ndarray) -> Multiplication:
        manager = self._manager
        tensors = [manager.tensor(left), manager.tensor(right), manager.zeros(left.shape)]
        a, b, product = tensors
        algorithm = manager.algorithm(tensors, self._spirv, (left.size // LOCAL_SIZE, 1, 1))
        dispatch = kp.OpAlgoDispatch(algorithm)
        whole = manager.sequence()
        whole.record(kp.OpSyncDevice([a, b])).record(dispatch).record(kp.OpSyncLocal([product]))
        only = manager.sequence().record(dispatch)
        host_a, host_b, host_product = (tensor.data() for tensor in tensors)
        out = np.zeros_like(left)

        def round_trip() -> np.ndarray:
            host_a[:] = left
            host_b[:] = right
            whole.eval()
            np.copyto(out, host_product)
            return out

        return Multiplication(round_trip, only.eval, product.read)


LIBRARY = KomputePy
