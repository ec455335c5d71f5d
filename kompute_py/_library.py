"""The package's own shaders, which the build compiled to SPIR-V."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from . import _native
from .errors import NotFoundError


@cache
def library_shader(name: str) -> bytes:
    """The SPIR-V of ``shaders/<name>.comp``. Raises NotFoundError where the installation lacks it."""
    # Next to the native module, not to this file: an editable install keeps built files apart from the sources.
    path = Path(_native.__file__).parent / "shaders" / f"{name}.spv"
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotFoundError(
            f"The installation has no shader {name!r} ({error}); install kompute-py again"
        ) from error
