# Shaders are as people write them, long lines included.
# ruff: noqa: E501
"""Twenty HLSL compute shaders in the habits of Unity: kernels by pragma, uniforms outside of blocks, images."""

from __future__ import annotations

import numpy as np

from tests.support.everyday import Table, floats, whole

unity = Table()


@unity(
    """
#pragma kernel CSMain
RWTexture2D<float4> Result;
[numthreads(8,8,1)]
void CSMain (uint3 id : SV_DispatchThreadID)
{
    Result[id.xy] = float4(id.x & id.y, (id.x & 15)/15.0, (id.y & 15)/15.0, 0.0);
}
""",
    entry="CSMain",
)
def sierpinski(run):
    """The shader that a new file has."""
    found = run((2, 2, 1), Result=run.mgr.image(np.zeros((16, 16, 4), np.float32)))["Result"]
    y, x = np.mgrid[:16, :16]
    return [(found, np.stack([x & y, (x & 15) / 15, (y & 15) / 15, 0 * x], -1))]


@unity(
    """
float _Intensity; float3 _Tint; int _Width; int _Height;
RWTexture2D<float4> _Image;
[numthreads(8, 8, 1)]
void CSMain(uint3 id : SV_DispatchThreadID) {
    if (id.x >= (uint)_Width || id.y >= (uint)_Height) return;
    float4 c = _Image[id.xy];
    float luminance = dot(c.rgb, float3(0.2126, 0.7152, 0.0722));
    c.rgb = lerp(luminance.xxx, c.rgb, _Intensity) * _Tint;
    _Image[id.xy] = c;
}
""",
    entry="CSMain",
)
def saturation(run):
    image = np.abs(floats(13, 10, 4))
    values = {"_Intensity": 0.25, "_Tint": (1, 0.5, 2), "_Width": 10, "_Height": 13}
    found = run((2, 2, 1), _Image=run.mgr.image(image), GlobalParams=values)["_Image"]
    grey = image[..., :3] @ np.float32([0.2126, 0.7152, 0.0722])
    colours = (grey[..., None] + (image[..., :3] - grey[..., None]) * 0.25) * [1, 0.5, 2]
    return [(found, np.concatenate([colours, image[..., 3:]], -1))]


@unity(
    """
Texture2D<float4> _Source;
SamplerState sampler_LinearClamp;
RWTexture2D<float4> _Target;
float2 _Texel;
[numthreads(8, 8, 1)]
void Blur(uint3 id : SV_DispatchThreadID) {
    uint w, h;
    _Target.GetDimensions(w, h);
    if (any(id.xy >= uint2(w, h))) return;
    float2 uv = (id.xy + 0.5) * _Texel;
    float4 sum = 0;
    [unroll] for (int y = -1; y <= 1; y++)
        [unroll] for (int x = -1; x <= 1; x++)
            sum += _Source.SampleLevel(sampler_LinearClamp, uv + float2(x, y) * _Texel, 0);
    _Target[id.xy] = sum / 9;
}
""",
    entry="Blur",
)
def box_blur(run):
    image = floats(12, 20, 4)
    found = run(
        (3, 2, 1), _Source=run.mgr.image(image), sampler_LinearClamp=run.mgr.sampler("linear"),
        _Target=run.mgr.image(np.zeros_like(image)), _Texel=(1 / 20, 1 / 12),
    )["_Target"]  # fmt: skip
    wide = np.pad(image, ((1, 1), (1, 1), (0, 0)), "edge")
    return [(found, sum(wide[y : y + 12, x : x + 20] for y in range(3) for x in range(3)) / 9)]


_PARTICLES = """
struct Particle { float3 position; float3 velocity; float life; };
RWStructuredBuffer<Particle> _Particles;
uint _Count; float _DeltaTime; float3 _Gravity;
[numthreads(64,1,1)]
void Update(uint id : SV_DispatchThreadID) {
    if (id >= _Count) return;
    Particle p = _Particles[id];
    p.velocity += _Gravity * _DeltaTime;
    p.position += p.velocity * _DeltaTime;
    p.life -= _DeltaTime;
    if (p.position.y < 0) { p.position.y = -p.position.y; p.velocity.y *= -0.5f; }
    _Particles[id] = p;
}
"""
_PARTICLE = np.dtype([("position", "f4", 3), ("velocity", "f4", 3), ("life", "f4")])


