"""OpKernel: a kernel with its arguments bound, to be recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native
from .._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .._launches.launches import Launches
from .._memory.memory import Memory
from .._memory.tensor import Tensor
from .._recording.operations import OpBase
from .._shaders.constants import Specialization
from .._shaders.module import ShaderModule
from .._shaders.signature import MISSING, Signature
from .calls import flat

if TYPE_CHECKING:
    from .kernel import Kernel

_EMPTY: Mapping[str, Any] = {}


class Version(NamedTuple):
    """The parts of a kernel that an edit of its file changes."""

    module: ShaderModule
    native: _native.Shader
    special: Specialization
    signature: Signature
    """With these constants."""


class OpKernel(OpBase):
    """A kernel with its arguments bound, to be recorded: made by ``kernel.bind(...)``.

    `set` changes push constants and the grid; every recording that holds it runs the new values at its next
    evaluation.

    Raises ArgumentTypeError if it is called: kernels create it.

    >>> double = mgr.kernel('''
    ... layout(local_size_x = 64) in;
    ... layout(binding = 0) buffer X { float x[]; };
    ... void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= 2.0; }
    ... ''')
    >>> t = mgr.tensor([1, 2, 3])
    >>> mgr.sequence().record(double.bind(t)).eval()
    <kp.Sequence ...>
    >>> t.read().tolist()
    [2.0, 4.0, 6.0]
    """

    __module__ = "kompute_py"  # public; imported when first used

    __slots__ = (
        "__weakref__",
        "_by_default",
        "_extent",
        "_groups",
        "_indirect",
        "_kernel",
        "_members",
        "_memories",
        "_native",
        "_push",
        "_references",
        "_uses",
    )

    _indirect: Tensor | None

    def __init__(
        self,
        kernel: Kernel,
        memories: tuple[Memory, ...],
        extent: tuple[int, int, int] | None,
        groups: tuple[int, int, int],
        members: dict[str, Any],
        uses: tuple[Memory, ...],
        by_default: bool,
        indirect: Tensor | None = None,
    ) -> None:
        if (
            not hasattr(kernel, "_dispatch")
            or not isinstance(members, dict)
            or not isinstance(memories, tuple)
        ):
            raise ArgumentTypeError("An OpKernel is made by a kernel: kernel.bind(...)")
        references = kernel._references(members, uses)
        push = kernel._pack(members)
        native = kernel._dispatch(memories, groups, push, references, indirect)
        self._take(kernel, memories, extent, groups, members, uses, by_default, references, push, native)
        self._indirect = indirect

    @classmethod
    def _of(cls, kernel: Kernel, *parts: Any) -> OpKernel:
        """The operation of parts that were checked: the arguments of `_take`."""
        made = cls.__new__(cls)
        made._take(kernel, *parts)
        return made

    def _take(
        self,
        kernel: Kernel,
        memories: tuple[Memory, ...],
        extent: tuple[int, int, int] | None,
        groups: tuple[int, int, int],
        members: dict[str, Any],
        uses: tuple[Memory, ...],
        by_default: bool,
        references: tuple[Memory, ...],
        push: bytes,
        native: _native.BoundDispatch,
    ) -> None:
        self._kernel = kernel
        self._memories = memories
        # Also of members that an edit of the shader took away: the next may bring them back.
        self._members = members
        self._extent = extent  # invocations; None: workgroups were given
        self._by_default = by_default  # neither was given
        self._groups = groups
        self._uses = uses
        self._references = references
        self._push = push
        self._native: Any = native
        self._indirect = None

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self._kernel

    @property
    def groups(self) -> tuple[int, int, int] | None:
        """Workgroups that run in x, y, z; None if the device reads them from `indirect`."""
        return self._groups if self._indirect is None else None

    @property
    def indirect(self) -> Tensor | None:
        """The tensor with the numbers of workgroups; None if the host gave them."""
        return self._indirect

    @property
    def push_constants(self) -> dict[str, Any]:
        """The values of the push constants by name."""
        push = self._kernel.signature.push
        return {} if push is None else {name: self._members[name] for name in push.names}

    def set(
        self,
        /,
        *,
        grid: Any = None,
        groups: Any = None,
        push: Mapping[str, Any] = _EMPTY,
        **members: Any,
    ) -> OpKernel:
        """Changes push constants, and with `grid` (invocations) or `groups` (workgroups) how many run.
        Returns itself.

        What is not named keeps its value. Takes effect at the next evaluation of each sequence that holds the
        operation. Raises InvalidArgumentError for unknown names or values that do not fit, ArgumentTypeError
        for values of other types; nothing has changed then.
        """
        kernel = self._kernel
        with kernel._lock:
            return self._set(kernel, grid, groups, push, members)

    def _set(
        self, kernel: Kernel, grid: Any, groups: Any, push: Mapping[str, Any], members: dict[str, Any]
    ) -> OpKernel:
        if not isinstance(push, Mapping):
            raise ArgumentTypeError(f"push is {shown(push)}; give push constants by name, as {{'f': 1.0}}")
        known = kernel.signature.push.names if kernel.signature.push is not None else ()
        for name in (*push, *members):
            if name not in known:
                raise kernel.signature._unknown(kernel.name, name, known, "push constant")
        values = {**self._members, **push, **members}
        references = kernel._references(values, self._uses)
        packed = kernel._pack(values)
        extent, count, by_default = self._extent, self._groups, self._by_default
        if grid is not None or groups is not None:
            if self._indirect is not None:
                raise InvalidArgumentError(
                    f"{kernel.name}: the device reads the groups of this operation from "
                    f"{self._indirect._describe()}: write them there, or bind the kernel with groups="
                )
            if isinstance(groups, Tensor):
                raise InvalidArgumentError(
                    f"{kernel.name}: groups is {groups._describe()}, which set() does not take; bind the "
                    "kernel with groups=tensor, so that the device reads them from it"
                )
            extent, count = kernel._extent(grid, groups, ())
            by_default = False
        if self._indirect is None:
            kernel._check_sizes(self._memories, extent, count, packed, by_default and extent is not None)
        self._native.set(count, packed, [each._native for each in references])
        self._references = references
        self._members, self._extent, self._groups, self._push = values, extent, count, packed
        self._by_default = by_default
        return self

    def _is_alive(self) -> bool:
        memories = (*flat(self._memories), *self._references)
        if self._indirect is not None and not self._indirect._is_init():
            return False
        return all(memory is MISSING or memory._is_init() for memory in memories)

    def _prepare_version(
        self, version: Version
    ) -> tuple[
        _native.Algorithm, tuple[int, int, int] | None, tuple[int, int, int], bytes, tuple[Memory, ...]
    ]:
        """The operation with another version of its kernel.

        If the version does not fit, raises an error and changes nothing.
        """
        kernel, push = self._kernel, version.signature.push
        who = f"the recording of {kernel.name}"
        packed = b"" if push is None else push.pack_named(self._members, who)
        extent, groups = self._extent, self._groups
        if extent is not None:
            launches = Launches(version.module, version.signature, version.special)
            by_default = self._by_default and launches.rule.has_source(self._memories)
            if by_default:  # else nothing tells the grid: it is kept
                extent = launches.default(kernel.name, self._memories)
            groups = kernel._groups_of(extent, version.signature.local_size, version.native, version.special)
            launch = launches.launch(extent, groups, packed, by_default)
            launches.check(kernel.name, self._memories, launch)
        algorithm = kernel._algorithm(self._memories, groups, packed, version.native, version.special)
        references = self._uses if push is None else (*push.references(self._members, who), *self._uses)
        return algorithm, extent, groups, packed, references

    def _take_version(
        self,
        algorithm: _native.Algorithm,
        extent: tuple[int, int, int] | None,
        groups: tuple[int, int, int],
        push: bytes,
        references: tuple[Memory, ...],
    ) -> None:
        self._native.replace(algorithm, groups, push, [each._native for each in references])
        self._extent, self._groups, self._push, self._references = extent, groups, push, references

    def __repr__(self) -> str:
        values = "".join(f" {name}={value!r}" for name, value in self.push_constants.items())
        groups = self._groups if self._indirect is None else "indirect"
        return f"<kp.OpKernel {self._kernel.name} groups={groups}{values}>"


class OpWatchedKernel(OpKernel):
    """The operation of a watched kernel: looks at the kernel's files before each submission."""

    __slots__ = ()

    def pre_eval(self) -> None:
        """Takes the files' new version if they have changed."""
        look = self._kernel._look
        if look is not None:
            look()
