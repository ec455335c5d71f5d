"""The exception tree and the enumerations: no device, no Vulkan."""

from __future__ import annotations

import copy
import enum
import inspect
import pickle
import re
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest

from kompute_py import errors
from kompute_py._base import types
from kompute_py._base.errors import from_native
from kompute_py.errors import Diagnostic, ErrorCode, KomputeError, ShaderCompileError

pytestmark = pytest.mark.own_driver  # one pass of the suite is enough

# Class, the built-in that it also is, status code, the core's name for it.
TREE = [
    ("InvalidArgumentError", ValueError, ErrorCode.INVALID_ARGUMENT, "invalid_argument"),
    ("ArgumentTypeError", TypeError, ErrorCode.INVALID_ARGUMENT, "argument_type"),
    ("OutOfRangeError", IndexError, ErrorCode.OUT_OF_RANGE, "out_of_range"),
    ("NotFoundError", LookupError, ErrorCode.NOT_FOUND, "not_found"),
    ("OutOfMemoryError", MemoryError, ErrorCode.RESOURCE_EXHAUSTED, "out_of_memory"),
    ("EvalTimeoutError", TimeoutError, ErrorCode.DEADLINE_EXCEEDED, "eval_timeout"),
    ("FailedPreconditionError", RuntimeError, ErrorCode.FAILED_PRECONDITION, "failed_precondition"),
    ("DonatedTensorError", RuntimeError, ErrorCode.FAILED_PRECONDITION, "donated"),
    ("UnimplementedError", NotImplementedError, ErrorCode.UNIMPLEMENTED, "unimplemented"),
    ("UnavailableError", RuntimeError, ErrorCode.UNAVAILABLE, "unavailable"),
    ("DeviceLostError", RuntimeError, ErrorCode.UNAVAILABLE, "device_lost"),
    ("ShaderCompileError", ValueError, ErrorCode.INVALID_ARGUMENT, "shader_compile"),
    ("ExchangeError", BufferError, ErrorCode.FAILED_PRECONDITION, "exchange"),
    ("AbortedError", RuntimeError, ErrorCode.ABORTED, "aborted"),
    ("CancelledError", RuntimeError, ErrorCode.CANCELLED, "cancelled"),
    ("InternalError", RuntimeError, ErrorCode.INTERNAL, "internal"),
]
MESSAGE = "Tensor 'x' is gone: it's \"destroyed\"; make a new one"


def test_the_status_codes_are_the_canonical_ones() -> None:
    names = [
        "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
        "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
        "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
    ]  # fmt: skip
    assert {code.name: int(code) for code in ErrorCode} == {name: number for number, name in enumerate(names)}


def test_the_list_here_is_the_whole_tree() -> None:
    defined = {
        name
        for name, cls in vars(errors).items()
        if inspect.isclass(cls) and issubclass(cls, KomputeError) and cls is not KomputeError
    } - {
        "ArrayAttributeError", "CompileTimeoutError", "NonFiniteError", "ValidationError",
        "AlreadyExistsError", "SignatureError", "FormulaError", "NumberRangeError", "PermissionDeniedError",
    }  # fmt: skip
    # Python alone makes these.
    assert defined == {name for name, *_ in TREE}
    assert set(errors.__all__) >= defined


@pytest.mark.parametrize(("name", "builtin", "code", "kind"), TREE)
class TestEachError:
    def test_is_caught_as_its_builtin_and_as_ours(
        self, name: str, builtin: type[Exception], code: ErrorCode, kind: str
    ) -> None:
        cls = getattr(errors, name)
        for caught in (cls, builtin, KomputeError, RuntimeError):
            with pytest.raises(caught) as info:
                raise cls(MESSAGE, vk_result=-2)
            assert type(info.value) is cls

    def test_carries_message_code_and_result(
        self, name: str, builtin: type[Exception], code: ErrorCode, kind: str
    ) -> None:
        cls = getattr(errors, name)
        error = cls(MESSAGE, vk_result=-4)
        assert str(error) == MESSAGE
        assert error.args == (MESSAGE,)
        assert error.code is code
        assert error.vk_result == -4
        assert cls(MESSAGE).vk_result == 0
        assert str(cls()) == ""
        assert traceback.format_exception_only(cls, error) == [f"kompute_py.errors.{name}: {MESSAGE}\n"]
        with pytest.raises(TypeError):
            cls(MESSAGE, -4)  # a second positional argument would be ambiguous

    def test_survives_pickle_and_copy(
        self, name: str, builtin: type[Exception], code: ErrorCode, kind: str
    ) -> None:
        error = getattr(errors, name)(MESSAGE, vk_result=-1000069000)
        error.note = "set later"
        copies = [
            pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
        ]
        for again in (*copies, copy.copy(error), copy.deepcopy(error)):
            assert type(again) is type(error)
            assert again is not error
            assert str(again) == MESSAGE
            assert again.args == error.args
            assert again.vk_result == -1000069000
            assert again.code is code
            assert again.note == "set later"

    def test_comes_from_its_native_kind(
        self, name: str, builtin: type[Exception], code: ErrorCode, kind: str
    ) -> None:
        error = from_native(kind, MESSAGE, -3, [])
        assert type(error) is getattr(errors, name)
        assert str(error) == MESSAGE
        assert error.vk_result == -3


