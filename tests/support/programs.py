"""Scans, reductions and sorts in one form for HLSL, Slang and GLSL, each of several dispatches, with what
NumPy says that they give. The form is HLSL's, with macros for buffers and entry points.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import kompute_py as kp

Kernel = Callable[..., Any]
Make = Callable[[str], Any]
BLOCK = 64

_HLSL = """
#define IN(kind, name, place) StructuredBuffer<kind> name : register(t##place);
#define OUT(kind, name, place) RWStructuredBuffer<kind> name : register(u##place);
#define MAIN void main(uint3 id : SV_DispatchThreadID, uint local : SV_GroupIndex, uint3 group : SV_GroupID)
cbuffer Arguments : register(b9) { uint count; uint stride; uint width; };
"""
_GLSL = """#version 450
#extension GL_KHR_shader_subgroup_arithmetic : enable
#extension GL_EXT_control_flow_attributes : enable
#define IN(kind, name, place) layout(binding = place, std430) readonly buffer name##_block { kind name[]; };
#define OUT(kind, name, place) layout(binding = place, std430) buffer name##_block { kind name[]; };
#define MAIN void body(uvec3 id, uint local, uvec3 group); \\
    void main() { body(gl_GlobalInvocationID, gl_LocalInvocationIndex, gl_WorkGroupID); } \\
    void body(uvec3 id, uint local, uvec3 group)
#define groupshared shared
#define GroupMemoryBarrierWithGroupSync barrier
#define InterlockedAdd(x, n, before) before = atomicAdd(x, n)
#define WaveGetLaneCount() gl_SubgroupSize
#define WavePrefixSum subgroupExclusiveAdd
#define WaveActiveSum subgroupAdd
#define WaveIsFirstLane subgroupElect
layout(local_size_x = 64) in;
layout(binding = 9, std140) uniform Arguments { uint count, stride, width; };
"""


def in_language(program: str, language: str) -> str:
    """The program's source in a language."""
    if language != "glsl":
        return _HLSL + program
    # GLSL has the size of a group elsewhere, and two brackets around the hint.
    return _GLSL + program.replace("[numthreads(64, 1, 1)]", "").replace("[unroll]", "[[unroll]]")


