"""Operations that a Sequence records.

The built-in operations hold an immutable native operation, so that recording is one native call. A subclass
of OpBase with its own `record` method writes Vulkan commands itself, through the raw handles that every
object exposes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _native
from .._base.arrays import FLOAT32, as_index, counts_of
from .._base.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    kind_of,
    refuse_copy,
)
from .._device.owner import Owned
from .._memory.image import Image, SampledImage
from .._memory.memory import Memory, fill_of, memory_list
from .._memory.peer import copy_of
from .._memory.sampler import Bindable, Sampler
from .._memory.tensor import Tensor
from .._shaders.constants import is_given
from .._shaders.own_shaders import library_shader
from .algorithm import BOUND, Algorithm, pack_push
from .binding import indirect_groups

if TYPE_CHECKING:
    from .._base.annotations import ShaderSource
    from .._device.device import Device

_NOTHING: Any = ()
_BEGIN = 0
_ONE_GROUP = (1, 1, 1)
_sync_device, _sync_local = _native.sync_device_of, _native.sync_local_of


class CommandRecorder(Owned):
    """The raw handles for a custom operation, as integers that the PyPI package `vulkan` accepts.

    Valid only during the `record` call that receives it.

    >>> class Look(kp.OpBase):
    ...     def record(self, cmd):
    ...         print(cmd.manager is mgr, cmd.vk_command_buffer != 0)
    >>> mgr.sequence().record(Look()).eval()
    True True
    <kp.Sequence ...>
    """

    __slots__ = ("_manager", "_vk_command_buffer")

    def __init__(self, manager: Device, vk_command_buffer: int) -> None:
        self._manager = manager
        self._vk_command_buffer = vk_command_buffer

    @property
    def vk_command_buffer(self) -> int:
        """The VkCommandBuffer in the recording state."""
        return self._vk_command_buffer

    @property
    def vk_device(self) -> int:
        """The VkDevice."""
        return self._manager.vk_device


class OpBase:
    """Base of all operations, and the extension point: a `record` method of a subclass records any Vulkan
    commands.

    ::

        class Update(kp.OpBase):
            def __init__(self, tensor, data):
                self.tensor, self.data = tensor, data
                self.reads, self.writes = [], [tensor]

            def record(self, cmd):
                ...  # commands on cmd.vk_command_buffer, self.tensor.vk_buffer, self.tensor.vk_offset

    `reads` and `writes` (attributes or properties: lists of Tensor and Image) declare the memory that the
    commands use, and the needed barriers are inserted. If both are None, a full barrier is inserted before
    and after the commands, the work counts as a user of every object of the Manager, and other threads must
    not write `host` tensors while it runs. `pre_eval` runs on the host before each submission, `post_eval`
    after the work is done. If one of the methods raises an exception, the sequence stays usable.

    >>> class Log(kp.OpSyncLocal):
    ...     def post_eval(self):
    ...         print("done")
    >>> mgr.sequence().record(Log([mgr.zeros(3)])).eval()
    done
    <kp.Sequence ...>
    """

    __slots__ = ()

    reads: Iterable[Memory] | None = None
    """The memory that the commands read. If `writes` is None too, None means undeclared, else nothing."""
    writes: Iterable[Memory] | None = None
    """The memory that the commands write. If `reads` is None too, None means undeclared, else nothing."""

    _native: Any = None
    # Each is computed once for each class, or given by it.
    _custom: ClassVar[bool] = False
    # True if it has Python code that runs with an evaluation. True for OpBase itself, so that a plain
    # OpBase() reaches its error.
    _hooked: ClassVar[bool] = True
    # True if all that a recording needs is `_native`. False for operations with Python code, for those
    # recorded part by part, and for those that a recording must keep alive.
    _plain: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._custom = cls.record is not OpBase.record
        cls._hooked = (
            cls._custom or cls.pre_eval is not OpBase.pre_eval or cls.post_eval is not OpBase.post_eval
        )
        cls._plain = cls.__dict__.get("_plain", not cls._hooked)

    def record(self, cmd: CommandRecorder) -> None:
        """Records the commands into ``cmd.vk_command_buffer``.

        Called when the sequence builds its command buffer.

        An operation that does not define it raises FailedPreconditionError.
        """
        raise FailedPreconditionError(f"{type(self).__name__} records nothing: define record(self, cmd)")

    def pre_eval(self) -> None:
        """Called before each submission, in the order of recording. An exception cancels the submission."""

    def post_eval(self) -> None:
        """Called after the work of each submission is done, in the order of recording."""

    def _bind(self, manager: Device) -> tuple[_native.Operation, Any]:
        """The native operation for a sequence of `manager`, and the callable that it borrows."""
        if not self._custom:
            native = getattr(self, "_native", None)  # the slot may be unset
            if native is None:
                raise FailedPreconditionError(
                    f"{type(self).__name__} records nothing: define record(self, cmd), or call "
                    "super().__init__(...) in the __init__ of an operation that derives from a built-in one"
                )
            return native, None

        def record(vk_command_buffer: int) -> None:
            self.record(CommandRecorder(manager, vk_command_buffer))

        name = type(self).__name__
        reads, writes = self.reads, self.writes
        declared = reads is not None or writes is not None
        operation = _native.op_custom(
            manager._native,
            name,
            record,
            self._declared("reads", manager) if declared else None,
            self._declared("writes", manager) if declared else None,
        )
        return operation, record

    def _declared(self, which: str, manager: Device) -> list[Any]:
        """The native objects of `reads` or `writes`."""
        given = getattr(self, which)
        if given is None:
            return []
        found = memory_list(given, f"{type(self).__name__}.{which}", manager=manager, empty=True)
        if isinstance(given, Iterator):
            # It is empty from now on, and the operation may be recorded again: the list takes its place.
            for owner in type(self).__mro__:
                if owner.__dict__.get(which) is given:
                    setattr(owner, which, found)
                    break
            else:
                with suppress(AttributeError):  # a property, which makes a new one each time
                    setattr(self, which, found)
        return [memory._native for memory in found]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuses copying and pickling of built-in operations with an ArgumentTypeError (a TypeError)."""
        if self._custom:
            return super().__reduce_ex__(protocol)
        refuse_copy(self, "record the same one as often as you like, or make a new one")

    def __repr__(self) -> str:
        return f"<kp.{type(self).__name__}>"


