"""The documentation site. `./dev docs` builds it to build/docs/html: warnings are errors, no network."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

from inventories import write_inventory  # noqa: E402
from public import foreign_bases  # noqa: E402

import kompute_py as kp  # noqa: E402

project = "kompute_py"
author = "the kompute_py project"
copyright = "the kompute_py project, Apache-2.0"
version = release = kp.__version__
language = "en"
smartquotes = False  # quotes in the text are those of code

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
    "form",
    "names",
    "synonyms",
    "tables",
    "shaders_in_strings",
]
# The flat pages of docs/ are those that the folders replace: they stay readable, outside of the contents.
exclude_patterns = ["_ext", "_inventories"]
nitpicky = True

# ---------------------------------------------------------------------------------------------- Markdown
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist", "substitution"]
myst_heading_anchors = 4

# --------------------------------------------------------------------------------------------- notebooks
nb_execution_mode = "force"
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True
suppress_warnings = [
    "mystnb.unknown_mime_type"
]  # a sequence also has a graph that GitHub and JupyterLab draw
# Widgets need a kernel, and their scripts a network.
nb_ipywidgets_js = {}
nb_mime_priority_overrides = [
    ("*", "text/html", 0),
    ("*", "image/png", 1),
    ("*", "text/markdown", 2),
    ("*", "application/vnd.jupyter.widget-view+json", None),
    ("*", "text/vnd.mermaid", None),
]

# --------------------------------------------------------------------------------------------- reference
# A class lists inherited members, except those of Python's classes and of bases that have their own entry.
autodoc_default_options = {
    "members": True,
    "undoc-members": True,
    "inherited-members": ",".join(sorted(foreign_bases() | {"OpBase", "KomputeError", "KomputeWarning"})),
}
autodoc_member_order = "groupwise"
autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"
default_role = "kp"

# No network at build time: the names that the pages use lie in _inventories as text.
_built = HERE.parent / "build" / "docs" / "inventories"
intersphinx_mapping = {
    "python": ("https://docs.python.org/3/", str(write_inventory(HERE / "_inventories/python.txt", _built))),
    "numpy": ("https://numpy.org/doc/stable/", str(write_inventory(HERE / "_inventories/numpy.txt", _built))),
}
intersphinx_timeout = 0.1

# ------------------------------------------------------------------------------------------------- looks
html_theme = "furo"
html_title = "kompute_py"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_search_scorer = str(HERE / "_ext" / "search.js")
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
