"""Kernel: a shader that is called like a function.

Everything about a call comes from the shader's reflection (`signature`). The first call of a kind is
checked here, and the table of prepared calls (`prepared`) runs the later ones with no Python code: it finds
the descriptor sets for the memory that it is given and evaluates a recording of one dispatch, in which push
constants and the grid are changed in place.

The file has 1,000 lines because a call is one thing: its checks, the operation that `bind` makes and the
kernel's other versions share their state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np

from .. import _native
from .._base.arrays import as_index, counts_of, require_manager, to_flag
from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    KomputeError,
    UnimplementedError,
    kind_of,
    not_copyable,
    shown,
)
from .._launches.code import Access
from .._launches.grid import Spelling
from .._launches.launches import Launches
from .._launches.outputs import Output
from .._memory.memory import Memory, memory_list
from .._memory.sampler import Bindable, SampledImage, Sampler
from .._memory.tensor import Tensor
from .._recording.binding import check_argument, check_owner, indirect_groups, made_by, texel_format
from .._recording.preload import Ahead, report_built
from .._recording.streams import stream_of, submit_stream
from .._shaders.constants import NO_SPECIALIZATION, Specialization
from .._shaders.module import ShaderModule, naming
from .._shaders.signature import MISSING, Parameter, Signature
from .._sync.fence import Fence
from .arrays import array_for
from .calls import check_references, flat, is_number_for_array, owners, refuse_number, several
from .family import Specializations
from .operation import OpKernel, OpWatchedKernel, Version
from .prepared import table_for, teach
from .scratch import Scratch

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._manager.manager import Manager
    from .._sync.semaphore import Semaphore, Waitable
    from ..typing import KernelOptions, ShaderSource, TextLanguage
    from .reload import Reloader

_EMPTY: Mapping[str, Any] = {}
_NOTHING: tuple[()] = ()
# (what a call returns, array to read into, memory of the results); None, None if it is the memory itself.
_Result = tuple[Any, Any, Any]
_Out = TypeVar("_Out", bound="np.ndarray[Any, Any]")


def _is_zero(bounds: Any, name: str, manager: Manager) -> bool:
    """Whether `bounds` is "zero", which the device must promise."""
    if type(bounds) is not str or bounds not in ("check", "zero"):
        raise InvalidArgumentError(f'{name}: bounds is {shown(bounds)}; choose "check" or "zero"')
    if bounds == "zero" and "robustBufferAccess2" not in manager.enabled_features:
        raise UnimplementedError(
            f"{name}: bounds=\"zero\" needs the device feature 'robustBufferAccess2' (VK_EXT_robustness2), "
            "which this Manager does not have; without it, reads beyond an array give any value"
        )
    return bool(bounds == "zero")


def _together(constants: Mapping[Any, Any], named: Mapping[str, Any]) -> Mapping[Any, Any]:
    for name in named:
        if name in constants:
            raise InvalidArgumentError(f"Specialization constant {name!r} is given twice")
    return {**constants, **named}


class Kernel:
    """A compute shader to be called like a function. Made by ``mgr.kernel(source)``.

    >>> scale = mgr.kernel('''
    ... #version 450
    ... layout(local_size_x = 64) in;
    ... layout(set = 0, binding = 0) readonly buffer X { float x[]; };
    ... layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
    ... layout(push_constant) uniform P { float factor; };
    ... void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = factor * x[i]; }
    ... ''')
    >>> scale(np.arange(4, dtype=np.float32), np.empty(4, np.float32), factor=2.0).tolist()
    [0.0, 2.0, 4.0, 6.0]

    **Arguments.** Bindings by position (in the order of set and binding) or by name: the instance's name,
    else that of the block's only member, else the block's. Push-constant members by name. ``out=`` stands for
    the only binding that is written; ``bind={...}`` and ``push={...}`` take names that are no Python
    identifiers, or that clash with `grid`, `groups`, `indirect`, `out`, `uses`, `bind` and `push`, and in
    `submit` with `wait` and `signal`. A block of fixed size that the shader only reads, such as a uniform
    buffer, takes ``{member: value}``, too. A buffer reference (GL_EXT_buffer_reference) among the push
    constants takes a Tensor. Tensors with addresses that the shader finds in memory instead are named in
    ``uses=[...]``, to be kept alive.

    **Arrays.** Tensors, views of them and Images are used in place. NumPy arrays, and all that shares its
    memory through the buffer protocol or DLPack (`array.array`, memoryviews, ctypes arrays, torch tensors on
    the CPU), are copied in; those that the shader writes are copied back into the same memory, and returned.
    Lists and numbers are copied in, too. They cannot be
    written: for a binding that the shader writes they are refused, and so are read-only memory and objects
    that only convert to an array by a copy.

    **Outputs.** A binding that the shader only writes may be left out: ``c = add(a, b)``, ``img =
    render(grid=(w, h))``. The call then makes it, with zeros where the shader writes nothing, and returns it:
    a Tensor if a Tensor or an Image is among the arguments, else an ndarray; for a storage image with a
    declared format, an Image. It has the shape of the arguments that the code uses at the index at which it
    writes, or
    else one element for each invocation of `grid`: shape (h, w) for ``grid=(w, h)``. If neither holds for
    every write, InvalidArgumentError names what to give. (docs/guides/kernels.md has the rule in full.)

    **How many.** ``grid=(x, y, z)`` counts invocations and is rounded up to whole groups, so the shader
    checks its bounds; ``groups=`` counts workgroups. If neither is given, the grid follows the first argument
    that is written: one invocation for each element if the code uses one component of its number
    (``gl_GlobalInvocationID.x``), whatever the shape; the reversed shape, in elements, if it uses as many
    components as there are axes. A ``vec4 b[]`` has (h, w) elements in an array of shape (h, w, 4); an image
    has its texels. In doubt, InvalidArgumentError names the choices. (docs/guides/kernels.md has the rule in
    full.)
    Invocations beyond the grid, which fill up the last groups, may write elements of others: ``b[y * w + x]``
    without a check of x. InvalidArgumentError then names the axis.
    More groups on one axis than the device takes run in layers, as one dispatch.
    ``indirect=`` is a uint32 Tensor, or a view of one, with the numbers of workgroups in x, y and z: the
    device reads them when the shader begins, so earlier work may compute them. The checks of sizes then do
    not apply, outputs cannot be left out, and numbers above the device's limit are undefined behavior (see
    OpAlgoDispatch).

    **Sizes.** Arrays that the shader indexes by the same expression of the invocation's number belong
    together: one that ends before the invocations do that use it raises InvalidArgumentError, since the
    shader would read zeros there, and so does one number for an array. Elements that a default grid leaves
    out are a KomputeWarning. (docs/guides/kernels.md lists what is not checked.)

    A call blocks until the device is done. Results in tensors stay on the device: ``t.read()``, or record
    `bind` before OpSyncLocal. `submit` does not block.

    **Host copies.** What a tensor or image was made from is uploaded once, before the first use of its device
    memory by anything. After that, only OpSyncDevice and `write` bring what you change in ``t.data()`` to the
    device; a call does not. To change a tensor between calls, use ``t.write(array)``.

    With ``bounds="zero"``, arrays may be shorter than a `grid` or `groups` that is given: beyond their end,
    reads give zeros and writes do nothing, as the device promises with its feature robustBufferAccess2.

    One kernel can be called from several threads; the calls run one after the other.

    **Files.** A kernel made with ``watch=True`` looks at its file, and at all that this includes, whenever it
    is called or a sequence that holds one of its operations is evaluated (about a microsecond for each file),
    and goes on with the new version. An edit that does not work changes nothing: it is a KomputeWarning,
    once, and `error` holds it. `reload` takes the new version by hand.
    """

    __module__ = "kompute_py"  # public; imported when first used

    __slots__ = {
        "__weakref__": "",
        "_built": "",
        "_launches": "",
        "_local_size": "",
        "_lock": "",
        "_look": "",
        "_manager": "",
        "_module": "",
        "_native": "",
        "_reloader": "",
        "_scratch": "",
        "_signature": "",
        "_special": "",
        "_specialized": "",
        "_table": "",
        "_values": "",
        "_watch": "",
        "_zero": "",
        "name": "The kernel's name in errors.",
    }

    def __init__(
        self,
        manager: Manager,
        source: ShaderSource,
        *,
        name: str | None = None,
        watch: bool = False,
        bounds: Literal["check", "zero"] = "check",
        stacklevel: int = 2,
        **options: Unpack[KernelOptions],
    ) -> None:
        require_manager(manager)
        watch = to_flag(watch, "watch")
        stacklevel = as_index(stacklevel, "stacklevel")
        dirs = options.get("include_dirs")
        if isinstance(dirs, Iterable) and not isinstance(dirs, (str, bytes, Mapping, Set)):
            options["include_dirs"] = list(dirs)  # to be read again
        module = ShaderModule(
            source,
            name=name,
            stacklevel=stacklevel + 1,
            _setting=manager._setting,
            **options,
        )
        with naming(module.name):
            native = module._on(manager._native)
        self._zero = _is_zero(bounds, module.name, manager)
        reloader = None
        if watch is not False or module._sought:
            from .reload import reloader_for  # late, because most kernels come from text

            reloader = reloader_for(manager, source, options, module, watch)
        look = reloader.look if reloader is not None and watch else None
        self._setup(manager, module, native, NO_SPECIALIZATION, {}, Specializations(manager), reloader, look)

    def _setup(
        self,
        manager: Manager,
        module: ShaderModule,
        native: _native.Shader,
        special: Specialization,
        values: dict[str | int, Any],
        specialized: Specializations,
        reloader: Reloader | None,
        look: Callable[[], None] | None,
    ) -> None:
        self._manager = manager
        self._module = module
        self._native = native
        self._signature = module._specialized(special)
        self._launches = Launches(module, self._signature, special)
        self._special = special
        self._values = values
        self._specialized = specialized
        self.name: str = module.name
        """The kernel's name in errors, validation messages and profiles."""
        self._local_size = self._signature.local_size
        self._built: _native.Algorithm | None = None  # keeps a pipeline that was built ahead
        self._watch = manager._watch
        self._reloader = reloader
        self._look = look  # of watched kernels: takes the files' new version
        self._lock = threading.RLock() if reloader is None else reloader.lock
        self._table = table_for(self._signature, manager, module.name)
        self._scratch = self._table.scratch = Scratch(manager, self._table)
        if reloader is not None:
            reloader.add(self)
        if self._watch is not None:
            self._watch()

    # -- calling ---------------------------------------------------------------------------------------------

    @overload
    def __call__(self, /, *args: Any, out: Memory, **keywords: Any) -> None: ...
    @overload
    def __call__(self, /, *args: Any, out: _Out, **keywords: Any) -> _Out: ...
    @overload
    def __call__(self, /, *args: Any, **keywords: Any) -> Any: ...
    def __call__(
        self,
        /,  # so that a binding or push constant may have the name self
        *args: Any,
        **keywords: Any,
    ) -> Any:
        """Runs the shader and waits until it is done: see `Kernel` for the arguments.

        Returns the arrays, and other arguments than tensors that the shader wrote, and the outputs
        that were left out (see `Kernel`): None, one, or a tuple in the order of the bindings. Each array is
        the object that was given.

        Raises InvalidArgumentError for unknown, missing or repeated arguments, memory that is too small or of
        the wrong kind, push constants out of range, a negative grid or one beyond the device's limits, a grid
        that was left out and that the shader leaves open, a grid with invocations beyond it that write
        elements of others, an output that was left out and whose shape does not follow;
        ArgumentTypeError for objects of wrong types and
        for a dtype that contradicts the binding's; FailedPreconditionError for what is destroyed.
        """
        if self._look is not None:
            self._look()
        with self._lock:
            result = self._table.call(args, keywords)
            if result is NotImplemented:
                return self._run(args, keywords)
            if self._watch is not None:
                self._watch()
            return result

    def _run(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        grid, groups, values, members, uses = self._resolve(args, keywords, True)
        self._scratch.begin()
        memories: list[Any] = []
        left_out: list[int] = []
        copied: list[tuple[np.ndarray[Any, Any], Memory]] = []
        results: list[_Result] = []
        for i, (parameter, value) in enumerate(zip(self._signature.parameters, values, strict=True)):
            if parameter.descriptors != 1 and value is not MISSING:
                memories.append(several(self.name, parameter, value))
                continue
            if value is MISSING and parameter.counts and parameter.used:
                array, memory = self._borrow(i, parameter, self._counter(parameter, values), values)
                memories.append(memory)
                copied.append((array, memory))
                continue
            if value is MISSING or isinstance(value, (Memory, Bindable)):
                memories.append(value)
                if value is MISSING and parameter.used:
                    left_out.append(i)
                continue
            array, memory = self._borrow(i, parameter, value, values)
            memories.append(memory)
            copied.append((array, memory))
            if parameter.written:
                results.append((value, array, memory))
        by_default = grid is None and groups is None
        indirect = groups if isinstance(groups, Tensor) else None
        outputs: list[Output] = []
        if left_out:
            outputs = self._outputs(left_out, self._checked(memories), grid, groups, self._pack(members))
            results = self._made(outputs, values, memories, copied, results)
        bound = self._checked(memories)
        extent, count = self._extent(grid, groups, bound)
        references = self._references(members, uses)
        push = self._pack(members)
        if indirect is None:
            self._check_sizes(bound, extent, count, push, by_default, left_out)
        if outputs:
            launch = self._launches.launch(extent, count, push, by_default)
            self._launches.outputs.check(self.name, outputs, bound, launch)
        if not all(count):  # nothing runs, nothing is bound
            return self._given_back(results)
        entry, built = self._entry(bound, references, count, push, indirect)
        # Only now that nothing is left to refuse. Also what the shader only writes: it may leave parts as the
        # caller had them.
        for array, memory in copied:
            memory.write(array)
        began = perf_counter()
        self._table.evaluate(entry, count, push)
        if built is not None:
            report_built(self.name, built, perf_counter() - began)
        if self._watch is not None:
            self._watch()
        if not references and indirect is None and not self._scratch.beyond:
            self._teach(args, keywords, values, bound, outputs, entry, None, extent, count, by_default, push)
        for _, array, memory in results:
            if memory is not None:
                memory.read(array)
        return self._given_back(results)

    def _teach(
        self,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        values: list[Any],
        bound: tuple[Any, ...],
        outputs: list[Output],
        entry: _native.CallEntry | None,
        algorithm: _native.Algorithm | None,
        extent: tuple[int, int, int] | None,
        groups: tuple[int, int, int],
        by_default: bool,
        push: bytes,
    ) -> None:
        """Prepares later calls of this kind; see `prepared`."""
        if algorithm is None:
            assert entry is not None
            algorithm = entry.algorithm
        teach(
            self._table,
            self.name,
            self._signature,
            args,
            keywords,
            values,
            bound,
            outputs,
            entry,
            algorithm,
            extent,
            groups,
            by_default,
            push,
            self._launches,
        )

    def _outputs(
        self, left_out: list[int], bound: tuple[Any, ...], grid: Any, groups: Any, push: bytes
    ) -> list[Output]:
        """The outputs that the call leaves out: see `outputs`."""
        launch = None
        if isinstance(groups, Tensor):
            names = ", ".join(self._signature.parameters[i].name for i in left_out)
            raise InvalidArgumentError(
                f"{self.name}: with indirect=, outputs cannot be left out, because the host does not know "
                f"how many groups run: give {names}"
            )
        if grid is not None or groups is not None:
            extent, count = self._extent(grid, groups, ())
            launch = self._launches.launch(extent, count, push, False)
        return self._launches.outputs.shapes(self.name, left_out, bound, launch)

    def _made(
        self,
        outputs: list[Output],
        values: list[Any],
        memories: list[Any],
        copied: list[tuple[np.ndarray[Any, Any], Memory]],
        results: list[_Result],
    ) -> list[_Result]:
        """Adds `outputs` to the call: Tensors if a Tensor or an Image is among the arguments, else arrays.
        Returns all results in the order of the bindings.
        """
        in_place = any(isinstance(each, (Memory, SampledImage)) for each in flat(values))
        made: dict[int, _Result] = {}
        for output in outputs:
            i = output.position
            if in_place or output.format is not None:
                memory = memories[i] = output.made(self._manager)
                made[i] = memory, None, None
                continue
            fresh = np.zeros(output.shape, output.dtype)
            array, memory = self._borrow(i, self._signature.parameters[i], fresh, values)
            memories[i] = memory
            copied.append((array, memory))
            made[i] = fresh, array, memory
        before = iter(results)
        for i, parameter in enumerate(self._signature.parameters):
            single = parameter.written and parameter.descriptors == 1
            if (
                single
                and i not in made
                and values[i] is not MISSING
                and not isinstance(values[i], (Memory, Bindable))
            ):
                made[i] = next(before)
        return [made[i] for i in sorted(made)]

    @staticmethod
    def _given_back(results: list[_Result]) -> Any:
        if not results:
            return None
        given_back = tuple(value for value, _, _ in results)
        return given_back[0] if len(given_back) == 1 else given_back

    def submit(
        self,
        /,
        *args: Any,
        wait: Waitable | Iterable[Waitable] = (),
        signal: tuple[Semaphore, int] | Iterable[tuple[Semaphore, int]] = (),
        **keywords: Any,
    ) -> Fence:
        """Like a call, but returns at once: the shader runs after earlier work on the same memory and before
        later work.

        `wait` and `signal` are as in `Sequence.eval_async` and `Manager.submit`. Takes tensors and images
        only, since an array's results could not be copied back. Raises what a call and `Manager.submit`
        raise.
        """
        if wait is not _NOTHING or signal is not _NOTHING:
            stream = stream_of(self._manager, (self.bind(*args, **keywords)._native,))
            return submit_stream(self._manager, stream, wait, signal)
        if self._look is not None:
            self._look()
        with self._lock:
            fence = self._table.submit(args, keywords)
            if fence is NotImplemented:
                values, bound, extent, count, members, uses, by_default, indirect = self._bound(
                    args, keywords
                )
                references, push = self._references(members, uses), self._pack(members)
                if indirect is None:
                    self._check_sizes(bound, extent, count, push, by_default)
                entry, built = self._entry(bound, references, count, push, indirect)
                if built is not None:
                    report_built(self.name, built)
                fence = self._table.submit_entry(entry, count, push)
                if not references and indirect is None:
                    self._teach(
                        args, keywords, values, bound, [], entry, None, extent, count, by_default, push
                    )
        if self._watch is not None:
            self._watch()
        return Fence(fence, (self._manager,))

    def bind(self, /, *args: Any, **keywords: Any) -> OpKernel:
        """The shader with these arguments as an operation: ``seq.record(k.bind(a, b, out, scale=2.0))``.

        Takes what a call takes, but tensors and images only: an array would have to be copied at every
        evaluation. Host copies that changed since their first upload are not uploaded: record OpSyncDevice.
        Raises what a call raises.
        """
        if self._look is not None:
            self._look()
        with self._lock:
            return self._bind(args, keywords)

    def _bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> OpKernel:
        kind = OpKernel if self._look is None else OpWatchedKernel
        found = self._table.bind(args, keywords)
        if found is not NotImplemented:
            native, packed, memories, (extent, count, by_default) = found
            push = self._signature.push
            members = {} if push is None else {name: keywords[name] for name in push.names}
            operation = kind._of(self, memories, extent, count, members, (), by_default, (), packed, native)
        else:
            values, memories, extent, count, members, uses, by_default, indirect = self._bound(args, keywords)
            operation = kind(self, memories, extent, count, members, uses, by_default, indirect)
            packed = operation._push
            if indirect is None:
                self._check_sizes(memories, extent, count, packed, by_default)
            if not operation._references and indirect is None:
                algorithm = operation._native.algorithm
                self._teach(
                    args, keywords, values, memories, [], None, algorithm, extent, count, by_default, packed
                )
        if self._reloader is not None:
            self._reloader.add_operation(operation)
        return operation

    def _bound(
        self, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[
        list[Any],
        tuple[Any, ...],
        tuple[int, int, int] | None,
        tuple[int, int, int],
        dict[str, Any],
        tuple[Memory, ...],
        bool,
        Tensor | None,
    ]:
        """(values, memory by parameter, extent, groups, push constants, `uses`, whether the grid is the
        default, `indirect`) of a call that takes no arrays.
        """
        grid, groups, values, members, uses = self._resolve(args, keywords)
        for i, (parameter, value) in enumerate(zip(self._signature.parameters, values, strict=True)):
            if parameter.descriptors != 1 and value is not MISSING:
                values[i] = several(self.name, parameter, value)
            elif value is not MISSING and not isinstance(value, (Memory, Bindable)):
                raise ArgumentTypeError(
                    f"{self.name}: {parameter.name!r} is {kind_of(value)}; give a Tensor or Image: "
                    "bind and "
                    "submit copy nothing in or back"
                )
        bound = self._checked(values)
        extent, count = self._extent(grid, groups, bound)
        indirect = groups if isinstance(groups, Tensor) else None
        return values, bound, extent, count, members, uses, grid is None and groups is None, indirect

    def preload(self) -> None:
        """Builds all that the device needs to run the kernel, and waits for that: the first call then takes
        no longer than later ones, whatever its arguments. No group runs.

        A call, `submit` or `bind` that builds a pipeline first says so in the log "kompute_py" (level INFO),
        with the time. ``mgr.preload([...])`` builds several in parallel. See there for the exceptions and the
        errors.
        """
        self._manager.preload((self,))

    def _ahead(self) -> Ahead:
        if self._look is not None:
            self._look()
        return Ahead(self._native, self._special, self._signature)

    def _keep(self, built: _native.Algorithm | None) -> None:
        """Keeps the pipeline that was built ahead."""
        self._built = built

    def _resolve(
        self, args: tuple[Any, ...], keywords: dict[str, Any], outputs: bool = False
    ) -> tuple[Any, Any, list[Any], dict[str, Any], tuple[Memory, ...]]:
        """(grid, groups, values, push constants, `uses`). Tensor groups are those of `indirect`."""
        rest = dict(keywords)
        grid, groups = rest.pop("grid", None), rest.pop("groups", None)
        if isinstance(groups, Tensor):
            raise ArgumentTypeError(
                f"{self.name}: groups is a Tensor; give it as indirect= for groups that the device reads"
            )
        if (indirect := rest.pop("indirect", None)) is not None:
            if grid is not None or groups is not None:
                raise InvalidArgumentError(
                    f"{self.name}: give grid or groups if the host knows them, or indirect if the device "
                    "computes the groups, not both"
                )
            groups = indirect_groups(indirect, 0, self._manager, self.name)
        uses: tuple[Memory, ...] = ()
        if (given := rest.pop("uses", None)) is not None:
            uses = tuple(
                memory_list(given, f"{self.name}(uses=...)", manager=self._manager, one=True, empty=True)
            )
        bind, push = rest.pop("bind", None), rest.pop("push", None)
        bind, push = (_EMPTY if mapping is None else mapping for mapping in (bind, push))
        for name, mapping in (("bind", bind), ("push", push)):
            if not isinstance(mapping, Mapping):
                raise ArgumentTypeError(f"{self.name}: {name} is {kind_of(mapping)}; give {{name: value}}")
        values, members = self._signature.resolve(self.name, args, rest, bind, push, outputs)
        return grid, groups, values, members, uses

    def _references(self, members: Mapping[str, Any], uses: tuple[Memory, ...]) -> tuple[Memory, ...]:
        """The tensors that the shader reaches by their addresses."""
        push = self._signature.push
        found = (
            uses if push is None or not push.has_references else (*push.references(members, self.name), *uses)
        )
        if found:
            check_references(self.name, self._manager, found)
        return found

    def _checked(self, values: Iterable[Any]) -> tuple[Memory, ...]:
        """The memory of each parameter; unused ones that are not given repeat another's."""
        signature, manager = self._signature, self._manager
        bound = tuple(values)
        for parameter, dtype, value in zip(signature.parameters, signature.plain, bound, strict=True):
            if (
                type(value) is Tensor
                and value._dtype is dtype
                and value._manager is manager
                and value._is_init()
            ):
                continue
            if value is not MISSING:
                for each in value if parameter.descriptors != 1 else (value,):
                    self._check(parameter, each)
        return bound

    def _check(self, parameter: Parameter, memory: Any, array: np.ndarray[Any, Any] | None = None) -> None:
        """Raises if `memory` does not fit `parameter`.

        `array` is the array that it holds, if that was given.
        """
        if memory._manager is not self._manager or not memory._is_init():
            check_owner(memory, self._manager, f"{parameter.name!r} of {self.name}")
        check_argument(parameter, memory, f"{self.name}: {parameter.name!r}", array=array)

    def _beside(self, index: int, values: list[Any]) -> list[tuple[Parameter, Any]]:
        """The other parameters with what they are given, those first that have to agree in size with
        parameter `index`.
        """
        tied = self._launches.sizes.tied_to(index)
        given = enumerate(zip(self._signature.parameters, values, strict=True))
        return [pair for i, pair in sorted(given, key=lambda each: each[0] not in tied) if i != index]

    def _counter(self, parameter: Parameter, values: list[Any]) -> np.ndarray[Any, Any]:
        """The first value of a hidden counter that was left out: 0, or the number of elements to consume."""
        if not parameter.consumed:
            return np.zeros(1, np.uint32)
        place = self._signature.position(parameter.counts)
        value = MISSING if place is None else values[place]
        if place is None or value is MISSING:
            raise InvalidArgumentError(
                f"{self.name}: give {parameter.name}=, the number of elements to consume"
            )
        given = self._signature.parameters[place]
        if not hasattr(value, "nbytes"):
            value = array_for(given, value, f"{self.name}: {given.name!r}")
        stride = given.layout["members"][0]["array_strides"][-1]
        return np.array([value.nbytes // stride], np.uint32)

    def _borrow(
        self, index: int, parameter: Parameter, value: Any, values: list[Any]
    ) -> tuple[np.ndarray[Any, Any], Memory]:
        """(array over the argument's memory, tensor to hold a copy of it) for an argument that is not a
        Tensor.
        """
        what = f"{self.name}: {parameter.name!r}"
        if parameter.is_image or parameter.kind == "sampler":
            raise ArgumentTypeError(
                f"{what} is a {parameter.kind} ({parameter.type}), not {type(value).__name__}: make it with "
                f"{made_by(parameter)}"
            )
        if type(value) is not np.ndarray:
            if is_number_for_array(parameter, value):
                refuse_number(parameter, value, what, self._beside(index, values))
        array = array_for(parameter, value, what)
        memory = self._scratch.tensor(index, array)
        self._check(parameter, memory, array)
        return array, memory

    def _extent(
        self, grid: Any, groups: Any, bound: tuple[Any, ...]
    ) -> tuple[tuple[int, int, int] | None, tuple[int, int, int]]:
        """(invocations, or None if workgroups are given; workgroups)."""
        if grid is not None and groups is not None:
            raise InvalidArgumentError(
                f"{self.name}: give grid (invocations) or groups (workgroups), not both"
            )
        if isinstance(groups, Tensor):
            return None, (1, 1, 1)
        if groups is not None:
            count = counts_of(groups, f"{self.name}: groups", "workgroups")
            self._manager._check_groups(count, f"{self.name}: groups {groups!r}", self._native, self._special)
            return None, count
        if grid is None:
            extent = self._launches.default(self.name, bound)
        else:
            extent = counts_of(grid, f"{self.name}: grid", "invocations")
        return extent, self._groups_of(extent, self._local_size, self._native, self._special)

    def _groups_of(
        self,
        extent: tuple[int, int, int],
        local_size: tuple[int, int, int],
        shader: _native.Shader,
        special: Specialization,
    ) -> tuple[int, int, int]:
        x, y, z = extent
        i, j, k = local_size
        if not min(local_size):
            raise InvalidArgumentError(
                f"{self.name}: its constants give it the local size {local_size}; each axis needs at least "
                "1: specialize it"
            )
        count = (-(-x // i), -(-y // j), -(-z // k))
        self._manager._check_groups(
            count, f"{self.name}: grid {extent} with local size {local_size}", shader, special
        )
        return count

    def _check_sizes(
        self,
        bound: tuple[Any, ...],
        extent: tuple[int, int, int] | None,
        groups: tuple[int, int, int],
        push: bytes,
        by_default: bool,
        made: Sequence[int] = (),
    ) -> None:
        """Raises if the launch may be wrong: see `Launches.check`. `made` are outputs that were left out."""
        launch = self._launches.launch(extent, groups, push, by_default)
        zero = self._zero and not by_default
        self._launches.check(self.name, bound, launch, made, sizes=not zero)
        if zero:
            self._check_zero(self._launches.sizes.differing(bound), bound)

    def _check_zero(
        self, differing: list[tuple[int, list[Access], list[int]]], bound: tuple[Any, ...]
    ) -> None:
        """Raises if the device does not read zeros beyond the end of a shorter array."""
        for _, uses, counts in differing:
            for use, count in zip(uses, counts, strict=True):
                parameter = self._signature.parameters[use.position]
                if count < max(counts) and (
                    parameter.kind != "storage buffer" or bound[use.position].nbytes % 4
                ):
                    raise InvalidArgumentError(
                        f'{self.name}: {parameter.name!r} ends before other arrays, and bounds="zero" is for '
                        f"storage buffers with whole words of 4 bytes; it is a {parameter.kind} of "
                        f"{bound[use.position].nbytes} bytes"
                    )

    def _check_default(self, bound: tuple[Any, ...], members: Mapping[str, Any], spell: Spelling) -> None:
        """Raises if the default grid is not certain; `spell` says how the error writes the choices."""
        extent = self._launches.default(self.name, bound, spell)
        groups = self._groups_of(extent, self._local_size, self._native, self._special)
        launch = self._launches.launch(extent, groups, self._pack(members), True)
        self._launches.check(self.name, bound, launch, spell=spell)

    def _pack(self, members: Mapping[str, Any]) -> bytes:
        push = self._signature.push
        return b"" if push is None else push.pack_named(members, self.name)

    def _arguments(self, bound: tuple[Any, ...]) -> list[Any]:
        """The native arguments of an algorithm: (set, binding, element, memory, sampler or the format of a
        texel buffer that has none).
        """
        arguments = []
        for parameter, given in zip(self._signature.parameters, bound, strict=True):
            if given is MISSING:
                continue
            for element, each in enumerate(given if parameter.descriptors != 1 else (given,)):
                native = each._native
                memory, sampler = (
                    (native, texel_format(parameter, each, self.name))
                    if parameter.texels == ""
                    else native
                    if type(native) is tuple
                    else (None, native)
                    if isinstance(each, Sampler)
                    else (native, None)
                )
                arguments.append((parameter.set, parameter.binding, element, memory, sampler))
        return arguments

    def _algorithm(
        self,
        bound: tuple[Any, ...],
        groups: tuple[int, int, int],
        push: bytes,
        shader: _native.Shader,
        special: Specialization,
    ) -> _native.Algorithm:
        made, built = self._made_algorithm(self._arguments(bound), groups, push, shader, special)
        if built is not None:
            report_built(self.name, built)
        return made

    def _made_algorithm(
        self,
        arguments: list[Any],
        groups: tuple[int, int, int],
        push: bytes,
        shader: _native.Shader,
        special: Specialization,
    ) -> tuple[_native.Algorithm, float | None]:
        manager = self._manager._native
        known = manager.knows_pipeline(shader, special.data, special.entries)
        began = perf_counter()
        with naming(self.name):
            algorithm = manager.algorithm(shader, arguments, groups, special.data, special.entries, push)
        algorithm.name = self.name
        # Of arrays of run-time length, it is not known whether their pipeline is.
        new = not known and all(p.descriptors for p in self._signature.parameters)
        return algorithm, perf_counter() - began if new else None

    def _dispatch(
        self,
        bound: tuple[Any, ...],
        groups: tuple[int, int, int],
        push: bytes,
        references: Iterable[Memory],
        indirect: Tensor | None = None,
    ) -> _native.BoundDispatch:
        """The native operation."""
        self._signature.spec.warn_of_defaults(self._special, self.name)
        algorithm = self._algorithm(bound, groups, push, self._native, self._special)
        reached = [each._native for each in references]
        read = None if indirect is None else indirect._native
        return _native.op_bound_dispatch(algorithm, groups, push, reached, read)

    def _entry(
        self,
        bound: tuple[Any, ...],
        references: tuple[Memory, ...],
        groups: tuple[int, int, int],
        push: bytes,
        indirect: Tensor | None,
    ) -> tuple[_native.CallEntry, float | None]:
        """The descriptor sets for this memory, and the seconds of building the pipeline, if it was built."""
        built: float | None = None

        def make() -> _native.Algorithm:
            nonlocal built
            self._signature.spec.warn_of_defaults(self._special, self.name)
            made, built = self._made_algorithm(arguments, groups, push, self._native, self._special)
            return made

        arguments = self._arguments(bound)
        self._table.name = self.name
        used = (*flat(bound), *references, *(() if indirect is None else (indirect,)))
        reached = [each._native for each in references]
        read = None if indirect is None else indirect._native
        entry = self._table.entry(arguments, reached, owners(used), make, read)
        return entry, built

    # -- specialization --------------------------------------------------------------------------------------

    def specialize(self, constants: Mapping[str | int, Any] | None = None, /, **named: Any) -> Kernel:
        """The kernel with these specialization constants; those not given keep their values.

        The same constants give the same kernel while that is in use, and for the 16 that were asked for last
        also when it is not (fewer if the Manager's `recent_pipelines` is less).

        By name, ``k.specialize(TILE=16)``, or by id, ``k.specialize({0: 16})``, for constants that have no
        name. A value given again replaces the earlier one.

        Raises InvalidArgumentError for a name or id that the shader lacks, one that is given twice, or a
        value that does not fit its type; ArgumentTypeError for `constants` that are not a mapping and for
        keys that are neither.
        """
        if constants is not None and not isinstance(constants, Mapping):
            raise ArgumentTypeError(
                f"{self.name}: constants are {kind_of(constants)}; give {{id or name: value}}, or name=value"
            )
        if not constants and not named:
            return self
        if self._look is not None:
            self._look()
        spec = self._signature.spec
        with naming(self.name):
            # By name if there is one, because an edit of the file may renumber the constants.
            given = spec.labelled(_together(constants or {}, named))
            values = {**self._values, **given}
            special = spec.pack(values)
        # By value too, whatever the order in which they were given.
        key = frozenset((spec.label(i), special.data[at : at + size]) for i, at, size in special.entries)
        with self._lock:
            found = self._specialized.find(key)
            if found is None:
                made = Kernel.__new__(Kernel)
                made._zero = self._zero
                made._setup(
                    self._manager,
                    self._module,
                    self._native,
                    special,
                    values,
                    self._specialized,
                    self._reloader,
                    self._look,
                )
                found = self._specialized.add(key, made)
        return found

    # -- other versions --------------------------------------------------------------------------------------

    @property
    def error(self) -> KomputeError | None:
        """The error of the kernel's file at the last check: a ShaderCompileError, an InvalidArgumentError if
        the bindings differ, or an UnimplementedError if the device lacks a feature. None if the running
        version is that of the file.
        """
        return self._reloader.error if self._reloader is not None else None

    def reload(self) -> bool:
        """Compiles the file again and goes on with the result: this kernel, all that `specialize` made of the
        same file, and what is recorded of them, at its next evaluation. Grids are kept, and groups follow the
        new local size.

        Returns whether the shader changed. Raises ShaderCompileError if it does not compile,
        InvalidArgumentError if its bindings differ or recordings do not fit it, UnimplementedError if the
        device lacks a feature that it needs, NotFoundError for a missing file (the last version goes on then,
        and `error` has the exception), and FailedPreconditionError for a kernel that was not made from a
        file.
        """
        if self._reloader is None:
            from .reload import not_in_a_file

            raise not_in_a_file(self.name)
        return self._reloader.reload()

    def _prepare_version(self, module: ShaderModule, native: _native.Shader) -> Version:
        """This kernel with another module.

        If the module does not fit, raises an error and changes nothing.
        """
        special = module.signature.spec.pack(self._values) if self._values else NO_SPECIALIZATION
        self._manager._native.check_pipeline(native, special.data, special.entries)
        return Version(module, native, special, module._specialized(special))

    def _take_version(self, version: Version) -> None:
        self._module, self._native, self._special, self._signature = version
        self._local_size = self._signature.local_size
        self._launches = Launches(version.module, version.signature, version.special)
        self._built = None
        self._table = table_for(self._signature, self._manager, self.name)
        self._scratch = self._table.scratch = Scratch(self._manager, self._table)

    # -- what it is ------------------------------------------------------------------------------------------

    @property
    def manager(self) -> Manager:
        """The Manager that it belongs to."""
        return self._manager

    @property
    def module(self) -> ShaderModule:
        """The shader."""
        return self._module

    @property
    def signature(self) -> Signature:
        """Its arguments."""
        return self._signature

    @property
    def reflection(self) -> dict[str, Any]:
        """The shader's reflection, as plain data."""
        return self._module.reflection

    @property
    def local_size(self) -> tuple[int, int, int]:
        """Invocations of one workgroup in x, y, z, with the specialization constants applied."""
        return self._local_size

    @property
    def spec_constants(self) -> dict[str, Any]:
        """The specialization constants by name (or number if it has none): values given, else the
        defaults.
        """
        constants: dict[str, Any] = {}
        spec = self._signature.spec
        for identity, value in spec.unpack(self._special).items():
            constants[str(spec.label(identity))] = value
        return constants

    @property
    def entry_points(self) -> tuple[str, ...]:
        """All compute entry points of its module; ``mgr.kernel(k, entry=name)`` makes a kernel of another."""
        return self._module.entry_points

    def disassembly(self) -> str:
        """The SPIR-V as text."""
        return self._module.disassembly()

    def to(self, language: TextLanguage) -> str:
        """The shader written in "glsl" or "hlsl".

        Raises InvalidArgumentError for another language, UnimplementedError if the language cannot express
        the shader.
        """
        return self._module.to(language)

    def to_spirv(self) -> bytes:
        """The SPIR-V."""
        return self._module.to_spirv()

    def __reduce_ex__(self, protocol: object) -> Any:
        """Copying and pickling are refused: ArgumentTypeError (a TypeError) that says what to do instead."""
        raise not_copyable(
            self, "keep the source, or kernel.to_spirv(), and make a new one with mgr.kernel, in each process"
        )

    def __str__(self) -> str:
        signature = self.signature
        names = {c["id"]: c["name"] or f"constant {c['id']}" for c in signature.spec_constants}
        sizes = [
            f"{size} ({names[i]})" if i in names else str(size)
            for size, i in zip(self.local_size, signature.local_size_ids, strict=True)
        ]
        lines = [signature.text(self.name), f"  local size  {' x '.join(sizes)}"]
        for p in signature.parameters:
            gaps = f" ({p.padded_stride} bytes apart)" if p.padded_stride else ""
            lines.append(f"  binding     {p.set}.{p.binding} {p.name}: {p.kind}, {p.type}{gaps}, {p.access}")
        if signature.push is not None:
            lines.append(f"  push        {signature.push.name}: {signature.push.size} bytes")
        lines += [f"  struct      {text}" for text in signature.structs()]
        for name, value in self.spec_constants.items():
            lines.append(f"  constant    {name} = {value}")
        if len(self.entry_points) > 1:
            others = [name for name in self.entry_points if name != signature.entry]
            lines.append(f"  entry       {signature.entry}; the module has {', '.join(others)}, too")
        needs = [c for c in signature.capabilities if c != "Shader"]
        if needs:
            lines.append(f"  needs       {', '.join(needs)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<kp.Kernel {self._signature.text(self.name)}>"

    def _repr_html_(self) -> str:
        """For notebooks: the signature."""
        from .._display.cards import kernel_card

        return kernel_card(self)
