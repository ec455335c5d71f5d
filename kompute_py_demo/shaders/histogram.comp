// Histogram of the luminance of a picture with 8 bits per channel, one word per pixel, in 256 bins.
//
// A group counts 4096 pixels in shared memory, and then adds its bins to the buffer's: one atomic in memory
// for each bin instead of one for each pixel. It adds to what the buffer holds, so clear it
// first (kp.OpFill).
#version 450

layout(local_size_x = 256) in;

layout(set = 0, binding = 0) readonly buffer Picture { uint picture[]; };
layout(set = 0, binding = 1) buffer Histogram { uint histogram[256]; };

const uint INVOCATIONS = 256;
const uint PIXELS_EACH = 16;

shared uint bins[256];

// Rec. 709 in integers, so that it is the same number on every device.
uint luminance(uint pixel) {
    const uint red = pixel & 255u, green = (pixel >> 8) & 255u, blue = (pixel >> 16) & 255u;
    return (2126u * red + 7152u * green + 722u * blue + 5000u) / 10000u;
}

void main() {
    const uint self = gl_LocalInvocationIndex;
    bins[self] = 0;
    barrier();

    // Two axes of groups, because many devices allow only 65535 groups on one axis.
    const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    const uint first = group * INVOCATIONS * PIXELS_EACH + self;
    for (uint i = 0; i < PIXELS_EACH; ++i) {
        const uint index = first + i * INVOCATIONS;
        if (index < picture.length()) {
            atomicAdd(bins[luminance(picture[index])], 1u);
        }
    }
    barrier();

    if (bins[self] != 0) {
        atomicAdd(histogram[self], bins[self]);
    }
}
