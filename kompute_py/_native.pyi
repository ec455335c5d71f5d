"""Types of the native module. Private: the public classes in this package hold these objects."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

__version__: str

def alive() -> dict[str, int]:
    """Live native objects by kind: "context", "buffer", "image", "shader", "algorithm", "stream"."""

def before_raising(call: Callable[[], None], /) -> None:
    """Has `call` called before an exception of the core is raised, in place of the one that was."""

def shutdown() -> None:
    """Waits for the work of devices whose last owner is gone. Called at interpreter exit."""

def loader_info() -> dict[str, Any]:
    """{"available": bool, "error": str, "version": (major, minor, patch), "layers": [str], "extensions": [str],
    "layer_versions": {layer: (major, minor, patch)}}. Never raises."""

def late_loader() -> str:
    """Why the loader that is open is not the one that the environment names now; "" where it is, or where none is open."""

def enumerate_devices(visible: str | None) -> tuple[list[dict[str, Any]], list[str]]:
    """One dict for each physical device (see `Context.info`), and the entries of `visible` that name no further one. Raises
    UnavailableError with no loader or driver.

    `visible`: a list of those that count, separated by ";", in the order wanted; None for all. Raises NotFoundError for one that is
    not there."""

def select_device(index: int | None, preferences: str, visible: str | None) -> dict[str, Any]:
    """{"index": int | None, "request": str, "passed_over": [(index, name, reason)], "error": str}"""

class Context:
    """One VkDevice, its queues, memory and caches."""

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
        robust_access: bool,
        pipeline_cache_dir: bytes,
        memory_block_size: int,
        memory_limit: int,
        memory_debug: bool,
        force_staging: bool,
        force_non_coherent: bool,
        recent_pipelines: int,
        wait_mode: str,
    ) -> None:
        """`pipeline_cache_dir` "" turns the cache on disk off; `memory_limit` 0 is none. Sizes are in bytes."""

    info: dict[str, Any]
    """Keys: index, device_name, vendor_id, device_id, vendor_name, uuid (hex str), driver_name, driver_info, driver_version (str),
    api_version (str), type ("discrete", "integrated", "virtual", "cpu", "other"), max_work_group_count (tuple3),
    max_work_group_invocations (int), max_work_group_size (tuple3), timestamps_supported (bool), timestamp_period (ns, float),
    subgroup_size, subgroup_operations ([str], of compute shaders), limits (dict str -> int | float | tuple), features (dict str -> bool, what the device has), extensions ([str]),
    queue_families ([{"index", "count", "compute", "transfer", "graphics", "timestamp_valid_bits"}]),
    memory_heaps ([{"size", "device_local"}]), memory_types ([{"heap", "device_local", "host_visible", "host_coherent", "host_cached"}]),
    device_local_bytes (int)."""
    request: str
    passed_over: list[tuple[int, str, str]]
    repeated_devices: list[str]
    """Entries of `visible` that name no device beyond those that the entries before them named."""
    enabled_extensions: list[str]
    enabled_features: list[str]
    foreign: bool
    """Whether it is a parent process's, before a fork()."""
    waits: str
    """How short waits are done: "spin", "block" or "measuring"."""
    def take_notes(self) -> list[str]:
        """Sentences worth a log line that came up since the last call: desired extensions that are missing, fall-backs taken."""
    queue_count: int
    queues: list[dict[str, Any]]
    """One for each logical queue: {"family", "index", "shared" (multiplexed onto a queue of the same family)}."""
    validation: bool
    """Whether the layer is really on."""
    vk_instance: int
    vk_physical_device: int
    vk_device: int
    def vk_queue(self, queue_index: int) -> int: ...
    def is_init(self) -> bool: ...
    def destroy(self) -> list[str]:
        """Waits for the device's work, destroys every object made from it. Again: nothing. Returns what was held and did not run."""
    def abandon(self) -> list[str]:
        """The finaliser's destroy: never waits; work in flight finishes later. Returns what was held and did not run."""
    def cancel_held(self) -> list[str]:
        """Cancels what is held, since the program ends. Returns sentences about what did not run."""
    def wait_submitted(self) -> None:
        """Waits for what queues have. In a fork's child: nothing."""
    def wait_idle(self) -> None: ...
    def is_acting(self) -> bool:
        """Whether this thread called this device last; True where nobody notes that."""
    def drain_messages(self) -> list[tuple[str, str, str, bool]]:
        """Validation messages since the last call, as (severity "error" | "warning" | "info", id name, text, own).

        Not `own`: nobody knows whose it is, or its device is gone."""
    def memory_statistics(self) -> list[dict[str, Any]]:
        """For each heap: "number", "size", "device_local", "reserved", "used", "peak", "imported", "budget" (None where the driver
        does not say), "largest_free", "blocks", "allocations"."""
    def memory_holders(self) -> list[tuple[str, str, int]]:
        """(name or "", "tensor" or "image", bytes) of each tensor and image that is alive."""
    def pipeline_counts(self) -> dict[str, int]:
        """The fields of PipelineUse that the core knows; all are 0 when the Manager is destroyed."""
    def memory_trim(self) -> int:
        """Gives empty blocks and the staging ring back to the driver; the bytes."""
    def memory_reset_peak(self) -> None: ...
    def memory_check(self) -> list[str]:
        """Sentences about broken guards; each is reported once."""
    def buffer(
        self, data: np.ndarray | None, nbytes: int, memory_type: int, fill: bytes | None = None
    ) -> Buffer:
        """`data` must be C-contiguous (its bytes are copied to the host's side, for `storage` to the device) or None. With None,
        `fill`, an element's bytes, repeats through the device's memory; the host copy is made when something needs it, and
        holds them too."""
    def import_array(
        self, array: np.ndarray, padded: int, read_only: bool, on_done: Callable[[], object] | None
    ) -> Buffer:
        """A buffer over the memory of a C-contiguous array, which it keeps; `padded` bytes of it are the array's owner's. Calls
        `on_done` once it lets go. Raises InvalidArgumentError where the array does not fit, UnimplementedError where the device
        does not import it; the array and `on_done` are untouched then."""
    host_import_alignment: int
    """0 where the device imports no memory of the process."""
    def image(
        self,
        data: np.ndarray | None,
        dims: int,
        arrayed: bool,
        size: tuple[int, int, int, int],
        format: str,
        memory_type: int,
    ) -> Image:
        """`size`: width, height, depth, layers. With no `data` the contents are undefined."""
    def image_formats(self) -> list[tuple[str, list[str]]]: ...
    def sampler(
        self, filter: str, address: Sequence[str], border: str, integer_border: bool, unnormalized: bool
    ) -> Sampler: ...
    def shader(self, spirv: bytes, entry: str = "main", declared: bytes = b"") -> Shader:
        """One entry point of the module of these bytes: validated and checked against the device once, then found again by
        content. "main" also means the only compute entry point. `declared` is the module before it was optimized, whose
        bindings and constants it has; b"": `spirv` itself."""
    def check_pipeline(
        self, shader: Shader, spec_constants: bytes, spec_map: Sequence[tuple[int, int, int]]
    ) -> None:
        """Raises what making an algorithm of the shader would: sizes beyond limits, a driver that fails to compile it."""
    def algorithm(
        self,
        shader: Shader,
        arguments: Sequence[Any],
        workgroup: tuple[int, int, int],
        spec_constants: bytes,
        spec_map: Sequence[tuple[int, int, int]],
        push_constants: bytes,
    ) -> Algorithm:
        """`arguments`: place i is binding i of set 0: a Memory, a BufferView, a Sampler, (memory, sampler), or None. A tuple of five
        says where it goes: (set, binding, element, memory or None, sampler or None).
        `spec_map`: (constant id, offset, size) into `spec_constants`. `push_constants` has the block's size or is empty."""
    def stream(self, queue_index: int, timestamps: int, disjoint: Sequence[Memory] = ()) -> Stream:
        """`timestamps`: most operations that can be timed; 0 none, -1 as many as are recorded. Work on `disjoint` is not ordered with
        that of other queues."""