@unity(_PARTICLES, entry="Update")
def particles(run):
    p = np.zeros(100, _PARTICLE)
    p["position"], p["velocity"], p["life"] = floats(100, 3), floats(100, 3, seed=1), 1
    before = p.copy()
    values = {"_Count": 100, "_DeltaTime": 0.25, "_Gravity": (0, -9.75, 0)}
    found = run((2, 1, 1), _Particles=p, GlobalParams=values)["_Particles"].view(_PARTICLE).reshape(-1)
    velocity = before["velocity"] + np.float32([0, -9.75 * 0.25, 0])
    position = before["position"] + velocity * np.float32(0.25)
    below = position[:, 1] < 0
    position[below, 1] *= -1
    velocity[below, 1] *= -0.5
    return [(found["position"], position), (found["velocity"], velocity), (found["life"], np.full(100, 0.75))]


@unity(
    """
#define THREADS 128
RWStructuredBuffer<float> _Data; int _Step; int _Stage; int _N;
[numthreads(THREADS,1,1)]
void BitonicSort(uint3 id : SV_DispatchThreadID) {
    int i = id.x, j = i ^ _Step;
    if (j <= i || j >= _N) return;
    float a = _Data[i], b = _Data[j];
    bool up = (i & _Stage) == 0;
    if ((a > b) == up) { _Data[i] = b; _Data[j] = a; }
}
""",
    entry="BitonicSort",
)
def bitonic(run):
    data = floats(256)
    wanted = np.sort(data)
    stage = 2
    while stage <= 256:
        step = stage // 2
        while step:
            data = run((2, 1, 1), _Data=data, GlobalParams={"_Step": step, "_Stage": stage, "_N": 256})[
                "_Data"
            ]
            step //= 2
        stage *= 2
    return [(data, wanted)]


_LIFE = """
#pragma kernel Step
StructuredBuffer<uint> _Now; RWStructuredBuffer<uint> _Next; uint _Side;
uint At(int2 p) { p = (p + (int)_Side) % (int)_Side; return _Now[p.y * _Side + p.x]; }
[numthreads(8,8,1)]
void Step(uint3 id : SV_DispatchThreadID) {
    uint alive = 0;
    for (int y = -1; y <= 1; ++y)
        for (int x = -1; x <= 1; ++x)
            if (x != 0 || y != 0) alive += At(int2(id.xy) + int2(x, y));
    uint i = id.y * _Side + id.x;
    _Next[i] = alive == 3 || (alive == 2 && _Now[i]) ? 1 : 0;
}
"""


@unity(_LIFE, entry="Step")
def game_of_life(run):
    now = whole(2, 16, 16)
    found = run((2, 2, 1), _Now=now.ravel(), _Next=np.zeros(256, np.uint32), _Side=16)["_Next"]
    near = sum(np.roll(now, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)) - now
    return [(found.reshape(16, 16), (near == 3) | ((near == 2) & (now == 1)))]


@unity(
    """
RWStructuredBuffer<uint> _Histogram; StructuredBuffer<float> _Values; uint _Count; float _Min; float _Max;
groupshared uint local_[64];
[numthreads(64,1,1)]
void Histogram(uint3 id : SV_DispatchThreadID, uint t : SV_GroupIndex) {
    local_[t] = 0;
    GroupMemoryBarrierWithGroupSync();
    if (id.x < _Count) {
        float f = saturate((_Values[id.x] - _Min) / (_Max - _Min));
        InterlockedAdd(local_[min((uint)(f * 64), 63u)], 1);
    }
    GroupMemoryBarrierWithGroupSync();
    InterlockedAdd(_Histogram[t], local_[t]);
}
""",
    entry="Histogram",
)
def exposure_histogram(run):
    values = floats(500) * 2
    found = run(
        (8, 1, 1),
        _Values=values,
        _Histogram=np.zeros(64, np.uint32),
        GlobalParams={"_Count": 500, "_Min": -1.5, "_Max": 1.5},
    )["_Histogram"]
    places = np.minimum((np.clip((values + np.float32(1.5)) / np.float32(3), 0, 1) * 64).astype(int), 63)
    return [(found, np.bincount(places, minlength=64))]


