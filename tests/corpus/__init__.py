"""Compute shaders that other projects publish, as a test: each that the stock compiler accepts loads as a
Kernel with a right signature, or is refused with the name of what is missing.

Nothing of theirs is kept here. `archives` fetches what package registries distribute, `shaders` lists the
sources in it, `stock` asks the compilers and SPIRV-Cross as they are installed, `judge` compares a Kernel
with their answer in a process of its own, where a crash is a result like others. `python -m tests.corpus`
judges all and prints a table.
"""

from .archives import ARCHIVES, CorpusUnavailableError
from .judge import Verdict, judged
from .shaders import Published, published

__all__ = ["ARCHIVES", "CorpusUnavailableError", "Published", "Verdict", "judged", "published"]
