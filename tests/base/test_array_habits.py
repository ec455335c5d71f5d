"""What users of NumPy try on tensors and in factories: each attempt is answered, or refused with code that
works when it is run.
"""

from __future__ import annotations

import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import kompute_py as kp
from kompute_py._memory import array_habits

VALUES = np.array([1.0, -2.0, 3.0], np.float32)


def advice(text, pattern=r"(?:with a copy|elements|has it): (.*)$"):
    """The code at the end of a message."""
    found = re.search(pattern, str(text))
    assert found is not None, text
    return found[1]


def test_iterating_names_the_copy(mgr):
    t, image = mgr.tensor([1, 2, 3]), mgr.image(np.ones((2, 2)))
    for thing in (t, t[::2], image):
        for call in (
            list,
            iter,
            sum,
            max,
            sorted,
            enumerate,
            lambda each: [*each],
        ):
            with pytest.raises(kp.ArgumentTypeError, match=r"iteration.*for x in t\.read\(\)"):
                call(thing)
        with pytest.raises(kp.ArgumentTypeError, match=r"kp\.ops\.round\(t\)"):
            round(thing, 2)
        assert np.sum(thing) == thing.read().sum()
    with pytest.raises(kp.ArgumentTypeError, match=r"reversed\(t\.read\(\)\)"):
        reversed(t)


# -- operators -----------------------------------------------------------------------------------------------

BINARY = ["+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">="]


def test_a_format_takes_the_only_element(mgr):
    t, image = mgr.tensor([1.25, 2.5, 4]), mgr.image(np.full((1, 1), 2.5))
    t.write([1.5, 2.5, 4])  # on the device only
    assert f"{t[0]:.3f} {t[::2][1:]:5.1f} {image:.2e}" == "1.500   4.0 2.50e+00"
    assert f"{mgr.tensor_t(np.array([7], np.int32)):03d}" == "007"
    for thing in (t, t[::2], image):
        assert f"{thing}" == str(thing)
    with pytest.raises(kp.ArgumentTypeError, match=r"has 3 elements, and format\(\) takes one"):
        f"{t:.3f}"
    with pytest.raises(ValueError):
        f"{t[0]:nonsense}"


def test_pillow_is_told_to_take_a_copy(mgr):
    fromarray = pytest.importorskip("PIL.Image").fromarray
    t, image = mgr.tensor_t(np.ones((4, 6), np.uint8)), mgr.image_t(np.ones((4, 6), np.uint8))
    for thing in (t, t[:, ::2], image):
        with pytest.raises(
            kp.errors.ArrayAttributeError, match=r"no (attribute )?'__array_interface__'.*t\.read\(\)"
        ):
            fromarray(thing)
        assert not hasattr(thing, "__array_interface__")
        np.testing.assert_array_equal(np.asarray(thing), thing.read())
        assert fromarray(thing.read()).size == (thing.shape[1], 4)


def test_the_device_is_asked_of_the_manager(mgr):
    for thing in (mgr.zeros(4), mgr.zeros(4)[::2], mgr.image(np.zeros((2, 3)))):
        with pytest.raises(kp.errors.ArrayAttributeError, match=r"t\.manager\.get_device_properties\(\)"):
            _ = thing.device
        with pytest.raises(kp.errors.ArrayAttributeError, match=r"t\.to\(manager\) copies it"):
            thing.to_device("cpu")
        with pytest.raises(kp.errors.ArrayAttributeError, match=r"t\.read\(\) copies them to the host"):
            thing.cpu()
        with pytest.raises(kp.errors.ArrayAttributeError, match=r"t\.to\(kp\.Manager\(device\)\)"):
            thing.cuda()
        for device in ("cuda", "cpu", np.float16):
            if hasattr(thing, "to"):
                with pytest.raises(
                    kp.ArgumentTypeError, match=r"t\.read\(\) to the host, and kp\.ops\.astype"
                ):
                    thing.to(device)


def test_read_with_an_index_for_out_names_region(mgr):
    t, image = mgr.tensor(np.zeros((2, 3))), mgr.image(np.zeros((2, 3)))
    for thing in (t, t[:, ::2], image):
        for key in (0, np.int64(1), np.s_[1:], np.s_[:, 0], ...):
            with pytest.raises(kp.ArgumentTypeError, match="For a part give region="):
                thing.read(key)
        with pytest.raises(kp.ArgumentTypeError) as raised:
            thing.read([0.0])
        assert "region" not in str(raised.value)


@pytest.mark.parametrize("code", ["t {} 2", "2.5 {} t", "t {} other", "t {} [1, 2, 3]"])
def test_an_operator_gives_code_that_computes_on_the_host(mgr, code):
    t, other = mgr.tensor(np.abs(VALUES)), mgr.tensor(VALUES)
    for symbol in BINARY:
        with pytest.raises(kp.ArgumentTypeError, match="its contents are on the device") as raised:
            eval(code.format(symbol))
        given = [1, 2, 3] if "[" in code else other
        expected = eval(code.format(symbol), {"t": np.abs(VALUES), "other": VALUES})
        np.testing.assert_array_equal(eval(advice(raised.value), {"t": t, "other": given}), expected)


THERE = r"Compute there with (kp\.ops\.\w+\(.*\)), or on the host"


@pytest.mark.parametrize("code", ["t {} 2", "3 {} t", "t {} other"])
def test_an_operator_gives_code_that_computes_on_the_device(mgr, code):
    values = {"t": np.array([1, 5, 3], np.int32), "other": np.array([2, 4, 1], np.int32)}
    names = {name: mgr.tensor_t(value) for name, value in values.items()} | {"kp": kp}
    for symbol in array_habits.ON_DEVICE:
        if symbol == "@" and "other" not in code:
            continue
        with pytest.raises(kp.ArgumentTypeError) as raised:
            eval(code.format(symbol), names)
        found = eval(advice(raised.value, THERE), names).read()
        np.testing.assert_allclose(found, eval(code.format(symbol), values), rtol=1e-6)
    for each in ("-t", "+t", "~t", "abs(t)"):
        with pytest.raises(kp.ArgumentTypeError) as raised:
            eval(each, names)
        np.testing.assert_array_equal(eval(advice(raised.value, THERE), names).read(), eval(each, values))


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("mul", r"kp\.ops\.multiply\(t, \.\.\.\)"), ("clamp", r"kp\.ops\.clip\(t, \.\.\.\)"),
        ("topk", r"kp\.ops\.topk\(t, \.\.\.\)"), ("float", r"kp\.ops\.astype\(t, np\.float32\)"),
        ("unsqueeze", r"t\)?\[None\]"), ("asnumpy", r"t\.read\(\)"), ("at", r"t\.write\(values, region\)"),
        ("zero_", r"t\.fill\(0\)"), ("put", r"kp\.ops\.put\(t, indices, values, out=t\)"),
        ("mT", r"kp\.ops\.swapaxes\(t, -1, -2\)"),
    ],
)  # fmt: skip
def test_methods_of_other_libraries_are_answered_with_code(mgr, name, answer):
    for thing in (mgr.zeros((4, 4)), mgr.zeros((4, 4))[:, ::2], mgr.image(np.zeros((2, 3)))):
        with pytest.raises(kp.errors.ArrayAttributeError, match=answer):
            getattr(thing, name)
        assert name not in dir(thing)