@unity(
    """
float hash(float2 p) { return frac(sin(dot(p, float2(12.9898, 78.233))) * 43758.5453); }
float noise(float2 p) {
    float2 i = floor(p), f = frac(p);
    f = f * f * (3 - 2 * f);
    return lerp(lerp(i.x + i.y, i.x + 1 + i.y, f.x), lerp(i.x + i.y + 1, i.x + i.y + 2, f.x), f.y);
}
RWStructuredBuffer<float> _Out; float2 _Scale; uint _Width;
[numthreads(8,8,1)]
void CSMain(uint3 id : SV_DispatchThreadID) {
    float2 uv = float2(id.xy) * _Scale;
    float value = 0, amplitude = 0.5;
    for (int i = 0; i < 4; i++) { value += amplitude * noise(uv); uv *= 2; amplitude *= 0.5; }
    _Out[id.y * _Width + id.x] = value;
}
""",
    entry="CSMain",
)
def fractal_noise(run):
    """With lattice values that need no sine, which drivers compute differently."""
    found = run(
        (2, 2, 1), _Out=np.zeros(256, np.float32), GlobalParams={"_Scale": (0.125, 0.375), "_Width": 16}
    )
    y, x = np.mgrid[:16, :16].astype(np.float64)
    u, v, total, part = x * 0.125, y * 0.375, 0, 0.5
    for _ in range(4):
        i, j, f, g = np.floor(u), np.floor(v), u % 1, v % 1
        f, g = f * f * (3 - 2 * f), g * g * (3 - 2 * g)
        total = total + part * (i + j + f + g)
        u, v, part = u * 2, v * 2, part / 2
    return [(found["_Out"].reshape(16, 16), total)]


@unity(
    """
struct Boid { float2 pos; float2 dir; };
StructuredBuffer<Boid> _Boids; RWStructuredBuffer<Boid> _Next;
uint _N; float _Radius, _Speed;
[numthreads(32, 1, 1)]
void Flock(uint3 id : SV_DispatchThreadID) {
    if (id.x >= _N) return;
    Boid me = _Boids[id.x];
    float2 middle = 0; float2 heading = 0; int near = 0;
    for (uint i = 0; i < _N; i++) {
        if (i == id.x) continue;
        Boid b = _Boids[i];
        if (distance(b.pos, me.pos) < _Radius) { middle += b.pos; heading += b.dir; near++; }
    }
    if (near > 0) {
        middle /= near; heading /= near;
        me.dir = normalize(me.dir + 0.1 * (middle - me.pos) + 0.2 * heading);
    }
    me.pos += me.dir * _Speed;
    _Next[id.x] = me;
}
""",
    entry="Flock",
)
def boids(run):
    boids = floats(50, 4)
    values = {"_N": 50, "_Radius": 0.5, "_Speed": 0.125}
    found = run((2, 1, 1), _Boids=boids.ravel(), _Next=np.zeros(200, np.float32), GlobalParams=values)[
        "_Next"
    ]
    wanted = boids.astype(np.float64)
    for k, me in enumerate(boids.astype(np.float64)):
        near = (np.hypot(*(boids[:, :2] - me[:2]).T) < 0.5) & (np.arange(50) != k)
        if near.any():
            d = me[2:] + 0.1 * (boids[near, :2].mean(0) - me[:2]) + 0.2 * boids[near, 2:].mean(0)
            wanted[k, 2:] = d / np.hypot(*d)
        wanted[k, :2] += wanted[k, 2:] * 0.125
    return [(found.reshape(50, 4), wanted)]


