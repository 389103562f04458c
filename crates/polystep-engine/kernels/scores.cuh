// Scores of one attention head in registers: 16 rows per warp, CHUNK columns at once; and what becomes of them. A lane has
// rows `group` and `group + 8` and, of every eight columns, the two from `2·pair` on.
#pragma once
#include "head.cuh"

#define NONE __int_as_float(0xff800000)

template <int N> __device__ __forceinline__ void clear(float (*x)[4]) {
#pragma unroll
    for (int n = 0; n < N; n++) x[n][0] = x[n][1] = x[n][2] = x[n][3] = 0.f;
}

// x = 16 rows of tile a · CHUNK rows of tile b from `first`, `count` of which matter.
template <int CHUNK_>
__device__ __forceinline__ void product(float (*x)[4], unsigned a_tile, int a_row, unsigned b_tile, int first, int count,
                                        int lane) {
    clear<CHUNK_ / 8>(x);
#pragma unroll
    for (int c = 0; c < HDP; c += 16) {
        unsigned a[4], b[4];
        load_a(a, a_tile, a_row, c, lane);
#pragma unroll
        for (int n = 0; n < CHUNK_ / 16; n++)
            if (n * 16 < count) {
                load_b(b, b_tile, first + n * 16, c, lane);
                mma(x[2 * n], a, b[0], b[1]);
                mma(x[2 * n + 1], a, b[2], b[3]);
            }
    }
}

// acc += x · rows of the tile from `first`.
template <int CHUNK_>
__device__ __forceinline__ void accumulate(float (*acc)[4], float (*x)[4], unsigned tile, int first, int count, int lane) {
#pragma unroll
    for (int n = 0; n < CHUNK_ / 16; n++)
        if (n * 16 < count) {
            unsigned a[4] = {pack(x[2 * n][0], x[2 * n][1]), pack(x[2 * n][2], x[2 * n][3]),
                             pack(x[2 * n + 1][0], x[2 * n + 1][1]), pack(x[2 * n + 1][2], x[2 * n + 1][3])};
#pragma unroll
            for (int c = 0; c < HDP; c += 16) {
                unsigned b[4];
                load_bt(b, tile, first + n * 16, c, lane);
                mma(acc[c / 8], a, b[0], b[1]);
                mma(acc[c / 8 + 1], a, b[2], b[3]);
            }
        }
}

// D = Σ dout∘out and the log-sum-exp (in log2) of query `row`, which is number r of its sequence: two threads per row.
__device__ __forceinline__ void statistics(float* dot, float* lse2, const u16* out, const u16* dout, const float* lse, int row,
                                           int r, int lq, int heads) {
    float sum = 0.f;
    if (r < lq) {
        const uint4* a = reinterpret_cast<const uint4*>(out + (size_t)r * heads * HD);
        const uint4* b = reinterpret_cast<const uint4*>(dout + (size_t)r * heads * HD);
#pragma unroll
        for (int c = threadIdx.x & 1; c < HD / 8; c += 2) {
            uint4 x = a[c], y = b[c];
            sum += low(x.x) * low(y.x) + high(x.x) * high(y.x) + low(x.y) * low(y.y) + high(x.y) * high(y.y);
            sum += low(x.z) * low(y.z) + high(x.z) * high(y.z) + low(x.w) * low(y.w) + high(x.w) * high(y.w);
        }
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    if ((threadIdx.x & 1) == 0) {
        dot[row] = sum;
        lse2[row] = r < lq ? lse[(size_t)r * heads] * 1.44269504088896340f : 0.f;
    }
}

// The gradient of queries, keys or values, with its column sums.
struct Grad {
    u16* to;
    int ld;
    float* partial; // [sequences·lines, heads·HD]
};

// The 16 rows of a warp, packed, as far as the sequence reaches.
__device__ __forceinline__ void write_rows(float (*acc)[4], Grad g, int origin, int row, int len, int h, int group, int pair) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int r = row + group + i * 8;
        if (r < len) {
            unsigned* to = reinterpret_cast<unsigned*>(g.to + (size_t)(origin + r) * g.ld + h * HD);
#pragma unroll
            for (int n = 0; n < HD / 8; n++) to[n * 4 + pair] = pack(acc[n][2 * i], acc[n][2 * i + 1]);
        }
    }
}

// A column sum over the eight lanes that share a column.
__device__ __forceinline__ float column_sum(float x) {
    x += __shfl_xor_sync(0xffffffffu, x, 4);
    x += __shfl_xor_sync(0xffffffffu, x, 8);
    return x + __shfl_xor_sync(0xffffffffu, x, 16);
}

// The end of a softmax: normed rows, and their log-sum-exp.
__device__ __forceinline__ void finish(float (*o)[4], float* peak, float* sum, u16* out, float* lse, int q0, int row, int lq,
                                       int heads, int h, int group, int pair) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 1);
        sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 2);
        int r = row + group + i * 8;
        if (r >= lq) continue;
        float inverse = sum[i] > 0.f ? 1.f / sum[i] : 0.f;
        if (pair == 0)
            lse[(size_t)(q0 + r) * heads + h] = sum[i] > 0.f ? (peak[i] + log2f(sum[i])) * 0.69314718055994531f : 0.f;
        unsigned* to = reinterpret_cast<unsigned*>(out + ((size_t)(q0 + r) * heads + h) * HD);
#pragma unroll
        for (int n = 0; n < HD / 8; n++) to[n * 4 + pair] = pack(o[n][2 * i] * inverse, o[n][2 * i + 1] * inverse);
    }
}

// Zeros in one row of a head, by THREADS threads.
template <int THREADS_>
__device__ __forceinline__ void clear_row(u16* to) {
    for (int c = threadIdx.x; c < HD / 2; c += THREADS_) reinterpret_cast<unsigned*>(to)[c] = 0;
}

// Zeros in the rows past the batch, dealt out over the sequences' blocks.
template <int THREADS_>
__device__ __forceinline__ void clear_rows(Grad g, int real, int capacity, int h) {
    for (int r = real + blockIdx.y; r < capacity; r += gridDim.y) clear_row<THREADS_>(g.to + (size_t)r * g.ld + h * HD);
}
