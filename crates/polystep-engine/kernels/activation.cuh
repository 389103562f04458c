// The feed-forward activation and its slope, on two bf16 values at a time. GELU is the exact form (the epilogue that
// cuBLASLt offers is the tanh approximation, so it cannot be used).
#pragma once
#include "common.cuh"

// Φ(x) by Abramowitz and Stegun 7.1.26, |error| < 1.5e-7 (bf16 keeps 4e-3); `bell` becomes exp(−x²/2), which the slope
// needs as well. erff costs twice as much, and the kernels were bound by it, not by memory.
__device__ __forceinline__ float normal(float x, float& bell) {
    float z = fabsf(x) * 0.70710678118654752f, t;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(1.f + 0.3275911f * z));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(bell) : "f"(-1.44269504088896340f * z * z));
    float tail = ((((0.5307027145f * t - 0.7265760135f) * t + 0.7107068705f) * t - 0.142248368f) * t + 0.127414796f) * t * bell;
    return x > 0.f ? 1.f - tail : tail;
}
__device__ __forceinline__ float activation(float x, int gelu) {
    float bell;
    return gelu ? x * normal(x, bell) : fmaxf(x, 0.f);
}
__device__ __forceinline__ float slope(float x, int gelu) {
    if (!gelu) return x > 0.f ? 1.f : 0.f;
    float bell, phi = normal(x, bell);
    return phi + x * 0.39894228040143268f * bell;
}
__device__ __forceinline__ unsigned activate2(unsigned x, int gelu) {
    return pack(activation(low(x), gelu), activation(high(x), gelu));
}
// d·act'(x), added to two column sums before it is rounded.
__device__ __forceinline__ unsigned slope2(unsigned d, unsigned x, int gelu, float* sums) {
    float a = low(d) * slope(low(x), gelu), b = high(d) * slope(high(x), gelu);
    sums[0] += a;
    sums[1] += b;
    return pack(a, b);
}