@unity(
    """
RWTexture2D<float> _Height; Texture2D<float> _Old; float _Damp;
[numthreads(8, 8, 1)]
void Ripple(int3 id : SV_DispatchThreadID) {
    int2 p = id.xy; uint w, h; _Old.GetDimensions(w, h);
    int2 last = int2(w, h) - 1;
    float sum = _Old[clamp(p + int2(1, 0), 0, last)] + _Old[clamp(p - int2(1, 0), 0, last)]
              + _Old.Load(int3(clamp(p + int2(0, 1), 0, last), 0)) + _Old.Load(int3(clamp(p - int2(0, 1), 0, last), 0));
    _Height[p] = (sum * 0.5 - _Height[p]) * _Damp;
}
""",
    entry="Ripple",
)
def ripples(run):
    old, height = floats(16, 16), floats(16, 16, seed=2)
    found = run((2, 2, 1), _Height=run.mgr.image(height), _Old=run.mgr.image(old), _Damp=0.75)["_Height"]
    p = np.pad(old, 1, "edge")
    around = p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2]
    return [(found.reshape(16, 16), (around * 0.5 - height) * 0.75)]


@unity(
    """
#include "Common.hlsl"
StructuredBuffer<float3> _Points; RWStructuredBuffer<float3> _Moved; float4x4 _Matrix;
[numthreads(GROUP, 1, 1)]
void CSMain(uint3 id : SV_DispatchThreadID) { if (id.x < Length(_Points)) _Moved[id.x] = Transform(_Matrix, _Points[id.x]); }
""",
    entry="CSMain",
    includes={
        "Common.hlsl": """
#ifndef COMMON_INCLUDED
#define COMMON_INCLUDED
#define GROUP 32
#include "Length.hlsl"
float3 Transform(float4x4 m, float3 p) { float4 q = mul(m, float4(p, 1)); return q.xyz / q.w; }
#endif
""",
        "Length.hlsl": """
uint Length(StructuredBuffer<float3> b) { uint n, stride; b.GetDimensions(n, stride); return n; }
""",
    },
)
def include_files(run):
    points, matrix = floats(40, 3), floats(4, 4) + 2 * np.eye(4, dtype=np.float32)
    matrix[3] = [0.1, 0.1, 0.1, 2]
    found = run((2, 1, 1), _Points=points, _Moved=np.zeros_like(points), _Matrix=matrix.tolist())["_Moved"]
    q = np.c_[points, np.ones(40)] @ matrix.T
    return [(found.reshape(-1, 3), q[:, :3] / q[:, 3:])]


@unity(
    """
AppendStructuredBuffer<uint> _Visible; StructuredBuffer<float4> _Spheres; float4 _Planes[6]; uint _N;
bool Inside(float4 sphere) {
    for (int i = 0; i < 6; i++) if (dot(_Planes[i].xyz, sphere.xyz) + _Planes[i].w < -sphere.w) return false;
    return true;
}
[numthreads(64,1,1)]
void Cull(uint id : SV_DispatchThreadID) { if (id < _N && Inside(_Spheres[id])) _Visible.Append(id); }
""",
    entry="Cull",
)
def frustum_culling(run):
    spheres = floats(200, 4) * 2
    planes = np.float32(
        [[1, 0, 0, 1], [-1, 0, 0, 1], [0, 1, 0, 1], [0, -1, 0, 1], [0, 0, 1, 1], [0, 0, -1, 1]]
    )
    found = run(
        (4, 1, 1),
        _Visible=np.full(200, 0xFFFFFFFF, np.uint32),
        _Spheres=spheres,
        GlobalParams={"_Planes": planes, "_N": 200},
    )["_Visible"]
    seen = np.flatnonzero(((spheres[:, :3] @ planes[:, :3].T + planes[:, 3]) >= -spheres[:, 3:]).all(1))
    return [(np.sort(found[: len(seen)]), seen), (found[len(seen) :], np.full(200 - len(seen), 0xFFFFFFFF))]


