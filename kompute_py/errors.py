"""Errors: one tree under `KomputeError`, each class also the Python built-in that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._base.errors import (
    AbortedError,
    AlreadyExistsError,
    ArgumentTypeError,
    ArrayAttributeError,
    CancelledError,
    CompileTimeoutError,
    DeviceLostError,
    Diagnostic,
    DonatedTensorError,
    ErrorCode,
    EvalTimeoutError,
    ExchangeError,
    FailedPreconditionError,
    FormulaError,
    InternalError,
    InvalidArgumentError,
    KomputeError,
    KomputeWarning,
    NonFiniteError,
    NotFoundError,
    NumberRangeError,
    OutOfMemoryError,
    OutOfRangeError,
    PermissionDeniedError,
    ShaderCompileError,
    ShaderCompileWarning,
    SignatureError,
    UnavailableError,
    UnimplementedError,
    ValidationError,
    _restore,  # noqa: F401 - pickles of errors name it
)
from ._base.public import offer, publish

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "ArgumentTypeError",
    "ArrayAttributeError",
    "CancelledError",
    "CompileTimeoutError",
    "DeviceLostError",
    "Diagnostic",
    "DonatedTensorError",
    "ErrorCode",
    "EvalTimeoutError",
    "ExchangeError",
    "FailedPreconditionError",
    "FormulaError",
    "InternalError",
    "InvalidArgumentError",
    "KomputeError",
    "KomputeWarning",
    "NonFiniteError",
    "NotFoundError",
    "NumberRangeError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ShaderCompileError",
    "ShaderCompileWarning",
    "SignatureError",
    "UnavailableError",
    "UnimplementedError",
    "ValidationError",
]

# Tracebacks, help() and pickles name this module, not the one that defines the classes.
for _name in __all__:
    publish(globals()[_name], __name__)

if not TYPE_CHECKING:  # so that a checker of types knows the names that there are
    __getattr__, __dir__ = offer(__name__, __all__)
