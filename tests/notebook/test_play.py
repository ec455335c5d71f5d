"""Pictures that play: their clock, their mouse, their push constants; the browser is played by the test."""

from __future__ import annotations

import gc
import io
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image as pillow

import kompute_py as kp
from kompute_py._live.player import rgba
from kompute_py._live.state import SOURCES, Clock, Mouse, State, value_of
from kompute_py.notebook import widgets as widgets_module
from tests.support.child import python

# Each push constant goes into a column of the first row, as a number.
SOURCE = """
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) writeonly buffer Y {{ float y[]; }};
layout(push_constant) uniform P {{ {members} }};
void main() {{
    uvec2 p = gl_GlobalInvocationID.xy;
    if (p.x >= 16 || p.y >= 12) return;
    float told[16] = float[16]({told});
    y[p.y * 16 + p.x] = p.y == 0 ? told[p.x] : 0.25;
}}
"""


def kernel_of(mgr, members, *told):
    told = [*told, *["0.0"] * (16 - len(told))]
    return mgr.kernel(SOURCE.format(members=members, told=", ".join(told)), name="k")


class Now:
    def __init__(self):
        self.seconds = 100.0

    def __call__(self):
        return self.seconds


class Browser:
    """Records what is sent to it, and asks as the real one does."""

    def __init__(self, live, now=None):
        self.live = live
        self.sent = []
        live._screen.send = lambda message, buffers=None: self.sent.append((message, buffers))
        self.open = 0
        if now is not None:
            live._state.clock._now = now

    def tell(self, **message):
        before = len(self.sent)
        try:
            self.live._screen._handle_custom_msg(message, [])
        finally:
            answers = sum(bool(each["answer"]) for each, _ in self.sent[before:])
            assert answers == ("ask" in message)
        return self.sent[-1] if len(self.sent) > before else None

    def frame(self, **mouse):
        return self.tell(ask="frame", mouse=mouse)


@pytest.fixture
def made():
    """Closes what a test makes."""
    lives = []
    yield lambda live: lives.append(live) or live
    for live in lives:
        live.close()


def test_the_clock_follows_the_time_and_skips_what_it_missed():
    now = Now()
    clock = Clock(1 / 30, now)
    now.seconds += 5
    clock.tick()
    assert (clock.time, clock.frame, clock.playing) == (0, 0, False)
    clock.play()
    for seconds in (0.03, 0.04, 2.0, 0.03):  # 2 s: a slow frame, or another cell that ran
        now.seconds += seconds
        clock.tick()
        assert clock.delta == pytest.approx(seconds)
    assert clock.frame == 4 and clock.time == pytest.approx(2.1)
    clock.pause()
    now.seconds += 60
    clock.tick()
    assert clock.frame == 4 and clock.time == pytest.approx(2.1)
    clock.play()
    now.seconds += 0.5
    clock.play()  # again: changes nothing
    clock.tick()
    assert clock.frame == 5 and clock.time == pytest.approx(2.6)
    clock.step()
    assert not clock.playing and clock.frame == 6 and clock.time == pytest.approx(2.6 + 1 / 30)
    clock.play()
    now.seconds += 1
    clock.reset()
    assert clock.playing and (clock.time, clock.frame) == (0, 0)
    now.seconds += 0.25
    clock.tick()
    assert (clock.time, clock.frame) == (0.25, 1)
    now.seconds -= 10  # a clock that goes back
    clock.tick()
    assert clock.time == 0.25


