// Element-wise product of two float tensors: kp.OpMult.
#version 450

layout(local_size_x = 256) in;

layout(set = 0, binding = 0) readonly buffer Left { float left[]; };
layout(set = 0, binding = 1) readonly buffer Right { float right[]; };
layout(set = 0, binding = 2) writeonly buffer Product { float product[]; };

void main() {
    // Two axes of groups, since one of them ends at 65535 groups on many devices.
    uint index = gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x + gl_GlobalInvocationID.x;
    if (index < product.length()) {
        product[index] = left[index] * right[index];
    }
}
