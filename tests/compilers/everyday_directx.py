# Shaders are as people write them, long lines included.
# ruff: noqa: E501
"""Twenty HLSL compute shaders in the habits of Direct3D's samples: registers, constant buffers, shared memory."""

from __future__ import annotations

import numpy as np

from tests.support.everyday import Table, floats, whole

directx = Table()


@directx(
    """
struct BufType { int i; float f; };
StructuredBuffer<BufType> Buffer0 : register(t0);
StructuredBuffer<BufType> Buffer1 : register(t1);
RWStructuredBuffer<BufType> BufferOut : register(u0);
[numthreads(1, 1, 1)]
void CSMain( uint3 DTid : SV_DispatchThreadID )
{
    BufferOut[DTid.x].i = Buffer0[DTid.x].i + Buffer1[DTid.x].i;
    BufferOut[DTid.x].f = Buffer0[DTid.x].f + Buffer1[DTid.x].f;
}
""",
    entry="CSMain",
)
def basic_compute(run):
    kind = np.dtype([("i", "i4"), ("f", "f4")])
    a, b = np.zeros(30, kind), np.zeros(30, kind)
    a["i"], a["f"], b["i"], b["f"] = np.arange(30), floats(30), whole(9, 30), floats(30, seed=1)
    out = (
        run((30, 1, 1), Buffer0=a, Buffer1=b, BufferOut=np.zeros(30, kind))["BufferOut"]
        .view(kind)
        .reshape(-1)
    )
    return [(out["i"], a["i"] + b["i"]), (out["f"], a["f"] + b["f"])]


@directx(
    """
ByteAddressBuffer In : register(t0); RWByteAddressBuffer Out : register(u0);
[numthreads(32, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    uint bytes; In.GetDimensions(bytes);
    uint at = id.x * 16;
    if (at + 16 > bytes) return;
    uint4 v = In.Load4(at);
    Out.Store2(at, v.wz);
    Out.Store(at + 8, asuint(asfloat(v.y) * 2));
    uint old; Out.InterlockedAdd(at + 12, v.x, old);
}
"""
)
def byte_addresses(run):
    data = whole(1000, 160)
    data[1::4] = floats(40).view(np.uint32)
    found = run((2, 1, 1), In=data, Out=np.full(160, 5, np.uint32))["Out"].reshape(-1, 4)
    v = data.reshape(-1, 4)
    doubled = (v[:, 1].view(np.float32) * 2).view(np.uint32)
    return [(found, np.c_[v[:, 3], v[:, 2], doubled, v[:, 0] + 5])]


@directx(
    """
#define BLOCK 128
StructuredBuffer<uint> Input : register(t0); RWStructuredBuffer<uint> Result : register(u0);
groupshared uint accum[BLOCK];
[numthreads(BLOCK, 1, 1)]
void CSMain(uint3 Gid : SV_GroupID, uint3 DTid : SV_DispatchThreadID, uint3 GTid : SV_GroupThreadID, uint GI : SV_GroupIndex) {
    accum[GI] = Input[DTid.x];
    GroupMemoryBarrierWithGroupSync();
    [unroll]
    for (uint s = BLOCK / 2; s > 0; s >>= 1) {
        if (GI < s) accum[GI] += accum[GI + s];
        GroupMemoryBarrierWithGroupSync();
    }
    if (GI == 0) Result[Gid.x] = accum[0];
}
""",
    entry="CSMain",
)
def reduction(run):
    x = whole(100, 512)
    return [(run((4, 1, 1), Input=x, Result=np.zeros(4, np.uint32))["Result"], x.reshape(4, 128).sum(1))]


