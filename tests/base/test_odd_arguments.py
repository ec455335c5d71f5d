"""Arguments that are odd rather than wrong: refused by an error of ours that names them, or taken for what
they are.
"""

from __future__ import annotations

import array
import ctypes
import json
import os
import random
import time

import numpy as np
import pytest

import kompute_py as kp
from tests.support.child import run_child

SOURCE = """#version 450
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) buffer Data { float data[]; };
layout(push_constant) uniform Push { float f; };
void main() { data[gl_GlobalInvocationID.x] *= f; }
"""
# Each level of the macro doubles the text.
BOMB = (
    "#version 450\nlayout(local_size_x = 1) in;\nlayout(set = 0, binding = 0) buffer Data { float data[]; "
    "};\n"
    "#define A0 data[0] += 1.0;\n"
    + "".join(f"#define A{i} A{i - 1} A{i - 1}\n" for i in range(1, 22))
    + "void main() { A21 }\n"
)


# -- what converts -------------------------------------------------------------------------------------------


def numbers_as() -> dict[str, object]:
    return {
        "ctypes": (ctypes.c_float * 4)(1, 2, 3, 4),
        "array.array": array.array("f", [1, 2, 3, 4]),
        "memoryview": memoryview(array.array("f", [1, 2, 3, 4])),
        "memoryview of bytes": memoryview(np.array([1, 2, 3, 4], np.float32).tobytes()).cast("f"),
    }


@pytest.mark.parametrize("kind", list(numbers_as()))
def test_what_has_a_buffer_is_data_and_a_kernel_argument(mgr, kind):
    expected = [1.0, 2.0, 3.0, 4.0]
    assert mgr.tensor(numbers_as()[kind]).data().tolist() == expected
    typed = mgr.tensor_t(numbers_as()[kind])
    assert typed.dtype == np.float32 and typed.data().tolist() == expected
    target = mgr.zeros(4)
    target.write(numbers_as()[kind])
    assert target.read().tolist() == expected
    given = numbers_as()[kind]
    k = mgr.kernel(SOURCE)
    if kind == "memoryview of bytes":
        with pytest.raises(kp.InvalidArgumentError, match="read-only"):
            k(given, f=2.0)
    else:
        k(given, f=2.0)
        assert list(given) == [2.0, 4.0, 6.0, 8.0]


@pytest.mark.parametrize("mask", [[True, False, False, False], [False] * 4])
def test_masked_arrays_are_refused_everywhere(mgr, mask):
    masked = np.ma.masked_array(np.arange(4, dtype=np.float32), mask)
    t = mgr.zeros(4)
    k = mgr.kernel(SOURCE)
    for use in (
        lambda: mgr.tensor(masked),
        lambda: mgr.tensor_t(masked),
        lambda: kp.Tensor(mgr, masked),
        lambda: t.write(masked),
        lambda: t.fill(masked),
        lambda: mgr.image(masked.reshape(2, 2)),
        lambda: k(masked, f=1.0),
    ):
        with pytest.raises(kp.ArgumentTypeError, match="masked array"):
            use()


# -- what is refused -----------------------------------------------------------------------------------------


def test_push_constants_of_another_size_name_themselves(mgr):
    k = mgr.kernel(SOURCE)
    t = mgr.zeros(4)
    for wrong in (np.array([1, 2]), np.zeros((2, 2)), np.array([])):
        with pytest.raises(kp.InvalidArgumentError, match=r"f is an array of shape .*one float"):
            k(t, f=wrong)
    k(t, f=np.array([2.0]))


def test_numbers_beyond_every_int(mgr):
    t = mgr.zeros(4)
    for huge in (2**31, 2**32, 2**63, 2**64, 2**200):
        if huge >= 2**63:
            with pytest.raises(kp.InvalidArgumentError, match="total_timestamps"):
                mgr.sequence(0, huge)
        with pytest.raises(kp.OutOfRangeError, match="queue_index"):
            mgr.sequence(huge)
        for index in (huge, -huge, (huge,)):
            with pytest.raises(kp.OutOfRangeError, match=r"has no \["):
                t[index]


