"""Kernels, functions and programs over Dask arrays: blocks run on the devices of many processes and machines.

Needs Dask (the extra ``dask``). Import it as ``import kompute_py.dask``, or use ``kp.dask``.

Dask splits the array, moves blocks, runs again what a lost worker had, and shows progress; this module runs a
block on the worker's device. A kernel, a function or an entry of a program is sent by its content, with no
source and no Manager: each worker process uses its own, `kp.manager()`, or one that `ManagerPlugin` made.
"""

from __future__ import annotations

import inspect
import pickle
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from . import ops
from ._base.digest import digest
from ._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    kind_of,
)
from ._base.public import offer
from ._device.names import one_or_several
from ._kernels.kernel import Kernel
from ._manager.current import current, present
from ._manager.default import set_manager
from ._manager.manager import Manager
from ._memory.memory import Memory
from ._programs.program import Program, ProgramEntry

try:
    import dask
    import dask.array as da
    from dask.array.utils import validate_axis
    from dask.utils import has_keyword
    from distributed import WorkerPlugin
    from distributed.protocol.pickle import dumps
except ImportError as _error:
    raise FailedPreconditionError(
        f"kompute_py.dask needs Dask ({_error}): pip install 'kompute-py[dask]'"
    ) from None

if TYPE_CHECKING:
    from ._device.annotations import DeviceLike

    _Plugin = object
else:
    _Plugin = WorkerPlugin

__all__ = ["ManagerPlugin", "delayed", "map_blocks", "map_overlap", "reduction"]

if not TYPE_CHECKING:  # so that a checker of types knows the names that there are
    __getattr__, __dir__ = offer(__name__, __all__)

_Work = Callable[..., Any]
"""A Kernel, a Function, a ProgramEntry, or a function of NumPy arrays."""
_IN_STAGES = {"sum", "prod", "max", "min", "any", "all", "amax", "amin", "logsumexp"}
_IN_STAGES |= {"nansum", "nanprod", "nanmax", "nanmin", "logical_and", "logical_or"}
"""The functions of `kp.ops` and NumPy that give the whole of their own results for blocks."""
_MOST_LOADED = 64
"""The number of kernels and programs that a Manager keeps loaded for the tasks to come."""


def map_blocks(
    work: _Work,
    *arrays: Any,
    dtype: Any = None,
    chunks: Any = None,
    drop_axis: Any = (),
    new_axis: Any = None,
    name: str | None = None,
    **arguments: Any,
) -> Any:
    """Calls `work` with each block of Dask arrays; returns the Dask array of the results.

    ::

        image = da.from_zarr("image.zarr")
        brighter = kp.dask.map_blocks(scale, image, factor=2.0)

    `work` is a kernel, a function of `kp.ops` or one of yours, an entry of a program, a program with one
    entry, or any function of NumPy arrays. It is called with the blocks, as NumPy arrays, then with
    `arguments` (push constants of a kernel, ``axis=1`` of a function). It gives one array; an output that
    the call of a kernel leaves out has the block's shape, without `chunks` and the like. Numbers and NumPy
    arrays among `arrays` are given as they are to numbers, and in blocks to arrays. A function with a
    parameter `block_id` gets the block's place, such as (0, 2), one with `block_info` what Dask says of it.

    `dtype` is that of the results, by default that of the first array. `chunks`, `drop_axis` and `new_axis`
    are those of ``dask.array.map_blocks``, for results of other shapes than the blocks have. `name` stands
    in Dask's task names and on its dashboard, by default the kernel's or function's.

    Nothing runs before the result is computed. Raises ArgumentTypeError if `work` is none of these or no
    Dask array is given. When a task runs, it raises the errors of the call; and InvalidArgumentError for a
    result of another dtype, or of another shape than the blocks without `chunks`, instead of wrong numbers.

    >>> import dask.array as da, kompute_py.dask
    >>> x = da.arange(6, chunks=3, dtype=np.float32)
    >>> kp.dask.map_blocks(kp.ops.multiply, x, 2.0).compute()
    array([ 0.,  2.,  4.,  6.,  8., 10.], dtype=float32)
    """
    task = _task(work, "map_blocks", name)
    result = _result(arrays, dtype, "map_blocks")
    keeps = chunks is None and new_axis is None and not (drop_axis or drop_axis == 0)
    return da.map_blocks(
        _Block(task, result.dtype, keeps, arguments),
        *arrays,
        work=_apart(task),
        dtype=result.dtype,
        chunks=chunks,
        drop_axis=drop_axis,
        new_axis=new_axis,
        token=task.name,
        meta=result,
    )