@unity(
    """
Texture2D<float4> _Src; RWTexture2D<float4> _Dst; int _Radius;
groupshared float4 line_[64 + 2 * 8];
[numthreads(64, 1, 1)]
void Horizontal(uint3 gid : SV_GroupID, uint3 t : SV_GroupThreadID, uint3 id : SV_DispatchThreadID) {
    uint w, h; _Src.GetDimensions(w, h);
    int start = (int)(gid.x * 64) - _Radius;
    for (int i = t.x; i < 64 + 2 * _Radius; i += 64) line_[i] = _Src[int2(clamp(start + i, 0, (int)w - 1), id.y)];
    GroupMemoryBarrierWithGroupSync();
    if (id.x >= w) return;
    float4 sum = 0; float total = 0;
    for (int i = -_Radius; i <= _Radius; i++) { float k = 1.0 / (1 + abs(i)); sum += k * line_[t.x + i + _Radius]; total += k; }
    _Dst[id.xy] = sum / total;
}
""",
    entry="Horizontal",
)
def separable_blur(run):
    image, r = floats(5, 70, 4), 3
    found = run((2, 5, 1), _Src=run.mgr.image(image), _Dst=run.mgr.image(np.zeros_like(image)), _Radius=r)[
        "_Dst"
    ]
    wide = np.pad(image, ((0, 0), (r, r), (0, 0)), "edge")
    kernel = 1 / (1 + np.abs(np.arange(-r, r + 1)))
    return [(found, sum(k * wide[:, i : i + 70] for i, k in enumerate(kernel)) / kernel.sum())]


@unity(
    """
#pragma kernel Clear
#pragma kernel Accumulate
RWStructuredBuffer<int> _Sum; StructuredBuffer<int> _In; uint _N;
[numthreads(1,1,1)] void Clear() { _Sum[0] = 0; }
[numthreads(64,1,1)] void Accumulate(uint3 id : SV_DispatchThreadID) { if (id.x < _N) InterlockedAdd(_Sum[0], _In[id.x]); }
"""
)
def several_kernels(run):
    numbers = whole(1000, 300).astype(np.int32)
    total = run(1, entry="Clear", _Sum=np.int32([77]))["_Sum"]
    found = run((5, 1, 1), entry="Accumulate", _Sum=total, _In=numbers, _N=300)["_Sum"]
    return [(total, [0]), (found, [numbers.sum()])]


@unity(
    """
RWStructuredBuffer<float4> _Mesh; float _Time, _Amplitude, _Wavelength; uint _Width;
static const float TAU = 6.283185307;
[numthreads(8,8,1)]
void Waves(uint3 id : SV_DispatchThreadID) {
    uint i = id.x + id.y * _Width;
    float3 p = _Mesh[i].xyz;
    float k = TAU / _Wavelength, f = k * (p.x - _Time);
    p.y = _Amplitude * sin(f);
    float3 tangent = normalize(float3(1, k * _Amplitude * cos(f), 0));
    float3 normal = cross(float3(0, 0, 1), tangent);
    _Mesh[i] = float4(p.xy, normal.xy);
}
""",
    entry="Waves",
)
def waves(run):
    mesh = floats(256, 4)
    values = {"_Time": 0.5, "_Amplitude": 0.25, "_Wavelength": 2.0, "_Width": 16}
    found = run((2, 2, 1), _Mesh=mesh.copy(), GlobalParams=values)["_Mesh"].reshape(-1, 4)
    k = 2 * np.pi / 2
    f = k * (mesh[:, 0].astype(np.float64) - 0.5)
    slope = k * 0.25 * np.cos(f)
    length = np.hypot(1, slope)
    return [
        (
            np.abs(found - np.c_[mesh[:, 0], 0.25 * np.sin(f), -slope / length, 1 / length]) < 2e-3,
            np.ones((256, 4), bool),
        )
    ]


@unity(
    """
RWTexture3D<float> _Volume; float3 _Center; float _R;
[numthreads(4,4,4)]
void Sphere(uint3 id : SV_DispatchThreadID) {
    uint3 size; _Volume.GetDimensions(size.x, size.y, size.z);
    if (any(id >= size)) return;
    _Volume[id] = length(float3(id) - _Center) - _R;
}
""",
    entry="Sphere",
)
def signed_distance_volume(run):
    volume = run.mgr.image(np.zeros((6, 7, 8), np.float32), dims=3)
    found = run((2, 2, 2), _Volume=volume, GlobalParams={"_Center": (3, 3, 2), "_R": 1.5})["_Volume"]
    z, y, x = np.mgrid[:6, :7, :8]
    return [(found.reshape(6, 7, 8), np.sqrt((x - 3.0) ** 2 + (y - 3) ** 2 + (z - 2) ** 2) - 1.5)]


