# Shaders are as people write them, long lines included.
# ruff: noqa: E501
"""Twenty HLSL compute shaders in the habits of Unreal: engine headers, permutations by macros, loose parameters."""

from __future__ import annotations

import numpy as np

from tests.support.everyday import Table, floats, whole

unreal = Table()

_COMMON = """
#pragma once
#ifndef THREADGROUP_SIZE
#define THREADGROUP_SIZE 64
#endif
#define PI 3.1415926535897932
#define UNROLL [unroll]
#define LOOP [loop]
#define BRANCH [branch]
#define FLATTEN [flatten]
typedef float4 FLOAT4;
float Pow2(float X) { return X * X; }
float2 Pow2(float2 X) { return X * X; }
float3 Pow2(float3 X) { return X * X; }
float Luminance(float3 C) { return dot(C, float3(0.3, 0.59, 0.11)); }
uint2 ZOrder2D(uint Index, const uint SizeLog2) {
    uint2 Coord = 0;
    UNROLL for (uint i = 0; i < SizeLog2; i++) {
        Coord.x |= ((Index >> (2 * i + 0)) & 0x1) << i;
        Coord.y |= ((Index >> (2 * i + 1)) & 0x1) << i;
    }
    return Coord;
}
uint MurmurMix(uint Hash) { Hash ^= Hash >> 16; Hash *= 0x85ebca6b; Hash ^= Hash >> 13; Hash *= 0xc2b2ae35; Hash ^= Hash >> 16; return Hash; }
"""
_ENGINE = {
    "includes": {
        "/Engine/Private/Common.ush": _COMMON,
        "/Engine/Private/Random.ush": """
#pragma once
#include "/Engine/Private/Common.ush"
uint Hash(uint A, uint B) { return MurmurMix(A ^ MurmurMix(B)); }
""",
    }
}
_START = '#include "/Engine/Private/Common.ush"\n'


@unreal(
    _START
    + """
RWBuffer<float> OutBuffer; Buffer<float> InBuffer; uint NumElements; float Scale;
[numthreads(THREADGROUP_SIZE, 1, 1)]
void MainCS(uint3 DispatchThreadId : SV_DispatchThreadID)
{
    if (DispatchThreadId.x >= NumElements) { return; }
    OutBuffer[DispatchThreadId.x] = Pow2(InBuffer[DispatchThreadId.x]) * Scale;
}
""",
    entry="MainCS",
    **_ENGINE,
)
def squares(run):
    x = floats(150)
    found = run(
        (3, 1, 1),
        InBuffer=x,
        OutBuffer=np.zeros(150, np.float32),
        GlobalParams={"NumElements": 150, "Scale": 3},
    )
    return [(found["OutBuffer"], x * x * 3)]


@unreal(
    _START
    + """
Texture2D InputTexture; SamplerState InputSampler; RWTexture2D<float4> OutputTexture;
float2 InvExtent; float Threshold;
[numthreads(8, 8, 1)]
void BloomSetupCS(uint2 DispatchThreadId : SV_DispatchThreadID)
{
    const float2 UV = (DispatchThreadId + 0.5f) * InvExtent;
    const FLOAT4 SceneColor = InputTexture.SampleLevel(InputSampler, UV, 0);
    const half Amount = saturate((Luminance(SceneColor.rgb) - Threshold) * 0.5f);
    OutputTexture[DispatchThreadId] = float4(Amount * SceneColor.rgb, 0);
}
""",
    entry="BloomSetupCS",
    **_ENGINE,
)
def bloom(run):
    image = np.abs(floats(16, 24, 4))
    found = run(
        (3, 2, 1),
        InputTexture=run.mgr.image(image),
        InputSampler=run.mgr.sampler(),
        OutputTexture=run.mgr.image(np.zeros_like(image)),
        GlobalParams={"InvExtent": (1 / 24, 1 / 16), "Threshold": 0.25},
    )["OutputTexture"]
    amount = np.clip((image[..., :3] @ np.float32([0.3, 0.59, 0.11]) - 0.25) * 0.5, 0, 1)
    return [(found[..., :3], amount[..., None] * image[..., :3]), (found[..., 3], np.zeros((16, 24)))]