def map_overlap(
    work: _Work,
    *arrays: Any,
    depth: Any,
    boundary: Any = "reflect",
    dtype: Any = None,
    name: str | None = None,
    **arguments: Any,
) -> Any:
    """Calls `work` with each block of Dask arrays and a halo of its neighbours' elements.

    ::

        smooth = kp.dask.map_overlap(blur, volume, depth=2)

    `depth` is the halo's width, for each axis or by axis in a dict, and `boundary` what lies beyond the
    array: "reflect", "nearest", "periodic", a number, or "none" (blocks at the border have less), as in
    ``dask.array.map_overlap``; a list has one for each array. The result of a call has the shape of what it
    was given, and the halo is cut off. The rest is as for `map_blocks`.

    Raises ArgumentTypeError if `work` cannot be called, or something other than Dask arrays is given.

    >>> import dask.array as da, kompute_py.dask
    >>> x = da.arange(8, chunks=4, dtype=np.float32)
    >>> kp.dask.map_overlap(kp.ops.flip, x, depth=1).compute()
    array([3., 2., 1., 0., 7., 6., 5., 4.], dtype=float32)
    """
    task = _task(work, "map_overlap", name)
    for each in arrays:
        if not isinstance(each, da.Array):
            raise ArgumentTypeError(
                f"map_overlap needs a dask.array.Array, not {kind_of(each)}: make one with "
                "dask.array.from_array; give the halo as depth=, and numbers by name"
            )
    result = _result(arrays, dtype, "map_overlap")
    return da.map_overlap(
        _Block(task, result.dtype, True, arguments),
        *arrays,
        work=_apart(task),
        depth=depth,
        boundary=boundary,
        dtype=result.dtype,
        token=task.name,
        meta=result,
    )


def reduction(
    work: _Work,
    array: Any,
    *,
    combine: _Work | None = None,
    axis: Any = None,
    keepdims: bool = False,
    dtype: Any = None,
    split_every: Any = None,
    name: str | None = None,
    **arguments: Any,
) -> Any:
    """Reduces a Dask array in two stages: `work` each block, then `combine` the results, in a tree.

    ::

        total = kp.dask.reduction(kp.ops.sum, volume, dtype=np.float64)
        largest = kp.dask.reduction(kp.ops.max, volume, axis=0)

    Both are called with an array, ``axis=`` (a tuple) and ``keepdims=True``, as NumPy's reductions are;
    `arguments` go to `work` alone. `combine` is `work` by default, which is right for sums, products,
    maxima, minima, any and all; for a mean, divide the sum. `axis` is an int, several, or all (None).
    `split_every` is the number of results that one call combines.

    Sums of floats depend on the blocks: each is summed on its own. `dtype` is that of the result, by default
    the array's; with another, `work` and `combine` get ``dtype=``, too. The rest is as for `map_blocks`.

    Raises InvalidArgumentError for a function of `kp.ops` or NumPy that does not combine its own results,
    such as ``std``, without `combine`.

    >>> import dask.array as da, kompute_py.dask
    >>> x = da.arange(10, chunks=4, dtype=np.float32)
    >>> float(kp.dask.reduction(kp.ops.sum, x).compute())
    45.0
    """
    task = _task(work, "reduction", name)
    result = _result([array], dtype, "reduction")
    called = str(getattr(work, "__name__", ""))
    if (
        combine is None
        and called not in _IN_STAGES
        and any(getattr(each, called, None) is work for each in (ops, np))
    ):
        raise InvalidArgumentError(
            f"reduction: {called} of the results of {called} for blocks is not {called} of the array. Give "
            "combine= if results of blocks can be combined, as counts by kp.ops.sum; take a mean from a sum, "
            "kp.dask.reduction(kp.ops.sum, x) / x.size, and a variance from those of x and of x * x"
            + (f"; or use Dask's own: da.{called}" if hasattr(da, called) else "")
        )
    more = {} if dtype is None else {"dtype": result.dtype}
    combined = task if combine is None else _task(combine, "reduction", name)
    axes = range(array.ndim) if axis is None else one_or_several(axis)
    axes = validate_axis(tuple(axes), array.ndim)

    def stage(task: _Task, array: Any, arguments: Mapping[str, Any]) -> Any:
        chunks = [(1,) * len(each) if i in axes else each for i, each in enumerate(array.chunks)]
        block = _Block(task, result.dtype, False, {**arguments, "axis": axes, "keepdims": True})
        options = {"chunks": chunks, "dtype": result.dtype, "meta": result, "token": task.name}
        return da.map_blocks(block, array, work=_apart(task), **options)

    found = stage(task, array, {**arguments, **more})
    together = max(2, int((split_every or 16) ** (1 / max(1, len(axes)))))
    while True:
        found = found.rechunk(dict.fromkeys(axes, together), method="tasks")
        found = stage(combined, found, more)
        if all(found.numblocks[i] == 1 for i in axes):
            return found if keepdims else found.squeeze(axes)


