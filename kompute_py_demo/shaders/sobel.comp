// Edges: the length of the Sobel gradient of the luminance. A step from black to white gives 1.
//
// Pixels are RGBA with 16 bits per channel, two words each. Beyond the border, the border's pixel repeats.
#version 450

layout(local_size_x = 16, local_size_y = 16) in;

layout(set = 0, binding = 0) readonly buffer Picture { uvec2 picture[]; };
layout(set = 0, binding = 1) writeonly buffer Edges { float edges[]; };
layout(push_constant) uniform Size {
    uint width;
    uint height;
};

// Each luminance is computed once and read by nine invocations: the group's 16 x 16 pixels and a rim of one.
const uint INVOCATIONS = 16 * 16;
const uint SIDE = 16 + 2;

shared float luminance[SIDE * SIDE];

float load_luminance(ivec2 at) {
    at = clamp(at, ivec2(0), ivec2(width, height) - 1);
    const uvec2 pixel = picture[uint(at.y) * width + uint(at.x)];
    const vec3 color = vec3(unpackUnorm2x16(pixel.x), unpackUnorm2x16(pixel.y).x);
    return dot(color, vec3(0.2126, 0.7152, 0.0722));  // Rec. 709
}

void main() {
    const ivec2 origin = ivec2(gl_WorkGroupID.xy * 16u) - 1;
    for (uint i = gl_LocalInvocationIndex; i < SIDE * SIDE; i += INVOCATIONS) {
        luminance[i] = load_luminance(origin + ivec2(i % SIDE, i / SIDE));
    }
    barrier();

    const uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x >= width || at.y >= height) {
        return;
    }
    const uint above = gl_LocalInvocationID.y * SIDE + gl_LocalInvocationID.x;
    const uint here = above + SIDE;
    const uint below = here + SIDE;
    const float right = luminance[above + 2] + 2.0 * luminance[here + 2] + luminance[below + 2];
    const float left = luminance[above] + 2.0 * luminance[here] + luminance[below];
    const float bottom = luminance[below] + 2.0 * luminance[below + 1] + luminance[below + 2];
    const float top = luminance[above] + 2.0 * luminance[above + 1] + luminance[above + 2];
    edges[at.y * width + at.x] = length(vec2(right - left, bottom - top)) / 4.0;
}
