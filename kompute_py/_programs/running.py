"""A part of a program on one Manager: its memory, and its entries as kernels and recordings that run."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .._base.arrays import check_out, host_empty, matching, to_array
from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
    kind_of,
    shown,
)
from .._base.texels import ImageSize, parse_format, with_alpha
from .._base.types import MemoryTypes
from .._device.transfers import on_host
from .._files.tensors import load_tensors
from .._functions.given import require_separate
from .._kernels.donation import donating, with_taken
from .._kernels.kernel import Kernel
from .._memory.image import Image
from .._memory.making import new_tensor
from .._memory.memory import Memory
from .._memory.peer import HostSteps
from .._memory.stand_ins import Fresh, made_natively
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from .._recording.host_call import OpHostCall
from .._recording.operations import OpBase
from .._recording.sequence import Sequence
from .._recording.streams import failures_of, is_split, managers_of, submit_streams
from .._shaders.module import ShaderModule, naming
from .._shaders.signature import MISSING
from .._sync.fence import Fence
from .._sync.ordered import NO_ORDER, Order, fence_of, order_of, ordered, stream_of
from . import content as c
from .modules import check_constants, module_of, values_of

if TYPE_CHECKING:
    from .._files.index import TensorIndex
    from .._files.progress import Progress
    from .._manager.manager import Manager

_BYTES = np.dtype(np.uint8)
_OF_RANGES: dict[str, Callable[[list[Any]], Any]] = {
    "copy": _native.op_copy, "sync device": _native.op_sync_device, "sync local": _native.op_sync_local
}  # fmt: skip
_MOST_REPEATED = 64
"""Calls of an entry with the same memory that are kept recorded."""


class OpProgram(OpBase):
    """An entry of a program with its arguments bound, to be recorded: made by ``program.entry.bind(...)``.

    `results` are the tensors and images that it writes. Raises ArgumentTypeError if it is called: entries
    create it.

    >>> x, y = mgr.tensor([1, 2, 3]), mgr.zeros(3)
    >>> program = kp.Program.record(kp.OpMult([x, x, y]), inputs={"x": x}, outputs={"y": y})
    >>> operation = program.main.bind(mgr.tensor([4, 5, 6]))
    >>> mgr.sequence().record(operation).eval()
    <kp.Sequence ...>
    >>> operation.results[0].tolist()
    [16.0, 25.0, 36.0]
    """

    __module__ = "kompute_py"

    __slots__ = {
        "_name": "",
        "_parts": "",
        "results": "The tensors and images that it writes.",
    }

    _plain = False  # recorded part by part

    def __init__(self, name: str, parts: Iterable[Any], results: tuple[Any, ...] = ()) -> None:
        if not isinstance(name, str) or not isinstance(parts, tuple):
            raise ArgumentTypeError("An OpProgram is made by an entry of a program: program.entry.bind(...)")
        self._name = name
        self._parts = parts
        self.results: tuple[Any, ...] = results

    def __repr__(self) -> str:
        return f"<kp.OpProgram {self._name}, {len(self._parts)} operations>"


class Loaded:
    """A part on a Manager. Memory and shaders are made when an entry needs them first."""

    def __init__(
        self,
        part: c.Part,
        files: Mapping[str, bytes],
        contents: TensorIndex,
        hosts: Mapping[str, Callable[..., object]],
        progress: Progress | bool | None,
        manager: Manager,
    ) -> None:
        self.part = part
        self.manager = manager
        self.first = {value.block: value for value in reversed(part.values)}
        """The first value in each block."""
        self._progress = progress
        self._files, self._contents, self._hosts = files, contents, hosts
        self.running = threading.RLock()
        """Held by a call that uses the entries' own memory, which they share, and while one is submitted."""
        self.is_bound = False
        """See `bind`."""
        self._lock = threading.RLock()
        """Held while something is made."""
        self._blocks: dict[int, Any] = {}
        self._shaders: dict[int, Any] = {}
        self._algorithms: dict[Any, Any] = {}
        self._cold: list[Any] = []
        """Those that `warm_up` has not seen."""
        self._entries: dict[str, Any] = {}

    def entry(self, name: str) -> Kernel | Recorded:
        """The entry, made when it is first asked for."""
        with self._lock:
            if name not in self._entries:
                entry = next(each for each in self.part.entries if each.name == name)
                made = self._kernel(entry.kernel) if entry.kernel else Recorded(self, entry)
                self._entries[name] = made
            return self._entries[name]  # type: ignore[no-any-return]

    def bind(self) -> None:
        """Notes that others use the memory, other recordings or threads, so that calls over arrays go through
        memory of their own.
        """
        if not self.is_bound:
            with self.running:
                self.is_bound = True
                for each in self._entries.values():
                    if isinstance(each, Recorded):
                        each.arrays.clear()  # they go through this memory

    # -- shaders ---------------------------------------------------------------------------------------------

    def module(self, number: int) -> ShaderModule:
        """A shader, checked against itself as far as a file may be wrong."""
        controls = self.manager._info["float_controls"]
        return module_of(self.part.shaders[number], self._files, controls)

    def _kernel(self, form: c.KernelForm) -> Kernel:
        module = self.module(form.shader)
        kernel = Kernel(self.manager, module, name=module.name, bounds="zero" if form.zero else "check")
        given = values_of(module, form.constants)
        return kernel.specialize(given) if given else kernel

    def _shader(self, number: int) -> tuple[ShaderModule, _native.Shader]:
        found = self._shaders.get(number)
        if found is None:
            module = self.module(number)
            if "PhysicalStorageBufferAddresses" in module.reflection["capabilities"]:
                raise UnimplementedError(
                    f"{module.name} follows addresses of memory, which a recording of a program cannot do"
                )
            with naming(module.name):
                found = self._shaders[number] = module, module._on(self.manager._native)
        return found  # type: ignore[no-any-return]

    # -- memory ----------------------------------------------------------------------------------------------

    def block(self, number: int) -> Any:
        """The memory of a block, with what it begins with: a Tensor of bytes, or an Image."""
        with self._lock:
            if number not in self._blocks:
                self._blocks[number] = self._made(self.part.blocks[number], number)
            return self._blocks[number]

    def _made(self, block: c.Block, number: int) -> Any:
        if block.contents and block.contents not in self._contents:
            raise NotFoundError(
                f"The program has no contents for {shown(block.contents)}: give them, "
                "kp.load_program(path, parameters=...)"
            )
        where = MemoryTypes.__members__[block.memory_type]
        name = self.name_of(number) or block.contents
        if block.image is not None:
            width, height, depth, layers = block.image.size
            form = ImageSize(block.image.dims, width, height, depth, layers if block.image.arrayed else None)
            made: Any = Image._empty(self.manager, form, parse_format(block.image.format), where)
            texels = np.zeros(made.shape, made.dtype)
            if block.contents:
                texels = self._contents.read(block.contents).view(made.dtype).reshape(made.shape)
            made.write(texels)
        elif block.contents:
            names = {name: block.contents}
            loaded = load_tensors(
                self._contents, self.manager, names=names, memory_type=where, progress=self._progress
            )
            made = loaded[name].reshape(-1).view(_BYTES) if block.nbytes else loaded[name]
        else:
            made = new_tensor(self.manager, (block.nbytes,), _BYTES, where, b"\0")
        if block.host:
            made.data()[:] = self._contents.read(block.host).reshape(-1).view(made.dtype)
            made._native.note_match()  # that they differ, if they do, was the script's will
        made.name = name
        return made

    def name_of(self, number: int) -> str:
        """The name of the first value in a block; "" if it has none."""
        value = self.first.get(number)
        return "" if value is None else value.name

    def memory_of(self, value: c.Value) -> Any:
        """A value as a Tensor or an Image."""
        block = self.block(value.block)
        if isinstance(block, Image):
            return block
        return block._part(value.offset, value.shape, c.dtype_of(value.dtype))

    def named(self, role: str) -> dict[str, Any]:
        """The values of a role, by name."""
        with self._lock:
            return {v.name: self.memory_of(v) for v in self.part.values if v.role == role and v.name}

    def reset(self) -> None:
        """Gives all memory what it began with."""
        with self.running:
            for number, memory in list(self._blocks.items()):
                fresh = self._made(self.part.blocks[number], number)
                memory.write(fresh.read())
                if self.part.blocks[number].host:
                    memory.data()[:] = fresh.data()

    # -- operations ------------------------------------------------------------------------------------------

    def range(self, range: c.Range) -> Any:
        """The native memory of a range."""
        native = self.block(range.block)._native
        if isinstance(self.block(range.block), Image):
            return native
        return _native.view(native, range.offset, range.nbytes)

    def parts(self, steps: Iterable[c.Step]) -> list[Any]:
        """Steps as what a sequence of this Manager records: native operations, and steps of the host."""
        with self._lock:
            return [self._host_call(step) if step.kind == "host" else self._operation(step) for step in steps]

    def _operation(self, step: c.Step) -> Any:
        if step.kind == "dispatch":
            return self._dispatch(step)
        ranges = [self.range(each) for each in step.ranges]
        if step.kind in _OF_RANGES:
            return _OF_RANGES[step.kind](ranges)
        if step.kind == "fill":
            return _native.op_fill(ranges, step.patterns)
        if step.kind == "repeat":
            swaps = [(self.range(one), self.range(other)) for one, other in step.swaps]
            return _native.op_repeat([self._operation(each) for each in step.steps], step.times, swaps)
        regions: list[Any] = [
            region if isinstance(self.block(each.block), Image) else None
            for each, region in zip(step.ranges, step.regions, strict=True)
        ]
        return _native.op_copy_region(ranges[0], regions[0], ranges[1], regions[1])

    def _dispatch(self, step: c.Step) -> Any:
        assert step.shader is not None
        key = step.shader, step.constants, step.arguments
        algorithm = self._algorithms.get(key)
        if algorithm is None:
            module, shader = self._shader(step.shader)
            check_constants(module, step.constants)
            arguments = []
            for each in step.arguments:
                how: Any = each.texels
                if how is None and each.sampler is not None:
                    how = self.manager._native.sampler(*each.sampler)
                memory = each.range and self.range(each.range)
                arguments.append((each.set, each.binding, each.element, memory, how))
            constants = step.constants.data, step.constants.places
            with naming(module.name):
                algorithm = self.manager._native.algorithm(shader, arguments, (1, 1, 1), *constants, b"")
            algorithm.name = step.name
            self._algorithms[key] = algorithm
            self._cold.append(algorithm)
        indirect = None if step.indirect is None else self.range(step.indirect)
        with naming(step.name):
            return _native.op_dispatch(algorithm, step.groups, step.push, None, True, indirect)

    def warm_up(self) -> None:
        """Dispatches each shader that was made with no groups, and waits: some drivers compile then."""
        with self._lock:
            cold, self._cold = self._cold, []
        for fence in [_native.submit_once(_native.op_warm_up(each)) for each in cold]:
            fence.wait(-1.0)

    def _host_call(self, step: c.Step) -> HostSteps:
        function = self._hosts.get(step.name)
        if function is None:
            raise NotFoundError(
                f"The program calls the function {shown(step.name)} between two steps: give it, "
                f"kp.load_program(path, hosts={{{step.name!r}: function}})"
            )
        used = {each: self.memory_of(each) for each in (*step.reads, *step.writes)}
        reads, writes = ([used[each] for each in values] for values in (step.reads, step.writes))
        call = functools.partial(function, *used.values())
        return OpHostCall(call, reads=reads, writes=writes, name=step.name)._native