def delayed(work: _Work, name: str | None = None) -> Any:
    """`work` as a function of ``dask.delayed``: a call of it is a task, and gives NumPy's arrays.

    Raises ArgumentTypeError if `work` cannot be called.

    >>> import kompute_py.dask
    >>> kp.dask.delayed(kp.ops.sum)(np.arange(5.0)).compute()
    array(10.)
    """
    # Not dask.delayed's own name=: that is the whole key, and other work of this name would be taken for it.
    task = _task(work, "delayed", name)
    return partial(dask.delayed(_Call(task.name), pure=True), _apart(task))


class ManagerPlugin(_Plugin):
    """A Manager for each worker process of a cluster: ``client.register_plugin(ManagerPlugin())``.

    `devices`, one or several, are dealt out in turn to the workers of each machine, in the order in which
    they ask for one; a worker that is started again gets its device again. Each is a device as `kp.Manager`
    takes it, such as a URI with options. By default all take the best device. `preload` lists programs; their
    pipelines are made before the first block comes. `options` are those of `kp.Manager`, such as
    ``memory_limit="1 GiB"``. When the worker ends, its Manager is destroyed.

    Raises ArgumentTypeError if `preload` has something other than a Program, InvalidArgumentError for
    an empty `devices`. A worker raises the errors of `kp.Manager`.

    >>> import kompute_py.dask
    >>> plugin = kp.dask.ManagerPlugin(memory_limit="1 GiB")
    """

    name = "kompute_py"
    """Under which Dask keeps it: another plugin of this name takes its place."""

    def __init__(
        self,
        devices: DeviceLike | Iterable[Any] | None = None,
        preload: Iterable[Program] = (),
        **options: Any,
    ) -> None:
        self._devices = None if devices is None else one_or_several(devices)
        if self._devices == []:
            raise InvalidArgumentError("ManagerPlugin: devices is empty; leave it out for the best device")
        self._preload = list(preload)
        for each in self._preload:
            if not isinstance(each, Program):
                raise ArgumentTypeError(f"ManagerPlugin: preload has {kind_of(each)}; give programs")
        self._options = options

    async def setup(self, worker: Any) -> None:
        """Makes the Manager. Dask calls it when a worker begins."""
        device = None if self._devices is None else self._devices[await _turn(worker) % len(self._devices)]
        self._manager = Manager(device, **self._options)
        set_manager(self._manager)
        for program in self._preload:
            program.on(self._manager).preload()

    def teardown(self, worker: Any) -> None:
        """Destroys the Manager. Dask calls it when a worker ends."""
        made: Manager | None = self.__dict__.pop("_manager", None)
        if made is not None:
            made.destroy()