class Memory:
    """Base of Buffer and Image."""

    nbytes: int
    memory_type: int
    name: str
    def is_init(self) -> bool: ...
    def destroy(self) -> None: ...
    def host_array(self, base: object, dtype: np.dtype, count: int) -> np.ndarray:
        """Flat writable array over the host copy whose `.base` is `base`. Raises FailedPreconditionError when destroyed or storage."""
    def keep_host(self) -> object:
        """An object that keeps the host copy's memory alive beyond destroy(); None where there is none."""
    def read(self, out: np.ndarray, offset: int = 0) -> None:
        """Waits for pending work on it, then copies the device's contents (out.nbytes bytes from `offset`) to `out`."""
    def write(self, data: np.ndarray, offset: int = 0) -> None:
        """Waits for pending work on it, then copies C-contiguous `data` to the device (not to the host copy), done on return."""
    def wait(self) -> None:
        """Waits for pending work that uses it."""
    host_visible: bool
    slow_to_read: bool
    """Whether the device's memory of it can be seen by the host."""
    host_copy_made: bool
    """False while there is to be a host copy that nothing needed yet."""
    shareable: bool
    """Whether others may address the device's memory of it: seen by the host, and no flush needed but those of evaluations."""
    read_only: bool
    """Imported as immutable: recordings and transfers that write it are refused."""
    on_device: bool
    """Whether anything was written to the device's memory of it since it was made."""
    idle: bool
    """Whether `read` would wait for no submitted work."""
    has_host_copy: bool
    """Whether there is a host copy beside device memory, or will be once something needs it."""
    freshness: str
    """How the host copy relates to device memory: "unsent", "matches", "behind" (older) or "unknown". No wait, no transfer."""
    def note_match(self) -> None:
        """Says that the caller has made the host copy and device memory the same."""

    vk_memory: int
    vk_memory_offset: int