class Recorded:
    """The recordings of an entry on a Manager, with their own memory."""

    def __init__(self, loaded: Loaded, entry: c.Entry) -> None:
        self.name = entry.name
        self.loaded = loaded
        self.forms = [RecordedForm(self, each) for each in entry.recordings]
        self.arrays, self.table = (
            _native.CallTable(
                tensor_type=Tensor,
                manager=loaded.manager,
                missing=MISSING,
                bindings=[*{value.name: None for form in self.forms for value in form.inputs}, "out"],
                most_entries=_MOST_REPEATED,
            )
            for _ in range(2)
        )
        """Calls over arrays, and over the memory of earlier ones. Used under `Loaded.running`."""
        if not any(form.inputs or form.outputs for form in self.forms):
            self.arrays = self.table

    def form(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[RecordedForm, list[Any]]:
        """The recording for these arguments, and the arguments in its order.

        Of several, that of the shapes and dtypes which NumPy sees. Lists and numbers have no dtype of their
        own: NumPy's decides between recordings of the same shapes.
        """
        bound = [(form, given) for form in self.forms if (given := form.bound(args, named)) is not None]
        if not bound:
            raise ArgumentTypeError(
                f"{self.name} takes each of its inputs once, by position or by name; it is given {len(args)} "
                f"by position and {', '.join(map(shown, named)) or 'none'} by name: {self._texts()}"
            )
        if len(self.forms) > 1:
            seen = {id(each): _seen(each, self.name) for each in (*args, *named.values())}
            for listed in (True, False):
                found = [
                    (form, given)
                    for form, given in bound
                    if all(_fits(seen[id(g)], v, listed) for g, v in zip(given, form.inputs, strict=True))
                ]
                if len(found) == 1:
                    return found[0]
            has = ", ".join(f"{each.dtype}{list(each.shape)}" for each, _ in seen.values())
            raise InvalidArgumentError(
                f"{self.name} was recorded for other shapes and dtypes than {has}: {self._texts()}. Give "
                "arrays or Tensors of one of these"
            )
        return bound[0]

    def _texts(self) -> str:
        return "; ".join(text_of(self.name, self.loaded.part, form.recording) for form in self.forms)

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        running = self.loaded.running
        running.acquire()  # `with` takes three times as long
        try:
            result = self.arrays.call(args, named)
        finally:
            running.release()
        return self._prepared(RecordedForm.call, args, **named) if result is NotImplemented else result

    def submit(self, /, *args: Any, wait: Any = (), signal: Any = (), **named: Any) -> Fence:
        """See `ProgramEntry.submit`."""
        order = order_of(wait, signal)
        with self.loaded.running:
            submitted = self.table.submit(args, named, order)
            if submitted is NotImplemented:
                return self._prepared(functools.partial(RecordedForm.submit, order=order), args, **named)  # type: ignore[no-any-return]
        return fence_of(submitted, self.loaded.manager)

    def _prepared(
        self,
        run: Callable[..., Any],
        args: tuple[Any, ...],
        /,
        out: Any = None,
        donate: Any = (),
        wait: Any = (),
        signal: Any = (),
        **named: Any,
    ) -> Any:
        """`run`, a way to run the recording for these arguments, which the tables do not know."""
        form, given = self.form(args, named)
        names = [value.name for value in form.inputs]
        tensors = {name: each for name, each in zip(names, given, strict=True) if isinstance(each, Tensor)}
        written = out if isinstance(out, (tuple, list)) else (out,)
        with (
            donating(self.name, names, tensors, donate, written) as (taken, _),
            ordered(wait, signal),
        ):
            given = with_taken(given, taken)
            result = run(form, given, out)
            if not taken:
                with self.loaded.running:
                    form.remember(self, args, named, given, out)
        return result

    def bind(self, /, *args: Any, out: Any = None, **named: Any) -> OpProgram:
        """See `ProgramEntry.bind`."""
        form, given = self.form(args, named)
        return form.bind(given, out)

    def preload(self) -> None:
        """Makes memory and pipelines."""
        for form in self.forms:
            with self.loaded.running:
                form.read_ahead(self)
        self.loaded.warm_up()


class RecordedForm:
    """One recording on a Manager."""

    def __init__(self, entry: Recorded, recording: c.Recording) -> None:
        self.name = entry.name
        self.loaded = entry.loaded
        self.recording = recording
        values = self.loaded.part.values
        self.inputs = [values[number] for number in recording.inputs]
        self.outputs = [values[number] for number in recording.outputs]
        self._sequence: Sequence | None = None
        """The recording over its own memory."""
        self._idle: list[list[Any]] = []
        """Memory for inputs and outputs of calls that do not use its own, as often as they overlapped."""

    # -- arguments -------------------------------------------------------------------------------------------

    def bound(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any] | None:
        """The arguments in the order of the inputs; None if they are not one for each."""
        if not named and len(args) == len(self.inputs):
            return list(args)
        names = [value.name for value in self.inputs]
        given = {**dict(zip(names, args, strict=False)), **named}
        if len(args) + len(named) == len(names) and given.keys() == set(names):
            return [given[name] for name in names]
        return None

    def _fitting(self, value: c.Value, given: Any, alone: str = "", is_out: bool = False) -> Any:
        """An argument for an input or, with `is_out`, of ``out=``: memory of this Manager, or an array of the
        value's dtype and shape. `alone` is the name of a call that takes memory alone.
        """
        what = f"{self.name}: {'out for ' if is_out else ''}{value.name}"
        if isinstance(given, Memory):
            given._require_init(f"be given to {self.name}")
            if given._manager is not self.loaded.manager:
                raise InvalidArgumentError(f"{what} belongs to another Manager: copy it over with .to(mgr)")
            return _same(what, value, given)
        if alone:
            raise ArgumentTypeError(
                f"{what} is {kind_of(given)}; {alone} works on Tensors and Images: make one, "
                "mgr.tensor_t(array)"
            )
        if is_out:
            check_out(given, c.dtype_of(value.dtype), value.shape, lambda: what)
            return self._on_host(what, given)
        array, listed = _seen(given, what)
        if isinstance(array, StridedView):
            array = array.read()
        if listed and array.shape == value.shape:
            array = matching(array, c.dtype_of(value.dtype), array.size, what).reshape(value.shape)
        image = self.loaded.part.blocks[value.block].image
        if image is not None and parse_format(image.format).channels == 4:
            array = with_alpha(array) if array.shape == (*value.shape[:-1], 3) else array
        array = np.ascontiguousarray(_same(what, value, array), c.dtype_of(value.dtype))
        return self._on_host(what, array.reshape(value.shape))

    def _on_host(self, what: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The array, if the Manager takes arrays."""
        if self.loaded.manager._guard is not None:
            on_host(self.loaded.manager._guard, what, array.nbytes)
        return array

    def _ins(self, given: list[Any], alone: str = "") -> list[Any]:
        """A call's memory or arrays for the inputs. `alone` is as in `_fitting`."""
        return [self._fitting(value, each, alone) for value, each in zip(self.inputs, given, strict=True)]

    def _outs(self, out: Any, alone: str = "") -> list[Any]:
        """The same for the results."""
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(outs) != len(self.outputs):
            raise InvalidArgumentError(f"{self.name} has {len(self.outputs)} results; out has {len(outs)}")
        for value, each in zip(self.outputs, outs, strict=True):
            self._fitting(value, each, alone, is_out=True)
        require_separate(self.name, outs)
        return outs

    # -- memory ----------------------------------------------------------------------------------------------

    @functools.cached_property
    def own(self) -> list[Any]:
        """The recording's own memory of its inputs and outputs."""
        return [self.loaded.memory_of(each) for each in (*self.inputs, *self.outputs)]

    def new_results(self) -> tuple[Any, ...]:
        """New memory for the results."""
        return tuple([self._like(each) for each in self.outputs])

    def _like(self, value: c.Value) -> Any:
        block, manager = self.loaded.block(value.block), self.loaded.manager
        if isinstance(block, Image):
            return block._like(manager, block._memory_type)
        return new_tensor(manager, value.shape, c.dtype_of(value.dtype))

    # -- running ---------------------------------------------------------------------------------------------

    def call(self, given: list[Any], out: Any) -> Any:
        """The results, once the work is done. Arrays go through the recording's own memory, or through new
        memory if others use that: then calls of several threads wait for each other only to be submitted.
        """
        if self.loaded.is_bound:
            try:
                ways = self._idle.pop()
            except IndexError:
                ways = [self._like(each) for each in (*self.inputs, *self.outputs)]
            result = self._called(given, out, ways)
            self._idle.append(ways)
            return result
        with self.loaded.running:
            return self._called(given, out, self.own)

    def _called(self, given: list[Any], out: Any, ways: list[Any]) -> Any:
        ins = self._ins(given)
        if out is not None:
            outs: Any = self._outs(out)
        elif any(isinstance(each, (Memory, StridedView)) for each in given):
            outs = self.new_results()
        else:
            makes = ((v.name, host_empty(v.shape, c.dtype_of(v.dtype), self.name)) for v in self.outputs)
            outs = [self._on_host(f"{self.name}: {name}", array) for name, array in makes]
        memories = [
            each if isinstance(each, Memory) else way for each, way in zip([*ins, *outs], ways, strict=True)
        ]
        for each, way in zip(ins, memories, strict=False):
            if each is not way:
                way.write(each)
        self._run(memories, None).wait()
        for each, way in zip(outs, memories[len(ins) :], strict=True):
            if each is not way:
                way.read(each)
        return one_of(tuple(outs)) if out is None else out

    def submit(self, given: list[Any], out: Any, order: Order | None) -> Fence:
        """Runs it without waiting."""
        ins = self._ins(given, "submit")
        fresh = self.new_results() if out is None else ()
        return self._run([*ins, *(fresh if out is None else self._outs(out, "submit"))], order, fresh)

    def _run(self, memories: list[Any], order: Order | None, results: tuple[Any, ...] = ()) -> Fence:
        """Submits the recording over this memory."""
        manager = self.loaded.manager
        with self.loaded.running:
            before, pairs, after = self._around(memories)
            streams = [stream_of(manager, self._over(pairs)) if pairs else self.free()]
            streams = [*_recorded(manager, before), *streams, *_recorded(manager, after)]
            native = submit_streams(manager, streams, *(order or NO_ORDER))
        if manager._watch is not None:
            manager._watch()
        return Fence(native, managers_of(streams, manager), (), failures_of(streams), results)

    def read_ahead(self, entry: Recorded) -> None:
        """Makes what a first call asks, and tells the table of calls with arrays."""
        _ = self._only_read, self._forms
        stream = self.free()
        if not is_split(stream):
            stream.build()
        arrays = [np.empty(each.shape, c.dtype_of(each.dtype)) for each in self.inputs]
        self.remember(entry, tuple(arrays), {}, arrays, None)

    def free(self) -> Any:
        """A native recording over its own memory that is not running."""
        if self._sequence is None or self._sequence.is_running():
            operation = OpProgram(self.name, tuple(self._parts))
            self._sequence = Sequence(self.loaded.manager).record(operation)
            self._sequence._fenced = True
        return self._sequence._native

    def remember(
        self,
        entry: Recorded,
        args: tuple[Any, ...],
        named: dict[str, Any],
        given: list[Any],
        out: Any,
    ) -> None:
        """Tells a table of a call with memory alone or arrays alone: it runs the next one."""
        outs = () if out is None else out if isinstance(out, (tuple, list)) else (out,)
        memories = [*given, *outs]
        # Without arguments, results are arrays.
        memory = all(isinstance(each, Memory) for each in memories or self.outputs)
        form = self._forms.get((memory, out is None))
        if form is None or not (memory or self._are_plain((*args, *named.values()), given, memories)):
            return
        over = [*memories, *self.own[len(memories) :]]
        (entry.table if memory else entry.arrays).remember(
            args,
            named if out is None else {**named, "out": out},
            form,
            [*memories, out],
            (),
            record=(lambda: stream_of(self.loaded.manager, self.parts(over))) if memory else self.free,
        )

    def _are_plain(self, values: tuple[Any, ...], given: list[Any], arrays: list[Any]) -> bool:
        """Whether the table can copy the arrays of a call with these `values` to and from own memory."""
        manager = self.loaded.manager
        if self.loaded.is_bound or manager._looks_at_arrays:
            return False
        return all(one is other for one, other in zip(values, given, strict=True)) and all(
            type(each) is np.ndarray and each.dtype is c.dtype_of(value.dtype)
            for each, value in zip(arrays, (*self.inputs, *self.outputs), strict=False)
        )

    @functools.cached_property
    def _forms(self) -> dict[tuple[bool, bool], _native.CallForm]:
        """The forms of calls that the table runs: over memory or arrays, with new results or with `out`."""
        if self._calls_host:
            return {}
        manager, own, count = self.loaded.manager, self.own, len(self.inputs)
        natives = [each._native for each in own]
        slots: list[Any] = [(number, None, number) for number in range(len(own))]
        made = functools.partial(_native.CallForm, parts=(), push=(), after=manager._watch)
        found = {(True, False): made(slots=slots, results=[(len(own), None, None)])}
        if any(isinstance(each, Image) or not each.nbytes for each in own[count:]):
            return found
        several = len(self.outputs) > 1
        fresh = [Fresh(each.shape, c.dtype_of(each.dtype), None, ()) for each in self.outputs]
        new = [(-2 - number, native, 0) for number, native in enumerate(natives[count:])]
        found[True, True] = made(
            slots=[*slots[:count], *new],
            results=[(number, None, None) for number, _, _ in new],
            several=several,
            **made_natively(fresh, manager),
        )
        if any(isinstance(each, Image) for each in own):
            return found
        arrays = [(number, native, number) for number, native in enumerate(natives[:count])]
        makes = [functools.partial(host_empty, each.shape, each.dtype, self.name) for each in fresh]
        results = [(-1, *each) for each in zip(natives[count:], makes, strict=True)]
        found[False, True] = made(slots=arrays, results=results, several=several)
        if len(makes) == 1:
            found[False, False] = made(slots=arrays, results=[(count, natives[-1], None)])
        return found

    @functools.cached_property
    def _calls_host(self) -> bool:
        return any(step.kind == "host" for step in self.recording.steps)

    @functools.cached_property
    def _parts(self) -> list[Any]:
        return self.loaded.parts(self.recording.steps)

    @functools.cached_property
    def _only_read(self) -> set[int]:
        """The numbers of the blocks that steps of the device alone use, and only read."""
        if self._calls_host:
            return set()
        found = _native.frame_uses(stream_of(self.loaded.manager, self._parts), [], [])
        read = {id(each["memory"]) for each in found if not each["written"]}
        return {n for n in c.blocks_of(self.recording.steps) if id(self.loaded.block(n)._native) in read}

    def _around(self, memories: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """How the recording runs over memory for its inputs and outputs: copies before it, memory in the
        place of its own that it only reads, and copies after it.
        """
        before, pairs, after = [], [], []
        values = *self.inputs, *self.outputs
        for number, (value, own, each) in enumerate(zip(values, self.own, memories, strict=True)):
            if each is own:
                continue
            if number >= len(self.inputs):
                after.append(_native.op_copy([own._native, each._native]))
            elif self._stands_for(value, each):
                pairs.append((self.loaded.block(value.block)._native, each._native))
            else:
                before.append(_native.op_copy([each._native, own._native]))
        return before, pairs, after

    def _over(self, pairs: list[Any]) -> list[Any]:
        """The recording with memory in the place of its own."""
        if not pairs:
            return self._parts
        return _native.substituted(stream_of(self.loaded.manager, self._parts), pairs, [])

    def parts(self, memories: list[Any]) -> list[Any]:
        """The recording over memory for its inputs and outputs."""
        before, pairs, after = self._around(memories)
        return [*before, *self._over(pairs), *after]

    def _stands_for(self, value: c.Value, memory: Any) -> bool:
        """Whether steps can use `memory` instead of the block of an input."""
        block = self.loaded.part.blocks[value.block]
        whole = block.image is None and block.nbytes == memory.nbytes
        return whole and type(memory._native) is _native.Buffer and value.block in self._only_read

    def bind(self, given: list[Any], out: Any) -> OpProgram:
        """The recording over these tensors as an operation."""
        ins = self._ins(given, "bind")
        outs = list(self.new_results()) if out is None else self._outs(out, "bind")
        with self.loaded.running:
            self.loaded.bind()
            return OpProgram(self.name, tuple(self.parts([*ins, *outs])), tuple(outs))


def _recorded(manager: Manager, parts: list[Any]) -> list[Any]:
    return [stream_of(manager, parts)] if parts else []


def _same(what: str, value: c.Value, given: Any) -> Any:
    """`given`, if it has the dtype and shape of the value."""
    if given.shape != value.shape:
        raise InvalidArgumentError(f"{what} has shape {given.shape}; it was recorded for {value.shape}")
    if given.dtype.newbyteorder("=") != c.dtype_of(value.dtype):
        raise ArgumentTypeError(
            f"{what} has dtype {given.dtype}; it was recorded for {value.dtype}: convert it with astype(...)"
        )
    return given


def one_of(results: tuple[Any, ...]) -> Any:
    """One result, a tuple of several, or None."""
    return results[0] if len(results) == 1 else results or None


def _seen(given: Any, what: str) -> tuple[Any, bool]:
    """An argument with the shape and dtype that NumPy sees, and whether it had no dtype of its own."""
    if isinstance(given, (Memory, StridedView)):
        return given, False
    listed = not hasattr(given, "__array__") and not hasattr(given, "__dlpack__")
    return to_array(given, what), listed


def _fits(seen: tuple[Any, bool], value: c.Value, any_listed: bool) -> bool:
    """Whether an argument has a value's shape and dtype; with `any_listed` lists have any."""
    given, listed = seen
    same = given.dtype.newbyteorder("=") == c.dtype_of(value.dtype)
    return tuple(given.shape) == value.shape and (same or (listed and any_listed))


def text_of(name: str, part: c.Part, recording: c.Recording) -> str:
    """The signature of a recording on one line."""

    def listed(numbers: Iterable[int]) -> str:
        return ", ".join(part.values[number].text for number in numbers)

    return f"{name}({listed(recording.inputs)}) -> ({listed(recording.outputs)})"
