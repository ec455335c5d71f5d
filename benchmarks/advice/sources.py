"""The kernels that docs/inside/advice.md speaks of."""

from __future__ import annotations


def _of_each(declared: str, length: str, statement: str, size: str = "local_size_x = 64") -> str:
    """A kernel in which each invocation `i` below `length` does the statement."""
    return f"""#version 450
layout({size}) in;
{declared}
void main() {{ uint i = gl_GlobalInvocationID.x; if (i < {length}) {statement} }}
"""


_DATA = "layout(binding = 0) buffer Data { float data[]; };"
SCALE = _of_each(
    _DATA + " layout(push_constant) uniform Push { float factor; };", "data.length()", "data[i] *= factor;"
)
SCALE_BY_TENSOR = _of_each(
    _DATA + " layout(binding = 1) readonly buffer Factor { float factor[]; };",
    "data.length()",
    "data[i] *= factor[0];",
)
STRUCTS = _of_each(
    """struct Particle { float weight; float rest[7]; };
layout(binding = 0) buffer Data { Particle particles[]; };""",
    "particles.length()",
    "particles[i].weight = 0.5 * particles[i].weight + 1.0;",
)
FIELD = _of_each(_DATA, "data.length()", "data[i] = 0.5 * data[i] + 1.0;")
COPY = _of_each(
    """layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) writeonly buffer B { float b[]; };""",
    "b.length()",
    "b[i] = a[i];",
)
SIZED = _of_each(
    "layout(constant_id = 0) const uint SIZE = 64;\n" + _DATA,
    "data.length()",
    "data[i] = data[i] * 1.5 + 1.0;",
    "local_size_x = 64, local_size_x_id = 0",
)
SUM = """#version 450
layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) writeonly buffer S { float sums[]; };
layout(push_constant) uniform Push { uint count; };
shared float part[256];
void main() {
    uint l = gl_LocalInvocationID.x, at = gl_WorkGroupID.x * 4096 + l;
    float sum = 0.0;
    for (uint k = 0; k < 16; ++k) if (at + k * 256 < count) sum += a[at + k * 256];
    part[l] = sum;
    barrier();
    for (uint width = 128; width > 0; width /= 2) {
        if (l < width) part[l] += part[l + width];
        barrier();
    }
    if (l == 0) sums[gl_WorkGroupID.x] = part[0];
}
"""
ORDER = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer A { float a[]; };
layout(binding = 1) writeonly buffer B { float b[]; };
void main() {
    uint x = gl_GlobalInvocationID.x, y = gl_GlobalInvocationID.y;
    if (x < 1024 && y < 1024) b[y * 1024 + x] = a[INDEX];
}
"""
# STORE and LOAD make the variants; the result is the same in all.
STEPS = """#version 450
layout(local_size_x = 256) in;
layout(binding = 0) buffer Data { float data[]; };
shared float part[256];
void main() {
    uint i = gl_GlobalInvocationID.x, l = gl_LocalInvocationID.x;
    float value = 0.0 * data[i];
    for (uint k = 0; k < 16; ++k) {
        value = value * 0.5 + 1.0;
        STORE
        value = LOAD;
    }
    data[i] = value;
}
"""


def _of_matrices(size: int, code: str) -> str:
    """A kernel for the product of two matrices, in groups of so many rows and columns."""
    return f"""#version 450
layout(local_size_x = {size}, local_size_y = {size}) in;
layout(binding = 0) readonly buffer A {{ float a[]; }};
layout(binding = 1) readonly buffer B {{ float b[]; }};
layout(binding = 2) writeonly buffer C {{ float c[]; }};
layout(push_constant) uniform Push {{ uint n; }};
{code}"""


PRODUCT = _of_matrices(
    16,
    """void main() {
    uint j = gl_GlobalInvocationID.x, i = gl_GlobalInvocationID.y;
    if (i >= n || j >= n) return;
    float sum = 0.0;
    for (uint k = 0; k < n; ++k) sum += a[i * n + k] * b[k * n + j];
    c[i * n + j] = sum;
}
""",
)
TILED = _of_matrices(
    16,
    """shared float left[16][16], right[16][16];
void main() {
    uint x = gl_LocalInvocationID.x, y = gl_LocalInvocationID.y;
    uint j = gl_GlobalInvocationID.x, i = gl_GlobalInvocationID.y;
    float sum = 0.0;
    for (uint tile = 0; tile < n; tile += 16) {
        left[y][x] = a[i * n + tile + x];
        right[y][x] = b[(tile + y) * n + j];
        barrier();
        for (uint k = 0; k < 16; ++k) sum += left[y][k] * right[k][x];
        barrier();
    }
    c[i * n + j] = sum;
}
""",
)
BLOCKS = _of_matrices(
    8,
    """void main() {
    uint j = 4 * gl_GlobalInvocationID.x, i = 4 * gl_GlobalInvocationID.y;
    if (i >= n || j >= n) return;
    vec4 sum[4] = vec4[4](vec4(0), vec4(0), vec4(0), vec4(0));
    for (uint k = 0; k < n; ++k) {
        uint at = k * n + j;
        vec4 row = vec4(b[at], b[at + 1], b[at + 2], b[at + 3]);
        for (uint r = 0; r < 4; ++r) sum[r] += a[(i + r) * n + k] * row;
    }
    for (uint r = 0; r < 4; ++r)
        for (uint q = 0; q < 4; ++q) c[(i + r) * n + j + q] = sum[r][q];
}
""",
)
HISTOGRAM = """#version 450
layout(local_size_x = 256) in;
layout(binding = 0) readonly buffer A { uint a[]; };
layout(binding = 1) buffer Bins { uint bins[]; };
shared uint s[256];
void main() {
    uint l = gl_LocalInvocationID.x, at = gl_WorkGroupID.x * 4096 + l;
    s[l] = 0;
    barrier();
    for (uint k = 0; k < 16; ++k) atomicAdd(s[a[at + k * 256] & 255], 1);
    barrier();
    atomicAdd(bins[l], s[l]);
}
"""