@unity(
    """
struct Cell { uint first, count; };
StructuredBuffer<uint> _Keys; RWStructuredBuffer<Cell> _Cells; uint _N;
[numthreads(64,1,1)]
void Ranges(uint id : SV_DispatchThreadID) {
    if (id >= _N) return;
    uint key = _Keys[id], before = id == 0 ? 0xFFFFFFFFu : _Keys[id - 1];
    if (key != before) _Cells[key].first = id;
    InterlockedAdd(_Cells[key].count, 1);
}
""",
    entry="Ranges",
)
def grid_ranges(run):
    keys = np.sort(whole(10, 150))
    found = run((3, 1, 1), _Keys=keys, _Cells=np.zeros(20, np.uint32), _N=150)["_Cells"]
    found = found.view(np.uint32).reshape(10, 2)
    return [
        (found[:, 0], np.searchsorted(keys, np.arange(10))),
        (found[:, 1], np.bincount(keys, minlength=10)),
    ]


@unity(
    """
RWStructuredBuffer<float> _X; StructuredBuffer<float2> _Constraints; StructuredBuffer<uint2> _Pairs; uint _N; float _Stiffness;
[numthreads(64,1,1)]
void Solve(uint id : SV_DispatchThreadID) {
    if (id >= _N) return;
    uint2 pair = _Pairs[id];
    float2 c = _Constraints[id];
    float delta = (_X[pair.y] - _X[pair.x] - c.x) * c.y * _Stiffness;
    _X[pair.x] += 0.5 * delta;
    _X[pair.y] -= 0.5 * delta;
}
""",
    entry="Solve",
)
def constraints(run):
    x, pairs, c = floats(128), np.arange(128, dtype=np.uint32).reshape(64, 2), floats(64, 2)
    found = run(
        (1, 1, 1), _X=x.copy(), _Constraints=c, _Pairs=pairs, GlobalParams={"_N": 64, "_Stiffness": 0.5}
    )["_X"]
    wanted = x.reshape(64, 2).astype(np.float64)
    delta = (wanted[:, 1] - wanted[:, 0] - c[:, 0]) * c[:, 1] * 0.5
    return [(found.reshape(64, 2), wanted + np.c_[0.5 * delta, -0.5 * delta])]


@unity(
    """
#pragma multi_compile _ USE_SQUARE
RWStructuredBuffer<float> _Values;
#if defined(USE_SQUARE)
    #define APPLY(x) ((x) * (x))
#else
    #define APPLY(x) (x)
#endif
[numthreads(16,1,1)]
void CSMain(uint id : SV_DispatchThreadID) { _Values[id] = APPLY(_Values[id] + 1); }
""",
    entry="CSMain",
    defines={"USE_SQUARE": 1},
)
def keywords(run):
    x = floats(32)
    return [(run((2, 1, 1), _Values=x.copy())["_Values"], (x + 1) ** 2)]


@unity(
    """
StructuredBuffer<uint> _Packed; RWStructuredBuffer<float4> _Colors;
float4 Unpack(uint rgba) { return float4(rgba & 255, (rgba >> 8) & 255, (rgba >> 16) & 255, rgba >> 24) / 255.0; }
float3 GammaToLinear(float3 c) { return c <= 0.04045 ? c / 12.92 : c * c; }
[numthreads(64,1,1)]
void CSMain(uint id : SV_DispatchThreadID) { float4 c = Unpack(_Packed[id]); c.rgb = GammaToLinear(c.rgb); _Colors[id] = c; }
""",
    entry="CSMain",
    compiler_options="-HV 2018",
)
def packed_colours(run):
    """A vector as a condition, as HLSL before 2021 has it."""
    packed = whole(2**32, 64)
    found = run((1, 1, 1), _Packed=packed, _Colors=np.zeros((64, 4), np.float32))["_Colors"].reshape(-1, 4)
    c = packed.view(np.uint8).reshape(-1, 4) / 255
    c[:, :3] = np.where(c[:, :3] <= 0.04045, c[:, :3] / 12.92, c[:, :3] ** 2)
    return [(found, c)]
