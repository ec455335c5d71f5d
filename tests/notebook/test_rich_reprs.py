"""What objects look like in a notebook: HTML, Mermaid, pictures; nothing is submitted, fetched or raised for
it.
"""

from __future__ import annotations

import base64
import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image as pillow

import kompute_py as kp
from kompute_py._display import graph, pictures

SOURCE = """
#version 450
layout(local_size_x = 8) in;
layout(constant_id = 0) const int TILE = 4;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = factor * x[i] + TILE; }
"""


def parsed(html: str) -> str:
    """The text of a card, which must be well-formed (its tags closed, its text escaped)."""
    closed = re.sub(r"<img ([^>]*)>", r"<img \1/>", html)
    return "\n".join(ElementTree.fromstring(closed).itertext())


def png_of(html: str) -> np.ndarray:
    found = re.search(r'src="data:image/png;base64,([^"]*)"', html)
    assert found, html
    return np.asarray(pillow.open(io.BytesIO(base64.b64decode(found[1]))))


def test_tensor_card_shows_what_the_host_copy_holds(mgr):
    tensor = mgr.tensor(np.array([[1, 2], [3, np.nan]], np.float32))
    tensor.name = "<b>&"
    text = parsed(tensor._repr_html_())
    for part in ("Tensor '<b>&'", "2 × 2", "float32", "16 bytes", "1 to 3", "1 NaN, 0 infinite", "host copy"):
        assert part in text
    tensor.destroy()
    assert "destroyed" in parsed(tensor._repr_html_())


def test_a_card_neither_fetches_nor_makes_a_host_copy(mgr):
    plain = mgr.zeros((64, 64))
    assert not plain._native.host_copy_made
    assert "only on the device" in parsed(plain._repr_html_())
    assert not plain._native.host_copy_made
    assert "only on the device" in parsed(mgr.empty(4, memory_type="storage")._repr_html_())
    tensor = mgr.tensor([1, 2, 3])
    tensor.write([7, 8, 9])  # the device's side alone
    assert "1 to 3" in parsed(tensor._repr_html_())


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float16", "float64", "complex64", [("a", "f4"), ("b", "i4", 2)]]
)
def test_every_dtype_has_a_card(mgr, dtype):
    array = np.zeros(5, dtype)
    text = parsed(mgr.tensor_t(array)._repr_html_())
    assert ("range" in text) == (array.dtype.names is None)


def test_statistics_are_numpys():
    values = np.random.default_rng(1).normal(size=1000)
    values[::100] = [np.nan, np.inf] * 5
    finite = values[np.isfinite(values)]
    found = pictures.statistics(values)
    assert (found.nan, found.infinite, found.sampled, found.total) == (5, 5, 1000, 1000)
    assert found.low == finite.min() and found.high == finite.max()
    np.testing.assert_allclose(
        [found.mean, found.deviation], [finite.mean(), finite.std()], rtol=1e-12, atol=1e-15
    )
    assert found.bins == tuple(np.histogram(finite, 32)[0])


def test_statistics_of_extremes():
    large = pictures.statistics(np.array([1e308, -1e308, 1e308]))
    assert np.isfinite([large.mean, large.deviation]).all() and sum(large.bins) == 3
    assert pictures.statistics(np.full(4, np.nan)).bins == ()
    assert pictures.statistics(np.full(4, 3.0)).bins == (4,)
    assert pictures.statistics(np.zeros(2, "V4")) is None
    assert pictures.histogram(pictures.statistics(np.full(4, np.nan))) == ""
    huge = pictures.statistics(np.broadcast_to(np.float32(2), (1 << 20,)))
    assert huge.sampled <= pictures.MOST_SAMPLED and huge.total == 1 << 20


@pytest.mark.parametrize("shape", [(9, 12), (9, 12, 1), (9, 12, 3), (9, 12, 4)])
def test_bytes_are_shown_as_they_are(mgr, shape):
    pixels = np.random.default_rng(2).integers(0, 256, shape, np.uint8)
    shown = png_of(mgr.tensor_t(pixels)._repr_html_())
    np.testing.assert_array_equal(shown, pixels.reshape(shown.shape))