FLOAT = {"kind": "float32", "rows": 1, "columns": 1, "array": []}


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("name", "kind", "rows", "expected"),
    [
        ("time", "float32", 1, 1.5),
        ("iTime", "float64", 1, 1.5),
        ("time_delta", "float32", 1, 0.5),
        ("iTimeDelta", "float16", 1, 0.5),
        ("frame", "int32", 1, 7),
        ("iFrame", "uint32", 1, 7),
        ("iFrame", "float32", 1, 7.0),
        ("resolution", "float32", 2, [40.0, 30.0]),
        ("resolution", "uint32", 2, [40, 30]),
        ("iResolution", "float32", 3, [40.0, 30.0, 1.0]),
        ("mouse", "float32", 2, [4.5, 10.25]),
        ("mouse", "int32", 2, [4, 10]),
        ("mouse", "float32", 3, [4.5, 10.25, 1.0]),
        ("mouse", "float32", 4, [4.5, 10.25, 1.0, 2.0]),
        # y upwards: 30 rows, of which the mouse has 10.25 above it, and had 20 above it when pressed.
        ("iMouse", "float32", 4, [4.5, 19.75, 3.0, 10.0]),
        ("speed", "float32", 1, None),
    ],
)
def test_values_by_name(name, kind, rows, expected):
    state = State(Clock(1 / 30), 40, 30)
    state.clock.time, state.clock.delta, state.clock.frame = 1.5, 0.5, 7
    press = {"x": 3, "y": 20, "held": True, "presses": 2, "pressed_x": 3, "pressed_y": 20}
    state.mouse.update(press, 40, 30)
    state.mouse.update({**press, "x": 4.5, "y": 10.25}, 40, 30)
    value = value_of(name, {**FLOAT, "kind": kind, "rows": rows}, state)
    assert value == expected
    if expected is not None:
        assert type(np.ravel(value)[0]) is type(np.ravel(expected)[0])


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("time", {"kind": "int32"}), ("time", {"rows": 2}), ("frame", {"kind": "bool"}),
        ("frame", {"array": [2]}), ("resolution", {}), ("resolution", {"rows": 4}), ("mouse", {}),
        ("mouse", {"rows": 2, "columns": 2}), ("iMouse", {"rows": 2}),
        ("iMouse", {"rows": 4, "kind": "int32"}),
    ],
)  # fmt: skip
def test_other_types_are_refused(name, change):
    with pytest.raises(kp.InvalidArgumentError, match=f"moving pictures give '{name}' a .*{name}= a value"):
        value_of(name, {**FLOAT, **change}, State(Clock(1), 8, 8))


def test_every_listed_name_is_documented():
    text = kp.notebook.play.__doc__
    for name in SOURCES:
        assert f"``{name}``" in text, name


def test_shadertoys_mouse():
    state = State(Clock(1), 40, 30)
    assert state.shadertoy_mouse() == [0, 0, 0, 0]
    mouse = state.mouse
    mouse.update({"x": 9, "y": 9}, 40, 30)  # over it, not pressed
    assert state.shadertoy_mouse() == [0, 0, 0, 0]
    press = {"x": 10, "y": 20, "held": True, "presses": 1, "pressed_x": 10, "pressed_y": 20}
    mouse.update(press, 40, 30)
    assert state.shadertoy_mouse() == [10, 10, 10, 10]
    mouse.new = False  # the frame was drawn
    mouse.update({**press, "x": 12}, 40, 30)
    assert state.shadertoy_mouse() == [12, 10, 10, -10]
    mouse.update({**press, "x": 30, "held": False}, 40, 30)
    assert state.shadertoy_mouse() == [12, 10, -10, -10]
    # In the corner, signs still tell.
    mouse.update({"x": 0, "y": 30, "held": True, "presses": 2, "pressed_x": 0, "pressed_y": 30}, 40, 30)
    assert state.shadertoy_mouse() == [0, 0, 0.5, 0.5]


def test_a_mouse_stays_in_the_picture():
    mouse = Mouse()
    mouse.update({"x": -5, "y": 1e9, "presses": 0}, 40, 30)
    assert (mouse.x, mouse.y) == (0, 30)
    mouse.update({"x": float("nan"), "y": 3}, 40, 30)
    assert (mouse.x, mouse.y) == (0, 3)


