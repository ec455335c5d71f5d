"""OpKernel: a kernel with its arguments bound, to be recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.errors import ArgumentTypeError, InvalidArgumentError, shown
from .._launches.code import Launch
from .._memory.tensor import Tensor
from .._recording.operations import OpBase
from .._shaders.signature import MISSING
from .call import flat
from .version import Version

if TYPE_CHECKING:
    from .kernel import Kernel

_EMPTY: Mapping[str, Any] = {}


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

    __slots__ = ("__weakref__", "_bound", "_kernel", "_launch", "_native")

    def __init__(
        self,
        kernel: Kernel,
        bound: tuple[Any, ...],
        launch: Launch,
        native: _native.BoundDispatch | None = None,
    ) -> None:
        """`native` is the operation itself, of parts that were checked."""
        version = getattr(kernel, "_version", None)
        if version is None or not isinstance(launch, Launch):
            raise ArgumentTypeError("An OpKernel is made by a kernel: kernel.bind(...)")
        self._kernel = kernel
        self._bound = bound
        # Also with members that an edit of the shader took away: the next may bring them back.
        self._launch = launch
        self._native: Any = version.operation(bound, launch) if native is None else native

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self._kernel

    @property
    def groups(self) -> tuple[int, int, int] | None:
        """Workgroups that run in x, y, z; None if the device reads them from `indirect`."""
        return self._launch.groups if self._launch.indirect is None else None

    @property
    def indirect(self) -> Tensor | None:
        """The tensor with the numbers of workgroups; None if the host gave them."""
        return self._launch.indirect

    @property
    def push_constants(self) -> dict[str, Any]:
        """The values of the push constants by name."""
        push = self._kernel.signature.push
        return {} if push is None else {name: self._launch.members[name] for name in push.names}

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
        version, launch = kernel._version, self._launch
        values = {**launch.members, **push, **members}
        if grid is None and groups is None:
            changed = version.changed(launch, values)
        elif launch.indirect is not None:
            raise InvalidArgumentError(
                f"{kernel.name}: the device reads the groups of this operation from "
                f"{launch.indirect._describe()}: write them there, or bind the kernel with groups="
            )
        elif isinstance(groups, Tensor):
            raise InvalidArgumentError(
                f"{kernel.name}: groups is {groups._describe()}, which set() does not take; bind the "
                "kernel with indirect=tensor, so that the device reads them from it"
            )
        else:
            changed = version.launch((), grid, groups, None, values, launch.uses)
        version.check(self._bound, changed)
        self._native.set(changed.groups, changed.push, [each._native for each in changed.references])
        self._launch = changed
        return self

    def _is_alive(self) -> bool:
        launch = self._launch
        if launch.indirect is not None and not launch.indirect._is_init():
            return False
        memories = (*flat(self._bound), *launch.references)
        return all(memory is MISSING or memory._is_init() for memory in memories)

    def _prepare_version(self, version: Version) -> tuple[_native.Algorithm, Launch]:
        """The operation with another version of its kernel.

        If the version does not fit, raises an error and changes nothing.
        """
        launch = version.again(self._launch, self._bound, f"the recording of {version.name}")
        return version.operation(self._bound, launch).algorithm, launch

    def _take_version(self, algorithm: _native.Algorithm, launch: Launch) -> None:
        reached = [each._native for each in launch.references]
        self._native.replace(algorithm, launch.groups, launch.push, reached)
        self._launch = launch

    def __repr__(self) -> str:
        values = "".join(f" {name}={value!r}" for name, value in self.push_constants.items())
        groups = "indirect" if self.groups is None else self.groups
        return f"<kp.OpKernel {self._kernel.name} groups={groups}{values}>"


class OpReloadableKernel(OpKernel):
    """The operation of a kernel that `reload` may change: its recordings keep it, so that they follow."""

    __slots__ = ()

    _plain = False


class OpWatchedKernel(OpKernel):
    """The operation of a watched kernel: looks at the kernel's files before each submission."""

    __slots__ = ()

    def pre_eval(self) -> None:
        """Takes the files' new version if they have changed."""
        look = self._kernel._look
        if look is not None:
            look()
