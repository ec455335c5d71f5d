"""Watched kernels: what an edit of a shader's files does to calls and to what is recorded."""

from __future__ import annotations

import gc
import os
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

import kompute_py as kp
from tests.support.threads import beside

pytestmark = pytest.mark.each_driver

SCALE = """#version 450
#include "lib.glsl"
layout(local_size_x = LOCAL) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < y.length()) y[i] = SCALE * factor * x[i];
}
"""
LIB = "#define SCALE 1.0\n#define LOCAL 64\n"


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def shader(tmp_path):
    """The path of a shader beside its include."""
    path = tmp_path / "scale.comp"
    path.write_text(SCALE)
    (tmp_path / "lib.glsl").write_text(LIB)
    return path


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.capability(
    "", "shaders that follow edits of their files", "Manager.kernel, Kernel.reload", "guides/kernels"
)
def test_a_call_follows_an_edit_of_the_file_and_of_an_include(mgr, shader):
    x, y = mgr.tensor(np.arange(100, dtype=np.float32)), mgr.zeros(100)
    scale = mgr.kernel(shader, watch=True)
    for _ in range(2):
        scale(x, y, factor=2.0)
    assert np.array_equal(y.read(), 2 * x.data())
    edit(shader, "SCALE * factor", "10.0 + SCALE * factor")
    for _ in range(2):  # the second is an exact repetition
        scale(x, y, factor=2.0)
    assert np.array_equal(y.read(), 10 + 2 * x.data())
    edit(shader.parent / "lib.glsl", "SCALE 1.0", "SCALE 3.0")
    scale(x, y, factor=2.0)
    assert np.array_equal(y.read(), 10 + 6 * x.data())
    array = scale(np.ones(5, np.float32), np.zeros(5, np.float32), factor=1.0)
    assert np.array_equal(array, np.full(5, 13))
    scale.submit(x, y, factor=0.0).wait()
    assert scale.error is None


def test_a_recording_follows_and_counts_its_groups_anew(mgr, shader):
    x, y = mgr.tensor(np.arange(1000, dtype=np.float32)), mgr.zeros(1000)
    scale = mgr.kernel(shader, watch=True)
    by_shape = scale.bind(x, y, factor=1.0)
    by_groups = scale.bind(x, y, factor=1.0, groups=3)
    sequence = mgr.sequence().record(kp.OpSyncDevice([x, y]), by_shape, by_groups, kp.OpSyncLocal([y]))
    sequence.eval()
    assert by_shape.groups == (16, 1, 1)
    edit(shader.parent / "lib.glsl", "LOCAL 64", "LOCAL 32")
    edit(shader.parent / "lib.glsl", "SCALE 1.0", "SCALE 4.0")
    sequence.eval()
    assert np.array_equal(y.data(), 4 * x.data())  # with 16 groups of 32, half of it would be old
    assert scale.local_size == (32, 1, 1)
    assert by_shape.groups == (32, 1, 1) and by_groups.groups == (3, 1, 1)
    by_shape.set(factor=2.0)
    sequence.eval()
    assert np.array_equal(y.data()[96:], 8 * x.data()[96:])
    assert np.array_equal(y.data()[:96], 4 * x.data()[:96])