@directx(
    """
cbuffer CB : register(b0) { unsigned int g_iLevel; unsigned int g_iLevelMask; unsigned int g_iWidth; unsigned int g_iHeight; };
StructuredBuffer<unsigned int> Input : register(t0); RWStructuredBuffer<unsigned int> Data : register(u0);
#define TRANSPOSE_BLOCK_SIZE 16
groupshared unsigned int transpose_shared_data[TRANSPOSE_BLOCK_SIZE * TRANSPOSE_BLOCK_SIZE];
[numthreads(TRANSPOSE_BLOCK_SIZE, TRANSPOSE_BLOCK_SIZE, 1)]
void MatrixTranspose(uint3 Gid : SV_GroupID, uint3 DTid : SV_DispatchThreadID, uint3 GTid : SV_GroupThreadID, uint GI : SV_GroupIndex) {
    transpose_shared_data[GI] = Input[DTid.y * g_iWidth + DTid.x];
    GroupMemoryBarrierWithGroupSync();
    uint2 XY = DTid.yx - GTid.yx + GTid.xy;
    Data[XY.y * g_iHeight + XY.x] = transpose_shared_data[GTid.x * TRANSPOSE_BLOCK_SIZE + GTid.y];
}
""",
    entry="MatrixTranspose",
)
def transpose(run):
    x = whole(10000, 32, 48)
    found = run(
        (3, 2, 1),
        Input=x.ravel(),
        Data=np.zeros(32 * 48, np.uint32),
        CB={"g_iLevel": 0, "g_iLevelMask": 0, "g_iWidth": 48, "g_iHeight": 32},
    )["Data"]
    return [(found.reshape(48, 32), x.T)]


@directx(
    """
cbuffer cbCS : register(b0) { uint4 g_param; float4 g_paramf; };
struct PosVelo { float4 pos; float4 velo; };
StructuredBuffer<PosVelo> oldPosVelo : register(t0); RWStructuredBuffer<PosVelo> newPosVelo : register(u0);
#define blocksize 64
groupshared float4 sharedPos[blocksize];
static float softeningSquared = 0.0012500000*0.0012500000;
void bodyBodyInteraction(inout float3 ai, float4 bj, float4 bi, float mass, int particles) {
    float3 r = bj.xyz - bi.xyz;
    float distSqr = dot(r, r) + softeningSquared + 1;
    float invDist = 1.0f / sqrt(distSqr);
    float s = mass * invDist * invDist * invDist * particles;
    ai += r * s;
}
[numthreads(blocksize, 1, 1)]
void CSMain(uint3 Gid : SV_GroupID, uint3 DTid : SV_DispatchThreadID, uint3 GTid : SV_GroupThreadID, uint GI : SV_GroupIndex) {
    float4 pos = oldPosVelo[DTid.x].pos, vel = oldPosVelo[DTid.x].velo;
    float3 accel = 0;
    [loop]
    for (uint tile = 0; tile < g_param.y; tile++) {
        sharedPos[GI] = oldPosVelo[tile * blocksize + GI].pos;
        GroupMemoryBarrierWithGroupSync();
        [unroll]
        for (uint counter = 0; counter < blocksize; counter += 8)
            for (uint k = 0; k < 8; k++) bodyBodyInteraction(accel, sharedPos[counter + k], pos, 1.0f / 64, 1);
        GroupMemoryBarrierWithGroupSync();
    }
    vel.xyz += accel.xyz * g_paramf.x;
    vel.xyz *= g_paramf.y;
    pos.xyz += vel.xyz * g_paramf.x;
    if (DTid.x < g_param.x) {
        newPosVelo[DTid.x].pos = pos;
        newPosVelo[DTid.x].velo = float4(vel.xyz, length(accel));
    }
}
""",
    entry="CSMain",
)
def n_body(run):
    state = floats(128, 8)
    found = run(
        (2, 1, 1),
        oldPosVelo=state.ravel(),
        newPosVelo=np.zeros(1024, np.float32),
        cbCS={"g_param": (128, 2, 0, 0), "g_paramf": (0.5, 0.75, 0, 0)},
    )["newPosVelo"].reshape(128, 8)
    p, v = state[:, :3].astype(np.float64), state[:, 4:7]
    r = p[None] - p[:, None]
    a = (r * ((r**2).sum(-1, keepdims=True) + 0.00125**2 + 1) ** -1.5).sum(1) / 64
    v = (v + a * 0.5) * 0.75
    return [(found, np.c_[p + v * 0.5, state[:, 3], v, np.sqrt((a**2).sum(1))])]


