"""Algorithm: a shader with the memory that it works on."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import _native as core
from .._base.arrays import as_indices, as_name
from .._base.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
    not_copyable,
    shown,
)
from .._base.warn import warn
from .._compilers.spirv_words import module_bytes
from .._device.device import require_manager
from .._device.owner import Owned
from .._memory.image import SampledImage
from .._memory.memory import Memory, memory_list
from .._memory.sampler import Bindable, Sampler
from .._memory.tensor import Tensor
from .._shaders.constants import NO_SPECIALIZATION, Specialization, is_given
from .._shaders.spirv import chosen_entry, to_spirv
from .binding import check_argument, texel_format
from .preload import Ahead, is_reported, preload, report_made

if TYPE_CHECKING:
    from .._base.annotations import ShaderSource
    from .._device.device import Device
    from .._shaders.signature import Binding, PushConstants, Signature, SpecConstant

_AXES = "xyz"
BOUND = "Tensor or Image, image.sampled(...) or Sampler"
# One reminder a process is enough: scripts that mean it would otherwise be told at each algorithm.
_default_workgroup_warned = False


def to_groups(workgroup: Any, what: str) -> tuple[int, int, int]:
    """`workgroup` (an int, or up to three) as three ints; what is left out is 0.

    `what` names it in errors.
    """
    if type(workgroup) is tuple and len(workgroup) == 3:
        x, y, z = workgroup
        if type(x) is int and type(y) is int and type(z) is int and x >= 0 and y >= 0 and z >= 0:
            return workgroup
    given = as_indices(workgroup, what)
    if len(given) > 3:
        raise InvalidArgumentError(f"{what} has {len(given)} numbers; give up to three: (x, y, z)")
    given += (0,) * (3 - len(given))
    for n in given:
        if n < 0:
            raise InvalidArgumentError(f"{what} is {shown(workgroup)}; counts cannot be negative")
    return given[0], given[1], given[2]


@not_copyable("keep the SPIR-V and the constants, and make a new one with mgr.algorithm")
class Algorithm(Owned):
    """A compute pipeline: a shader, the tensors and images bound to it in order, its constants and default
    workgroup.

    Made by ``mgr.algorithm(...)``, or as ``kp.Algorithm(mgr, ...)`` with the same arguments:

    `tensors` go to the bindings by position (tensor i to ``binding = i`` of set 0); ``image.sampled(...)``
    goes to a ``sampler2D``, ``mgr.sampler(...)`` to a ``sampler``. (`mgr.kernel` binds by name, several sets
    and arrays of bindings.) `spirv` is bytes as from `kp.compile`, an array of uint32, a list of ints, a path
    to a .spv file, a `kp.ShaderModule`, or an object with ``to_spirv()``. `workgroup` counts groups in x, y,
    z; left out, it is one group for each element of the first tensor. `spec_consts` by position (element i is
    ``constant_id = i``) or as ``{id or name: value}``. `push_consts` are the initial values of the shader's
    block: ``{name: value}`` with each of its members, numbers in the order of its scalars, or a list with
    lists in it, with the members' values in their order. Numbers are converted to the types that the shader
    declares; an array whose bytes equal the block's goes in bit by bit. `entry` is the entry point; it may be
    omitted if the module has only one, or one called main, and for a ShaderModule, which has chosen.

    Raises InvalidArgumentError for bytes that are not valid SPIR-V, too few tensors, another kind of memory
    than the binding has, a structured dtype that is not laid out as the shader's block, constants that do not
    fit, or counts beyond the device's limits; ArgumentTypeError for objects of wrong types; NotFoundError for
    a path that does not exist; FailedPreconditionError for destroyed objects; UnimplementedError if the
    shader needs what the device lacks. Surplus tensors and constants are a KomputeWarning, and so is, once
    for each binding, a tensor or image with contents that differ from the declaration (dtype, padding, size
    of the block, format): nothing is converted, and `mgr.tensor` makes float32 of everything.

    >>> spirv = kp.compile('''
    ... layout(local_size_x = 64) in;
    ... layout(binding = 0) buffer X { float x[]; };
    ... void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= 2.0; }
    ... ''')
    >>> t = mgr.tensor([1, 2, 3])
    >>> algorithm = mgr.algorithm([t], spirv, (1, 1, 1))
    >>> mgr.sequence().record(kp.OpAlgoDispatch(algorithm)).eval()
    <kp.Sequence ...>
    >>> t.read().tolist()
    [2.0, 4.0, 6.0]
    """

    __slots__ = (
        "__weakref__",
        "_counted",
        "_dispatch",
        "_groups",
        "_manager",
        "_native",
        "_push",
        "_signature",
        "_special",
        "_tensors",
    )

    # Of the workgroup and push constants that are its own: when those change, so do the recordings that it is
    # in.
    _dispatch: core.BoundDispatch
    _groups: tuple[int, int, int]
    _push: bytes
    _special: Specialization
    _counted: bool
    _native: core.Algorithm | None
    _signature: Signature | None

    def __init__(
        self,
        manager: Device,
        tensors: Iterable[Memory | SampledImage | Sampler] = (),
        spirv: ShaderSource | None = None,
        workgroup: Any = (0, 0, 0),
        spec_consts: Any = (),
        push_consts: Any = (),
        *,
        entry: str | None = None,
    ) -> None:
        require_manager(manager)
        self._manager = manager
        if spirv is None:
            # Kompute's way to hand an algorithm to OpMult, which brings the shader.
            self._native = self._signature = None
            self._tensors = _listed(tensors, manager)
            return
        self._build(tensors, spirv, workgroup, spec_consts, push_consts, entry)

    def _build(
        self,
        tensors: Iterable[Any],
        spirv: Any,
        workgroup: Any,
        spec_consts: Any = (),
        push_consts: Any = (),
        entry: str | None = None,
    ) -> None:
        manager = self._manager
        if entry is not None:
            as_name(entry)
        if type(spirv) is core.Shader:
            shader = spirv
        else:
            if type(spirv) is bytes:
                shader = manager._native.shader(module_bytes(spirv), "main" if entry is None else entry)
            else:
                module = getattr(spirv, "module", spirv)  # a ShaderModule, or a Kernel's
                on_device = getattr(type(module), "_on", None)
                if entry is None and on_device is not None:
                    shader = on_device(module, manager._native)
                else:
                    words = to_spirv(spirv)
                    size, full = getattr(module, "_subgroups", (0, False))
                    shader = manager._native.shader(
                        words,
                        chosen_entry(spirv, entry) or "main",
                        getattr(module, "_declared", b""),
                        size,
                        full,
                        getattr(module, "_unchecked", False),
                    )
        signature = shader.extra
        if signature is None:
            from .._shaders.signature import signature_of  # with the first shader, not with the package

            signature = signature_of(shader)
        if signature.refusal:
            raise UnimplementedError(signature.refusal)
        bound = _bind(tensors, signature, manager)

        special = NO_SPECIALIZATION
        if type(spec_consts) is Specialization:
            special = spec_consts
        elif (type(spec_consts) is not tuple or spec_consts) and is_given(spec_consts):
            special = signature.spec.pack(spec_consts)
            if special.surplus:
                warn(
                    f"{special.surplus} of the spec_consts have no specialization constant in the shader "
                    f"(it has {len(signature.spec_constants)}): they are ignored"
                )
        signature.spec.refuse_defaults(special, "The algorithm", "spec_consts={{{!r}: {}}}")
        push = signature.push.zeros if signature.push is not None else b""
        if (type(push_consts) is not tuple or push_consts) and is_given(push_consts):
            push = pack_push(signature, push_consts)

        groups = to_groups(workgroup, "workgroup")
        counted = groups[0] == 0
        if counted:
            if not bound:
                raise InvalidArgumentError(
                    "An algorithm with no tensors has no default workgroup: give workgroup=(x, y, z)"
                )
            groups = (bound[0].size(), 1, 1)
        elif 0 in groups:
            groups = (groups[0], groups[1] or 1, groups[2] or 1)
        manager._check_groups(
            groups,
            "The default workgroup (one group for each element of the first tensor)"
            if counted
            else "workgroup",
            shader,
            special,
        )

        began: float | None = None
        if is_reported() and not manager._native.knows_pipeline(shader, special.data, special.entries):
            began = time.perf_counter()
        native = manager._native.algorithm(
            shader,
            _natives(bound, signature),
            groups,
            special.data,
            special.entries,
            push,
        )
        # Of arrays of run-time length, it is not known whether their pipeline is.
        if began is not None and all(each.descriptors for each in signature.parameters):
            report_made(len(bound), signature.entry, time.perf_counter() - began)
        if counted and groups[0]:
            _remind_of_local_size(native.local_size, groups[0])
        self._native = native
        self._signature = signature
        self._tensors = bound
        self._groups = groups
        self._push = push
        self._special = special
        self._counted = counted
        self._dispatch = core.op_bound_dispatch(native, groups, b"", ())
        watch = manager._watch
        if watch is not None:
            watch()

    def _built(self, action: str) -> core.Algorithm:
        if self._native is None:
            raise FailedPreconditionError(
                f"An algorithm that was made with no shader cannot {action}; give spirv"
            )
        return self._native

    def _signed(self) -> Signature:
        if self._signature is None:
            raise FailedPreconditionError(
                "An algorithm that was made with no shader has no reflection; give spirv"
            )
        return self._signature

    def get_tensors(self) -> list[Memory]:
        """The tensors and images that it was made with, in order: the same objects."""
        return list(self._tensors)

    get_mem_objects = get_tensors

    @property
    def name(self) -> str:
        """A name for error messages, validation messages and profiles; "" by default."""
        return "" if self._native is None else self._native.name

    @name.setter
    def name(self, value: str) -> None:
        self._built("be named").name = as_name(value)

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """The shader's bindings: number, kind, what the shader does with it, name, dtype of a buffer.

        Raises FailedPreconditionError if the algorithm was made without a shader.
        """
        return self._signed().bindings

    @property
    def push_constants(self) -> PushConstants | None:
        """The shader's push constant block: name, bytes, names of the scalars; None if there is none.

        Raises FailedPreconditionError if the algorithm was made without a shader.
        """
        return self._signed().public_push

    @property
    def spec_constants(self) -> tuple[SpecConstant, ...]:
        """The shader's specialization constants: id, name, type, default value.

        Raises FailedPreconditionError if the algorithm was made without a shader.
        """
        return self._signed().public_spec_constants

    @property
    def local_size(self) -> tuple[int, int, int]:
        """Invocations of one group in x, y, z, with the specialization constants applied.

        Raises FailedPreconditionError if the algorithm was made without a shader.
        """
        x, y, z = self._built("have a local size").local_size
        return x, y, z

    @property
    def workgroup(self) -> tuple[int, int, int]:
        """Groups that OpAlgoDispatch runs in x, y, z. Can be set; see `push_consts`.

        Raises FailedPreconditionError if the algorithm was made without a shader, InvalidArgumentError for
        counts that are negative, 0 in x, or beyond the device's limits.
        """
        self._built("have a workgroup")
        return self._groups

    @workgroup.setter
    def workgroup(self, value: Any) -> None:
        native = self._built("have a workgroup")
        x, y, z = to_groups(value, "workgroup")
        groups = x, y or 1, z or 1
        if x == 0:
            raise InvalidArgumentError(f"workgroup is {shown(value)}; at least 1 group runs")
        self._manager._check_groups(groups, "workgroup", native.shader, self._special)
        self._dispatch.set(groups, self._push, ())
        self._groups = groups
        self._counted = False

    @property
    def push_consts(self) -> tuple[bool | int | float, ...]:
        """The values of its own push constants, in the order of `push_constants`.components; () if there
        are none.

        Can be set, to what the constructor takes: recordings of ``OpAlgoDispatch(algorithm)`` use it from
        their next evaluation on. Operations with push constants or a grid of their own keep what they were
        made with.

        Raises FailedPreconditionError if the algorithm was made without a shader, InvalidArgumentError for
        values that do not fit the shader's block, ArgumentTypeError for values that are not numbers.
        """
        push = self._signed().push
        return () if push is None else push.unpack(self._push)

    @push_consts.setter
    def push_consts(self, values: Any) -> None:
        push = pack_push(self._signed(), values)
        self._dispatch.set(self._groups, push, ())
        self._push = push

    @property
    def spec_consts(self) -> dict[int, bool | int | float]:
        """The values of its specialization constants by id.

        They are part of the pipeline: `rebuild` changes them.

        Raises FailedPreconditionError if the algorithm was made without a shader.
        """
        return self._signed().spec.unpack(self._special)

    def rebuild(
        self,
        tensors: Iterable[Memory | SampledImage | Sampler] | None = None,
        spirv: ShaderSource | None = None,
        workgroup: Any = None,
        spec_consts: Any = None,
        push_consts: Any = None,
        *,
        entry: str | None = None,
    ) -> None:
        """Makes it anew with what is given, which the constructor describes; what is None stays as it was.
        `entry` is the entry point of a new `spirv`.

        A new `spirv` begins with its default constants. A workgroup that was given stays; a default one is
        counted again. Later recordings run the new one: operations of this algorithm, those made
        before included, and recordings after ``seq.rerecord()``. Other recordings keep the one that they were
        recorded with, and their next evaluation gives a KomputeWarning. An operation with a
        grid or push constants of its own keeps those; recording it raises
        InvalidArgumentError if they do not fit the new shader. Raises what the constructor raises, and stays
        as it was then.
        """
        before = None if self._native is None else (self._native, self._dispatch)
        source: Any = spirv
        if source is None:
            source = self._built("be rebuilt").shader
            if spec_consts is None:
                spec_consts = self._special
            if push_consts is None:
                push_consts = self._push
        if workgroup is None and self._native is not None and not self._counted:
            workgroup = self._groups
        self._build(
            self._tensors if tensors is None else tensors,
            source,
            (0, 0, 0) if workgroup is None else workgroup,
            () if spec_consts is None else spec_consts,
            () if push_consts is None else push_consts,
            entry,
        )
        if before is not None:
            native, dispatch = before
            native.supersede(self._built("be rebuilt"))
            dispatch.supersede(self._dispatch)

    def preload(self) -> None:
        """Builds all that the device needs to run it, and waits for that: the first evaluation then takes no
        longer than later ones. No group runs, and its memory is not touched.

        ``mgr.preload([...])`` builds several in parallel. Raises FailedPreconditionError if it is destroyed
        or was made without a shader.
        """
        preload(self._manager, (self,))

    def _ahead(self) -> Ahead:
        native = self._built("be preloaded")
        if not native.is_init():
            raise FailedPreconditionError("The algorithm is destroyed: it cannot be preloaded")
        return Ahead(native.shader, self._special, self._signed())

    def _keep(self, built: core.Algorithm | None) -> None:
        """It has its pipeline."""

    def is_init(self) -> bool:
        """Whether it can run: False after `destroy()` of this object or of its Manager."""
        return self._native is not None and self._native.is_init()

    def destroy(self) -> None:
        """Frees its descriptor sets, at any time and any number of times.

        Work in flight that uses them finishes first; recorded sequences that use the algorithm raise when
        evaluated again. The pipeline may be shared: it is let go of with this object and the operations that
        were made with it.
        """
        if self._native is not None:
            self._native.destroy()
            watch = self._manager._watch
            if watch is not None:
                watch()

    def __repr__(self) -> str:
        if self._native is None:
            return "<kp.Algorithm with no shader>"
        name = f" {self._native.name!r}" if self._native.name else ""
        if not self._native.is_init():
            return f"<kp.Algorithm{name} destroyed>"
        sizes = f"workgroup={self.workgroup} local_size={self.local_size}"
        return f"<kp.Algorithm{name} {len(self._tensors)} tensors {sizes}>"

    # -- raw Vulkan: of a destroyed algorithm they raise FailedPreconditionError -----------------------------

    def _alive(self) -> core.Algorithm:
        native = self._built("give Vulkan handles")
        if not native.is_init():
            raise FailedPreconditionError("The algorithm is destroyed: it has no Vulkan handles to give")
        return native

    @property
    def vk_pipeline(self) -> int:
        """The VkPipeline, as an integer."""
        return self._alive().vk_pipeline

    @property
    def vk_pipeline_layout(self) -> int:
        """The VkPipelineLayout, as an integer."""
        return self._alive().vk_pipeline_layout

    @property
    def vk_descriptor_sets(self) -> list[int]:
        """The VkDescriptorSets, as integers."""
        return list(self._alive().vk_descriptor_sets)


def _listed(tensors: Iterable[Any], manager: Device) -> tuple[Memory, ...]:
    return tuple(
        memory_list(
            tensors, "algorithm(tensors=...)", manager=manager, empty=True, also=(Bindable,), takes=BOUND
        )
    )


def _listed_as(position: int, memory: Memory) -> str:
    return f"tensors[{position}] ({memory._describe()})"


def _natives(bound: tuple[Any, ...], signature: Signature) -> list[Any]:
    natives = [memory._native for memory in bound[: signature.top]]
    for position, _, parameter in signature.required:
        if parameter.texels == "":
            natives[position] = (natives[position], texel_format(parameter, bound[position], "The algorithm"))
    return natives


def _bind(tensors: Iterable[Any], signature: Signature, manager: Device) -> tuple[Memory, ...]:
    """`tensors` as a tuple, checked against the shader's bindings."""
    bound = _listed(tensors, manager)
    if len(bound) < signature.slots:
        missing = next(p for position, _, p in signature.required if position >= len(bound))
        raise InvalidArgumentError(
            f"The shader uses {len(signature.required)} bindings up to number {signature.slots - 1}, so it "
            f"needs {signature.slots} tensors; {len(bound)} {'was' if len(bound) == 1 else 'were'} given "
            f"(binding {missing.binding}, {missing.kind} {missing.name!r}, has none)"
        )
    for position, dtype, parameter in signature.required:
        memory = bound[position]
        if type(memory) is not Tensor or memory._dtype is not dtype:
            what, subject = f"Binding {position} ({parameter.name!r})", partial(_listed_as, position, memory)
            check_argument(parameter, memory, what, subject, lenient=signature)
    if len(bound) > signature.top:
        warn(
            f"{len(bound)} tensors were given to a shader with {signature.top} bindings: the rest are not "
            "bound"
        )
    return bound


def pack_push(signature: Signature, values: Any) -> bytes:
    """`values` as the bytes of the shader's block; warns if there is none (an optimiser may have dropped
    it).
    """
    if signature.push is None:
        warn("push_consts were given to a shader with no push constants: they are ignored")
        return b""
    return signature.push.pack(values)


def _remind_of_local_size(local_size: Sequence[int], groups: int) -> None:
    global _default_workgroup_warned
    invocations = local_size[0] * local_size[1] * local_size[2]
    if invocations > 1 and not _default_workgroup_warned:
        _default_workgroup_warned = True
        warn(
            f"No workgroup was given, so {groups} groups (one for each element of the first tensor) run, of "
            f"{invocations} "
            "invocations each. To run one invocation for each element: "
            f"workgroup=({-(-groups // local_size[0])}, 1, 1), "
            f"or kp.OpAlgoDispatch(algorithm, grid=({groups},))"
        )
