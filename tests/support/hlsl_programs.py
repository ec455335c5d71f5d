"""Scans and sorts in HLSL, each of several dispatches, with what NumPy says that they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import kompute_py as kp

Kernel = Callable[..., Any]
Make = Callable[[str], Any]
BLOCK = 64

_ARGUMENTS = "cbuffer Arguments : register(b9) { uint count; uint stride; uint width; };\n"

# Every scan adds the blocks' totals, which it has scanned in the same way, to the blocks.
_ADD = (
    _ARGUMENTS
    + """
StructuredBuffer<uint> before : register(t0);
RWStructuredBuffer<uint> data : register(u1);
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID, uint3 group : SV_GroupID) {
    if (id.x < count) data[id.x] += before[group.x];
}
"""
)

_BLOCKS = {
    # Two halves of shared memory take turns; inclusive within, so that the value itself comes off at the end.
    "hillis_steele": """
groupshared uint turn[2][64];
uint scan(uint value, uint local) {
    uint now = 0;
    turn[0][local] = value;
    GroupMemoryBarrierWithGroupSync();
    [unroll] for (uint reach = 1; reach < 64; reach <<= 1) {
        turn[1 - now][local] = turn[now][local] + (local >= reach ? turn[now][local - reach] : 0);
        now = 1 - now;
        GroupMemoryBarrierWithGroupSync();
    }
    return turn[now][local] - value;
}
""",
    # A tree of sums up, then the sums of all that is to the left down.
    "blelloch": """
groupshared uint tree[64];
uint scan(uint value, uint local) {
    tree[local] = value;
    for (uint reach = 1; reach < 64; reach <<= 1) {
        GroupMemoryBarrierWithGroupSync();
        uint right = (local + 1) * reach * 2 - 1;
        if (right < 64) tree[right] += tree[right - reach];
    }
    GroupMemoryBarrierWithGroupSync();
    if (local == 0) tree[63] = 0;
    for (uint span = 32; span > 0; span >>= 1) {
        GroupMemoryBarrierWithGroupSync();
        uint right = (local + 1) * span * 2 - 1;
        if (right < 64) {
            uint left = tree[right - span];
            tree[right - span] = tree[right];
            tree[right] += left;
        }
    }
    GroupMemoryBarrierWithGroupSync();
    return tree[local];
}
""",
    # Each wave by itself, then the waves' sums. A wave has 4 lanes at least, so there are 16 waves at most.
    "waves": """
groupshared uint sums[64];
uint scan(uint value, uint local) {
    uint lanes = WaveGetLaneCount();
    uint wave = local / lanes;
    uint inner = WavePrefixSum(value);
    uint total = WaveActiveSum(value);
    if (WaveIsFirstLane()) sums[wave] = total;
    GroupMemoryBarrierWithGroupSync();
    uint outer = 0;
    for (uint i = 0; i < wave; ++i) outer += sums[i];
    return outer + inner;
}
""",
}

_SCAN = """
RWStructuredBuffer<uint> data : register(u0);
RWStructuredBuffer<uint> totals : register(u1);
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID, uint local : SV_GroupIndex,
uint3 group : SV_GroupID) {
    uint value = id.x < count ? data[id.x] : 0;
    uint sum = scan(value, local);
    if (id.x < count) data[id.x] = sum;
    if (local == 63) totals[group.x] = sum + value;
}
"""


def _call(
    kernel: Kernel, groups: int, count: int, stride: int = 0, width: int = 0, **tensors: kp.Tensor
) -> None:
    kernel(groups=groups, bind={"Arguments": {"count": count, "stride": stride, "width": width}}, **tensors)


def _numbers(seed: int, count: int, limit: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    return np.random.default_rng(seed).integers(0, limit, count, dtype=np.uint32)


def _scan(mgr: kp.Manager, blocks: Kernel, add: Kernel, data: kp.Tensor) -> None:
    """Exclusive, in place, over any number of levels of blocks."""
    count = data.read().size
    groups = -(-count // BLOCK)
    totals = mgr.tensor_t(np.zeros(groups, np.uint32))
    _call(blocks, groups, count, data=data, totals=totals)
    if groups > 1:
        _scan(mgr, blocks, add, totals)
        _call(add, groups, count, before=totals, data=data)


def scan(kind: str) -> Callable[[kp.Manager, Make], None]:
    """The program of an exclusive scan whose blocks are scanned in this way."""

    def program(mgr: kp.Manager, make: Make) -> None:
        blocks, add = make(_ARGUMENTS + _BLOCKS[kind] + _SCAN), make(_ADD)
        for count in (1, 63, 64, 1000, 5000):  # the last one has three levels
            values = _numbers(count, count, 1000)
            data = mgr.tensor_t(values)
            _scan(mgr, blocks, add, data)
            want = np.concatenate([[0], np.cumsum(values)[:-1]]).astype(np.uint32)
            np.testing.assert_array_equal(data.read(), want)

    return program


_BITONIC = (
    _ARGUMENTS
    + """