def test_a_broken_edit_keeps_the_last_version_and_warns_once(mgr, shader):
    x, y = mgr.tensor(np.ones(10, np.float32)), mgr.zeros(10)
    scale = mgr.kernel(shader, watch=True)
    sequence = mgr.sequence().record(kp.OpSyncDevice([x]), scale.bind(x, y, factor=2.0), kp.OpSyncLocal([y]))
    sequence.eval()
    for _ in range(2):  # the second time in the very same words: Python alone would not show it again
        edit(shader, "uint i =", "uint j =")
        with pytest.warns(kp.KomputeWarning, match=r"scale\.comp:9.*'i'") as caught:
            sequence.eval()
        assert len(caught) == 1 and caught[0].filename == __file__
        sequence.eval()
        scale(x, y, factor=2.0)
        assert np.array_equal(y.data(), np.full(10, 2))
        assert isinstance(scale.error, kp.ShaderCompileError)
        assert scale.error.diagnostics[0].line == 9
        edit(shader, "uint j =", "uint i =")
        sequence.eval()
        assert scale.error is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("float x[]", "int x[]", r"binding 0\.0 \(x\) is int\[\], not float\[\]"),
        ("float x[]", "float z[]", r"binding 0\.0 is called 'z', not 'x'"),
        (
            "float x[]; };",
            "float x[]; };\nlayout(binding = 2) buffer M { float mask[]; };",
            r"0\.2.*mask\) is new",
        ),
        (
            "readonly buffer X { float x[]; }",
            "uniform X { vec4 x[8]; }",
            r"binding 0\.0 \(x\) is a uniform buffer",
        ),
        ("binding = 0", "binding = 3", r"binding 0\.0 \(float\[\] x\) is gone; binding 0\.3"),
        ("float x[]", "float x[20]", r"float\[20\], not float\[\]"),
    ],
)
def test_an_edit_of_the_bindings_is_refused(mgr, shader, old, new, said):
    edit(shader, "SCALE * factor * x[i]", "SCALE * factor")
    x, y = mgr.tensor(np.ones(10, np.float32)), mgr.zeros(10)
    scale = mgr.kernel(shader, watch=True)
    scale(x, y, factor=2.0)
    if "mask" in new:
        edit(shader, "SCALE * factor", "mask[0] * factor")
    edit(shader, old, new)
    with pytest.warns(kp.KomputeWarning, match=said):
        scale(x, y, factor=3.0)
    assert np.array_equal(y.read(), np.full(10, 3))
    assert isinstance(scale.error, kp.InvalidArgumentError)
    shader.write_text(SCALE)
    scale(x, y, factor=4.0)
    assert np.array_equal(y.read(), np.full(10, 4))
    assert scale.error is None


@pytest.mark.parametrize("given", [{"groups": 3}, {"grid": 192}])
@pytest.mark.parametrize("bounds", ["check", "zero"])
def test_an_edit_is_judged_as_a_call_is(mgr, shader, bounds, given):
    if bounds == "zero" and "robustBufferAccess2" not in mgr.enabled_features:
        pytest.skip("the device does not promise zeros")
    edit(shader, "i < y.length()", "i < 100u")
    x, y = mgr.tensor(np.arange(100, dtype=np.float32)), mgr.zeros(192)
    scale = mgr.kernel(shader, bounds=bounds)
    recorded = scale.bind(x, y, factor=2.0, **given)
    sequence = mgr.sequence().record(recorded)
    edit(shader, "i < 100u", "i < 192u")  # x ends before
    if bounds == "check":
        with pytest.raises(kp.InvalidArgumentError, match="'x'"):
            scale.reload()
    else:
        assert scale.reload()
    sequence.eval()
    assert y.read()[:100].tolist() == (2 * x.read()).tolist() and not y.read()[100:].any()


def test_what_a_shader_does_with_a_binding_may_change(mgr, shader):
    x, y = mgr.tensor(np.ones(100, np.float32)), mgr.zeros(100)
    scale = mgr.kernel(shader, watch=True)
    op = scale.bind(x, y, factor=2.0)
    # Without an upload of y: once the code only asks for its length, newer validators still take the binding
    # for written.
    sequence = mgr.sequence().record(kp.OpSyncDevice([x]), op, kp.OpSyncLocal([x, y]))
    sequence.eval()
    edit(shader, "readonly buffer X", "buffer X")
    edit(shader, "y[i] = SCALE * factor * x[i]", "x[i] = 7.0")
    sequence.eval()
    assert np.array_equal(x.data(), np.full(100, 7)) and np.array_equal(y.data(), np.full(100, 2))
    edit(shader, "x[i] = 7.0", "")  # nothing is written that a grid could come from: it is kept
    sequence.eval()
    assert op.groups == (2, 1, 1)


def test_push_constants_follow_by_name(mgr, shader):
    x, y = mgr.tensor(np.ones(10, np.float32)), mgr.zeros(10)
    edit(shader, "float factor;", "float factor; float more;")
    edit(shader, "* x[i]", "* x[i] + more")
    scale = mgr.kernel(shader, watch=True)
    op = scale.bind(x, y, factor=2.0, more=1.0)
    sequence = mgr.sequence().record(kp.OpSyncDevice([x]), op, kp.OpSyncLocal([y]))
    sequence.eval()
    edit(shader, "float factor; float more;", "float more; layout(offset = 32) float factor;")
    sequence.eval()
    assert np.array_equal(y.data(), np.full(10, 3))
    edit(shader, "float more; layout(offset = 32) ", "")
    edit(shader, "+ more", "")
    sequence.eval()
    assert np.array_equal(y.data(), np.full(10, 2)) and op.push_constants == {"factor": 2.0}
    edit(shader, "float factor;", "float factor; float power;")
    with pytest.warns(kp.KomputeWarning, match="recording of scale: missing push constant power"):
        sequence.eval()
    assert scale.error is not None and scale.error.__traceback__ is None
    del sequence, op
    gc.collect()
    scale.reload()  # nothing is recorded any more that lacks it
    scale(x, y, factor=1.0, power=1.0)


