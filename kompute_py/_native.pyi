"""Types of the native module. Private: the public classes of this package hold these objects."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

from ._base.errors import KomputeError

__version__: str

# Parts of signatures.
_Memories = Sequence[Memory | BufferView]
_Groups = tuple[int, int, int]
_Region = tuple[int, int, int, int, int, int, int, int]  # x, y, z, layer, width, height, depth, layers
_Pairs = list[tuple[int, int]]
_SpecMap = Sequence[tuple[int, int, int]]  # (constant id, offset, size) into the bytes of the constants
_Diagnostic = tuple[str, int, int, str, str, str]  # the fields of Diagnostic
_Text = str | bytes

class _Type(type):
    """Pybind11's metaclass."""

class _Object(metaclass=_Type):
    """Base of the classes here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Raises TypeError, unless the class has its own constructor."""

def alive(context: Context | None = None) -> dict[str, int]:
    """The number of native objects alive by kind, in the process or of one device: "context", "buffer",
    "image", "shader", "algorithm", "stream", "semaphore", "host_pages".
    """

def before_raising(call: Callable[[KomputeError], None], /) -> None:
    """Sets the function that runs before an exception of the core is raised. Replaces the previous one."""

def begin_spans() -> int:
    """Begins to note what the host's threads spend time on; returns a number for `end_spans`."""

def end_spans(first: int) -> list[tuple[str, str, int, int, int, int]]:
    """(kind, text, begin, end, thread, bytes) of the spans since then; times by time.monotonic_ns()."""

def set_package(folder: str) -> None:
    """Lines in files below `folder` are not the user's."""

def note_span(kind: str, text: _Text, begin: int) -> None:
    """A span of this thread from `begin` to now, if somebody notes spans."""

class ValueReader(_Object):
    """Looks at the values of operations, from now until `end` or its own end: each submission waits."""

    def __init__(self, context: Context) -> None: ...
    def take(self, contents: bool) -> list[dict[str, Any]]:
        """The runs since the last call: "label", "line", "submission", "queue" (its number), "disjoint"
        (memory that the recording declares so), "parts" (each (memory, first byte, end, bytes)) and
        "operations" (each (name, line, uses)); a use is (number of the part before, after, whether the
        operation reads it, `whole` of the snapshot). With `contents`, "recorded", too: as `recorded` has it.
        """

    def end(self) -> None: ...

class ProfileReader(_Object):
    """Notes what the device runs, from now until `end` or its own end."""

    def __init__(self, context: Context, operations: bool) -> None: ...
    def settle(self) -> None:
        """Waits for the work submitted until now; Ctrl-C ends the wait."""

    def end(self) -> tuple[list[dict[str, Any]], int, bool]:
        """(runs, uncertainty of the device's clock in nanoseconds, calibrated). The runs are those until
        `settle`; a run is a dict of "label", "operations" (each (name, groups, bytes read, bytes written,
        line that recorded it)),
        "family", "queue", "submission", "submit_begin", "submit_end", "thread", "line", "times" (one more
        than operations, on the host's clock, or none), "memory".
        """

def shutdown() -> None:
    """Waits for the work of devices that have no owner any more. Called at interpreter exit."""

def loader_info() -> dict[str, Any]:
    """{"available": bool, "error": str, "version": (major, minor, patch), "layers": [str],
    "extensions": [str], "layer_versions": {layer: (major, minor, patch)}}. Never raises.
    """

def late_loader() -> str:
    """Explains that the open loader is not the one that the environment names now.

    "" if it is, or if no loader is open.
    """

