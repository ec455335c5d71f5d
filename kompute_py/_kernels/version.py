"""Version: a kernel's shader with its constants, which makes launches and builds what runs them.

An edit of the shader's file changes this and nothing else of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .. import _native
from .._base.arrays import counts_of
from .._base.errors import ArgumentTypeError, InvalidArgumentError
from .._launches.code import Launch
from .._launches.grid import Spelling, as_keywords
from .._launches.launches import Launches
from .._memory.memory import Memory
from .._memory.sampler import Sampler
from .._memory.tensor import Tensor
from .._recording.binding import check_owner, texel_format
from .._recording.preload import report_built
from .._shaders.constants import Specialization
from .._shaders.module import ShaderModule, naming
from .._shaders.signature import MISSING, Signature

if TYPE_CHECKING:
    from .._base.arrays import Counts
    from .._device.device import Device

_EMPTY: Mapping[str, Any] = {}


class Version:
    """A shader with these constants, for one Manager."""

    __slots__ = ("launches", "manager", "module", "name", "native", "signature", "special", "zero")

    def __init__(
        self,
        manager: Device,
        module: ShaderModule,
        native: _native.Shader,
        special: Specialization,
        zero: bool,
        name: str,
    ) -> None:
        self.manager = manager
        self.module = module
        self.native = native
        self.special = special
        self.zero = zero
        """Whether arrays may end before the invocations of a grid that is given: ``bounds="zero"``."""
        self.name = name
        self.signature: Signature = module._specialized(special)
        self.launches = Launches(module, self.signature, special)

    def with_constants(self, special: Specialization) -> Version:
        """The shader with other constants."""
        return Version(self.manager, self.module, self.native, special, self.zero, self.name)

    # -- launches --------------------------------------------------------------------------------------------

    def launch(
        self,
        bound: tuple[Any, ...],
        grid: Any = None,
        groups: Any = None,
        indirect: Tensor | None = None,
        members: Mapping[str, Any] = _EMPTY,
        uses: tuple[Memory, ...] = (),
        spell: Spelling = as_keywords,
    ) -> Launch:
        """The launch over this memory; `bound` is looked at for the default grid alone.

        Raises InvalidArgumentError for counts that are negative or beyond the device's limits, a default grid
        that the shapes leave open (`spell` says how the error writes the choices), and push constants that do
        not fit.
        """
        if grid is not None and groups is not None:
            raise InvalidArgumentError(
                f"{self.name}: give grid (invocations) or groups (workgroups), not both"
            )
        extent = None
        if indirect is not None:
            count = (1, 1, 1)
        elif groups is not None:
            count = counts_of(groups, f"{self.name}: groups", "workgroups")
            self.manager._check_groups(count, f"{self.name}: groups {groups!r}", self.native, self.special)
        else:
            if grid is None:
                extent = self.launches.default(self.name, bound, spell)
            else:
                extent = counts_of(grid, f"{self.name}: grid", "invocations")
            count = self._groups_of(extent)
        by_default = grid is None and groups is None and indirect is None
        return self._launch(extent, count, by_default, indirect, members, uses, self.name)

    def changed(self, launch: Launch, members: Mapping[str, Any]) -> Launch:
        """The launch with other push constants."""
        return self._launch(
            launch.extent,
            launch.groups,
            launch.by_default,
            launch.indirect,
            members,
            launch.uses,
            self.name,
        )

    def again(self, launch: Launch, bound: tuple[Any, ...], who: str) -> Launch:
        """The launch of another version as this one runs it: with its local size, and over its default grid
        if the launch was by default.

        Raises InvalidArgumentError, beginning with `who`, if it does not fit.
        """
        extent, groups = launch.extent, launch.groups
        by_default = launch.by_default and self.launches.rule.has_source(bound)
        if by_default:  # else nothing tells the grid: it is kept
            extent = self.launches.default(self.name, bound)
        if extent is not None:
            groups = self._groups_of(extent)
        made = self._launch(extent, groups, by_default, launch.indirect, launch.members, launch.uses, who)
        self.check(bound, made)
        return made._replace(by_default=launch.by_default)  # the next version may tell the grid

    def _launch(
        self,
        extent: Counts | None,
        groups: Counts,
        by_default: bool,
        indirect: Tensor | None,
        members: Mapping[str, Any],
        uses: tuple[Memory, ...],
        who: str,
    ) -> Launch:
        push = self.signature.push
        references = uses
        if push is not None and push.has_references:
            references = (*push.references(members, who), *uses)
        if references:
            _check_references(self.name, self.manager, references)
        packed = b"" if push is None else push.pack_named(members, who)
        return self.launches.launch(extent, groups, packed, by_default, indirect, members, uses, references)

    def _groups_of(self, extent: Counts) -> Counts:
        local_size = self.signature.local_size
        x, y, z = extent
        i, j, k = local_size
        if not min(local_size):
            raise InvalidArgumentError(
                f"{self.name}: its constants give it the local size {local_size}; each axis needs at least "
                "1: specialize it"
            )
        count = (-(-x // i), -(-y // j), -(-z // k))
        self.manager._check_groups(
            count, f"{self.name}: grid {extent} with local size {local_size}", self.native, self.special
        )
        return count

    def check(
        self,
        bound: tuple[Any, ...],
        launch: Launch,
        made: tuple[int, ...] = (),
        spell: Spelling = as_keywords,
    ) -> None:
        """Raises InvalidArgumentError if the launch may be wrong: see `Launches.check`. `made` are outputs
        that were left out. The device alone knows how many groups an indirect launch has.
        """
        if launch.indirect is not None:
            return
        zero = self.zero and not launch.by_default
        self.launches.check(self.name, bound, launch, made, spell, sizes=not zero)
        if not zero:
            return
        # The device must read zeros beyond the end of a shorter array.
        for _, uses, counts in self.launches.sizes.differing(bound):
            for use, count in zip(uses, counts, strict=True):
                parameter = self.signature.parameters[use.position]
                nbytes = bound[use.position].nbytes
                if count < max(counts) and (parameter.kind != "storage buffer" or nbytes % 4):
                    raise InvalidArgumentError(
                        f'{self.name}: {parameter.name!r} ends before other arrays, and bounds="zero" is for '
                        f"storage buffers with whole words of 4 bytes; it is a {parameter.kind} of "
                        f"{nbytes} bytes"
                    )

    # -- what runs -------------------------------------------------------------------------------------------

    def arguments(self, bound: tuple[Any, ...]) -> list[Any]:
        """The native arguments of an algorithm: (set, binding, element, memory, sampler or the format of a
        texel buffer that has none).
        """
        arguments = []
        for parameter, given in zip(self.signature.parameters, bound, strict=True):
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

    def build(self, arguments: list[Any], launch: Launch) -> tuple[_native.Algorithm, float | None]:
        """An algorithm, and the seconds of building its pipeline if that was built."""
        special = self.special
        self.signature.spec.refuse_defaults(special, self.name, "kernel.specialize({{{!r}: {}}})")
        manager = self.manager._native
        known = manager.knows_pipeline(self.native, special.data, special.entries)
        began = perf_counter()
        with naming(self.name):
            algorithm = manager.algorithm(
                self.native, arguments, launch.groups, special.data, special.entries, launch.push
            )
        algorithm.name = self.name
        # Of arrays of run-time length, it is not known whether their pipeline is.
        new = not known and all(p.descriptors for p in self.signature.parameters)
        return algorithm, perf_counter() - began if new else None

    def dispatch(self, bound: tuple[Any, ...], launch: Launch) -> tuple[_native.BoundDispatch, float | None]:
        """The native operation of a launch over this memory, and the seconds of building its pipeline if that
        was built.
        """
        algorithm, built = self.build(self.arguments(bound), launch)
        reached = [each._native for each in launch.references]
        read = None if launch.indirect is None else launch.indirect._native
        return _native.op_bound_dispatch(algorithm, launch.groups, launch.push, reached, read), built

    def operation(self, bound: tuple[Any, ...], launch: Launch) -> _native.BoundDispatch:
        """The native operation alone. Logs if a pipeline was built for it."""
        made, built = self.dispatch(bound, launch)
        if built is not None:
            report_built(self.name, built)
        return made


def _check_references(kernel: str, manager: Device, references: Iterable[Any]) -> None:
    """Raises what is wrong with tensors that a shader reaches by their addresses."""
    for memory in references:
        if not isinstance(memory, Memory) or memory._is_image:
            raise ArgumentTypeError(
                f"{kernel}: uses= lists the Tensors whose addresses the shader finds in memory, not "
                f"{type(memory).__name__}"
            )
        check_owner(memory, manager, f"reached by {kernel}")
