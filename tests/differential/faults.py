"""Faults put back on purpose, for which the random programs must find a mismatch."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

import kompute_py as kp
from kompute_py import _native
from kompute_py._custom import selection
from kompute_py._kernels import donation

from .program import Array, Program


class UnorderedImports(Program):
    """Tensors over one array do not know of each other: its memory has a second address (another mapping of
    one file), through which it is imported again.
    """

    def array(self, nbytes: int) -> tuple[Array, Array]:
        file = os.memfd_create("pages")
        try:
            os.ftruncate(file, nbytes)
            one, other = (np.frombuffer(mmap.mmap(file, nbytes), np.uint32) for _ in range(2))
        finally:
            os.close(file)
        return one, other


class TakenAtTheEnd(Program):
    """A call takes a donated tensor when it ends; until then other threads have it, too."""

    @staticmethod
    def seed() -> None:
        take, end = donation.take, donation.end

        def none(tensors: Any, taker: str) -> list[donation.Donated]:
            return [donation.Donated(tensor, tensor, True) for tensor in tensors]

        def late(donated: Any, taker: str, reused: Any) -> None:
            kept = [id(each) for each in reused]
            for given, _, _ in donated:
                taken = take([given], taker)
                end(taken, taker, [each.taken for each in taken if id(given) in kept])

        donation.take, donation.end = none, late
        donation.give_back = lambda donated: None


class GivenTwice(Program):
    """A result has the memory of a donated tensor, although views, recordings and arrays have it, too."""

    @staticmethod
    def seed() -> None:
        exchange = _native.exchange_buffer
        _native.exchange_buffer = lambda tensor, made: (found := exchange(tensor, made)) and (found[0], True)


class UnnotedWrites(Program):
    """What the host writes is not noted, so an older host copy is sent over it in silence."""

    @staticmethod
    def store(part: Any, data: Array) -> None:
        if isinstance(part, kp.Tensor):
            part.copy_from(part.manager.tensor_t(data)).wait()
        else:
            part.write(data)


class NotesBesideTheKey(Program):
    """Kernels are kept without the notes of `select` in the key, so a call gets another shape's."""

    @staticmethod
    def seed() -> None:
        selection.in_full = lambda notes: ""


class UntoldRebuilds(Program):
    """Recordings do not hear that an algorithm of theirs was rebuilt."""

    @staticmethod
    def seed() -> None:
        _native.Algorithm.supersede = lambda algorithm, other: None
