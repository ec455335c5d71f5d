"""From what scripts have (kernels, functions, sequences, operations) to the content of a program."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    UnimplementedError,
    kind_of,
    shown,
)
from .._base.public import Routine
from .._base.types import MemoryTypes
from .._base.warn import warn
from .._compilers.limits import read_file
from .._compilers.settings import of_process
from .._compilers.sources import functions_in
from .._custom.program import Block, check_numbers, compile_program, groups_of, numbers_of
from .._custom.specs import TensorSpec
from .._functions.forming import made_of_specs
from .._functions.function import Function
from .._functions.given import flat
from .._kernels.kernel import Kernel
from .._kernels.operation import OpWatchedKernel
from .._manager.default import manager as default_manager
from .._memory.image import Image
from .._memory.memory import Memory
from .._memory.reach import root_of, whole_words
from .._memory.scratch import pool_of
from .._memory.tensor import Tensor
from .._recording.host_call import HostCall
from .._recording.operations import OpBase
from .._recording.sequence import Sequence
from .._recording.streams import is_split
from .._shaders.module import ShaderModule
from . import content as c

if TYPE_CHECKING:
    from .._manager.manager import Manager

_STEP = 256  # blocks are cut where any device may bind them


class Named(NamedTuple):
    """Memory that has a name in the program."""

    role: str
    name: str
    memory: Any


class Made(NamedTuple):
    """Memory that is still to be made, with what it begins with."""

    nbytes: int
    contents: np.ndarray[Any, Any] | None = None
    memory_type: str = "storage"
    image: c.ImageForm | None = None


def made_of(native: Any, contents: np.ndarray[Any, Any] | None = None) -> Made:
    """The same kind of memory as a script's."""
    image = c.ImageForm(*native.shape) if isinstance(native, _native.Image) else None
    return Made(native.nbytes, contents, MemoryTypes(native.memory_type).name, image)


class _Root:
    """Memory that recordings use."""

    def __init__(self, native: Any, number: int, made: Made | None = None) -> None:
        self.native = native
        self.number = number
        self.made = made
        """Instead of native memory."""
        self.written = self.uploaded = False
        self.temporary = False
        """Whether nobody reads what it has before a call."""


