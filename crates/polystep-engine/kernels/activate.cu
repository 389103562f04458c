// The feed-forward activation where it is not fused into a product (product.cu), its gradient, and column sums. VEC (2, 4 or
// 8) elements per thread. The backward kernels keep their columns in registers over all rows of the block and leave one row
// of partial sums per block, which is the gradient of the bias before the activation.
#include "activation.cuh"

#define WORDS (VEC / 2)
#define AT_ONCE 4 // rows that a thread has in flight

struct __align__(4 * WORDS) Pack { unsigned v[WORDS]; };

extern "C" __global__ void __launch_bounds__(256) activate(const u16* x, u16* y, int n, int gelu) {
    begin();
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    Pack p = reinterpret_cast<const Pack*>(x)[i];
#pragma unroll
    for (int k = 0; k < WORDS; k++) p.v[k] = activate2(p.v[k], gelu);
    reinterpret_cast<Pack*>(y)[i] = p;
}

// kind 0: ReLU, 1: GELU, 2: no activation, only the sums of d (row stride ld, in packs; nothing is written back).
// blockDim (TX, TY); shared memory TX·TY·VEC floats.
extern "C" __global__ void __launch_bounds__(256, 4)
activate_back(const u16* x, u16* d, float* partial, const Header* head, int side, int rows, int packs, int ld, int kind) {
    begin();
    extern __shared__ float shared[];
    int real = side < 0 ? rows : head->tokens[side], threads = blockDim.x * blockDim.y;
    for (int first = 0; first < packs; first += blockDim.x) {
        int c = first + threadIdx.x, step = gridDim.x * blockDim.y;
        float sum[VEC];
#pragma unroll
        for (int k = 0; k < VEC; k++) sum[k] = 0.f;
        if (c < packs) {
            for (int row = blockIdx.x * blockDim.y + threadIdx.y; row < rows; row += AT_ONCE * step) {
                Pack g[AT_ONCE], in[AT_ONCE];
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) { // loads first: they overlap
                    int r = row + u * step;
#pragma unroll
                    for (int k = 0; k < WORDS; k++) g[u].v[k] = in[u].v[k] = 0;
                    if (r < real) {
                        g[u] = reinterpret_cast<const Pack*>(d)[(size_t)r * ld + c];
                        if (kind < 2) in[u] = reinterpret_cast<const Pack*>(x)[(size_t)r * ld + c];
                    }
                }
#pragma unroll
                for (int u = 0; u < AT_ONCE; u++) {
                    int r = row + u * step;
                    if (kind < 2) {
#pragma unroll
                        for (int k = 0; k < WORDS; k++) g[u].v[k] = slope2(g[u].v[k], in[u].v[k], kind, sum + 2 * k);
                        if (r < rows) reinterpret_cast<Pack*>(d)[(size_t)r * ld + c] = g[u];
                    } else {
#pragma unroll
                        for (int k = 0; k < WORDS; k++) sum[2 * k] += low(g[u].v[k]), sum[2 * k + 1] += high(g[u].v[k]);
                    }
                }
            }
        }
        // [element of the pack][thread]: neighbours in different banks
#pragma unroll
        for (int k = 0; k < VEC; k++) shared[k * threads + threadIdx.y * blockDim.x + threadIdx.x] = sum[k];
        __syncthreads();
        for (int i = threadIdx.y * blockDim.x + threadIdx.x; i < blockDim.x * VEC; i += threads) {
            int k = i / blockDim.x, t = i % blockDim.x;
            float all = 0.f;
            for (int y = 0; y < blockDim.y; y++) all += shared[k * threads + y * blockDim.x + t];
            if (first + t < packs) partial[((size_t)blockIdx.x * packs + first + t) * VEC + k] = all;
        }
        __syncthreads();
    }
}