def enumerate_devices(visible: str | None, driver: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    """One dict for each physical device (see `Context.info`), and the entries of `visible` that name no
    further device.

    `visible` lists and orders the devices to show, separated by ";"; None for all. `driver` is the manifest
    of the only driver; b"" for those that the loader finds. Raises UnavailableError if
    there is no loader or driver, NotFoundError if a listed device does not exist.
    """

def select_device(index: int | None, preferences: str, visible: str | None, driver: bytes) -> dict[str, Any]:
    """{"index": int | None, "request": str, "passed_over": [(index, name, reason)], "error": str}"""

class Context(_Object):
    """A VkDevice with its queues, memory and caches."""

    def __init__(
        self,
        *,
        index: int | None,
        preferences: str,
        visible: str | None,
        family_queue_indices: Sequence[int],
        desired_extensions: Sequence[str],
        required_extensions: Sequence[str],
        validation: bool,
        layers: Sequence[str],
        driver: bytes,
        robust_access: bool,
        pipeline_cache_dir: bytes,
        memory_block_size: int,
        memory_limit: int,
        memory_idle_limit: int | None,
        memory_debug: bool,
        force_staging: bool,
        force_non_coherent: bool,
        recent_pipelines: int,
        pipeline_timeout: float,
        watchdog: float,
        dump: bytes,
        wait_mode: str,
        debug: Sequence[str],
        queue_priorities: Sequence[float],
        features: Sequence[tuple[str, int, Sequence[bool]]],
        borrowed: tuple[int, int, int, Sequence[tuple[int, int]], Sequence[str], Sequence[str], object]
        | None = None,
    ) -> None:
        """`features`: extensions, each with the number of a feature struct and its features to enable.
        `borrowed`: the instance, physical device, device, queues, extensions and features of somebody else's
        device, and what keeps it alive. `pipeline_cache_dir` b"" turns the cache on disk off; `memory_limit`
        0 means no limit. Sizes are in bytes; `memory_idle_limit` None means the allocator's own rule.
        """

    def take_debug(self) -> tuple[bytes, int] | None:
        """The reports of shaders with instruments since the last call: records as words of 32 bits, and the
        number of records that did not fit. None if there is nothing, or while work runs.
        """

    def debug_sites(self, module: int) -> list[tuple[str, str, int, str, str, list[str]]]:
        """The places in a module that report: (kind, file, line, text, arguments, strings); see
        native/core/instruments/instrument.hpp.
        """

    def debug_operation(self, number: int) -> str:
        """ "2:blur": the position of an operation in its recording, and its name."""

    def note_lines(self) -> None:
        """From now on, recordings note the user's lines for labels and messages."""

    @property
    def driver_library(self) -> bytes:
        """The file of the driver, or of a layer before it; b"" if the system does not tell."""

    @property
    def info(self) -> dict[str, Any]:
        """The device's properties.

        Keys: index, device_name, vendor_id, device_id, vendor_name, uuid (hex str), driver_name, driver_info,
        driver_version (str), api_version (str), type ("discrete", "integrated", "virtual", "cpu", "other"),
        max_work_group_count (3 ints), max_work_group_invocations (int), max_work_group_size (3 ints),
        timestamps_supported (bool), timestamp_period (nanoseconds, float), subgroup_size, subgroup_operations
        ([str], of compute shaders), limits (dict of str to int, float or tuple), features (dict of str to
        bool: what the device supports), extensions ([str]), queue_families ([{"index", "count", "compute",
        "transfer", "graphics", "timestamp_valid_bits"}]), memory_heaps ([{"size", "device_local"}]),
        memory_types ([{"heap", "device_local", "host_visible", "host_coherent", "host_cached"}]),
        device_local_bytes (int).
        """

    @property
    def request(self) -> str:
        """The requested device as text, for messages."""

    @property
    def passed_over(self) -> list[tuple[int, str, str]]:
        """(index, name, reason) of each device that was not chosen."""

    @property
    def repeated_devices(self) -> list[str]:
        """The entries of `visible` that name no device beyond those of earlier entries."""

    @property
    def enabled_extensions(self) -> list[str]: ...
    @property
    def enabled_features(self) -> list[str]: ...
    @property
    def foreign(self) -> bool:
        """True if it belongs to the parent process, from before a fork()."""

    @property
    def waits(self) -> str:
        """How short waits are done: "spin", "block" or "measuring"."""

    @property
    def queue_count(self) -> int: ...
    @property
    def queues(self) -> list[dict[str, Any]]:
        """{"family", "index", "shared"} of each queue; "shared": its family has too few, so it uses another's
        VkQueue.
        """

    @property
    def validation(self) -> bool:
        """True if the layer is active."""

    @property
    def host_import_alignment(self) -> int:
        """0 if the device imports no memory of the process."""

    @property
    def vk_instance(self) -> int: ...
    @property
    def vk_physical_device(self) -> int: ...
    @property
    def vk_device(self) -> int: ...
    def vk_queue(self, queue_index: int) -> int: ...
    def take_notes(self) -> list[str]:
        """Sentences for the log since the last call: desired extensions that are missing, fallbacks taken."""

    def is_init(self) -> bool: ...
    def destroy(self) -> list[str]:
        """Waits for the device's work and destroys all its objects. A second call does nothing.

        Returns sentences about held work that did not run.
        """

    def abandon(self) -> list[str]:
        """As `destroy`, for finalizers: never waits; running work finishes later."""

    def cancel_held(self) -> list[str]:
        """Cancels held work at the end of the program. Returns sentences about it."""

    def wait_submitted(self) -> None:
        """Waits for the submitted work. Does nothing in the child of a fork."""

    def wait_idle(self) -> None: ...
    def holds_work(self) -> bool: ...
    def is_lost(self) -> bool: ...
    def is_acting(self) -> bool:
        """True if this thread was the last to call this device, as far as is known."""

    def drain_messages(self) -> list[tuple[str, str, str, bool]]:
        """The validation messages since the last call: (severity, id, text, own).

        The severity is "error", "warning" or "info". `own` is False if the device is unknown or gone.
        """

    def memory_statistics(self) -> list[dict[str, Any]]:
        """For each heap: "number", "size", "device_local", "reserved", "used", "peak", "imported", "budget"
        (None if the driver gives none), "largest_free", "blocks", "allocations".
        """

    def memory_holders(self) -> list[tuple[str, str, int]]:
        """(name or "", "tensor" or "image", bytes) of each living tensor and image."""

    def pipeline_counts(self) -> dict[str, int]:
        """The fields of PipelineUse; all are 0 once the Manager is destroyed."""

    def least_busy(self, among: Sequence[int]) -> int:
        """The index, of these, of the queue with the fewest submissions that are not done."""

    def memory_trim(self) -> int:
        """Returns empty blocks and the staging ring to the driver. Returns the number of bytes."""

    def memory_reset_peak(self) -> None: ...
    def memory_place(self, memory_type: int, required: int) -> tuple[list[int], int]:
        """Vulkan's numbers of the memory types that such a tensor can have, best first, and the largest size.

        Raises UnimplementedError if no memory has the VkMemoryPropertyFlags of `required`.
        """

    def shares_memory(self) -> bool:
        """True if it exports memory as file descriptors."""

    def memory_check(self) -> list[str]:
        """Sentences about broken guard bytes; each break is reported once."""

    def buffer(
        self,
        data: np.ndarray | None,
        nbytes: int,
        memory_type: int,
        fill: bytes | None = None,
        wishes: tuple[int, float | None] | None = None,
    ) -> Buffer:
        """A buffer with the bytes of `data`, a C-contiguous array, in its host copy (for `storage`: on the
        device).

        Without `data`, the bytes of `fill` are repeated through the device's memory, and through the host
        copy once it is needed. `wishes`: VkMemoryPropertyFlags that its memory must have, and its
        priority.
        """

    def import_array(
        self,
        array: np.ndarray,
        padded: int,
        root: tuple[int, int],
        read_only: bool,
        on_done: Callable[[], object] | None,
    ) -> Buffer:
        """A buffer over the memory of a C-contiguous array, which the buffer keeps alive.

        `padded` is the number of bytes that belong to the array's owner, `root` the addresses between which
        all memory is the owner's, (0, 0) if that is not known. `on_done` is called once the buffer
        releases the memory. Raises InvalidArgumentError if the array does not fit, UnimplementedError if the
        device cannot import it; `on_done` is not called then.
        """

    def await_writers(self, begin: int, end: int) -> None:
        """Waits for work that writes memory between two addresses through buffers that imported it."""

    def image(
        self,
        data: np.ndarray | None,
        dims: int,
        arrayed: bool,
        size: tuple[int, int, int, int],
        format: str,
        memory_type: int,
    ) -> Image:
        """`size` is (width, height, depth, layers). Without `data`, the contents are undefined."""

    def image_formats(self) -> list[tuple[str, list[str]]]:
        """(name, uses on this device) of each format."""

    def sampler(
        self, filter: str, address: Sequence[str], border: str, integer_border: bool, unnormalized: bool
    ) -> Sampler: ...
    def shader(
        self,
        spirv: bytes,
        entry: str = "main",
        declared: bytes = b"",
        subgroup_size: int = 0,
        full_subgroups: bool = False,
        unchecked: bool = False,
    ) -> Shader:
        """One entry point of a module: validated and checked against the device once, later found by content.

        "main" also means the only compute entry point. `declared` is the module before optimization, which
        has all bindings and constants; b"" means `spirv`. `unchecked`: it is taken as valid for the device.
        """

    def knows_pipeline(self, shader: Shader, spec_constants: bytes, spec_map: _SpecMap) -> bool:
        """True if `algorithm` finds the pipeline of a shader without arrays of run-time length."""

    def pipeline_executables(
        self, shader: Shader, spec_constants: bytes, spec_map: _SpecMap
    ) -> list[tuple[str, str, int, list[tuple[str, bool | int | float]], list[tuple[str, str]]]]:
        """What the driver says of a pipeline that is compiled for it: (name, description, subgroup size or 0,
        statistics, texts) of each part; none if the device does not tell. Raises the errors of
        `check_pipeline`.
        """

    def check_pipeline(self, shader: Shader, spec_constants: bytes, spec_map: _SpecMap) -> None:
        """Raises the errors of `algorithm` for this shader: sizes beyond limits, a driver that fails to
        compile it.
        """

    def algorithm(
        self,
        shader: Shader,
        arguments: Sequence[Any],
        workgroup: _Groups,
        spec_constants: bytes,
        spec_map: _SpecMap,
        push_constants: bytes,
    ) -> Algorithm:
        """Argument i goes to binding i of set 0: a Memory, BufferView or Sampler, (memory, sampler), or None.

        A tuple of five names its place: (set, binding, element, memory or None, sampler or None).
        `push_constants` has the block's size or is empty.
        """

    def stream(self, queue_index: int, timestamps: int, disjoint: Sequence[Memory] = ()) -> Stream:
        """`timestamps` is the number of operations that can be timed: 0 for none, -1 for all.

        Work on `disjoint` is not ordered with work on other queues.
        """

class _Memory(_Object):
    """The members that Memory and BufferView share."""

    name: str
    @property
    def nbytes(self) -> int: ...
    @property
    def memory_type(self) -> int: ...
    @property
    def host_visible(self) -> bool:
        """True if the host can address its device memory."""

    @property
    def host_address(self) -> int:
        """Where the host finds its device memory; 0 if it does not."""

    @property
    def slow_to_read(self) -> bool:
        """True if its device memory is host-visible and not cached for the host."""

    @property
    def host_copy_made(self) -> bool:
        """False if its host copy is still to be made, because nothing has needed it yet."""

    @property
    def shareable(self) -> bool:
        """True if others may address its device memory: host-visible, and coherent."""

    @property
    def read_only(self) -> bool:
        """True if it is frozen or was imported as immutable: what writes it is refused."""

    @property
    def on_device(self) -> bool:
        """True if its device memory holds the contents. Before that, the host copy holds them."""

    @property
    def idle(self) -> bool:
        """True if `read` would not wait for submitted work."""

    @property
    def has_host_copy(self) -> bool:
        """True if sync operations move data: it has a host copy, or will have one once that is needed."""

    @property
    def freshness(self) -> str:
        """The host copy compared with the device memory: "unsent", "matches", "behind" (older), "partly"
        (older in elements that lie apart) or "unknown".

        Reading it neither waits nor transfers.
        """

    @property
    def vk_memory(self) -> int: ...
    @property
    def vk_memory_offset(self) -> int: ...
    @property
    def vk_memory_type(self) -> int: ...
    @property
    def priority(self) -> float | None:
        """None if the device heeds no priorities."""

    @property
    def taker(self) -> str:
        """The operation that took it; "" if none did."""

    def host_array(self, base: object, dtype: np.dtype, count: int) -> np.ndarray:
        """A flat, writable array over the host copy, with `base` as its ``.base``.

        Raises FailedPreconditionError if the memory is destroyed or `storage`.
        """

    def keep_host(self) -> object:
        """An object that keeps the host copy's memory alive after destroy(); None without a host copy."""

    def read(self, out: np.ndarray, offset: int = 0) -> None:
        """Waits for pending work on it, then fills `out` with the bytes of device memory from `offset`."""

    def write(self, data: np.ndarray, offset: int = 0) -> None:
        """Waits for pending work on it, then copies `data`, a C-contiguous array, to device memory.

        The host copy does not change. Returns when the copy is done.
        """

    def wait(self) -> None:
        """Waits for pending work that uses it."""

    def note_match(self) -> None:
        """Records that the caller has made the host copy and the device memory the same."""

    def note_host_write(self) -> None:
        """Records that the caller has written the device's contents for the host, and not the host copy."""

class _Bytes(_Memory):
    """The members that Buffer and BufferView share."""

    def write_numbers(self, data: np.ndarray, to: tuple[str, int]) -> bool:
        """Like `write`, for numbers that become others (NumPy's kind and size) on their way into memory that
        the host addresses.

        False if a number does not fit. Integers are then unwritten; of floats, a part may be written.
        """

    def read_runs(self, out: np.ndarray, offset: int, length: int, axes: Sequence[tuple[int, int]]) -> None:
        """Like `read`, for a strided part. May read the bytes between the runs too.

        The part consists of runs of `length` bytes. The first one begins at `offset`. `axes` has (number,
        bytes from one to the next) for each axis of runs, the outermost first.
        """

    def write_runs(self, data: np.ndarray, offset: int, length: int, axes: Sequence[tuple[int, int]]) -> None:
        """Like `write`, for a strided part (see `read_runs`). Writes no byte outside the runs."""

    @property
    def identity(self) -> int:
        """The same for a buffer and its views, and for no other memory that lives."""

    @property
    def vk_buffer(self) -> int: ...
    @property
    def vk_offset(self) -> int: ...
    @property
    def vk_size(self) -> int: ...
    @property
    def vk_device_address(self) -> int:
        """0 if the device lacks buffer device addresses."""

class Memory(_Memory):
    """Base of Buffer and Image."""

    @property
    def imported(self) -> bool:
        """True if it was made by `import_array`."""

    @property
    def first_byte(self) -> int:
        """Tells overlapping memory: its first byte in the process, or a number in memory that is shared by
        handles; 0 for memory of its own.
        """

    @property
    def identity(self) -> int:
        """A number that no other object has while this one exists."""

    def freeze(self) -> None: ...
    def is_init(self) -> bool: ...
    def destroy(self) -> None: ...
    def donate(self, taker: str) -> None:
        """Destroys it; errors of later uses say that the operation `taker` took it."""

    @property
    def viewed(self) -> bool:
        """Whether an array over its host's side was handed out."""

class Buffer(Memory, _Bytes):
    def descriptor(self) -> tuple[int, int, int]:
        """A new descriptor of shared memory, the size of the allocation and Vulkan's number of its type."""

def view(base: Buffer | BufferView, offset: int, size: int) -> BufferView:
    """The `size` bytes of `base` from `offset`. Raises OutOfRangeError if `base` is shorter."""

class BufferView(_Bytes):
    """A part of a Buffer, with the methods of a Buffer; offsets count from its first byte.

    Every call that takes a Memory takes a BufferView too.
    """

    name: str
    """Its own name; at first the buffer's."""
    def is_init(self) -> bool:
        """False once the view or its buffer is destroyed."""

    def destroy(self) -> None:
        """Ends the view; the buffer stays."""

class MappedMemory(_Object):
    """Host access to the device memory of `memory`.

    The constructor waits for pending work; evaluations that conflict are refused until `close`.
    """

    def __init__(
        self, memory: Memory | BufferView, read: bool, write: bool, in_place: bool = True
    ) -> None: ...
    def array(self, memory: Memory | BufferView, dtype: np.dtype, count: int) -> np.ndarray | None:
        """A flat, writable array over the device memory.

        None if the host cannot address the memory, or `in_place` is False.
        """

    def read(self, out: np.ndarray) -> None:
        """Copies all bytes to `out`, if `array` returned None."""

    def write(self, data: np.ndarray) -> None: ...
    def close(self) -> None:
        """Makes the host's writes visible to the device. A second call does nothing."""

class Fence(_Object):
    def done(self) -> bool: ...
    def wait(self, timeout: float) -> bool:
        """`timeout` is in seconds; a negative one means no limit. Returns False if the time runs out."""

    def look(self, seconds: float) -> bool | None:
        """True if a wait would end, by an error too, within this time. Does not raise the work's error.

        Releases the interpreter lock if it waits. None if no submitted work will end the wait.
        """

    def why_held(self) -> str:
        """A sentence that names the semaphores to be signalled first; "" if all work is in its queue."""

    def signals(self) -> list[tuple[Semaphore, int]]:
        """The semaphores of its points, with the values. Raises FailedPreconditionError for other points."""

    def points(self) -> list[tuple[int, int]]:
        """The VkSemaphore of each point, as an integer, with its value."""

    @staticmethod
    def join(fences: Sequence[Fence]) -> Fence: ...
    @staticmethod
    def of(streams: Sequence[Stream]) -> Fence:
        """The ends of the streams' last submissions. Waiting for the fence collects these submissions."""

class Semaphore(_Object):
    """A timeline semaphore of the user."""

    name: str
    def __init__(self, context: Context, initial: int, shared: bool = False) -> None: ...
    @staticmethod
    def imported(context: Context, fd: int) -> Semaphore:
        """The semaphore of a descriptor, which Vulkan owns then."""

    def descriptor(self) -> int:
        """A new descriptor of a shared one."""

    @property
    def vk_semaphore(self) -> int: ...
    def query(self) -> int: ...
    def state(self) -> tuple[int, int, str | None]:
        """The value, the highest promised one, and why no higher values will come; None if they may."""

    def why_held(self, value: int) -> str:
        """As `Fence.why_held`, for this value."""

    def signal(self, value: int) -> None: ...
    def wait(self, value: int, timeout: float) -> bool:
        """`timeout` is in seconds; a negative one means no limit. Returns False if the time runs out."""

    def fail(self, message: str) -> None: ...
    def abandon(self) -> list[str]:
        """The host lets go of it: values that no submitted work will raise fail. Returns sentences about the
        held work that this cancels.
        """

    def at(self, value: int) -> Fence: ...
    def is_init(self) -> bool: ...
    def is_alone(self) -> bool:
        """Whether nothing else refers to it: no fence, no held work."""

def submit(
    context: Context,
    streams: Sequence[Stream],
    fences: Sequence[Fence],
    waits: Sequence[tuple[Semaphore, int]],
    signals: Sequence[tuple[Semaphore, int]],
) -> Fence:
    """Submits the streams in order, after `fences` and `waits`; `signals` follow them.

    Work that cannot be submitted yet is held.
    """

class Waiter(_Object):
    """Waits for many fences on one thread."""

    def __init__(self, context: Context) -> None: ...
    def watch(self, fence: Fence) -> int:
        """Returns the number that `wait` gives once the fence's work on this device is done."""

    def forget(self, number: int) -> None: ...
    def wait(self) -> list[int]:
        """The numbers of completed fences, after at most a second. Releases the interpreter lock."""

    def close(self) -> None: ...
    def closed(self) -> bool: ...

class PeerCopy(_Object):
    """A copy of device contents to another Context, or within one. For one thread at a time."""

    def __init__(self, source: Memory | BufferView, target: Memory | BufferView) -> None:
        """Raises InvalidArgumentError if the sizes, or the shapes of images, differ."""

    @property
    def route(self) -> str:
        """ "undecided" before the first `submit`, then "same device", "direct", "shared" or "bounced"."""

    @property
    def name(self) -> str:
        """The name of the operation that it is a part of."""

    def check(self) -> None:
        """Raises FailedPreconditionError if the source or the target is destroyed."""

    def why_held(self) -> str:
        """As `Fence.why_held`, for the work that precedes a copy now."""

    def submit(self) -> None:
        """Copies after pending work on both sides. Returns when the source was read; the rest runs on the
        target's device.
        """

    def poll(self) -> bool: ...
    def is_running(self) -> bool: ...
    def fence(self) -> Fence:
        """The end of the running work, on both devices."""

def warn_of_waits_after(seconds: float) -> float:
    """Sets the time after which waits for held work warn. Returns the previous value."""

def fence_before(context: Context, reads: _Memories, writes: _Memories) -> Fence:
    """The end of the submitted work that the host must wait for to read `reads` and to write `writes`."""

def submit_once(operation: Operation | BoundDispatch) -> Fence:
    """Records one operation and submits it to the first queue. Does not wait."""

class BufferExporter:
    """Gives subclasses the buffer protocol, by their method `_memoryview()`, and `__array_interface__`, by
    `_array_interface()`.

    A subclass refuses by returning (class of the error, its arguments).
    """

    @property
    def __array_interface__(self) -> dict[str, Any]: ...

def release_arrays() -> None:
    """Drops the arrays that tensors no longer use, and calls their `on_done`.

    The main thread also does so by itself.
    """

def dlpack_export(
    memory: Memory | BufferView, shape: Sequence[int], code: int, bits: int, versioned: bool, copy: bool
) -> object:
    """A capsule over the device memory, or over a copy of it, which waits for pending work.

    None if the memory cannot be shared.
    """

def dlpack_import(capsule: object, to_dtype: Callable[[int, int], np.dtype]) -> np.ndarray:
    """An array over the contents of the capsule, which is used up; `to_dtype(code, bits)` gives its dtype."""

class Image(Memory):
    @property
    def shape(self) -> tuple[int, bool, tuple[int, int, int, int], str]:
        """(dims, arrayed, (width, height, depth, layers), format), as `Context.image` takes them."""

    @property
    def storable(self) -> bool: ...
    @property
    def sampleable(self) -> bool: ...
    @property
    def filterable(self) -> bool: ...
    @property
    def vk_image(self) -> int: ...
    @property
    def vk_image_view(self) -> int: ...
    @property
    def vk_format(self) -> int: ...
    def read_region(self, out: np.ndarray, region: _Region) -> None: ...
    def write_region(self, data: np.ndarray, region: _Region) -> None: ...

class Sampler(_Object):
    @property
    def vk_sampler(self) -> int: ...

def image_formats() -> list[dict[str, Any]]:
    """For each format: name, vulkan, vk_format, component, channels, texel_bytes, scalar, plain."""

def op_copy_region(
    source: Memory | BufferView,
    source_region: _Region | None,
    target: Memory | BufferView,
    target_region: _Region | None,
) -> Operation: ...

class Shader(_Object):
    """A validated SPIR-V module."""

    extra: Any
    """A place for data that the Python side derives from the reflection."""
    @property
    def reflection(self) -> dict[str, Any]:
        """The module's interface.

        Keys: version, entry, entry_points [{"name", "model" ("GLCompute", "Vertex", ...)}], local_size
        (3 ints), local_size_spec_ids (3 of int | None), shared_bytes, capabilities [str], bindings [{"set",
        "binding", "kind", "count", "access", "used", "name", "block_name", "readonly", "writeonly", "atomic",
        "layout", "image": {...} | None}], push_constants {"offset", "size", "name", "block_name", "layout"} |
        None, spec_constants [{"id", "name", "type" ("bool" | "int8" to "uint64" | "float16" to "float64"),
        "default" (Python value), "conflict" (only if its declarations have different defaults: these, as
        text)}].

        A layout is {"name", "type_name", "kind" ("struct" | "bool" | "int32" | ... | "pointer"), "rows",
        "columns", "row_major", "hlsl_matrix", "matrix_stride", "array" [int, 0 = run-time length],
        "array_strides" [int], "offset", "size", "members" [layout]}.
        """

    generated: bool
    """Whether a function wrote it, for what records it."""

    def made_of(self) -> tuple[bytes, str, bytes, int, bool, bool]:
        """(spirv, entry, declared, subgroup_size, full_subgroups, generated)."""

    def refuses(self, groups: _Groups, spec: bytes, spec_map: _SpecMap) -> str:
        """A clause that says why so many workgroups cannot run, and the remedy; "" if they can run."""

class Algorithm(_Object):
    name: str
    @property
    def shader(self) -> Shader: ...
    @property
    def workgroup(self) -> _Groups: ...
    @property
    def local_size(self) -> _Groups:
        """The local size with this algorithm's specialization constants applied."""

    @property
    def vk_pipeline(self) -> int: ...
    @property
    def vk_pipeline_layout(self) -> int: ...
    @property
    def vk_descriptor_sets(self) -> list[int]: ...
    def supersede(self, next: Algorithm) -> None:
        """Replaces this algorithm by `next` in operations that are recorded from now on."""

    def is_init(self) -> bool: ...
    def destroy(self) -> None: ...

@final
class Operation:
    """An immutable operation. Any stream of its Context can record it any number of times."""

    @property
    def name(self) -> str: ...

def op_sync_device(memories: _Memories) -> Operation: ...
def op_sync_local(memories: _Memories) -> Operation: ...
def sync_device_of(memories: object, /) -> Operation | None:
    """The operation for a list or tuple of Python's tensors and images; None for anything else, and in place
    of an error.
    """

def sync_local_of(memories: object, /) -> Operation | None: ...
def op_copy(memories: _Memories) -> Operation: ...
def op_fill(memories: Sequence[Buffer | BufferView | Image], patterns: Sequence[bytes]) -> Operation:
    """Fills each memory with its pattern, repeated a whole number of times; each texel of an image."""

def op_dispatch(
    algorithm: Algorithm,
    groups: _Groups,
    push_constants: bytes,
    grid: _Groups | None,
    own_push: bool,
    indirect: Buffer | BufferView | None = None,
) -> Operation:
    """A dispatch that follows its algorithm (see `Algorithm.supersede`).

    It keeps its own `grid` (invocations), and its own push constants if `own_push` is True. `indirect`:
    three uint32, the numbers of groups, which the device reads.
    """

def op_repeat(
    operations: Sequence[Operation | BoundDispatch],
    times: int,
    swaps: Sequence[tuple[Memory | BufferView, Memory | BufferView]],
) -> Operation:
    """The operations one after another, `times` times; in every second repetition with memory exchanged."""

def written_last(
    operations: Sequence[Operation | BoundDispatch],
    swaps: Sequence[tuple[Memory | BufferView, Memory | BufferView]],
) -> list[int | None]:
    """For each pair, which of the two the operations write last: 0 or 1; None if neither."""

def op_warm_up(algorithm: Algorithm) -> Operation:
    """A dispatch of no groups, for drivers that compile at the first one. Not for algorithms with images."""

class BoundDispatch(_Object):
    """A dispatch with changeable groups, push constants, references and algorithm.

    A recording that holds it is rebuilt at its next submission after a change. `references` are the buffers
    with addresses in the push constants.
    """

    @property
    def name(self) -> str: ...
    @property
    def algorithm(self) -> Algorithm: ...
    def supersede(self, next: BoundDispatch) -> None:
        """Replaces this dispatch by `next` in recordings that begin from now on."""

    def set(self, groups: _Groups, push_constants: bytes, references: _Memories) -> None: ...
    def replace(
        self, algorithm: Algorithm, groups: _Groups, push_constants: bytes, references: _Memories
    ) -> None: ...

def op_bound_dispatch(
    algorithm: Algorithm,
    groups: _Groups,
    push_constants: bytes,
    references: _Memories,
    indirect: Buffer | BufferView | None = None,
) -> BoundDispatch: ...
def before_out_of_memory(call: Callable[[], bool]) -> None:
    """Has `call` give memory back before an allocation fails. It returns whether there was some."""

def share_buffer(
    context: Context, nbytes: int, memory_type: int, key: int, fd: int = -1, size: int = 0, type: int = 0
) -> Buffer:
    """A buffer over new memory of zeros that can be shared, or over that of the descriptor `fd`, which the
    call owns in any case. `key` stands for the memory's address; its highest bit is set. `size` (bytes) and
    `type` (Vulkan's number) are those of the memory to import.

    Raises UnimplementedError if the device does not share memory, InvalidArgumentError for memory that it
    cannot import.
    """

def exchange_buffer(tensor: object, made: Buffer) -> tuple[Buffer, bool] | None:
    """Gives a Tensor the buffer `made`. Returns its own, and whether nothing else refers to that; None if it
    has none, or a destroyed one.
    """

class CallForm(_Object):
    """A call over any memory of certain shapes: native/bindings/call_form.hpp."""

    repeats: bool
    """Whether the table runs it again; if not, Python does."""

    def __init__(
        self,
        *,
        parts: Sequence[tuple[Algorithm, Sequence[tuple[int, int, int]], _Groups, tuple[int, int] | None]],
        slots: Sequence[tuple[int, Buffer | BufferView | Image | None, int]],
        results: Sequence[tuple[int, Buffer | BufferView | None, Callable[[], Any] | None]],
        push: Sequence[bytes],
        several: bool = False,
        repeats: bool = True,
        nbytes: int = 0,
        pack: Callable[[list[Any]], Sequence[bytes] | None] | None = None,
        check: Callable[[bytes], bool] | None = None,
        info: object = None,
        fresh: Sequence[tuple[int, int, bool]] = ...,
        tensors: Callable[[list[Buffer]], Sequence[Any]] | None = None,
        after: Callable[[], None] | None = None,
        whole: Sequence[int] | None = None,
    ) -> None:
        """`parts` are its dispatches: (algorithm, [(set, binding, number of the slot), ...], groups, where
        the device reads the groups instead: the number of the slot and the byte in it).

        `slots`: (value, memory of an array or of all calls, parameter of a kernel). `results`: (value,
        memory of an array, what makes the array). A value is the number of an argument, -1 for none, -2 - n
        for memory n of what the call makes: new results, then that of stand-ins. `several`: the call returns
        a tuple. `push`: the push constants of each dispatch.

        `fresh` are of new results the bytes, the memory type, and whether they begin as zeros; `tensors`
        makes their Tensors of native memory. `nbytes` are those of memory that no other form has.

        A function's: `pack` makes the push constants from the values instead, None if it takes others.
        `after` is called after the work. `whole` are the slots that it writes whole.

        A kernel's: `check(push)` is False if other push constants must be prepared anew. `info` is for
        `bind`, which does not take the form if it is None.
        """

    @property
    def nbytes(self) -> int:
        """The bytes of memory that no other form has."""

    def bind(
        self, given: Sequence[Any], made: Sequence[Any], push: Sequence[bytes], title: str = ""
    ) -> list[Operation]:
        """Its operations over what is given and made for a call: objects with native memory, or that memory
        itself.
        """

    def without_groups(self, given: Sequence[Any], made: Sequence[Any]) -> list[Operation]:
        """Operations that dispatch each part with no groups."""

    def run(
        self,
        given: Sequence[Any],
        made: Sequence[Any],
        push: Sequence[bytes],
        before: Sequence[Operation],
        after: Sequence[Operation],
    ) -> None:
        """Records, submits, waits and lets go of the memory. Ctrl-C leaves the work running."""

class CallTable(_Object):
    """The prepared calls of a kernel, a function or a program's entry: see native/bindings/call_table.hpp."""

    lending: Any
    """Makes memory for arrays: `begin`, `memory`. It must not keep the table alive."""

    def __init__(
        self,
        *,
        tensor_type: type,
        manager: object,
        missing: object,
        bindings: Sequence[str],
        most_entries: int,
        counts: Sequence[str] = (),
        constants: Sequence[str] = (),
        fields: Sequence[tuple[str, int]] = (),
        push_size: int = 0,
        pack: Callable[[dict[str, Any]], bytes] | None = None,
        parameters: int = 0,
    ) -> None:
        """A kernel's, or that of a program's entry. `manager` must outlive it.

        `bindings`, `counts` and `constants` are the names of keywords: of memory, of the grid, of push
        constants. `fields`: (code of `struct`, offset) of each push constant, none if `pack` packs them all.
        `missing` stands for parameters that are not given in what `bind` returns.
        """

    @staticmethod
    def of_function(
        *,
        tensor_type: type,
        manager: object,
        missing: object,
        parameters: Sequence[str],
        defaults: Sequence[object],
        plain: Sequence[Sequence[type]],
        by_position: int,
        writes: bool,
        facts: Callable[[Any], tuple[Any, ...]],
        shared: object,
        most_entries: int,
    ) -> CallTable:
        """A function's. `parameters` are the names of its parameters, and "out". `defaults`: the values of
        those left out, `missing` for what must be given. `plain`: the types of their values that need no
        conversion. `writes`: whether it writes some of them. `facts(value)` tells what a call depends on of a
        value of another type. `shared`: the tensors with memory that others see.
        """

    def call(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The result, or NotImplemented if the call is not prepared."""

    def submit(
        self,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        order: tuple[Sequence[Fence], Sequence[tuple[Semaphore, int]], Sequence[tuple[Semaphore, int]]]
        | None = None,
    ) -> Any:
        """The Fence, or (Fence, Tensors of new results), or NotImplemented. `order`: what it waits for and
        signals.
        """

    def bind(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """(operation, push constants, memory by parameter, the form's `info`), or NotImplemented."""

    def learn(
        self,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        form: CallForm,
        family: tuple[int, int, int, int, list[list[tuple[int, int, int]]]] | None,
    ) -> None:
        """A kernel's calls with tensors like these have this form."""

    def remember(
        self,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        form: CallForm,
        given: Sequence[Any],
        push: Sequence[bytes],
        dispatch: BoundDispatch | None = None,
        record: Callable[[], Stream] | None = None,
    ) -> None:
        """The very same call has this form. `given`: its values and memory, lists one by one. `push`: a
        function's push constants. `dispatch`: the only one, else the form makes it. `record` makes the
        recording that runs instead; the results of the form are copies of its slots' memory.
        """

    def find_form(self, values: list[Any], outs: tuple[Any, ...], extra: tuple[Any, ...]) -> Any:
        """What `keep` was given for such a call of a function, or None: the values of all parameters, the
        memory for results, and what else the call depends on.
        """

    def keep(
        self,
        values: list[Any],
        outs: tuple[Any, ...],
        extra: tuple[Any, ...],
        places: Sequence[int],
        form: CallForm,
    ) -> None:
        """Keeps a form for such calls. It depends on the numbers at `places`."""

    @property
    def forms(self) -> int:
        """The number of forms."""

    @property
    def kept_bytes(self) -> int:
        """The bytes of the forms."""

    def drop_a_form(self) -> None:
        """Drops one, chosen at random, and what was prepared of it."""

    def clear(self) -> None: ...
    def __len__(self) -> int:
        """The number of entries."""

def op_custom(
    context: Context,
    name: str,
    record: Callable[[int], None],
    reads: _Memories | None,
    writes: _Memories | None,
) -> Operation:
    """An operation that calls `record(vk_command_buffer)`.

    The callable is borrowed: the caller keeps it alive as long as a stream holds the operation. If `reads`
    and `writes` are None, nothing is declared, and a full barrier precedes and follows the commands.
    """

def frame_uses(stream: Stream, inputs: _Memories, streamed: Sequence[Memory]) -> list[dict[str, Any]]:
    """How one pass over a stream's recording uses each memory, in order of first use.

    Keys: "memory", "read", "written", "carried" (read before it is written, and written), "fixed" (a shader
    holds its address), "uploaded", "downloaded" (by sync operations). `inputs` count as written before the
    pass; sync operations of `streamed` are ignored. Raises FailedPreconditionError if the stream is running.
    """

def substituted(
    stream: Stream, replaced: Sequence[tuple[Memory, Memory]], streamed: Sequence[Memory]
) -> list[Operation]:
    """The recording with other memory of equal sizes, without sync operations of `streamed`."""

def recorded(stream: Stream) -> list[dict[str, Any]]:
    """The operations as data, to be made again for other memory on another device.

    Keys: "kind" ("dispatch", "copy", "copy region", "fill", "sync device", "sync local", "repeat"; "" for
    foreign code), "name", "ranges" [range], "patterns" [bytes], "regions", "operations", "times", "swaps"
    [(range, range)]; of dispatches "shader", "constants" (bytes, map), "arguments" [(set, binding, element,
    range | None, the arguments of `Context.sampler` | None, format of texels | None)], "groups", "push",
    "indirect" (range | None), "by_address" (it reaches memory by addresses). A range is (memory, offset,
    bytes).
    """

class Stream(_Object):
    """A recorded list of operations and its prebuilt submission."""

    name: str
    @property
    def queue_index(self) -> int: ...
    @property
    def timestamp_bits(self) -> int:
        """The number of valid bits of a timestamp on its queue."""

    @property
    def vk_command_buffer(self) -> int: ...
    @property
    def vk_semaphore(self) -> int:
        """The queue's timeline semaphore."""

    @property
    def last_value(self) -> int:
        """The timeline value that the last submission signals."""

    def record(self, operation: Operation | BoundDispatch, /) -> None:
        """Appends an operation; after an evaluation, starts a new list.

        Raises an error, and leaves the list as it is, if the stream is running, an object is destroyed or
        belongs to another Context, or there are no timestamps left.
        """

    def eval(self) -> None:
        """Builds if needed, submits and waits without the interpreter lock.

        Ctrl-C raises KeyboardInterrupt; the work continues.
        """

    def submit(self) -> None:
        """Builds if needed and submits. Raises FailedPreconditionError if the stream is running."""

    def wait(self, timeout: float) -> bool:
        """`timeout` is in seconds; a negative one means no limit.

        Returns False if the time runs out, True if the work is done or nothing was running.
        """

    def due(self) -> bool | Fence:
        """False if there is nothing to wait for; True if the work is done: then it was collected.

        Otherwise its fence. Does not wait; raises the error of the work.
        """

    def clear(self) -> None: ...
    def rerecord(self) -> None: ...
    def build(self) -> None:
        """Does what the first submission does before it submits."""

    def cancel_held(self) -> list[str]:
        """Cancels the last submission if it is held. Returns sentences about work that did not run."""

    def destroy(self) -> list[str]:
        """Waits for running work and cancels held work. Returns sentences about work that did not run."""

    def is_recording(self) -> bool: ...
    def is_running(self) -> bool:
        """True if work was submitted and is not known to be done."""

    def is_due(self) -> bool:
        """True if work was submitted and not awaited yet, though it may be known to be done."""

    def is_complete(self) -> bool:
        """True if the device is done with the last submission, or there was none. Queries the device."""

    def is_init(self) -> bool: ...
    def operation_names(self) -> list[str]: ...
    def timestamps(self) -> list[int]: ...
    def timed_names(self) -> list[str]:
        """The operations of the timestamps; a new recording may have begun since."""

    def barriers(self) -> list[tuple[int, int, int, int, int]]:
        """The barriers of the built recording: (index of the operation that follows, src_stages, src_access,
        dst_stages, dst_access).
        """

class CompileRequest(_Object):
    """A source of GLSL and its options.

    `optimize` is "none", "size" or "performance". An empty version means the default.
    """

    def __init__(
        self,
        source: _Text,
        name: _Text,
        entry: _Text,
        defines: Sequence[tuple[_Text, _Text]],
        include_dirs: Sequence[_Text],
        virtual_includes: Mapping[str, _Text],
        optimize: str,
        debug_info: bool,
        target: _Text,
        spirv_version: _Text,
        glsl_version: _Text,
        auto_bind: bool,
        hlsl_offsets: bool,
    ) -> None: ...
    def check(self) -> None:
        """Raises InvalidArgumentError for what `compile` refuses without reading the source."""

def compile(
    request: CompileRequest, seconds: float = ...
) -> tuple[bytes, bytes, list[_Diagnostic], list[str], list[tuple[str, bytes | None]]]:
    """The SPIR-V; the SPIR-V before optimization (b"" if it was not optimized); the warnings; the included
    files; and each path at which an include was sought, with its contents or None.

    Raises EvalTimeoutError after `seconds`.
    """

def finish_spirv(spirv: bytes, name: _Text, optimize: str, target: str) -> tuple[bytes, bytes]:
    """The step that follows another compiler's front end.

    Returns the optimized module, and the module before optimization (b"" if it was not optimized).
    """

def render_diagnostics(diagnostics: Sequence[_Diagnostic]) -> str:
    """The text of a ShaderCompileError with these diagnostics."""

def compiler_id() -> str:
    """A text that changes with the linked compilers and the code around them."""

def private_bytes(spirv: bytes, spec_constants: bytes, spec_map: _SpecMap) -> int:
    """Bytes of local variables of each invocation."""

def check_shader(
    spirv: bytes,
    name: str,
    vulkan: tuple[int, int],
    features: Sequence[str],
    subgroup_operations: Sequence[str],
    limits: Mapping[str, int],
    work_group_size: _Groups,
    entry: str,
    spec_constants: bytes,
    spec_map: _SpecMap,
    array_lengths: Sequence[tuple[str, int]] = (),
    extensions: Sequence[str] = (),
    float_controls: Sequence[str] = (),
    denorm_independence: str = "none",
    rounding_independence: str = "none",
) -> list[tuple[str, str, int | str | None, int | str | None, str]]:
    """The reasons for which the described device would refuse the shader.

    Each is (kind, what, needed, has, sentence).
    """

def validate_spirv(
    spirv: bytes,
    vulkan_minor: int = 2,
    scalar_block_layout: bool = False,
    uniform_buffer_standard_layout: bool = True,
    relax_block_layout: bool = True,
    workgroup_scalar_block_layout: bool = False,
) -> str:
    """The first violation of SPIR-V's rules for Vulkan 1.`vulkan_minor`; "" if there is none."""

def reflect_spirv(
    spirv: bytes, entry: str = "main", spec_constants: bytes = b"", spec_map: _SpecMap = ()
) -> dict[str, Any]:
    """`Shader.reflection` of a module, without a device. "main" also means the only compute entry point.

    Sizes that depend on constants are computed with the given constants; the reported defaults are the
    module's.
    """

def invocation_use(
    spirv: bytes, entry: str = "main", spec_constants: bytes = b"", spec_map: _SpecMap = ()
) -> dict[str, Any]:
    """The numbers of an invocation that the code depends on.

    "global", "group", "local" and "group_count" and parts of them, as axes ("xy"); "local_index" as a bool.
    See InvocationUse in native/core/spirv/invocation.hpp.
    """

def reach_spirv(
    spirv: bytes, entry: str = "main", spec_constants: bytes = b"", spec_map: _SpecMap = ()
) -> tuple[
    list[tuple[str, int, int, int]],
    list[tuple[int, int, int, int, int, list[int], _Pairs, bool, bool]],
]:
    """The elements that the invocations use.

    Expressions (term, value, a, b); (set, binding, offset, stride, length, indices, guards, written,
    certain) of each access. See native/core/spirv/reach.hpp.
    """

def disassemble_spirv(spirv: bytes, friendly_names: bool = True) -> str: ...
def assemble_spirv(text: _Text, vulkan_minor: int = 2, name: _Text = "<source>") -> bytes: ...
def decompile_spirv(spirv: bytes, language: str, entry: str) -> str: ...