def _natives(memories: Iterable[Memory], call: str) -> list[Any]:
    return [memory._native for memory in memory_list(memories, call)]


class OpSyncDevice(OpBase):
    """Uploads the host copies of tensors and images to the device, in GPU order.

    Each evaluation uploads the current contents of the host copies, over whatever the device wrote. It gives
    a KomputeWarning, once, if the host has written the device's contents with `write`, ``t[key] =`` or
    `map`, which do not change the host copy. `host`, `deviceAndHost` and `storage` memory needs no copy.

    Raises ArgumentTypeError if `tensors` is not a list of Tensor or Image,
    InvalidArgumentError if it is empty.

    >>> t = mgr.zeros(3)
    >>> t.data()[:] = 1
    >>> mgr.sequence().record(kp.OpSyncDevice([t])).eval()
    <kp.Sequence ...>
    >>> t.read().tolist()
    [1.0, 1.0, 1.0]
    """

    __slots__ = ("_native",)

    def __init__(self, tensors: Iterable[Memory]) -> None:
        self._native = _sync_device(tensors) or _native.op_sync_device(_natives(tensors, "OpSyncDevice"))


class OpSyncLocal(OpBase):
    """Downloads tensors and images from the device to their host copies, in GPU order.

    `data()` shows the result as soon as the host has learned, by any call, that the work is done. For a view,
    only its bytes move: the host may write the other bytes meanwhile. `host`, `deviceAndHost` and `storage`
    memory needs no copy. Raises ArgumentTypeError if `tensors` is not a list of Tensor or Image,
    InvalidArgumentError if it is empty.

    >>> t = mgr.zeros(3)
    >>> t.write([1, 2, 3])
    >>> mgr.sequence().record(kp.OpSyncLocal([t])).eval()
    <kp.Sequence ...>
    >>> t.data().tolist()
    [1.0, 2.0, 3.0]
    """

    __slots__ = ("_native",)

    def __init__(self, tensors: Iterable[Memory]) -> None:
        self._native = _sync_local(tensors) or _native.op_sync_local(_natives(tensors, "OpSyncLocal"))


class OpCopy(OpBase):
    """Copies the device's contents of the first tensor or image to all others; host copies do not change.

    All must have the same number of elements and the same dtype; their memory types may differ. They may
    belong to different Managers, on one device or several; the sequence must then belong to one of these
    Managers. The evaluation of such a sequence stops at the copy: it waits for earlier work as far as the
    copy needs it, moves the contents through host memory, and then submits the later work. Raises
    InvalidArgumentError for fewer than two objects or sizes that differ; ArgumentTypeError for dtypes that
    differ.

    >>> a, b = mgr.tensor([1, 2]), mgr.zeros(2)
    >>> mgr.sequence().record(kp.OpCopy([a, b])).eval()
    <kp.Sequence ...>
    >>> b.read().tolist()
    [1.0, 2.0]
    """

    __slots__ = ("_native",)

    def __init__(self, tensors: Iterable[Memory]) -> None:
        self._native = copy_of(memory_list(tensors, "OpCopy", across=True))


