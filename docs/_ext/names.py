"""Names of kompute_py in the site: the role of `name` in docstrings, short names of types, and the check that
every public name is documented.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from public import PACKAGE, field_text, is_alias, is_refusal, members, public_objects, readable
from pygments.lexers.special import TextLexer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging

import kompute_py as kp
import kompute_py.typing

log = logging.getLogger(__name__)

TYPES = frozenset(kompute_py.typing.__all__)
_SHORT = re.compile(r"^(?:kompute_py|kp)\.")
# What annotations name, and its place in other sites.
_ELSEWHERE = {
    "ArrayLike": "numpy.typing.ArrayLike",
    "DTypeLike": "numpy.typing.DTypeLike",
    "NDArray": "numpy.typing.NDArray",
    "np.dtype": "numpy.dtype",
    "np.ndarray": "numpy.ndarray",
    "np.generic": "numpy.generic",
    "np.float32": "numpy.float32",
    "np.random.SeedSequence": "numpy.random.SeedSequence",
    "UUID": "uuid.UUID",
    "Any": "typing.Any",
    "Self": "typing.Self",
    "t.Any": "typing.Any",
}


def show_signature(
    app: Sphinx, what: str, name: str, value: Any, options: Any, arguments: str | None, result: str | None
) -> tuple[str | None, str | None]:
    """Each signature as `readable` has it."""
    return arguments and readable(arguments), result and readable(result)


def resolve(text: str, inside: str | None = None) -> str | None:
    """The public name that `text` means: "kp.compile", "mgr.kernel(...)", "Tensor.write", or, in the text of
    the class `inside`, "write"; None if it is not one.
    """
    name = _SHORT.sub("", text.partition("(")[0].removeprefix("@"))
    name = re.sub(r"^mgr\.", "Manager.", name)
    if not re.fullmatch(r"\w+(\.\w+)*", name):
        return None
    first, _, rest = name.partition(".")
    if first in kp.__all__ and (not rest or _has(getattr(kp, first), rest)):
        return f"{PACKAGE}.{name}"
    if inside and not rest and _has(getattr(kp, inside, None), name):
        return f"{PACKAGE}.{inside}.{name}"
    return None


def _has(kind: Any, name: str) -> bool:
    return inspect.isclass(kind) and any(each == name for each, _ in members(kind))


def kp_role(
    role: str, raw: str, text: str, line: int, inliner: Any, options: Any = None, content: Any = ()
) -> Any:
    """`name` in a docstring: code, and a link if it is a public name."""
    code = nodes.literal(raw, text, classes=["xref", "py"])
    env = inliner.document.settings.env
    inside = (env.ref_context.get("py:class") or "").rpartition(".")[2] or None
    target = resolve(text, inside)
    if target is None:
        return [nodes.literal(raw, text)], []
    found = addnodes.pending_xref(
        raw,
        code,
        refdomain="py",
        reftype="obj",
        reftarget=target,
        refdoc=env.docname,
        refexplicit=True,
        refwarn=True,
    )
    return [found], []


def skip_member(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leaves out the attributes that only raise an error."""
    return True if is_refusal(value) else None


def lay_out(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Makes docstrings reStructuredText: sections such as "Args:"."""
    # Taken as a method's: of a property, "The size: in bytes" would be a type and a text.
    kind = "method" if what in ("property", "attribute", "data") else what
    lines[:] = GoogleDocstring(list(lines), _STYLE, app, kind, name, value, options).lines()


def add_field_texts(app: Sphinx, env: Any, added: Any, changed: Any, removed: Any) -> list[str]:
    """Gives Sphinx the texts below fields. It looks for them in the file of the class's module, but published
    classes name the package.
    """
    for module in (kp, kp.errors):
        analyzer = ModuleAnalyzer.for_module(module.__name__)
        analyzer.analyze()
        for name, thing in public_objects():
            if inspect.isclass(thing) and not is_alias(name, thing):
                for member, _ in members(thing):
                    text = field_text(thing, member)
                    if text and not _is_of_public_base(thing, member):
                        analyzer.attr_docs[thing.__name__, member] = [*text.splitlines(), ""]
    return []


def _is_of_public_base(kind: type, member: str) -> bool:
    return member not in vars(kind) and any(member in vars(base) for base in kind.__mro__ if _is_public(base))


def _is_public(kind: type) -> bool:
    return getattr(kp, kind.__name__, None) is kind


_STYLE = Config(napoleon_use_rtype=False)


def find_elsewhere(app: Sphinx, env: Any, node: Any, contnode: Any) -> Any:
    """Types in annotations: those of NumPy under their short names, and private ones as plain text."""
    if node.get("refdomain") != "py":
        return None
    target = node.get("reftarget", "")
    public = resolve(target)
    if target in TYPES:
        public = f"{PACKAGE}.typing.{target}"
    if public and public != target:
        found = env.get_domain("py").resolve_xref(
            env, node["refdoc"], app.builder, "obj", public, _renamed(node, public), contnode
        )
        if found is not None:
            return found
    for short, whole in _ELSEWHERE.items():
        if target in (short, f"npt.{short}", f"numpy._typing.{short}"):
            from sphinx.ext.intersphinx import missing_reference

            return missing_reference(app, env, _renamed(node, whole), contnode) or contnode
    # An alias of a type that has no page: annotations alone name these without their module.
    return contnode if _is_private(target) or (node.get("reftype") == "class" and "." not in target) else None


def _renamed(node: Any, target: str) -> Any:
    copy = node.copy()
    copy["reftarget"], copy["reftype"] = target, "obj"
    return copy


def _is_private(target: str) -> bool:
    return any(part.startswith("_") for part in target.split("."))


def color_cells(app: Sphinx, doctree: Any) -> None:
    """Cells of shaders in notebooks are coloured as shaders."""
    for block in doctree.findall(nodes.literal_block):
        found = re.match(r"%%(glsl|hlsl|slang)\b", block.astext())
        if found:
            block["language"], block["force"] = {"slang": "hlsl"}.get(found[1], found[1]), True


def mark_old_pages(app: Sphinx, page: str, source: list[str]) -> None:
    """The flat pages, until the folders' pages replace them: built, and in no list of contents."""
    if "/" not in page and page != "index":
        source[0] = "---\norphan: true\n---\n" + source[0]


def check_all(app: Sphinx, env: Any) -> None:
    """Warns for each public name that no page of the reference describes; warnings are errors here."""
    described = env.get_domain("py").objects
    for name, thing in public_objects():
        if name not in described:
            log.warning("%s is public and has no entry in docs/reference", name)
        if inspect.isclass(thing) and not is_alias(name, thing):
            for member, _ in members(thing):
                bases = [f"{PACKAGE}.{base.__name__}" for base in thing.__mro__ if hasattr(kp, base.__name__)]
                if not any(f"{base}.{member}" in described for base in (name, *bases)):
                    log.warning("%s.%s is public and has no entry in docs/reference", name, member)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connects all of this."""
    app.add_role("kp", kp_role)
    app.add_lexer("mermaid", TextLexer)  # a sequence in a notebook: GitHub draws it, here it is text
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", lay_out)
    app.connect("autodoc-process-signature", show_signature)
    app.connect("env-get-outdated", add_field_texts)
    app.connect("source-read", mark_old_pages)
    app.connect("doctree-read", color_cells)
    app.connect("missing-reference", find_elsewhere, priority=450)
    app.connect("env-check-consistency", check_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