_PERMUTED = (
    _START
    + """
#ifndef REDUCE_OP
#error REDUCE_OP is not defined
#endif
#define OP_SUM 0
#define OP_MAX 1
float Combine(float A, float B) {
#if REDUCE_OP == OP_SUM
    return A + B;
#elif REDUCE_OP == OP_MAX
    return max(A, B);
#endif
}
StructuredBuffer<float> In; RWStructuredBuffer<float> Out;
groupshared float Shared[THREADGROUP_SIZE];
[numthreads(THREADGROUP_SIZE, 1, 1)]
void ReduceCS(uint3 GroupId : SV_GroupID, uint GroupIndex : SV_GroupIndex) {
    Shared[GroupIndex] = In[GroupId.x * THREADGROUP_SIZE + GroupIndex];
    GroupMemoryBarrierWithGroupSync();
    UNROLL for (uint Stride = THREADGROUP_SIZE / 2; Stride > 0; Stride /= 2) {
        BRANCH if (GroupIndex < Stride) { Shared[GroupIndex] = Combine(Shared[GroupIndex], Shared[GroupIndex + Stride]); }
        GroupMemoryBarrierWithGroupSync();
    }
    FLATTEN if (GroupIndex == 0) Out[GroupId.x] = Shared[0];
}
"""
)


@unreal(_PERMUTED, entry="ReduceCS", defines={"REDUCE_OP": 0, "THREADGROUP_SIZE": 32}, **_ENGINE)
def permutation_of_sums(run):
    x = floats(128)
    return [(run((4, 1, 1), In=x, Out=np.zeros(4, np.float32))["Out"], x.reshape(4, 32).sum(1))]


@unreal(_PERMUTED, entry="ReduceCS", defines={"REDUCE_OP": 1, "THREADGROUP_SIZE": 128}, **_ENGINE)
def permutation_of_maxima(run):
    x = floats(512)
    return [(run((4, 1, 1), In=x, Out=np.zeros(4, np.float32))["Out"], x.reshape(4, 128).max(1))]


@unreal(
    _START
    + """
RWStructuredBuffer<uint2> OutCoords;
[numthreads(64, 1, 1)]
void MainCS(uint Index : SV_DispatchThreadID) { OutCoords[Index] = ZOrder2D(Index, 3) + uint2(Index / 64, 0) * 8; }
""",
    entry="MainCS",
    **_ENGINE,
)
def morton_order(run):
    found = run((2, 1, 1), OutCoords=np.zeros((128, 2), np.uint32))["OutCoords"].reshape(-1, 2)
    n = np.arange(128)
    x = sum(((n >> 2 * i) & 1) << i for i in range(3)) + n // 64 * 8
    return [(found, np.c_[x, sum(((n >> 2 * i + 1) & 1) << i for i in range(3))])]


@unreal(
    '#include "/Engine/Private/Random.ush"\n'
    + """
RWStructuredBuffer<uint> HashTable; StructuredBuffer<uint> Keys; uint NumKeys; uint HashMask;
[numthreads(THREADGROUP_SIZE, 1, 1)]
void BuildHashCS(uint KeyIndex : SV_DispatchThreadID) {
    if (KeyIndex >= NumKeys) return;
    uint Key = Keys[KeyIndex], Slot = Hash(Key, 17) & HashMask;
    LOOP for (uint Probe = 0; Probe <= HashMask; ++Probe) {
        uint Previous;
        InterlockedCompareExchange(HashTable[Slot], 0xFFFFFFFF, Key, Previous);
        if (Previous == 0xFFFFFFFF || Previous == Key) return;
        Slot = (Slot + 1) & HashMask;
    }
}
""",
    entry="BuildHashCS",
    **_ENGINE,
)
def hash_table(run):
    keys = whole(500, 200)
    table = run(
        (4, 1, 1),
        HashTable=np.full(512, 0xFFFFFFFF, np.uint32),
        Keys=keys,
        GlobalParams={"NumKeys": 200, "HashMask": 511},
    )["HashTable"]
    return [(np.sort(table[table != 0xFFFFFFFF]), np.unique(keys))]