def test_descriptions_of_devices_that_are_odd():
    """`kp.check` of mutated descriptions: a list of findings, or an error of ours."""
    random_ = random.Random(1)
    spirv = kp.compile(SOURCE)
    good = json.loads(json.dumps(kp.list_devices()[0]))
    odd = [
        None, True, -1, 0.5, 2**40, 2**70, "", "a\0", "\ud800", [], {}, [1], {"a": 1}, {"\ud800": True},
        [["a"]], float("nan"),
    ]  # fmt: skip
    refused = 0
    for _ in range(400):
        changed = json.loads(json.dumps(good))
        place = changed
        while True:
            key = random_.choice(list(place))
            if isinstance(place[key], dict) and place[key] and random_.random() < 0.6:
                place = place[key]
                continue
            break
        if random_.random() < 0.2:
            place[random_.choice(odd[6:9])] = random_.choice(odd)
        else:
            place[key] = random_.choice(odd)
        try:
            assert isinstance(kp.check(spirv, changed), list)
        except kp.KomputeError:
            refused += 1
    assert refused > 5


def test_a_module_that_nobody_validated_has_no_raw_errors():
    random_ = random.Random(2)
    spirv = bytearray(kp.compile(SOURCE))
    for _ in range(400):
        changed = bytearray(spirv)
        for _ in range(random_.randrange(1, 4)):
            at = random_.randrange(5, len(changed) // 4) * 4
            changed[at : at + 4] = random_.choice([0, 1, 2, 7, 2**31, 2**32 - 1]).to_bytes(4, "little")
        try:
            module = kp.ShaderModule(bytes(changed))
            str(module.signature), repr(module)
        except kp.KomputeError:
            pass


class Unwilling:
    """An object whose every conversion fails."""

    def __index__(self):
        raise RuntimeError("no index")

    __float__ = __str__ = __repr__ = __len__ = __index__


def test_arguments_that_convert_to_nothing(mgr):
    """Of every number, name and list there is, an object whose methods fail, an int of many digits, spans of
    time, odd buffers.
    """
    k, t = mgr.kernel(SOURCE), mgr.zeros(4)
    spirv = kp.compile(SOURCE)
    span = np.timedelta64(3, "s")
    ends = {
        "array": np.ones(2),
        "scalar": np.float32(1),
        "half": memoryview(np.ones(2, np.float16)),
        "span": span,
    }
    given = {**ends, "int": 10**5000, "object": Unwilling(), "void": np.void(b"abcd")}
    calls = {
        "timeout": lambda v: kp.compile(SOURCE, timeout=v) if v is not ends["scalar"] else None,
        "size_limit": lambda v: kp.compile(SOURCE, size_limit=v) if type(v) is not int else None,
        "glsl_version": lambda v: kp.compile(SOURCE, glsl_version=v if type(v) is not int else -v),
        "register_bases": lambda v: kp.compile(SOURCE, register_bases={"u": v}),
        "defines": lambda v: kp.compile(SOURCE, defines={"A": v}) if v is not ends["scalar"] else None,
        "device": kp.Manager,
        "devices": lambda v: kp.Manager([v]),
        "recent_pipelines": lambda v: kp.Manager(recent_pipelines=v),
        "uses": lambda v: k(t, f=1.0, uses=v),
        "bind": lambda v: k(t, f=1.0, bind=v),
        "specialize": lambda v: k.specialize({v: 1}) if v is span or type(v) in (int, Unwilling) else None,
        "names": lambda v: kp.load_tensors("none", mgr, names=v),
        "shape": lambda v: mgr.zeros(v),
        "slice": lambda v: t[::v],
        "copy_to": lambda v: t.copy_to(v),
        "from_dlpack": lambda v: kp.from_dlpack(v, mgr) if v is not ends["array"] else None,
        "check": lambda v: kp.check(spirv, v),
    }
    missing = []
    for name, call in calls.items():
        for kind, value in given.items():
            try:
                call(value)
            except kp.KomputeError:
                continue
            except Exception as error:
                missing.append(f"{name} of {kind}: {type(error).__name__}: {error}")
    assert not missing
    with pytest.raises(kp.ArgumentTypeError, match=r"copy_to\(\) takes .* not None"):
        t.copy_to(None)
    with pytest.raises(kp.KomputeError):  # they counted as none
        mgr.algorithm([t], kp.compile(SOURCE), push_consts=np.void(b"abcdefgh"))
    for array_ in (np.ones(2, ">f4"), np.ones(2, object), np.zeros(2, "f4,i4")):
        with pytest.raises(kp.ExchangeError):
            kp.from_dlpack(array_, mgr)


@pytest.mark.parametrize(
    "value",
    [10**5000, Unwilling(), "\ud800", None, 1.5, np.ones(3)],
    ids=["int", "object", "surrogate", "None", "float", "array"],
)
def test_descriptions_with_odd_values_at_every_name(value):
    spirv = kp.compile(SOURCE)
    good = json.loads(json.dumps(kp.list_devices()[0]))
    for name, part in good.items():
        for changed in (
            {**good, name: value},
            *({**good, name: {**part, each: value}} for each in (part if isinstance(part, dict) else ())),
        ):
            try:
                assert isinstance(kp.check(spirv, changed), list)
            except kp.KomputeError:
                pass


def test_documented_variables_are_known(monkeypatch, recwarn):
    monkeypatch.setenv("KOMPUTE_PY_COMPILER", "dxc")
    monkeypatch.setenv("KOMPUTE_PY_DXC_LIBRARY", "")
    monkeypatch.setenv("KOMPUTE_PY_SLANG_LIBRARY", "")
    kp.config_report()
    assert not [each for each in recwarn if "nothing reads it" in str(each.message)]


# -- time ----------------------------------------------------------------------------------------------------


def compiles_on_in_the_background() -> None:
    started = time.monotonic()
    with pytest.raises(kp.CompileTimeoutError, match=r"longer than 0\.2 s.*timeout=") as caught:
        kp.compile(BOMB, timeout=0.2)
    assert isinstance(caught.value, (kp.ShaderCompileError, TimeoutError))
    # The caller is free, and the compiler is for others: while the abandoned one goes on.
    kp.compile(SOURCE, timeout=30)
    assert time.monotonic() - started < 60
    os.environ["KOMPUTE_PY_COMPILE_TIMEOUT"] = "0.2"
    with pytest.raises(kp.CompileTimeoutError):
        kp.compile(BOMB)


def test_a_compilation_has_a_time_limit():
    # In a child: abandoned compilations take gigabytes for as long as they go on.
    run_child(compiles_on_in_the_background)


def a_managers_kernel_ends_in_time() -> None:
    with kp.Manager(compile_timeout="0.2") as mgr:
        with pytest.raises(kp.CompileTimeoutError, match=r"longer than 0\.2 s.*compile_timeout"):
            mgr.kernel(BOMB)
        mgr.kernel(SOURCE, timeout=60)


def test_a_manager_has_a_time_limit():
    run_child(a_managers_kernel_ends_in_time)


@pytest.mark.own_driver
@pytest.mark.parametrize("wrong", [0, -1, float("nan"), 1e300, 2**4000])
def test_time_limits_that_cannot_be(wrong):
    with pytest.raises(kp.InvalidArgumentError, match="timeout"):
        kp.compile(SOURCE, timeout=wrong)
    with pytest.raises(kp.ArgumentTypeError, match="timeout"):
        kp.compile(SOURCE, timeout="1")


def ends_while_it_compiles() -> float:
    with pytest.raises(kp.CompileTimeoutError):
        kp.compile(BOMB, timeout=0.2)
    return time.time()


def test_an_abandoned_compilation_does_not_hold_the_end_of_the_process():
    ended = run_child(ends_while_it_compiles, timeout=500)
    assert ended <= time.time()


def test_arrays_that_stand_for_more_than_there_is_memory(mgr):
    """A broadcast array of one number: counted, never copied."""
    huge = np.broadcast_to(np.float32(1), (2**40,))
    tensor, spirv = mgr.zeros(4), kp.compile(SOURCE)
    with pytest.raises(kp.InvalidArgumentError, match="spec_consts have more than"):
        mgr.algorithm([tensor], spirv, (1, 1, 1), huge, [1.0])
    with pytest.raises(kp.InvalidArgumentError, match=f"push_consts have {2**40} values"):
        mgr.algorithm([tensor], spirv, (1, 1, 1), [], huge)
    algorithm = mgr.algorithm([tensor], spirv, (1, 1, 1), [], np.ones((1, 1)))
    with pytest.raises(kp.InvalidArgumentError, match=f"push_consts have {2**40} values"):
        kp.OpAlgoDispatch(algorithm, huge)
    with pytest.raises(kp.KomputeError):
        mgr.kernel(SOURCE)(tensor, f=huge)
