"""Kernel: a shader that is called like a function.

Everything about a call comes from the shader's reflection (`signature`). The first call of a kind is
checked here, and the table of prepared calls (`prepared`) runs the later ones with no Python code: it finds
the descriptor sets for the memory that it is given and evaluates a recording of one dispatch, in which push
constants and the grid are changed in place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Set
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

import numpy as np

from .. import _native
from .._base.arrays import as_index, to_flag
from .._base.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    KomputeError,
    UnimplementedError,
    kind_of,
    shown,
)
from .._base.public import Routine
from .._device.device import Device, require_manager
from .._device.owner import Owned
from .._launches.grid import Spelling
from .._memory.lending import Lending
from .._memory.memory import Memory
from .._memory.needs import current as planning
from .._memory.needs import planned
from .._memory.tensor import Tensor
from .._recording.preload import Ahead, preload, report_built
from .._shaders.constants import NO_SPECIALIZATION
from .._shaders.module import ShaderModule, naming
from .._shaders.signature import Signature
from .._sync.fence import Fence
from .._sync.ordered import Order, called_in_order, fence_of, order_of, stream_of, submit_stream
from .call import Call
from .call_signature import CallSignature, CallText
from .donation import donating, with_taken
from .needs import plan_call
from .operation import OpKernel, OpReloadableKernel, OpWatchedKernel
from .prepared import sources, table_for, teach, teach_ahead
from .specializations import Specializations
from .version import Version

if TYPE_CHECKING:
    from typing_extensions import TypeVar as _WithDefault
    from typing_extensions import Unpack

    from .._base.annotations import KernelOptions, ShaderSource, TextLanguage
    from .._memory.needs import MemoryNeeds
    from .._shaders.statistics import ShaderStatistics
    from .._sync.semaphore import Signals, Waits
    from .reload import Reloader

# What calls give, as in Kernel[kp.Tensor]. Without it, checkers of types take Any: the shader alone knows.
if TYPE_CHECKING:
    Results = _WithDefault("Results", default=Any, covariant=True)
else:
    Results = TypeVar("Results")

_NOTHING: tuple[()] = ()
_Out = TypeVar("_Out", bound="np.ndarray[Any, Any]")


def _is_zero(bounds: Any, name: str, manager: Device) -> bool:
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


class Kernel(Routine, Owned, Generic[Results]):
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
    identifiers, or that clash with `grid`, `groups`, `indirect`, `out`, `uses`, `bind`, `push`, `wait`,
    `signal` and `donate`. A block of fixed size that the shader only reads, such as a uniform
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
    has its texels. In doubt, InvalidArgumentError names the choices. (docs/reference/kernel_rules.md has
    the rule in full.)
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
    out are a KomputeWarning. (docs/reference/kernel_rules.md lists what is not checked.)

    A call blocks until the device is done. Results in tensors stay on the device: ``t.read()``, or record
    `bind` before OpSyncLocal. `submit` does not block. ``wait=`` and ``signal=`` of both are as in
    `Sequence.eval_async`: a call waits for `wait` before it looks at its arguments, and signals at its end,
    on the host; an error signals nothing. ``donate=`` of a call (names or positions of Tensors that the
    shader only reads, or True for all of these) ends them after the call, so that their memory is free for
    the next one; a call that fails gives them back.

    **Host copies.** What a tensor or image was made from is uploaded once, before the first use of its device
    memory by anything. After that, only OpSyncDevice and `write` bring what you change in ``t.data()`` to the
    device; a call does not. To change a tensor between calls, use ``t.write(array)``.

    With ``bounds="zero"``, arrays may be shorter than a `grid` or `groups` that is given: beyond their end,
    reads give zeros and writes do nothing, as the device promises with its feature robustBufferAccess2.

    One kernel can be called from several threads; the calls run one after the other.

    **Types.** Checkers of types cannot read the shader. ``blur: kp.Kernel[kp.Tensor] = mgr.kernel(source)``
    tells them, and editors, what its calls give: an array, a Tensor, a tuple of them, or None. Without it a
    call gives Any, but for ``out=``.

    **Files.** A kernel made with ``watch=True`` looks at its file, and at all that this includes, whenever it
    is called or a sequence that holds one of its operations is evaluated (about a microsecond for each file),
    and goes on with the new version. An edit that does not work changes nothing: it is a KomputeWarning,
    once, and `error` holds it. `reload` takes the new version by hand.
    """

    __module__ = "kompute_py"  # public; imported when first used

    __slots__ = {
        "__weakref__": "",
        "_built": "",
        "_lending": "",
        "_lock": "",
        "_look": "",
        "_manager": "",
        "_reloader": "",
        "_specialized": "",
        "_table": "",
        "_values": "",
        "_version": "",
        "_watch": "",
    }

    def __init__(
        self,
        manager: Device,
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
        version = Version(
            manager,
            module,
            native,
            NO_SPECIALIZATION,
            _is_zero(bounds, module.name, manager),
            module.name,
        )
        reloader = None
        if watch is not False or module._sought:
            from .reload import reloader_for  # late, because most kernels come from text

            reloader = reloader_for(manager, source, options, module, watch)
        look = reloader.look if reloader is not None and watch else None
        self._setup(version, {}, Specializations(manager), reloader, look)

    def _setup(
        self,
        version: Version,
        values: dict[str | int, Any],
        specialized: Specializations,
        reloader: Reloader | None,
        look: Callable[[], None] | None,
    ) -> None:
        self._manager = version.manager
        self._values = values
        self._specialized = specialized
        self._watch = version.manager._watch
        self._reloader = reloader
        self._look = look  # of watched kernels: takes the files' new version
        self._lock = threading.RLock() if reloader is None else reloader.lock
        self._take_version(version)
        if reloader is not None:
            reloader.add(self)
        if self._watch is not None:
            self._watch()

    def _take_version(self, version: Version) -> None:
        self._version = version
        self._built: _native.Algorithm | None = None  # keeps a pipeline that was built ahead
        self._table = table_for(version)
        self._lending = self._table.lending = Lending(version.manager, self._table)

    # -- calling ---------------------------------------------------------------------------------------------

    # For inspect.signature(kernel), and so for completion and help.
    __signature__: CallSignature = CallSignature()

    @overload
    def __call__(self, /, *args: Any, out: Memory, **keywords: Any) -> None: ...
    @overload
    def __call__(self, /, *args: Any, out: _Out, **keywords: Any) -> _Out: ...
    @overload
    def __call__(self, /, *args: Any, **keywords: Any) -> Results: ...

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
            if result is not NotImplemented:
                if self._watch is not None:
                    self._watch()
                return result
            if "wait" not in keywords and "signal" not in keywords:
                if "donate" in keywords:
                    return self._donating(self, args, **keywords)
                return self._run(args, keywords)
        return called_in_order(self, args, keywords)

    def _donating(
        self, call: Callable[..., Any], args: tuple[Any, ...], /, donate: Any = (), **keywords: Any
    ) -> Any:
        """`call`, a way to run the kernel, with tensors that end with it."""
        signature, values = self.signature, [*args, *keywords.values()]
        given = sources(signature, args, keywords)
        parameters = [(each, values[given[i]]) for i, each in enumerate(signature.parameters) if i in given]
        tensors = {each.name: t for each, t in parameters if isinstance(t, Tensor) and not each.written}
        names = [each.name for each in signature.parameters]
        written = [each for parameter, each in parameters if parameter.written]
        with donating(self.name, names, tensors, donate, written) as (taken, _):
            values = with_taken(values, taken)
            return call(*values[: len(args)], **dict(zip(keywords, values[len(args) :], strict=True)))

    def _run(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if planning.plan is not None:
            return plan_call(planning.plan, self._version, args, keywords)
        self._lending.begin()
        call = Call(self._version, args, keywords, self._lending)
        launch = call.launch
        if not all(launch.groups):  # nothing runs, nothing is bound
            return call.result
        operation, built = self._version.dispatch(call.bound, launch)
        for stand_in, lent in call.stand_ins:  # only now that nothing is left to refuse
            stand_in.bring(lent, call.arrays, ())
        began = perf_counter()
        around = [each.around(lent, call.values[each.place]) for each, lent in call.stand_ins]
        before, after = ([each for pair in around for each in pair[i]] for i in (0, 1))
        stream_of(self._manager, (*before, operation, *after)).eval()
        if built is not None:
            report_built(self.name, built, perf_counter() - began)
        if self._watch is not None:
            self._watch()
        if not self._lending.beyond and not (call.arrays and self._manager._looks_at_arrays):
            teach(self._table, call, operation)
        for stand_in, lent in call.stand_ins:
            stand_in.give_back(lent, call.arrays)
        return call.result

    def submit(
        self,
        /,
        *args: Any,
        wait: Waits = (),
        signal: Signals = (),
        **keywords: Any,
    ) -> Fence:
        """Like a call, but returns at once: the shader runs after earlier work on the same memory and before
        later work.

        `wait` and `signal` are as in `Sequence.eval_async` and `Manager.submit`. Takes tensors and images
        only, since an array's results could not be copied back. Outputs that are left out are new ones each
        time: `results` of the Fence. ``donate=`` is as in a call. Raises what a call and `Manager.submit`
        raise.

        >>> double = mgr.kernel('''
        ... #version 450
        ... layout(local_size_x = 64) in;
        ... layout(binding = 0) buffer X { float x[]; };
        ... void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= 2.0; }
        ... ''')
        >>> x = mgr.tensor([1, 2, 3])
        >>> fence = double.submit(x)  # other work of the host goes here
        >>> fence.wait()
        <kp.Fence done>
        >>> x.tolist()
        [2.0, 4.0, 6.0]
        """
        order = None if wait is _NOTHING and signal is _NOTHING else order_of(wait, signal)
        if self._look is not None:
            self._look()
        with self._lock:
            submitted = self._table.submit(args, keywords, order)
            if submitted is NotImplemented:
                if "donate" in keywords:
                    return self._donating(partial(self.submit, wait=wait, signal=signal), args, **keywords)
                return self._submit(Call(self._version, args, keywords, makes=True), order)
        return fence_of(submitted, self._manager)

    def _submit(self, call: Call, order: Order | None) -> Fence:
        results = tuple([call.results[output.position] for output in call.outputs])
        if results and not all(call.launch.groups):  # nothing runs, nothing is bound
            return submit_stream(self._manager, stream_of(self._manager, ()), order, results)
        operation = self._version.operation(call.bound, call.launch)
        stream = stream_of(self._manager, (operation,))
        submitted = submit_stream(self._manager, stream, order, results)
        if call.in_place:
            teach(self._table, call, operation)
        return submitted

    def bind(self, /, *args: Any, **keywords: Any) -> OpKernel:
        """The shader with these arguments as an operation: ``seq.record(k.bind(a, b, out, scale=2.0))``.

        Takes what a call takes, but tensors and images only: an array would have to be copied at every
        evaluation. Host copies that changed since their first upload are not uploaded: record OpSyncDevice.
        Raises what a call raises.

        >>> double = mgr.kernel('''
        ... #version 450
        ... layout(local_size_x = 64) in;
        ... layout(binding = 0) buffer X { float x[]; };
        ... void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= 2.0; }
        ... ''')
        >>> x = mgr.tensor([1, 2, 3])
        >>> twice = mgr.sequence().record(double.bind(x)).record(double.bind(x)).eval()
        >>> x.tolist()
        [4.0, 8.0, 12.0]
        """
        if self._look is not None:
            self._look()
        with self._lock:
            return self._bind(args, keywords)

    def _bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> OpKernel:
        kind: type[OpKernel] = OpKernel
        if self._reloader is not None:
            kind = OpReloadableKernel if self._look is None else OpWatchedKernel
        version = self._version
        found = self._table.bind(args, keywords)
        if found is not NotImplemented:
            native, packed, bound, (extent, groups, by_default) = found
            push = version.signature.push
            members = {} if push is None else {name: keywords[name] for name in push.names}
            launch = version.launches.launch(extent, groups, packed, by_default, None, members)
            operation = kind(self, bound, launch, native)
        else:
            call = Call(version, args, keywords)
            operation = kind(self, call.bound, call.launch)
            teach(self._table, call, operation._native)
        if self._reloader is not None:
            self._reloader.add_operation(operation)
        return operation

    def memory_needs(self, /, *args: Any, **keywords: Any) -> MemoryNeeds:
        """The memory that a call with these arguments needs, before anything is allocated.

        A `kp.TensorSpec` may stand for a Tensor; arrays count with the buffers that stand for them. Nothing
        runs. Raises what a call raises, and UnimplementedError for an Image that the call would make.

        >>> double = mgr.kernel('''
        ... #version 450
        ... layout(local_size_x = 64) in;
        ... layout(binding = 0) readonly buffer X { float x[]; };
        ... layout(binding = 1) writeonly buffer Y { float y[]; };
        ... void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = x[i] * 2.0; }
        ... ''')
        >>> needs = double.memory_needs(kp.TensorSpec(10**9))
        >>> needs.inputs, needs.outputs
        (4000000000, 4000000000)
        """
        if self._look is not None:
            self._look()
        with self._lock:
            return planned(self._manager, self._run, (args, keywords), {})

    def preload(self) -> None:
        """Builds all that the device needs to run the kernel, and waits for that: the first call then takes
        no longer than later ones, whatever its arguments. No group runs.

        A call, `submit` or `bind` that builds a pipeline first says so in the log "kompute_py" (level INFO),
        with the time. ``mgr.preload([...])`` builds several in parallel. See there for the exceptions and the
        errors.
        """
        preload(self._manager, (self,))

    def _ahead(self) -> Ahead:
        if self._look is not None:
            self._look()
        version = self._version
        version.launches.read_ahead()
        return Ahead(version.native, version.special, version.signature)

    def _keep(self, built: _native.Algorithm | None) -> None:
        """Keeps the pipeline that was built ahead, and prepares calls."""
        self._built = built
        if built is not None:
            with self._lock:
                teach_ahead(self._table, self._version, self._lending)

    def _check_default(self, bound: tuple[Any, ...], members: Mapping[str, Any], spell: Spelling) -> None:
        """Raises if the default grid is not certain; `spell` says how the error writes the choices."""
        version = self._version
        version.check(bound, version.launch(bound, members=members, spell=spell), (), spell)

    # -- specialization --------------------------------------------------------------------------------------

    def specialize(
        self, constants: Mapping[str | int, Any] | None = None, /, **named: Any
    ) -> Kernel[Results]:
        """The kernel with these specialization constants; those not given keep their values.

        The same constants give the same kernel while that is in use, and for the 16 that were asked for last
        also when it is not (fewer if the Manager's `recent_pipelines` is less).

        By name, ``k.specialize(TILE=16)``, or by id, ``k.specialize({0: 16})``, for constants that have no
        name. A value given again replaces the earlier one.

        Raises InvalidArgumentError for a name or id that the shader lacks, one that is given twice, or a
        value that does not fit its type; ArgumentTypeError for `constants` that are not a mapping and for
        keys that are neither.

        >>> scale = mgr.kernel('''
        ... #version 450
        ... layout(local_size_x = 64) in;
        ... layout(constant_id = 0) const float FACTOR = 1.0;
        ... layout(binding = 0) buffer X { float x[]; };
        ... void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= FACTOR; }
        ... ''')
        >>> scale.specialize(FACTOR=10.0)(np.array([1, 2], np.float32))
        array([10., 20.], dtype=float32)
        """
        if constants is not None and not isinstance(constants, Mapping):
            raise ArgumentTypeError(
                f"{self.name}: constants are {kind_of(constants)}; give {{id or name: value}}, or name=value"
            )
        if not constants and not named:
            return self
        if self._look is not None:
            self._look()
        version = self._version
        spec = version.signature.spec
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
                made._setup(
                    version.with_constants(special), values, self._specialized, self._reloader, self._look
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
        return Version(self._manager, module, native, special, self._version.zero, self.name)

    # -- what it is ------------------------------------------------------------------------------------------

    @property
    def __name__(self) -> str:  # for help()
        return self._version.name

    @property
    def name(self) -> str:
        """The kernel's name in errors, validation messages and profiles."""
        return self._version.name

    @name.setter
    def name(self, name: str) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{self.name}: a kernel's name is a str, not {kind_of(name)}")
        self._version.name = name
        self._table.clear()  # what is prepared has the earlier one

    @property
    def module(self) -> ShaderModule:
        """The shader."""
        return self._version.module

    @property
    def signature(self) -> Signature:
        """Its arguments."""
        return self._version.signature

    @property
    def reflection(self) -> dict[str, Any]:
        """The shader's reflection, as plain data."""
        return self._version.module.reflection

    @property
    def local_size(self) -> tuple[int, int, int]:
        """Invocations of one workgroup in x, y, z, with the specialization constants applied."""
        return self._version.signature.local_size

    @property
    def spec_constants(self) -> dict[str, Any]:
        """The specialization constants by name (or number if it has none): values given, else the
        defaults.
        """
        constants: dict[str, Any] = {}
        spec = self._version.signature.spec
        for identity, value in spec.unpack(self._version.special).items():
            constants[str(spec.label(identity))] = value
        return constants

    @property
    def entry_points(self) -> tuple[str, ...]:
        """All compute entry points of its module; ``mgr.kernel(k, entry=name)`` makes a kernel of another."""
        return self._version.module.entry_points

    def statistics(self) -> ShaderStatistics:
        """The shader's instructions by kind, its shared memory, push constants and size, with its
        specialization constants applied; and its registers, occupancy and code as the driver tells them, if
        the device has the feature pipelineExecutableInfo. For these, the driver compiles the shader once
        more. Nothing runs.

        Raises FailedPreconditionError if the Manager is destroyed, EvalTimeoutError if the driver takes
        longer than the option `pipeline_timeout`.
        """
        from .._shaders.statistics import statistics_of

        version, special = self._version, self._version.special
        executables = version.manager._native.pipeline_executables(
            version.native, special.data, special.entries
        )
        return statistics_of(version.module.to_spirv(), version.signature.entry, special, executables)

    def disassembly(self) -> str:
        """The SPIR-V as text."""
        return self._version.module.disassembly()

    def to(self, language: TextLanguage) -> str:
        """The shader written in "glsl" or "hlsl".

        Raises InvalidArgumentError for another language, ArgumentTypeError for another type,
        UnimplementedError if the language cannot express the shader.
        """
        if isinstance(language, Device):
            raise ArgumentTypeError(
                f"{self.name}: to() writes the shader in a language, as text. A kernel belongs to its "
                "Manager; for another one make another of its module: other.kernel(k.module)"
            )
        return self._version.module.to(language)

    def to_spirv(self) -> bytes:
        """The SPIR-V."""
        return self._version.module.to_spirv()

    def __reduce_ex__(self, protocol: object) -> Any:
        """Pickles the SPIR-V and the constants, without sources. The other process makes a kernel of its
        current Manager.
        """
        version = self._version
        return Kernel._of_content, (version.module, version.name, version.zero, self._values)

    @classmethod
    def _of_content(cls, module: ShaderModule, name: str, zero: bool, values: dict[str | int, Any]) -> Kernel:
        from .. import manager  # the package's: Managers stand above kernels

        made = cls(manager(), module, name=name, bounds="zero" if zero else "check")
        return made.specialize(values) if values else made

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
        return f"<kp.Kernel {self._version.signature.text(self.name)}>"

    def _repr_html_(self) -> str:
        """For notebooks: the signature."""
        from .._display.cards import kernel_card

        return kernel_card(self.name, self.signature, self.spec_constants, self.error)


Kernel.__doc__ = CallText(Kernel.__doc__)  # type: ignore[assignment]
