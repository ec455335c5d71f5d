"""Manager: opens a device and creates every object on it. Memory is made by its base, `MemoryMaker`."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, Literal, overload

from .. import _native
from .._base.arrays import to_flag
from .._base.errors import ArgumentTypeError, DeviceLostError, KomputeError, kind_of, not_copyable, shown
from .._base.plain_arguments import as_list
from .._base.settings import PREFIX
from .._base.warn import warn_of_cancelled
from .._device.device import Device, require_manager
from .._device.handles import VkHandles
from .._device.options import to_prefix
from .._memory.array_habits import MAKERS, OnlyOfArrays, WithAnswers
from .._memory.image import SampledImage
from .._memory.memory import Memory
from .._memory.sampler import Sampler
from .._memory.tensor import Tensor
from .._recording.algorithm import Algorithm
from .._recording.preload import preload
from .._recording.sequence import Sequence
from .._recording.streams import failures_of, managers_of, submit_streams
from .._sync.fence import Fence
from .._sync.semaphore import Semaphore, imported_fence, imported_semaphore, to_signals, to_waits
from .current import current, enter, forget, is_shared, leave
from .memory_maker import MemoryMaker
from .program_end import watch_over

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Unpack

    from .._base.annotations import KernelOptions, ShaderSource
    from .._debugging.messages import ShaderMessage
    from .._debugging.values import OperationValues, RunLooker
    from .._device.annotations import DeviceLike, ManagerOptions
    from .._kernels.kernel import Kernel
    from .._memory.scratch import Scratch
    from .._profiling.profile import Profile
    from .._sync.semaphore import HasFileno, Signals, Waits
    from .._sync.sharing import SemaphoreHandle


@not_copyable("make a new kp.Manager where it is needed, in each process")
class Manager(MemoryMaker, WithAnswers):
    """Opens a device and creates tensors, images, algorithms and sequences on it.

    `device` selects the device: Vulkan's enumeration index, a part of a device's name, a vendor ("nvidia"), a
    type ("discrete", "integrated", "virtual", "cpu", or "gpu" for all but CPUs), a UUID, a PCI address, or a
    `DeviceInfo`. A list of these, or text with commas ("nvidia,amd,cpu"), is tried in order. A URI also has
    options: ``"vulkan://nvidia?queues=2&validation=1"``; keywords win. None selects the device that the
    environment variable KOMPUTE_PY_DEVICE prefers, or else the best device (discrete, integrated, virtual,
    CPU).

    `family_queue_indices` has one entry for each queue: its Vulkan queue family. The default is one compute
    queue. The first family must support compute; the others may support transfers only, and sequences on them
    cannot dispatch (see `Sequence.stream`). `desired_extensions` lists device extensions to enable if the
    device has them; missing ones are logged. A mapping gives features that this package does not know, too:
    ``{"VK_KHR_shader_subgroup_rotate": (1000416000, [True, False])}`` has the number (sType) of the
    extension's feature struct and one bool for each of its features, in order; None in place of the pair
    enables the extension alone. Shaders that need such features take ``unchecked=True``.

    Each option is a keyword, else the environment variable ``KOMPUTE_PY_<NAME>``, else its default:

    - `validation` turns the validation layer on; its messages go to ``logging.getLogger("kompute_py")``.
      `strict` raises its errors.
    - `robust_access` (default True), `required_extensions`, `debug_layers`.
    - `pipeline_cache_dir`: the folder of the pipeline cache, "" for none.
    - `memory_limit`: the most memory to take from the driver; `memory_idle_limit`: the most of it to keep
      when nothing uses it; `memory_block_size`. A size is an int of bytes,
      or text: "128 MiB" or "128M" (binary), "128 MB" (decimal), "1.5 GiB".
    - `memory_debug` puts guard bytes around memory (see `memory`); `force_staging` and `force_non_coherent`
      take the code paths of other GPUs. These three are for debugging.
    - `recent_pipelines` (default 128): how many unused pipelines and shader modules are kept, the most
      recently used ones (see `kp.DeviceMemory.pipelines`).
    - `pipeline_timeout` (default 300): the seconds that a call waits for the driver to make a pipeline; then
      it raises EvalTimeoutError. The driver goes on, and a later call finds what it made.
    - `watchdog` (default inf): the seconds that the system lets a submission run, such as 2; recordings, and
      dispatches that take longer, are submitted in parts of half of that.
    - `wait_mode`: "spin" polls the device's counter for up to 0.1 ms before a wait sleeps, which notices the
      end of short work sooner and keeps a core busy; "block" sleeps at once; "auto" (default) measures which
      is faster (see `waits`).
    - `tuning`: "auto" (default) lets custom operations measure their variants at a first call of a kind,
      "stored" takes only choices that were kept, "off" always the first variant; `tuning_dir`: the folder of
      the choices, "" for none (see `kp.tune`).
    - `debug` looks at operations and shaders while they run: "printf", "bounds", "races", "barriers",
      "loops" (see `on_message`), "nans", "disjoint", "values", "record=FOLDER" (see `watch`), "wait" (each
      call waits for what it submits), separated by commas.
    - `queue_priorities`: a number from 0 to 1 for each queue; drivers may run work of a higher one first.
    - `capture`: the file for a program that repeats what the Manager submits, "" for none; `capture_limit`
      (default 1 GiB): the most data in it (see the guide on programs).
    - `profile`: the file for a trace of all that the Manager runs, "" for none (see `profile`).
    - `transfers`: "raise" forbids copies between the host and the device that no call names, such as
      ``np.asarray(t)`` and kernels with arrays, "warn" reports them, "allow" (default) says nothing (see
      docs/concepts/host_and_device.md).
    - `visible_devices` hides and orders devices (see `kp.list_devices`).
    - `shader_cache_dir` ("" for none) and `shader_cache_size` (default 128 MiB, 0 for none): the cache of
      compiled shaders; `compile` ("auto", or "never": sources must be in the cache, else NotFoundError names
      the missing file); `compile_timeout` (default 20, in seconds); `dump` (a folder that keeps each
      shader's source, SPIR-V and assembly, recordings as text, and a report if the device is lost, "" for
      none); `compiler` ("dxc" or "slang", for HLSL); `dxc_library` and `slang_library` (a file or folder, ""
      for none). They hold for this Manager's kernels. `kp.compile` and `kp.ShaderModule`, which have no
      Manager, use the variables under ``KOMPUTE_PY_``.

    `env_prefix` changes the prefix of the variables, for programs that embed this package; None ignores the
    environment. `config` shows the value and the source of each option.

    Raises UnavailableError if there is no Vulkan loader, driver or suitable device; NotFoundError if the
    requested device does not exist or is not suitable (both errors give the reason for each device);
    InvalidArgumentError for an unknown option, an unknown value of one, if the first queue family does not
    support compute, or for a struct of features that the driver does not know; UnimplementedError if the
    device lacks features of such a struct; ArgumentTypeError for values of other types; OutOfRangeError if
    the device lacks a queue family.

    Objects keep their Manager alive. ``with kp.Manager() as mgr:`` destroys it at the end of the block;
    inside the block, ``kp.manager()`` returns it. The end of a block does not destroy a Manager that others
    share: one of the process (``with kp.manager(0):``), or that of a block around it. See `current`.

    >>> with kp.Manager(memory_limit="1 GiB") as own:
    ...     t = own.tensor([1, 2, 3])
    ...     print(own.config.memory_limit.source, t.read().tolist())
    keyword [1.0, 2.0, 3.0]
    """

    __slots__ = ("__weakref__",)

    def __init__(
        self,
        device: DeviceLike | Iterable[DeviceLike] | None = None,
        family_queue_indices: Iterable[int] = (),
        desired_extensions: Iterable[str] | Mapping[str, tuple[int, Iterable[bool]] | None] = (),
        *,
        env_prefix: str | None = PREFIX,
        **options: Unpack[ManagerOptions],
    ) -> None:
        super().__init__(
            device,
            family_queue_indices,
            desired_extensions,
            prefix=to_prefix(env_prefix),
            options=options,
        )
        self._begin()

    @classmethod
    def from_handles(
        cls,
        instance: int,
        physical_device: int,
        device: int,
        queues: Iterable[tuple[int, int]],
        extensions: Iterable[str] = (),
        features: Iterable[str] = (),
        *,
        owner: object = None,
        env_prefix: str | None = PREFIX,
        **options: Unpack[ManagerOptions],
    ) -> Manager:
        """A Manager on a device that another library or Manager made, which it never destroys.

        The handles are integers: a VkInstance for Vulkan 1.2 or newer, one of its physical devices, and a
        VkDevice of it. `queues` lists (family, index) of queues that the device was made with, the first one
        with compute; nobody else may submit to them at the same time. `extensions` and `features` name what
        the device was made with, by Vulkan's names: Vulkan cannot be asked. "timelineSemaphore" must be among
        the features; what is not named is not used, so shaders that need it are refused.
        ``*mgr.vk_handles`` gives all of these for the device of a Manager.

        `owner` is an object that keeps the device alive. It is kept until nothing of this Manager needs the
        device any more: its tensors' views of memory outlive `destroy`. Without an owner, drop all of that
        before the device is destroyed.

        The handles must be of the Vulkan loader that this package uses (KOMPUTE_PY_VULKAN_LIBRARY names
        another one). Numbers that are not handles end the process, as everywhere in Vulkan.

        Raises InvalidArgumentError if the physical device is not the instance's, for extensions and features
        that it does not have, without "timelineSemaphore", and for options that say how a device is made;
        OutOfRangeError for queues that it does not have; UnavailableError if it is too old;
        ArgumentTypeError for values of other types.

        >>> with kp.Manager.from_handles(*mgr.vk_handles, owner=mgr) as same:
        ...     same.vk_device == mgr.vk_device
        True
        """
        made = cls.__new__(cls)
        given = VkHandles(instance, physical_device, device, queues, extensions, features)  # type: ignore[arg-type]
        Device.__init__(
            made, None, (), (), prefix=to_prefix(env_prefix), options=options, handles=given, owner=owner
        )
        made._begin()
        return made

    def _begin(self) -> None:
        watch_over(self)
        if trace := self._setting("profile"):
            from .._profiling.scripts import begin

            begin(self, trace)
        words, path = self._setting("debug"), self._setting("capture")
        if words or path:
            from .._debugging.messages import begin_messages
            from .._debugging.watching import begin_debugging

            begin_debugging(self, words, self._begin_capture(path) if path else None)
            begin_messages(self, words)

    def _begin_capture(self, path: str) -> RunLooker:
        """The looker at submissions. The package sets this method: programs stand above Managers."""
        raise NotImplementedError

    # -- algorithms and sequences ----------------------------------------------------------------------------

    def algorithm(
        self,
        tensors: Iterable[Memory | SampledImage | Sampler] = (),
        spirv: ShaderSource | None = None,
        workgroup: Any = (0, 0, 0),
        spec_consts: Any = (),
        push_consts: Any = (),
        *,
        entry: str | None = None,
    ) -> Algorithm:
        """An Algorithm: a shader bound to `tensors` in order. See `kp.Algorithm` for arguments and errors.

        Raises InvalidArgumentError, ArgumentTypeError, NotFoundError, UnimplementedError and
        FailedPreconditionError, for the reasons that `kp.Algorithm` lists.

        >>> spirv = kp.compile('''
        ... #version 450
        ... layout(local_size_x = 64) in;
        ... layout(binding = 0) buffer X { float x[]; };
        ... void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] += 1.0; }
        ... ''')
        >>> x = mgr.tensor([1, 2, 3])
        >>> increment = mgr.algorithm([x], spirv, (1, 1, 1))
        >>> seq = mgr.sequence().eval(kp.OpSyncDevice([x])).eval(kp.OpAlgoDispatch(increment))
        >>> x.tolist()
        [2.0, 3.0, 4.0]
        """
        return Algorithm(self, tensors, spirv, workgroup, spec_consts, push_consts, entry=entry)

    def sequence(
        self,
        queue_index: int | Iterable[int] = 0,
        total_timestamps: int = 0,
        *,
        timestamps: bool = False,
        disjoint: Memory | Iterable[Memory] = (),
    ) -> Sequence:
        """A Sequence on one of the Manager's queues, or on the least busy of several. See `kp.Sequence` for
        arguments and errors.

        Raises OutOfRangeError if the Manager has not opened that queue, InvalidArgumentError for a negative
        number of timestamps or objects of another Manager in `disjoint`, UnimplementedError if the queue has
        no timestamps, FailedPreconditionError if the Manager is destroyed.

        >>> x = mgr.tensor([1, 2, 3])
        >>> sequence = mgr.sequence().record(kp.OpFill([x], 5.0)).record(kp.OpSyncLocal([x]))
        >>> sequence.eval().is_init()
        True
        >>> x.data()
        array([5., 5., 5.], dtype=float32)
        """
        return Sequence(self, queue_index, total_timestamps, timestamps=timestamps, disjoint=disjoint)

    def kernel(
        self,
        source: ShaderSource,
        *,
        name: str | None = None,
        watch: bool = False,
        bounds: Literal["check", "zero"] = "check",
        **options: Unpack[KernelOptions],
    ) -> Kernel:
        """A Kernel: a shader that is called like a function.

        `source` is GLSL, HLSL or Slang text, a path, SPIR-V assembly, or SPIR-V: bytes, an array of uint32, a
        list of ints, a `ShaderModule`, or an object with ``to_spirv()``.
        Options: `name`; the options of `kp.compile` (`language`, `entry`, `defines`, `include_dirs`,
        `optimize`, `debug_info`, `target`); `includes`, texts by name that ``#include`` finds before any
        file; `subgroup_size`, `full_subgroups` and `unchecked`, as in `kp.ShaderModule`.

        With ``bounds="zero"``, arrays may end before the invocations of a `grid` or `groups` that a call
        gives: reads beyond them give zeros, and writes do nothing.

        With ``watch=True``, the kernel and recordings of it pick up edits to the shader file and to the files
        that it includes (see `Kernel`).

        Raises ShaderCompileError if the source does not compile, InvalidArgumentError for invalid SPIR-V or
        an unknown option, UnimplementedError if the device lacks a feature that the shader or `bounds` needs,
        NotFoundError if a path does not exist.

        >>> double = mgr.kernel('''
        ... #version 450
        ... layout(local_size_x = 64) in;
        ... layout(binding = 0) buffer X { float x[]; };
        ... void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= 2.0; }
        ... ''')
        >>> double(np.array([1, 2, 3], np.float32))
        array([2., 4., 6.], dtype=float32)
        """
        from .._kernels.kernel import (
            Kernel,  # late, because not every script needs the compilers
        )

        return Kernel(self, source, name=name, watch=watch, bounds=bounds, **options, stacklevel=3)

    def preload(self, items: Iterable[Kernel | Algorithm]) -> None:
        """Builds the pipelines of kernels and algorithms ahead, in parallel, and waits for them. Their first
        use then takes no longer than later ones.

        Drivers compile shaders when a pipeline is built or first dispatched, which takes milliseconds to
        seconds. Both happen here; no group runs. A shader with images or samplers is not dispatched: a driver
        that compiles at the first dispatch (lavapipe) still does so at its first use. The pipeline of a
        kernel with an array of bindings of run-time length depends on that length, and is not built. Other
        threads of Python run meanwhile.

        Raises ArgumentTypeError for anything but kernels and algorithms, InvalidArgumentError for those of
        another Manager and for sizes beyond the device's limits, FailedPreconditionError for a destroyed
        algorithm and one that was made without a shader.
        """
        preload(self, items)

    def scratch(self) -> Scratch:
        """A Scratch: memory for what operations pass on within a recording. It shares its memory with others
        that do not run at the same time; see `kp.Scratch`.

        Raises FailedPreconditionError if the Manager is destroyed.
        """
        from .._memory.scratch import Scratch  # late, because few scripts need it

        return Scratch(self)

    def semaphore(self, initial: int = 0, *, shared: bool = False) -> Semaphore:
        """A Semaphore: a counter that starts at `initial` and orders submissions and the host. With `shared`,
        other Managers and processes can hold it, too: see `Semaphore.share`.

        Raises OutOfRangeError if `initial` is negative or above 2**64 - 2, ArgumentTypeError if it is not an
        int or `shared` not a bool, FailedPreconditionError if the Manager is destroyed, UnimplementedError
        for a shared one on Windows.
        """
        return Semaphore(self, initial, shared=shared)

    def import_semaphore(self, handle: SemaphoreHandle | int) -> Semaphore:
        """A Semaphore that counts with the one of a `kp.SemaphoreHandle`, of another Manager or process. The
        handle is used up.

        `handle` may also be a file descriptor of a timeline semaphore (Vulkan's OPAQUE_FD): that of
        `Semaphore.export_fd`, or of another user of the same device. It stays the caller's.

        Raises FailedPreconditionError if the handle was used or closed, or the Manager is destroyed,
        InvalidArgumentError for another descriptor, UnimplementedError if the device imports none,
        ArgumentTypeError for anything else.
        """
        return imported_semaphore(self, handle)

    def import_fence(self, fd: int | HasFileno) -> Fence:
        """A Fence that is done when a file descriptor is readable: the one of `Fence.export_fd` of any
        process, an eventfd, a timerfd, a sync_file of a kernel driver, a socket. Work waits for it by
        ``wait=``.

        The descriptor is duplicated, and nothing is read from it. The duplicate is kept until it is readable,
        the Manager is destroyed, or the fence and the work that waits for it are gone. If its other end is
        closed before it is readable, the fence fails with AbortedError. The host does the waiting, so the
        work begins a moment later.

        Raises InvalidArgumentError if the number is not an open descriptor, ArgumentTypeError if it is not an
        int and has no ``fileno()``, OutOfMemoryError if the process may open no more descriptors,
        FailedPreconditionError if the Manager is destroyed, UnimplementedError on Windows.
        """
        return imported_fence(self, fd)

    def submit(
        self,
        sequences: Sequence | Iterable[Sequence],
        *,
        wait: Waits = (),
        signal: Signals = (),
    ) -> Fence:
        """Submits one or several recorded sequences at once, in order. Returns a Fence for their end.

        Consecutive sequences of one queue form one submission to the driver. `wait` and `signal` are as in
        `Sequence.eval_async`: all sequences start after `wait`, and `signal` follows the last one. Without
        sequences, `signal` follows `wait`. Waiting for the fence collects the sequences. They need not be
        kept, unless they have operations with a `post_eval`. If one sequence is refused, none is submitted.

        ``mgr.submit([])``, without `wait` and `signal`, submits nothing: its Fence is done when all work is
        that was submitted to this Manager so far, held work included. ``await mgr.submit([])`` is
        `synchronize` for asyncio.

        Raises FailedPreconditionError if a sequence is running or uses a destroyed object,
        InvalidArgumentError if a sequence is given twice or belongs to another Manager, ArgumentTypeError if
        `sequences` holds anything else, and the errors of `eval_async`.
        """
        if isinstance(sequences, Sequence):
            sequences = (sequences,)
        given = as_list(sequences, "submit", "sequences, as in mgr.submit([seq, ...])")
        fences, waits = to_waits(wait)
        signals = to_signals(signal)
        for position, each in enumerate(given):
            if not isinstance(each, Sequence):
                raise ArgumentTypeError(
                    f"submit takes sequences, as in mgr.submit([seq, ...]); element {position} is "
                    f"{shown(each):.80}, {kind_of(each)}"
                )
        hooks = [each._start() for each in given]
        try:
            native = submit_streams(self, [each._native for each in given], fences, waits, signals)
        finally:
            for each, due in zip(given, hooks, strict=True):
                if each._native.is_due():
                    each._expect(due)
                    each._fenced = True
            if self._watch is not None:
                self._watch()
        streams = [each._native for each in given]
        hooked = tuple(weakref.ref(each) for each in given if each._hooked)
        return Fence(native, managers_of(streams, self), hooked, failures_of(streams))

    def synchronize(self) -> None:
        """Waits until all submitted work is done and its results are visible to the host.

        Raises DeviceLostError if the device fails.
        """
        self._native.wait_idle()
        if self._watch is not None:
            self._watch()

    def profile(self, *, operations: bool = True) -> Profile:
        """For ``with mgr.profile() as p:``, notes all that the device runs inside of the block: times, bytes,
        lines of the script. ``print(p)`` shows a table. See `kp.Profile`.

        With ``operations=False``, whole sequences are timed instead of operations. Raises
        FailedPreconditionError if the Manager is destroyed, ArgumentTypeError if `operations` is not a bool.

        >>> t = mgr.zeros(1000)
        >>> sequence = mgr.sequence().record(kp.OpSyncLocal([t]))
        >>> with mgr.profile() as p:
        ...     _ = sequence.eval()
        >>> p.submissions, p.records["name"].tolist()
        (1, ['OpSyncLocal'])
        """
        from .._profiling.profile import Profile  # late, because few scripts need it

        return Profile(self, operations)

    def watch(
        self,
        sink: Callable[[OperationValues], object] | str | os.PathLike[str],
        tensors: Iterable[Tensor] | None = None,
    ) -> AbstractContextManager[None]:
        """For ``with mgr.watch(print):``: looks at what each operation inside of the block reads and writes.

        `sink` is called with a `kp.OperationValues` for each operation, after the call that ran it, in the
        order of the operations; what it raises, that call raises. Or `sink` is a folder, which is made: each
        operation's results are written there, for ``kompute-py diff``. With `tensors`, only operations that
        use one of them are looked at.

        The Manager must have been opened with ``debug="values"`` (or another word of `debug`), which lists
        the price. Memory that an operation does not declare is not seen; of an `OpRepeat`, the values after
        the last repetition.

        Raises FailedPreconditionError if the Manager was opened otherwise, is destroyed, or is profiled;
        ArgumentTypeError if `sink` or `tensors` are something else; OSError if the folder cannot be made.

        >>> with kp.Manager(debug="values") as debugged:
        ...     t = debugged.zeros(3)
        ...     with debugged.watch(lambda values: print(values.operation, values.outputs)):
        ...         _ = debugged.sequence().record(kp.OpFill([t], 1)).eval()
        OpFill {'tensor 1': array([1., 1., 1.], dtype=float32)}
        """
        from .._debugging.watching import watching

        return watching(self, sink, tensors)

    def on_message(self, callback: Callable[[ShaderMessage], object] | None) -> None:
        """Calls `callback` with each message that shaders write, in place of logging it; None: logs again.

        The Manager must have been opened with ``debug=`` "printf", "bounds", "races", "barriers" or "loops".
        The messages of work arrive in the call that waits for it, on that thread, unless other work still
        runs; what `callback` raises, that call raises. See `kp.ShaderMessage`.

        Raises FailedPreconditionError if the Manager was opened without these, ArgumentTypeError if
        `callback` cannot be called.
        """
        from .._debugging.messages import set_callback

        set_callback(self, callback)

    # -- life ------------------------------------------------------------------------------------------------

    def destroy(self) -> None:
        """Waits for the device's work, then destroys all objects of this Manager. May be called any number of
        times.

        Afterwards, ``is_init()`` of tensors, images, algorithms and sequences is False, and using them raises
        FailedPreconditionError; arrays from `data()` stay readable. Held work, which waits for a signal that
        was not given, is cancelled, and a KomputeWarning names it. Ctrl-C during the wait raises
        KeyboardInterrupt and destroys nothing.

        What ``debug=`` found in that work is reported; with ``strict=True``, ValidationError is raised for it
        once all is destroyed.
        """
        if self._watch is None or not self._native.is_init():
            self._end()
            return
        with suppress(KomputeError):  # a lost device has no running work
            self._native.wait_submitted()
        try:
            with suppress(DeviceLostError):
                self._watch()  # the records go with the device
        finally:
            self._end()

    def _end(self) -> None:
        told = self._native.destroy()
        for name in ("waiting", "sharing"):  # if they are in use
            module = sys.modules.get(f"kompute_py._sync.{name}")
            if module is not None:
                module.end(self)
        _native.release_arrays()
        forget(self)
        self._diagnostics.log_notes()
        warn_of_cancelled(told)
        if self._watch is not None:
            self._watch()

    def __enter__(self) -> Manager:
        enter(self)
        return self

    def current(self) -> AbstractContextManager[Manager]:
        """For ``with mgr.current():``: inside the block, ``kp.manager()`` returns this Manager, which stays
        open at the end.

        As with ``with kp.Manager() as mgr:``, the choice holds for the code of the block and the asyncio
        tasks that it makes, not for other threads. Raises FailedPreconditionError if the Manager is
        destroyed.

        >>> own = kp.Manager()
        >>> with own.current():
        ...     kp.manager() is own
        True
        >>> own.is_init(), own.destroy()
        (True, None)
        """
        return current(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        leave(self)
        # Others use the Manager beyond this block: the process, or the code of a block around this one.
        if not is_shared(self):
            self.destroy()

    def __del__(self, warn: Any = warn_of_cancelled) -> None:
        # Never waits: objects in use are released when the device is done with them. (If __init__ failed,
        # there is no _native. At the interpreter's end, the module's globals may be gone, hence the default
        # argument.)
        native = getattr(self, "_native", None)
        if native is not None and (told := native.abandon()):
            warn(told)

    def _repr_html_(self) -> str:
        """Shows the device in notebooks."""
        from .._display.cards import manager_card

        return manager_card(self)

    def __repr__(self) -> str:
        state = "" if self._native.is_init() else " destroyed"
        # The address distinguishes Managers of one device.
        return f"<kp.Manager device {self._info['index']}: {self._device_name} at {id(self):#x}{state}>"


@overload
def alive(detail: Literal[False] = False, *, manager: Manager | None = None) -> int: ...
@overload
def alive(detail: Literal[True], *, manager: Manager | None = None) -> dict[str, int]: ...
@overload
def alive(detail: bool, *, manager: Manager | None = None) -> int | dict[str, int]: ...
def alive(detail: bool = False, *, manager: Manager | None = None) -> int | dict[str, int]:
    """The number of native objects alive in the process, or of one Manager; with `detail`, a dict of counts
    by kind.

    Kinds: "context" (a Manager's device), "buffer", "image", "shader", "algorithm", "stream" (a sequence's
    recording), "semaphore", "host_pages" (memory of the process). Raises ArgumentTypeError if `detail` is
    not a bool or `manager` not a Manager.

    >>> t = mgr.zeros(3)
    >>> kp.alive(detail=True)["buffer"] >= 1
    True
    """
    if manager is not None:
        require_manager(manager)
    if isinstance(detail, Device):
        raise ArgumentTypeError("detail is a Manager; write kp.alive(manager=mgr)")
    counts = _native.alive(None if manager is None else manager._native)
    return dict(counts) if to_flag(detail, "detail") else sum(counts.values())


for _name, _code in MAKERS.items():
    if not hasattr(Manager, _name):
        setattr(Manager, _name, OnlyOfArrays(_name, f"use {_code}"))
del _name, _code