@unreal(
    """
struct FInstance { float4 Transform[3]; uint Flags; float3 Bounds; };
StructuredBuffer<FInstance> Instances; RWStructuredBuffer<float4> Centers; uint FlagMask;
float3 TransformPosition(FInstance Instance, float3 P) {
    return float3(dot(Instance.Transform[0], float4(P, 1)), dot(Instance.Transform[1], float4(P, 1)), dot(Instance.Transform[2], float4(P, 1)));
}
[numthreads(8, 1, 1)]
void MainCS(uint Index : SV_DispatchThreadID) {
    FInstance Instance = Instances[Index];
    bool bVisible = (Instance.Flags & FlagMask) != 0u;
    Centers[Index] = bVisible ? float4(TransformPosition(Instance, Instance.Bounds), 1) : (float4)0;
}
""",
    entry="MainCS",
)
def instances(run):
    kind = np.dtype([("m", "f4", (3, 4)), ("flags", "u4"), ("bounds", "f4", 3)])
    x = np.zeros(16, kind)
    x["m"], x["flags"], x["bounds"] = floats(16, 3, 4), whole(8, 16), floats(16, 3)
    found = run((2, 1, 1), Instances=x, Centers=np.zeros((16, 4), np.float32), FlagMask=2)["Centers"].reshape(
        -1, 4
    )
    moved = np.einsum("nij,nj->ni", x["m"], np.c_[x["bounds"], np.ones(16)])
    return [(found, np.where((x["flags"] & 2)[:, None] != 0, np.c_[moved, np.ones(16)], 0))]


@unreal(
    """
RWByteAddressBuffer DispatchArgs; Buffer<uint> NumTiles; uint GroupSize;
uint DivideAndRoundUp(uint Dividend, uint Divisor) { return (Dividend + Divisor - 1) / Divisor; }
[numthreads(1, 1, 1)]
void SetupArgsCS() { DispatchArgs.Store3(0, uint3(DivideAndRoundUp(NumTiles[0], GroupSize), 1, 1)); }
""",
    entry="SetupArgsCS",
)
def indirect_arguments(run):
    found = run(1, DispatchArgs=np.zeros(3, np.uint32), NumTiles=np.uint32([1001]), GroupSize=64)[
        "DispatchArgs"
    ]
    return [(found, [16, 1, 1])]


@unreal(
    """
Texture3D<float> Density; RWTexture2D<float> Depth; float StepSize; float Absorption;
[numthreads(4, 4, 1)]
void MarchCS(uint2 Pixel : SV_DispatchThreadID) {
    uint3 Size; Density.GetDimensions(Size.x, Size.y, Size.z);
    if (any(Pixel >= Size.xy)) return;
    float Transmittance = 1;
    for (uint Slice = 0; Slice < Size.z; ++Slice) {
        Transmittance *= 1 - Density[uint3(Pixel, Slice)] * StepSize * Absorption;
        if (Transmittance < 0.01f) break;
    }
    Depth[Pixel] = Transmittance;
}
""",
    entry="MarchCS",
)
def ray_march(run):
    density = np.abs(floats(5, 6, 7))
    found = run(
        (2, 2, 1),
        Density=run.mgr.image(density, dims=3),
        Depth=run.mgr.image(np.zeros((6, 7), np.float32)),
        GlobalParams={"StepSize": 0.5, "Absorption": 1.0},
    )["Depth"]
    return [(found.reshape(6, 7), np.prod(1 - density * 0.5, axis=0))]


@unreal(
    """
struct FVertex { float3 Position; uint PackedNormal; };
RWStructuredBuffer<FVertex> Vertices; StructuredBuffer<float4> BoneRows; StructuredBuffer<uint> BoneIndices; StructuredBuffer<float> Weights;
uint PackNormal(float3 N) { uint3 B = uint3(round(saturate(N * 0.5 + 0.5) * 255)); return B.x | B.y << 8 | B.z << 16; }
float3 UnpackNormal(uint P) { return float3(P & 0xFF, (P >> 8) & 0xFF, (P >> 16) & 0xFF) / 255 * 2 - 1; }
[numthreads(32, 1, 1)]
void SkinCS(uint Vertex : SV_DispatchThreadID) {
    FVertex V = Vertices[Vertex];
    float3x4 Blended = (float3x4)0;
    for (uint Influence = 0; Influence < 2; ++Influence) {
        uint Bone = BoneIndices[Vertex * 2 + Influence];
        Blended += Weights[Vertex * 2 + Influence] * float3x4(BoneRows[Bone * 3], BoneRows[Bone * 3 + 1], BoneRows[Bone * 3 + 2]);
    }
    V.Position = mul(Blended, float4(V.Position, 1));
    V.PackedNormal = PackNormal(UnpackNormal(V.PackedNormal));
    Vertices[Vertex] = V;
}
""",
    entry="SkinCS",
)
def skinning(run):
    kind = np.dtype([("p", "f4", 3), ("n", "u4")])
    v = np.zeros(64, kind)
    v["p"], v["n"] = floats(64, 3), whole(2**24, 64)
    bones, at, w = floats(4, 3, 4), whole(4, 64, 2), np.abs(floats(64, 2))
    found = (
        run(
            (2, 1, 1), Vertices=v.copy(), BoneRows=bones.reshape(12, 4), BoneIndices=at.ravel(),
            Weights=w.ravel(),
        )["Vertices"]
        .view(kind)
        .reshape(-1)
    )  # fmt: skip
    blended = np.einsum("vk,vkij->vij", w, bones[at])
    return [(found["p"], np.einsum("vij,vj->vi", blended, np.c_[v["p"], np.ones(64)])), (found["n"], v["n"])]


