// The gradients of a linear layer whose output is fp32 (the logits): dx = dy·W and dW = dyᵀ·x, with dy in fp32 throughout. The
// tensor cores would round dy to bf16 first. There are few outputs (V), so plain multiplications cost little. Partial sums of dW
// are added up by `reduce`, in a fixed order.
#include "common.cuh"

#define ROWS 32

// dx[r, c] = Σ_v dy[r, v]·w[v, c]. A block takes ROWS rows and 128 columns, a thread one column of all these rows.
extern "C" __global__ void __launch_bounds__(128)
wide_dx(const float* dy, const u16* w, u16* dx, int ld, int rows) {
    begin();
    __shared__ float4 turned[V][ROWS / 4 + 1]; // one row per output; the last group keeps threads off each other's banks
    int first = blockIdx.x * ROWS, col = blockIdx.y * 128 + threadIdx.x;
    for (int i = threadIdx.x; i < ROWS * V; i += 128) {
        int r = i / V, v = i % V;
        reinterpret_cast<float*>(turned[v])[r] = first + r < rows ? dy[(size_t)(first + r) * V + v] : 0.f;
    }
    __syncthreads();
    if (col >= D) return;
    float4 sum[ROWS / 4];
#pragma unroll
    for (int j = 0; j < ROWS / 4; j++) sum[j] = zero4();
#pragma unroll 8
    for (int v = 0; v < V; v++) {
        float weight = wide(w[(size_t)v * D + col]);
#pragma unroll
        for (int j = 0; j < ROWS / 4; j++) sum[j] = sum[j] + turned[v][j] * weight;
    }
#pragma unroll
    for (int j = 0; j < ROWS / 4; j++) {
        float each[4] = {sum[j].x, sum[j].y, sum[j].z, sum[j].w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            int r = first + 4 * j + k;
            if (r < rows) dx[(size_t)r * ld + col] = narrow(each[k]);
        }
    }
}

// dw[v, c] = Σ_r dy[r, v]·x[r, c] over the rows of a block; a thread has one column of all outputs. partial[block, v, c].
extern "C" __global__ void __launch_bounds__(128)
wide_dw(const float4* dy, const u16* x, float* partial, int ld, int rows) {
    begin();
    __shared__ float4 tile[ROWS][V / 4];
    int col = blockIdx.y * 128 + threadIdx.x;
    float4 sum[V / 4];
#pragma unroll
    for (int j = 0; j < V / 4; j++) sum[j] = zero4();
    for (int first = blockIdx.x * ROWS; first < rows; first += gridDim.x * ROWS) {
        int count = min(ROWS, rows - first);
        __syncthreads();
        for (int i = threadIdx.x; i < count * (V / 4); i += 128) tile[i / (V / 4)][i % (V / 4)] = dy[(size_t)first * (V / 4) + i];
        __syncthreads();
        if (col < D) {
#pragma unroll 4
            for (int r = 0; r < count; r++) {
                float value = wide(x[(size_t)(first + r) * ld + col]);
#pragma unroll
                for (int j = 0; j < V / 4; j++) sum[j] = sum[j] + tile[r][j] * value;
            }
        }
    }
    if (col >= D) return;
    float* out = partial + (size_t)blockIdx.x * V * D + col;
#pragma unroll
    for (int j = 0; j < V / 4; j++) {
        out[(size_t)(4 * j) * D] = sum[j].x;
        out[(size_t)(4 * j + 1) * D] = sum[j].y;
        out[(size_t)(4 * j + 2) * D] = sum[j].z;
        out[(size_t)(4 * j + 3) * D] = sum[j].w;
    }
}
