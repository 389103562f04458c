// What every kernel shares. bf16 values travel as raw 16-bit words and are widened by a shift: no CUDA header is
// included anywhere, so NVRTC needs nothing but itself on the user's machine.
#pragma once
#include "philox.cuh"

typedef unsigned short u16;
#define INFINITE __int_as_float(0x7f800000)

// The head of a step's input block; src/cuda/input.rs writes it.
struct Header {
    float lr;
    float correct1; // 1 / (1 - beta1^step)
    float correct2; // 1 / (1 - beta2^step)
    float per_token; // 1 / target tokens
    unsigned seed_lo, seed_hi;
    int sequences;
    int tokens[2]; // source, target
    int result;    // where in the ring of results
    int position; // of every lane's token, while decoding
    float eps;       // of Adam
    float average;   // share of the new weights in their average
    int unused[3];
};

struct Result {
    float loss;
    float grad_norm;
    unsigned right_tokens;
    unsigned right_sequences;
};

// In every kernel before it touches what a kernel has written: it may have been started before the one it depends on has
// ended (its launch overlaps that one's tail), and here it waits; in turn it lets the next kernel start. The input block and
// the parameters may be read earlier: inside a step nothing writes them before its end.
__device__ __forceinline__ void begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

__device__ __forceinline__ float low(unsigned x) { return __uint_as_float(x << 16); }
__device__ __forceinline__ float high(unsigned x) { return __uint_as_float(x & 0xffff0000u); }
__device__ __forceinline__ float wide(u16 x) { return __uint_as_float((unsigned)x << 16); }

// Two floats, rounded to nearest even; a is the lower half.
__device__ __forceinline__ unsigned pack(float a, float b) {
    unsigned r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
    return r;
}
__device__ __forceinline__ u16 narrow(float a) { return (u16)(pack(a, 0.f) & 0xffffu); }

__device__ __forceinline__ float4 load4(const u16* p) {
    uint2 r = *reinterpret_cast<const uint2*>(p);
    return make_float4(low(r.x), high(r.x), low(r.y), high(r.y));
}
__device__ __forceinline__ void store4(u16* p, float4 v) {
    *reinterpret_cast<uint2*>(p) = make_uint2(pack(v.x, v.y), pack(v.z, v.w));
}
__device__ __forceinline__ float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ __forceinline__ void store4(float* p, float4 v) { *reinterpret_cast<float4*>(p) = v; }

__device__ __forceinline__ float4 operator+(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__device__ __forceinline__ float4 operator*(float4 a, float4 b) {
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}
__device__ __forceinline__ float4 operator*(float4 a, float b) { return make_float4(a.x * b, a.y * b, a.z * b, a.w * b); }
__device__ __forceinline__ float sum4(float4 a) { return (a.x + a.y) + (a.z + a.w); }
__device__ __forceinline__ float4 zero4() { return make_float4(0.f, 0.f, 0.f, 0.f); }

// The same sum in every lane, in a fixed order.
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) x += __shfl_xor_sync(0xffffffffu, x, o);
    return x;
}
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, o));
    return x;
}
