"""Shaders that several files of tests use."""

from __future__ import annotations

SCALE = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P { float factor; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) y[i] = factor * x[i]; }
"""
COPY = """
#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < y.length()) y[i] = x[i]; }
"""
ADD = """
#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer Data { float values[]; } data;
void main() { data.values[gl_GlobalInvocationID.x] += 1.0; }
"""
INT64 = """
#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer A { int64_t a[]; };
void main() { a[0] += 1; }
"""
FIXED = """
#version 450
layout(local_size_x = 4, local_size_y = 2) in;
layout(set = 0, binding = 0) readonly buffer In { int header; int table[16]; } first;
layout(set = 0, binding = 2) buffer Grid { uint cells[]; } grid;
layout(set = 0, binding = 1) readonly buffer Unused { vec4 nothing[]; };
void main() {
    uvec3 size = gl_NumWorkGroups * gl_WorkGroupSize, id = gl_GlobalInvocationID;
    uint i = id.x + size.x * id.y;
    if (i < grid.cells.length()) grid.cells[i] = uint(first.header + first.table[i % 16]);
}
"""
SPECIAL = """
#version 450
layout(local_size_x = 16, local_size_x_id = 0) in;
layout(constant_id = 0) const uint TILE = 16;
layout(constant_id = 1) const float BIAS = 0.5;
layout(set = 0, binding = 0) buffer Out { float result[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < result.length()) result[i] = float(gl_WorkGroupSize.x) + BIAS;
}
"""
