"""The shaders of a program as modules, checked against themselves as far as a file may be wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._base.errors import InvalidArgumentError
from .._custom.float_modes import adapted
from .._shaders.constants import Specialization
from .._shaders.module import ShaderModule
from .._shaders.scalars import constant_scalar
from . import content as c

_NO_CONTROLS: dict[str, object] = {}


def module_of(
    shader: c.Shader, files: Mapping[str, bytes], controls: Mapping[str, object] = _NO_CONTROLS
) -> ShaderModule:
    """A shader of a program, as it runs on a device with these ``float_controls``. Needs no device.

    Raises InvalidArgumentError if its code is not what it declares.
    """
    module = ShaderModule(files[shader.file], name=shader.name, entry=shader.entry)
    module._subgroups = shader.subgroup_size, shader.full_subgroups
    if shader.declared:
        runs = module.reflection
        module._declared, module._reflection = files[shader.declared], None
        declared = {(each["set"], each["binding"]): each for each in module.reflection["bindings"]}
        for each in runs["bindings"]:
            other = declared.get((each["set"], each["binding"]), {})
            if any(each[key] != other.get(key) for key in ("kind", "count")) or _sizes(each) != _sizes(other):
                raise InvalidArgumentError(
                    f"{shader.name}: its code has a binding {each['set']}.{each['binding']} that it does "
                    "not declare"
                )
        ours, told = (each["push_constants"] for each in (runs, module.reflection))
        if ours and not (
            told
            and told["offset"] <= ours["offset"]
            and ours["offset"] + ours["size"] <= told["offset"] + told["size"]
        ):
            raise InvalidArgumentError(f"{shader.name}: its code has other push constants than it declares")
        for key, what in (("entry", "entry point"), ("local_size", "local size")):
            if runs[key] != module.reflection[key]:
                raise InvalidArgumentError(f"{shader.name}: its code has another {what} than it declares")
    if shader.generated:
        codes = module._spirv, module._declared
        module._spirv, module._declared = (adapted(each, controls) for each in codes)
        module._reflection, module._generated = None, True
    return module


def _sizes(binding: Mapping[str, Any]) -> Any:
    layout = binding.get("layout") or {}
    return layout.get("size"), binding.get("image")


def check_constants(module: ShaderModule, constants: c.Constants) -> None:
    """Raises InvalidArgumentError for constants that the shader does not have, or of other sizes."""
    sizes = {each["id"]: constant_scalar(each["type"]).size for each in module.reflection["spec_constants"]}
    for identity, _, size in constants.places:
        if sizes.get(identity) != size:
            raise InvalidArgumentError(
                f"{module.name}: the specialization constant {identity} is given {size} bytes; the shader "
                f"has {sizes.get(identity, 'no such constant')}"
            )


def values_of(module: ShaderModule, constants: c.Constants) -> dict[str | int, Any]:
    """The values of specialization constants, by their ids. Raises the error of `check_constants`."""
    check_constants(module, constants)
    values = module.signature.spec.unpack(Specialization(constants.data, constants.places, 0))
    given = {identity for identity, _, _ in constants.places}
    return {key: each for key, each in values.items() if key in given}