@pytest.mark.own_driver
@pytest.mark.parametrize(
    ("array", "limits", "expected"),
    [
        (np.array([[0, 9, 255]], np.uint8), None, [0, 9, 255]),
        (np.array([[0, 100, 255]], np.uint8), (0, 100), [0, 255, 255]),
        (np.array([[True, False]]), None, [255, 0]),
        (np.array([[-1, 0.5, 2, np.nan, np.inf, -np.inf]], np.float32), None, [0, 128, 255, 0, 255, 0]),
        (np.array([[0, 0.5]], np.float16), (1, 0), [255, 128]),
        (np.array([[-4, 0, 4]], np.float64), (-4, 4), [0, 128, 255]),
        (np.array([[0, 65535]], np.uint16), None, [0, 255]),
        (np.array([[-128, 127]], np.int8), None, [0, 255]),
    ],
)
def test_pixels(array, limits, expected):
    made = rgba(array, limits)
    assert made.dtype == np.uint8 and made.shape == (*array.shape, 4)
    for channel in range(3):
        np.testing.assert_array_equal(made[0, :, channel], expected)
    assert (made[..., 3] == 255).all()


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_channels(channels):
    array = np.random.default_rng(1).integers(0, 256, (9, 8, channels), np.uint8)
    made = rgba(array, None)
    np.testing.assert_array_equal(made[..., :3], np.broadcast_to(array[..., :3], (9, 8, 3)))
    assert (made[..., 3] == 255).all()


def test_frames_as_the_browser_asks(mgr, made):
    y = mgr.zeros((12, 16))
    kernel = kernel_of(
        mgr,
        "float time; int frame; float gain; vec2 mouse; float iTimeDelta; uvec2 resolution;",
        "time",
        "float(frame)",
        "mouse.x",
        "mouse.y",
        "iTimeDelta",
        "float(resolution.x)",
        "float(resolution.y)",
        "gain",
    )
    live = made(kp.notebook.play(kernel, y, grid=(16, 12), gain=(0.0, 2.0, 0.5, 1.0), limits=(0, 255)))
    assert list(live.knobs) == ["gain"] and live.values == {"gain": 1.0}
    now = Now()
    browser = Browser(live, now)
    message, buffers = browser.tell(ask="last")
    assert (message["frame"], message["rows"], message["columns"]) == (0, 12, 16)
    np.testing.assert_array_equal(
        np.frombuffer(buffers[0], np.uint8).reshape(12, 16, 4), rgba(y.read(), (0, 255))
    )
    # Paused: it asks in vain.
    assert browser.frame()[0] == {"answer": True} and live.frame == 0
    browser.tell(press="play")
    assert live.playing and live._screen.playing
    for i, seconds in enumerate((0.5, 0.25, 3.0), 1):
        now.seconds += seconds
        message, buffers = browser.frame(x=i, y=2 * i)
        shown = y.read()[0, :8]
        np.testing.assert_allclose(shown, [live.time, i, i, 2 * i, seconds, 16, 12, 1.0])
        assert message["frame"] == live.frame == i and message["took"] > 0
    assert live.time == 3.75
    live.knobs["gain"].value = 0.5  # the same frame, drawn again
    assert y.read()[0, 7] == 0.5 and live.frame == 3 and browser.sent[-1][0]["answer"] is False
    browser.tell(press="step")
    assert not live.playing and live.frame == 4
    np.testing.assert_allclose(y.read()[0, :2], [3.75 + 1 / 30, 4])
    browser.tell(ask="same", mouse={"x": 7, "y": 5})
    np.testing.assert_allclose(y.read()[0, :4], [live.time, 4, 7, 5], rtol=1e-6)
    browser.tell(press="reset")
    np.testing.assert_array_equal(y.read()[0, :2], [0, 0])
    assert live.frame == 0 and not live.playing
    data = live._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["image/png"][:4] == b"\x89PNG"
    assert live._screen.description == "Tensor as a moving picture, 16 columns by 12 rows"


def test_given_values_win(mgr, made):
    y = mgr.zeros((12, 16))
    kernel = kernel_of(mgr, "float time; float iTime; mat2 mouse;", "time", "iTime", "mouse[1][1]")
    live = made(
        kp.notebook.play(kernel, y, grid=(16, 12), time=3.0, iTime=(0.0, 9.0, 1.0, 2.0), mouse=np.eye(2))
    )
    np.testing.assert_array_equal(y.read()[0, :3], [3, 2, 1])
    assert list(live.knobs) == ["iTime"]


