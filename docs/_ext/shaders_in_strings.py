"""Colours shaders inside of Python's strings: a shader is half of many programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pygments.lexers.graphics import GLShaderLexer, HLSLShaderLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Error, String

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_STRING = re.compile(r'(?<![fF])"""(.*?)"""|(?<![fF])\'\'\'(.*?)\'\'\'', re.DOTALL)
_GLSL = re.compile(r"\s*(?://[^\n]*\s*)*(?:#version\b|layout\s*\()")
_ENTRY = "[numthreads("  # of HLSL and Slang


class PythonWithShaders(PythonLexer):
    """Python, in which triple-quoted strings that begin as GLSL does are coloured as GLSL, and those with an
    entry point of HLSL or Slang as HLSL.
    """

    def get_tokens_unprocessed(self, text: str, stack: Any = ("root",)) -> Iterator[tuple[int, Any, str]]:
        """The tokens of `text`: (place, kind, text)."""
        tokens = super().get_tokens_unprocessed(text, stack)
        shaders = []
        for match in _STRING.finditer(text):
            begin, stop = match.span(1 if match[1] is not None else 2)
            if _GLSL.match(text, begin, stop):
                shaders.append((begin, stop, GLShaderLexer()))
            elif text.find(_ENTRY, begin, stop) >= 0:
                shaders.append((begin, stop, HLSLShaderLexer()))
        done = 0  # the tokens before this place are there
        for place, kind, value in tokens:
            end = place + len(value)
            while shaders and shaders[0][0] < end:
                begin, stop, lexer = shaders.pop(0)
                if kind not in String or begin < max(place, done):
                    continue
                # A string at the beginning of a line is one token, with its quotes.
                at = max(place, done)
                if begin > at:
                    yield at, kind, text[at:begin]
                for at, shader_kind, part in lexer.get_tokens_unprocessed(text[begin:stop]):
                    # The lexer knows no strings, which debugPrintfEXT has.
                    yield begin + at, String if shader_kind is Error else shader_kind, part
                done = stop
            if end > done:
                at = max(place, done)
                yield at, kind, text[at:end]


def setup(app: Sphinx) -> dict[str, Any]:
    """Colours blocks of Python with it."""
    app.add_lexer("python", PythonWithShaders)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
