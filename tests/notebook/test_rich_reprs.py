"""What objects look like in a notebook: HTML, Mermaid, pictures; nothing is submitted, fetched or raised for
it.
"""

from __future__ import annotations

import base64
import io
import random
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image as pillow

import kompute_py as kp
from kompute_py._display import cards, drawings, folding, graph
from tests.support.kernel_sources import COPY

SOURCE = """
#version 450
layout(local_size_x = 8) in;
layout(constant_id = 0) const int TILE = 4;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = factor * x[i] + TILE; }
"""


COPY_IMAGE = """
#version 450
layout(local_size_x = 8, local_size_y = 8) in;
layout(binding = 0, rgba8ui) uniform readonly uimage2D x;
layout(binding = 1, rgba8ui) uniform writeonly uimage2D y;
void main() { ivec2 p = ivec2(gl_GlobalInvocationID.xy); imageStore(y, p, imageLoad(x, p)); }
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


def test_a_card_makes_no_host_copy_and_begins_no_work(mgr):
    plain = mgr.zeros((64, 64))
    assert "its first use fills" in parsed(plain._repr_html_())
    assert not plain._native.host_copy_made and not plain._native.on_device
    plain.fill(3).wait()
    assert "3 to 3" in parsed(plain._repr_html_()) and "no host copy yet" in parsed(plain._repr_html_())
    assert not plain._native.host_copy_made


def written(mgr, made, how, values):
    """Brings `values` to `made` on the device, in one of the ways of a user; waits as that way does."""
    source = mgr.image_t(values) if made._is_image else mgr.tensor_t(values)
    if how == "write":
        made.write(values)
    elif how == "eval":
        mgr.sequence().eval(kp.OpSyncDevice([source])).eval(kp.OpCopy([source, made]))
    else:
        mgr.kernel(COPY_IMAGE if made._is_image else COPY)(source, made)


@pytest.mark.parametrize("how", ["write", "eval", "kernel"])
@pytest.mark.parametrize("where", ["device", "device, host copy made", "storage", "host", "deviceAndHost"])
@pytest.mark.parametrize("kind", ["tensor", "view", "image"])
def test_a_card_shows_what_a_blocking_call_wrote(mgr, kind, where, how):
    where, _, looked = where.partition(", ")
    pixels = np.random.default_rng(4).integers(0, 256, (16, 16, 4), np.uint8)
    if kind == "image":
        made = mgr.image_t(np.zeros_like(pixels), memory_type=where)
    else:
        pixels = pixels.astype(np.float32) / 255
        made = mgr.zeros(pixels.shape, memory_type=where)
        made = made[0:16] if kind == "view" else made
    if looked:
        made.data()
    written(mgr, made, how, pixels)
    card = made._repr_html_()
    shown = pixels if kind == "image" else np.rint(pixels * 255)
    np.testing.assert_array_equal(png_of(card), shown)
    assert f"{pixels.min():.6g} to {pixels.max():.6g}" in parsed(card)
    if looked and made._native.has_host_copy:
        assert "are newer than the host copy" in parsed(card)
        assert not made.data().any()  # which stays as it was


def test_a_card_waits_for_nothing(mgr):
    tensor, plain, other = mgr.tensor([1, 2, 3]), mgr.zeros(3), mgr.tensor([7, 8, 9])
    mgr.sequence().eval(kp.OpSyncDevice([tensor, other]))
    gate = mgr.semaphore()
    seq = mgr.sequence().record(kp.OpCopy([other, tensor])).record(kp.OpCopy([other, plain]))
    seq.eval_async(wait=(gate, 1))
    text = parsed(tensor._repr_html_())
    assert "1 to 3" in text and "newer: read() waits" in text
    assert "only on the device" in parsed(plain._repr_html_())
    assert "7 to 9" in parsed(other._repr_html_())  # it is only read
    gate.signal(1)
    seq.eval_await()
    assert "7 to 9" in parsed(tensor._repr_html_()) and "7 to 9" in parsed(plain._repr_html_())
    with tensor.map(write=True):
        assert "1 to 3" in parsed(tensor._repr_html_())


def test_a_card_of_much_memory_reads_nothing(mgr, monkeypatch):
    monkeypatch.setattr(cards, "_MOST_READ", 1023)
    large, small = mgr.zeros(256), mgr.zeros(255)
    for each in (large, small):
        each.fill(1).wait()
    assert "only on the device: read()" in parsed(large._repr_html_())
    assert "1 to 1" in parsed(small._repr_html_())


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
    found = drawings.statistics(values)
    assert (found.nan, found.infinite, found.sampled, found.total) == (5, 5, 1000, 1000)
    assert found.low == finite.min() and found.high == finite.max()
    np.testing.assert_allclose(
        [found.mean, found.deviation], [finite.mean(), finite.std()], rtol=1e-12, atol=1e-15
    )
    assert found.bins == tuple(np.histogram(finite, 32)[0])


def test_statistics_of_extremes():
    large = drawings.statistics(np.array([1e308, -1e308, 1e308]))
    assert np.isfinite([large.mean, large.deviation]).all() and sum(large.bins) == 3
    assert drawings.statistics(np.full(4, np.nan)).bins == ()
    assert drawings.statistics(np.full(4, 3.0)).bins == (4,)
    assert drawings.statistics(np.zeros(2, "V4")) is None
    assert drawings.histogram(drawings.statistics(np.full(4, np.nan))) == ""
    huge = drawings.statistics(np.broadcast_to(np.float32(2), (1 << 20,)))
    assert huge.sampled <= drawings.MOST_SAMPLED and huge.total == 1 << 20


@pytest.mark.parametrize("shape", [(9, 12), (9, 12, 1), (9, 12, 3), (9, 12, 4)])
def test_bytes_are_shown_as_they_are(mgr, shape):
    pixels = np.random.default_rng(2).integers(0, 256, shape, np.uint8)
    shown = png_of(mgr.tensor_t(pixels)._repr_html_())
    np.testing.assert_array_equal(shown, pixels.reshape(shown.shape))


def test_pictures_of_numbers():
    ramp = np.arange(64, dtype=np.float32).reshape(8, 8)
    assert drawings.picture(ramp).note == "black 0, white 63"
    shown = np.asarray(pillow.open(io.BytesIO(drawings.picture(ramp).png)))
    np.testing.assert_array_equal(shown, np.round(ramp / 63 * 255).astype(np.uint8))
    assert drawings.picture(ramp / 63).note == ""
    ramp[0, 0] = np.nan
    assert drawings.picture(ramp).note == "black 1, white 63"
    wide = np.array([[-1.7e308, 1.7e308] * 8] * 8)
    assert np.asarray(pillow.open(io.BytesIO(drawings.picture(wide).png))).max() == 255
    large = drawings.picture(np.zeros((2000, 1000), np.uint8))
    assert max(large.width, large.height) <= 256 and large.note == "every 8th pixel"
    assert not drawings.is_picture((4, 4), np.dtype("f4")) and not drawings.is_picture(
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
    seq = mgr.sequence()
    tensor = mgr.zeros(4)
    for i in range(200):
        # As if each were the only one of its kind: a custom operation's name is its class's.
        seq.record(type(f"Op{i}", (kp.OpBase,), {"record": lambda *_: None, "reads": [tensor]})())
    text = seq._repr_mimebundle_()["text/plain"]
    assert "150 more operations" in text and "  199: " in text and "  60: " not in text
    steps = graph._steps([folding.Element((), f"k{i}") for i in range(200)], ())
    assert [each.text for each in steps[39:42]] == ["39: k39", "150 more operations", "190: k190"]
    assert len(steps) == 51


def test_a_long_sequence_folds_what_repeats(mgr):
    a, b = mgr.zeros(8), mgr.zeros(8)
    scale, mix = mgr.kernel(SOURCE, name="scale"), mgr.kernel(SOURCE, name="mix")
    seq = mgr.sequence().record(kp.OpSyncDevice([a, b]))
    for _ in range(8):
        seq.record(scale.bind(a, b, factor=1.0))
        for _ in range(3):
            seq.record(mix.bind(b, a, factor=1.0)).record(mix.bind(a, b, factor=1.0))
        seq.record(scale.bind(b, a, factor=1.0))
    seq.record(kp.OpSyncLocal([a]))
    for built in (False, True):
        if built:
            seq.eval()
        lines = seq._repr_mimebundle_()["text/plain"].splitlines()
        told = [line for line in lines[1:] if "|" not in line]
        assert told == [
            "  0: OpSyncDevice", "  8 times, operations 1 to 64:", "      scale", "      6 times:",
            "          mix", "      scale", "  65: OpSyncLocal",
        ]  # fmt: skip
    assert lines[0].startswith("Sequence: 66 operations")
    drawn = seq.mermaid().splitlines()
    assert [line.strip() for line in drawn if "subgraph" in line] == [
        'subgraph loop0["8 times, operations 1 to 64"]',
        'subgraph loop1["6 times"]',
    ]
    assert sum(line.strip() == "end" for line in drawn) == 2
    # The loops' barriers lead back to their first operations.
    number = {m[2]: m[1] for line in drawn if (m := re.match(r' *(n\d+)\["(\w+)"\]', line))}
    back = [
        line for line in drawn if (m := re.match(r" *n(\d+) --> n(\d+)$", line)) and int(m[1]) > int(m[2])
    ]
    assert len(back) == 2 and any(line.endswith(f"> {number['mix']}") for line in back)


def test_folding_keeps_every_operation_and_barrier():
    rng = random.Random(6)
    Element = folding.Element

    def program(depth):
        """Nested loops of a few operations, with barriers here and there."""
        found = []
        for _ in range(rng.randrange(1, 4)):
            if depth and rng.random() < 0.6:
                body = program(depth - 1)
                found += body * rng.randrange(1, 6)
            else:
                found.append(Element(rng.choice([(), ("b",), ("b", "c")]), rng.choice("ABC")))
        return found

    for _ in range(300):
        operations = program(3)
        if operations and rng.random() < 0.5:
            operations[0] = operations[0]._replace(before=("first",))
        folded = folding.fold(operations)
        assert folding.unfold(folded) == operations
        assert sum(each.operations for each in folded) == len(operations)


def test_folding_nests_and_is_short():
    Element = folding.Element
    a, b, c = Element(("1",), "a"), Element(("2",), "b"), Element(("3",), "c")
    inner = [b] * 5 + [c]
    whole = [a._replace(before=())] + inner * 3 + ([a] + inner * 3) * 99
    (loop,) = folding.fold(whole)
    assert (loop.before, loop.times, loop.operations) == ((), 100, 1900)
    assert loop.body[0] == a and loop.body[1].times == 3 and loop.body[1].body[0].times == 5
    # Two of one operation, or of three, stay as they are; two of four do not.
    assert folding.fold([a, a, b]) == [a, a, b] and len(folding.fold([a, b, c] * 2)) == 6
    assert len(folding.fold([a, b, b, c] * 2)) == 1
    # The barriers between repetitions must be the same.
    assert len(folding.fold([Element((str(i),), "a") for i in range(9)])) == 9
    free = [Element((), f"k{i}") for i in range(5)]
    assert folding.fold(free) == free and folding.fold([]) == []


def test_alternative_texts(mgr):
    pixels = mgr.image_t(np.zeros((10, 20, 4), np.uint8))
    pixels.name = 'a"<b>'
    (alt,) = re.findall(r'<img [^>]*alt="([^"]*)"', pixels._repr_html_())
    assert alt == "Image &#x27;a&quot;&lt;b&gt;&#x27; as a picture, 20 columns by 10 rows"
    ramp = mgr.tensor_t(np.arange(100, dtype=np.float32).reshape(10, 10))
    html = ramp._repr_html_()
    assert 'alt="Tensor as a picture, 10 columns by 10 rows; black 0, white 99"' in html
    assert 'aria-label="histogram of 100 elements from 0 to 99; 4 of them are between 0 and 3.094"' in html
    line = drawings.line(np.array([1.0, -2.5, 4.0]))
    assert 'role="img" aria-label="line through 3 numbers from -2.5 to 4"' in line
    assert 'aria-label="histogram of 4 elements from 3 to 3' in drawings.histogram(
        drawings.statistics(np.full(4, 3.0))
    )
    seq = mgr.sequence().record(kp.OpFill([ramp], 0))
    seq.name = "it's; #1\n"
    spoken = [line.strip() for line in seq.mermaid().splitlines()[1:3]]
    assert spoken[0] == "accTitle: Sequence it s 1 n" and spoken[1].startswith(
        "accDescr: 1 operation on queue 0,"
    )


def test_markdown_titles_are_text():
    assert graph.as_markdown(graph.Graph("Sequence '*<b>`'", [], "destroyed")) == (
        "**Sequence &#39;&#42;&#60;b&#62;&#96;&#39;**: destroyed"
    )


def test_mermaid_labels_are_text():
    drawn = graph.mermaid(graph.Graph("t", [graph.Step("operation", 'a"]; click <b>#x\n')], ""))
    assert "accTitle: t" in drawn.splitlines()[1]
    assert drawn.splitlines()[3:] == ['    n0["a#34;#93;#59; click #60;b#62;#35;x "]']