class OpFill(OpBase):
    """Fills tensors, parts of them, or images with one value on the device; host copies do not change.

    `value` is a scalar, which is converted to each tensor's dtype (a tuple for a structured dtype), or a
    pattern of 1, 2, 4 or 8 bytes, which is repeated for any dtype. Floats are rounded to the dtype; integer
    tensors accept whole floats (2.0). For images, a number is that of all channels; a list, tuple or array
    has one for each, or three for images of four, whose alpha is opaque then. Raises ArgumentTypeError for
    arrays and lists for tensors, and for a value that does not convert; InvalidArgumentError for a value
    beyond the dtype's range (1e300 in float32), for another number of channels, for a pattern of another
    length, for a pattern that does not fit a tensor or a texel a whole number of times, and for parts that
    overlap.

    >>> t = mgr.zeros(4)
    >>> mgr.sequence().record(kp.OpFill([t[1:3]], 7)).eval()
    <kp.Sequence ...>
    >>> t.read().tolist()
    [0.0, 7.0, 7.0, 0.0]
    """

    __slots__ = ("_native",)

    def __init__(self, tensors: Iterable[Memory], value: Any = 0) -> None:
        self._native = fill_of(tensors, value)


class OpCopyRange(OpBase):
    """Copies `count` elements from one place of a tensor's device memory to another tensor, or within one
    tensor.

    ``OpCopyRange(a, b, source_offset=4, target_offset=0, count=8)`` is ``OpCopy([a[4:12], b[0:8]])`` for flat
    tensors: offsets and `count` are in elements over all dimensions. Without `count`, everything from the
    offset to the end of `source` is copied. Raises OutOfRangeError if the range exceeds either tensor,
    InvalidArgumentError if the two places overlap, ArgumentTypeError if the dtypes differ or an argument is
    not a tensor.

    >>> a, b = mgr.tensor([1, 2, 3, 4]), mgr.zeros(4)
    >>> mgr.sequence().record(kp.OpCopyRange(a, b, source_offset=2, count=2)).eval()
    <kp.Sequence ...>
    >>> b.read().tolist()
    [3.0, 4.0, 0.0, 0.0]
    """

    __slots__ = ("_native",)

    def __init__(
        self,
        source: Tensor,
        target: Tensor,
        *,
        source_offset: int = 0,
        target_offset: int = 0,
        count: int | None = None,
    ) -> None:
        for tensor in (source, target):
            if not isinstance(tensor, Tensor):
                raise ArgumentTypeError(f"OpCopyRange copies between tensors, not {type(tensor).__name__}")
        first = as_index(source_offset, "source_offset")
        number = source._count - first if count is None else as_index(count, "count")
        parts = (
            _elements(source, first, number, "source"),
            _elements(target, as_index(target_offset, "target_offset"), number, "target"),
        )
        self._native = OpCopy(parts)._native


def _elements(tensor: Tensor, first: int, count: int, what: str) -> Tensor:
    if count < 0:
        raise InvalidArgumentError(f"OpCopyRange: count is {count}; copy 0 elements or more")
    if first < 0 or first + count > tensor._count:
        raise OutOfRangeError(
            f"OpCopyRange: the {what}, {tensor._describe()}, has elements 0 to {tensor._count}; "
            f"the requested range is {first} to {first + count}"
        )
    return tensor._part(first * tensor._dtype.itemsize, (count,), tensor._dtype)


