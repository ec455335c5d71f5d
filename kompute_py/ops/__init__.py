"""Operations, and the builders that make them from a line of text.

``kp.ops.NAME`` is the library that `kp.op_library` made with that name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._custom.library import libraries

if TYPE_CHECKING:
    from .._builders.elementwise import elementwise
    from .._builders.reduction import reduction
    from .._builders.scan import scan
    from ._counted import (
        bincount,
        compress,
        extract,
        flatnonzero,
        histogram,
        nonzero,
        unique,
    )
    from ._fourier import fft, fft2, fftn, ifft, ifft2, ifftn, irfft, irfft2, irfftn, rfft, rfft2, rfftn
    from ._reductions import (
        all,
        any,
        argmax,
        argmin,
        count_nonzero,
        dot,
        max,
        mean,
        min,
        norm,
        prod,
        std,
        sum,
        var,
    )
    from ._scans import (
        cummax,
        cummin,
        cumprod,
        cumsum,
    )
    from ._searching import (
        bin_counts,
        int_counts,
        nonzero_places,
        run_starts,
        searchsorted,
        selected,
    )
    from ._sorting import argsort, segmented_sort, sort, sort_by_key, topk

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "bin_counts",
    "bincount",
    "compress",
    "count_nonzero",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "dot",
    "elementwise",
    "extract",
    "fft",
    "fft2",
    "fftn",
    "flatnonzero",
    "histogram",
    "ifft",
    "ifft2",
    "ifftn",
    "int_counts",
    "irfft",
    "irfft2",
    "irfftn",
    "max",
    "mean",
    "min",
    "nonzero",
    "nonzero_places",
    "norm",
    "prod",
    "reduction",
    "rfft",
    "rfft2",
    "rfftn",
    "run_starts",
    "scan",
    "searchsorted",
    "segmented_sort",
    "selected",
    "sort",
    "sort_by_key",
    "std",
    "sum",
    "topk",
    "unique",
    "var",
]

_MODULES: dict[str, tuple[str, ...]] = {
    ".._builders.elementwise": ("elementwise",),
    ".._builders.reduction": ("reduction",),
    ".._builders.scan": ("scan",),
    "._counted": (
        "bincount",
        "compress",
        "extract",
        "flatnonzero",
        "histogram",
        "nonzero",
        "unique",
    ),
    "._scans": (
        "cummax",
        "cummin",
        "cumprod",
        "cumsum",
    ),
    "._searching": (
        "bin_counts",
        "int_counts",
        "nonzero_places",
        "run_starts",
        "searchsorted",
        "selected",
    ),
    "._fourier": (
        "fft",
        "ifft",
        "rfft",
        "irfft",
        "fft2",
        "ifft2",
        "rfft2",
        "irfft2",
        "fftn",
        "ifftn",
        "rfftn",
        "irfftn",
    ),
    "._sorting": ("argsort", "segmented_sort", "sort", "sort_by_key", "topk"),
    "._reductions": (
        "all",
        "any",
        "argmax",
        "argmin",
        "count_nonzero",
        "dot",
        "max",
        "mean",
        "min",
        "norm",
        "prod",
        "std",
        "sum",
        "var",
    ),
}
"""The public names by the module that has them; each is imported when one of its names is first used."""

_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(_HOMES[name], __name__), name)
        return found
    found = libraries.get(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}, and no library has that name")
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *libraries})