class Buffer(Memory):
    vk_buffer: int
    vk_offset: int
    vk_size: int
    vk_device_address: int
    """0 where the device has no buffer device address."""

def view(base: Buffer | BufferView, offset: int, size: int) -> BufferView:
    """The `size` bytes from `offset` of `base`. Raises OutOfRangeError beyond it."""

class BufferView:
    """A part of a Buffer, with a Buffer's methods; offsets count from the part's begin. Wherever memories are taken, it is too."""

    nbytes: int
    memory_type: int
    name: str
    """Its own; the buffer's at first."""
    def is_init(self) -> bool:
        """False once it or its buffer was destroyed."""
    def destroy(self) -> None:
        """Ends the view alone."""
    def host_array(self, base: object, dtype: np.dtype, count: int) -> np.ndarray: ...
    def keep_host(self) -> object: ...
    def read(self, out: np.ndarray, offset: int = 0) -> None: ...
    def write(self, data: np.ndarray, offset: int = 0) -> None: ...
    def wait(self) -> None: ...
    host_visible: bool
    slow_to_read: bool
    host_copy_made: bool
    shareable: bool
    read_only: bool
    on_device: bool
    idle: bool
    has_host_copy: bool
    freshness: str
    def note_match(self) -> None: ...
    vk_memory: int
    vk_memory_offset: int
    vk_buffer: int
    vk_offset: int
    vk_size: int
    vk_device_address: int

class MappedMemory:
    """The host at work in the device's memory of `memory`: waits for pending work, holds recordings back until it is closed."""

    def __init__(
        self, memory: Memory | BufferView, read: bool, write: bool, in_place: bool = True
    ) -> None: ...
    def array(self, memory: Memory | BufferView, dtype: np.dtype, count: int) -> np.ndarray | None:
        """Flat and writable, over the device's memory; None if the host does not address it, or `in_place` is False."""
    def read(self, out: np.ndarray) -> None:
        """Copies all of its bytes to `out`: if `array` gave None."""
    def write(self, data: np.ndarray) -> None: ...
    def is_open(self) -> bool: ...
    def close(self) -> None:
        """Brings what the host wrote to the device. Again: nothing."""