def test_the_functions_that_answers_name_exist():
    named = {*array_habits._SAME, *array_habits.OPERATIONS.values()}
    assert named - set(dir(kp.ops)) == set()
    assert set(array_habits.CALLS) & set(dir(kp.ops)) == set()


@pytest.mark.parametrize(
    ("name", "answer"), [("cat", "'concatenate'"), ("zeros", r"mgr\.zeros\("), ("matmull", "'matmul'")]
)
def test_kp_ops_answers_names_of_other_libraries(name, answer):
    with pytest.raises(AttributeError, match=answer):
        getattr(kp.ops, name)


@pytest.mark.parametrize("name", ["flatten", "ravel", "squeeze", "unsqueeze"])
def test_methods_that_change_axes_are_answered_with_code_that_works(mgr, name):
    whole = mgr.tensor_t(np.arange(8, dtype=np.float32).reshape(2, 4))
    for t in (whole, whole[:, ::2], mgr.image(np.arange(8.0).reshape(2, 4))):
        with pytest.raises(kp.errors.ArrayAttributeError) as raised:
            getattr(t, name)
        code = str(raised.value).partition("; ")[2].removesuffix(" does it").partition(" or ")[0]
        found = eval(code, {"kp": kp, "t": t, "shape": (2, -1)}).read()
        np.testing.assert_array_equal(found.reshape(-1), t.read().reshape(-1))


