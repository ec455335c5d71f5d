"""Binds a kernel's arguments from the options of ``kompute-py run`` and ``bench``."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._base.errors import InvalidArgumentError
from .._base.text import nearest
from .._shaders.layout import tail_of
from .._shaders.push import named_members, pack_struct
from .._shaders.signature import MISSING, Parameter, Signature
from .array_files import SOURCES, Array, literal, load, shape_of
from .binding_arrays import Element, Fitted, buffer_element, fit_array, fit_picture, image_element

if TYPE_CHECKING:
    from .._kernels.kernel import Kernel
    from .._kernels.operation import OpKernel
    from .._manager.manager import Manager
    from .._memory.sampler import Sampler
    from .options import Given


class Argument(NamedTuple):
    """A binding with its memory."""

    parameter: Parameter
    element: Element
    memory: Any
    shape: tuple[int, ...]
    """The shape of its elements."""


@dataclass
class Prepared:
    """A kernel that can run."""

    kernel: Kernel
    operation: OpKernel
    arguments: dict[str, Argument]
    outputs: dict[str, Path | None]
    """The destination of each requested binding; None is standard output."""

    def results(self) -> dict[str, Argument]:
        """The bindings that the shader writes, and all requested ones."""
        return {
            name: argument
            for name, argument in self.arguments.items()
            if argument.parameter.written or name in self.outputs
        }


def constants_of(options: Iterable[str]) -> dict[str, Any]:
    """The constants of ``--spec`` by name or id."""
    return {name: number(text, f"--spec {name}") for name, text in pairs(options, "--spec")}


def specialized(kernel: Kernel, constants: Iterable[str]) -> Kernel:
    """The kernel with ``--spec`` applied."""
    values = constants_of(constants)
    made = kernel.specialize(**values) if values else kernel
    version = made._version
    version.signature.spec.refuse_defaults(version.special, version.name, "--spec {}={}")
    return made


def prepare(manager: Manager, kernel: Kernel, given: Given) -> Prepared:
    """Loads the inputs, creates the outputs and binds both. Raises KomputeError if an option does not fit."""
    return _Preparation(manager, specialized(kernel, given.constants), given).run()


def loaded(manager: Manager, kernel: Kernel, given: Given) -> tuple[dict[str, Any], dict[str, Any]]:
    """The memory of each binding, and the push constants that are given; others may be given later."""
    return _Preparation(manager, kernel, given).load(whole=False)


def pairs(options: Iterable[str], option: str) -> list[tuple[str, str]]:
    """(NAME, VALUE) of each NAME=VALUE. Raises InvalidArgumentError if a name or a value is missing."""
    result = []
    for text in options:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InvalidArgumentError(f"{option} {text}: give NAME=VALUE")
        result.append((name.strip(), value.strip()))
    return result


def number(text: str, what: str) -> Any:
    """A number, a list of them, or a mapping. Raises InvalidArgumentError for any other text."""
    value = literal(text)
    if value is None:
        raise InvalidArgumentError(f"{what}: {text!r} is not a number; give one, or 1,2,3 for a vector")
    return value


def counts(text: str | None, option: str) -> tuple[int, ...] | None:
    """``512,512`` as counts in x, y, z, without a check of their range: the kernel does that."""
    if text is None:
        return None
    parts = [part.strip() for part in text.replace("x", ",").split(",")]
    if not 1 <= len(parts) <= 3 or not all(part.lstrip("-").isdecimal() for part in parts):
        raise InvalidArgumentError(f"{option} {text}: give one to three whole numbers, such as 512,512")
    return tuple(int(part) for part in parts)


def unknown(kernel: str, what: str, name: str, known: Iterable[str]) -> InvalidArgumentError:
    """The error for a name that the shader lacks."""
    names = list(known)
    return InvalidArgumentError(
        f"{kernel} has no {what} {name!r}{nearest(name, names)} It has {', '.join(names) or 'none'}"
    )


class _Preparation:
    def __init__(self, manager: Manager, kernel: Kernel, given: Given) -> None:
        self._manager = manager
        self._kernel = kernel
        self._given = given
        self._signature: Signature = kernel.signature
        self._parameters = {p.name: p for p in self._signature.parameters}
        self._inputs: dict[str, list[str]] = {}
        self._numbers: dict[str, str] = {}  # arrays that were given as one number
        self._first: Fitted | None = None  # the first input; outputs take its shape
        self._guessed: list[str] = []  # outputs with the first input's shape
        self._arguments: dict[str, Argument] = {}
        self._bound: dict[str, Any] = {}
        self._grid, self._groups = counts(given.grid, "--grid"), counts(given.groups, "--groups")
        if self._grid is not None and self._groups is not None:
            raise InvalidArgumentError("give --grid (invocations) or --groups (workgroups), not both")

    def run(self) -> Prepared:
        grid, groups = self._grid, self._groups
        _, push = self.load(whole=True)
        keywords: dict[str, Any] = {}
        if grid is None and groups is None:
            # This check words its errors with options of the command line; bind() computes the same grid.
            values = [self._bound.get(p.name, MISSING) for p in self._signature.parameters]
            bound = tuple(tuple(each) if type(each) is list else each for each in values)
            self._kernel._check_default(bound, push, _as_options)
        else:
            keywords = {"groups": groups} if groups is not None else {"grid": grid}
        operation = self._kernel.bind(bind=self._bound, push=push, **keywords)
        if self._guessed:
            self._tell_guessed(push, keywords)
        return Prepared(self._kernel, operation, self._arguments, self._places)

    def _tell_guessed(self, push: dict[str, Any], keywords: dict[str, Any]) -> None:
        """Notes the guess if a call that leaves these outputs out is refused, or makes others."""
        given = {name: each for name, each in self._bound.items() if name not in self._guessed}
        try:
            follows = self._kernel.memory_needs(bind=given, push=push, **keywords).outputs
            if follows == sum(self._bound[name].nbytes for name in self._guessed):
                return
        except InvalidArgumentError:
            pass
        first = next(iter(self._inputs))
        for name in self._guessed:
            shape = ",".join(map(str, self._arguments[name].shape))
            print(
                f"note: {name} has the shape of {first}, {shape}, which does not follow from the code: "
                f"--shape {name}={shape} if that is meant",
                file=sys.stderr,
            )

    def load(self, whole: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Makes each binding's memory; returns it and the push constants. `whole`: none may be missing."""
        given = self._given
        self._shapes = self._named(given.shapes, "--shape")
        self._dtypes = self._named(given.dtypes, "--dtype")
        push, blocks = self._values(whole)
        for text in given.inputs:
            name, source = self._binding(text, "--in", lambda p: not p.written)
            self._inputs.setdefault(name, []).append(source)
        self._places = self._outputs()
        for name, sources in self._inputs.items():
            self._input(self._parameters[name], sources)
        self._refuse_numbers()
        for name, block in blocks.items():
            self._block(self._parameters[name], block)
        for parameter in self._signature.parameters:
            if parameter.name not in self._bound and parameter.used:
                self._rest(parameter)
        return self._bound, push

    # -- options -----------------------------------------------------------------------------------

    def _named(self, options: Iterable[str], option: str) -> dict[str, str]:
        found = dict(pairs(options, option))
        for name in found:
            if name not in self._parameters:
                raise unknown(self._kernel.name, "binding", name, self._parameters)
        return found

    def _binding(self, text: str, option: str, fits: Any) -> tuple[str, str]:
        """(name, rest) of NAME=REST. Without NAME it means the only binding that `fits`."""
        name, equals, rest = text.partition("=")
        if equals and name in self._parameters:
            return name, rest
        used = [p for p in self._signature.parameters if p.used]
        candidates = [p.name for p in used if fits(p)] or [p.name for p in used if len(used) == 1]
        if equals and not Path(text).is_file():
            raise unknown(self._kernel.name, "binding", name, self._parameters)
        if len(candidates) != 1:
            raise InvalidArgumentError(
                f"{option} {text}: name the binding, NAME={text}; {self._kernel.name} has "
                f"{', '.join(self._parameters) or 'none'}"
            )
        return candidates[0], text

    def _outputs(self) -> dict[str, Path | None]:
        outputs: dict[str, Path | None] = {}
        for text in self._given.outputs:
            name, place = self._binding(text, "--out", lambda p: p.written)
            parameter = self._parameters[name]
            if not parameter.written:
                raise InvalidArgumentError(
                    f"--out {text}: {self._kernel.name} does not write {name!r}; it writes "
                    f"{', '.join(p.name for p in self._signature.written) or 'nothing'}"
                )
            if parameter.descriptors != 1:
                raise InvalidArgumentError(f"--out {text}: {name} is {parameter.type}, an array of bindings")
            if name in outputs:
                raise InvalidArgumentError(f"--out is given twice for {name!r}")
            outputs[name] = None if place == "-" else Path(place)
        return outputs

    def _values(self, whole: bool) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """The values of ``--set``: push constants, and members of uniform blocks by binding."""
        push: dict[str, Any] = {}
        blocks: dict[str, dict[str, Any]] = {}
        known = list(self._signature.push.names) if self._signature.push is not None else []
        members: dict[str, list[str]] = {}
        for p in self._signature.parameters:
            if p.kind == "uniform buffer" and p.used and p.descriptors == 1:
                for member in p.layout["members"]:
                    members.setdefault(member["name"], []).append(p.name)
                    members[f"{p.name}.{member['name']}"] = [p.name]
        for name, text in pairs(self._given.values, "--set"):
            value = number(text, f"--set {name}")
            if name in known:
                push[name] = value
            elif len(members.get(name, ())) == 1:
                blocks.setdefault(members[name][0], {})[name.rpartition(".")[2]] = value
            elif name in members:
                raise InvalidArgumentError(
                    f"--set {name}: several blocks have it; "
                    f"give {' or '.join(f'{b}.{name}' for b in members[name])}"
                )
            else:
                raise unknown(self._kernel.name, "push constant or uniform", name, [*known, *members])
        missing = [name for name in known if whole and name not in push]
        if missing:
            raise InvalidArgumentError(
                f"{self._kernel.name}: missing push constant{'s' if len(missing) > 1 else ''} "
                f"{', '.join(missing)}: give "
                f"{' '.join(f'--set {name}=VALUE' for name in missing)}"
            )
        return push, blocks

    # -- bindings ----------------------------------------------------------------------------------

    def _input(self, parameter: Parameter, sources: list[str]) -> None:
        if not parameter.used:
            raise InvalidArgumentError(f"{self._kernel.name} does not use {parameter.name!r}")
        if parameter.kind == "sampler":
            raise InvalidArgumentError(
                f"{parameter.name} is a sampler: choose it with --filter and --address"
            )
        if parameter.descriptors == 1 and len(sources) > 1:
            raise InvalidArgumentError(f"--in is given twice for {parameter.name!r}")
        made = []
        for source in sources:
            argument, fitted = self._loaded(parameter, source)
            if self._first is None:
                self._first = fitted
            made.append(argument)
        self._arguments[parameter.name] = made[0]
        self._bound[parameter.name] = (
            made[0].memory if parameter.descriptors == 1 else [argument.memory for argument in made]
        )

    def _loaded(self, parameter: Parameter, source: str) -> tuple[Argument, Fitted]:
        name, what = parameter.name, f"{self._kernel.name}: {parameter.name} ({parameter.type})"
        wanted = self._dtypes.get(name)
        element = None if parameter.is_image else buffer_element(parameter, wanted)
        image = parameter.image
        base = element.base if element is not None else np.dtype(image["component"]) if image else None
        array, picture = load(source, name, base if base is None or base.names is None else None)
        if element is None:
            element = image_element(parameter, wanted, array, picture)
        elif array.ndim == 0 and tail_of(parameter.layout) is not None:
            self._numbers[name] = source
        fitted = fit_picture(array, element, what) if picture else fit_array(array, element, what)
        own, made = array.dtype, fitted.array.dtype
        # Typed numbers need no note.
        if (
            not picture
            and own.kind == made.kind == "f"
            and own.itemsize > made.itemsize
            and literal(source) is None
        ):
            print(
                f"note: {name}: {source} is {own} and becomes {made}: its numbers are rounded",
                file=sys.stderr,
            )
        return Argument(
            parameter, element, self._memory(parameter, element, fitted.array), fitted.shape
        ), fitted

    def _refuse_numbers(self) -> None:
        """Raises an error if an array got one number and another binding has several elements."""
        if all(argument.memory.size() <= 1 for argument in self._arguments.values()):
            return
        for name, source in self._numbers.items():
            raise InvalidArgumentError(
                f"{self._kernel.name}: {name} ({self._parameters[name].type}) is an array, and {source} is "
                "one number: beyond it the shader would read zeros. Declare a push constant and give "
                f"--set {name}={source}, or give an array: --in {name}={name}.npy"
            )

    def _memory(self, parameter: Parameter, element: Element, array: Array) -> Any:
        if element.format is None:
            tensor = self._manager.tensor_t(array, "storage")
            tensor.name = parameter.name
            return tensor
        image = parameter.image
        assert image is not None
        dims: Any = element.axes - bool(image["arrayed"])
        made = self._manager.image_t(
            array,
            None,
            None,
            element.format.channels,
            "storage",
            format=element.format.name,
            dims=dims,
            layers=True if image["arrayed"] else None,
        )
        made.name = parameter.name
        if parameter.kind == "combined image sampler":
            return made.sampled(self._sampler(made.filterable, image))
        return made

    def _sampler(self, filterable: bool, image: Mapping[str, Any]) -> Sampler:
        """The sampler of the options. The default filter is linear if the format can be filtered."""
        smooth = filterable and image["component"].startswith("float")
        chosen = self._given.filter or ("linear" if smooth else "nearest")
        if chosen == "linear" and not smooth:
            raise InvalidArgumentError("--filter linear: the device does not filter images of this format")
        return self._made_sampler(chosen)

    def _made_sampler(self, filter: Any) -> Sampler:
        address: Any = self._given.address  # any text: the Sampler checks it
        return self._manager.sampler(filter, address)

    def _block(self, parameter: Parameter, values: dict[str, Any]) -> None:
        """Adds a uniform buffer with the values of its members."""
        if parameter.name in self._bound:
            raise InvalidArgumentError(f"{parameter.name!r} is given by --in and by --set")
        layout = parameter.layout
        missing = [m["name"] for m in named_members(layout) if m["name"] not in values]
        if missing:
            raise InvalidArgumentError(
                f"{self._kernel.name}: the uniform block {parameter.name!r} lacks {', '.join(missing)}: give "
                f"{' '.join(f'--set {name}=VALUE' for name in missing)}"
            )
        data = np.frombuffer(pack_struct(layout, values, f"{self._kernel.name}: {parameter.name}"), np.uint8)
        dtype = parameter.dtype or np.dtype(np.uint8)
        array = np.concatenate([data, np.zeros(-len(data) % dtype.itemsize, np.uint8)]).view(dtype)
        element = Element(array.dtype)
        self._add(Argument(parameter, element, self._memory(parameter, element, array), array.shape))

    def _rest(self, parameter: Parameter) -> None:
        """Adds a binding without an input: an output filled with zeros, or a sampler."""
        name = parameter.name
        if parameter.kind == "sampler":
            # One sampler may serve several images, and nearest works with every format.
            self._bound[name] = self._made_sampler(self._given.filter or "nearest")
            return
        if parameter.access != "write" and name not in self._places and name not in self._shapes:
            raise InvalidArgumentError(
                f"{self._kernel.name}: missing {name!r} ({parameter.type}): "
                f"give --in {name}=SOURCE, {SOURCES}"
            )
        if parameter.descriptors != 1:
            raise InvalidArgumentError(
                f"{self._kernel.name}: {name} is {parameter.type}, an array of bindings: "
                f"give --in {name}=SOURCE for each"
            )
        wanted = self._dtypes.get(name)
        element = (
            image_element(parameter, wanted, None, False)
            if parameter.is_image
            else buffer_element(parameter, wanted)
        )
        shape = self._shape(parameter, element)
        whole = (*shape, *element.inner)
        if math.prod(whole) * element.base.itemsize > 2**40:
            raise InvalidArgumentError(
                f"{name}: shape {whole} of {element.base} is more than a device can hold"
            )
        if element.format is None:
            memory: Any = self._manager.zeros(whole, element.base, "storage")
            memory.name = name
        else:
            memory = self._memory(parameter, element, np.zeros(whole, element.base))
        self._add(Argument(parameter, element, memory, shape))

    def _add(self, argument: Argument) -> None:
        self._arguments[argument.parameter.name] = argument
        self._bound[argument.parameter.name] = argument.memory

    def _shape(self, parameter: Parameter, element: Element) -> tuple[int, ...]:
        """An output's shape: from ``--shape``, the shader, the first input or the launch, in this order."""
        text = self._shapes.get(parameter.name)
        if text is not None:
            return self._as_said(parameter, element, shape_of(text, f"--shape {parameter.name}"))
        if element.fixed is not None:
            return element.fixed
        if self._first is not None:
            # Elements that hold whole pixels take the pixels of the first input, without its channels.
            whole = element.inner or element.packed or element.format is not None
            shape = self._first.pixels if whole else self._first.shape
            if element.format is None:
                self._guessed.append(parameter.name)
                return shape
            if len(shape) == element.axes + 1:
                shape = shape[:-1]
            if len(shape) == element.axes:
                return shape
        run = self._grid or counts(self._given.size, "--size")
        if self._groups is not None:
            run = tuple(n * local for n, local in zip(self._groups, self._kernel.local_size, strict=False))
        if run is not None and all(n > 0 for n in run):
            shape = tuple(reversed(run))
            if element.format is None or len(shape) == element.axes:
                return shape
        axes = "W" if element.axes == 1 else "H,W" if element.axes == 2 else "N"
        raise InvalidArgumentError(
            f"{self._kernel.name}: nothing determines the shape of {parameter.name} ({parameter.type}): give "
            f"--shape {parameter.name}={axes}"
        )

    def _as_said(self, parameter: Parameter, element: Element, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The elements' shape from ``--shape``, the saved array's shape. It may omit the components' axis."""
        if element.format is not None:
            if len(shape) == element.axes + 1 and shape[-1] == element.format.channels:
                return shape[:-1]
            if len(shape) != element.axes:
                raise InvalidArgumentError(
                    f"--shape {parameter.name}={','.join(map(str, shape))}: "
                    f"{parameter.type} has {element.axes} ax{'is' if element.axes == 1 else 'es'}, "
                    f"and {element.format.name} has {element.format.channels} channels"
                )
            return shape
        inner = (*element.inner[:-1], element.used) if element.inner else ()
        for tail in (inner, element.inner):
            if tail and len(shape) > len(tail) and shape[-len(tail) :] == tail:
                return shape[: -len(tail)]
        return shape


def _as_options(keyword: str, counts: tuple[object, ...]) -> str:
    return f"--{keyword} {','.join(map(str, counts))}"