@directx(
    """
cbuffer Constants : register(b0, space0) { float weights[5]; float bias; float2 pad[2]; float last; };
Buffer<float> Source : register(t0); RWBuffer<float> Target : register(u0);
[numthreads(64, 1, 1)]
void main(int3 id : SV_DispatchThreadID) {
    uint n; Source.GetDimensions(n);
    float sum = bias + pad[1].y + last;
    for (int i = -2; i <= 2; i++) sum += weights[i + 2] * Source[clamp(id.x + i, 0, int(n) - 1)];
    if (id.x < int(n)) Target[id.x] = sum;
}
"""
)
def typed_buffers(run):
    """Arrays in a constant buffer take 16 bytes an element; what follows fills their end."""
    x, w = floats(100), [0.25, 0.5, 1, 0.5, 0.25]
    found = run(
        (2, 1, 1),
        Source=x,
        Target=np.zeros(100, np.float32),
        Constants={"weights": w, "bias": 0.5, "pad": [[1, 2], [3, 4]], "last": 0.125},
    )["Target"]
    wide = np.pad(x, 2, "edge")
    return [(found, 4.625 + sum(k * wide[i : i + 100] for i, k in enumerate(w)))]


@directx(
    """
struct Camera { float4x4 view; float3 eye; float fov; };
ConstantBuffer<Camera> camera : register(b0);
StructuredBuffer<float4> points : register(t0);
RWStructuredBuffer<float4> projected : register(u0);
[numthreads(16, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    float4 p = mul(camera.view, points[id.x] - float4(camera.eye, 0));
    projected[id.x] = float4(p.xy / (p.z * camera.fov), p.z, p.w);
}
"""
)
def camera(run):
    points, view = floats(32, 4), floats(4, 4)
    view[2] = [0.1, 0.1, 0.1, 3]
    points[:, 3] = 1
    values = {"view": view, "eye": (0.5, 0.25, 0.125), "fov": 2}
    found = run((2, 1, 1), camera=values, points=points, projected=np.zeros_like(points))[
        "projected"
    ].reshape(-1, 4)
    p = (points - np.float32([0.5, 0.25, 0.125, 0])) @ view.T
    return [(found, np.c_[p[:, :2] / (p[:, 2:3] * 2), p[:, 2:]])]


@directx(
    """
cbuffer Rows : register(b0) { row_major float3x4 m; column_major float2x3 c; };
StructuredBuffer<float3> x : register(t0); RWStructuredBuffer<float3> y : register(u0);
[numthreads(8, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    float3 v = mul(m, float4(x[id.x], 1));
    y[id.x] = float3(mul(c, v), m._m03 + c._m12 + m[2].w);
}
"""
)
def matrix_orders(run):
    x, m, c = floats(16, 3), floats(3, 4), floats(2, 3)
    found = run((2, 1, 1), x=x, y=np.zeros_like(x), Rows={"m": m, "c": c})["y"].reshape(-1, 3)
    v = np.c_[x, np.ones(16)] @ m.T
    return [(found, np.c_[v @ c.T, np.full(16, m[0, 3] + c[1, 2] + m[2, 3])])]


@directx(
    """
template<typename T> T Square(T x) { return x * x; }
template<typename T, int N> struct Sum { T values[N]; T Total() { T t = (T)0; for (int i = 0; i < N; ++i) t += values[i]; return t; } };
RWStructuredBuffer<float2> y : register(u0);
[numthreads(32, 1, 1)]
void main(uint id : SV_DispatchThreadID) {
    Sum<float, 4> s; Sum<int, 3> n;
    for (int i = 0; i < 4; ++i) s.values[i] = y[id].x + i;
    for (int i = 0; i < 3; ++i) n.values[i] = int(id) * i;
    y[id] = float2(Square(s.Total()), Square<int>(n.Total()));
}
"""
)
def templates(run):
    x = floats(64, 2)
    found = run((2, 1, 1), y=x.copy())["y"].reshape(-1, 2)
    return [(found, np.c_[(4 * x[:, 0] + 6) ** 2, (3 * np.arange(64)) ** 2])]


