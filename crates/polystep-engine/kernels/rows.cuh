// Rows of D columns, one warp per row, lane l owning columns 4l + 128j: the layer norm that norm.cu and embed.cu share.
#pragma once
#include "common.cuh"

#define GROUPS ((D / 4 + 31) / 32)
#define EACH_GROUP _Pragma("unroll") for (int j = 0, c = lane; j < GROUPS; j++, c += 32) if (D % 128 == 0 || c < D / 4)

// Subtracts the mean of a row whose lanes have summed up their columns, and gives 1/std; both go to `stat`.
__device__ __forceinline__ float centre(float4* v, float sum, float* stat, int row, int lane) {
    float mean = warp_sum(sum) * (1.f / D), var = 0.f;
    EACH_GROUP {
        v[j] = v[j] + make_float4(-mean, -mean, -mean, -mean);
        var += sum4(v[j] * v[j]);
    }
    float rstd = rsqrtf(warp_sum(var) * (1.f / D) + 1e-5f);
    if (lane == 0) *reinterpret_cast<float2*>(stat + 2 * row) = make_float2(mean, rstd);
    return rstd;
}

// Adds up one quantity of the block's eight warps and writes it as one row of D sums.
__device__ __forceinline__ void block_columns(const float4* acc, float* out, float (*shared)[D], int lane, int warp) {
    EACH_GROUP store4(&shared[warp][4 * c], acc[j]);
    __syncthreads();
    for (int col = threadIdx.x; col < D; col += 256) {
        float sum = 0.f;
#pragma unroll
        for (int w = 0; w < 8; w++) sum += shared[w][col];
        out[col] = sum;
    }
    __syncthreads();
}