async def _turn(worker: Any) -> int:
    """The number of a worker among those of its machine, in the order in which they ask for it. The scheduler
    keeps the order: two that ask at the same time are told apart.
    """
    named = worker.name != worker.address  # Dask's name for workers without one
    who = str(worker.name) if named else worker.nanny or worker.address  # the same when it is started again
    place = ["kompute_py.dask", worker.ip]
    await worker.scheduler.set_metadata(keys=[*place, who], value=True)
    return list(await worker.scheduler.get_metadata(keys=place)).index(who)


# -- a task -------------------------------------------------------------------------------------------------


class _Task:
    """Work that is sent by content. In each process it is loaded once, and called with NumPy's arrays."""

    def __init__(self, content: bytes, name: str, takes: tuple[str, ...] = ()) -> None:
        """`takes` are the parameters that Dask gives by name: "block_id", "block_info"."""
        self.name = self.__name__ = name
        self.takes = takes
        self.token = digest(content).hex()
        self._content = content

    def run(self, arguments: tuple[Any, ...], keywords: dict[str, Any], shape: tuple[int, ...] | None) -> Any:
        """The result of a call. `shape` is that of an output which a kernel's call leaves out."""
        work = _loaded(self.token, self._content)
        if isinstance(work, (Kernel, ProgramEntry)):  # they may write their arguments, which are Dask's
            arguments = tuple(
                [np.array(each) if isinstance(each, np.ndarray) else each for each in arguments]
            )
            target = work._target(arguments, keywords) if isinstance(work, ProgramEntry) else work
            if isinstance(target, Kernel):
                left_out = None if shape is None else _left_out(target, arguments, keywords)
                if left_out is not None and shape is not None:
                    keywords = {**keywords, left_out.name: np.zeros(shape, left_out.dtype)}
                with _idle(target) as work:
                    return _on_host(work(*arguments, **keywords))
            if target.loaded.running.acquire(blocking=False):
                target.loaded.running.release()
            else:  # another thread calls it: their transfers and work overlap from now on
                target.loaded.bind()
        return _on_host(work(*arguments, **keywords))

    def __reduce__(self) -> Any:
        return _Task, (self._content, self.name, self.takes)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + len(self._content)

    def __dask_tokenize__(self) -> Any:
        return self.token


def _on_host(found: Any) -> Any:
    return found.read() if isinstance(found, Memory) else found


_copies: weakref.WeakKeyDictionary[Kernel, list[Kernel]] = weakref.WeakKeyDictionary()


@contextmanager
def _idle(kernel: Kernel) -> Iterator[Kernel]:
    """The kernel, or a copy if another thread calls it: calls of one kernel take turns."""
    with _lock:
        copies = _copies.setdefault(kernel, [])
        for each in (kernel, *copies):
            if each._lock.acquire(blocking=False):
                break
        else:
            with current(kernel.manager):
                each = pickle.loads(pickle.dumps(kernel))
            copies.append(each)
            each._lock.acquire()
    try:
        yield each
    finally:
        each._lock.release()