class Recorder:
    """Collects the entries of one part, with the memory that they share."""

    def __init__(self, named: Iterable[Named], temporary: Iterable[Any], portable: bool = False) -> None:
        self.named = list(named)
        self.anywhere = portable
        self.shaders: dict[Any, int] = {}
        self.made: list[c.Shader] = []
        self.files: dict[str, bytes] = {}
        """The bytes of the digests."""
        self.roots: dict[int, _Root] = {}
        self.values: list[c.Value] = []
        self.numbers: dict[Named, int] = {}
        self.entries: list[c.Entry] = []
        self.temporary = {id(_root_of(each)._native) for each in temporary}
        self.scratch: Any = None

    def manager(self) -> Manager:
        """That of the memory with names, else the current one."""
        return self.named[0].memory.manager if self.named else default_manager()  # type: ignore[no-any-return]

    # -- entries ---------------------------------------------------------------------------------------------

    def add(self, name: str, what: Any) -> None:
        """Adds what a script has as entries."""
        signatures = what if isinstance(what, list) and what and isinstance(what[0], tuple) else [what]
        if isinstance(what, Kernel):
            constants = what._version.special
            kernel = c.KernelForm(
                self.shader_of(what.module, what.name),
                c.Constants(constants.data, constants.entries),
                what._version.zero,
            )
            self.entries.append(c.Entry(name, kernel))
        elif isinstance(what, (ShaderModule, os.PathLike)):
            modules = _modules_of(what)
            for module in modules:
                one = len(modules) == 1
                kernel = c.KernelForm(self.shader_of(module, module.name if one else module.entry))
                self.entries.append(c.Entry(name if one else f"{name}.{module.entry}", kernel))
        elif all(isinstance(each, tuple) and each and isinstance(each[0], Routine) for each in signatures):
            for function, *_ in signatures:
                if not hasattr(function, "bind"):
                    raise UnimplementedError(
                        f"{function.__name__} can only be called. To record, use {function._instead}"
                    )
            record = self.portable if self.anywhere else self.function
            made = [record(each[0], each[1:]) for each in signatures]
            self.entries.append(c.Entry(name, None, tuple(made)))
        else:
            manager, streams = _streams_of(name, what, self.manager)
            self.entries.append(c.Entry(name, None, (self.recording(name, streams, manager, self.named),)))

    def function(self, function: Any, args: tuple[Any, ...]) -> c.Recording:
        """A function over memory of its own: `args` are specs, or what stands for them, and values."""
        given = made_of_specs(args, (TensorSpec, Tensor, np.ndarray), self.manager)
        operation = function.bind(*given)
        tensors = [each for each in flat(given) if isinstance(each, Memory)]
        manager = tensors[0].manager if tensors else self.manager()
        inputs: list[Named] = []
        for parameter, value in zip(function.__signature__.parameters, given, strict=False):
            several = isinstance(value, list)
            for number, each in enumerate(value if several else [value]):
                if isinstance(each, Tensor):
                    inputs.append(Named(c.INPUT, f"{parameter}{number}" if several else parameter, each))
        if isinstance(function, Function):
            names = [result.name for result in function._declaration.results]
        else:
            several = len(operation.results) > 1
            names = [f"result{number if several else ''}" for number in range(len(operation.results))]
        outputs = [
            Named(c.OUTPUT, name, tensor) for name, tensor in zip(names, operation.results, strict=True)
        ]
        stream = manager.sequence().record(operation)._native
        before = set(self.roots)
        made = self.recording(function.__name__, [stream], manager, [*inputs, *outputs], True)
        for key in set(self.roots) - before:
            root = self.roots[key]
            root.temporary |= root.written  # functions read nothing that they did not write
        return made

    def portable(self, function: Any, args: tuple[Any, ...]) -> c.Recording:
        """A function for any device with the dtypes of its arguments; no device is needed."""
        if not isinstance(function, Function):
            raise UnimplementedError(
                f"{function.__name__} runs several operations, recorded on a device: leave portable out"
            )
        selection = function._whole._for_any_device(args, function._fixed)
        program = compile_program(function._op, selection, of_process)
        check_numbers(program, selection)
        numbers = numbers_of(program, selection)
        places: dict[str, c.Range] = {}
        for name, dtype, count in (
            *((each.name, each.dtype, each.size) for each in selection.tensors),
            *((name, dtype, numbers[f"{name}_size"]) for name, _, dtype in program.scratch),
        ):
            places[name] = self.own(Made(max(whole_words(count) * dtype.itemsize, 16)))
        for table in program.tables:
            if not isinstance(table._contents, np.ndarray):
                raise UnimplementedError(
                    f"{program.name}: its table {table.name!r} is computed by a device: leave portable out"
                )
            places[table.name] = self.own(Made(table._contents.nbytes, table._contents))
        steps: list[c.Step] = []
        for step in program.steps:
            groups = groups_of(step, numbers)
            if 0 in groups:
                continue
            block, names = Block(step.source, numbers, selection), list(step.source.tensors)
            if block.in_memory:
                names.append(f"kp_parameters{len(steps)}")
                places[names[-1]] = self.own(Made(len(block.fixed), np.frombuffer(block.fixed, np.uint8)))
            bound = [(each.set, each.binding) for each in step.module.signature.parameters]
            indirect = None
            if step.indirect is not None:
                at = places[step.indirect.tensor]
                indirect = c.Range(at.block, at.offset + 4 * step.indirect.offset, 12)
            steps.append(
                c.Step(
                    "dispatch",
                    step.module.name,
                    shader=self.shader_of(step.module, step.module.name),
                    arguments=tuple(
                        c.Argument(*place, 0, places[name]) for place, name in zip(bound, names, strict=True)
                    ),
                    groups=groups,
                    push=b"" if block.in_memory else block.fixed,
                    indirect=indirect,
                )
            )

        def values(role: str, tensors: Iterable[Any]) -> tuple[int, ...]:
            first = len(self.values)
            for each in tensors:
                place = places[each.name]
                made = c.Value(each.name, role, place.block, place.offset, each.shape, each.dtype.name)
                self.values.append(made)
            return tuple(range(first, len(self.values)))

        results = {each.name for each in selection.results if each.is_result}
        inputs = [each for each in selection.tensors if each.name not in results]
        return c.Recording(values(c.INPUT, inputs), values(c.OUTPUT, selection.results), tuple(steps))

    def own(self, made: Made) -> c.Range:
        """A block of its own."""
        root = self.roots[id(made)] = _Root(None, len(self.roots), made)
        root.temporary = made.contents is None
        return c.Range(root.number, 0, made.nbytes)

    def recording(
        self, name: str, streams: Iterable[Any], manager: Manager, named: list[Named], whole: bool = False
    ) -> c.Recording:
        """The steps of streams and steps of the host. `whole`: it has all inputs and outputs with a name,
        used or not.
        """
        self.scratch = pool_of(manager, "operations")._piece[0]
        steps: list[c.Step] = []
        reads: set[int] = set()
        writes: set[int] = set()
        for part in streams:
            if isinstance(part, HostCall):
                steps.append(self.host_step(part))
                reads |= {id(_root_of(each)._native) for each in part._content.reads or ()}
                writes |= {id(_root_of(each)._native) for each in part._content.writes or ()}
            elif isinstance(part, _native.Stream):
                steps += [self.step(name, each) for each in _native.recorded(part)]
                natives = [root.native for root in self.roots.values() if root.made is None]
                # Uses by sync operations are left out.
                for use in _native.frame_uses(part, [], natives):
                    reads |= {id(use["memory"])} if use["read"] else set()
                    writes |= {id(use["memory"])} if use["written"] else set()
                    if use["uploaded"]:
                        self.roots[id(use["memory"])].uploaded = True
            else:
                raise UnimplementedError(
                    f"{name}: a program runs on one device; copies between Managers stay outside of it"
                )
        for key in writes:
            self.roots[key].written = True
        numbers: dict[str, list[int]] = {c.INPUT: [], c.OUTPUT: [], c.STATE: [], c.PARAMETER: []}
        for each in named:
            root = _root_of(each.memory)
            key = id(root._native)
            place = self.range_of(each.memory) if whole or key in self.roots else None
            if place is None or not (
                whole or any(_meet(place, other) for step in c.every(steps) for other in c.ranges_of(step))
            ):
                continue
            if whole or key in {c.INPUT: reads, c.OUTPUT: writes}.get(each.role, {key}):
                numbers[each.role].append(self.value(each))
            if each.role == c.PARAMETER and key in writes:
                raise InvalidArgumentError(
                    f"{name} writes the parameter {each.name!r}: parameters are only read; name it in state="
                )
        return c.Recording(tuple(numbers[c.INPUT]), tuple(numbers[c.OUTPUT]), tuple(steps))

    # -- steps -----------------------------------------------------------------------------------------------

    def step(self, entry: str, found: Mapping[str, Any]) -> c.Step:
        """A step, of the core's description of an operation."""
        kind, name = found["kind"], found["name"]
        if not kind:
            raise UnimplementedError(
                f"{entry}: {name} records Vulkan commands by code of its own, which a program cannot hold. "
                "Use a kernel, or an OpHostCall between two recordings"
            )
        if kind == "dispatch":
            if found["by_address"]:
                raise UnimplementedError(
                    f"{entry}: {name} reaches memory by its address, which is another one on each device: "
                    "bind the memory as an argument"
                )
            data, places = found["constants"]
            return c.Step(
                kind,
                name,
                shader=self.shader(found["shader"].made_of(), name, found["shader"]),
                constants=c.Constants(data, tuple(places)),
                arguments=tuple(
                    c.Argument(
                        at,
                        binding,
                        element,
                        place and self.range(*place),
                        how and c.SamplerForm(*how),
                        texels,
                    )
                    for at, binding, element, place, how, texels in found["arguments"]
                ),
                groups=found["groups"],
                push=found["push"],
                indirect=found["indirect"] and self.range(*found["indirect"]),
            )
        return c.Step(
            kind,
            name,
            ranges=tuple(self.range(*each) for each in found["ranges"]),
            patterns=tuple(found["patterns"]),
            regions=tuple(found["regions"]),
            steps=tuple(self.step(entry, each) for each in found["operations"]),
            times=found["times"],
            swaps=tuple((self.range(*one), self.range(*other)) for one, other in found["swaps"]),
        )

    def host_step(self, call: HostCall) -> c.Step:
        """A function of the host, by its name."""
        content = call._content
        if content.reads is None or content.writes is None:
            raise InvalidArgumentError(
                f"{content.name}: a program has to know the memory of a host step: give OpHostCall reads= "
                "and writes="
            )
        lists = [
            tuple(self.value_of(Named(c.STATE, "", each)) for each in memories)
            for memories in (content.reads, content.writes)
        ]
        name = content.name.removeprefix("OpHostCall ")
        return c.Step("host", name, reads=lists[0], writes=lists[1])

    def shader_of(self, module: ShaderModule, name: str) -> int:
        """The number of a module."""
        made = module._spirv, module.entry, module._declared, *module._subgroups, module._generated
        return self.shader(made, name, made)

    def shader(self, made_of: tuple[Any, ...], name: str, key: Any) -> int:
        """The number of a shader that was made of this. `key` is equal for equal ones."""
        found = self.shaders.get(key)
        if found is None:
            spirv, entry, declared, *how = made_of
            files = [(hashlib.sha256(each).hexdigest(), each) for each in (spirv, declared) if each]
            self.files.update(files)
            found = self.shaders[key] = len(self.made)
            before = files[1][0] if declared else None
            self.made.append(c.Shader(files[0][0], entry, name, before, *how))
        return found

    # -- memory ----------------------------------------------------------------------------------------------

    def range(self, memory: Any, offset: int, nbytes: int) -> c.Range:
        """Bytes of a block."""
        root = self.roots.get(id(memory))
        if root is None:
            root = self.roots[id(memory)] = _Root(memory, len(self.roots))
            root.temporary = id(memory) in self.temporary or memory is self.scratch
        return c.Range(root.number, offset, nbytes)

    def range_of(self, memory: Any) -> c.Range:
        """The bytes of a tensor or image."""
        root = _root_of(memory)._native
        offset = 0 if root is memory._native else memory._native.vk_offset - root.vk_offset
        return self.range(root, offset, memory.nbytes)

    def value_of(self, named: Named) -> c.Value:
        """The value of memory with a name."""
        memory = named.memory
        place = self.range_of(memory)
        dtype = memory.dtype.name
        try:
            c.dtype_of(dtype)
        except InvalidArgumentError:
            raise UnimplementedError(
                f"{memory._describe()} has elements that a program's values do not have; name a view of its "
                "bytes: t.view(np.uint8)"
            ) from None
        return c.Value(named.name, named.role, place.block, place.offset, tuple(memory.shape), dtype)

    def value(self, named: Named) -> int:
        """The number of a value."""
        found = self.numbers.get(named)
        if found is None:
            found = self.numbers[named] = len(self.values)
            self.values.append(self.value_of(named))
        return found

    # -- the whole -------------------------------------------------------------------------------------------

    def part(self) -> tuple[c.Part, dict[str, np.ndarray[Any, Any]]]:
        """The part, and what its blocks begin with."""
        for each in self.named:
            if each not in self.numbers:
                verb = {c.OUTPUT: "writes", c.INPUT: "reads"}.get(each.role, "uses")
                raise InvalidArgumentError(f"{each.role} {each.name!r}: no recorded operation {verb} it")
        _require_apart([self.range_of(each.memory) for each in self.named if each.role == c.INPUT])
        roots = list(self.roots.values())
        spans = self._spans(roots)
        contents: dict[str, np.ndarray[Any, Any]] = {}
        given = {value.block for value in self.values if value.role == c.INPUT}
        synced = {
            root.number
            for root in roots
            if root.uploaded and root.written and root.native.has_host_copy and root.number not in given
        }
        blocks = [self._block(root, spans[root.number], root.number in synced, contents) for root in roots]
        entries = tuple(
            entry._replace(
                recordings=tuple(r._replace(steps=_trimmed(r.steps, synced)) for r in entry.recordings)
            )
            for entry in self.entries
        )
        moved = _moved((entries, tuple(self.values)), spans)
        return c.Part("", moved[0], tuple(self.made), tuple(blocks), moved[1]), contents

    def _spans(self, roots: list[_Root]) -> list[tuple[int, int]]:
        """The bytes of each root that the program uses."""
        places: list[list[c.Range]] = [[] for _ in roots]
        steps = [step for entry in self.entries for each in entry.recordings for step in c.every(each.steps)]
        for place in (*(r for step in steps for r in c.ranges_of(step)), *map(c.range_of, self.values)):
            places[place.block].append(place)
        spans = []
        for root, found in zip(roots, places, strict=True):
            made = root.made
            if isinstance(root.native, _native.Image) or (made and (made.image or made.contents is None)):
                spans.append((0, (root.made or root.native).nbytes))
                continue
            first = min((each.offset for each in found), default=0) // _STEP * _STEP
            spans.append((first, max((each.offset + each.nbytes for each in found), default=0)))
        return spans

    def _block(
        self, root: _Root, span: tuple[int, int], synced: bool, contents: dict[str, np.ndarray[Any, Any]]
    ) -> c.Block:
        """A block, and in `contents` what it begins with."""
        native, (first, last), name, host = root.native, span, f"block{root.number}", None
        made = root.made or made_of(native)
        block = c.Block(last - first, made.memory_type, made.image)
        if root.made is not None:
            held = made.contents
            if held is not None:
                held = held.reshape(-1).view(np.uint8)[first:last]
        else:
            whole = [each for each in self.values if each.block == root.number and _covers(each, span)]
            if root.temporary or first == last or any(each.role == c.INPUT for each in whole):
                return block
            held = np.empty(last - first, np.uint8)
            native.read(held, first)
            if root.uploaded and native.has_host_copy:
                host = np.array(native.host_array(None, held.dtype, native.nbytes)[first:last])
                held, host = (held, host) if synced else (host, None)
            for each in whole:  # parameters are kept even if they are zeros: others may take their place
                if each.role == c.PARAMETER:
                    contents[each.name] = held.view(c.dtype_of(each.dtype)).reshape(each.shape)
                    return block._replace(contents=each.name)
        if held is not None and held.any():
            contents[name] = held
            block = block._replace(contents=name)
        if host is None:
            return block
        if held is not None and np.array_equal(host, held):
            return block._replace(host=block.contents)
        contents[f"{name}.host"] = host
        return block._replace(host=f"{name}.host")


