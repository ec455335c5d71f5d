"""Tables that the pages take from the code: options, environment variables, commands, magics, errors.

In a page: ```` ```{kp-options} ```` and an empty body. The functions return Markdown and need no Sphinx, so
that the tests look at the same text.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

import kompute_py as kp

_PREFIX = "KOMPUTE_PY_"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table. A bar inside of a cell is escaped, a line end becomes a space."""
    lines = [list(heads)]
    lines += [[" ".join(str(cell).split()).replace("|", "\\|") for cell in row] for row in rows]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _default(value: Any, option: Any) -> str:
    from kompute_py._base.settings import default_cache_dir

    if option.is_path and value:
        root = default_cache_dir()
        return f"`kompute_py{str(value).removeprefix(root)}` in the user's cache folder"
    if isinstance(value, int) and value and not isinstance(value, bool) and value % 2**20 == 0:
        return f"{value // 2**20} MiB"
    return f"`{value!r}`"


def options() -> str:
    """Each option of a Manager: keyword, environment variable, default, meaning."""
    from kompute_py._device.options import _ALL

    rows = []
    for name, option in _ALL.items():
        names = "<br>".join(f"`{each}`" for each in (name, _PREFIX + name.upper(), *option.other_variables))
        rows.append((names, option.about, _default(option.default(), option)))
    return _table(("option and environment variable", "meaning", "default"), rows)


def variables() -> str:
    """The environment variables that are not options of a Manager."""
    from kompute_py._device.options import _OTHER_VARIABLES

    rows = [(f"`{_PREFIX}{name}`", about) for name, about in _OTHER_VARIABLES.items()]
    return _table(("environment variable", "meaning"), rows)


def commands() -> str:
    """A section for each command of the command line, with all arguments and options."""
    import typer.main

    from kompute_py.cli.app import app

    group: Any = typer.main.get_command(app)
    parts = []
    for name, command in [("", group), *group.commands.items()]:
        context = command.make_context(f"kompute-py {name}".strip(), [], resilient_parsing=True)
        records = [(each, each.get_help_record(context)) for each in command.params]
        rows = []
        for parameter, record in records:
            if record is None:
                continue
            shown = re.sub(r"\s*<(str|path|int|integer|text)>", "", record[0], flags=re.I)
            shown = shown.lstrip("* ").strip() or parameter.name
            rows.append((f"`{shown}`", _as_markdown(record[1])))
        title = f"kompute-py {name}" if name else "All commands"
        text = "" if not name else _as_markdown_block(command.help or "")
        parts.append(
            f"### {title if not name else f'`{title}`'}\n\n{text}\n\n{_table(('argument', 'meaning'), rows)}"
        )
    return "\n".join(parts)


def _as_markdown(text: str) -> str:
    return re.sub(r"([*_<>`])", r"\\\1", text or "")


def _as_markdown_block(text: str) -> str:
    """The help of a command: paragraphs; the indented ones and those of commands are code."""
    parts = []
    for part in inspect.cleandoc(text.replace("\b", "")).split("\n\n"):
        if part.lstrip().startswith("kompute-py "):
            parts.append(f"```sh\n{inspect.cleandoc(part)}\n```")
        else:
            parts.append(_as_markdown(" ".join(part.split())))
    return "\n\n".join(parts)


def magics() -> str:
    """A section for each magic of notebooks, with all arguments and options."""
    from kompute_py.notebook import magics as module

    parts: dict[str, tuple[list[str], str]] = {}
    for name, kind in magic_names():
        parser = module.parser_of(name)
        rows = []
        for action in parser._actions:
            if action.option_strings:
                value = action.metavar or ("|".join(action.choices) if action.choices else "")
                value = value or ("" if action.nargs == 0 else action.dest.upper())
                shown = ", ".join(action.option_strings) + (f" {value}" if value else "")
            else:
                shown = action.dest
            meaning = action.help or (f"default: {action.default}" if action.default is not None else "")
            rows.append((f"`{shown}`", _as_markdown(meaning)))
        sign = "%%" if kind == "cell" else "%"
        table = _table(("argument", "meaning"), rows)
        # Magics of the same options share a table.
        first = parts.setdefault(table, ([], _as_markdown(parser.description or "")))
        first[0].append(f"`{sign}{name}`")
    return "\n".join(f"### {', '.join(names)}\n\n{text}\n\n{table}" for table, (names, text) in parts.items())


def magic_names() -> list[tuple[str, str]]:
    """The magics with their kinds, "cell" or "line"."""
    from kompute_py.notebook.magics import KomputeMagics

    return [(name, kind) for kind in ("cell", "line") for name in KomputeMagics.magics[kind]]


def errors() -> str:
    """Each error class, its status code, the Python errors that it also is, and its first sentence."""
    rows = []
    for name in kp.errors.__all__:
        kind = getattr(kp.errors, name)
        if not issubclass(kind, BaseException):
            continue
        also = [base.__name__ for base in kind.__mro__[1:] if base.__module__ == "builtins"]
        also = [each for each in also if each not in ("object", "BaseException", "Exception", "Warning")]
        code = f"{kind.code.name} ({kind.code:d})" if issubclass(kind, kp.KomputeError) else ""
        builtins = ", ".join(f"`{a}`" for a in also)
        rows.append((_link(f"kompute_py.errors.{name}"), code, builtins, first_sentence(kind)))
    return _table(("error", "code", "is also", "meaning"), rows)


def _link(name: str) -> str:
    return f"{{py:obj}}`~{name}`"