class Fence:
    def done(self) -> bool: ...
    def wait(self, timeout: float) -> bool:
        """Seconds; negative: no limit. False on time-out."""
    def why_held(self) -> str:
        """Which semaphores must be signalled first, as a sentence; empty if all work is with its queue."""
    @staticmethod
    def join(fences: Sequence[Fence]) -> Fence: ...
    @staticmethod
    def of(streams: Sequence[Stream]) -> Fence:
        """The ends of the streams' last submissions; waiting for it collects them."""

class Semaphore:
    """A user's timeline semaphore."""

    def __init__(self, context: Context, initial: int) -> None: ...
    def query(self) -> int: ...
    def why_held(self, value: int) -> str:
        """Fence.why_held() of this value."""
    def signal(self, value: int) -> None: ...
    def wait(self, value: int, timeout: float) -> bool:
        """Seconds; negative: no limit. False on time-out."""
    def fail(self, message: str) -> None: ...
    def at(self, value: int) -> Fence: ...
    def is_init(self) -> bool: ...
    name: str
    vk_semaphore: int

def submit(
    context: Context,
    streams: Sequence[Stream],
    fences: Sequence[Fence],
    waits: Sequence[tuple[Semaphore, int]],
    signals: Sequence[tuple[Semaphore, int]],
) -> Fence:
    """Submits streams in order, after fences and waits; then come the signals. What cannot go yet is held."""

class Waiter:
    """Waits for many fences on one thread."""

    def __init__(self, context: Context) -> None: ...
    def watch(self, fence: Fence) -> int:
        """A number that `wait` returns when the fence's points on this device have passed."""
    def forget(self, number: int) -> None: ...
    def wait(self) -> list[int]:
        """The numbers of what has passed; after a second at most. With the GIL released."""
    def close(self) -> None: ...
    def closed(self) -> bool: ...

class PeerCopy:
    """A copy of device contents to another Context, or within one. One thread at a time."""

    def __init__(self, source: Memory | BufferView, target: Memory | BufferView) -> None:
        """Raises InvalidArgumentError where the sizes, or the shapes of images, differ."""
    def check(self) -> None:
        """Raises FailedPreconditionError where one of the two was destroyed."""
    def why_held(self) -> str:
        """Fence.why_held() of the work that a copy comes after now."""
    def submit(self) -> None:
        """Copies after pending work on both. Returns when the source was read; what is left runs on the destination's device."""
    def poll(self) -> bool: ...
    def is_running(self) -> bool: ...
    def fence(self) -> Fence:
        """The end of what runs, on both devices."""
    route: str
    """"undecided" before the first submit, "same device", "direct", "shared", "bounced"."""

def warn_of_waits_after(seconds: float) -> float:
    """How long waits for held work last before they warn; returns what it was."""

def submit_once(operation: Operation) -> Fence:
    """Records one operation, submits it on the first queue and returns."""

class BufferExporter:
    """Base type that gives subclasses the buffer protocol, from their `_memoryview()`."""

def release_arrays() -> None:
    """Drops the arrays that tensors no longer use, and calls their `on_done`; the main thread does so by itself."""

def dlpack_export(
    memory: Memory | BufferView, shape: Sequence[int], code: int, bits: int, versioned: bool, copy: bool
) -> object:
    """A capsule over the device's memory, or over a copy of it (then it waits for pending work); None where it is not shareable."""

def dlpack_import(capsule: object, to_dtype: Callable[[int, int], np.dtype]) -> np.ndarray:
    """An array over what the capsule holds, which is used up. `to_dtype(code, bits)` gives its dtype."""