def test_pictures_of_numbers():
    ramp = np.arange(64, dtype=np.float32).reshape(8, 8)
    assert pictures.picture(ramp).note == "black 0, white 63"
    shown = np.asarray(pillow.open(io.BytesIO(pictures.picture(ramp).png)))
    np.testing.assert_array_equal(shown, np.round(ramp / 63 * 255).astype(np.uint8))
    assert pictures.picture(ramp / 63).note == ""
    ramp[0, 0] = np.nan
    assert pictures.picture(ramp).note == "black 1, white 63"
    wide = np.array([[-1.7e308, 1.7e308] * 8] * 8)
    assert np.asarray(pillow.open(io.BytesIO(pictures.picture(wide).png))).max() == 255
    large = pictures.picture(np.zeros((2000, 1000), np.uint8))
    assert max(large.width, large.height) <= 256 and large.note == "every 8th pixel"
    assert not pictures.is_picture((4, 4), np.dtype("f4")) and not pictures.is_picture(
        (8, 8, 2), np.dtype("f4")
    )


def test_image_card(mgr):
    pixels = np.random.default_rng(3).integers(0, 256, (10, 20, 4), np.uint8)
    image = mgr.image_t(pixels)
    html = image._repr_html_()
    assert "rgba8" in parsed(html)
    np.testing.assert_array_equal(png_of(html), pixels)
    image.destroy()
    assert "destroyed" in parsed(image._repr_html_())


def test_manager_and_fence_cards(make_manager):
    mgr = make_manager()
    tensor = mgr.zeros(1024)
    text = parsed(mgr._repr_html_())
    assert mgr.get_device_properties()["device_name"] in text and "memory used" in text
    assert "done" in parsed(tensor.fill(0).wait()._repr_html_())
    mgr.destroy()
    assert "destroyed" in parsed(mgr._repr_html_())


def test_kernel_card(mgr):
    text = parsed(mgr.kernel(SOURCE, name="a<b").specialize(TILE=7)._repr_html_())
    for part in (
        "a<b",
        "0.0",
        "storage buffer",
        "float[]",
        "write",
        "factor (4 bytes)",
        "constant TILE",
        "7",
        "8 × 1 × 1",
    ):
        assert part in text, part


def test_sequence_bundle_shows_operations_and_barriers(mgr):
    kernel = mgr.kernel(SOURCE, name="scale")
    a, b, c, d = (mgr.zeros(8) for _ in range(4))
    seq = mgr.sequence()
    assert "nothing recorded" in seq._repr_mimebundle_()["text/plain"]
    seq.record(kernel.bind(a, b, factor=1.0)).record(kernel.bind(c, d, factor=1.0)).record(
        kernel.bind(b, c, factor=1.0)
    )
    assert "known after an evaluation" in seq._repr_mimebundle_()["text/plain"]
    seq.eval()
    bundle = seq._repr_mimebundle_()
    lines = bundle["text/plain"].splitlines()
    between = [i for i, each in enumerate(lines) if "|" in each]
    names = [i for i, each in enumerate(lines) if re.match(r"  \d+: ", each)]
    assert len(names) == 3
    # The first two are independent; the third reads what the first wrote and writes what the second read.
    assert not [i for i in between if names[0] < i < names[1]]
    (barrier,) = [i for i in between if names[1] < i < names[2]]
    assert "shader write → shader" in lines[barrier]
    drawn = bundle["text/vnd.mermaid"]
    # Front ends prefer HTML to a drawing; there is none.
    assert set(bundle) == {"text/plain", "text/markdown", "text/vnd.mermaid"}
    assert bundle["text/markdown"].startswith("**Sequence**: 3 operations on queue 0, ")
    assert bundle["text/markdown"].endswith(f"\n\n```mermaid\n{drawn}\n```")
    assert drawn == seq.mermaid() and drawn.startswith("flowchart TD\n")
    assert drawn.count("-.-") == 1
    seq.destroy()
    assert "destroyed" in seq._repr_mimebundle_()["text/markdown"] and "destroyed" in seq.mermaid()


def test_long_sequences_are_cut(mgr):
    op = kp.OpFill([mgr.zeros(4)], 0)
    seq = mgr.sequence()
    for _ in range(200):
        seq.record(op)
    seq.eval()
    text = seq._repr_mimebundle_()["text/plain"]
    assert "150 more operations" in text and "  199: " in text and "  60: " not in text


def test_markdown_titles_are_text():
    assert graph.as_markdown(graph.Graph("Sequence '*<b>`'", [], "destroyed")) == (
        "**Sequence &#39;&#42;&#60;b&#62;&#96;&#39;**: destroyed"
    )


def test_mermaid_labels_are_text():
    drawn = graph.mermaid(graph.Graph("t", [graph.Step("operation", 'a"]; click <b>#x\n')], ""))
    assert drawn.splitlines()[1:] == ['    n0["a#34;#93;#59; click #60;b#62;#35;x "]']
