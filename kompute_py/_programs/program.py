"""Program: kernels, functions and recordings in one object that is saved, loaded and called."""

from __future__ import annotations

import io
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from .._base.arrays import as_index, to_flag
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    kind_of,
    shown,
)
from .._base.public import Routine
from .._base.text import nearest
from .._device.names import DeviceInfo, is_number, one_or_several
from .._device.options import string_tuple
from .._device.shader_check import check
from .._files.index import TensorIndex
from .._files.progress import Progress
from .._files.reading import Readable
from .._files.tensors import tensor_file_info
from .._kernels.kernel import Kernel
from .._manager.current import present
from .._manager.default import manager as default_manager
from .._manager.manager import Manager
from .._memory.making import new_tensor
from .._memory.memory import Memory, memory_list
from .._sync.ordered import in_order
from . import content as c
from . import file
from .modules import module_of, values_of
from .needs import needs_of
from .recorder import Named, Recorder, warn_without_results
from .running import Loaded, text_of
from .spread import Spread

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._device.annotations import DescribedDevice, DeviceLike
    from .._device.device import Device
    from .._device.shader_check import Finding
    from .._memory.image import Image
    from .._memory.needs import MemoryNeeds
    from .._memory.tensor import Tensor
    from .._sync.fence import Fence
    from .._sync.semaphore import Ordering, Signals, Waits

Parameters = Readable | TensorIndex | Mapping[str, Any] | None
Hosts = Mapping[str, Callable[..., object]] | None
_BYTES = np.dtype(np.uint8)
_LISTS = (tuple, list)
_NO_MEMORY = frozenset((np.ndarray, float, int, bool))
"""Types of arguments that are of no Manager, of which most calls have some."""


class _Core:
    """The content of a program, for all views of it."""

    def __init__(
        self,
        content: c.Content,
        files: Mapping[str, bytes],
        contents: Mapping[str, TensorIndex],
        hosts: Mapping[str, Callable[..., object]],
        progress: Progress | bool | None = None,
    ) -> None:
        self._progress = progress
        self.content, self.files, self.contents, self.hosts = content, files, contents, hosts
        self.parts = {part.name: part for part in content.parts}
        self.entries: dict[str, tuple[c.Part, c.Entry]] = {}
        for part in content.parts:
            for entry in part.entries:
                name = f"{part.name}.{entry.name}" if part.name else entry.name
                if name in self.entries:
                    raise InvalidArgumentError(f"The program has two entries {shown(name)}")
                self.entries[name] = part, entry
        self._loaded: dict[tuple[int, str], Loaded] = {}

    def loaded(self, part: c.Part, manager: Manager) -> Loaded:
        """A part on a Manager."""
        found = self._loaded.get((id(manager), part.name))
        if found is None:
            for key, each in list(self._loaded.items()):
                if not each.manager.is_init():
                    self._loaded.pop(key, None)
            made = Loaded(part, self.files, self.contents[part.name], self.hosts, self._progress, manager)
            found = self._loaded.setdefault((id(manager), part.name), made)
        return found


def _owner_of(given: Any) -> Any:
    """The Manager of an argument; None if it has none."""
    return getattr(given[0] if type(given) in _LISTS and given else given, "_manager", None)


