// One pass of a separable Gaussian blur: along rows (AXIS 0) or along columns (AXIS 1). Two dispatches blur a picture.
//
// Pixels are RGBA with 16 bits a channel, two words each: a quarter of vec4's bytes per tap in shared memory, and far finer
// than what a picture is shown with. Beyond the border the border's pixel repeats.
#version 450

layout(local_size_x = 16, local_size_y = 16) in;

layout(constant_id = 0) const uint AXIS = 0;
layout(constant_id = 1) const uint RADIUS = 8;  // at most 31, for 16 KiB of shared memory
layout(constant_id = 2) const float SIGMA = 2.0;

layout(set = 0, binding = 0) readonly buffer Source { uvec2 source[]; };
layout(set = 0, binding = 1) writeonly buffer Target { uvec2 target[]; };
layout(push_constant) uniform Size {
    uint width;
    uint height;
};

// A group blurs 16 lines of 64 pixels; each invocation makes 4 of them. It reads RADIUS more on both ends.
const uint INVOCATIONS = 16 * 16;
const uint LINES = 16;
const uint LENGTH = 64;
const uint SPAN = LENGTH + 2 * RADIUS;
// Two scalars: lavapipe (Mesa 22.3) folds a vector chosen by a specialization constant wrongly beyond its first component.
const uint TILE_WIDTH = AXIS == 0 ? LENGTH : LINES;
const uint TILE_HEIGHT = AXIS == 0 ? LINES : LENGTH;

shared uvec2 strip[LINES * SPAN];
shared float weights[RADIUS + 1];

uvec2 load(ivec2 at) {
    at = clamp(at, ivec2(0), ivec2(width, height) - 1);
    return source[uint(at.y) * width + uint(at.x)];
}

// From 0 to 65535: the sum is a mean of these, so there is no need to scale each tap.
vec3 color(uvec2 pixel) {
    return vec3(pixel.x & 0xffffu, pixel.x >> 16, pixel.y & 0xffffu);
}

// Neighbouring invocations take neighbouring columns on either axis, so that they share memory transactions:
// along rows a strip lies line after line, along columns position after position.
uint strip_index(uint line, uint along) {
    return AXIS == 0 ? line * SPAN + along : along * LINES + line;
}

void main() {
    const uint self = gl_LocalInvocationIndex;
    const ivec2 origin = ivec2(gl_WorkGroupID.x * TILE_WIDTH, gl_WorkGroupID.y * TILE_HEIGHT);

    if (self <= RADIUS) {
        const float distance = float(self) / SIGMA;
        weights[self] = exp(-0.5 * distance * distance);
    }
    for (uint i = self; i < LINES * SPAN; i += INVOCATIONS) {
        const ivec2 at = AXIS == 0 ? ivec2(int(i % SPAN) - int(RADIUS), i / SPAN)
                                   : ivec2(i % LINES, int(i / LINES) - int(RADIUS));
        strip[i] = load(origin + at);
    }
    barrier();

    float total = weights[0];
    for (uint tap = 1; tap <= RADIUS; ++tap) {
        total += 2.0 * weights[tap];
    }
    for (uint i = self; i < LINES * LENGTH; i += INVOCATIONS) {
        const uvec2 tile = uvec2(i % TILE_WIDTH, i / TILE_WIDTH);
        const uint line = AXIS == 0 ? tile.y : tile.x;
        const uint middle = (AXIS == 0 ? tile.x : tile.y) + RADIUS;
        const uvec2 at = uvec2(origin) + tile;
        if (at.x >= width || at.y >= height) {
            continue;
        }
        const uvec2 pixel = strip[strip_index(line, middle)];
        vec3 sum = weights[0] * color(pixel);
        for (uint tap = 1; tap <= RADIUS; ++tap) {
            sum += weights[tap] * (color(strip[strip_index(line, middle - tap)]) +
                                   color(strip[strip_index(line, middle + tap)]));
        }
        const uvec3 mean = uvec3(min(sum / total + 0.5, 65535.0));
        // Alpha passes through.
        target[at.y * width + at.x] = uvec2(mean.r | (mean.g << 16), mean.b | (pixel.y & 0xffff0000u));
    }
}