@pytest.mark.parametrize("name", sorted(array_habits.MAKERS))
def test_a_manager_and_the_package_answer_names_of_functions_that_make_arrays(mgr, name):
    t = mgr.tensor_t(np.arange(4, dtype=np.int16))
    code = array_habits.MAKERS[name]
    if code.endswith("(...)"):
        assert code.removeprefix("kp.ops.").removesuffix("(...)") in dir(kp.ops)
    else:
        names = {"kp": kp, "np": np, "mgr": mgr, "t": t, "shape": 4, "dtype": np.uint8, "fill_value": 7}
        names |= {"values": [1, 2, 3, 4], "array": t.read(), "data": b"1234", "n": 4, "low": 0, "high": 9}
        with mgr.current():
            made = eval(code, names)
        assert made.shape[0] == 4
        assert made.dtype == t.dtype or not name.endswith("_like")
    for thing in (mgr, kp):
        if not hasattr(thing, name):
            answer = code if thing is mgr or name in array_habits.CALLS else f"kp.ops.{name}"
            with pytest.raises(AttributeError, match=re.escape(answer)):
                getattr(thing, name)
            assert name not in dir(thing)


def test_the_package_answers_names_of_methods_of_managers():
    with pytest.raises(AttributeError, match=r"an attribute of Managers: kp\.manager\(\)\.tensor_t$"):
        _ = kp.tensor_t


def test_a_method_of_arrays_names_the_operation_on_the_device(mgr):
    t = mgr.tensor_t(np.array([[1, 5], [3, 2]], np.int32))
    missing = {name for name in dir(np.ndarray) if not name.startswith("_") and not hasattr(t, name)}
    # These do something else than the methods of arrays with their names.
    others = {"compress", "put", "resize"}
    assert (missing & set(dir(kp.ops))) - others == array_habits.METHODS_ON_DEVICE
    for name in array_habits.METHODS_ON_DEVICE:
        with pytest.raises(AttributeError, match=f"Compute there with kp.ops.{name}, or on the host"):
            getattr(t, name)


def test_operators_of_integers_and_matrices_do_too(mgr):
    data = np.array([1, 2, 3], np.int32)
    t = mgr.tensor_t(data)
    codes = [
        f"{code} t" if code[0] == "2" else f"t {code}"
        for s in ("&", "|", "^", "<<", ">>")
        for code in (f"{s} 2", f"2 {s}")
    ]
    for code in (*codes, "t & other", "t @ other", "t >> other"):
        with pytest.raises(kp.ArgumentTypeError) as raised:
            eval(code, {"t": t, "other": t})
        expected = eval(code, {"t": data, "other": data})
        np.testing.assert_array_equal(eval(advice(raised.value), {"t": t, "other": t}), expected)


def test_operators_of_one_tensor_do_too(mgr):
    data = np.array([1, -2, 3], np.int32)
    t = mgr.tensor_t(data)
    for code in ("-t", "+t", "~t", "abs(t)", "3 in t", "5 in t"):
        with pytest.raises(kp.ArgumentTypeError) as raised:
            eval(code)
        np.testing.assert_array_equal(eval(advice(raised.value), {"t": t}), eval(code, {"t": data}))


@pytest.mark.capability(
    "I22 I27", "NumPy's functions and operators read the tensor", "kp.Tensor", "reference/tensor_rules"
)
def test_arrays_and_their_functions_read_the_tensor(mgr):
    t = mgr.tensor(VALUES)
    t.write(VALUES * 2)  # on the device only
    for found in (t + np.ones(3), np.ones(3) + t, np.add(t, 1), np.float32(1) + t, t + np.float32(1)):
        np.testing.assert_array_equal(found, VALUES * 2 + 1)
    assert np.sum(t) == 4 and (t == VALUES * 2).all()


def test_images_have_the_same_texts(mgr):
    t = mgr.image(np.ones((2, 2)))
    with pytest.raises(kp.ArgumentTypeError, match="An Image has no operator") as raised:
        t + 1
    np.testing.assert_array_equal(eval(advice(raised.value)), np.full((2, 2), 2))


# -- equality and truth --------------------------------------------------------------------------------------


def test_equality_is_identity_and_says_so_of_numbers(mgr):
    t = mgr.tensor(VALUES)
    for other in (1, 1.0, 1j, True, [1.0, -2.0, 3.0], (1.0, 2.0, 3.0)):
        for code, answer in (("t == other", False), ("other == t", False), ("t != other", True)):
            with pytest.warns(kp.KomputeWarning, match="compared by identity") as found:
                assert eval(code, {"t": t, "other": other}) is answer
            assert len(found) == 1
        compared = eval(advice(found[0].message), {"t": t, "other": other})
        np.testing.assert_array_equal(compared, other == VALUES)


