"""The arguments of a shader's call: its bindings, push constants and specialization constants under their
names.

A binding is called by its instance name, else by the name of the only member of its block, else by the
block's name. A Kernel binds the parameters by name. An Algorithm binds them by position: place i is binding i
of set 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native
from .._base.errors import InvalidArgumentError
from .._base.text import nearest
from .constants import SpecConstants
from .dtype_rules import contradicts
from .layout import BUFFERS, element_dtype, scalar_dtype
from .type_text import GLSL_SCALARS, type_text

if TYPE_CHECKING:
    from .push import Block

# The first part of GLSL's image types, by Vulkan's term; all others are samplers.
_IMAGES = {"storage image": "image", "storage texel buffer": "image", "sampled image": "texture"}


class Binding(NamedTuple):
    """One binding of a shader. Tensor i of an algorithm goes to binding i."""

    binding: int
    kind: str
    """Vulkan's term: "storage buffer", "uniform buffer", "storage image", ..."""
    access: str
    """How the shader uses its contents: "none", "read", "write" or "read_write"."""
    name: str
    """The name that a kernel's call takes: the variable's, else that of the block's only member, else the
    block's."""
    dtype: np.dtype[Any] | None = None
    """Of a buffer: the NumPy dtype with the layout of one element, or of a whole block that is not an array
    (see
    `kp.struct_dtype`). None for images, and if an array of run-time length follows other members."""


class PushConstants(NamedTuple):
    """A shader's push constant block."""

    name: str
    size: int
    """Bytes."""
    components: tuple[str, ...]
    """Names of the scalars in the order in which a list of numbers fills them."""


class SpecConstant(NamedTuple):
    """One specialization constant of a shader."""

    id: int
    name: str
    type: str
    default: bool | int | float