class ProgramEntry:
    """An entry of a program, to be called: ``program.entry`` or ``program["entry"]``.

    An entry is a kernel, called as `Kernel` describes, or a recording. A recording takes an array, a Tensor
    or an Image for each of its inputs, by position or by name, of the shapes and dtypes that it was recorded
    for; of several recordings, that of the shapes and dtypes which NumPy sees. Its results are where the
    arguments are: Tensors if one of them is a Tensor or an Image, else arrays; one, a
    tuple, or None. ``out=`` gives the memory of the results, a tuple if there are several. ``donate=`` (names
    or positions of inputs, or True for all) destroys these Tensors after the call. ``wait=`` and ``signal=``
    are as for kernels. Arguments are not changed, even if the recording writes its inputs.

    It runs on the Manager of its arguments, else on the current one (`kp.manager`); `Program.on` fixes one,
    or several. The first call on a Manager makes memory and pipelines; `preload` does so before.

    A call raises InvalidArgumentError and ArgumentTypeError for arguments that do not fit, UnimplementedError
    if the device lacks what the code needs, NotFoundError for parameters and functions of the host that were
    not given. Raises ArgumentTypeError if it is created otherwise than by a program.

    >>> x, y = mgr.tensor([1, 2, 3]), mgr.zeros(3)
    >>> program = kp.Program.record(kp.OpMult([x, x, y]), inputs={"x": x}, outputs={"y": y})
    >>> program.main([4, 5, 6]).tolist()
    [16.0, 25.0, 36.0]
    """

    __module__ = "kompute_py"

    __slots__ = (
        "__weakref__",
        "_core",
        "_entry",
        "_last",
        "_managers",
        "_name",
        "_part",
        "_spread",
        "_table",
    )

    def __init__(self, core: _Core, name: str, managers: tuple[Manager, ...]) -> None:
        if not isinstance(core, _Core):
            raise ArgumentTypeError("A ProgramEntry is made by a program: program[name]")
        self._core, self._name, self._managers = core, name, managers
        self._part, self._entry = core.entries[name]
        self._last: tuple[object, Any] = self, None
        """The Manager of the last call, and the kernel or recording there."""
        self._table: tuple[Any, Any, Any] | None = None
        """Of that recording: it knows the memory of calls by identity, and so their Manager."""
        self._spread: Spread | None = None
        """On several Managers."""

    def _target(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """The kernel or recording on the Manager of these arguments."""
        manager, found = self._last
        wanted: Any = getattr(args[0], "_manager", None) if args else None
        if wanted is manager:
            return found
        if self._managers:
            if found is not None:
                return found
            if len(self._managers) > 1:
                if self._spread is None:
                    here = [self._core.loaded(self._part, each) for each in self._managers]
                    self._spread = Spread(self._name, [each.entry(self._entry.name) for each in here])
                return self._spread
            wanted = self._managers[0]
        elif wanted is None:
            for each in args:
                if type(each) not in _NO_MEMORY:
                    wanted = wanted or _owner_of(each)
            for name in named:
                if type(named[name]) not in _NO_MEMORY:
                    wanted = wanted or _owner_of(named[name])
            wanted = wanted or present() or default_manager()
        if wanted is not manager:
            loaded = self._core.loaded(self._part, wanted)
            found = loaded.entry(self._entry.name)
            self._last = wanted, found
            if not isinstance(found, Kernel):
                self._table = loaded.running.acquire, found.table.call, loaded.running.release
        return found

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Runs it and waits until it is done: see `ProgramEntry`."""
        if self._table is not None and (args or named or self._managers or present() is self._last[0]):
            take, call, give_back = self._table
            take()  # `with` takes three times as long
            try:
                result = call(args, named)
            finally:
                give_back()
            if result is not NotImplemented:
                return result
        return self._target(args, named)(*args, **named)

    def submit(
        self,
        /,
        *args: Any,
        wait: Waits = (),
        signal: Signals = (),
        **named: Any,
    ) -> Fence:
        """Runs it without waiting and returns a Fence. Tensors and Images only. Results that `out=` does
        not give are new in each call: `results` of the Fence. Calls run in order, and each finds the state
        that the one before it left.

        ``donate=`` is as in a call, `wait` and `signal` as in `Sequence.eval_async`. Raises what a call
        raises.

        >>> x, total = mgr.zeros(2), mgr.zeros(2)
        >>> add = kp.ops.add.bind(total, x, out=total)
        >>> program = kp.Program.record(add, inputs={"x": x}, outputs={"total": total})
        >>> ones = mgr.tensor([1, 1])
        >>> fences = [program.main.submit(ones) for _ in range(3)]
        >>> [each.results[0].tolist() for each in fences]  # waits
        [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
        """
        return self._target(args, named).submit(*args, wait=wait, signal=signal, **named)  # type: ignore[no-any-return]

    def bind(self, /, *args: Any, **named: Any) -> Any:
        """The entry with these arguments as an operation: ``seq.record(program.entry.bind(x))``. Its
        attribute `results` has the memory of a recording's results.

        Tensors and Images only. Raises what a call raises.
        """
        return self._target(args, named).bind(*args, **named)

    def preload(self) -> None:
        """Makes memory and pipelines for the current Manager, or those of `Program.on`: the first call with
        arrays then takes no longer than later ones, and one with new Tensors no longer than one with others.

        Raises what a call raises for the device.
        """
        self._target((), {}).preload()
        for manager in self._managers or (default_manager(),):
            new_tensor(manager, (1,), _BYTES, None, b"\0").read()  # makes the Manager's memory for transfers

    def __reduce_ex__(self, protocol: object) -> Any:
        """Pickles by content, with its program; state begins anew. A Manager of `Program.on` stays behind."""
        return operator.getitem, (Program._of(self._core), self._name)

    @property
    def name(self) -> str:
        """The name in the program."""
        return self._name

    @property
    def kind(self) -> str:
        """ "kernel" or "recording"."""
        return "recording" if self._entry.kernel is None else "kernel"

    @property
    def signatures(self) -> tuple[str, ...]:
        """The arguments and results as text; of a function, one for each signature that it was recorded
        for."""
        form = self._entry.kernel
        if form is not None:
            shader = self._part.shaders[form.shader]
            return (module_of(shader, self._core.files).signature.text(self._name),)
        return tuple(text_of(self._name, self._part, each) for each in self._entry.recordings)

    @property
    def source(self) -> str:
        """The text that was recorded with it; "" if there is none."""
        return self._entry.source

    def memory_needs(self, /, *args: Any, **named: Any) -> MemoryNeeds:
        """The device memory that the entry needs, before anything is allocated.

        Of a kernel that of a call with these arguments: see `Kernel.memory_needs`. Of recordings, which take
        no arguments here, that of all: inputs and outputs are their own memory for these, and scratch is the
        rest, with state and parameters. Entries of a program share memory.

        Raises what `Kernel.memory_needs` raises, ArgumentTypeError for arguments of a recording.
        """
        if self._entry.kernel is not None:
            return self._target(args, named).memory_needs(*args, **named)  # type: ignore[no-any-return]
        if args or named:
            raise ArgumentTypeError(
                f"{self._name}: a recording needs the same memory for all arguments: give none"
            )
        return needs_of(self._core.files, [self._part._replace(entries=(self._entry,))])

    def __repr__(self) -> str:
        return f"<kp.ProgramEntry {'; '.join(self.signatures)}>"


class Program(Mapping[str, ProgramEntry]):
    """Kernels, functions and recorded sequences in one object, which is saved to a file, loaded on another
    machine and called there: a mapping of names to entries, which are attributes, too, unless a program has
    that attribute already (``program["save"]``) or the name begins with "_".

    `Program.record` makes one of what a script has, `kp.load_program` loads a file. ``kp.Program({"blur":
    one, "edges": other})`` joins programs as modules: ``program["blur.main"]``, ``program.blur.main``.

    Each Manager that it is called with has memory of its own for the program. `state` is what calls leave
    there for later ones. A program keeps the Managers that it ran on until they are destroyed.

    Programs pickle by content. Raises ArgumentTypeError for other modules, InvalidArgumentError for names
    that are not identifiers.

    >>> scale = mgr.kernel('''
    ... layout(local_size_x = 64) in;
    ... layout(binding = 0) buffer X { float x[]; };
    ... layout(push_constant) uniform P { float by; };
    ... void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= by; }
    ... ''')
    >>> kp.Program.record({"scale": scale}).save("scale.kpp")
    >>> program = kp.load_program("scale.kpp")
    >>> program.scale(np.ones(3, np.float32), by=2.0).tolist()
    [2.0, 2.0, 2.0]
    """

    __module__ = "kompute_py"

    def __init__(self, modules: Mapping[str, Program]) -> None:
        if not isinstance(modules, Mapping) or not all(
            isinstance(each, Program) for each in modules.values()
        ):
            raise ArgumentTypeError(f"A Program joins a dict of programs by name, not {kind_of(modules)}")
        parts: list[c.Part] = []
        files: dict[str, bytes] = {}
        contents: dict[str, TensorIndex] = {}
        hosts: dict[str, Callable[..., object]] = {}
        for name, program in modules.items():
            if not isinstance(name, str) or not c.identifiers(name):
                raise InvalidArgumentError(f"The name of a module is an identifier, not {shown(name)}")
            for inner, part in program._parts().items():
                called = f"{name}.{inner}" if inner else name
                parts.append(part._replace(name=called))
                contents[called] = program._core.contents[part.name]
            files.update(program._core.files)
            hosts.update(program._core.hosts)
        content = c.Content(c.FORMAT, c.VERSION, tuple(parts))
        c.check(content)
        self._setup(_Core(content, files, contents, hosts))

    def _setup(self, core: _Core, prefix: str = "", managers: tuple[Manager, ...] = ()) -> Program:
        self._core, self._prefix, self._managers = core, prefix, managers
        head = f"{prefix}." if prefix else ""
        self._entries = {
            name[len(head) :]: ProgramEntry(core, name, managers)
            for name in core.entries
            if name.startswith(head)
        }
        vars(self).update(  # found faster than by __getattr__
            {name: entry for name, entry in self._entries.items() if self._is_attribute(name)}
        )
        return self

    @classmethod
    def _is_attribute(cls, name: str) -> bool:
        """Whether an entry or a module of this name is an attribute: no other one has it."""
        return not name.startswith("_") and not any(name in vars(each) for each in cls.__mro__)

    @classmethod
    def _of(cls, core: _Core, prefix: str = "", managers: tuple[Manager, ...] = ()) -> Program:
        return cls.__new__(cls)._setup(core, prefix, managers)

    def _parts(self) -> dict[str, c.Part]:
        """Its parts, by their names in it."""
        prefix = self._prefix
        return {
            name[len(prefix) :].strip("."): part
            for name, part in self._core.parts.items()
            if not prefix or name == prefix or name.startswith(f"{prefix}.")
        }

    @classmethod
    def record(
        cls,
        what: Any,
        /,
        *args: Any,
        inputs: Mapping[str, Memory] | None = None,
        outputs: Mapping[str, Memory] | None = None,
        state: Mapping[str, Memory] | None = None,
        parameters: Mapping[str, Memory] | None = None,
        temporary: Iterable[Memory] = (),
        hosts: Hosts = None,
        sources: Mapping[str, str] | None = None,
        portable: bool = False,
        version: int = 0,
    ) -> Program:
        """A program of what a script has: one thing, which becomes the entry "main", or a dict of them by
        name.

        - A `Kernel` (with its specialization constants); a `ShaderModule` or the `pathlib.Path` of a shader's
          source, in which each entry point becomes an entry. They take any shapes.
        - A function with its arguments: ``record(kp.ops.softmax, kp.TensorSpec((4, 8)))``, in a dict
          ``(kp.ops.softmax, kp.TensorSpec((4, 8)))``, or a list of such tuples for several shapes. Tensors,
          arrays and specs stand for their shapes and dtypes; numbers are kept.
        - A `Sequence`, an operation, or a list of operations.

        A recording brings its memory: `inputs` are given by each call, `outputs` are its results, `state` and
        `parameters` (which are only read) get names. Each is a dict of Tensors, dense parts of them, and
        Images. An entry has the inputs that it reads and the outputs that it writes. All other memory is kept
        with what it contains now, as the recording needs it for its first call; `temporary` lists memory that
        the recordings write before they read it. Tensors that several entries use are one, so that one entry
        may go on with what another left there. OpSyncDevice of an input and OpSyncLocal are left out.

        `hosts` are the functions of OpHostCall, by name, which are called with the Tensors of its `reads` and
        then those only in its `writes`. `sources` are texts to keep with entries, by name. `version`, from 0
        on, is the program's own, for programs that are saved without it (see `save`).

        Functions are recorded as the current Manager, or that of their Tensors, runs them. With
        ``portable=True`` they run on any device that has the dtypes of their arguments, and none is needed
        now: elements of 8 and 16 bits are bound as words, and results have the dtypes that they have on a
        device with nothing else, so a sum of int32 is of int32.

        Waits for work on the memory. A KomputeWarning tells of recordings without outputs, state and hosts:
        then only `kompute-py program compare` sees what they compute.

        Raises ArgumentTypeError for other things and names, InvalidArgumentError for inputs and outputs
        that no entry uses and parameters that one writes, UnimplementedError for recordings with Vulkan
        commands of their own, addresses of memory or copies between Managers, FailedPreconditionError for
        destroyed objects and a running sequence.

        >>> x, y = mgr.tensor([1, 2, 3]), mgr.zeros(3)
        >>> square = mgr.sequence().record(kp.OpMult([x, x, y]))
        >>> print(kp.Program.record({"square": square}, inputs={"x": x}, outputs={"y": y}))
        <kp.Program of 1 entry>
          square(x: float32[3]) -> (y: float32[3])
          memory  24 bytes (inputs 12 bytes, outputs 12 bytes, scratch 0 bytes), code ...
        """
        if isinstance(what, Routine) and not isinstance(what, Kernel):
            what = (what, *args)
        elif args:
            raise ArgumentTypeError(
                f"record: arguments follow a function, such as kp.ops.exp, and not {kind_of(what)}; give "
                "several things as a dict by name"
            )
        entries = what if isinstance(what, Mapping) else {"main": what}
        named = [
            Named(role, name, memory)
            for role, given in (
                (c.INPUT, inputs),
                (c.OUTPUT, outputs),
                (c.STATE, state),
                (c.PARAMETER, parameters),
            )
            for name, memory in _checked(role, given)
        ]
        memories = memory_list(temporary, "record(temporary=...)", one=True, empty=True, across=True)
        recorder = Recorder(named, memories, to_flag(portable, "portable"))
        for name, each in entries.items():
            if not isinstance(name, str) or not c.identifiers(name):
                raise InvalidArgumentError(f"The name of an entry is an identifier, not {shown(name)}")
            recorder.add(name, each)
        part, contents = recorder.part()
        for name, text in (sources or {}).items():
            if not isinstance(text, str) or name not in [entry.name for entry in part.entries]:
                raise InvalidArgumentError(
                    f"sources: there is no entry {shown(name)}, or it is given no text"
                )
        if not (outputs or state or hosts):
            warn_without_results(part)
        with_sources = [each._replace(source=(sources or {}).get(each.name, "")) for each in part.entries]
        part = part._replace(version=_to_version(version), entries=tuple(with_sources))
        return cls._made(part, contents, recorder.files, hosts)

    @classmethod
    def _made(
        cls, part: c.Part, contents: Mapping[str, Any], files: Mapping[str, bytes], hosts: Hosts = None
    ) -> Program:
        content = c.Content(c.FORMAT, c.VERSION, (part,))
        c.check(content)
        return cls._of(_Core(content, files, {"": TensorIndex(contents)}, _functions(hosts)))

    def save(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        *,
        parameters: bool = True,
        without: Iterable[str] = (),
        progress: Progress | bool | None = None,
    ) -> None:
        """Writes the program to a file, by its path or open for writing bytes.

        ``parameters=False`` leaves out the contents of named parameters, `without` whole modules, by name;
        `kp.load_program` is then given them. Modules have to have at least the version that they have now. A
        file by its path is written completely or not at all. `progress` is as in `kp.save_tensors`. The
        format is in docs/reference/programs.md.

        Raises the errors of `kp.save_tensors` about files, NotFoundError for a module that there is not,
        InvalidArgumentError for recordings of more than some 100,000 operations, or 64 MiB of shaders.
        """
        own = self._parts()
        parts = [part._replace(name=name) for name, part in own.items()]
        needs: list[c.Needed] = []
        for name in string_tuple(without, "without"):
            left = [part for part in parts if part.name == name or part.name.startswith(f"{name}.")]
            if not left or not name:
                raise NotFoundError(f"without: the program has no module {shown(name)}")
            parts = [part for part in parts if part not in left]
            for part in left:
                needs.append(c.Needed(part.name, part.version, tuple(e.name for e in part.entries)))
        contents = {name: self._core.contents[part.name] for name, part in own.items()}
        digests = {d for part in parts for s in part.shaders for d in (s.file, s.declared) if d}
        files = {digest: self._core.files[digest] for digest in digests}
        content = c.Content(c.FORMAT, c.VERSION, tuple(parts), tuple(needs))
        file.save(target, content, files, contents, to_flag(parameters, "parameters"), progress)

    def __reduce_ex__(self, protocol: object) -> Any:
        """Pickles by content, with functions of the host; state begins anew."""
        made = io.BytesIO()
        self.save(made, progress=False)
        return load_program, (made.getvalue(), None, dict(self._core.hosts), None, False)

    def on(self, manager: Manager | DeviceLike | Iterable[Manager | DeviceLike]) -> Program:
        """The program on one Manager, or on each of several: its entries run there, whatever their arguments.
        A device, such as ``"vulkan://nvidia"``, stands for the process's Manager of it, `kp.manager`.

        On several, a call is a call on each, all at the same time. An argument is a list with one for each
        Manager, and results are such lists. Numbers, and dicts of members, are the same for all. A recording
        also takes arrays as many times as long as it was recorded for, and cuts them along their first axis;
        results are then arrays of all pieces. `submit` gives one Fence for all.

        Raises ArgumentTypeError if it is neither a Manager nor a device, InvalidArgumentError for none, or
        one twice, and the errors of `kp.manager`.

        >>> x, y = mgr.zeros(2), mgr.zeros(2)
        >>> program = kp.Program.record(kp.OpMult([x, x, y]), inputs={"x": x}, outputs={"y": y})
        >>> both = program.on([mgr, kp.Manager()])
        >>> both.main(np.arange(4, dtype=np.float32)).tolist()
        [0.0, 1.0, 4.0, 9.0]
        """
        several = [_manager_of(each) for each in one_or_several(manager)]
        if not several or len(set(map(id, several))) < len(several):
            raise InvalidArgumentError("on takes a Manager or a device, or a list of different ones")
        return self._of(self._core, self._prefix, tuple(several))

    # -- what it has -----------------------------------------------------------------------------------------

    @property
    def exports(self) -> tuple[str, ...]:
        """The names of the entries."""
        return tuple(self._entries)

    @property
    def versions(self) -> dict[str, int]:
        """The versions of the modules, by name: those of `record`. "" is a program without modules."""
        return {name: part.version for name, part in self._parts().items()}

    @property
    def state(self) -> dict[str, Tensor | Image]:
        """The memory that calls leave for later ones, by name, on the current Manager or that of `on`."""
        return self._named(c.STATE)

    @property
    def parameters(self) -> dict[str, Tensor | Image]:
        """The memory that recordings only read, by name, on the current Manager or that of `on`. Writing it
        changes what later calls there compute.
        """
        return self._named(c.PARAMETER)

    def _here(self) -> tuple[Manager, ...]:
        return self._managers or (default_manager(),)

    def _named(self, role: str) -> dict[str, Any]:
        managers = self._here()
        if len(managers) > 1:
            raise InvalidArgumentError(
                f"Each Manager has {role} memory of its own, and this program is on {len(managers)}: "
                "program.on(mgr) has that of one"
            )
        found = {}
        for inner, part in self._parts().items():
            for name, memory in self._core.loaded(part, managers[0]).named(role).items():
                found[f"{inner}.{name}" if inner else name] = memory
        return found

    @in_order
    def reset(self, **options: Unpack[Ordering]) -> None:
        """Gives the program's memory on the current Manager, or those of `on`, what it began with. `wait` and
        `signal` are as in `Sequence.eval`.
        """
        for manager in self._here():
            for part in self._parts().values():
                self._core.loaded(part, manager).reset()

    def preload(self) -> None:
        """`ProgramEntry.preload` of all entries."""
        for entry in self._entries.values():
            entry.preload()

    def memory_needs(self) -> MemoryNeeds:
        """The device memory of its recordings on a Manager, before anything is allocated: see
        `ProgramEntry.memory_needs`, which tells that of its kernels. The Manager's own memory for transfers
        (4 MiB for images and memory that the host does not see) does not count.
        """
        return needs_of(self._core.files, self._parts().values())

    @property
    def needs(self) -> tuple[str, ...]:
        """The SPIR-V capabilities that devices must have, beside those that all have."""
        found: set[str] = set()
        for part in self._parts().values():
            for shader in part.shaders:
                found.update(module_of(shader, self._core.files).reflection["capabilities"])
        return tuple(sorted(found - {"Shader"}))

    def check(self, device: DescribedDevice | Device | None = None) -> list[Finding]:
        """All reasons for which a device would refuse the program's shaders, as `kp.check` lists them: the
        list is empty if it runs there. The device may be one that is not here.

        Raises the errors of `kp.check`.

        >>> kp.Program.record(kp.ops.sum, kp.TensorSpec(5)).check(mgr)
        []
        """
        found: dict[Finding, None] = {}
        for part in self._parts().values():
            for number, constants in sorted(part.special()):
                module = module_of(part.shaders[number], self._core.files)
                found.update(dict.fromkeys(check(module, device, spec_consts=values_of(module, constants))))
        return list(found)

    def __getitem__(self, name: str) -> ProgramEntry:
        """The entry. Raises NotFoundError if there is none, ArgumentTypeError if `name` is not a str."""
        found = self.get(name)
        if found is None:
            raise NotFoundError(
                f"The program has no entry {shown(name)}{nearest(name, self._entries)} It has "
                f"{', '.join(self._entries) or 'none'}"
            )
        return found

    def __contains__(self, name: object) -> bool:
        return self.get(name) is not None

    def get(self, name: Any, default: Any = None) -> Any:
        """The entry, or `default` if there is none. Raises ArgumentTypeError if `name` is not a str."""
        if not isinstance(name, str):
            raise ArgumentTypeError(f"The name of an entry is a str, not {kind_of(name)}")
        return self._entries.get(name, default)

    def __getattr__(self, name: str) -> Any:
        entries = self.__dict__.get("_entries", {})
        if self._is_attribute(name) and any(each.startswith(f"{name}.") for each in entries):
            return self._of(self._core, f"{self._prefix}.{name}" if self._prefix else name, self._managers)
        text = f"The program has no entry {name!r}{nearest(name, entries)}"
        if name in entries or any(each.startswith(f"{name}.") for each in entries):
            text = f"{name!r} is no attribute of a program, but program[{name!r}] is an entry"
        raise AttributeError(text, name=name, obj=self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __dir__(self) -> list[str]:
        names = {name.partition(".")[0] for name in self._entries}
        return sorted({*super().__dir__(), *filter(self._is_attribute, names)})

    def __str__(self) -> str:
        count = len(self._entries)
        lines = [f"<kp.Program of {count} {'entry' if count == 1 else 'entries'}>"]
        lines += [f"  {text}" for entry in self._entries.values() for text in entry.signatures]
        for role, title in ((c.STATE, "state"), (c.PARAMETER, "parameters")):
            values = [v.text for part in self._parts().values() for v in part.values if v.role == role]
            if values:
                lines.append(f"  {title}  {', '.join(values)}")
        if self.needs:
            lines.append(f"  needs  {', '.join(self.needs)}")
        lines.append(f"  memory  {self.memory_needs()}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<kp.Program {', '.join(self._entries)}>"


def _manager_of(given: Any) -> Manager:
    from uuid import UUID

    if isinstance(given, Manager):
        return given
    if isinstance(given, (str, UUID, DeviceInfo)) or is_number(given):
        return default_manager(given)
    raise ArgumentTypeError(f"on takes a Manager or a device, or a list of them, not {kind_of(given)}")


def load_program(
    source: Readable,
    parameters: Parameters = None,
    hosts: Hosts = None,
    modules: Mapping[str, Program] | None = None,
    progress: Progress | bool | None = None,
) -> Program:
    """Loads a program of a file, by its path, open for reading bytes, or as bytes. Needs no device.

    `parameters` stand for named ones of the file and may be left out there: a dict of arrays and Tensors, a
    `TensorIndex`, or a parameter file. An index and a file may have more, but not other names only; what they
    lack keeps the program's contents, with a KomputeWarning. Those of modules have names with a scope,
    "blur::weight". `hosts` are the functions of the host, by name: see `Program.record`. `modules` are
    programs by name, for those that `Program.save` left out: with their entries, and of the same version or a
    later one. Memory is made, and data read, when an entry is called or preloaded first; the file must not
    change until then. `progress` is as in `kp.load_tensors`: of the check of the data, here, and of each
    tensor's way to a device, then.

    Raises NotFoundError if the file, a module that it needs or an entry of that does not exist,
    FailedPreconditionError if a module's version is older, InvalidArgumentError if the file is damaged or not
    a program, or parameters do not fit, UnimplementedError if it is of a later version, UnavailableError if
    the system refuses to read it, ArgumentTypeError for other arguments.

    >>> program = kp.Program.record(kp.ops.exp, kp.TensorSpec(2))
    >>> program.save("exp.kpp")
    >>> kp.load_program("exp.kpp").main([0, 0]).tolist()
    [1.0, 1.0]
    """
    functions = _functions(hosts)
    content, files, contents = file.load(source, progress)
    if parameters is not None:
        exact = isinstance(parameters, Mapping) and not isinstance(parameters, TensorIndex)
        given: Any = parameters
        index = TensorIndex(given) if exact else given
        if not isinstance(index, TensorIndex):
            index = tensor_file_info(index)
        contents = file.with_parameters(content, contents, index, exact)
    if content.needs or modules:
        joined = Program(modules or {})._core
        for needed in content.needs:
            _check_needed(needed, joined.parts.get(needed.name))
        content = content._replace(parts=(*content.parts, *joined.content.parts), needs=())
        c.check(content)
        files, contents = {**files, **joined.files}, {**contents, **joined.contents}
        functions = {**joined.hosts, **functions}
    return Program._of(_Core(content, files, contents, functions, progress))


def _to_version(version: int) -> int:
    number = as_index(version, "version")
    if not 0 <= number < 2**63:
        raise InvalidArgumentError(f"version is {number}; give an int from 0 on")
    return number


def _check_needed(needed: c.Needed, found: c.Part | None) -> None:
    """Raises the errors of `load_program` for a module."""
    if found is None:
        raise NotFoundError(
            f"The program needs the module {needed.name}, version {needed.version} or later: give it, "
            f"kp.load_program(path, modules={{{needed.name!r}: program}})"
        )
    if found.version < needed.version:
        raise FailedPreconditionError(
            f"The program needs version {needed.version} of the module {needed.name}, or a later one; it is "
            f"given version {found.version}"
        )
    for name in needed.entries:
        if name not in [entry.name for entry in found.entries]:
            raise NotFoundError(
                f"The program needs the entry {needed.name}.{name}; version {found.version} of the module "
                "does not have it"
            )


def _functions(hosts: Hosts) -> dict[str, Callable[..., object]]:
    if hosts is not None and not isinstance(hosts, Mapping):
        raise ArgumentTypeError(f"hosts is {kind_of(hosts)}; give a dict of functions by name")
    for name, function in (hosts or {}).items():
        if not isinstance(name, str) or not callable(function):
            raise ArgumentTypeError(
                f"hosts has {kind_of(function)} for {shown(name)}; give functions by name"
            )
    return dict(hosts or {})


def _checked(what: str, given: Any) -> list[tuple[str, Any]]:
    if given is None:
        return []
    if not isinstance(given, Mapping):
        argument = what if what == c.STATE else f"{what}s"
        raise ArgumentTypeError(f"{argument} is {kind_of(given)}; give a dict of Tensors and Images by name")
    for name, memory in given.items():
        if not isinstance(memory, Memory):
            raise ArgumentTypeError(f"{what} {shown(name)} is {kind_of(memory)}; give a Tensor or an Image")
        memory._require_init("be in a program")
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidArgumentError(f"The name of {what} memory is an identifier, not {shown(name)}")
    return list(given.items())
