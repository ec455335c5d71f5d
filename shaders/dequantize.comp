#version 450
// Blocks of GGUF's quantised types to float32, bit for bit as llama.cpp's reference converts them on a host: KIND is the
// type's number in ggml. One invocation writes one element.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint KIND = 1;
layout(binding = 0) readonly buffer Blocks { uint blocks[]; };
// The bits of floats: that of a NaN must pass unchanged.
layout(binding = 1) writeonly buffer Values { uint values[]; };

uint byte_at(uint at) { return blocks[at >> 2] >> (8 * (at & 3)) & 0xff; }
uint pair_at(uint at) { return byte_at(at) | byte_at(at + 1) << 8; }
int signed_at(uint at) { return bitfieldExtract(int(byte_at(at)), 0, 8); }
uint bits_at(uint at, uint shift, uint mask) { return byte_at(at) >> shift & mask; }

// By integers: drivers may flush small halves to zero.
uint half_bits(uint half_) {
    uint sign = (half_ & 0x8000) << 16, exponent = half_ >> 10 & 31, mantissa = half_ & 1023;
    if (exponent == 0) return sign | floatBitsToUint(float(mantissa) * 5.9604644775390625e-8); // * 2^-24, exact
    return sign | (exponent == 31 ? 255u : exponent + 112) << 23 | mantissa << 13;
}
float half_at(uint at) { return uintBitsToFloat(half_bits(pair_at(at))); }

// The six bits of scale or minimum `s` of eight, of Q4_K and Q5_K: `first` is 0 for scales and 4 for minima.
float six_bits(uint at, uint s, uint first) {
    if (s < 4) return float(byte_at(at + first + s) & 63);
    return float(bits_at(at + 4 + s, first, 15) | (byte_at(at + first + s - 4) >> 2 & 0x30));
}

float element(uint n) {
    uint size = KIND >= 10 ? 256 : 32;
    uint j = n % size, b = n / size;
    precise float scaled, offset;
    if (KIND == 2) { // Q4_0
        uint at = b * 18;
        return half_at(at) * float(int(bits_at(at + 2 + j % 16, j / 16 * 4, 15)) - 8);
    }
    if (KIND == 3) { // Q4_1
        uint at = b * 20;
        scaled = half_at(at) * float(bits_at(at + 4 + j % 16, j / 16 * 4, 15));
        offset = half_at(at + 2);
        precise float sum = scaled + offset;
        return sum;
    }
    if (KIND == 6) { // Q5_0
        uint at = b * 22;
        uint q = bits_at(at + 6 + j % 16, j / 16 * 4, 15) | bits_at(at + 2 + j / 8, j % 8, 1) << 4;
        return half_at(at) * float(int(q) - 16);
    }
    if (KIND == 7) { // Q5_1
        uint at = b * 24;
        scaled = half_at(at) * float(bits_at(at + 8 + j % 16, j / 16 * 4, 15) | bits_at(at + 4 + j / 8, j % 8, 1) << 4);
        offset = half_at(at + 2);
        precise float sum = scaled + offset;
        return sum;
    }
    if (KIND == 8) { // Q8_0
        uint at = b * 34;
        return half_at(at) * float(signed_at(at + 2 + j));
    }
    if (KIND == 10) { // Q2_K
        uint at = b * 84, scale = byte_at(at + j / 16);
        precise float step_ = half_at(at + 80) * float(scale & 15);
        offset = half_at(at + 82) * float(scale >> 4);
        scaled = step_ * float(bits_at(at + 16 + j / 128 * 32 + j % 32, j % 128 / 32 * 2, 3));
        precise float difference = scaled - offset;
        return difference;
    }
    if (KIND == 11) { // Q3_K
        uint at = b * 110, s = j / 16;
        uint scale = bits_at(at + 96 + s % 8, s / 8 * 4, 15) | bits_at(at + 104 + s % 4, s / 4 * 2, 3) << 4;
        precise float step_ = half_at(at + 108) * float(int(scale) - 32);
        int q = int(bits_at(at + 32 + j / 128 * 32 + j % 32, j % 128 / 32 * 2, 3));
        return step_ * float(q - int((bits_at(at + j % 32, j / 32, 1) ^ 1) << 2));
    }
    if (KIND == 12 || KIND == 13) { // Q4_K, Q5_K
        uint at = b * (KIND == 12 ? 144 : 176), quants = at + (KIND == 12 ? 16 : 48), s = j / 32;
        uint q = bits_at(quants + j / 64 * 32 + j % 32, j % 64 / 32 * 4, 15);
        if (KIND == 13) q |= bits_at(at + 16 + j % 32, s, 1) << 4;
        precise float step_ = half_at(at) * six_bits(at + 4, s, 0);
        offset = half_at(at + 2) * six_bits(at + 4, s, 4);
        scaled = step_ * float(q);
        precise float difference = scaled - offset;
        return difference;
    }
    // Q6_K
    uint at = b * 210;
    uint q = bits_at(at + j / 128 * 64 + j % 64, j % 128 / 64 * 4, 15) |
             bits_at(at + 128 + j / 128 * 32 + j % 32, j % 128 / 32 * 2, 3) << 4;
    precise float step_ = half_at(at + 208) * float(signed_at(at + 192 + j / 16));
    return step_ * float(int(q) - 32);
}

void main() {
    uint n = gl_GlobalInvocationID.x;
    if (n >= values.length()) return;
    if (KIND == 1) // F16
        values[n] = half_bits(pair_at(2 * n));
    else if (KIND == 30) // BF16
        values[n] = pair_at(2 * n) << 16;
    else
        values[n] = floatBitsToUint(element(n));
}