@pytest.mark.capability(
    "P53",
    "a class and a code for each kind of error",
    "kp.ErrorCode, kp.errors.CancelledError",
    "reference/errors",
)
def test_each_class_has_its_code() -> None:
    """Each class says its code itself or shares that of the class that it derives from."""
    codes = {
        getattr(errors, name).code
        for name in errors.__all__
        if isinstance(getattr(errors, name), type) and issubclass(getattr(errors, name), KomputeError)
    }
    assert set(ErrorCode) - codes == {ErrorCode.OK, ErrorCode.DATA_LOSS, ErrorCode.UNAUTHENTICATED}
    assert errors.DeviceLostError.code is ErrorCode.UNAVAILABLE
    error = errors.PermissionDeniedError(MESSAGE)
    assert isinstance(error, PermissionError) and isinstance(error, errors.UnavailableError)
    assert error.code is ErrorCode.PERMISSION_DENIED and str(pickle.loads(pickle.dumps(error))) == MESSAGE


def test_every_native_kind_has_a_class() -> None:
    header = Path(__file__).parents[2] / "native" / "core" / "base" / "error.hpp"
    body = re.search(r"enum class ErrorKind[^{]*{([^}]*)}", header.read_text(encoding="utf-8"))
    assert body is not None
    kinds = re.findall(r"^\s*(\w+),", body[1], re.MULTILINE)
    assert sorted(kinds) == sorted(kind for *_, kind in TREE)


def test_an_unknown_native_kind_is_an_internal_error() -> None:
    error = from_native("of_a_newer_core", MESSAGE, 0, [])
    assert type(error) is errors.InternalError
    assert str(error) == MESSAGE


def test_the_base_alone_has_no_particular_code() -> None:
    error = KomputeError("something")
    assert error.code is ErrorCode.UNKNOWN
    assert pickle.loads(pickle.dumps(error)).code is ErrorCode.UNKNOWN


def test_a_subclass_with_parameters_of_its_own_is_picklable() -> None:
    error = _WithParts("two parts", [1, 2])
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == "two parts"
    assert again.parts == [1, 2]


class _WithParts(KomputeError):
    def __init__(self, message: str, parts: list[int]) -> None:
        super().__init__(message)
        self.parts = parts


def test_a_key_error_of_ours_would_not_quote_its_message() -> None:
    class MissingKey(KomputeError, KeyError):
        pass

    assert str(MissingKey(MESSAGE)) == MESSAGE


def test_shader_compile_error_keeps_its_diagnostics() -> None:
    fields = ("blur.comp", 12, 9, "error", "'foo' : undeclared identifier", "    x = foo;")
    warning = Diagnostic("blur.comp", 3, 0, "warning", "unused")
    error = from_native("shader_compile", "blur.comp:12:9: error", 0, [fields, warning])
    assert isinstance(error, ShaderCompileError)
    assert isinstance(error, errors.InvalidArgumentError)
    assert error.diagnostics == [Diagnostic(*fields), warning]
    first = error.diagnostics[0]
    assert (first.file, first.line, first.column, first.severity, first.message, first.source_line) == fields
    assert warning.source_line == ""
    with pytest.raises(AttributeError):
        first.line = 13  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(error)).diagnostics == error.diagnostics
    assert ShaderCompileError("m").diagnostics == []


def test_the_cause_and_notes_work_as_for_any_exception() -> None:
    with pytest.raises(errors.NotFoundError) as info:
        try:
            raise OSError("disk")
        except OSError as cause:
            raise errors.NotFoundError("no file") from cause
    assert isinstance(info.value.__cause__, OSError)
    if hasattr(info.value, "add_note"):
        info.value.add_note("look in the folder")
        assert pickle.loads(pickle.dumps(info.value)).__notes__ == ["look in the folder"]


def test_our_warnings_can_be_filtered_alone() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", errors.KomputeWarning)
        with pytest.raises(UserWarning, match="probably"):
            warnings.warn("probably not meant", errors.KomputeWarning, stacklevel=1)


# Enumerations


