"""Calls with memory beyond what a device's shaders reach through one binding, in parts of the first axis.

A part is a call of the same operation. What is computed for each element, or along other axes, needs no more.
A reduction of the first axis combines the results of parts; a scan along it puts the last result of a part in
front of the next one. Recorded operations are not in parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._base.arrays import host_empty
from .._base.errors import UnimplementedError
from .._custom.arguments import outs_of
from .._functions.function import Function
from .._functions.pictures import first_image, picture_like, tensor_of
from .._memory.image import Image
from .._memory.needs import current as planning
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from .walks import TooLargeError


class InParts(Function):
    """An operation with calls that may be in parts."""

    __module__ = "kompute_py"  # as the class of others

    def _general(
        self, exactly: Any, args: tuple[Any, ...], /, out: Any = None, donate: Any = (), **named: Any
    ) -> Any:
        try:
            return super()._general(exactly, args, out, donate, **named)
        except TooLargeError as error:
            if donate not in ((), None, False):
                raise
            values = self._bind(args, named)
            for name, each in zip(self._names, values, strict=True):
                if isinstance(each, np.ndarray) and 0 in each.strides:  # elements that stand for many
                    host_empty(each.shape, each.dtype, f"{self.__name__}: {name}")
            return self._in_parts(values, outs_of(self._declaration, out), error)

    def _in_parts(self, values: list[Any], outs: tuple[Any, ...], error: TooLargeError) -> Any:
        raise NotImplementedError

    def _part(self, values: list[Any], outs: tuple[Any, ...], **other: Any) -> None:
        """A call for a part, without the way into parts; `other` has other arguments than `values`."""
        named = {**dict(zip(self._names, values, strict=True)), **other}
        super()._general(None, (), outs, **named)


def arrays_of(values: Sequence[Any]) -> list[Any]:
    """The tensors and arrays among arguments."""
    return [each for each in values if hasattr(each, "shape") and not isinstance(each, np.generic)]


def new_like(who: str, tensors: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Any:
    """Memory for results, like that of the first tensor: an array if there is none."""
    first = next((each for each in tensors if isinstance(each, (Tensor, StridedView))), None)
    base = first.base if isinstance(first, StridedView) else first
    if base is None:
        return host_empty(shape, dtype, who)
    if planning.plan is not None:
        return planning.plan.makes(shape, dtype, base.memory_type())
    return base.manager.empty(shape, dtype, base.memory_type())


def _parts(
    values: Sequence[Any], shape: tuple[int, ...], tensors: Sequence[Any], error: TooLargeError
) -> Iterator[tuple[int, int, list[Any]]]:
    """For each part of the first axis its start, its end and the values. Raises `error` if there are none."""
    inner = math.prod(shape[1:])
    most = max((each.dtype.itemsize for each in tensors), default=1) * inner
    rows = error.most // most if most else 0
    rows -= rows % 256 if rows >= 256 else 0  # parts begin where shaders can bind them
    if not shape or not 0 < rows < shape[0]:
        raise error
    for start in range(0, shape[0], rows):
        end = min(start + rows, shape[0])
        yield (
            start,
            end,
            [
                each[start:end]
                if getattr(each, "ndim", -1) == len(shape) and each.shape[0] == shape[0]
                else each
                for each in values
            ],
        )


class ElementsInParts(InParts):
    """An elementwise operation."""

    def _in_parts(self, values: list[Any], outs: tuple[Any, ...], error: TooLargeError) -> Any:
        """A call over ranges of the first axis."""
        image = first_image((*values, *outs))
        if image is not None:
            return self._over_tensors(values, outs, error, image)
        shape = error.results[0].shape
        tensors = [each for each in values if hasattr(each, "shape") and not isinstance(each, np.generic)]
        outs = results = outs or tuple(
            new_like(self.__name__, tensors, shape, spec.dtype) for spec in error.results
        )
        if all(type(each) is not StridedView and each.shape == shape for each in (*tensors, *outs)):
            shape = (math.prod(shape),)
            values = [each.reshape(-1) if hasattr(each, "shape") and each.shape else each for each in values]
            outs = tuple(each.reshape(-1) for each in outs)
        for start, end, part in _parts(values, shape, [*tensors, *outs], error):
            self._part(part, tuple(each[start:end] for each in outs))
        return results[0] if self._declaration.single else results

    def _over_tensors(
        self, values: list[Any], outs: tuple[Any, ...], error: TooLargeError, image: Image
    ) -> Any:
        """A call over ranges of tensors that stand for images."""
        if planning.plan is not None:
            raise UnimplementedError(
                f"{self.__name__}: the device takes this image in parts, as tensors; ask for a tensor"
            )
        manager, wanted = image.manager, outs
        if not wanted:
            pictures = [picture_like(image, each.shape, each.dtype) for each in error.results]
            wanted = tuple(
                manager.empty(spec.shape, spec.dtype)
                if picture is None
                else picture.made(manager, spec.shape, image.memory_type())
                for spec, picture in zip(error.results, pictures, strict=True)
            )
        made = tuple(
            manager.empty(each.shape, each.dtype) if isinstance(each, Image) else each for each in wanted
        )
        given = [tensor_of(each) if isinstance(each, Image) else each for each in values]
        self._in_parts(given, made, error)
        for tensor, each in zip(made, wanted, strict=True):
            if isinstance(each, Image):
                each.copy_from(tensor).wait()
        return wanted[0] if self._declaration.single else wanted


class LinesInParts(InParts):
    """A reduction or a scan: ``self._op.joined`` says how parts of the axis that it goes along come together,
    and raises the error if it does not know.
    """

    def _in_parts(self, values: list[Any], outs: tuple[Any, ...], error: TooLargeError) -> Any:
        """A call over ranges of the first axis."""
        if first_image((*values, *outs)) is not None:
            raise error
        tensors = arrays_of(values)
        shape = np.broadcast_shapes(*(each.shape for each in tensors))
        named = dict(zip(self._names, values, strict=True))
        outs = outs or tuple(
            new_like(self.__name__, tensors, each.shape, each.dtype) for each in error.results
        )
        parts = list(_parts(values, shape, [*tensors, *outs], error))
        if not self._op.goes_along_first(named, len(shape)):  # type: ignore[attr-defined]
            if any(each.shape[:1] != shape[:1] for each in outs):
                raise error  # all axes are one
            for start, end, part in parts:
                self._part(part, tuple(each[start:end] for each in outs))
        else:
            self._op.joined(self, named, parts, outs, error)  # type: ignore[attr-defined]
        return outs[0] if self._declaration.single else outs