@directx(
    """
StructuredBuffer<uint> x : register(t0); RWStructuredBuffer<uint> y : register(u0); RWStructuredBuffer<uint> total : register(u1);
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    uint v = x[id.x], lanes = WaveGetLaneCount();
    uint sum = WaveActiveSum(v), before = WavePrefixSum(v);
    y[id.x] = WaveReadLaneFirst(sum) - before - v;
    if (WaveIsFirstLane()) InterlockedAdd(total[0], sum);
    if (WaveActiveAnyTrue(v == 7)) InterlockedOr(total[1], 1u);
    InterlockedMax(total[2], WaveActiveMax(v));
    InterlockedAdd(total[3], WaveActiveCountBits(v & 1) / lanes * 0 + (v & 1));
}
"""
)
def waves_of_a_group(run):
    x = whole(50, 256)
    x[3] = 7
    found = run((4, 1, 1), x=x, y=np.zeros(256, np.uint32), total=np.zeros(4, np.uint32))
    lanes = next(n for n in (128, 64, 32, 16, 8, 4, 2, 1) if _rest(x, n, found["y"]))
    return [(found["total"], [x.sum(), 1, x.max(), (x & 1).sum()]), (lanes >= 1, True)]


def _rest(x, lanes, found):
    """Whether `found` is what follows each number in waves of so many."""
    if lanes > 64:
        return False
    parts = x.reshape(-1, lanes)
    return np.array_equal((parts.sum(1, keepdims=True) - parts.cumsum(1)).ravel(), found)


@directx(
    """
RWStructuredBuffer<int> counts : register(u0); StructuredBuffer<int> keys : register(t0);
[numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    int key = keys[id.x];
    [branch] switch (key & 3) {
        case 0: InterlockedAdd(counts[0], 1); break;
        case 1: { int old; InterlockedExchange(counts[4], key, old); InterlockedAdd(counts[1], 1); break; }
        case 2: InterlockedMin(counts[2], key);
        default: InterlockedAdd(counts[3], 1); break;
    }
    for (int i = 0; i < 2; i++) { }
    for (int i = 0; i < 2; i++) { if (i == 1) InterlockedXor(counts[5], 1 << (key & 7)); }
    int i = 3;
    for (int i = 0; i < 1; i++) InterlockedAdd(counts[6], i + 1);
    InterlockedAdd(counts[7], i);
}
"""
)
def switches_and_shadowed_loops(run):
    keys = (whole(1000, 64) & ~np.uint32(1)).astype(np.int32)
    found = run((1, 1, 1), counts=np.int32([0, 0, 10**6, 0, -1, 0, 0, 0]), keys=keys)["counts"]
    kinds = keys & 3
    bits = np.bitwise_xor.reduce(1 << (keys & 7))
    twos = keys[kinds == 2]
    return [(found, [(kinds == 0).sum(), 0, twos.min(), len(twos), -1, bits, 64, 192])]


