"""``kompute-py compile``, ``reflect``, ``disasm`` and ``check``: shaders without a Manager."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from .._base.errors import InvalidArgumentError, KomputeError, ShaderCompileError
from .common import Traceback, device_of, wants_traceback
from .options import COMPILE_PANEL, CompileOptions, ConstantsOption, InputArgument
from .output import as_options


def compile_command(
    shader: InputArgument,
    options: CompileOptions,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="OUT", help="Default: IN with .spv; - writes to standard output."
        ),
    ] = None,
    compiler_options: Annotated[
        str,
        typer.Option(
            "--compiler-options",
            metavar="TEXT",
            rich_help_panel=COMPILE_PANEL,
            help="Options of DXC or Slang themselves, such as '-HV 2018 -Zpr'.",
        ),
    ] = "",
    spirv_version: Annotated[
        str | None, typer.Option("--spirv", metavar="V", help="Version of SPIR-V, such as 1.3.")
    ] = None,
    glsl_version: Annotated[
        str | None, typer.Option("--glsl", metavar="V", help="Version of GLSL; overrides #version.")
    ] = None,
    optimize: Annotated[
        str, typer.Option("--optimize", "-O", metavar="FOR", help="performance, size or none.")
    ] = "performance",
    debug_info: Annotated[
        bool, typer.Option("--debug", "-g", help="Keep source and lines in the module.")
    ] = False,
    show_traceback: Traceback = False,
) -> None:
    """Compile a shader to SPIR-V."""
    options.target = options.target or "vulkan1.2"
    module = compiled(
        shader, options, spirv_version=spirv_version, glsl_version=glsl_version, optimize=optimize,
        debug_info=debug_info, compiler_options=compiler_options,
    )  # fmt: skip
    if module.language not in (None, "glsl"):
        print(f"compiled by {module.compiler}", file=sys.stderr)
    place = out or ("-" if shader == "-" else str(Path(shader).with_suffix(".spv")))
    if place != "-" and Path(place) == Path(shader):
        raise InvalidArgumentError(f"{place} is the shader itself; choose another file with --out")
    spirv = module.to_spirv()
    if place == "-":
        sys.stdout.buffer.write(spirv)
        sys.stdout.buffer.flush()
        return
    try:
        Path(place).write_bytes(spirv)
    except OSError as error:
        raise KomputeError(f"cannot write {place}: {error.strerror or error}") from error


def reflect_command(
    shader: InputArgument,
    options: CompileOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
    show_traceback: Traceback = False,
) -> None:
    """Show a shader's interface: arguments, types, offsets in bytes, sizes, capabilities."""
    from .._shaders.signature import places_text

    module = compiled(shader, options, optimize="none")
    reflection = module.reflection
    if as_json:
        print(json.dumps(reflection, indent=2))
        return
    print(module.signature.text(module.name))
    print(f"  SPIR-V {'.'.join(map(str, reflection['version']))}, entry point {reflection['entry']}")
    if module.compiler is not None:
        print(f"  compiled by {module.compiler}")
    for binding in reflection["bindings"]:
        count = {0: "[]", 1: ""}.get(binding["count"], f"[{binding['count']}]")
        name = binding["name"] or binding["block_name"]
        print(
            f"  set {binding['set']}, binding {binding['binding']}: {binding['kind']}{count} {name} "
            f"({binding['access'].replace('_', ' and ')})"
        )
    push = reflection["push_constants"]
    if push is not None:
        members = places_text(module.signature.push.members)
        print(f"  push constants {push['name'] or push['block_name']}: {push['size']} bytes, {members}")
    for struct in module.signature.structs():
        print(f"  struct {struct}")
    for constant in reflection["spec_constants"]:
        print(
            f"  constant {constant['id']}: {constant['type']} {constant['name']} "
            f"= {constant['default']}".rstrip()
        )
    print(f"  local size {' x '.join(map(str, reflection['local_size']))}")
    if reflection["shared_bytes"]:
        print(f"  shared memory: {reflection['shared_bytes']} bytes")
    print(f"  capabilities: {', '.join(reflection['capabilities'])}")