def test_before_runs_once_for_each_new_frame(mgr, made):
    y, count = mgr.zeros((12, 16)), []
    live = made(
        kp.notebook.play(kernel_of(mgr, "float gain;"), y, grid=(16, 12), before=lambda: count.append(1))
    )
    browser = Browser(live)
    assert len(count) == 1
    live.play()
    browser.frame()
    browser.tell(ask="same")
    live.knobs["gain"].value = 0.5
    live.step()
    live.reset()
    assert len(count) == 4


def test_an_error_shows_once_and_stops(mgr, made):
    y, fails = mgr.zeros((12, 16)), []

    def before():
        if fails:
            raise fails[0]

    live = made(kp.notebook.play(kernel_of(mgr, "float time;"), y, grid=(16, 12), before=before))
    browser = Browser(live)
    live.play()
    browser.frame()
    shown = []
    live._screen.observe(lambda change: shown.append(change.new), names="error")
    fails.append(ValueError("one"))
    sent = browser.frame()
    assert sent == ({"answer": True}, None) and not live.playing
    assert live.error == "ValueError: one"
    for _ in range(3):  # those that were on their way
        browser.frame()
    assert shown == ["ValueError: one"]
    fails.clear()
    live.play()
    assert live.error == "" and browser.frame()[1] is not None
    y.destroy()
    browser.frame()
    assert "destroyed" in live.error and not live.playing
    live.step()
    live.reset()
    assert "destroyed" in live.error
    fails.append(KeyboardInterrupt())
    live.play()
    with pytest.raises(KeyboardInterrupt):
        browser.frame()
    assert not live.playing and browser.sent[-1][0] == {"answer": True}


def test_the_last_view_that_goes_pauses(mgr, made):
    live = made(kp.notebook.play(kernel_of(mgr, "float time;"), mgr.zeros((12, 16)), grid=(16, 12)))
    browser = Browser(live)
    live.play()
    browser.tell(press="pause")
    assert not live.playing and not browser.sent
    browser.tell(press="close", mouse={})  # nothing of the kind can be pressed
    assert live.frame == 0


def widgets():
    from ipywidgets.widgets import widget

    return len(widget._instances)


@pytest.mark.parametrize("make", ["play", "sliders"])
def test_closed_widgets_hold_nothing(mgr, make):
    before = widgets()
    y = mgr.zeros((12, 16))
    kernel = kernel_of(mgr, "float speed; int steps;", "speed")
    live = getattr(kp.notebook, make)(kernel, y, grid=(16, 12))
    browser = Browser(live) if make == "play" else None
    if make == "play":
        live.play()
        browser.frame()
    gone = [weakref.ref(y), weakref.ref(kernel)]
    live.close()
    live.close()
    assert widgets() == before
    if make == "play":
        assert not live.playing
        live._heard(None, {"ask": "frame"}, [])  # on its way when it was closed
    for call in (
        lambda: live.kernel,
        lambda: live.values,
        *((live.play, live.step) if make == "play" else ()),
    ):
        with pytest.raises(kp.FailedPreconditionError, match="is closed"):
            call()
    del y, kernel, browser, call
    gc.collect()
    assert [each() for each in gone] == [None, None]  # though `live` is still here, as in Out[1]