@directx(
    """
RWTexture2D<float4> Output : register(u0);
cbuffer Params : register(b0) { float2 Center; float2 Size; uint MaxIterations; };
[numthreads(8, 8, 1)]
void main(uint3 DTid : SV_DispatchThreadID) {
    uint2 dims; Output.GetDimensions(dims.x, dims.y);
    if (DTid.x >= dims.x || DTid.y >= dims.y) return;
    float2 c = Center + (float2(DTid.xy) / dims - 0.5) * Size, z = 0;
    uint n = 0;
    while (n < MaxIterations && dot(z, z) < 4) { z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + c; ++n; }
    float3 colour = n == MaxIterations ? float3(0, 0, 0) : float3(n, n * 2, n * 3) / MaxIterations;
    Output[DTid.xy] = float4(colour, 1);
}
"""
)
def mandelbrot(run):
    values = {"Center": (-0.5, 0), "Size": (2, 2), "MaxIterations": 16}
    found = run((2, 2, 1), Output=run.mgr.image(np.zeros((16, 16, 4), np.float32)), Params=values)["Output"]
    y, x = np.mgrid[:16, :16] / 16 - 0.5
    c = (x * 2 - 0.5) + 1j * y * 2
    z, n = c * 0, np.zeros((16, 16), int)
    for _ in range(16):
        inside = abs(z) ** 2 < 4
        z, n = np.where(inside, z * z + c, z), n + inside
    shade = np.where(n == 16, 0, n) / 16
    return [
        (
            np.abs(found - np.stack([shade, shade * 2, shade * 3, 1 + 0 * shade], -1)).max(-1) < 1e-5,
            np.ones((16, 16), bool),
        )
    ]


@directx(
    """
struct Light { float3 position; float radius; float4 colour; };
StructuredBuffer<Light> lights : register(t0);
RWStructuredBuffer<uint> tiles : register(u0);
cbuffer Culling : register(b0) { uint lightCount; uint tilesX; float tileSize; };
groupshared uint visible[64]; groupshared uint count;
[numthreads(8, 8, 1)]
void main(uint3 gid : SV_GroupID, uint gi : SV_GroupIndex) {
    if (gi == 0) count = 0;
    GroupMemoryBarrierWithGroupSync();
    float2 lo = gid.xy * tileSize, hi = lo + tileSize;
    for (uint i = gi; i < lightCount; i += 64) {
        float2 nearest = clamp(lights[i].position.xy, lo, hi);
        float2 d = nearest - lights[i].position.xy;
        if (dot(d, d) <= lights[i].radius * lights[i].radius) { uint at; InterlockedAdd(count, 1, at); if (at < 64) visible[at] = i; }
    }
    GroupMemoryBarrierWithGroupSync();
    uint tile = gid.y * tilesX + gid.x;
    if (gi < min(count, 64u)) InterlockedAdd(tiles[tile * 2 + 1], visible[gi] + 1);
    if (gi == 0) tiles[tile * 2] = count;
}
"""
)
def tiled_lights(run):
    lights = floats(40, 8)
    lights[:, :2] = (lights[:, :2] + 1) * 2
    lights[:, 3] = np.abs(lights[:, 3])
    values = {"lightCount": 40, "tilesX": 4, "tileSize": 1.0}
    found = run((4, 4, 1), lights=lights.ravel(), tiles=np.zeros(32, np.uint32), Culling=values)[
        "tiles"
    ].reshape(16, 2)
    y, x = np.divmod(np.arange(16), 4)
    dx = np.clip(lights[:, 0], x[:, None], x[:, None] + 1) - lights[:, 0]
    dy = np.clip(lights[:, 1], y[:, None], y[:, None] + 1) - lights[:, 1]
    seen = dx**2 + dy**2 <= lights[:, 3] ** 2
    return [(found, np.c_[seen.sum(1), (seen * np.arange(1, 41)).sum(1)])]