class Image(Memory):
    def read_region(self, out: np.ndarray, region: tuple[int, int, int, int, int, int, int, int]) -> None:
        """Region: x, y, z, layer, width, height, depth, layers."""
    def write_region(
        self, data: np.ndarray, region: tuple[int, int, int, int, int, int, int, int]
    ) -> None: ...
    storable: bool
    sampleable: bool
    filterable: bool
    vk_image: int
    vk_image_view: int
    vk_format: int

class Sampler:
    vk_sampler: int

def image_formats() -> list[dict[str, Any]]:
    """One for each format: name, vulkan, vk_format, component, channels, texel_bytes, scalar, plain."""

def op_copy_region(
    source: Memory | BufferView,
    source_region: tuple[int, int, int, int, int, int, int, int] | None,
    target: Memory | BufferView,
    target_region: tuple[int, int, int, int, int, int, int, int] | None,
) -> Operation: ...

class Shader:
    """A validated SPIR-V module."""

    reflection: dict[str, Any]
    """version, entry, entry_points [{"name", "model" ("GLCompute", "Vertex", ...)}], local_size (3 ints), local_size_spec_ids (3 of int | None), shared_bytes, capabilities [str],
    bindings [{"set", "binding", "kind", "count", "access", "used", "name", "block_name", "readonly", "writeonly", "atomic", "layout", "image": {...} | None}],
    push_constants {"offset", "size", "name", "block_name", "layout"} | None,
    spec_constants [{"id", "name", "type" ("bool" | "int8".. "uint64" | "float16".."float64"), "default" (Python value), "conflict" (only if its declarations differ: their defaults, as text)}].
    layout: {"name", "type_name", "kind" ("struct" | "bool" | "int32" | ... | "pointer"), "rows", "columns", "row_major", "hlsl_matrix", "matrix_stride",
    "array" [int, 0 = runtime], "array_strides" [int], "offset", "size", "members" [layout]}"""
    extra: Any
    """For the Python side to keep what it derives from the reflection."""
    vk_shader_module: int
    def refuses(
        self, groups: tuple[int, int, int], spec: bytes, spec_map: Sequence[tuple[int, int, int]]
    ) -> str:
        """Why so many workgroups cannot run, and what to do, as a clause; "" if they can."""

class Algorithm:
    shader: Shader
    workgroup: tuple[int, int, int]
    local_size: tuple[int, int, int]
    """With this algorithm's specialization constants applied."""
    name: str
    def supersede(self, next: Algorithm) -> None:
        """`next` stands for it in operations that are recorded from now on."""

    def is_init(self) -> bool: ...
    def destroy(self) -> None: ...
    vk_pipeline: int
    vk_pipeline_layout: int
    vk_descriptor_sets: list[int]

class Operation:
    """An immutable native operation; records any number of times into any stream of its Context."""

    name: str

def op_sync_device(memories: Sequence[Memory | BufferView]) -> Operation: ...
def op_sync_local(memories: Sequence[Memory | BufferView]) -> Operation: ...
def op_copy(memories: Sequence[Memory | BufferView]) -> Operation: ...
def op_fill(memories: Sequence[Buffer | BufferView], patterns: Sequence[bytes]) -> Operation:
    """Fills each with its pattern, repeated a whole number of times; any length, any bytes."""

def op_dispatch(
    algorithm: Algorithm,
    groups: tuple[int, int, int],
    push_constants: bytes,
    grid: tuple[int, int, int] | None,
    own_push: bool,
) -> Operation:
    """A dispatch that follows its algorithm (see `Algorithm.supersede`): `grid`, in invocations, and push constants of its own
    are kept then."""

class BoundDispatch(Operation):
    """A dispatch whose groups, push constants, references and algorithm can change; what holds it is built anew at its next
    submission. `references` are the buffers whose addresses the push constants hold."""

    def supersede(self, next: BoundDispatch) -> None:
        """`next` stands for it in recordings that begin from now on."""

    def set(
        self,
        groups: tuple[int, int, int],
        push_constants: bytes,
        references: Sequence[Memory | BufferView],
    ) -> None: ...
    def replace(
        self,
        algorithm: Algorithm,
        groups: tuple[int, int, int],
        push_constants: bytes,
        references: Sequence[Memory | BufferView],
    ) -> None: ...