@pytest.mark.parametrize("make", ["play", "sliders"])
def test_a_cell_that_runs_again_closes_what_it_made(mgr, monkeypatch, make):
    parent = {"metadata": {"cellId": "a"}, "header": {"msg_id": "1"}}
    shell = SimpleNamespace(kernel=SimpleNamespace(get_parent=lambda channel: parent))
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.setattr(widgets_module, "_made_by", {})
    kernel, y = kernel_of(mgr, "float speed;", "speed"), mgr.zeros((12, 16))

    def another():
        return getattr(kp.notebook, make)(kernel, y, grid=(16, 12))

    one, two = another(), another()  # both in one execution
    assert one.kernel is two.kernel is kernel
    parent["metadata"]["cellId"], parent["header"]["msg_id"] = "b", "2"
    three = another()
    assert one.kernel is kernel
    parent["metadata"]["cellId"], parent["header"]["msg_id"] = "a", "3"
    four = another()
    for each in (one, two):
        with pytest.raises(kp.FailedPreconditionError, match="closed: run its cell again"):
            _ = each.kernel
    assert three.kernel is four.kernel is kernel
    # Front ends that do not tell the cell close nothing.
    parent["metadata"].clear()
    assert widgets_module.executing_cell() is None
    five, six = another(), another()
    assert five.kernel is six.kernel
    for each in (three, four, five, six):
        each.close()


def test_refusals(mgr):
    y = mgr.zeros((12, 16))
    kernel = kernel_of(mgr, "float speed;")
    small, other = mgr.zeros((4, 4)), mgr.zeros(192)
    for keywords, expected in (
        ({"fps": 0}, "above 0"),
        ({"fps": 1000}, "at most 240"),
        ({"fps": True}, "fps is True"),
        ({"before": 3}, "function"),
        ({"limits": 3}, "two different"),
        ({"limits": (1, 1)}, "two different"),
        ({"limits": (0, float("inf"))}, "two different"),
        ({"show": small}, r"at least 8 rows .* \(4, 4\)"),
        ({"show": other}, r"\(192,\)"),
        ({"nobody": 1}, "nobody"),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=expected):
            kp.notebook.play(kernel, y, grid=(16, 12), **keywords)
    with pytest.raises(kp.ArgumentTypeError, match=r"play takes a kp\.Kernel"):
        kp.notebook.play(y)
    with pytest.raises(kp.ArgumentTypeError, match="show is"):
        kp.notebook.play(kernel, y, grid=(16, 12), show=np.zeros((9, 9)))
    with pytest.raises(kp.ArgumentTypeError, match="play needs a Tensor"):
        kp.notebook.play(kernel, np.zeros((12, 16), np.float32), grid=(16, 12))


def test_a_first_call_that_fails_leaves_no_widgets(mgr):
    before, y = widgets(), mgr.zeros((12, 16))

    def fail():
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        kp.notebook.play(kernel_of(mgr, "float speed;"), y, grid=(16, 12), before=fail)
    assert widgets() == before


def test_large_pictures_are_sent_small(mgr, made):
    image = mgr.image_t(np.zeros((48, 2100, 4), np.uint8))
    image.name = "wide"
    kernel = mgr.kernel(
        "#version 450\nlayout(local_size_x = 8, local_size_y = 8) in;\n"
        "layout(binding = 0, rgba8ui) uniform writeonly uimage2D i;\n"
        "void main() { ivec2 p = ivec2(gl_GlobalInvocationID.xy);"
        " imageStore(i, p, uvec4(p.x / 10, p.y, 0, 255)); }"
    )
    live = made(kp.notebook.play(kernel, image, grid=(2100, 48)))
    message, (data,) = Browser(live).tell(ask="last")
    assert (message["rows"], message["columns"]) == (16, 700) and live._screen.scale == 3
    np.testing.assert_array_equal(np.frombuffer(data, np.uint8).reshape(16, 700, 4), image.read()[::3, ::3])
    assert "Image 'wide'" in live._screen.description
    assert pillow.open(io.BytesIO(live._repr_mimebundle_()["image/png"])).width <= 256


@pytest.mark.own_driver
def test_without_anywidget_the_extra_is_named():
    script = (
        "import sys; sys.modules['anywidget'] = None\nimport kompute_py as kp\n"
        "try: kp.notebook.play\nexcept kp.FailedPreconditionError as e: print(e)\nkp.notebook.sliders"
    )
    done = python("-c", script)
    assert "pip install 'kompute-py[notebook]'" in done.stdout and not done.returncode, done.stderr