def _modules_of(what: ShaderModule | os.PathLike[str]) -> list[ShaderModule]:
    """A module for each entry point: of a module, or of a file with a shader's source."""
    if not isinstance(what, ShaderModule):
        path = Path(what)
        names = functions_in(read_file(path, "shader")) if path.suffix.lower() in (".hlsl", ".slang") else []
        if len(names) > 1:
            return [ShaderModule(path, entry=name) for name in names]
        what = ShaderModule(path, entry=names[0] if names else None)
    if len(what.entry_points) == 1:
        return [what]
    return [ShaderModule(what, entry=name) for name in what.entry_points]


def _streams_of(name: str, what: Any, manager: Callable[[], Manager]) -> tuple[Manager, list[Any]]:
    """The streams and steps of the host of a sequence, or of operations that are recorded now."""
    if not isinstance(what, Sequence):
        operations = [what] if isinstance(what, OpBase) else what
        if not isinstance(operations, (list, tuple)) or not all(
            isinstance(each, OpBase) for each in operations
        ):
            raise ArgumentTypeError(
                f"The entry {shown(name)} is {kind_of(what)}; give a kernel, a ShaderModule, the "
                "pathlib.Path of a shader, a sequence, operations, or a function with its arguments: "
                "(kp.ops.exp, kp.TensorSpec(8))"
            )
        what = manager().sequence()
        for operation in operations:
            what.record(operation)
    for operation, _ in what._hooked:
        if not isinstance(operation, OpWatchedKernel):
            raise UnimplementedError(
                f"{name}: {type(operation).__name__} runs Python code of its own, which a program cannot "
                "hold. Use an OpHostCall; its function is given again when the program is loaded"
            )
    native = what._native
    streams = list(native._parts) if is_split(native) else [native]
    if not any(each.operation_names() if isinstance(each, _native.Stream) else True for each in streams):
        raise InvalidArgumentError(f"The entry {shown(name)} has nothing recorded")
    return what.manager, streams