def _left_out(kernel: Kernel, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """The only output that a call of a kernel leaves out, if it is an array of numbers of any length, and not
    one for each workgroup.
    """
    if "out" in named:
        return None
    version = kernel._version
    parameters = version.signature.parameters
    left = [i for i in range(len(arguments), len(parameters)) if parameters[i].name not in named]
    left = [i for i in left if parameters[i].access == "write"]
    if len(left) != 1 or version.launches.code.counts_groups(left[0]):
        return None
    (found,) = (parameters[i] for i in left)
    return found if found.holds_numbers else None


class _Call:
    """Calls a task, under its name."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, task: _Task, /, *arguments: Any, **keywords: Any) -> Any:
        return task.run(arguments, keywords, None)

    def __dask_tokenize__(self) -> Any:
        return "kompute_py.dask", self.__name__


class _Block:
    """Calls a task with blocks and these arguments, and checks the result: Dask believes what it is told."""

    def __init__(self, task: _Task, dtype: np.dtype[Any], keeps: bool, arguments: Mapping[str, Any]) -> None:
        """Each call is given the task, which may be large: see `_apart`."""
        self._dtype, self._keeps, self._arguments = dtype, keeps, dict(arguments)
        self._takes, self._token, self.__name__ = task.takes, task.token, task.name

    @property
    def __signature__(self) -> inspect.Signature:
        """In which Dask looks for the parameters that it gives by name."""
        names = ("computing_meta", *self._takes)
        return inspect.Signature([inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in names])

    def __call__(
        self, *blocks: Any, work: _Task | None = None, computing_meta: bool = False, **more: Any
    ) -> Any:
        if computing_meta:  # Dask asks for an example while the graph is made, where no device has to be
            return np.empty((0,) * blocks[0].ndim, self._dtype)
        shape = None
        if self._keeps:
            shape = np.broadcast_shapes(*(block.shape for block in blocks if isinstance(block, np.ndarray)))
        assert work is not None
        found = work.run(blocks, {**self._arguments, **more}, shape)
        if isinstance(found, tuple) and len(found) == 1:
            found = found[0]
        if not isinstance(found, (np.ndarray, np.generic)):
            raise InvalidArgumentError(
                f"{self.__name__} gives {kind_of(found)} for a block, and a Dask array needs one array"
            )
        if found.dtype != self._dtype:
            raise InvalidArgumentError(
                f"{self.__name__} gives {found.dtype}, and the Dask array was made for {self._dtype}: give "
                f"dtype=np.{found.dtype}"
            )
        if shape is not None and found.shape != shape:
            raise InvalidArgumentError(
                f"{self.__name__} gives the shape {found.shape} for a block of {shape}: give chunks=, "
                "drop_axis= or new_axis= as for dask.array.map_blocks"
            )
        return found

    def __dask_tokenize__(self) -> Any:
        return "kompute_py.dask", self._token, str(self._dtype), self._keeps, self._arguments


def _apart(task: _Task) -> Any:
    """A task as a datum of the graph: Dask brings it, with a program's parameters, to each worker once, and
    not with each block.
    """
    return dask.delayed(task, name=f"{task.name}-content-{task.token}", traverse=False)


_lock = threading.Lock()


def _loaded(token: str, content: bytes) -> Any:
    """The work of a content, the same object for each task of this process on its current Manager."""
    with _lock:
        here = present()
        known = {} if here is None else here._loaded
        made = known.pop(token, None)
        if made is None:
            with nullcontext() if here is None else current(here):
                made = pickle.loads(content)
        known[token] = made  # the newest is the last
        while len(known) > _MOST_LOADED:
            del known[next(iter(known))]
    return made


def _task(work: Any, who: str, name: str | None) -> _Task:
    """The task of a kernel, a function, an entry or another function."""
    if isinstance(work, Program):
        if len(work) != 1:
            raise InvalidArgumentError(
                f"{who} takes one entry of a program, program[name]; it has {', '.join(work)}"
            )
        (work,) = work.values()
    if not callable(work):
        raise ArgumentTypeError(
            f"{who} takes a kernel, a function or an entry of a program, not {kind_of(work)}"
        )
    named = name or getattr(work, "__name__", None) or getattr(work, "name", type(work).__name__)
    # Functions of a script or a notebook go by value: one that is written again is another one.
    known = () if isinstance(work, (Kernel, ProgramEntry)) else ("block_id", "block_info")
    return _Task(dumps(work), str(named), tuple(each for each in known if has_keyword(work, each)))


def _result(arrays: Iterable[Any], dtype: Any, who: str) -> np.ndarray[Any, Any]:
    """An empty array with the dtype of the results, by default that of the first Dask array, and its axes."""
    for array in arrays:
        if isinstance(array, da.Array):
            return np.empty((0,) * array.ndim, array.dtype if dtype is None else dtype)
    raise ArgumentTypeError(f"{who} needs a dask.array.Array: make one with dask.array.from_array")