@unreal(
    """
globallycoherent RWStructuredBuffer<uint> State; RWStructuredBuffer<uint> Result; StructuredBuffer<uint> In;
groupshared uint Total; groupshared bool bLast;
[numthreads(64, 1, 1)]
void LastGroupCS(uint3 GroupId : SV_GroupID, uint GroupIndex : SV_GroupIndex) {
    if (GroupIndex == 0) Total = 0;
    GroupMemoryBarrierWithGroupSync();
    InterlockedAdd(Total, In[GroupId.x * 64 + GroupIndex]);
    GroupMemoryBarrierWithGroupSync();
    if (GroupIndex == 0) {
        uint Done;
        InterlockedAdd(State[0], Total);
        AllMemoryBarrier();
        InterlockedAdd(State[1], 1, Done);
        bLast = Done == 7;
    }
    GroupMemoryBarrierWithGroupSync();
    if (bLast && GroupIndex == 0) { uint Sum; InterlockedAdd(State[0], 0, Sum); Result[0] = Sum; }
}
""",
    entry="LastGroupCS",
)
def last_group(run):
    x = whole(1000, 512)
    found = run((8, 1, 1), State=np.zeros(2, np.uint32), Result=np.zeros(1, np.uint32), In=x)
    return [(found["Result"], [x.sum()]), (found["State"], [x.sum(), 8])]


