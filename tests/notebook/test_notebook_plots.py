"""`kp.plot`, `show()` and sliders: what is drawn is what the device holds."""

from __future__ import annotations

import base64
import io
import re
from html import unescape

import matplotlib
import numpy as np
import pytest
from PIL import Image as pillow

import kompute_py as kp

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from tests.support.child import python

pytestmark = pytest.mark.own_driver  # what is drawn is the host's work

SOURCE = """
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; int offset; uint width; };
void main() { uint i = gl_GlobalInvocationID.y * width + gl_GlobalInvocationID.x;
y[i] = factor * x[i] + offset; }
"""


@pytest.fixture(autouse=True)
def figures():
    yield
    plt.close("all")


def test_plot_shows_the_device_where_it_was_written(mgr):
    tensor = mgr.tensor([1, 2, 3])
    np.testing.assert_array_equal(tensor.show().lines[0].get_ydata(), [1, 2, 3])
    tensor.write([7, 8, 9])
    np.testing.assert_array_equal(kp.plot(tensor).lines[0].get_ydata(), [7, 8, 9])
    np.testing.assert_array_equal(mgr.zeros(4).show().lines[0].get_ydata(), [0, 0, 0, 0])


def test_pictures_lines_and_histograms(mgr):
    pixels = np.random.default_rng(1).integers(0, 256, (9, 12, 4), np.uint8)
    np.testing.assert_array_equal(mgr.image_t(pixels).show().images[0].get_array(), pixels)
    half = np.linspace(0, 1, 64, dtype=np.float16).reshape(8, 8)
    np.testing.assert_array_equal(mgr.tensor_t(half).show().images[0].get_array(), half)
    assert len(kp.plot(np.zeros((3, 50))).lines) == 3
    one, two = mgr.tensor([1, 2]), mgr.tensor([3, 4])
    one.name = "one"
    ax = kp.plot(one, two)
    assert ax.get_legend().get_texts()[0].get_text() == "one"
    assert (
        sum(bar.get_height() for bar in kp.plot(one, kind="hist", ax=plt.figure().gca(), bins=4).patches) == 2
    )
    np.testing.assert_array_equal(kp.plot([3 + 4j, 1]).lines[0].get_ydata(), [5, 1])


def test_a_named_figure_is_drawn_anew(mgr):
    tensor = mgr.tensor([1, 2])
    first = tensor.show(figure="one")
    tensor.write([5, 6])
    second = tensor.show(figure="one")
    assert first.figure is second.figure and len(second.figure.axes) == 1
    np.testing.assert_array_equal(second.lines[0].get_ydata(), [5, 6])
    assert tensor.show(figure="two").figure is not second.figure
    with pytest.raises(kp.InvalidArgumentError, match="ax= or figure="):
        tensor.show(figure="one", ax=second)


def test_a_named_figure_moves_in_its_cell():
    script = r"""
from IPython.testing.globalipapp import get_ipython
shell = get_ipython()
shell.run_line_magic("matplotlib", "inline")
sent = []
shell.display_pub.publish = lambda data, metadata=None, *, transient=None, update=False, **rest: sent.append(
    ((transient or {}).get("display_id"), update, "text/html" in data))
shell.run_cell("import kompute_py as kp, numpy as np")
shell.run_cell("for k in range(3): kp.plot(np.arange(k + 2), figure='f')", store_history=True)
shell.run_cell("_ = kp.plot(np.arange(4), figure='f')", store_history=True)
print([update for _, update, html in sent if html], len({name for name, *_ in sent}))
"""
    done = python("-c", script)
    assert done.stdout.splitlines()[-1] == "[False, True, True, False] 2", done.stdout + done.stderr


def test_what_cannot_be_plotted(mgr):
    tensor = mgr.tensor([1, 2])
    with pytest.raises(kp.InvalidArgumentError, match="at least one"):
        kp.plot()
    with pytest.raises(kp.InvalidArgumentError, match="line, image, hist"):
        kp.plot(tensor, kind="pie")
    with pytest.raises(kp.InvalidArgumentError, match=r"not \(2,\)"):
        tensor.show(kind="image")
    with pytest.raises(kp.InvalidArgumentError, match="one picture at a time"):
        kp.plot(tensor, tensor, kind="image")
    with pytest.raises(kp.ArgumentTypeError, match="numbers"):
        kp.plot(["a"])
    with pytest.raises(kp.ArgumentTypeError, match="numbers"):
        mgr.tensor_t(np.zeros(3, [("a", "f4")])).show()
    tensor.destroy()
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        tensor.show()


@pytest.mark.parametrize(
    ("module", "code", "extra"),
    [("matplotlib.pyplot", "kp.plot([1])", "plot"), ("ipywidgets", "kp.notebook.sliders", "notebook")],
)
def test_what_is_missing_names_the_extra(module, code, extra):
    script = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "import kompute_py as kp\n"
        f"try: {code}\n"
        "except kp.FailedPreconditionError as e: print(e)"
    )
    done = python("-c", script)
    assert f"pip install 'kompute-py[{extra}]'" in done.stdout, done.stderr


