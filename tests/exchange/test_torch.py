"""DLPack both ways with PyTorch: pip's, or the CPU build that Debian and Ubuntu package (`./dev test`
installs it).
"""

from __future__ import annotations

import numpy as np
import pytest

import kompute_py as kp
from tests.support.kernel_sources import SCALE
from tests.support.optional import optional

pytestmark = pytest.mark.each_driver


@pytest.fixture(scope="module")
def torch():
    """PyTorch; for the system's, its folder stands last on the path while these tests run."""
    with optional("torch") as module:
        if module is None:
            pytest.skip(
                "no PyTorch for this interpreter: install Debian's python3-torch (`./dev test` does, for the "
                "system's own Python version) or the extra `torch`"
            )
        yield module


def host_memory(mgr):
    """A Tensor of 0 to 5 for each memory type that lies in the host's memory."""
    for where in kp.MemoryTypes.__members__:
        t = mgr.tensor(np.arange(6), where)
        mgr.sequence().eval(kp.OpSyncDevice([t]))
        if t.__dlpack_device__() == (1, 0):
            yield t


@pytest.mark.capability(
    "W11",
    "PyTorch's tensors: ours without a copy, theirs too where their memory can be imported",
    "kp.from_dlpack",
    "guides/exchange",
)
def test_shares_both_ways_and_keeps_the_memory_after_destroy(torch, make_manager):
    mgr = make_manager()
    kept = []
    for t in host_memory(mgr):
        x, a = torch.from_dlpack(t), np.from_dlpack(t)
        assert x.data_ptr() == a.ctypes.data
        x[2] = 50
        assert t.read().tolist() == a.tolist() == [0, 1, 50, 3, 4, 5]
        t.write([1, 1, 1, 1, 1, 1])
        assert x.tolist() == [1] * 6
        t.destroy()
        # A new tensor would lie where the destroyed one's memory was, had that been given back.
        other = mgr.empty(6, memory_type=t.memory_type())
        other.write(np.full(6, 9))
        x += 1
        assert x.tolist() == a.tolist() == [2] * 6 and (other.read() == 9).all()
        kept.append(x)
    assert len(kept) >= 2
    mgr.destroy()
    assert all(x.sum().item() == 12 for x in kept)


def test_a_shader_works_on_what_torch_wrote(torch, mgr):
    a, b, out = (mgr.zeros(100, memory_type="deviceAndHost") for _ in range(3))
    x, y, z = map(torch.from_dlpack, (a, b, out))
    x.copy_(torch.arange(100))
    y.fill_(3)
    mgr.sequence().eval(kp.OpMult([a, b, out]))
    assert torch.equal(z, torch.arange(100) * 3.0)


def test_a_kernel_reads_and_writes_tensors_of_torch(torch, mgr):
    scale = mgr.kernel(SCALE, name="scale")
    x, whole = torch.arange(6, dtype=torch.float32), torch.zeros(6, 2)
    for out in (torch.zeros(6), whole[:, 1]):
        assert scale(x, out=out, factor=2) is out
        assert out.tolist() == [0, 2, 4, 6, 8, 10]
    assert whole[:, 0].tolist() == [0] * 6
    for wrong, error, text in (
        (
            torch.zeros(6, requires_grad=True),
            kp.ArgumentTypeError,
            "'y' is a Tensor whose memory cannot be used: .*detach",
        ),
        (
            torch.zeros(1).expand(6),
            kp.InvalidArgumentError,
            "'y' is written.* elements of the Tensor share memory",
        ),
        (torch.zeros(6, dtype=torch.int32), kp.ArgumentTypeError, "'y' is .*int32"),
        (torch.empty(6, device="meta"), kp.ArgumentTypeError, "'y' is a Tensor whose memory cannot be used"),
    ):
        with pytest.raises(error, match=text):
            scale(x, out=wrong, factor=2)


def test_views_and_shapes(torch, mgr):
    t = mgr.tensor_t(np.arange(24, dtype=np.int32).reshape(2, 3, 4), "host")
    for view in (t, t[1], t.reshape(4, 6), t[1, 2]):
        x = torch.from_dlpack(view)
        assert tuple(x.shape) == view.shape and x.tolist() == view.read().tolist()
    source = torch.arange(12, dtype=torch.int16).reshape(3, 4)
    for x in (source, source.T, source[:, ::2], source[1:]):
        t = kp.from_dlpack(x, mgr)
        assert t.shape == tuple(x.shape) and t.read().tolist() == x.tolist()


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int32", "int64", "float16", "float64", "complex64", "bfloat16"]
)
def test_dtypes_both_ways(torch, mgr, name):
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
    source = torch.ones(7, dtype=getattr(torch, name))
    if name == "bool" and tuple(map(int, torch.__version__.split(".")[:2])) < (2, 1):
        # Such a torch has no bool in DLPack: its own words arrive, and nothing is left behind.
        with pytest.raises(RuntimeError, match="Bool type is not supported"):
            kp.from_dlpack(source, mgr)
        with pytest.raises(RuntimeError, match="code"):
            torch.from_dlpack(mgr.tensor_t(np.ones(7, bool), "host"))
        return
    t = kp.from_dlpack(source, mgr)
    assert str(t.dtype) == name and t.read().astype(complex).tolist() == [1] * 7
    back = torch.from_dlpack(t)
    assert back.dtype == source.dtype and bool((back == source).all())


def test_torchs_memory_is_shared_where_it_fits(torch, mgr):
    if mgr.host_import_alignment is None:
        pytest.skip("this device does not import memory of the process")
    x = torch.zeros(1 << 16)
    skip = -x.data_ptr() % mgr.host_import_alignment // 4
    part = x[skip : skip + (1 << 14)]
    t = kp.from_dlpack(part, mgr, copy=False)
    t.write(np.full(1 << 14, 3.0))
    assert float(part.sum()) == 3 * (1 << 14)
    part[0] = 8
    assert t.read()[0] == 8
    del x, part
    assert t.read()[0] == 8 and (t.read()[1:] == 3).all()


def test_what_torch_cannot_give_is_refused(torch, mgr):
    with pytest.raises(RuntimeError, match="require gradient"):
        kp.from_dlpack(torch.ones(3, requires_grad=True), mgr)
    with pytest.raises(RuntimeError, match="conjugate"):
        kp.from_dlpack(torch.ones(3, dtype=torch.complex64).conj(), mgr)
