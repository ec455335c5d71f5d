"""kp.check warns about loops that certainly have no end."""

from __future__ import annotations

import warnings

import pytest

import kompute_py as kp
from tests.support.languages import needs_dxc, needs_slang

HEAD = """#version 450
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 64) in;
layout(binding = 0) buffer X { float x[]; };
layout(binding = 1) buffer C { uint c; };
layout(binding = 2, r32f) uniform image2D im;
layout(push_constant) uniform P { uint n; float lim; bool go; };
shared float pool[64];
void main() {
    uint i = gl_GlobalInvocationID.x, k = 0u; float s = 0.0;
"""
ENDLESS = [
    "while (n > 3u) { barrier(); s += pool[i%64u]; pool[i%64u]=s; } x[i]=s;",
    "while (k < n) { s += x[k]; } x[i]=s;",
    "for (uint j=0u; j<n; k++) { s += x[k]; } x[i]=s;",
    "for (;;) { x[i] += 1.0; }",
    "while (true) { k++; if (lim > 3.0) break; } x[i]=float(k);",
    "do { s += 1.0; } while (go); x[i]=s;",
    "while (k < n) { for (uint j=0u;j<n;j++) s += x[j]; } x[i]=s;",
    "float t=x[i]; while (t > 0.5) { s += t; if (i == 3u) continue; s*=2.0; } x[i]=s;",
]
ENDING = [
    "while (atomicAdd(c, 1u) < n) { s += 1.0; } x[i]=s;",
    "while (subgroupElect()) { s += 1.0; if (s > lim) break; } x[i]=s;",
    "float e; int q=0; float m; while (q < 3) { m=frexp(x[i], q); } x[i]=m;",
    "for (uint j=0u; j<3u; j++) for (uint z=0u; z<n; z++) s+=x[z]; x[i]=s;",
    "switch (n) { case 1u: while(k<n) k++; break; default: s=2.0; } x[i]=s;",
    "while (k < n) { switch (uint(x[k])) { case 0u: k++; break; default: s=2.0; } } x[i]=s;",
    "while (pool[0] < lim) { barrier(); } x[i]=s;",
    "while (imageSize(im).x > 3) { s += 1.0; } x[i]=s;",
    "while (k < n) { s += x[k]; k++; } x[i]=s;",
    "for (uint j=0u; j<n; j++) { s += x[k]; } x[i]=s;",
    "for (;;) { x[i] += 1.0; if (x[i] > lim) break; }",
    "while (true) { k++; if (k > n) break; } x[i]=float(k);",
    "do { x[i]=1.0; if (lim>2.0) break; x[i]=3.0; } while(false);",
    "while (x[0] < lim) { } x[i]=1.0;",
    "do { s += 1.0; } while (s < lim); x[i]=s;",
    "while (k < n) { for (uint j=0u;j<n;j++) k += j; } x[i]=float(k);",
    "while (k < n) { if (x[i] > 1.0) return; s+=x[i]; x[i]=s; }",
    "while (k != n) { if (x[i] > 1.0) k = 5u; else x[i]+=2.0; }",
    "uint a[4]; a[0]=0u; a[i%4u]=1u; while (a[1] < n) { a[i%4u] += 1u; } x[i]=float(a[2]);",
    "int m=int(n); while (m --> 0) s+=x[m]; x[i]=s;",
    "uint b=0u; while (b < n) { uint c=b; b=k; k=c+1u; } x[i]=float(b);",
    "if (false) { while (k < n) { s += x[k]; } } x[i]=s;",
]


def warned(source, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kp.check(source, **options)
    return [str(each.message) for each in caught]


@pytest.mark.parametrize("optimize", [True, False])
def test_endless_loops(optimize):
    for body in ENDLESS:
        (message,) = warned(HEAD + body + "\n}", optimize=optimize)
        assert "The loop at line 11 ends in its first turn or never" in message, body


@pytest.mark.parametrize("optimize", [True, False])
def test_loops_that_may_end(optimize):
    for body in ENDING:
        assert warned(HEAD + body + "\n}", optimize=optimize) == [], body


@pytest.mark.parametrize(
    "language", [pytest.param("hlsl", marks=needs_dxc), pytest.param("slang", marks=needs_slang)]
)
def test_other_languages(language):
    source = """RWStructuredBuffer<float> x;
cbuffer P { uint n; };
[shader("compute")] [numthreads(64, 1, 1)]
void main(uint3 id : SV_DispatchThreadID) {
    float s = 0;
    uint k = 0;
    while (k < n)
        s += x[INDEX];
    x[id.x] = s;
}
"""
    (message,) = warned(source.replace("INDEX", "k"), language=language)
    assert "first turn or never" in message
    assert warned(source.replace("INDEX", "k++"), language=language) == []


def test_modules_without_source():
    source = HEAD + "for (;;) x[i] += 1.0;\n}"
    (message,) = warned(kp.compile(source))
    assert message.startswith("The loop of the shader")
    (message,) = warned(kp.compile(source, debug_info=True))
    assert message.startswith("The loop at line 11")
