"""Call: the arguments of one call of a kernel, resolved to memory and a launch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._base.errors import ArgumentTypeError, InvalidArgumentError, kind_of
from .._device.transfers import on_host
from .._launches.code import Launch
from .._launches.outputs import Output
from .._memory.image import SampledImage
from .._memory.lending import Lending
from .._memory.making import new_tensor
from .._memory.memory import Memory, memory_list
from .._memory.reach import meet
from .._memory.sampler import Bindable
from .._memory.stand_ins import Copied, Lent, StandIn
from .._memory.strided import StridedView
from .._memory.tensor import Tensor
from .._recording.binding import check_argument, check_owner, indirect_groups, made_by
from .._shaders.signature import MISSING, Parameter
from .arrays import array_for, is_number_for_array, refuse_number
from .version import Version

if TYPE_CHECKING:
    from .._device.device import Device

_EMPTY: Mapping[str, Any] = {}


class Call:
    """A call of a kernel: what each parameter is given, the memory for it, and the launch.

    With `lending`, arrays get memory that stands for them; without, they are refused. With that or `makes`,
    outputs that are left out are made. Raises all that `Kernel.__call__` lists.
    """

    __slots__ = (
        "args",
        "arrays",
        "bound",
        "in_place",
        "keywords",
        "launch",
        "outputs",
        "results",
        "stand_ins",
        "values",
        "version",
    )

    def __init__(
        self,
        version: Version,
        args: tuple[Any, ...],
        keywords: dict[str, Any],
        lending: Lending | None = None,
        makes: bool = False,
    ) -> None:
        self.version = version
        self.args = args
        self.keywords = keywords
        self.arrays: dict[int, np.ndarray[Any, Any]] = {}
        """Those that are given, and those that the call makes, by parameter."""
        self.stand_ins: list[tuple[StandIn, Tensor]] = []
        """The stand-ins for them, and for Tensors that shaders cannot bind, with the memory that is lent."""
        self.results: dict[int, Any] = {}
        """The results of the call, by parameter."""
        self.outputs: list[Output] = []
        """Those that the call leaves out."""
        self.in_place = True
        """Whether their memory is that of a call with lending."""
        how, members, uses = self._resolve(makes or lending is not None)
        launches = version.launches
        fixed: Launch | None = None
        memories = [
            self._memory(place, parameter, value, lending)
            for place, (parameter, value) in enumerate(
                zip(version.signature.parameters, self.values, strict=True)
            )
        ]
        left_out = [place for place, each in enumerate(memories) if self._is_left_out(place, each)]
        if any(each is not None for each in how):
            if how[2] is not None and left_out:
                names = ", ".join(version.signature.parameters[i].name for i in left_out)
                raise InvalidArgumentError(
                    f"{version.name}: with indirect=, outputs cannot be left out, because the host does not "
                    f"know how many groups run: give {names}"
                )
            fixed = version.launch((), *how, members, uses)
        if left_out and (makes or lending is not None):
            bound = self._checked(memories)
            self.outputs = launches.outputs.shapes(version.name, left_out, bound, fixed)
            self._make_outputs(memories, lending)
        self.bound: tuple[Any, ...] = self._checked(memories)
        self.launch: Launch = (
            version.launch(self.bound, None, None, None, members, uses) if fixed is None else fixed
        )
        version.check(self.bound, self.launch, tuple(left_out))
        if self.outputs:
            launches.outputs.check(version.name, self.outputs, self.bound, self.launch)

    @property
    def result(self) -> Any:
        """The results of the call, in the order of the bindings."""
        found = tuple([self.results[place] for place in sorted(self.results)])
        return found[0] if len(found) == 1 else found or None

    # -- arguments -------------------------------------------------------------------------------------------

    def _resolve(
        self, outputs: bool
    ) -> tuple[tuple[Any, Any, Tensor | None], dict[str, Any], tuple[Memory, ...]]:
        """((grid, groups, indirect), push constants, `uses`); the values by parameter are noted."""
        version = self.version
        name, manager = version.name, version.manager
        rest = dict(self.keywords)
        grid, groups = rest.pop("grid", None), rest.pop("groups", None)
        if isinstance(groups, Tensor):
            raise ArgumentTypeError(
                f"{name}: groups is a Tensor; give it as indirect= for groups that the device reads"
            )
        if (indirect := rest.pop("indirect", None)) is not None:
            if grid is not None or groups is not None:
                raise InvalidArgumentError(
                    f"{name}: give grid or groups if the host knows them, or indirect if the device "
                    "computes the groups, not both"
                )
            indirect = indirect_groups(indirect, 0, manager, name)
        uses: tuple[Memory, ...] = ()
        if (given := rest.pop("uses", None)) is not None:
            uses = tuple(memory_list(given, f"{name}(uses=...)", manager=manager, one=True, empty=True))
        bind, push = rest.pop("bind", None), rest.pop("push", None)
        bind, push = (_EMPTY if mapping is None else mapping for mapping in (bind, push))
        for title, mapping in (("bind", bind), ("push", push)):
            if not isinstance(mapping, Mapping):
                raise ArgumentTypeError(f"{name}: {title} is {kind_of(mapping)}; give {{name: value}}")
        self.values, members = version.signature.resolve(name, self.args, rest, bind, push, outputs)
        return (grid, groups, indirect), members, uses

    def _is_left_out(self, place: int, memory: Any) -> bool:
        return memory is MISSING and self.version.signature.parameters[place].used

    def _memory(self, place: int, parameter: Parameter, value: Any, lending: Lending | None) -> Any:
        """The memory for a parameter; MISSING if there is none yet."""
        if value is MISSING:
            if not (parameter.counts and parameter.used):
                return MISSING
            if lending is None:
                counter = self._counter(parameter)
                return new_tensor(self.version.manager, counter.shape, counter.dtype, None, counter.tobytes())
            return self._lend(place, parameter, self._counter(parameter), lending)
        if parameter.descriptors != 1:
            return _several(self.version.name, parameter, value)
        if isinstance(value, (Memory, Bindable)):
            if lending is None or not isinstance(value, Tensor):
                return value
            odd = self._begins_odd(place, parameter, value)
            return self._copy(place, parameter, value, lending) if odd else value
        if lending is None:
            raise ArgumentTypeError(
                f"{self.version.name}: {parameter.name!r} is {kind_of(value)}; give a Tensor or Image: bind "
                f"and submit copy nothing in or back{self._made_of(parameter, value)}"
            )
        if parameter.written:
            self.results[place] = value
        return self._lend(place, parameter, value, lending)

    def _lend(self, place: int, parameter: Parameter, value: Any, lending: Lending) -> Tensor:
        """Memory for an argument that is not a Tensor."""
        what = f"{self.version.name}: {parameter.name!r}"
        if parameter.is_image or parameter.kind == "sampler":
            raise ArgumentTypeError(
                f"{what} is a {parameter.kind} ({parameter.type}), not {type(value).__name__}: make it with "
                f"{made_by(parameter)}"
            )
        if type(value) is not np.ndarray and is_number_for_array(parameter, value):
            refuse_number(parameter, value, what, self._beside(place))
        array = array_for(parameter, value, what)
        guard = self.version.manager._guard
        if guard is not None and (
            value is self.values[place] or place in self.results
        ):  # not a hidden counter
            on_host(guard, what, array.nbytes)
        memory = lending.tensor(place, array)
        if memory._manager._tensors is not None:
            memory._manager._tensors.stands(memory)
        self._check(parameter, memory, array)
        self.arrays[place] = array
        made = Lent(place, array.shape, memory._dtype, memory.nbytes, True, place in self.results)
        self.stand_ins.append((made, memory))  # read: a shader that only writes may leave parts of it
        return memory

    def _made_of(self, parameter: Parameter, value: Any) -> str:
        """How a Tensor is made of `value`, for an error's text."""
        if isinstance(value, StridedView):
            return "; kp.ops.ascontiguousarray(view) makes one"
        if not isinstance(value, Mapping):
            return ""
        dtype = f"kp.struct_dtype({self.version.name}, {parameter.name!r})"
        return f"; u = np.zeros(1, {dtype}), filled by field, u['name'] = value, makes one: mgr.tensor_t(u)"

    def _begins_odd(self, place: int, parameter: Parameter, value: Tensor) -> bool:
        """Whether `value` begins where no shader can bind it, and a copy can stand for it: not if the shader
        would see some of its bytes through another argument, too.
        """
        manager = self.version.manager
        if (
            parameter.kind != "storage buffer"
            or not value._count
            or not value._is_init()
            or value._manager is not manager
            or value._native.vk_offset % manager._info["limits"]["minStorageBufferOffsetAlignment"] == 0
        ):
            return False
        return not any(
            isinstance(each, Tensor) and meet(value, each)
            for i, (other, given) in enumerate(
                zip(self.version.signature.parameters, self.values, strict=True)
            )
            if i != place and (parameter.written or other.written)
            for each in (given if isinstance(given, (list, tuple)) else (given,))
        )

    def _copy(self, place: int, parameter: Parameter, value: Tensor, lending: Lending) -> Tensor:
        """Memory for a Tensor that shaders cannot bind: the device copies it there, and results back."""
        self._check(parameter, value)
        memory = lending.dense(place, value._shape, value._dtype)
        written = parameter.written
        made = Copied(place, value._shape, value._dtype, memory.nbytes, True, written)
        self.stand_ins.append((made, memory))  # read: a shader that only writes may leave parts of it
        return memory

    def _make_outputs(self, memories: list[Any], lending: Lending | None) -> None:
        """Makes the outputs: Tensors if no arrays are lent, or if a Tensor or an Image is among the
        arguments, else arrays.
        """
        self.in_place = any(isinstance(each, (Memory, SampledImage)) for each in flat(self.values))
        for output in self.outputs:
            place = output.position
            if lending is None or self.in_place or output.format is not None:
                made = output.made(self.version.manager) if lending is None else lending.made(output)
                memories[place] = self.results[place] = made
                continue
            fresh = self.results[place] = np.zeros(output.shape, output.dtype)
            memories[place] = self._lend(place, self.version.signature.parameters[place], fresh, lending)

    def _counter(self, parameter: Parameter) -> np.ndarray[Any, Any]:
        """The first value of a hidden counter that was left out: 0, or the number of elements to consume."""
        if not parameter.consumed:
            return np.zeros(1, np.uint32)
        version = self.version
        place = version.signature.position(parameter.counts)
        value = MISSING if place is None else self.values[place]
        if place is None or value is MISSING:
            raise InvalidArgumentError(
                f"{version.name}: give {parameter.name}=, the number of elements to consume"
            )
        given = version.signature.parameters[place]
        if not hasattr(value, "nbytes"):
            value = array_for(given, value, f"{version.name}: {given.name!r}")
        stride = given.layout["members"][0]["array_strides"][-1]
        return np.array([value.nbytes // stride], np.uint32)

    def _beside(self, place: int) -> list[tuple[Parameter, Any]]:
        """The other parameters with what they are given, those first that have to agree in size with
        parameter `place`.
        """
        tied = self.version.launches.sizes.tied_to(place)
        given = enumerate(zip(self.version.signature.parameters, self.values, strict=True))
        return [pair for i, pair in sorted(given, key=lambda each: each[0] not in tied) if i != place]

    # -- checks ----------------------------------------------------------------------------------------------

    def _checked(self, memories: Iterable[Any]) -> tuple[Any, ...]:
        """The memory of each parameter, once it fits."""
        signature, manager = self.version.signature, self.version.manager
        bound = tuple(memories)
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
        """Raises if `memory` does not fit `parameter`. `array` is the array that it holds, if that was
        given.
        """
        version = self.version
        manager: Device = version.manager
        if memory._manager is not manager or not memory._is_init():
            check_owner(memory, manager, f"{parameter.name!r} of {version.name}")
        check_argument(parameter, memory, f"{version.name}: {parameter.name!r}", array=array)


def flat(bound: Iterable[Any]) -> Iterator[Any]:
    """The objects of bound arguments; an argument may be a tuple."""
    for each in bound:
        if type(each) is tuple:
            yield from each
        else:
            yield each


def _several(kernel: str, parameter: Parameter, value: Any) -> tuple[Any, ...]:
    """The values for an array of bindings."""
    what = f"{kernel}: {parameter.name!r}"
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, (Memory, Bindable)) for v in value):
        raise ArgumentTypeError(
            f"{what} is {parameter.type}, an array of {parameter.kind}s: give a list of tensors or images"
        )
    if not value or (parameter.descriptors and len(value) != parameter.descriptors):
        raise InvalidArgumentError(
            f"{what} is {parameter.type}: it takes {parameter.descriptors or 'at least 1'}, not {len(value)}"
        )
    return tuple(value)