RWStructuredBuffer<uint> data : register(u0);
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {
    uint other = id.x ^ stride;
    if (id.x >= count || other <= id.x) return;
    uint a = data[id.x], b = data[other];
    bool up = (id.x & width) == 0;
    if ((a > b) == up) { data[id.x] = b; data[other] = a; }
}
"""
)


def bitonic(mgr: kp.Manager, make: Make) -> None:
    """A bitonic sorting network: one dispatch for each of its columns."""
    kernel, values = make(_BITONIC), _numbers(1, 512, 1 << 30)
    data = mgr.tensor_t(values)
    width = 2
    while width <= values.size:
        stride = width // 2
        while stride:
            _call(kernel, values.size // BLOCK, values.size, stride, width, data=data)
            stride //= 2
        width *= 2
    np.testing.assert_array_equal(data.read(), np.sort(values))


_ODD_EVEN = (
    _ARGUMENTS
    + """
RWStructuredBuffer<float> data : register(u0);
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {
    uint start = stride % width;
    if (id.x < start || (id.x - start) % (2 * stride) >= stride) return;
    uint other = id.x + stride;
    if (other >= count || id.x / (2 * width) != other / (2 * width)) return;
    float a = data[id.x], b = data[other];
    data[id.x] = min(a, b);
    data[other] = max(a, b);
}
"""
)


def odd_even_merge(mgr: kp.Manager, make: Make) -> None:
    """Batcher's merge sort, of floats whose number is no power of two."""
    kernel = make(_ODD_EVEN)
    values = np.random.default_rng(2).normal(size=300).astype(np.float32)
    data = mgr.tensor_t(values)
    width = 1
    while width < values.size:
        stride = width
        while stride:
            _call(kernel, -(-values.size // BLOCK), values.size, stride, width, data=data)
            stride //= 2
        width *= 2
    np.testing.assert_array_equal(data.read(), np.sort(values))


_FLAGS = (
    _ARGUMENTS
    + """
StructuredBuffer<uint> keys : register(t0);
RWStructuredBuffer<uint> places : register(u1);
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {
    if (id.x < count) places[id.x] = 1 - ((keys[id.x] >> stride) & 1);
}
"""
)
_SPLIT = (
    _ARGUMENTS
    + """
StructuredBuffer<uint> keys : register(t0);
StructuredBuffer<uint> places : register(t1);
RWStructuredBuffer<uint> ordered : register(u2);
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {
    if (id.x >= count) return;
    uint last = keys[count - 1];
    uint zeros = places[count - 1] + (1 - ((last >> stride) & 1));
    uint key = keys[id.x];
    ordered[((key >> stride) & 1) == 0 ? places[id.x] : id.x - places[id.x] + zeros] = key;
}
"""
)


def radix(mgr: kp.Manager, make: Make) -> None:
    """A radix sort, bit by bit: flags, a scan, and the stable split that it gives."""
    flags, blocks, add, split = map(make, (_FLAGS, _ARGUMENTS + _BLOCKS["blelloch"] + _SCAN, _ADD, _SPLIT))
    values = _numbers(3, 1500, 1 << 8)
    keys, ordered = mgr.tensor_t(values), mgr.tensor_t(np.zeros_like(values))
    groups = -(-values.size // BLOCK)
    for bit in range(8):
        places = mgr.tensor_t(np.zeros_like(values))
        _call(flags, groups, values.size, bit, keys=keys, places=places)
        _scan(mgr, blocks, add, places)
        _call(split, groups, values.size, bit, keys=keys, places=places, ordered=ordered)
        keys, ordered = ordered, keys
    np.testing.assert_array_equal(keys.read(), np.sort(values))


_COUNT = (
    _ARGUMENTS
    + """
StructuredBuffer<uint> keys : register(t0);
RWByteAddressBuffer counts : register(u1);
groupshared uint local_counts[64];
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID, uint local : SV_GroupIndex) {
    local_counts[local] = 0;
    GroupMemoryBarrierWithGroupSync();
    if (id.x < count) InterlockedAdd(local_counts[keys[id.x]], 1u);
    GroupMemoryBarrierWithGroupSync();
    uint bytes;
    counts.GetDimensions(bytes);
    if (local * 4 < bytes && local_counts[local] > 0) counts.InterlockedAdd(local * 4, local_counts[local]);
}
"""
)
_PLACE = (
    _ARGUMENTS
    + """
StructuredBuffer<uint> keys : register(t0);
RWStructuredBuffer<uint> next : register(u1);
RWStructuredBuffer<uint> ordered : register(u2);
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {
    if (id.x >= count) return;
    uint place;
    InterlockedAdd(next[keys[id.x]], 1u, place);
    ordered[place] = keys[id.x];
}
"""
)


def counting(mgr: kp.Manager, make: Make) -> None:
    """A counting sort: a histogram, its scan, and each key to the next place of its kind."""
    count, blocks, add, place = map(
        make, (_COUNT, _ARGUMENTS + _BLOCKS["hillis_steele"] + _SCAN, _ADD, _PLACE)
    )
    values = _numbers(4, 2000, 60)
    keys, ordered = mgr.tensor_t(values), mgr.tensor_t(np.zeros_like(values))
    counts = mgr.tensor_t(np.zeros(60, np.uint32))
    groups = -(-values.size // BLOCK)
    _call(count, groups, values.size, keys=keys, counts=counts)
    np.testing.assert_array_equal(counts.read(), np.bincount(values, minlength=60))
    _scan(mgr, blocks, add, counts)
    _call(place, groups, values.size, keys=keys, next=counts, ordered=ordered)
    np.testing.assert_array_equal(ordered.read(), np.sort(values))


_MERGE = (
    _ARGUMENTS
    + """
struct Entry { float key; uint place; };
StructuredBuffer<Entry> entries : register(t0);
RWStructuredBuffer<Entry> merged : register(u1);
bool before(Entry a, Entry b, bool first) { return a.key < b.key || (a.key == b.key && first); }
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {
    if (id.x >= count) return;
    Entry own = entries[id.x];
    uint pair = id.x / (2 * width) * 2 * width;
    bool left = id.x < pair + width;
    uint low = min(left ? pair + width : pair, count), high = min(left ? pair + 2 * width : pair + width,
    count);
    uint start = low;
    while (low < high) {
        uint middle = (low + high) / 2;
        if (before(entries[middle], own, !left)) low = middle + 1; else high = middle;
    }
    uint rank = id.x - (left ? pair : min(pair + width, count));
    merged[pair + rank + (low - start)] = own;
}
"""
)


def merge(mgr: kp.Manager, make: Make) -> None:
    """A stable merge sort of structs: each entry finds its rank in the other half by bisection."""
    kernel = make(_MERGE)
    keys = np.random.default_rng(5).integers(0, 50, 700).astype(np.float32)
    values = np.zeros(keys.size, [("key", np.float32), ("place", np.uint32)])
    values["key"], values["place"] = keys, np.arange(keys.size)
    entries, merged = mgr.tensor_t(values), mgr.tensor_t(np.zeros_like(values))
    width = 1
    while width < keys.size:
        _call(kernel, -(-keys.size // BLOCK), keys.size, 0, width, entries=entries, merged=merged)
        entries, merged = merged, entries
        width *= 2
    order = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(entries.read()["place"], order)
    np.testing.assert_array_equal(entries.read()["key"], keys[order])


PROGRAMS: dict[str, Callable[[kp.Manager, Make], None]] = {
    "hillis_steele_scan": scan("hillis_steele"),
    "blelloch_scan": scan("blelloch"),
    "wave_scan": scan("waves"),
    "bitonic_sort": bitonic,
    "odd_even_merge_sort": odd_even_merge,
    "radix_sort": radix,
    "counting_sort": counting,
    "merge_sort": merge,
}
USES_WAVES = {"wave_scan"}
BLOCK_SOURCES = [
    _ARGUMENTS + _BLOCKS["hillis_steele"] + _SCAN,
    _ARGUMENTS + _BLOCKS["waves"] + _SCAN,
    _BITONIC,
    _COUNT,
    _MERGE,
]