def op_bound_dispatch(
    algorithm: Algorithm,
    groups: tuple[int, int, int],
    push_constants: bytes,
    references: Sequence[Memory | BufferView],
) -> BoundDispatch: ...
def op_custom(
    context: Context,
    name: str,
    record: Callable[[int], None],
    reads: Sequence[Memory | BufferView] | None,
    writes: Sequence[Memory | BufferView] | None,
) -> Operation:
    """`record(vk_command_buffer)`; it is borrowed: the caller keeps the callable alive while a stream holds the operation.
    Both None: nothing declared, a full barrier stands before and after."""

def frame_uses(
    stream: Stream, inputs: Sequence[Memory | BufferView], streamed: Sequence[Memory]
) -> list[dict[str, Any]]:
    """What one pass over a stream's recording does with each memory, in order of first use: "memory", "read", "written", "carried"
    (read before it is written, and written), "fixed" (its address is held), "uploaded", "downloaded" (by sync operations).
    `inputs` count as written before it; sync operations of `streamed` move nothing. Raises while the stream runs."""

def substituted(
    stream: Stream, replaced: Sequence[tuple[Memory, Memory]], streamed: Sequence[Memory]
) -> list[Operation]:
    """The recording with other memory of equal sizes, without sync operations of `streamed`."""

class Stream:
    """A recorded list of operations and its prebuilt submission."""

    def record(self, operation: Operation) -> None:
        """Appends; after an eval it starts a fresh list. Raises while running, for another Context's or destroyed objects,
        and when the timestamps are used up (the list stays as it was)."""
    def eval(self) -> None:
        """Builds if needed, submits, waits with the GIL released (Ctrl-C raises; the work stays tracked)."""
    def submit(self) -> None:
        """Builds if needed, submits, returns. Raises FailedPreconditionError while running."""
    def wait(self, timeout: float) -> bool:
        """Seconds; negative: no limit. False on time-out (still running). True when done or nothing was running."""
    def clear(self) -> None: ...
    def rerecord(self) -> None: ...
    def cancel_held(self) -> list[str]:
        """Cancels the last submission if it is held. Returns sentences about what did not run."""
    def destroy(self) -> list[str]:
        """Waits for what runs, cancels what is held. Returns sentences about what did not run."""
    def is_recording(self) -> bool: ...
    def is_running(self) -> bool:
        """Submitted and not known to be done."""
    def is_due(self) -> bool:
        """Submitted and not awaited yet, though it may be known to be done."""
    def is_complete(self) -> bool:
        """Whether the device is done with the last submission (polls; true when there was none)."""
    def is_init(self) -> bool: ...
    def operation_names(self) -> list[str]: ...
    def timestamps(self) -> list[int]: ...
    def timed_names(self) -> list[str]:
        """The operations that the timestamps are of: a new recording may have begun since."""
    def barriers(self) -> list[tuple[int, int, int, int, int]]:
        """What the built recording contains: (before, src_stages, src_access, dst_stages, dst_access); head first, tail last."""
    name: str
    queue_index: int
    timestamp_bits: int
    """Valid bits of a timestamp on its queue."""
    vk_command_buffer: int
    vk_semaphore: int
    """The queue's timeline semaphore."""
    last_value: int
    """The timeline value that the last submission signals."""