@unreal(
    _START
    + """
RWTexture2D<float4> OutputLUT; float LUTSize; float4 Lift, Gamma, Gain;
float3 ColorCorrect(float3 C) { return pow(max(C * Gain.rgb + Lift.rgb, 0), 1 / Gamma.rgb); }
[numthreads(8, 8, 1)]
void MainCS(uint3 Id : SV_DispatchThreadID) {
    uint Size = (uint)LUTSize;
    float3 Neutral = float3(Id.x % Size, Id.y, Id.x / Size) / (LUTSize - 1);
    OutputLUT[Id.xy] = float4(ColorCorrect(Neutral), 1);
}
""",
    entry="MainCS",
    **_ENGINE,
)
def colour_table(run):
    values = {"LUTSize": 4, "Lift": (0.125, 0.25, 0.5, 0), "Gamma": (1, 2, 4, 1), "Gain": (1, 0.5, 2, 1)}
    found = run((2, 1, 1), OutputLUT=run.mgr.image(np.zeros((4, 16, 4), np.float32)), GlobalParams=values)[
        "OutputLUT"
    ]
    y, x = np.mgrid[:4, :16]
    c = np.stack([x % 4, y, x // 4], -1) / 3 * [1, 0.5, 2] + [0.125, 0.25, 0.5]
    return [(np.abs(found[..., :3] - c ** (1 / np.array([1, 2, 4]))) < 1e-3, np.ones((4, 16, 3), bool))]


@unreal(
    """
RWStructuredBuffer<int> X; static const int Offsets[4] = { -3, 5, 7, -11 }; static int Counter;
void Bump(inout int Value, out int Before) { Before = Value; Value += Offsets[Value & 3]; ++Counter; }
int Sum(int Values[4]) { int S = 0; [unroll] for (int i = 0; i < 4; ++i) S += Values[i]; return S; }
[numthreads(16, 1, 1)]
void MainCS(uint Id : SV_DispatchThreadID) {
    Counter = 0;
    int Seen[4], Value = X[Id];
    for (int i = 0; i < 4; ++i) Bump(Value, Seen[i]);
    do { Value /= 2; } while (abs(Value) > 4);
    X[Id] = Sum(Seen) * 1000 + Value * 10 + Counter;
}
""",
    entry="MainCS",
)
def statics_and_references(run):
    x = (whole(1000, 32).astype(np.int32)) - 500
    wanted = []
    for value in x.tolist():
        seen = []
        for _ in range(4):
            seen.append(value)
            value += [-3, 5, 7, -11][value & 3]
        while True:
            value = int(value / 2)
            if abs(value) <= 4:
                break
        wanted.append(sum(seen) * 1000 + value * 10 + 4)
    return [(run((2, 1, 1), X=x.copy())["X"], wanted)]


@unreal(
    """
cbuffer View { float4x4 View_ViewToClip; float3 View_Origin; float View_Near; float4 View_Rect; uint View_Frame; };
struct FOut { float3 Ndc; uint Frame; };
RWStructuredBuffer<FOut> Out; StructuredBuffer<float3> Points;
[numthreads(8, 1, 1)]
void ProjectCS(uint Id : SV_DispatchThreadID) {
    float4 Clip = mul(float4(Points[Id] - View_Origin, 1), View_ViewToClip);
    FOut Result = (FOut)0;
    Result.Ndc = Clip.xyz * rcp(Clip.w) * float3(View_Rect.zw, View_Near);
    Result.Frame = View_Frame + Id;
    Out[Id] = Result;
}
""",
    entry="ProjectCS",
)
def view_block(run):
    """A row vector times the matrix."""
    matrix, points = floats(4, 4), floats(16, 3)
    matrix[:, 3] = [0.1, 0.1, 0.1, 2]
    kind = np.dtype([("ndc", "f4", 3), ("frame", "u4")])
    view = {
        "View_ViewToClip": matrix, "View_Origin": (0.5, 0, 0.25), "View_Near": 0.5, "View_Rect": (0, 0, 2, 4),
        "View_Frame": 7,
    }  # fmt: skip
    found = run((2, 1, 1), Out=np.zeros(16, kind), Points=points, View=view)["Out"].view(kind).reshape(-1)
    clip = np.c_[points - np.float32([0.5, 0, 0.25]), np.ones(16)] @ matrix
    return [(found["ndc"], clip[:, :3] / clip[:, 3:] * [2, 4, 0.5]), (found["frame"], 7 + np.arange(16))]


@unreal(
    """
Texture2DArray<float4> Layers; SamplerState PointClamp; RWTexture2D<float4> Out; uint NumLayers;
[numthreads(8, 8, 1)]
void CompositeCS(uint2 P : SV_DispatchThreadID) {
    uint3 Size; Layers.GetDimensions(Size.x, Size.y, Size.z);
    float4 Result = float4(0, 0, 0, 0);
    for (uint L = 0; L < NumLayers; ++L) {
        float4 Layer = Layers.SampleLevel(PointClamp, float3((P + 0.5) / Size.xy, L), 0);
        Result = lerp(Result, Layer, Layer.a);
    }
    Out[P] = Result;
}
""",
    entry="CompositeCS",
)
def layers(run):
    images = np.abs(floats(3, 8, 8, 4))
    found = run(
        (1, 1, 1), Layers=run.mgr.image(images, layers=True), PointClamp=run.mgr.sampler(),
        Out=run.mgr.image(np.zeros((8, 8, 4), np.float32)), NumLayers=3,
    )["Out"]  # fmt: skip
    wanted = np.zeros((8, 8, 4))
    for each in images:
        wanted += (each - wanted) * each[..., 3:]
    return [(found, wanted)]


@unreal(
    """
RWTexture2D<uint> Counts; StructuredBuffer<float2> Points; uint Num; float2 Extent;
[numthreads(64, 1, 1)]
void SplatCS(uint Id : SV_DispatchThreadID) {
    if (Id >= Num) return;
    int2 P = int2(floor(Points[Id] * Extent));
    if (any(P < 0) || any(P >= int2(Extent))) return;
    InterlockedAdd(Counts[P], 1u);
}
""",
    entry="SplatCS",
)
def splats(run):
    points = floats(200, 2)
    found = run(
        (4, 1, 1),
        Counts=run.mgr.image(np.zeros((4, 8), np.uint32), format="r32ui"),
        Points=points,
        GlobalParams={"Num": 200, "Extent": (8, 4)},
    )["Counts"]
    p = np.floor(points * np.float32([8, 4])).astype(int)
    p = p[((p >= 0) & (p < [8, 4])).all(1)]
    wanted = np.zeros((4, 8), int)
    np.add.at(wanted, (p[:, 1], p[:, 0]), 1)
    return [(found.reshape(4, 8), wanted)]


@unreal(
    """
StructuredBuffer<uint> Keys; RWStructuredBuffer<uint> Counts; uint Shift;
groupshared uint Bins[16];
[numthreads(256, 1, 1)]
void RadixCountCS(uint3 GroupId : SV_GroupID, uint T : SV_GroupIndex, uint Id : SV_DispatchThreadID) {
    if (T < 16) Bins[T] = 0;
    GroupMemoryBarrierWithGroupSync();
    InterlockedAdd(Bins[(Keys[Id] >> Shift) & 15u], 1u);
    GroupMemoryBarrierWithGroupSync();
    if (T < 16) Counts[GroupId.x * 16 + T] = Bins[T];
}
""",
    entry="RadixCountCS",
)
def radix_counts(run):
    keys = whole(2**32, 1024)
    found = run((4, 1, 1), Keys=keys, Counts=np.zeros(64, np.uint32), Shift=8)["Counts"].reshape(4, 16)
    return [(found, [np.bincount(part >> 8 & 15, minlength=16) for part in keys.reshape(4, 256)])]


@unreal(
    """
RWStructuredBuffer<float> Out; StructuredBuffer<float> X;
struct FOpAdd { float Amount; float Run(float V) { return V + Amount; } };
struct FOpMul { float Amount; float Run(float V) { return V * Amount; } };
template<typename TOp> float Apply(TOp Op, float V) { return Op.Run(V); }
[numthreads(16, 1, 1)]
void MainCS(uint Id : SV_DispatchThreadID) {
    FOpAdd Add; FOpMul Mul; Add.Amount = 2; Mul.Amount = 3;
    Out[Id] = Apply(Add, X[Id]) - Apply(Mul, X[Id]);
}
""",
    entry="MainCS",
)
def functors(run):
    x = floats(32)
    return [(run((2, 1, 1), X=x, Out=np.zeros(32, np.float32))["Out"], (x + 2) - x * 3)]


@unreal(
    """
RWStructuredBuffer<float4> Colors;
half3 Tonemap(half3 C) { const half A = 2.51, B = 0.03, D = 2.43, E = 0.59, F = 0.14; return saturate((C * (A * C + B)) / (C * (D * C + E) + F)); }
[numthreads(32, 1, 1)]
void TonemapCS(uint Id : SV_DispatchThreadID) { Colors[Id].rgb = Tonemap((half3)Colors[Id].rgb); Colors[Id].a = dot(Colors[Id].rgb, 1.0.xxx); }
""",
    entry="TonemapCS",
)
def tone_mapping(run):
    x = np.abs(floats(64, 4)) * 4
    found = run((2, 1, 1), Colors=x.copy())["Colors"].reshape(-1, 4)
    c = x[:, :3].astype(np.float64)
    c = np.clip(c * (2.51 * c + 0.03) / (c * (2.43 * c + 0.59) + 0.14), 0, 1)
    return [(found, np.c_[c, c.sum(1)])]


@unreal(
    """
RWStructuredBuffer<float> Field; StructuredBuffer<float> Divergence; uint3 GridSize; uint Parity;
uint Flat(uint3 P) { return (P.z * GridSize.y + P.y) * GridSize.x + P.x; }
float At(int3 P) { return all(P >= 0) && all(P < int3(GridSize)) ? Field[Flat(P)] : 0; }
[numthreads(4, 4, 4)]
void JacobiCS(uint3 P : SV_DispatchThreadID) {
    if (any(P >= GridSize) || ((P.x + P.y + P.z) & 1u) != Parity) return;
    int3 Q = P; float Sum = 0;
    for (int Axis = 0; Axis < 3; ++Axis) { int3 Step = 0; Step[Axis] = 1; Sum += At(Q + Step) + At(Q - Step); }
    Field[Flat(P)] = (Sum - Divergence[Flat(P)]) / 6;
}
""",
    entry="JacobiCS",
)
def red_black_relaxation(run):
    field, divergence = floats(6, 5, 7), floats(6, 5, 7, seed=3)
    now, wanted = field.ravel(), field.astype(np.float64)
    z, y, x = np.mgrid[:6, :5, :7]
    for parity in (0, 1):
        values = {"GridSize": (7, 5, 6), "Parity": parity}
        now = run((2, 2, 2), Field=now, Divergence=divergence.ravel(), GlobalParams=values)["Field"]
        p = np.pad(wanted, 1)
        around = p[2:, 1:-1, 1:-1] + p[:-2, 1:-1, 1:-1] + p[1:-1, 2:, 1:-1] + p[1:-1, :-2, 1:-1]
        around = around + p[1:-1, 1:-1, 2:] + p[1:-1, 1:-1, :-2]
        wanted = np.where((x + y + z) % 2 == parity, (around - divergence) / 6, wanted)
    return [(now.reshape(6, 5, 7), wanted)]