class OpCopyRegion(OpBase):
    """Copies a box of texels between two images, or between an image and a tensor with its texels in dense
    rows.

    ``OpCopyRegion(image, tensor, source_region=np.s_[10:20, 5:9])``. Regions are indices of ints and slices
    over all axes except the channels; without a region, the whole image is copied. For a part of a tensor,
    give a view: ``tensor[a:b]``. Texels are copied bit by bit.

    Raises OutOfRangeError for a region beyond its image, InvalidArgumentError if the sizes differ, a region
    would be copied onto itself or a tensor begins at an offset that texels cannot have, ArgumentTypeError if
    an argument is not an image or a tensor.

    >>> image, t = mgr.image(np.arange(12).reshape(3, 4)), mgr.zeros(2)
    >>> mgr.sequence().record(kp.OpCopyRegion(image, t, source_region=np.s_[1, 2:4])).eval()
    <kp.Sequence ...>
    >>> t.read().tolist()
    [6.0, 7.0]
    """

    __slots__ = ("_native",)

    def __init__(
        self,
        source: Image | Tensor,
        target: Image | Tensor,
        *,
        source_region: Any = None,
        target_region: Any = None,
    ) -> None:
        sides: list[Any] = []
        for name, memory, region in (("source", source, source_region), ("target", target, target_region)):
            if not isinstance(memory, Memory):
                raise ArgumentTypeError(
                    f"OpCopyRegion: {name} is {kind_of(memory)}; give an Image or a Tensor"
                )
            if region is None:
                sides.append(None)
            elif isinstance(memory, Image):
                sides.append(memory._box(region)[0])
            else:
                raise ArgumentTypeError(
                    f"OpCopyRegion: {name} is a tensor; give a view of it instead of {name}_region"
                )
        self._native = _native.op_copy_region(source._native, sides[0], target._native, sides[1])