def compile(
    source: str | bytes,
    name: str | bytes,
    language: str,
    entry: str | bytes,
    defines: Sequence[tuple[str | bytes, str | bytes]],
    include_dirs: Sequence[str | bytes],
    virtual_includes: Mapping[str, str | bytes],
    optimize: str,
    debug_info: bool,
    target: str | bytes,
    spirv_version: str | bytes,
    glsl_version: str | bytes,
    auto_bind: bool,
    hlsl_offsets: bool,
    hlsl_16bit_types: bool,
    register_bases: Mapping[str, int],
    seconds: float = ...,
) -> tuple[
    bytes, bytes, list[tuple[str, int, int, str, str, str]], list[str], list[tuple[str, bytes | None]]
]:
    """The SPIR-V, the same before it was optimized (b"": it was not), the warnings (fields of Diagnostic), the files that were included, and every path where an include was
    looked up, with what was read there or None. `optimize`: "none", "size" or "performance"; "" as a version: the default. Raises EvalTimeoutError after `seconds`."""

def finish_spirv(
    spirv: bytes, name: str | bytes, optimize: str, target: str, warn: bool
) -> tuple[bytes, bytes, list[tuple[str, int, int, str, str, str]]]:
    """What follows the front end of another compiler: the module, optimized; the same before it was (b"": it was not); warnings
    of bindings that two variables share, with `warn`."""

def render_diagnostics(diagnostics: Sequence[tuple[str, int, int, str, str, str]]) -> str:
    """The text of a ShaderCompileError with these diagnostics."""

def compiler_id() -> str:
    """Another one where the compilers that are linked in, or the code around them, are others."""

def check_shader(
    spirv: bytes,
    name: str,
    vulkan: tuple[int, int],
    features: Sequence[str],
    subgroup_operations: Sequence[str],
    limits: Mapping[str, int],
    work_group_size: tuple[int, int, int],
    entry: str,
    spec_constants: bytes,
    spec_map: Sequence[tuple[int, int, int]],
    array_lengths: Sequence[tuple[str, int]] = (),
    extensions: Sequence[str] = (),
    float_controls: Sequence[str] = (),
    denorm_independence: str = "none",
    rounding_independence: str = "none",
) -> list[tuple[str, str, int | str | None, int | str | None, str]]:
    """What the device that the arguments describe would refuse, as (kind, what, needed, has, sentence)."""

def validate_spirv(
    spirv: bytes,
    vulkan_minor: int = 2,
    scalar_block_layout: bool = False,
    uniform_buffer_standard_layout: bool = True,
    relax_block_layout: bool = True,
    workgroup_scalar_block_layout: bool = False,
) -> str: ...
def reflect_spirv(
    spirv: bytes,
    entry: str = "main",
    spec_constants: bytes = b"",
    spec_map: Sequence[tuple[int, int, int]] = (),
) -> dict[str, Any]:
    """`Shader.reflection` of a module, without a device. "main" also means the only compute entry point. Sizes that depend on
    constants are those of the given ones; the constants' defaults are the module's."""

def invocation_use(
    spirv: bytes,
    entry: str = "main",
    spec_constants: bytes = b"",
    spec_map: Sequence[tuple[int, int, int]] = (),
) -> dict[str, Any]:
    """The numbers of its invocation that the code depends on: "global", "group", "local", "group_count" and parts of them as axes
    ("xy"), "local_index" as bool; see InvocationUse in native/core/spirv/invocation.hpp."""

def reach_spirv(
    spirv: bytes,
    entry: str = "main",
    spec_constants: bytes = b"",
    spec_map: Sequence[tuple[int, int, int]] = (),
) -> tuple[
    list[tuple[str, int, int, int]],
    list[tuple[int, int, int, int, int, list[tuple[int, int]], bool]],
    list[tuple[int, int, int, int, int, list[int], list[tuple[int, int]], bool, bool]],
]:
    """Which elements of run-time arrays every invocation uses: expressions (term, value, a, b), (set, binding, offset, stride,
    index, guards, alone) of each array, and (set, binding, offset, stride, length, indices, guards, written, certain) of each
    access; see native/core/spirv/reach.hpp."""

def disassemble_spirv(spirv: bytes, friendly_names: bool = True) -> str: ...
def assemble_spirv(text: str | bytes, vulkan_minor: int = 2, name: str | bytes = "<source>") -> bytes: ...
def decompile_spirv(spirv: bytes, language: str, entry: str) -> str: ...