# Every scan adds the blocks' totals, which it has scanned in the same way, to the blocks.
_ADD = """
IN(uint, before, 0)
OUT(uint, data, 1)
[numthreads(64, 1, 1)] MAIN {
    if (id.x < count) data[id.x] += before[group.x];
}
"""

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
OUT(uint, data, 0)
OUT(uint, totals, 1)
[numthreads(64, 1, 1)] MAIN {
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
        blocks, add = make(_BLOCKS[kind] + _SCAN), make(_ADD)
        for count in (1, 63, 64, 1000, 5000):  # the last one has three levels
            values = _numbers(count, count, 1000)
            data = mgr.tensor_t(values)
            _scan(mgr, blocks, add, data)
            want = np.concatenate([[0], np.cumsum(values)[:-1]]).astype(np.uint32)
            np.testing.assert_array_equal(data.read(), want)

    return program


_REDUCTIONS = {
    "tree": """
groupshared uint part[64];
uint reduce(uint value, uint local) {
    part[local] = value;
    for (uint reach = 32; reach > 0; reach >>= 1) {
        GroupMemoryBarrierWithGroupSync();
        if (local < reach) part[local] += part[local + reach];
    }
    return part[local];
}
""",
    "waves": """
groupshared uint sums[64];
uint reduce(uint value, uint local) {
    uint total = WaveActiveSum(value), all_waves = 0;
    if (WaveIsFirstLane()) sums[local / WaveGetLaneCount()] = total;
    GroupMemoryBarrierWithGroupSync();
    for (uint i = 0; i < 64 / WaveGetLaneCount(); ++i) all_waves += sums[i];
    return all_waves;
}
""",
}
_SUMS = """
IN(uint, data, 0)
OUT(uint, totals, 1)
[numthreads(64, 1, 1)] MAIN {
    uint total = reduce(id.x < count ? data[id.x] : 0, local);
    if (local == 0) totals[group.x] = total;
}
"""


def reduction(kind: str) -> Callable[[kp.Manager, Make], None]:
    """The program of a sum, as long as there are several blocks."""

    def program(mgr: kp.Manager, make: Make) -> None:
        kernel = make(_REDUCTIONS[kind] + _SUMS)
        for count in (1, 64, 5000):
            values = _numbers(count, count, 1 << 31)
            data, left = mgr.tensor_t(values), count
            while left > 1:
                groups = -(-left // BLOCK)
                totals = mgr.tensor_t(np.zeros(groups, np.uint32))
                _call(kernel, groups, left, data=data, totals=totals)
                data, left = totals, groups
            assert data.read()[0] == values.sum(dtype=np.uint32)

    return program


_BITONIC = """
OUT(uint, data, 0)
[numthreads(64, 1, 1)] MAIN {
    uint other = id.x ^ stride;
    if (id.x >= count || other <= id.x) return;
    uint a = data[id.x], b = data[other];
    bool up = (id.x & width) == 0;
    if ((a > b) == up) { data[id.x] = b; data[other] = a; }
}
"""


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


_ODD_EVEN = """
OUT(float, data, 0)
[numthreads(64, 1, 1)] MAIN {
    uint start = stride % width;
    if (id.x < start || (id.x - start) % (2 * stride) >= stride) return;
    uint other = id.x + stride;
    if (other >= count || id.x / (2 * width) != other / (2 * width)) return;
    float a = data[id.x], b = data[other];
    data[id.x] = min(a, b);
    data[other] = max(a, b);
}
"""


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


_FLAGS = """
IN(uint, keys, 0)
OUT(uint, places, 1)
[numthreads(64, 1, 1)] MAIN {
    if (id.x < count) places[id.x] = 1 - ((keys[id.x] >> stride) & 1);
}
"""
_SPLIT = """
IN(uint, keys, 0)
IN(uint, places, 1)
OUT(uint, ordered, 2)
[numthreads(64, 1, 1)] MAIN {
    if (id.x >= count) return;
    uint last = keys[count - 1];
    uint zeros = places[count - 1] + (1 - ((last >> stride) & 1));
    uint key = keys[id.x];
    ordered[((key >> stride) & 1) == 0 ? places[id.x] : id.x - places[id.x] + zeros] = key;
}
"""


def radix(mgr: kp.Manager, make: Make) -> None:
    """A radix sort, bit by bit: flags, a scan, and the stable split that it gives."""
    flags, blocks, add, split = map(make, (_FLAGS, _BLOCKS["blelloch"] + _SCAN, _ADD, _SPLIT))
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


_COUNT = """
IN(uint, keys, 0)
OUT(uint, counts, 1)
groupshared uint local_counts[64];
[numthreads(64, 1, 1)] MAIN {
    uint before;
    local_counts[local] = 0;
    GroupMemoryBarrierWithGroupSync();
    if (id.x < count) InterlockedAdd(local_counts[keys[id.x]], 1u, before);
    GroupMemoryBarrierWithGroupSync();
    if (local < width && local_counts[local] > 0) InterlockedAdd(counts[local], local_counts[local], before);
}
"""
_PLACE = """
IN(uint, keys, 0)
OUT(uint, next, 1)
OUT(uint, ordered, 2)
[numthreads(64, 1, 1)] MAIN {
    if (id.x >= count) return;
    uint place;
    InterlockedAdd(next[keys[id.x]], 1u, place);
    ordered[place] = keys[id.x];
}
"""


def counting(mgr: kp.Manager, make: Make) -> None:
    """A counting sort: a histogram, its scan, and each key to the next place of its kind."""
    count, blocks, add, place = map(make, (_COUNT, _BLOCKS["hillis_steele"] + _SCAN, _ADD, _PLACE))
    values = _numbers(4, 2000, 60)
    keys, ordered = mgr.tensor_t(values), mgr.tensor_t(np.zeros_like(values))
    counts = mgr.tensor_t(np.zeros(60, np.uint32))
    groups = -(-values.size // BLOCK)
    _call(count, groups, values.size, width=60, keys=keys, counts=counts)
    np.testing.assert_array_equal(counts.read(), np.bincount(values, minlength=60))
    _scan(mgr, blocks, add, counts)
    _call(place, groups, values.size, keys=keys, next=counts, ordered=ordered)
    np.testing.assert_array_equal(ordered.read(), np.sort(values))


_MERGE = """
struct Entry { float key; uint place; };
IN(Entry, entries, 0)
OUT(Entry, merged, 1)
bool before(Entry a, Entry b, bool first) { return a.key < b.key || (a.key == b.key && first); }
[numthreads(64, 1, 1)] MAIN {
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
    "hillis_steele_scan": scan("hillis_steele"), "blelloch_scan": scan("blelloch"),
    "wave_scan": scan("waves"), "tree_sum": reduction("tree"), "wave_sum": reduction("waves"),
    "bitonic_sort": bitonic, "odd_even_merge_sort": odd_even_merge, "radix_sort": radix,
    "counting_sort": counting, "merge_sort": merge,
}  # fmt: skip
USES_WAVES = {"wave_scan", "wave_sum"}
BLOCK_SOURCES = [
    _HLSL + each
    for each in (_BLOCKS["hillis_steele"] + _SCAN, _BLOCKS["waves"] + _SCAN, _BITONIC, _COUNT, _MERGE)
]
