"""The launches of one shader: what a kernel asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .. import _native
from .._shaders.signature import MISSING
from .beyond import Beyond, fills_up
from .code import Code, Launch, axes_of
from .grid import GridRule, Spelling, as_keywords, judge
from .outputs import Outputs
from .sizes import SizeRules

if TYPE_CHECKING:
    from .._base.arrays import Counts
    from .._memory.memory import Memory
    from .._memory.tensor import Tensor
    from .._shaders.constants import Specialization
    from .._shaders.module import ShaderModule
    from .._shaders.signature import Signature

_MOST_PASSED = 256


class Launches:
    """The rules for a module with these constants and this signature, read at their first use."""

    def __init__(self, module: ShaderModule, signature: Signature, special: Specialization) -> None:
        self._module, self._signature, self._special = module, signature, special
        push = signature.push
        self._start = signature.local_size, 0 if push is None else push.start
        self._passed: set[tuple[Any, ...]] = set()
        """Sizes and values of calls that passed, because calls repeat."""

    @cached_property
    def code(self) -> Code:
        """What the code tells."""
        return Code(self._signature, self._module, self._special)

    @cached_property
    def rule(self) -> GridRule:
        """The rule for the default grid."""
        use = _native.invocation_use(
            self.code.spirv, self._module.entry, self._special.data, self._special.entries
        )
        return GridRule(self._signature, use, self.code)

    @cached_property
    def sizes(self) -> SizeRules:
        """The arrays that belong together."""
        return SizeRules(self.code)

    @cached_property
    def beyond(self) -> Beyond:
        """The check of invocations beyond the grid."""
        return Beyond(self.code, self.rule.axes)

    @cached_property
    def outputs(self) -> Outputs:
        """The rule for outputs that are left out."""
        return Outputs(self.code, self.rule.axes)

    def read_ahead(self) -> None:
        """Reads all that a first call asks."""
        _ = self.beyond, self.sizes

    def launch(
        self,
        extent: Counts | None,
        groups: Counts,
        push: bytes,
        by_default: bool,
        indirect: Tensor | None = None,
        members: Mapping[str, Any] = MappingProxyType({}),
        uses: tuple[Memory, ...] = (),
        references: tuple[Memory, ...] = (),
    ) -> Launch:
        """A launch of the shader; the arguments are the fields of `Launch`."""
        local_size, start = self._start
        fields = extent, groups, local_size, push, start, by_default, indirect, members, uses, references
        return tuple.__new__(Launch, fields)  # in each `bind`, so without a function of a named tuple

    def default(self, kernel: str, bound: tuple[Any, ...], spell: Spelling = as_keywords) -> Counts:
        """The default invocations. Raises InvalidArgumentError if the shape leaves them open."""
        return self.rule.grid(kernel, bound, spell)

    def check(
        self,
        kernel: str,
        bound: tuple[Any, ...],
        launch: Launch,
        made: Sequence[int] = (),
        spell: Spelling = as_keywords,
        sizes: bool = True,
    ) -> None:
        """Raises InvalidArgumentError if a default grid may be wrong, if invocations beyond the grid write
        elements of others, or if an array ends before the invocations do that use it. `made` are outputs that
        were left out, with a check of their own. Without `sizes`, arrays may end early.
        """
        judged = launch.by_default and not self.grows(bound)
        fills = fills_up(launch.extent, launch.groups, launch.local_size) and bool(self.beyond.suspects)
        if judged or fills:
            push, start = launch.push, launch.push_offset
            values = [push[at - start : at - start + 4] for at in self.code.push if at >= start]
            key = (launch.extent, launch.groups, launch.by_default, *values, *map(_size, bound))
            if key not in self._passed:
                if judged:
                    judge(kernel, self.code, self.rule, bound, launch, spell)
                if fills:
                    self.beyond.check(kernel, bound, launch, made)
                if len(self._passed) >= _MOST_PASSED:
                    self._passed.clear()
                if not made:
                    self._passed.add(key)
        if sizes and self.sizes.differing(bound):
            self.sizes.check(kernel, bound, launch)

    def grows(self, bound: tuple[Any, ...]) -> bool:
        """Whether the default grid is right whatever the sizes and push constants: the code writes its array
        at indices that are never less than the invocation's number.
        """
        source = self.rule.source(bound)
        if len(self.rule.axes) != 1 or source is None:
            return not self.rule.axes
        return all(
            len(a.indices) == 1 and self.code.grows(a.indices[0]) if a.position == source else not a.guards
            for a in self.code.accesses
            if a.written
        )

    def asks_push(self, bound: tuple[Any, ...], launch: Launch) -> bool:
        """Whether other push constants could change what `check` finds."""
        if not self.code.push:
            return False
        judged = launch.by_default and not self.grows(bound)
        fills = fills_up(launch.extent, launch.groups, launch.local_size) and bool(self.beyond.suspects)
        return judged or fills or bool(self.sizes.differing(bound))

    def line(self, bound: tuple[Any, ...], by_default: bool) -> tuple[int, int, int] | None:
        """`GridRule.line` if the rules pass for any number of elements, while arrays that belong together are
        equal; (-1, 1, 0) for a grid that is given. None if they do not.
        """
        if by_default:
            return self.rule.line(bound) if self.grows(bound) and not self.beyond.suspects else None
        return (-1, 1, 0)


def _size(memory: Any) -> Any:
    if type(memory) is tuple:
        return tuple(map(_size, memory))
    if memory is MISSING or not hasattr(memory, "nbytes"):
        return None if not getattr(memory, "_is_image", False) else axes_of(memory)
    return axes_of(memory) if memory._is_image else (memory.nbytes, memory._shape)