def test_equality_of_objects_is_silent(mgr):
    t, other = mgr.tensor(VALUES), mgr.tensor(VALUES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert t == t and t != other and t != None and t != "t"  # noqa: E711
        assert t in [other, t] and {t: 1}[t] == 1 and [other, t].index(t) == 1
        assert len({t, other, t}) == 2


def test_the_truth_of_one_element_is_that_elements(mgr):
    for value in (0.0, 2.5, -0.0):
        for shape in ((), (1,), (1, 1)):
            t = mgr.tensor(np.full(shape, 1.0))
            t.write(np.full(shape, value))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert bool(t) is (value != 0)
    assert not mgr.tensor_t(np.array([False])) and mgr.tensor_t(np.array([True]))


def test_the_truth_of_others_is_komputes_and_says_so(mgr):
    t = mgr.tensor(np.zeros(3))
    with pytest.warns(kp.KomputeWarning, match=r"only says that it has 3 elements") as found:
        assert bool(t) is True
    for code in ("len(t) > 0", "t is not None", "t.read().any()", "t.read().all()"):
        assert code in str(found[0].message)
        assert bool(eval(code)) is (not code.startswith("t.read"))
    with pytest.warns(kp.KomputeWarning, match="it has no elements"):
        assert not mgr.tensor([])
    t.destroy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not t


# -- one element ---------------------------------------------------------------------------------------------


USERS = ["int(t)", "float(t)", "complex(t)", "t.item()"]


def test_the_advice_for_one_of_several_elements_is_within_the_tensor(mgr):
    for shape in ((3,), (2,), (2, 2), (1, 4), (4, 1), (2, 1, 3)):
        t = mgr.tensor(np.full(shape, 7.0))
        for user in USERS:
            with pytest.raises(
                kp.KomputeError, match=rf"has {t.size()} elements, and .* takes one: "
            ) as raised:
                eval(user)
            assert eval(advice(raised.value, r"takes one: (.*), or t\.read\(\) for all")) == 7


def test_no_element_has_no_advice_for_one(mgr):
    t = mgr.tensor([])
    for user in USERS:
        with pytest.raises(kp.KomputeError, match="has no element, and") as raised:
            eval(user, {"t": t})
        assert "t[" not in str(raised.value)


def test_one_record_is_no_number(mgr):
    t = mgr.zeros(1, "f4,i4")
    for kind in (int, float, complex):
        with pytest.raises(kp.ArgumentTypeError, match=r"one record, not a number: t\.item\(\)"):
            kind(t)
    assert t.item() == (0, 0)


@pytest.mark.capability("K43 K44", "the number of elements", "Tensor.size", "reference/memory")
def test_len_counts_all_elements_as_in_kompute(mgr):
    assert len(mgr.zeros((2, 3))) == mgr.zeros((2, 3)).size() == 6


# -- attributes and items ------------------------------------------------------------------------------------


def test_what_arrays_have_names_the_copy_that_has_it(mgr):
    t = mgr.tensor(VALUES)
    for name in ("sum", "mean", "max", "dot", "flat"):
        with pytest.raises(AttributeError, match=f"'Tensor' object has no attribute '{name}'") as raised:
            getattr(t, name)
        assert isinstance(raised.value, kp.KomputeError)
        assert raised.value.name == name and not hasattr(t, name)
        assert eval(advice(raised.value).replace("(...)", "")) is not None
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'copy'") as raised:
        _ = t.copy
    for code in ("t.read()", "t.to(t.manager, copy=True)"):
        assert code in str(raised.value) and np.array_equal(eval(code), VALUES)


def test_what_nothing_has_is_refused_as_ever(mgr):
    t = mgr.tensor(VALUES)
    for name in ("shapes", "_nothing", "__cuda_array_interface__"):
        with pytest.raises(AttributeError, match=f"'Tensor' object has no attribute '{name}'$"):
            getattr(t, name)


def test_items_are_written_and_nothing_iterates(mgr):
    t = mgr.tensor(VALUES)
    t[1] = 5
    t[2:3].fill(6)
    np.testing.assert_array_equal(t.read(), [1, 5, 6])
    for use in (list, reversed, iter):
        with pytest.raises(TypeError):
            use(t)


# -- the factories: the dtype in another place ---------------------------------------------------------------


DTYPES = [np.int32, "int32", np.dtype("i4"), kp.DataTypes.int]


def factories(mgr, dtype):
    data, grey = np.arange(4), np.zeros((4, 4))
    return {
        "tensor": lambda: mgr.tensor(data, dtype),
        "tensor, keyword": lambda: mgr.tensor(data, memory_type=dtype),
        "tensor, older keyword": lambda: mgr.tensor(data, tensor_type=dtype),
        "tensor, dtype": lambda: mgr.tensor(data, dtype=dtype),
        "tensor_t": lambda: mgr.tensor_t(data, dtype),
        "tensor_t, dtype": lambda: mgr.tensor_t(data, dtype=dtype),
        "Tensor": lambda: kp.Tensor(mgr, data, dtype),
        "zeros": lambda: mgr.zeros((3, 4), np.float32, dtype),
        "empty": lambda: mgr.empty((3, 4), np.float32, dtype),
        "full": lambda: mgr.full((3, 4), 1, np.float32, dtype),
        "image": lambda: mgr.image(grey, dtype),
        "image, height": lambda: mgr.image(grey, 4, dtype),
        "image, num_channels": lambda: mgr.image(grey, 4, 4, dtype),
        "image, memory_type": lambda: mgr.image(grey, 4, 4, 1, dtype),
        "image, dtype": lambda: mgr.image(grey, dtype=dtype),
        "image_t": lambda: mgr.image_t(grey, dtype),
        "image_t, dtype": lambda: mgr.image_t(grey, dtype=dtype),
        "Image": lambda: kp.Image(mgr, grey, memory_type=dtype),
        "to": lambda: mgr.tensor(data).to(mgr, dtype),
    }


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_dtype_in_the_place_of_something_else_names_code_that_has_it(mgr, dtype):
    for name, make in factories(mgr, dtype).items():
        with pytest.raises(kp.ArgumentTypeError, match=r"int32|DataTypes\.int") as raised:
            make()
        codes = re.findall(r"mgr\.\w+\((?:[^()]|\([^()]*(?:\([^()]*\))?[^()]*\))*\)", str(raised.value))
        assert codes, (name, raised.value)
        data = np.zeros((4, 4)) if "mage" in name else np.arange(4)
        for code in codes:
            made = eval(
                code,
                {"mgr": mgr, "np": np, "data": data, "shape": (3, 4), "fill_value": 1, "t": mgr.zeros(3)},
            )
            assert made.dtype == np.int32, (name, code)


def test_arguments_of_an_allocation_in_other_places_are_named(mgr):
    for make, text in (
        (lambda: mgr.zeros(3, 4), r"one argument, a tuple: \(3, 4\)"),
        (lambda: mgr.empty((3, 4), 5), r"one argument, a tuple: \(3, 4, 5\)"),
        (lambda: mgr.full(3, 1, 4), r"one argument, a tuple: \(3, 4\)"),
        (lambda: mgr.zeros(np.float32, 3), r"np\.float32, a dtype. The shape comes first"),
        (lambda: mgr.zeros(np.zeros((3, 4))), r"of shape \(3, 4\): give \(3, 4\)"),
        (lambda: mgr.zeros(mgr.zeros((3, 4))), r"of shape \(3, 4\): give \(3, 4\)"),
        (lambda: mgr.zeros(np.zeros(3)), r"of shape \(3,\): give \(3,\)"),
        (lambda: mgr.zeros(3, "host"), r"give memory_type='host'"),
        (lambda: mgr.empty(3, kp.MemoryTypes.storage), r"give memory_type='storage'"),
        (lambda: mgr.full(3, 1, "device"), r"give memory_type='device'"),
        (
            lambda: mgr.full(3, np.int16),
            r"fill_value is np\.int16, a dtype.*mgr\.full\(shape, 0, np\.int16\)",
        ),
        (lambda: mgr.full(3, "f8"), r"fill_value is np\.float64, a dtype"),
        (lambda: mgr.image(np.zeros((4, 4, 4), np.uint8), "rgba8"), r"give format='rgba8'"),
        (lambda: mgr.image(np.zeros((4, 4)), "host"), r"give memory_type='host'"),
        (lambda: mgr.image(np.zeros((4, 4)), kp.MemoryTypes.host), r"Image width is .*give an int"),
    ):
        with pytest.raises(kp.ArgumentTypeError, match=text):
            make()


@pytest.mark.parametrize("dtype", ["float32", np.float16, "uint8", np.int16, np.uint32])
def test_a_dtype_for_a_format_names_formats_of_it(mgr, dtype):
    with pytest.raises(kp.KomputeError, match="For elements of") as raised:
        mgr.image_empty((4, 4), dtype)
    for name in re.findall(r'"(\w+)"', str(raised.value)):
        assert mgr.image_empty((4, 4), name).dtype == np.dtype(dtype)


def test_no_dtype_is_the_default(mgr):
    for t in (mgr.zeros(3, None), mgr.empty(3, dtype=None), mgr.full(3, 1, None)):
        assert t.dtype == np.float32


@pytest.mark.parametrize("wrong", [object, str, "S3", "nonsense", 7, 1.5, [], kp.Tensor])
def test_what_no_device_has_is_not_taken_for_a_dtype(mgr, wrong):
    with pytest.raises(kp.KomputeError, match=r"memory type .*(known:|use a member)"):
        mgr.tensor([1], wrong)


# -- warnings without a line of the user's -------------------------------------------------------------------


HELD = """import kompute_py as kp
mgr = kp.Manager()
frames = mgr.semaphore()
frames.name = "frames"
later = mgr.sequence().record(kp.OpFill([mgr.zeros(3)], 1))
later.name = "later"
later.eval_async(wait=[(frames, 3)])
"""
TOLD = (
    "KomputeWarning: The sequence 'later' (OpFill) did not run: it waited for the semaphore 'frames' to "
    "reach 3 (it is at 0) "
    "when the program ended."
)


def test_what_is_cancelled_at_the_end_names_the_script_and_no_line_of_ours(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(HELD)
    for command, place in (([str(script)], f"{script}:0: "), (["-c", HELD], "<sys>:0: ")):
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stderr.startswith(place + TOLD), done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_method_without_its_brackets_is_named(mgr):
    t = mgr.tensor([1, 2])
    with pytest.raises(kp.ArgumentTypeError, match=r"kp\.ops\.divide\(t, t\.size\(\)\)"):
        t / t.size
    with pytest.raises(kp.ArgumentTypeError, match=r"is a method; call it: t\.size\(\)"):
        kp.ops.divide(t, t.size)


def test_names_of_other_libraries_lead_to_those_here():
    with pytest.raises(AttributeError, match=r"it is kp\.ops\.fft"):
        kp.fft  # noqa: B018
    with pytest.raises(AttributeError, match=r"Generator\(seed\)$"):
        kp.random.seed  # noqa: B018
    with pytest.raises(AttributeError, match=r"Generator\(seed\)\.normal"):
        kp.random.normal  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'astype'"):
        kp.ops.cast  # noqa: B018


def test_what_numpy_and_pillow_have_is_answered(mgr):
    t, other = mgr.tensor([2, 1]), kp.Manager()
    with pytest.raises(kp.ArgumentTypeError, match="always stable, so leave it out"):
        kp.ops.sort(t, kind="stable")  # type: ignore[call-arg]
    with pytest.raises(kp.InvalidArgumentError, match="dtype="):
        kp.ops.cumsum.bind(t, out=mgr.zeros(2, np.uint32))
    with pytest.raises(kp.InvalidArgumentError, match=r"<kp\.Manager .*<kp\.Manager .*manager=mgr"):
        kp.ops.add(t, other.zeros(2))
    structs = np.zeros(3, [("a", "f4"), ("b", "i4")])
    with pytest.raises(kp.ArgumentTypeError, match=r"one field at a time, t\['a'\]"):
        mgr.tensor_t(structs)[["a", "b"]]
    with pytest.raises(kp.ArgumentTypeError, match="or use tensor_t"):
        mgr.tensor(structs)
    picture = pytest.importorskip("PIL.Image").new("RGBA", (2, 2))
    with pytest.raises(kp.ArgumentTypeError, match=r"PIL's Image; give mgr\.image\(picture"):
        kp.ops.mean(picture)


def test_comparing_names_what_compares_on_the_device(mgr):
    t = mgr.tensor_t(np.array([1 + 1j, 0], np.complex64))
    with pytest.warns(kp.KomputeWarning, match=r"On the device, kp\.ops\.equal\(t, 0\)"):
        assert (t == 0) is False
    with pytest.raises(kp.ArgumentTypeError, match=r"compare it: kp\.ops\.not_equal\(x, 0\)"):
        kp.ops.nonzero(t)
    assert kp.ops.nonzero(kp.ops.not_equal(t, 0))[0].tolist() == [0]
