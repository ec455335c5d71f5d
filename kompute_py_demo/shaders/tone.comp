// Tone curve: exposure, contrast and saturation, with edges as ink. One invocation computes one pixel.
//
// Reads RGBA with 16 bits per channel (two words each), writes RGBA with 8 bits per channel (one word each).
#version 450

layout(local_size_x = 256) in;

layout(set = 0, binding = 0) readonly buffer Picture { uvec2 picture[]; };
layout(set = 0, binding = 1) readonly buffer Edges { float edges[]; };
layout(set = 0, binding = 2) writeonly buffer Toned { uint toned[]; };
layout(push_constant) uniform Tone {
    float exposure;    // stops: 1 doubles the light
    float contrast;    // 0 none, 1 the full S curve
    float saturation;  // 0 grey, 1 unchanged
    float ink;         // the amount by which an edge of 1 darkens
};

void main() {
    // Two axes of groups, because many devices allow only 65535 groups on one axis.
    const uint index = gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x
        + gl_GlobalInvocationID.x;
    if (index >= toned.length()) {
        return;
    }
    const uvec2 pixel = picture[index];
    const vec4 source = vec4(unpackUnorm2x16(pixel.x), unpackUnorm2x16(pixel.y));
    vec3 color = min(source.rgb * exp2(exposure), 1.0);
    color = mix(color, color * color * (3.0 - 2.0 * color), contrast);
    color = mix(vec3(dot(color, vec3(0.2126, 0.7152, 0.0722))), color, saturation);  // Rec. 709
    color *= 1.0 - min(ink * edges[index], 1.0);
    toned[index] = packUnorm4x8(vec4(color, source.a));
}