def disasm_command(
    shader: InputArgument,
    options: CompileOptions,
    to: Annotated[
        str,
        typer.Option("--to", metavar="FORM", help="spirv (assembly), or glsl or hlsl through SPIRV-Cross."),
    ] = "spirv",
    optimize: Annotated[
        str, typer.Option("--optimize", "-O", metavar="FOR", help="performance, size or none, for source.")
    ] = "performance",
    show_traceback: Traceback = False,
) -> None:
    """Show a shader as SPIR-V assembly, or as source."""
    if to not in ("spirv", "glsl", "hlsl"):
        raise InvalidArgumentError(f"--to is {to!r}; choose one of spirv, glsl, hlsl")
    module = compiled(shader, options, optimize=optimize)
    print((module.disassembly() if to == "spirv" else module.to(to)).rstrip("\n"))


def check_command(
    shader: InputArgument,
    options: CompileOptions,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="D",
            help="The device: its index, a part of its name, a URI, or a file that describes devices: of "
            "`kompute-py info --json`, vulkaninfo or Vulkan Profiles.",
        ),
    ] = None,
    constants: ConstantsOption = [],  # noqa: B006
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    show_traceback: Traceback = False,
) -> None:
    """List the requirements of a shader that a device does not meet. The exit status is 1 if it finds one."""
    from .._device.described import descriptions
    from .._device.shader_check import check
    from .arguments import constants_of

    values = constants_of(constants)
    source, keywords = _source(shader), keywords_of(options)
    if device is not None and device.lower().endswith(".json"):
        chosen: list[Any] = list(descriptions(device).values())
    else:
        chosen = [device_of(device)]
    found = _compiling(
        lambda: [f for one in chosen for f in check(source, one, spec_consts=values, **keywords)]
    )
    if as_json:
        print(json.dumps([finding._asdict() for finding in found], indent=2))
    else:
        for finding in found:
            print(f"{finding.kind}: {as_options(str(finding))}")
        if not found:
            print("nothing: the device accepts the shader")
    if found:
        raise typer.Exit(1)


def _source(shader: str) -> Any:
    """The argument of `kp.compile` for an argument of the command line, which always names a file."""
    if shader != "-":
        return Path(shader)
    from .._compilers.spirv_words import is_spirv

    content = sys.stdin.buffer.read()
    if is_spirv(content):
        return content
    # With a line end, kp.compile never takes the text for the name of a file.
    return content.decode("utf-8", "replace") + "\n"


def _macros(defines: list[str]) -> dict[str, str | None]:
    pairs = (define.partition("=") for define in defines)
    return {name: value if equals else "1" for name, equals, value in pairs}


def keywords_of(options: CompileOptions) -> dict[str, Any]:
    """The keywords of `kp.compile` that were given."""
    given = {
        "language": options.language, "compiler": options.compiler, "target": options.target,
        "entry": options.entry, "defines": _macros(options.define) or None,
        "include_dirs": options.include or None,
    }  # fmt: skip
    return {name: value for name, value in given.items() if value is not None}


def compiled(shader: str, options: CompileOptions, **more: Any) -> Any:
    """The shader that an argument of the command line names. Compiler messages go to stderr."""
    from .._shaders.module import ShaderModule

    source = _source(shader)
    name = None if shader == "-" else Path(shader).stem
    return _compiling(lambda: ShaderModule(source, name=name, **keywords_of(options), **more))


def _compiling(work: Callable[[], Any]) -> Any:
    """Does the work. Compiler messages go to stderr unchanged, with their source lines."""
    from .._base.shown_errors import colored, terminal_shows_color
    from .._compilers.compile import ShaderCompileWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            return work()
        except ShaderCompileError as error:
            if wants_traceback():
                raise
            print(error.format(), file=sys.stderr)
            raise typer.Exit(1) from None
        finally:
            for warning in caught:
                text = as_options(str(warning.message))
                if isinstance(warning.message, ShaderCompileWarning):
                    place, _, rest = text.partition(": ")
                    text = f"{place}: warning: {rest}"
                print(colored(text) if terminal_shows_color() else text, file=sys.stderr)
