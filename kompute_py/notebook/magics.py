"""The magics of ``%load_ext kompute_py``: ``%%glsl``, ``%%hlsl``, ``%%slang`` and ``%kp``."""

from __future__ import annotations

import argparse
import re
import shlex
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.display import display

from .._base.errors import KomputeError, ShaderCompileError
from .._base.shown_errors import colored
from .._manager.default import manager
from .._manager.manager import Manager
from .._profiling.benchmark import benchmark

if TYPE_CHECKING:
    from .._base.annotations import Language


class CellCompileError(ShaderCompileError):
    """A ShaderCompileError of a cell: shown with the cell's lines, without Python's traceback."""

    def _render_traceback_(self) -> list[str]:
        return colored(str(self), on_any=True).split("\n")


class _Parser(argparse.ArgumentParser):
    """Raises errors that IPython shows in one line; argparse itself would end the process."""

    def error(self, message: str) -> Any:
        raise UsageError(f"{self.prog}: {message} ({self.prog} --help lists the options)")


class _HelpShown(Exception):
    pass


class _ShowHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(parser.format_help())
        raise _HelpShown


def _parser(prog: str, description: str) -> _Parser:
    parser = _Parser(prog=prog, description=description, add_help=False, allow_abbrev=False)
    parser.add_argument("-h", "--help", action=_ShowHelp, nargs=0, help="show this and do nothing else")
    parser.add_argument(
        "-m", "--manager", metavar="NAME", help="the variable that holds the Manager (default: kp.manager())"
    )
    return parser


def _kernel_parser(language: str) -> _Parser:
    parser = _parser(
        f"%%{language}", f"Compiles the cell, a compute shader in {language.upper()}, and names the kernel."
    )
    add = parser.add_argument
    add("name", help="the variable that becomes the kernel")
    add("-e", "--entry", default="main", help="the entry point (default: main)")
    add("-D", "--define", action="append", default=[], metavar="NAME[=TEXT]", help="a macro; repeatable")
    add(
        "-I",
        "--include-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder for #include; repeatable",
    )
    add("-O", "--optimize", choices=("none", "size", "performance"), default="performance")
    add(
        "-t",
        "--target",
        default="vulkan1.2",
        help="vulkan1.0 to vulkan1.3, a device (vulkan://nvidia), or a file that describes one",
    )
    add("-g", "--debug-info", action="store_true", help="keep the source in the module, for debuggers")
    add("-a", "--auto-bind", action="store_true", help="number the bindings that have no number")
    add("-q", "--quiet", action="store_true", help="do not show the kernel's signature")
    return parser


def parser_of(magic: str) -> argparse.ArgumentParser:
    """The parser of a magic's line: "glsl", "hlsl", "slang" or "kp"."""
    return (
        _parser("%kp", "Shows the device and its memory. %kp time EXPRESSION measures a call.")
        if magic == "kp"
        else _kernel_parser(magic)
    )


@magics_class
class KomputeMagics(Magics):
    """Kernels from cells, and the state of the device."""

    @cell_magic
    def glsl(self, line: str, cell: str) -> None:
        """``%%glsl name [options]``: the cell is a compute shader in GLSL and becomes the kernel `name`.

        --help lists options.
        """
        self._define("glsl", line, cell)

    @cell_magic
    def hlsl(self, line: str, cell: str) -> None:
        """``%%hlsl name [options]``: the cell is a compute shader in HLSL and becomes the kernel `name`.

        --help lists options.
        """
        self._define("hlsl", line, cell)

    @cell_magic
    def slang(self, line: str, cell: str) -> None:
        """``%%slang name [options]``: the cell is a compute shader in Slang and becomes the kernel `name`.

        --help lists options.
        """
        self._define("slang", line, cell)

    @line_magic
    def kp(self, line: str) -> None:
        """``%kp``: shows the device of kp.manager() and its memory; ``%kp --manager NAME`` those of another
        Manager. ``%kp time EXPRESSION`` measures an expression with `kp.benchmark`.
        """
        first, _, rest = line.strip().partition(" ")
        if first == "time":
            self._time(rest.strip())
            return
        given = _parse(parser_of("kp"), line)
        if given is None:
            return
        found = self._manager(given.manager, "%kp")
        display(found)
        if found.is_init():
            display(found.memory)

    def _time(self, expression: str) -> None:
        try:
            code = compile(expression, "<%kp time>", "eval")
        except SyntaxError as error:
            raise UsageError(
                f"%kp time: {expression!r} is not an expression ({error.msg}); write %kp time k(x)"
            ) from None
        names = self._names()
        print(benchmark(lambda: eval(code, names)))

    def _define(self, language: Language, line: str, cell: str) -> None:
        given = _parse(parser_of(language), line)
        if given is None:
            return
        if not given.name.isidentifier():
            raise UsageError(f"%%{language}: {given.name!r} is not the name of a variable")
        chosen = self._manager(given.manager, f"%%{language}")
        defines = {}
        for define in given.define:
            name, equals, text = define.partition("=")
            defines[name] = text if equals else None
        try:
            # An empty line replaces the magic's line, so that the compiler counts lines as the notebook does.
            kernel = chosen.kernel(
                "\n" + cell,
                name=given.name,
                language=language,
                entry=given.entry,
                defines=defines,
                include_dirs=given.include_dir,
                optimize=given.optimize,
                target=given.target,
                debug_info=given.debug_info,
                auto_bind=given.auto_bind,
            )
        except ShaderCompileError as error:
            raise CellCompileError(str(error), diagnostics=error.diagnostics) from None
        except KomputeError as error:
            raise UsageError(f"%%{language}: {error}") from None
        self._names()[given.name] = kernel
        if not given.quiet:
            display(kernel)

    def _names(self) -> dict[str, Any]:
        shell: Any = self.shell
        return shell.user_ns

    def _manager(self, name: str | None, magic: str) -> Manager:
        if name is None:
            return manager()
        found = self._names().get(name)
        if not isinstance(found, Manager):
            raise UsageError(f"{magic}: {name!r} is not a variable that holds a kp.Manager")
        return found


def _parse(parser: argparse.ArgumentParser, line: str) -> argparse.Namespace | None:
    """The options; None if help was requested."""
    try:
        return parser.parse_args(shlex.split(line))
    except _HelpShown:
        return None
    except ValueError as error:  # an unclosed quote
        raise UsageError(f"{parser.prog}: {error}") from None


def body_for_help(lines: list[str]) -> list[str]:
    """Adds a body to a cell that only contains ``%%glsl --help``, because IPython requires one for cell
    magics.
    """
    first = next((i for i, line in enumerate(lines) if line.strip()), None)
    if first is None or any(line.strip() for line in lines[first + 1 :]):
        return lines
    if not _ASKS_FOR_HELP.match(lines[first].strip()):
        return lines
    return [f"{lines[first].strip()}\n", "\n"]


_ASKS_FOR_HELP = re.compile(r"%%(glsl|hlsl|slang)\s(.*\s)?(-h|--help)(\s|$)")


def load(shell: Any) -> None:
    """Registers the magics with an IPython shell."""
    shell.register_magics(KomputeMagics)
    if body_for_help not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(body_for_help)


def unload(shell: Any) -> None:
    """Removes the magics."""
    for kind, name in (("cell", "glsl"), ("cell", "hlsl"), ("cell", "slang"), ("line", "kp")):
        shell.magics_manager.magics[kind].pop(name, None)
    if body_for_help in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.remove(body_for_help)
