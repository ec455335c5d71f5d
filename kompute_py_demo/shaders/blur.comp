// One pass of a separable Gaussian blur: along rows (AXIS 0) or along columns (AXIS 1).
// Two dispatches blur a picture.
//
// Pixels are RGBA with 16 bits per channel, two words each: half of vec4's traffic, and far finer
// than a display shows. Alpha passes through. Beyond the border, the border's pixel repeats.
//
// A group blurs a strip of 8 lines, 64 pixels along each. It reads them and RADIUS more at each end, once,
// into shared memory.
#version 450

layout(local_size_x = 256) in;

layout(constant_id = 0) const uint AXIS = 0;
layout(constant_id = 1) const uint RADIUS = 8;  // at most 31, for 16 KiB of shared memory
layout(constant_id = 2) const float SIGMA = 2.0;

layout(set = 0, binding = 0) readonly buffer Source { uvec2 source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { uvec2 target[]; };
layout(push_constant) uniform Size {
    uint width;
    uint height;
};

const uint INVOCATIONS = 256;
const uint LINES = 8;
const uint LENGTH = 64;
const uint SPAN = LENGTH + 2 * RADIUS;
// Two scalars: lavapipe (Mesa 22.3) wrongly folds the later components of a vector chosen by a specialization
// constant.
const uint TILE_WIDTH = AXIS == 0 ? LENGTH : LINES;
const uint TILE_HEIGHT = AXIS == 0 ? LINES : LENGTH;

shared vec4 strip[LINES * SPAN];  // channels from 0 to 65535
shared float weights[RADIUS + 1];

// Neighbouring invocations take neighbouring columns on either axis, so that they share memory transactions:
// along rows a strip is stored line by line, along columns position by position.
vec4 tap_at(uint line, uint along) {
    return strip[AXIS == 0 ? line * SPAN + along : along * LINES + line];
}

void main() {
    const uint self = gl_LocalInvocationIndex;
    const ivec2 origin = ivec2(gl_WorkGroupID.x * TILE_WIDTH, gl_WorkGroupID.y * TILE_HEIGHT);

    if (self <= RADIUS) {
        const float distance = float(self) / SIGMA;
        weights[self] = exp(-0.5 * distance * distance);
    }
    for (uint i = self; i < LINES * SPAN; i += INVOCATIONS) {
        const ivec2 offset = AXIS == 0 ? ivec2(int(i % SPAN) - int(RADIUS), i / SPAN)
                                       : ivec2(i % LINES, int(i / LINES) - int(RADIUS));
        const ivec2 at = clamp(origin + offset, ivec2(0), ivec2(width, height) - 1);
        const uvec2 pixel = source[uint(at.y) * width + uint(at.x)];
        strip[i] = vec4(pixel.x & 0xffffu, pixel.x >> 16, pixel.y & 0xffffu, pixel.y >> 16);
    }
    barrier();

    float total = weights[0];
    for (uint tap = 1; tap <= RADIUS; ++tap) {
        total += 2.0 * weights[tap];
    }
    for (uint i = self; i < LINES * LENGTH; i += INVOCATIONS) {
        const uvec2 tile = uvec2(i % TILE_WIDTH, i / TILE_WIDTH);
        const uvec2 at = uvec2(origin) + tile;
        if (at.x >= width || at.y >= height) {
            continue;
        }
        const uint line = AXIS == 0 ? tile.y : tile.x;
        const uint middle = (AXIS == 0 ? tile.x : tile.y) + RADIUS;
        const vec4 pixel = tap_at(line, middle);
        vec3 sum = weights[0] * pixel.rgb;
        for (uint tap = 1; tap <= RADIUS; ++tap) {
            sum += weights[tap] * (tap_at(line, middle - tap).rgb + tap_at(line, middle + tap).rgb);
        }
        const uvec3 mean = uvec3(min(sum / total + 0.5, 65535.0));
        target[at.y * width + at.x] = uvec2(mean.r | (mean.g << 16), mean.b | (uint(pixel.a) << 16));
    }
}