def test_saving_as_editors_do(mgr, shader):
    x, y = mgr.tensor(np.ones(10, np.float32)), mgr.zeros(10)
    scale = mgr.kernel(shader, watch=True)
    sequence = mgr.sequence().record(kp.OpSyncDevice([x]), scale.bind(x, y, factor=1.0), kp.OpSyncLocal([y]))
    library = shader.parent / "lib.glsl"

    def result():
        sequence.eval()
        return y.data()[0]

    assert result() == 1
    # A temporary file that takes the place of the old one.
    (shader.parent / "lib.tmp").write_text(LIB.replace("1.0", "2.0"))
    os.replace(shader.parent / "lib.tmp", library)
    assert result() == 2
    # In the same tick of the clock, with the same size, in place.
    before = library.stat()
    library.write_text(LIB.replace("1.0", "3.0"))
    os.utime(library, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert result() == 3
    # The old file is moved away first; or cut to nothing.
    library.rename(shader.parent / "lib.glsl~")
    assert result() == 3
    library.write_text("")
    assert result() == 3
    assert scale.error is None
    library.write_text(LIB.replace("1.0", "4.0"))
    assert result() == 4
    # Touched, with nothing changed; and a comment.
    os.utime(library)
    assert result() == 4
    library.write_text(LIB.replace("1.0", "4.0 // nothing"))
    assert result() == 4 and scale.error is None


def test_an_old_file_that_changes_is_seen(mgr, shader):
    long_ago = time.time() - 1000
    os.utime(shader, (long_ago, long_ago))
    os.utime(shader.parent / "lib.glsl", (long_ago, long_ago))
    scale = mgr.kernel(shader, watch=True)
    y = mgr.zeros(4)
    scale(np.ones(4, np.float32), y, factor=1.0)
    edit(shader, "SCALE *", "9.0 * ")
    os.utime(shader, (long_ago + 1, long_ago + 1))
    scale(np.ones(4, np.float32), y, factor=1.0)
    assert y.read()[0] == 9


def test_a_file_that_stays_away_is_an_error_until_it_is_back(mgr, shader):
    scale = mgr.kernel(shader, watch=True)
    x, y = mgr.tensor(np.ones(4, np.float32)), mgr.zeros(4)
    scale(x, y, factor=1.0)
    shader.unlink()
    scale(x, y, factor=1.0)
    time.sleep(1.05)
    with pytest.warns(kp.KomputeWarning, match="no shader file"):
        scale(x, y, factor=1.0)
    assert isinstance(scale.error, kp.NotFoundError)
    scale(x, y, factor=2.0)
    shader.write_text(SCALE.replace("SCALE *", "5.0 *"))
    scale(x, y, factor=2.0)
    assert y.read()[0] == 10 and scale.error is None


def test_includes_that_an_edit_adds(mgr, shader):
    scale = mgr.kernel(shader, watch=True, include_dirs=[shader.parent / "more"])
    x, y = mgr.tensor(np.ones(4, np.float32)), mgr.zeros(4)

    def result():
        scale(x, y, factor=1.0)
        return y.read()[0]

    assert result() == 1
    edit(shader, '"lib.glsl"', '"lib.glsl"\n#include "extra.glsl"')
    edit(shader, "SCALE *", "SCALE * EXTRA *")
    with pytest.warns(kp.KomputeWarning, match=r"extra\.glsl"):
        result()
    (shader.parent / "more").mkdir()
    (shader.parent / "more" / "extra.glsl").write_text("#define EXTRA 2.0\n")
    assert result() == 2  # the file that was missing has come
    (shader.parent / "more" / "extra.glsl").write_text("#define EXTRA 3.0\n")
    assert result() == 3
    (shader.parent / "extra.glsl").write_text("#define EXTRA 4.0\n")
    assert result() == 4  # one that is found earlier


def test_reload_by_hand(mgr, shader):
    scale = mgr.kernel(str(shader))
    x, y = mgr.tensor(np.ones(100, np.float32)), mgr.zeros(100)
    op = scale.bind(x, y, factor=1.0)
    sequence = mgr.sequence().record(kp.OpSyncDevice([x]), op, kp.OpSyncLocal([y]))
    sequence.eval()
    edit(shader.parent / "lib.glsl", "LOCAL 64", "LOCAL 8")
    edit(shader.parent / "lib.glsl", "SCALE 1.0", "SCALE 2.0")
    sequence.eval()
    scale(x, y, factor=1.0)
    assert y.read()[0] == 1 and op.groups == (2, 1, 1)  # nobody looks
    assert scale.reload() is True
    assert op.groups == (13, 1, 1)
    sequence.eval()
    assert np.array_equal(y.data(), np.full(100, 2))
    assert scale.reload() is False
    edit(shader, "void main", "void man")
    with pytest.raises(kp.ShaderCompileError):
        scale.reload()
    assert isinstance(scale.error, kp.ShaderCompileError)
    sequence.eval()
    edit(shader, "void man", "void main")
    assert scale.reload() is False and scale.error is None


RECORDINGS = {
    "sequence": lambda mgr, op: mgr.sequence().record(op),
    "beside others": lambda mgr, op: mgr.sequence().record(kp.OpMult([mgr.zeros(4)] * 3)).record(op),
    "repeated": lambda mgr, op: mgr.sequence().record(kp.OpRepeat(op, 2)),
    "repeated in a list": lambda mgr, op: mgr.sequence().record(kp.OpRepeat([op, op], 1)),
    "timed": lambda mgr, op: mgr.sequence(timestamps=True).record(op),
    "begun anew": lambda mgr, op: mgr.sequence().record(op).eval().record(op),
}
WAYS = {
    "eval": lambda mgr, recorded: recorded.eval(),
    "eval_async": lambda mgr, recorded: recorded.eval_async().eval_await(),
    "submit": lambda mgr, recorded: mgr.submit([recorded]).wait(),
    "after rerecord": lambda mgr, recorded: (recorded.rerecord(), recorded.eval()),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("recording", RECORDINGS)
def test_recordings_follow_a_reload_though_nobody_keeps_the_operation(mgr, shader, recording, way):
    scale = mgr.kernel(shader)
    x, y = mgr.tensor(np.arange(4, dtype=np.float32)), mgr.zeros(4)
    recorded = RECORDINGS[recording](mgr, scale.bind(x, y, factor=1.0))
    gc.collect()
    WAYS[way](mgr, recorded)
    assert y.read().tolist() == [0, 1, 2, 3]
    edit(shader.parent / "lib.glsl", "SCALE 1.0", "SCALE 3.0")
    assert scale.reload()
    WAYS[way](mgr, recorded)
    assert y.read().tolist() == [0, 3, 6, 9]


def test_a_stream_follows_a_reload_when_it_begins(mgr, shader):
    scale = mgr.kernel(shader)
    x, y = mgr.zeros(4), mgr.zeros(4)
    recorded = mgr.sequence().record(scale.bind(x, y, factor=1.0))
    gc.collect()
    frames = np.arange(1, 6, dtype=np.float32)[:, None].repeat(4, 1)
    for factor in (1.0, 3.0):
        edit(shader.parent / "lib.glsl", "SCALE 1.0", f"SCALE {factor}")
        scale.reload()
        found = []
        for out in recorded.stream(frames, inputs=x, outputs=y):
            found.append(out[0])
            if len(found) == 1 and factor == 3.0:  # what runs keeps its version
                edit(shader.parent / "lib.glsl", "SCALE 3.0", "SCALE 7.0")
                assert scale.reload()
        assert found == (frames[:, 0] * factor).tolist()


def test_a_recording_that_is_cleared_or_begun_anew_keeps_no_operation(mgr, shader):
    scale = mgr.kernel(shader)
    recorded = mgr.sequence()

    def begin_anew():
        recorded.eval().record(kp.OpMult([mgr.zeros(4)] * 3))

    for end in (recorded.clear, begin_anew, recorded.destroy):
        operation = scale.bind(mgr.zeros(4), mgr.zeros(4), factor=1.0)
        kept = weakref.ref(operation)
        recorded.record(operation)
        del operation
        gc.collect()
        assert kept() is not None
        end()
        gc.collect()
        assert kept() is None


def test_what_is_in_no_file_cannot_be_reloaded_or_watched(mgr, shader):
    text = SCALE.replace('#include "lib.glsl"', LIB)
    with pytest.raises(kp.FailedPreconditionError, match="not created from a file"):
        mgr.kernel(text).reload()
    for source in (text, kp.compile(text), kp.ShaderModule(shader)):
        with pytest.raises(kp.InvalidArgumentError, match="watch=True needs a shader in a file"):
            mgr.kernel(source, watch=True)


def test_text_is_watched_by_its_includes(mgr, shader):
    scale = mgr.kernel(SCALE, watch=True, include_dirs=[shader.parent])
    x, y = mgr.tensor(np.ones(4, np.float32)), mgr.zeros(4)
    scale(x, y, factor=1.0)
    edit(shader.parent / "lib.glsl", "SCALE 1.0", "SCALE 6.0")
    scale(x, y, factor=1.0)
    assert y.read()[0] == 6


def test_modules_in_files_are_watched_too(mgr, tmp_path, shader):
    file = tmp_path / "scale.spv"
    file.write_bytes(kp.compile(shader))
    scale = mgr.kernel(file, watch=True)
    x, y = mgr.tensor(np.ones(4, np.float32)), mgr.zeros(4)
    edit(shader, "SCALE *", "8.0 *")
    file.write_bytes(kp.compile(shader))
    scale(x, y, factor=1.0)
    assert y.read()[0] == 8
    file.write_bytes(b"\x03\x02\x23\x07 no")
    with pytest.warns(kp.KomputeWarning, match="not SPIR-V"):
        scale(x, y, factor=1.0)
    assert isinstance(scale.error, kp.InvalidArgumentError)


def test_specialized_kernels_follow(mgr, tmp_path):
    path = tmp_path / "special.comp"
    path.write_text("""#version 450
layout(local_size_x = 16, local_size_x_id = 0) in;
layout(constant_id = 0) const uint TILE = 16;
layout(constant_id = 1) const float BIAS = 0.5;
layout(set = 0, binding = 0) buffer Y { float y[]; };
void main() { if (gl_GlobalInvocationID.x < y.length()) y[gl_GlobalInvocationID.x] = BIAS; }
""")
    kernel = mgr.kernel(path, watch=True)
    special = kernel.specialize(TILE=8, BIAS=2.0)
    y = mgr.zeros(64)
    op = special.bind(y)
    sequence = mgr.sequence().record(op, kp.OpSyncLocal([y])).eval()
    assert y.data()[0] == 2 and op.groups == (8, 1, 1)
    edit(path, "= BIAS", "= 10.0 + BIAS")
    edit(path, "constant_id = 0", "constant_id = 7")
    edit(path, "local_size_x_id = 0", "local_size_x_id = 7")
    sequence.eval()
    assert y.data()[0] == 12 and special.local_size == (8, 1, 1) and op.groups == (8, 1, 1)
    kernel(y)
    assert y.read()[0] == 10.5 and kernel.local_size == (16, 1, 1)
    edit(path, "BIAS", "OTHER")
    with pytest.warns(kp.KomputeWarning, match="no specialization constant 'BIAS'"):
        sequence.eval()
    assert special.error is kernel.error is not None
    assert kernel.specialize(TILE=8, BIAS=2.0) is special


def test_an_edit_that_the_device_refuses(mgr, shader):
    scale = mgr.kernel(shader, watch=True)
    x, y = mgr.tensor(np.ones(4, np.float32)), mgr.zeros(4)
    scale(x, y, factor=1.0)
    edit(shader, "local_size_x = LOCAL", "local_size_x = 1024, local_size_y = 1024")
    with pytest.warns(kp.KomputeWarning, match="maxComputeWorkGroup"):
        scale(x, y, factor=2.0)
    assert y.read()[0] == 2 and isinstance(scale.error, kp.InvalidArgumentError)


def test_running_work_ends_with_the_version_that_it_began_with(mgr, shader):
    edit(shader, "SCALE * factor * x[i]", "factor; for (int n = 0; n < 4000; ++n) y[i] += SCALE")
    x, y = mgr.tensor(np.ones(2000, np.float32)), mgr.zeros(2000)
    scale = mgr.kernel(shader, watch=True)
    sequence = mgr.sequence().record(scale.bind(x, y, factor=1.0), kp.OpSyncLocal([y]))
    sequence.eval()
    sequence.eval_async()
    edit(shader.parent / "lib.glsl", "SCALE 1.0", "SCALE 2.0")
    scale.reload()
    with pytest.raises(kp.FailedPreconditionError, match="running"):
        sequence.eval()
    sequence.eval_await()
    assert np.array_equal(y.data(), np.full(2000, 4001))
    sequence.eval()
    assert np.array_equal(y.data(), np.full(2000, 8001))
    # Dropped while it runs, with a recording of a version that is gone.
    sequence.eval_async()
    edit(shader.parent / "lib.glsl", "SCALE 2.0", "SCALE 3.0")
    scale.reload()
    with pytest.warns(ResourceWarning):
        del sequence
    mgr.synchronize()


def test_what_is_destroyed_does_not_hold_an_edit_up(mgr, shader):
    scale = mgr.kernel(shader, watch=True)
    x, y, z = mgr.tensor(np.ones(4, np.float32)), mgr.zeros(4), mgr.zeros(4)
    op = scale.bind(x, z, factor=1.0)
    sequence = mgr.sequence().record(op).eval()
    scale(x, z, factor=1.0)
    z.destroy()
    edit(shader, "SCALE *", "2.0 *")
    scale(x, y, factor=1.0)
    assert y.read()[0] == 2
    with pytest.raises(kp.FailedPreconditionError, match="destroyed"):
        sequence.eval()


def test_dropped_kernels_and_operations_leave_nothing(mgr, shader):
    before = kp.alive()
    scale = mgr.kernel(shader, watch=True)
    x, y = mgr.tensor(np.ones(4, np.float32)), mgr.zeros(4)
    sequence = mgr.sequence().record(kp.OpSyncDevice([x]), scale.bind(x, y, factor=1.0)).eval()
    del scale
    for factor in range(2, 6):
        edit(shader.parent / "lib.glsl", f"SCALE {factor - 1}.0", f"SCALE {factor}.0")
        sequence.eval()
        assert y.read()[0] == factor  # the operation holds its kernel
    del sequence, x, y
    gc.collect()
    mgr.synchronize()
    mgr.memory.trim()  # recent versions are kept
    detail = kp.alive(detail=True)
    assert kp.alive() <= before, detail


def test_relative_paths_hold_when_the_folder_changes(mgr, shader, monkeypatch, tmp_path):
    monkeypatch.chdir(shader.parent)
    scale = mgr.kernel("scale.comp", watch=True)
    x, y = mgr.tensor(np.ones(4, np.float32)), mgr.zeros(4)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    edit(shader, "SCALE *", "2.0 *")
    scale(x, y, factor=1.0)
    edit(shader.parent / "lib.glsl", "LOCAL 64", "LOCAL 32")
    scale(x, y, factor=1.0)
    assert y.read()[0] == 2 and scale.local_size == (32, 1, 1)


def test_threads_evaluate_while_the_file_is_edited(mgr, shader):
    x = mgr.tensor(np.ones(256, np.float32))
    scale = mgr.kernel(shader, watch=True)
    stop = threading.Event()

    def work(_):
        y = mgr.zeros(256)
        sequence = mgr.sequence().record(
            kp.OpSyncDevice([x]), scale.bind(x, y, factor=1.0), kp.OpSyncLocal([y])
        )
        while not stop.is_set():
            sequence.eval()
            assert len(set(y.data())) == 1
            scale(x, y, factor=1.0)
        sequence.eval()
        assert y.data()[0] == 12

    with beside(work, range(3)):
        library = shader.parent / "lib.glsl"
        for value in range(1, 13):
            fresh = library.with_suffix(".new")
            fresh.write_text(f"#define SCALE {value}.0\n#define LOCAL {16 << value % 3}\n")
            os.replace(fresh, library)
            time.sleep(0.02)
        stop.set()


def test_sequences_without_watched_kernels_do_not_look(mgr, shader):
    scale = mgr.kernel(shader)
    x, y = mgr.tensor(np.ones(4, np.float32)), mgr.zeros(4)
    sequence = mgr.sequence().record(scale.bind(x, y, factor=1.0))
    shader.unlink()
    sequence.eval()
    scale(x, y, factor=1.0)
    assert scale.error is None
