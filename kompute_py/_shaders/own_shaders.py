"""The package's own shaders, compiled to SPIR-V by the build."""

from __future__ import annotations

import os
from functools import cache

from .. import _native
from .._base.errors import NotFoundError


@cache
def library_shader(name: str) -> bytes:
    """The SPIR-V of ``shaders/<name>.comp``. Raises NotFoundError if the installation lacks it."""
    # Beside the native module, because an editable install keeps built files apart from the sources.
    # os.path: pathlib costs milliseconds at import.
    path = os.path.join(os.path.dirname(_native.__file__), "shaders", f"{name}.spv")
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise NotFoundError(
            f"The installation has no shader {name!r} ({error}); install kompute-py again"
        ) from error
