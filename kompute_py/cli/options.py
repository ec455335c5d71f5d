"""Options that several commands take, in groups: a command has one parameter for a whole group."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

COMPILE_PANEL, _DATA, LAUNCH_PANEL = "Compilation", "Data", "Launch"


InputArgument = Annotated[
    str,
    typer.Argument(
        metavar="IN",
        help="The shader: a file of GLSL, HLSL, Slang, SPIR-V or its assembly; - reads standard input.",
    ),
]

ConstantsOption = Annotated[
    list[str],
    typer.Option(
        "--spec", metavar="NAME=VALUE", rich_help_panel=COMPILE_PANEL,
        help="A specialization constant, by name or id.",
    ),
]  # fmt: skip


@dataclass
class CompileOptions:
    """How a command compiles its shader."""

    define: Annotated[
        list[str],
        typer.Option(
            "--define", "-D", metavar="NAME[=VALUE]", rich_help_panel=COMPILE_PANEL, help="Define a macro."
        ),
    ] = field(default_factory=list)
    include: Annotated[
        list[str],
        typer.Option(
            "--include", "-I", metavar="DIR", rich_help_panel=COMPILE_PANEL,
            help="A folder for #include, searched after the file's own folder.",
        ),
    ] = field(default_factory=list)  # fmt: skip
    language: Annotated[
        str | None,
        typer.Option(
            "--language", metavar="L", rich_help_panel=COMPILE_PANEL,
            help="glsl, hlsl or slang. Default: by the file's suffix.",
        ),
    ] = None  # fmt: skip
    compiler: Annotated[
        str | None,
        typer.Option(
            "--compiler", metavar="C", rich_help_panel=COMPILE_PANEL,
            help="dxc or slang, for HLSL. Default: DXC if it is installed.",
        ),
    ] = None  # fmt: skip
    entry: Annotated[
        str, typer.Option("--entry", metavar="NAME", rich_help_panel=COMPILE_PANEL, help="The entry point.")
    ] = "main"
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="T", rich_help_panel=COMPILE_PANEL,
            help="vulkan1.0 to vulkan1.3, a device (vulkan://nvidia), or a file that describes one "
            "(vulkaninfo.json). Default: vulkan1.2.",
        ),
    ] = None  # fmt: skip


@dataclass
class Given:
    """A kernel's arguments and launch, as typed."""

    inputs: Annotated[
        list[str],
        typer.Option(
            "--in", "-i", metavar="NAME=SOURCE", rich_help_panel=_DATA,
            help="The contents of a binding: a picture, .npy, .npz (by the binding's name, or FILE.npz:KEY), "
            "numbers (1,2,3), or zeros:SHAPE, ones:SHAPE, random:SHAPE, arange:N, each with an optional "
            ":DTYPE. NAME= may be omitted if the shader has only one input, or one binding.",
        ),
    ] = field(default_factory=list)  # fmt: skip
    values: Annotated[
        list[str],
        typer.Option(
            "--set", "-s", metavar="NAME=VALUE", rich_help_panel=_DATA,
            help="A push constant, or a member of a uniform block: 2, true, 1,0.5,0 for a vector, "
            "[[1,0],[0,1]] for a matrix, {\"gain\":2,\"at\":[0,1]} or [2,[0,1]] for a struct.",
        ),
    ] = field(default_factory=list)  # fmt: skip
    shapes: Annotated[
        list[str],
        typer.Option(
            "--shape", metavar="NAME=H,W,C", rich_help_panel=_DATA,
            help="The shape of an output, in NumPy's order. Default: the shader's declaration, else the "
            "first input's shape, else the grid's.",
        ),
    ] = field(default_factory=list)  # fmt: skip
    dtypes: Annotated[
        list[str],
        typer.Option(
            "--dtype", metavar="NAME=TYPE", rich_help_panel=_DATA,
            help="The format of an image (rgba8, r32f, ...) if the shader does not declare it; rgba8 for "
            "pixels packed into a buffer of uint; a dtype for a buffer without a single type.",
        ),
    ] = field(default_factory=list)  # fmt: skip
    filter: Annotated[
        str | None,
        typer.Option(
            "--filter", metavar="F", rich_help_panel=_DATA,
            help="The filter for sampled images: linear or nearest. Default: linear if the format can be "
            "filtered.",
        ),
    ] = None  # fmt: skip
    address: Annotated[
        str,
        typer.Option(
            "--address", metavar="A", rich_help_panel=_DATA,
            help="Reads beyond an image's edge: clamp_to_edge, clamp_to_border, repeat or mirrored_repeat.",
        ),
    ] = "clamp_to_edge"  # fmt: skip
    grid: Annotated[
        str | None,
        typer.Option(
            "--grid", "-g", metavar="X,Y,Z", rich_help_panel=LAUNCH_PANEL,
            help="The number of invocations. Default: derived from the shader's code and the first binding "
            "that it writes.",
        ),
    ] = None  # fmt: skip
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups", metavar="X,Y,Z", rich_help_panel=LAUNCH_PANEL,
            help="The number of workgroups, instead of --grid.",
        ),
    ] = None  # fmt: skip
    device: Annotated[
        str | None,
        typer.Option(
            "--device", metavar="D", rich_help_panel=LAUNCH_PANEL,
            help="The device: its index, a part of its name, or a URI with options (vulkan://nvidia?queues=2).",
        ),
    ] = None  # fmt: skip
    constants: ConstantsOption = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    """Of ``kompute-py run`` alone, whose own option it is."""
    size: str | None = None
    """Columns and rows of outputs whose shape nothing else says; of ``kompute-py watch`` alone."""


def _options(group: type) -> list[inspect.Parameter]:
    """A parameter for each option of a group, none of which is required."""
    hints = get_type_hints(group, include_extras=True)
    found = []
    for each in fields(group):
        if hasattr(hints[each.name], "__metadata__"):
            left_out = None if each.default is MISSING else each.default
            kind = inspect.Parameter.KEYWORD_ONLY
            found.append(inspect.Parameter(each.name, kind, default=left_out, annotation=hints[each.name]))
    return found


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer takes it, with each option of its groups as a parameter."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for each in inspect.signature(command).parameters.values():
        kind = hints[each.name]
        if is_dataclass(kind) and isinstance(kind, type):
            options = _options(kind)
            groups[each.name] = kind, [option.name for option in options]
            parameters += options
        else:
            parameters.append(each.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def called(**given: Any) -> None:
        for name, (kind, options) in groups.items():
            values = {option: given.pop(option) for option in options}
            given[name] = kind(**{option: value for option, value in values.items() if value is not None})
        command(**given)

    del called.__wrapped__  # typing.get_type_hints follows it
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called