@directx(
    """
Texture2D<float4> Source : register(t0); RWTexture2D<float4> Mip1 : register(u0); RWTexture2D<float4> Mip2 : register(u1);
groupshared float4 tile[8][8];
[numthreads(8, 8, 1)]
void main(uint3 id : SV_DispatchThreadID, uint3 t : SV_GroupThreadID) {
    float4 a = (Source[id.xy * 2] + Source[id.xy * 2 + uint2(1, 0)] + Source[id.xy * 2 + uint2(0, 1)] + Source[id.xy * 2 + 1]) * 0.25;
    Mip1[id.xy] = a;
    tile[t.y][t.x] = a;
    GroupMemoryBarrierWithGroupSync();
    if (!((t.x | t.y) & 1)) Mip2[id.xy / 2] = (a + tile[t.y][t.x + 1] + tile[t.y + 1][t.x] + tile[t.y + 1][t.x + 1]) * 0.25;
}
"""
)
def mipmaps(run):
    image = floats(32, 32, 4)
    found = run(
        (2, 2, 1),
        Source=run.mgr.image(image),
        Mip1=run.mgr.image(np.zeros((16, 16, 4), np.float32)),
        Mip2=run.mgr.image(np.zeros((8, 8, 4), np.float32)),
    )
    one = image.reshape(16, 2, 16, 2, 4).mean((1, 3))
    return [(found["Mip1"], one), (found["Mip2"], one.reshape(8, 2, 8, 2, 4).mean((1, 3)))]


@directx(
    """
StructuredBuffer<float> A : register(t0); StructuredBuffer<float> B : register(t1); RWStructuredBuffer<float> C : register(u0);
cbuffer Sizes : register(b0) { uint M, N, K; }
static const uint TILE = 16;
groupshared float As[TILE][TILE], Bs[TILE][TILE];
[numthreads(TILE, TILE, 1)]
void main(uint3 id : SV_DispatchThreadID, uint3 t : SV_GroupThreadID) {
    float sum = 0;
    for (uint k = 0; k < K; k += TILE) {
        As[t.y][t.x] = id.y < M && k + t.x < K ? A[id.y * K + k + t.x] : 0;
        Bs[t.y][t.x] = id.x < N && k + t.y < K ? B[(k + t.y) * N + id.x] : 0;
        GroupMemoryBarrierWithGroupSync();
        [unroll] for (uint i = 0; i < TILE; ++i) sum = mad(As[t.y][i], Bs[i][t.x], sum);
        GroupMemoryBarrierWithGroupSync();
    }
    if (id.y < M && id.x < N) C[id.y * N + id.x] = sum;
}
"""
)
def matrix_product(run):
    a, b = floats(20, 37), floats(37, 25)
    found = run(
        (2, 2, 1), A=a.ravel(), B=b.ravel(), C=np.zeros(500, np.float32), Sizes={"M": 20, "N": 25, "K": 37}
    )["C"]
    return [(found.reshape(20, 25), a @ b)]


@directx(
    """
groupshared uint scan[2][256];
StructuredBuffer<uint> x : register(t0); RWStructuredBuffer<uint> y : register(u0);
[numthreads(256, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint t : SV_GroupIndex) {
    uint from = 0;
    scan[0][t] = x[id.x];
    GroupMemoryBarrierWithGroupSync();
    for (uint offset = 1; offset < 256; offset <<= 1) {
        uint to = 1 - from;
        scan[to][t] = scan[from][t] + (t >= offset ? scan[from][t - offset] : 0);
        from = to;
        GroupMemoryBarrierWithGroupSync();
    }
    y[id.x] = scan[from][t];
}
"""
)
def hillis_steele(run):
    x = whole(1000, 512)
    return [(run((2, 1, 1), x=x, y=np.zeros(512, np.uint32))["y"], x.reshape(2, 256).cumsum(1).ravel())]


@directx(
    """
RWStructuredBuffer<uint> out_ : register(u0);
struct Rng {
    uint state;
    uint Next() { state ^= state << 13; state ^= state >> 17; state ^= state << 5; return state; }
    float Uniform() { return (Next() >> 8) * (1.0 / 16777216.0); }
};
[numthreads(64, 1, 1)]
void main(uint id : SV_DispatchThreadID) {
    Rng rng; rng.state = id * 747796405u + 2891336453u;
    uint hits = 0;
    for (uint i = 0; i < 20; ++i) { float2 p; p.x = rng.Uniform(); p.y = rng.Uniform(); if (dot(p, p) <= 0.5) hits++; }
    out_[id] = hits ^ rng.state;
}
"""
)
def xorshift(run):
    found = run((1, 1, 1), out_=np.zeros(64, np.uint32))["out_"]
    state = (np.arange(64, dtype=np.uint64) * 747796405 + 2891336453).astype(np.uint32)
    hits = np.zeros(64, np.uint32)

    def uniform():
        nonlocal state
        state = state ^ (state << np.uint32(13))
        state = state ^ (state >> np.uint32(17))
        state = state ^ (state << np.uint32(5))
        return ((state >> np.uint32(8)) / np.float32(16777216)).astype(np.float32)

    for _ in range(20):
        p, q = uniform(), uniform()
        hits += (p * p + q * q <= 0.5).astype(np.uint32)
    return [(found, hits ^ state)]