def first_sentence(thing: Any) -> str:
    """The first sentence of a docstring."""
    paragraph = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.:;])\s", paragraph)[0].rstrip(":;")
    return re.sub(r"``(.+?)``", r"`\1`", sentence)


def names() -> str:
    """Every public name with its first sentence: functions, classes, errors."""
    from public import is_alias, public_objects

    groups: dict[str, list[tuple[str, str]]] = {"Functions": [], "Classes": [], "Errors and warnings": []}
    for name, thing in public_objects():
        if is_alias(name, thing):
            about = f"Kompute's name for `{thing.__name__}`."
        else:
            about = first_sentence(thing)
        error = inspect.isclass(thing) and issubclass(thing, BaseException)
        group = "Errors and warnings" if error else "Classes" if inspect.isclass(thing) else "Functions"
        groups[group].append((_link(name), about))
    return "\n".join(
        f"## {group}\n\n{_table(('name', 'meaning'), sorted(rows))}" for group, rows in groups.items()
    )


def types() -> str:
    """An entry for each type of `kompute_py.typing`: its text, and its values, keys or members."""
    import typing

    from public import module_texts

    import kompute_py.typing as module
    from kompute_py._base import annotations
    from kompute_py._device import annotations as of_devices

    texts = {**module_texts(annotations), **module_texts(of_devices)}
    parts = []
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) and not typing.is_typeddict(thing) and not hasattr(thing, "_is_protocol"):
            parts.append(f"```{{eval-rst}}\n.. autoclass:: kompute_py.typing.{name}\n```\n")
            continue
        text = texts.get(name) or inspect.getdoc(thing) or ""
        text = re.sub(r"``(.+?)``", r"`\1`", text)
        if typing.get_origin(thing) is typing.Literal:
            text += "\n\nOne of " + ", ".join(f"`{value!r}`" for value in typing.get_args(thing)) + "."
        elif typing.is_typeddict(thing):
            text += "\n\nKeys: " + ", ".join(f"`{key}`" for key in thing.__annotations__) + "."
        kind = "class" if inspect.isclass(thing) and thing.__module__.startswith("kompute_py") else "data"
        parts.append(f"```{{py:{kind}}} kompute_py.typing.{name}\n{text}\n```\n")
    return "\n".join(parts)


FACTS = ("dtypes", "axes", "error")
"""The fields at the end of each docstring of the library of operations."""


def facts_of(thing: Any) -> dict[str, str]:
    """The fields `FACTS` of a docstring: of ":dtypes: all", "all"; without those that it lacks."""
    text = inspect.getdoc(thing) or ""
    found = re.findall(rf"^:({'|'.join(FACTS)}): +(.+(?:\n +.+)*)", text, re.M)
    return {name: re.sub(r"``(.+?)``", r"`\1`", " ".join(value.split())) for name, value in found}


def library() -> str:
    """Every function of `kp.ops` by area: meaning, dtypes, axes, error bound, measured time per element."""
    import json
    from pathlib import Path

    from kompute_py import ops

    measured = json.loads((Path(__file__).parents[2] / "benchmarks/library/measured.json").read_text())
    parts = []
    for module, names in ops._MODULES.items():
        area = module.rpartition(".")[2]
        times = measured.get(area, {})
        things = [(name, getattr(ops, name)) for name in names]
        rows = [
            (
                _link(f"kompute_py.ops.{name}"),
                first_sentence(thing),
                *(facts_of(thing)[each] for each in FACTS),
                " beside ".join(filter(None, times.get(name, ()))),
            )
            for name, thing in things
            if facts_of(thing)
        ]
        if rows:
            heads = ("function", "meaning", *FACTS, "ns")
            parts.append(f"## {AREAS[area]}\n\n{_table(heads, rows)}\nMeasured {times['when']}.\n")
    return "\n".join(parts)


AREAS = {
    "elements": "Elements",
    "making": "New tensors",
    "reductions": "Reductions",
    "nans": "Without NaN",
    "spreads": "Weighted means, differences",
    "repairs": "Repairs, angles, polynomials",
    "scans": "Scans",
    "searching": "Searching and counting",
    "counted": "Results of any length",
    "quantiles": "Quantiles",
    "interpolating": "Lines and bins",
    "sets": "Sets",
    "scattering": "Elements combined at indices",
    "sorting": "Sorting",
    "moving": "Moving elements",
    "joining": "Tensors behind each other",
    "packing": "Packing",
    "repeating": "Repeated elements",
    "splitting": "Parts",
    "indexing": "Indices",
    "matrices": "Matrices",
    "einsum": "Sums of products",
    "products": "Products, covariances and norms",
    "network": "Networks",
    "filters": "Filters",
    "windows": "Filters of several axes",
    "pictures": "Pictures",
    "resizing": "Other sizes",
    "fourier": "Fourier transforms",
}
"""The titles of the modules of `kp.ops`."""


DIRECTIVES: dict[str, Callable[[], str]] = {
    "kp-options": options,
    "kp-variables": variables,
    "kp-commands": commands,
    "kp-magics": magics,
    "kp-errors": errors,
    "kp-names": names,
    "kp-types": types,
    "kp-library": library,
}


def setup(app: Any) -> dict[str, Any]:
    """Adds the directives."""
    from sphinx.util.docutils import SphinxDirective

    def directive(make: Callable[[], str]) -> type:
        class Generated(SphinxDirective):
            has_content = False

            def run(self) -> list[Any]:
                return self.parse_text_to_nodes(make(), allow_section_headings=True)

        return Generated

    for name, make in DIRECTIVES.items():
        app.add_directive(name, directive(make))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