def _trimmed(steps: tuple[c.Step, ...], synced: set[int]) -> tuple[c.Step, ...]:
    """The steps without syncs of other blocks than `synced`."""
    made = []
    for step in steps:
        ranges = step.ranges
        if step.kind.startswith("sync"):
            ranges = tuple(each for each in ranges if each.block in synced)
            if not ranges:
                continue
        made.append(step._replace(ranges=ranges, steps=_trimmed(step.steps, synced)))
    return tuple(made)


def _moved(item: Any, spans: list[tuple[int, int]]) -> Any:
    """`item`, or the tuple of items, over blocks that begin where they are used."""
    if isinstance(item, (c.Range, c.Value)):
        return item._replace(offset=item.offset - spans[item.block][0])
    if not isinstance(item, tuple):
        return item
    made = [_moved(each, spans) for each in item]
    make: Callable[[Iterable[Any]], Any] = getattr(item, "_make", tuple)  # a NamedTuple's
    return make(made)


def _meet(one: c.Range, other: c.Range) -> bool:
    return (
        one.block == other.block
        and one.offset < other.offset + other.nbytes
        and other.offset < one.offset + one.nbytes
    )


def _covers(value: c.Value, span: tuple[int, int]) -> bool:
    place = c.range_of(value)
    return place.offset <= span[0] and place.offset + place.nbytes >= span[1]


def _require_apart(places: list[c.Range]) -> None:
    for number, one in enumerate(places):
        if any(_meet(one, other) for other in places[:number]):
            raise InvalidArgumentError("inputs: two of them overlap, so one would overwrite the other")


def _root_of(memory: Any) -> Any:
    """The tensor that has the memory of a view, or the image."""
    return memory if isinstance(memory, Image) else root_of(memory)


def warn_without_results(part: c.Part) -> None:
    """Warns if recordings are all that there is, and none has outputs."""
    recordings = [each for entry in part.entries for each in entry.recordings]
    kernels = any(entry.kernel for entry in part.entries)
    if recordings and not kernels and not any(each.outputs for each in recordings):
        warn(
            f"{part.entries[0].name}: calls return nothing, and nothing of the work is kept by a name. "
            'Name the tensors that they return, outputs={"y": y}, or keep from call to call, state={"s": s}'
        )