class OpAlgoDispatch(OpBase):
    """Runs an algorithm once.

    `push_consts` (a list of numbers, an array, or bytes; see Algorithm) replace the algorithm's own push
    constants for this dispatch only. `grid` is the number of invocations in x, y, z: ceil(grid / local_size)
    groups run on each axis, instead of the algorithm's `workgroup`; the shader must check its bounds. If one
    axis has more groups than the device allows, they run in layers, as one dispatch.

    `indirect` is a uint32 Tensor with the numbers of workgroups in x, y and z, from the element `offset` on.
    The device reads them when the dispatch begins, after earlier work has written them. No number may be
    above the device's ``limits["maxComputeWorkGroupCount"]``, which is 65535 or more: the host cannot check
    it, and Vulkan leaves open what happens then. With a 0 among them, no group runs.

    Raises InvalidArgumentError for constants that do not fit the shader's block, a grid beyond the device's
    limits, `grid` together with `indirect`, and an `indirect` of fewer than three elements;
    FailedPreconditionError for an algorithm without a shader; OutOfRangeError for an `offset` beyond the
    tensor; ArgumentTypeError if `algorithm` is not an Algorithm or `indirect` not a uint32 Tensor.

    >>> spirv = kp.compile('''
    ... layout(local_size_x = 1) in;
    ... layout(binding = 0) buffer X { float x[]; };
    ... layout(push_constant) uniform P { float value; };
    ... void main() { x[gl_GlobalInvocationID.x] = value; }
    ... ''')
    >>> t = mgr.zeros(3)
    >>> algorithm = mgr.algorithm([t], spirv, (3, 1, 1), push_consts=[1.0])
    >>> mgr.sequence().record(kp.OpAlgoDispatch(algorithm, [5.0], grid=(2,))).eval()
    <kp.Sequence ...>
    >>> t.read().tolist()
    [5.0, 5.0, 0.0]
    >>> groups = mgr.tensor_t(np.array([3, 1, 1], np.uint32))
    >>> mgr.sequence().record(kp.OpAlgoDispatch(algorithm, [7.0], indirect=groups)).eval()
    <kp.Sequence ...>
    >>> t.read().tolist()
    [7.0, 7.0, 7.0]
    """

    __slots__ = ("_native",)

    def __init__(
        self,
        algorithm: Algorithm,
        push_consts: Any = _NOTHING,
        *,
        grid: Any = None,
        indirect: Tensor | None = None,
        offset: int = _BEGIN,
    ) -> None:
        if push_consts is _NOTHING and grid is None and indirect is None and offset is _BEGIN:
            try:
                self._native = algorithm._dispatch
                return
            except AttributeError:
                pass
        if not isinstance(algorithm, Algorithm):
            raise ArgumentTypeError(f"OpAlgoDispatch takes an Algorithm, not {type(algorithm).__name__}")
        native = algorithm._built("be dispatched")
        given = is_given(push_consts)
        push = pack_push(algorithm._signed(), push_consts) if given else algorithm._push
        extent = memory = None
        if indirect is not None:
            if grid is not None:
                raise InvalidArgumentError(
                    "OpAlgoDispatch: give grid (the host knows the invocations) or indirect (the device "
                    "knows the workgroups), not both"
                )
            memory = indirect_groups(indirect, offset, algorithm._manager, "OpAlgoDispatch")._native
            groups = _ONE_GROUP
        elif offset is not _BEGIN and as_index(offset, "offset"):
            raise InvalidArgumentError("OpAlgoDispatch: offset is a place in indirect, which is not given")
        elif grid is None:
            groups = algorithm._groups
        else:
            extent = x, y, z = counts_of(grid, "grid", "invocations")
            i, j, k = native.local_size
            groups = -(-x // i), -(-y // j), -(-z // k)
            algorithm._manager._check_groups(
                groups, f"grid {grid!r} with local size {(i, j, k)}", native.shader, algorithm._special
            )
        self._native = _native.op_dispatch(native, groups, push, extent, given, memory)


class OpAlgoBase(OpBase):
    """Base of operations with their own shader: creates an algorithm from it and runs that.

    ::

        class Scale(kp.OpAlgoBase):
            def __init__(self, tensor, factor):
                super().__init__([tensor], SCALE, push_consts=[factor])

    The arguments are those of `kp.Algorithm`; `algorithm` is the created Algorithm, on the Manager of the
    first tensor. Raises the errors of `kp.Algorithm`, and InvalidArgumentError for an empty list.

    >>> spirv = kp.compile('''
    ... layout(local_size_x = 1) in;
    ... layout(binding = 0) buffer X { float x[]; };
    ... void main() { x[gl_GlobalInvocationID.x] += 1.0; }
    ... ''')
    >>> t = mgr.zeros(3)
    >>> mgr.sequence().record(kp.OpAlgoBase([t], spirv, (3, 1, 1))).eval()
    <kp.Sequence ...>
    >>> t.read().tolist()
    [1.0, 1.0, 1.0]
    """

    __slots__ = {
        "_native": "",
        "algorithm": "The Algorithm that the operation runs.",
    }

    def __init__(
        self,
        tensors: Iterable[Memory | SampledImage | Sampler],
        spirv: ShaderSource,
        workgroup: Any = (0, 0, 0),
        spec_consts: Any = (),
        push_consts: Any = (),
    ) -> None:
        tensors = memory_list(tensors, type(self).__name__, also=(Bindable,), takes=BOUND)
        if spirv is None:
            raise ArgumentTypeError("spirv is None; give SPIR-V: kp.compile(source)")
        self.algorithm: Algorithm = Algorithm(
            tensors[0]._manager, tensors, spirv, workgroup, spec_consts, push_consts
        )
        self._native = self.algorithm._dispatch


class OpMult(OpBase):
    """Multiplies two float32 tensors element by element into a third: ``OpMult([a, b, product], algorithm)``.

    As in Kompute, `algorithm` is rebuilt with the multiplication shader and these tensors; if it is None, a
    new Algorithm is created. The shader is built in, so no compiler is needed. Raises InvalidArgumentError
    unless there are three tensors of one size, ArgumentTypeError unless they are float32.

    >>> a, b, product = mgr.tensor([1, 2]), mgr.tensor([3, 4]), mgr.zeros(2)
    >>> mgr.sequence().record(kp.OpMult([a, b, product])).eval()
    <kp.Sequence ...>
    >>> product.read().tolist()
    [3.0, 8.0]
    """

    __slots__ = {
        "_native": "",
        "algorithm": "The Algorithm that the operation runs.",
    }

    _LOCAL_SIZE = 256

    def __init__(self, tensors: Iterable[Tensor], algorithm: Algorithm | None = None) -> None:
        given = memory_list(tensors, "OpMult")
        if len(given) != 3:
            raise InvalidArgumentError(f"OpMult takes three tensors (left, right, product), not {len(given)}")
        first = given[0]
        for tensor in given:
            if not isinstance(tensor, Tensor) or tensor._dtype != FLOAT32:
                raise ArgumentTypeError(f"OpMult multiplies float32 tensors; {tensor._describe()} is not one")
            if tensor._count != first._count:
                raise InvalidArgumentError(
                    "OpMult needs tensors of one size; these have "
                    f"{', '.join(str(t._count) for t in given)} elements"
                )
        if algorithm is None:
            algorithm = Algorithm(first._manager)
        elif not isinstance(algorithm, Algorithm):
            raise ArgumentTypeError(f"OpMult takes an Algorithm, not {type(algorithm).__name__}")
        groups = -(-first._count // self._LOCAL_SIZE)
        across = max(1, min(groups, algorithm._manager._max_groups[0]))
        algorithm._build(given, library_shader("multiplication"), (across, -(-groups // across), 1))
        self.algorithm: Algorithm = algorithm
        self._native = algorithm._dispatch


# Names of Kompute 0.8 and 0.9.
OpTensorSyncDevice = OpSyncDevice
OpTensorSyncLocal = OpSyncLocal
OpTensorCopy = OpCopy