class Parameter(NamedTuple):
    """One binding of a shader, as an argument of a call."""

    name: str
    set: int
    binding: int
    kind: str
    """Vulkan's term: "storage buffer", "uniform buffer", "storage image", "combined image sampler", ..."""
    access: str
    """The shader's access to its contents: "none", "read", "write" or "read_write"."""
    used: bool
    """Whether the shader names it at all: it may ask for its length or size alone."""
    descriptors: int
    """How many descriptors: 1, a fixed number, or 0 for a run-time length."""
    type: str
    """As in GLSL: ``float[]``, ``image2D``."""
    dtype: np.dtype[Any] | None
    """The NumPy dtype of a block's scalars; None if it has several kinds of them."""
    size: int
    """Bytes that the block has before its run-time array, if any."""
    layout: Mapping[str, Any]
    image: Mapping[str, Any] | None
    atomic: bool = False
    """Whether atomic operations act on it."""
    texels: str | None = None
    """Of a texel buffer: the format that the shader declares, "" if its tensor decides; else None."""
    counts: str = ""
    """Of a hidden counter: the name of the buffer that it belongs to."""
    consumed: bool = False
    """Of a hidden counter: whether it counts down the elements that are left."""

    @property
    def is_record(self) -> bool:
        """Whether its block has several members, or structs: raw bytes are as good as any array then."""
        members = self.layout["members"]
        return len(members) != 1 or members[0]["kind"] == "struct"

    def contradicts(self, dtype: np.dtype[Any]) -> bool:
        """Whether the shader finds other numbers in elements of `dtype` than they are; not said of blocks of
        several kinds.
        """
        wanted = self.dtype
        if dtype is wanted or wanted is None:
            return False
        if dtype.kind == "c" and not self.is_record and max(1, self.layout["members"][0]["rows"]) % 2:
            return True  # a complex number is two floats, which a vec2 or vec4 has together
        return contradicts(dtype, wanted) and not (self.is_record and dtype.itemsize == 1)

    @property
    def holds_numbers(self) -> bool:
        """Whether the block is an array of numbers, as long as its memory."""
        members = self.layout["members"]
        return self.plain_dtype is not None and members[0]["rows"] <= 1 and members[0]["array"] == [0]

    @property
    def plain_dtype(self) -> np.dtype[Any] | None:
        """The dtype, if it is all to check of a tensor: the block is an array of numbers
        or vectors without
        padding. None for any other binding."""
        members = self.layout["members"]
        if (
            self.kind not in BUFFERS
            or self.is_record
            or self.size
            or self.padded_stride
            or members[0]["columns"] > 1
        ):
            return None
        return self.dtype

    def packs(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
        """Whether rows of smaller numbers make up whole elements of integers: pixels of four bytes in each
        uint.
        """
        members, wanted = self.layout["members"], self.dtype
        if (
            wanted is None
            or wanted.kind not in "iu"
            or dtype.kind == "b"
            or dtype.itemsize >= wanted.itemsize
        ):
            return False
        sole = members[0] if len(members) == 1 and members[0]["array"] else None
        return sole is not None and len(shape) > 1 and shape[-1] * dtype.itemsize == sole["array_strides"][-1]

    @property
    def padded_stride(self) -> int:
        """Bytes from one number or vector of its sole member, an array, to the next where that is more than
        one takes; else 0.
        """
        members = self.layout["members"]
        if len(members) != 1 or not members[0]["array"] or self.dtype is None:
            return 0
        sole = members[0]
        stride: int = sole["array_strides"][-1]
        plain = not sole["members"] and sole["columns"] <= 1
        return stride if plain and stride > max(1, sole["rows"]) * self.dtype.itemsize else 0

    @property
    def is_image(self) -> bool:
        """Whether an Image is bound."""
        return self.image is not None

    @property
    def written(self) -> bool:
        """Whether the shader writes it."""
        return self.access in ("write", "read_write")

    def __str__(self) -> str:
        access = {"none": "", "read": "", "write": "out", "read_write": "inout"}[self.access]
        if not self.used:
            access = "unused"
        return " ".join(part for part in (access, self.type, self.name) if part)


def _members(parameter: Parameter) -> tuple[str, ...]:
    """The names of the members of a uniform buffer, which a call takes as a dict."""
    if parameter.kind != "uniform buffer":
        return ()
    return tuple([each["name"] for each in parameter.layout["members"]])


def _scalars(layout: Mapping[str, Any]) -> set[str]:
    """NumPy's names of all scalars in a layout. A buffer reference is an address."""
    if layout["kind"] == "struct":
        return set().union(*map(_scalars, layout["members"]))
    return (
        {"uint64" if layout["kind"] == "pointer" else GLSL_SCALARS[layout["kind"]][2]}
        if layout["kind"] in (*GLSL_SCALARS, "pointer")
        else set()
    )


def parameter_of(b: Mapping[str, Any]) -> Parameter:
    """The parameter that a reflected binding is."""
    layout = b["layout"]
    members = layout["members"]
    sole = members[0] if len(members) == 1 else None
    name = b["name"] or (sole["name"] if sole else "") or b["block_name"] or f"binding{b['binding']}"
    dtype = None
    if (image := b["image"]) is not None:
        prefix = {"int": "i", "uint": "u"}.get(image["component"].rstrip("0123456789"), "")
        what = _IMAGES.get(b["kind"], "sampler")
        text = f"{prefix}{what}{image['dim']}{'Array' if image['arrayed'] else ''}"
    elif b["kind"] == "sampler":
        text = "sampler"
    elif sole is not None:
        text = type_text(sole)
    else:
        fields = "; ".join(f"{type_text(member)} {member['name']}" for member in members)
        text = f"{b['block_name'] or 'block'} {{ {fields} }}"
    texels = None
    if b["kind"].endswith("texel buffer"):
        texels = b["image"]["format"]
    scalars = _scalars(layout) if b["image"] is None or texels else set()
    if "counts" in b:
        scalars, text = {"uint32"}, "uint"
    if len(scalars) == 1:
        dtype = scalar_dtype(scalars.pop())
    if b["count"] != 1:
        text += f"[{b['count'] or ''}]"
    return Parameter(
        name,
        b["set"],
        b["binding"],
        b["kind"],
        b["access"],
        b["used"],
        b["count"],
        text,
        dtype,
        layout["size"],
        layout,
        b["image"] if texels is None else None,
        b["atomic"],
        texels,
        b.get("counts", ""),
        b.get("consumed", False),
    )


_COUNTER = re.compile(r"counter\.var\.(\w+)|(\w+)\.counter")  # of DXC, of Slang


def _with_counters(bindings: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The bindings with the names of the source, and hidden counters last: compilers give a counter to each
    AppendStructuredBuffer, ConsumeStructuredBuffer, and RWStructuredBuffer if its counter is used.
    """
    by_name = {b["name"]: b for b in bindings}
    plain: list[Mapping[str, Any]] = []
    hidden: list[Mapping[str, Any]] = []
    for b in bindings:
        found = _COUNTER.fullmatch(b["name"])
        own = (found[1] or found[2]) if found else ""
        buffer = by_name.get(own) or by_name.get(f"{own}.elements")
        if found and buffer:
            # DXC says which it is; of Slang's, those that are only read are consumed.
            told = buffer["block_name"]
            consumed = told.startswith("Consume") if found[1] else buffer["access"] == "read"
            hidden.append({**b, "name": f"{own}_counter", "counts": own, "consumed": consumed})
        elif b["name"].endswith(".elements") and f"{b['name'][:-9]}.counter" in by_name:
            plain.append({**b, "name": b["name"][:-9]})
        else:
            plain.append(b)
    return plain + hidden


for _public in (Binding, PushConstants, SpecConstant, Parameter):
    _public.__module__ = "kompute_py.typing"  # where users find it


class Signature:
    """The arguments of a shader: its bindings are `parameters`, its push constants `public_push`, its
    specialization constants `public_spec_constants`. ``print(signature)`` shows the arguments of a call.
    """

    __module__ = "kompute_py.typing"  # where users find it

    __slots__ = (
        "_bindings", "_by_name", "_reflected", "capabilities", "entry", "local_size", "local_size_ids",
        "parameters", "plain", "push",
        "refusal", "required", "slots", "spec", "spec_constants", "top", "warned",
    )  # fmt: skip

    def __init__(self, reflected: Mapping[str, Any]) -> None:
        listed = _with_counters(reflected["bindings"])
        reflected = {**reflected, "bindings": listed}
        self.parameters: tuple[Parameter, ...] = tuple(_unique(map(parameter_of, listed)))
        """The bindings, in order. Push constants are not among them."""
        self.plain: tuple[np.dtype[Any] | None, ...] = tuple(p.plain_dtype for p in self.parameters)
        """For each parameter, its `plain_dtype`."""
        used = [(p.binding, dtype, p) for p, dtype in zip(self.parameters, self.plain, strict=True) if p.used]
        self.required: tuple[tuple[int, np.dtype[Any] | None, Parameter], ...] = tuple(used)
        """By position: (position, its `plain_dtype`, parameter) of those that the shader uses."""
        self.slots: int = max((position for position, _, _ in used), default=-1) + 1
        """By position: how many tensors the shader needs."""
        self.top: int = max((p.binding for p in self.parameters), default=-1) + 1
        """By position: how many it declares. Bindings that are not used take a position, too."""
        self.refusal: str = next(filter(None, (_refusal(p) for _, _, p in used)), "")
        """Why tensors by position cannot serve this shader; "" if they can."""
        self.warned: set[tuple[int, Any]] = set()
        """By position: (binding, dtype or format) of tensors and images that differ from the declaration, of
        which was warned.
        """
        self._reflected = reflected
        self._bindings: tuple[Binding, ...] | None = None
        self._by_name = {parameter.name: i for i, parameter in enumerate(self.parameters)}
        block = reflected["push_constants"]
        self.push: Block | None = None
        """The layout of the push constants; None without push constants."""
        if block is not None and block["size"]:
            from .push import Block  # late, because many shaders have no push constants

            self.push = Block(block)
        self.spec: SpecConstants = SpecConstants(reflected["spec_constants"])
        """The specialization constants by name and id."""
        self.spec_constants: tuple[Mapping[str, Any], ...] = tuple(reflected["spec_constants"])
        """The specialization constants, as in ``reflection["spec_constants"]``."""
        self.local_size: tuple[int, int, int] = tuple(reflected["local_size"])
        """The invocations of a workgroup on each axis, with the defaults of specialization constants."""
        self.local_size_ids: tuple[int | None, ...] = tuple(reflected["local_size_spec_ids"])
        """For each axis, the id of the specialization constant that sets its local size, or None."""
        self.entry: str = reflected["entry"]
        """The name of the entry point."""
        self.capabilities: tuple[str, ...] = tuple(reflected["capabilities"])
        """The SPIR-V capabilities that the shader declares."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Signature, (self._reflected,)

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """The bindings as an Algorithm shows them."""
        if self._bindings is None:
            self._bindings = tuple(
                Binding(
                    b["binding"],
                    b["kind"],
                    b["access"],
                    p.name,
                    element_dtype(b["layout"]) if b["kind"] in BUFFERS else None,
                )
                for p, b in zip(self.parameters, self._reflected["bindings"], strict=True)
            )
        return self._bindings

    @property
    def written(self) -> list[Parameter]:
        """The parameters that the shader writes, in order."""
        return [parameter for parameter in self.parameters if parameter.written]

    def resolve(
        self,
        kernel: str,
        positional: tuple[Any, ...],
        named: Mapping[str, Any],
        bind: Mapping[str, Any],
        push: Mapping[str, Any],
        outputs: bool = False,
    ) -> tuple[list[Any], dict[str, Any]]:
        """(value for each parameter, values of push-constant members) of a call of `kernel`; a value left out
        is `MISSING`. With `outputs`, bindings that the shader only writes, and hidden counters, may be left
        out.

        Raises InvalidArgumentError, with the nearest name, for an unknown name, a value that is given twice
        or missing, or too many of them.
        """
        parameters = self.parameters
        if len(positional) > len(parameters):
            by_name = f". Give push constants by name: {self.push.names[0]}=" if self.push is not None else ""
            raise InvalidArgumentError(
                f"{kernel} takes {len(parameters)} bindings by position; {len(positional)} were given: "
                f"{self.text(kernel)}{by_name}"
            )
        values: list[Any] = [*positional, *[MISSING] * (len(parameters) - len(positional))]
        members: dict[str, Any] = {}
        for name, value in bind.items():
            self._give(kernel, values, self._index(kernel, name), value)
        known = self.push.names if self.push is not None else ()
        for name, value in push.items():
            if name not in known:
                raise self._unknown(kernel, name, known, "push constant")
            members[name] = value
        for name, value in named.items():
            if name in self._by_name:
                self._give(kernel, values, self._by_name[name], value)
            elif name == "out":
                written = self.written
                if len(written) != 1:
                    raise InvalidArgumentError(
                        f"out= stands for the only binding that a shader writes; {kernel} writes "
                        f"{', '.join(p.name for p in written) or 'none'}: name them"
                    )
                self._give(kernel, values, self._by_name[written[0].name], value)
            elif name in known:
                if name in members:
                    raise InvalidArgumentError(f"{kernel} got its push constant {name!r} twice")
                members[name] = value
            else:
                raise self._unknown(kernel, name, (*self._by_name, *known), "argument")
        missing = [
            p.name
            for p, v in zip(parameters, values, strict=True)
            if v is MISSING and p.used and not (outputs and (p.access == "write" or p.counts))
        ]
        if missing:
            plural = "s" if len(missing) > 1 else ""
            raise InvalidArgumentError(
                f"{kernel}: missing argument{plural} {', '.join(map(repr, missing))}: {self.text(kernel)}"
            )
        return values, members

    def position(self, name: str) -> int | None:
        """The position of the parameter with this name; None if there is none."""
        return self._by_name.get(name)

    def _index(self, kernel: str, name: str) -> int:
        if name not in self._by_name:
            raise self._unknown(kernel, name, tuple(self._by_name), "binding")
        return self._by_name[name]

    def _give(self, kernel: str, values: list[Any], index: int, value: Any) -> None:
        if values[index] is not MISSING:
            raise InvalidArgumentError(f"{kernel} got {self.parameters[index].name!r} twice")
        values[index] = value

    def _unknown(self, kernel: str, name: str, known: Iterable[str], what: str) -> InvalidArgumentError:
        block = next((each for each in self.parameters if name in _members(each)), None)
        if block is not None:
            return InvalidArgumentError(
                f"{kernel} has no {what} {name!r}: it is a member of {block.name!r}; give "
                f"{block.name}={{...}}, a dict of {', '.join(_members(block))}"
            )
        return InvalidArgumentError(
            f"{kernel} has no {what} {name!r}{nearest(name, known)} It is {self.text(kernel)}"
        )

    def structs(self) -> list[str]:
        """The structs that its arguments are made of, with each member's offset in bytes, and of arrays the
        bytes from one element to the next: ``Light { vec3 pos @0; float[4] power @16 (4 apart) }``.
        """
        found: dict[str, None] = {}  # in order
        blocks = [p.layout for p in self.parameters] + (list(self.push.members) if self.push else [])
        for block in blocks:
            _list_structs(block, found)
        return list(found)

    @property
    def public_push(self) -> PushConstants | None:
        """The push constant block as users see it."""
        push = self.push
        return None if push is None else PushConstants(push.name, push.size, tuple(push.component_names))

    @property
    def public_spec_constants(self) -> tuple[SpecConstant, ...]:
        """The specialization constants as users see them."""
        return tuple(SpecConstant(c["id"], c["name"], c["type"], c["default"]) for c in self.spec_constants)

    def text(self, kernel: str) -> str:
        """The signature on one line."""
        parts = [str(parameter) for parameter in self.parameters]
        if self.push is not None and self.push.names:
            parts.append("*")
            parts += [f"{type_text(member)} {member['name']}" for member in self.push.members]
        return f"{kernel}({', '.join(parts)})"

    def __repr__(self) -> str:
        return f"<kp.typing.Signature {self.text(self.entry)}>"


def signature_of(shader: _native.Shader) -> Signature:
    """The signature of a native shader, made at the first use and kept in its `extra`."""
    signature = shader.extra
    if signature is None:
        signature = shader.extra = Signature(shader.reflection)
    return signature


def _refusal(p: Parameter) -> str:
    """Why a tensor by position cannot be bound to this parameter; "" if it can."""
    if p.set != 0:
        return (
            f"The shader's {p.kind} {p.name!r} is in descriptor set {p.set}; an algorithm binds set 0 by "
            "position: "
            "declare layout(set = 0, binding = ...), or use mgr.kernel, which binds by name"
        )
    if p.descriptors != 1:
        return (
            f"The shader's binding {p.binding} ({p.name!r}) is an array of {p.kind}s; give each one a "
            "binding "
            "number of its own, or use mgr.kernel, which takes a list there"
        )
    return ""


def places_text(members: Iterable[Mapping[str, Any]]) -> str:
    """Each member's type, name and offset in bytes, and those from one element of an array to the next."""
    return "; ".join(
        f"{type_text(m)} {m['name']} @{m['offset']}"
        + (f" ({m['array_strides'][-1]} apart)" if m["array_strides"] else "")
        for m in members
    )


def _list_structs(layout: Mapping[str, Any], found: dict[str, None]) -> None:
    if layout["kind"] != "struct":
        return
    if len(layout["members"]) > 1:
        found[f"{layout['type_name'] or 'struct'} {{ {places_text(layout['members'])} }}"] = None
    for member in layout["members"]:
        _list_structs(member, found)


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


MISSING: Any = _Missing()
"""Stands for an argument that was not given."""


def _unique(parameters: Iterable[Parameter]) -> list[Parameter]:
    """Names that occur twice get the binding's number appended: SPIR-V does not promise unique names."""
    seen: set[str] = set()
    result = []
    for parameter in parameters:
        name = parameter.name
        if name in seen:
            name = f"{name}_{parameter.set}_{parameter.binding}"
        seen.add(name)
        result.append(parameter._replace(name=name))
    return result