def drawn(sliders) -> np.ndarray:
    found = re.search(r"base64,([^\"]*)\"", sliders.picture.value)
    assert found, sliders.picture.value
    return np.asarray(pillow.open(io.BytesIO(base64.b64decode(found[1]))))


def test_sliders_call_the_kernel_and_draw(mgr):
    ramp = np.linspace(0, 1, 256, dtype=np.float32).reshape(16, 16)
    x, y = mgr.tensor_t(ramp), mgr.zeros((16, 16))
    live = kp.notebook.sliders(mgr.kernel(SOURCE), x, out=y, factor=(0.0, 1.0, 0.25, 1.0), offset=0, width=16)
    assert list(live.knobs) == ["factor"] and live.knobs["factor"].max == 1.0
    np.testing.assert_array_equal(drawn(live), (ramp * 255 + 0.5).astype(np.uint8))
    live.knobs["factor"].value = 0.5
    assert live.values == {"factor": 0.5}
    np.testing.assert_array_equal(drawn(live), (ramp * 0.5 * 255 + 0.5).astype(np.uint8))
    np.testing.assert_array_equal(y.read(), ramp * 0.5)
    y.destroy()
    live.knobs["factor"].value = 0.25
    assert "destroyed" in live.picture.value
    live.close()


def test_sliders_by_type_and_lines(mgr):
    x, y = mgr.tensor(np.arange(8)), mgr.zeros(8)
    live = kp.notebook.sliders(mgr.kernel(SOURCE), x, y, grid=(8, 1), width=(8, 16), offset=(-5, 5))
    assert [type(knob).__name__ for knob in live.knobs.values()] == ["FloatSlider", "IntSlider", "IntSlider"]
    assert "<polyline" in live.picture.value
    live.knobs["factor"].value = 1.0
    live.knobs["offset"].value = 3
    np.testing.assert_array_equal(y.read(), np.arange(8) + 3)
    live.close()


def test_sliders_refuse(mgr):
    kernel, x, y = mgr.kernel(SOURCE, name="k"), mgr.zeros(64), mgr.zeros(64)
    for keywords, expected in (
        ({"width": (4, 1)}, "low must be below high"),
        ({"width": (-1, 4)}, "from 0 to"),
        ({"width": (0.5, 4)}, "whole numbers"),
        ({"factor": (1.0,)}, "low, high"),
        ({"push": {"nobody": 1}}, "'nobody'"),
        ({"nobody": 1}, "nobody"),
    ):
        with pytest.raises(kp.InvalidArgumentError, match=expected):
            kp.notebook.sliders(kernel, x, y, **keywords)
    with pytest.raises(kp.ArgumentTypeError, match="needs a Tensor"):
        kp.notebook.sliders(kernel, x, np.zeros(64, np.float32))
    with pytest.raises(kp.ArgumentTypeError, match=r"takes a kp\.Kernel"):
        kp.notebook.sliders(x)


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    yield shell
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.mark.parametrize("chosen", ["png", "retina", "svg"])
def test_figures_have_alternative_texts(mgr, shell, chosen):
    from IPython.core.pylabtools import select_figure_formats
    from IPython.utils.capture import capture_output

    select_figure_formats(shell, {chosen})
    weights = mgr.tensor([1, 4, 9])
    weights.name = 'a "weight"'
    named = kp.plot(weights, [0.5, np.nan])
    named.set_title("Loss & more")
    for axes, expected in (
        (named, "Loss & more: line 'a \"weight\"', 3 points, from 1 to 9; line, 2 points, from 0.5 to 0.5"),
        (kp.plot(np.eye(4, 6), kind="image"), "picture, 6 x 4, from 0 to 1"),
        (kp.plot([1, 1, 5], kind="hist", bins=2), "histogram, 2 bars, the highest 2"),
        (kp.plot([np.nan], kind="line"), "line, 1 point, no finite number"),
        (
            kp.plot(np.zeros((20, 2)), kind="line"),
            "; ".join(["line, 2 points, from 0 to 0"] * 8) + "; and 12 more",
        ),
    ):
        with capture_output() as shown:
            shell.display_formatter.format(axes.figure)
        (output,) = shown.outputs
        html = output.data["text/html"]
        kind = "svg+xml" if chosen == "svg" else "png"
        assert re.match(rf'<img src="data:image/{re.escape(kind)};base64,[A-Za-z0-9+/\n]+=*\n?"', html)
        assert ('width="' in html) == (chosen == "retina")
        assert unescape(re.search(r'alt="([^"]*)"', html)[1]) == expected
    # Without a format for figures, they are shown as other objects are.
    select_figure_formats(shell, set())
    with capture_output() as shown:
        assert shell.display_formatter.format(named.figure)[0]["text/plain"].startswith("<DescribedFigure")
    assert shown.outputs == []
