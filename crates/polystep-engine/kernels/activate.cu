// The feed-forward activation, its gradient, and column sums. GELU is the exact erf form (the epilogue that cuBLASLt
// offers is the tanh approximation, so it cannot be used). VEC elements per thread. The backward kernels keep their
// columns in registers over all rows of the block and leave one row of partial sums per block, which is the gradient of
// the bias before the activation.
#include "common.cuh"

struct __align__(2 * VEC) Pack { u16 v[VEC]; };

__device__ __forceinline__ float forward(float x, int gelu) {
    return gelu ? 0.5f * x * (1.f + erff(x * 0.70710678118654752f)) : fmaxf(x, 0.f);
}
__device__ __forceinline__ float slope(float x, int gelu) {
    if (!gelu) return x > 0.f ? 1.f : 0.f;
    return 0.5f * (1.f + erff(x * 0.70710678118654752f)) + x * 0.39894228040143268f * __expf(-0.5f * x * x);
}

extern "C" __global__ void __launch_bounds__(256) activate(const u16* x, u16* y, int n, int gelu) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    Pack p = reinterpret_cast<const Pack*>(x)[i];
#pragma unroll
    for (int k = 0; k < VEC; k++) p.v[k] = narrow(forward(wide(p.v[k]), gelu));
    reinterpret_cast<Pack*>(y)[i] = p;
}

// kind 0: ReLU, 1: GELU, 2: no activation, only the sums of d (row stride ld, in packs; nothing is written back).
// blockDim (TX, TY); shared memory TX·TY·VEC floats.
extern "C" __global__ void __launch_bounds__(256)
activate_back(const u16* x, u16* d, float* partial, const Header* head, int side, int rows, int packs, int ld, int kind) {
    extern __shared__ float shared[];
    int real = side < 0 ? rows : head->tokens[side];
    for (int first = 0; first < packs; first += blockDim.x) {
        int c = first + threadIdx.x;
        float sum[VEC];
#pragma unroll
        for (int k = 0; k < VEC; k++) sum[k] = 0.f;
        if (c < packs) {
            for (int row = blockIdx.x * blockDim.y + threadIdx.y; row < rows; row += gridDim.x * blockDim.y) {
                Pack* at = reinterpret_cast<Pack*>(d) + (size_t)row * ld + c;
                if (row >= real) {
                    if (kind < 2) {
                        Pack none;
#pragma unroll
                        for (int k = 0; k < VEC; k++) none.v[k] = 0;
                        *at = none;
                    }
                    continue;
                }
                Pack g = *at;
                if (kind < 2) {
                    Pack in = reinterpret_cast<const Pack*>(x)[(size_t)row * ld + c];
#pragma unroll
                    for (int k = 0; k < VEC; k++) {
                        float v = wide(g.v[k]) * slope(wide(in.v[k]), kind);
                        sum[k] += v;
                        g.v[k] = narrow(v);
                    }
                    *at = g;
                } else {
#pragma unroll
                    for (int k = 0; k < VEC; k++) sum[k] += wide(g.v[k]);
                }
            }
        }
#pragma unroll
        for (int k = 0; k < VEC; k++) shared[(threadIdx.y * blockDim.x + threadIdx.x) * VEC + k] = sum[k];
        __syncthreads();
        int width = blockDim.x * VEC;
        for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < width; i += blockDim.x * blockDim.y) {
            float all = 0.f;
            for (int y = 0; y < blockDim.y; y++) all += shared[y * width + i];
            if (first * VEC + i < packs * VEC) partial[(size_t)blockIdx.x * packs * VEC + first * VEC + i] = all;
        }
        __syncthreads();
    }
}