def test_the_members_have_komputes_names_and_numbers() -> None:
    # Names and numbers of ours, after Kompute's: the floats of 8 bits.
    later = {name: member.value for name, member in types.DataTypes.__members__.items() if member.value > 15}
    assert all(name.startswith("float8_") for name in later) and sorted(later.values()) == list(range(16, 24))
    assert {
        name: member.value for name, member in types.DataTypes.__members__.items() if member.value <= 15
    } == {
        "bool": 0, "int": 1, "uint": 2, "float": 3, "double": 4, "custom": 5, "short": 6, "ushort": 7,
        "char": 8, "uchar": 9, "half": 10, "long": 11, "ulong": 12, "bfloat16": 13, "complex64": 14,
        "complex128": 15,
    }  # fmt: skip
    assert {name: member.value for name, member in types.MemoryTypes.__members__.items()} == {
        "device": 0, "host": 1, "storage": 2, "deviceAndHost": 3,
    }  # fmt: skip
    assert types.TensorTypes is types.MemoryTypes
    assert types.TensorDataTypes is types.DataTypes


@pytest.mark.parametrize("cls", [types.DataTypes, types.MemoryTypes])
def test_members_behave_as_pybind11s_do(cls: type[enum.IntEnum]) -> None:
    for name, member in cls.__members__.items():
        assert member.name == name
        assert int(member) == member.value
        assert type(int(member)) is int
        assert [*range(32)][member] == member.value  # __index__
        assert cls(member.value) is member
        assert cls[name] is member
        assert getattr(cls, name) is member
        assert str(member) == f"{member:}" == f"{cls.__name__}.{name}"
        assert f"{member:>30}" == str(member).rjust(30)
        assert repr(member) == f"<{cls.__name__}.{name}: {member.value}>"
        assert pickle.loads(pickle.dumps(member)) is member
        assert copy.deepcopy(member) is member
        assert len({member, cls(member.value)}) == 1
        assert [other for other in cls if other == member] == [member]
    with pytest.raises(ValueError):
        cls(99)


def test_memory_type_accepts_members_names_and_numbers() -> None:
    assert types.to_memory_type(None) is types.MemoryTypes.device
    for name, member in types.MemoryTypes.__members__.items():
        accepted = (member, name, name.lower(), name.upper(), int(member), np.int32(member), np.uint8(member))
        for value in accepted:
            assert types.to_memory_type(value) is member


@pytest.mark.parametrize("value", ["gpu", "", "device ", 4, -1, np.int64(17), 2**70])
def test_memory_type_refuses_unknown_values_and_lists_the_known(value: object) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="device, host, storage, deviceAndHost") as info:
        types.to_memory_type(value)  # type: ignore[arg-type]
    assert repr(value) in str(info.value) or str(value) in str(info.value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "float"), (True, "bool"), (b"device", "bytes"),
        (types.DataTypes.float, "DataTypes.float"), ([], "list"),
    ],
)  # fmt: skip
def test_memory_type_refuses_other_types_by_name(value: object, shown: str) -> None:
    with pytest.raises(
        errors.ArgumentTypeError,
        match=rf"\b{re.escape(shown)}(; use a|, a dtype, and not a) member of kp.MemoryTypes",
    ):
        types.to_memory_type(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.bool_, "bool"), (np.int8, "char"), (np.uint8, "uchar"), (np.int16, "short"),
        (np.uint16, "ushort"), (np.int32, "int"), (np.uint32, "uint"), (np.int64, "long"),
        (np.uint64, "ulong"), (np.longlong, "long"), (np.float16, "half"), (np.float32, "float"),
        (np.float64, "double"), (np.complex64, "complex64"), (np.complex128, "complex128"), (">f4", "float"),
        ([("position", "f4", 3), ("id", "u4")], "custom"), ("V12", "custom"),
    ],
)  # fmt: skip
def test_data_type_of_each_dtype(dtype: object, expected: str) -> None:
    assert types.data_type_of(np.dtype(dtype)) is types.DataTypes[expected]  # type: ignore[call-overload]


def test_data_type_of_bfloat16() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert types.data_type_of(np.dtype(ml_dtypes.bfloat16)) is types.DataTypes.bfloat16


UNSUPPORTED = ["O", "U4", "S3", "M8[s]", "m8[ns]", [("a", "O")], "V0"]
# Where long double is longer than double.
UNSUPPORTED += [long for long, usual in ("gd", "GD") if np.dtype(long).itemsize > np.dtype(usual).itemsize]


@pytest.mark.parametrize("dtype", UNSUPPORTED, ids=str)
def test_data_type_of_refuses_what_a_device_has_no_element_for(dtype: object) -> None:
    made = np.dtype(dtype)  # type: ignore[call-overload]
    with pytest.raises(errors.ArgumentTypeError) as info:
        types.data_type_of(made)
    assert str(made) in str(info.value)
    assert "convert" in str(info.value) or "view" in str(info.value)