@directx(
    """
ConsumeStructuredBuffer<uint> work : register(u0); AppendStructuredBuffer<uint> done : register(u1);
[numthreads(32, 1, 1)]
void main(uint id : SV_DispatchThreadID) { uint item = work.Consume(); if (item % 3 == 0) done.Append(item * 2); }
"""
)
def work_queues(run):
    """A buffer that is consumed begins full."""
    items = whole(1000, 64)
    found = run((2, 1, 1), work=items, done=np.full(64, 0xFFFFFFFF, np.uint32))["done"]
    kept = np.sort(items[items % 3 == 0] * 2)
    return [(np.sort(found[: len(kept)]), kept), (found[len(kept) :], np.full(64 - len(kept), 0xFFFFFFFF))]


@directx(
    """
StructuredBuffer<float4> v4 : register(t0); RWStructuredBuffer<float3> v3 : register(u0); RWStructuredBuffer<uint> n : register(u1);
[numthreads(16, 1, 1)]
void main(uint id : SV_DispatchThreadID) {
    float3 v = v4[id];
    v3[id] = v.zyx;
    n[id] = (uint)v4[id] + (uint)abs(v4[id].w);
    v3[id].x += v4[id].rgba.a;
}
"""
)
def truncated_vectors(run):
    """As everybody writes it, with the compiler's warnings."""
    x = np.abs(floats(32, 4)) * 10
    found = run((2, 1, 1), v4=x, v3=np.zeros((32, 3), np.float32), n=np.zeros(32, np.uint32))
    wanted = x[:, 2::-1].copy()
    wanted[:, 0] += x[:, 3]
    return [(found["v3"].reshape(-1, 3), wanted), (found["n"], x[:, 0].astype(int) + x[:, 3].astype(int))]


@directx(
    """
RWStructuredBuffer<uint2> bits : register(u0);
[numthreads(64, 1, 1)]
void main(uint id : SV_DispatchThreadID) {
    uint v = bits[id].x;
    uint packed = f32tof16(float(v & 2047)) | f32tof16(-1.5) << 16;
    bits[id] = uint2(reversebits(v) ^ countbits(v) ^ firstbithigh(v) ^ (firstbitlow(v) << 8), packed ^ asuint(f16tof32(packed)));
}
"""
)
def bit_operations(run):
    v = whole(2**32, 64, 2)
    v[:, 0] |= 1
    found = run((1, 1, 1), bits=v.copy())["bits"].reshape(-1, 2)
    x = v[:, 0]
    turned = np.array([int(f"{n:032b}"[::-1], 2) for n in x], np.uint32)
    count = np.array([bin(n).count("1") for n in x], np.uint32)
    high = np.array([int(n).bit_length() - 1 for n in x], np.uint32)
    low = np.array([(int(n) & -int(n)).bit_length() - 1 for n in x], np.uint32)
    half = (x & 2047).astype(np.float16)
    packed = half.view(np.uint16) | np.float16(-1.5).view(np.uint16).astype(np.uint32) << np.uint32(16)
    return [
        (
            found,
            np.c_[
                turned ^ count ^ high ^ (low << np.uint32(8)),
                packed ^ half.astype(np.float32).view(np.uint32),
            ],
        )
    ]
