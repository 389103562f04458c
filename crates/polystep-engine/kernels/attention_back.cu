// Gradient of attention. Nothing is kept from the forward pass but the log-sum-exp; scores are computed again. Grid
// (heads, sequences, 2·splits): blocks with even z own query tiles and make dq, blocks with odd z own key tiles and make
// dk and dv, so that no two blocks add to one number. (A single pass that makes all three needs atomics on dq, and then
// two runs differ.) Rows past the batch are set to zero. Each block also leaves the column sums of what it wrote, one
// row per (sequence, split): the bias gradients of the projections.
#include "head.cuh"

#define CHUNK (HD > 32 ? 32 : 64) // columns of scores in registers at once

struct Grad {
    u16* to;
    int ld;
    float* partial; // [sequences·splits, heads·HD]
};

// D = Σ dout∘out and the log-sum-exp (in log2) of the 64 queries from `first`: two threads per row.
__device__ __forceinline__ void statistics(float* dot, float* lse2, const u16* out, const u16* dout, const float* lse,
                                           int first, int lq, int heads) {
    int row = threadIdx.x >> 1, half = threadIdx.x & 1, r = first + row;
    float sum = 0.f;
    if (r < lq) {
        const uint4* a = reinterpret_cast<const uint4*>(out + (size_t)r * heads * HD);
        const uint4* b = reinterpret_cast<const uint4*>(dout + (size_t)r * heads * HD);
#pragma unroll
        for (int c = half; c < HD / 8; c += 2) {
            uint4 x = a[c], y = b[c];
            sum += low(x.x) * low(y.x) + high(x.x) * high(y.x) + low(x.y) * low(y.y) + high(x.y) * high(y.y);
            sum += low(x.z) * low(y.z) + high(x.z) * high(y.z) + low(x.w) * low(y.w) + high(x.w) * high(y.w);
        }
    }
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    if (half == 0) {
        dot[row] = sum;
        lse2[row] = r < lq ? lse[(size_t)r * heads] * 1.44269504088896340f : 0.f;
    }
}

// Writes 16 rows per warp, adds them to the column sums kept per thread.
__device__ __forceinline__ void emit(float (*acc)[4], float factor, Grad g, int origin, int row, int len, int h, int group,
                                     int pair, float (*columns)[2]) {
#pragma unroll
    for (int n = 0; n < HD / 8; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++) acc[n][e] *= factor;
        columns[n][0] += acc[n][0] + acc[n][2];
        columns[n][1] += acc[n][1] + acc[n][3];
    }
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

// Adds the column sums of the four warps and writes the block's row.
__device__ __forceinline__ void emit_columns(float (*columns)[2], float* shared, Grad g, int line, int heads, int h, int lane,
                                             int warp) {
    __syncthreads();
#pragma unroll
    for (int n = 0; n < HD / 8; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float x = columns[n][e];
            x += __shfl_xor_sync(0xffffffffu, x, 4);
            x += __shfl_xor_sync(0xffffffffu, x, 8);
            x += __shfl_xor_sync(0xffffffffu, x, 16);
            if (lane < 4) shared[warp * HD + n * 8 + lane * 2 + e] = x;
        }
    __syncthreads();
    for (int c = threadIdx.x; c < HD; c += 128)
        g.partial[((size_t)line * heads + h) * HD + c] =
            (shared[c] + shared[HD + c]) + (shared[2 * HD + c] + shared[3 * HD + c]);
}

// Zeros in the rows past the batch, dealt out over the sequences' blocks.
__device__ __forceinline__ void clear(Grad g, int real, int capacity, int h) {
    for (int r = real + blockIdx.y; r < capacity; r += gridDim.y)
        for (int c = threadIdx.x; c < HD / 2; c += 128)
            reinterpret_cast<unsigned*>(g.to + (size_t)r * g.ld + h * HD)[c] = 0;
}

// scores[i][j] = rows of tile a · rows of tile b, for 16 rows of a and `CHUNK` rows of b from `first`, `count` of which matter.
__device__ __forceinline__ void product(float (*x)[4], unsigned a_tile, int a_row, unsigned b_tile, int first, int count,
                                        int lane) {
#pragma unroll
    for (int n = 0; n < CHUNK / 8; n++) x[n][0] = x[n][1] = x[n][2] = x[n][3] = 0.f;
#pragma unroll
    for (int c = 0; c < HDP; c += 16) {
        unsigned a[4], b[4];
        load_a(a, a_tile, a_row, c, lane);
#pragma unroll
        for (int n = 0; n < CHUNK / 16; n++) {
            if (n * 16 < count) {
                load_b(b, b_tile, first + n * 16, c, lane);
                mma(x[2 * n], a, b[0], b[1]);
                mma(x[2 * n + 1], a, b[2], b[3]);
            }
        }
    }
}

// acc += x · rows of the tile from `first`.
__device__ __forceinline__ void accumulate(float (*acc)[4], float (*x)[4], unsigned tile, int first, int count, int lane) {
#pragma unroll
    for (int n = 0; n < CHUNK / 16; n++) {
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
}

extern "C" __global__ void __launch_bounds__(128)
attention_back(const u16* q, const u16* k, const u16* v, int ldq, int ldk, int ldv, const u16* out, const u16* dout,
               const float* lse, Grad dq, Grad dk, Grad dv, const Header* head, const int* cu_q, const int* cu_k, int side_q,
               int side_k, int rows_q, int rows_k, int causal, int above, int clears) {
    begin();
    extern __shared__ __align__(16) u16 smem[];
    __shared__ float dot[TILE], lse2[TILE], sums[4 * HD];
    int h = blockIdx.x, s = blockIdx.y, heads = gridDim.x, splits = gridDim.z / 2, split = blockIdx.z / 2;
    bool keys_part = blockIdx.z & 1;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = lane >> 2, pair = lane & 3;
    if (clears && split == 0) {
        if (keys_part) {
            clear(dk, head->tokens[side_k], rows_k, h);
            clear(dv, head->tokens[side_k], rows_k, h);
        } else {
            clear(dq, head->tokens[side_q], rows_q, h);
        }
    }
    int line = s * splits + split;
    if (s >= head->sequences) {
        if (!clears) return;
        for (int c = threadIdx.x; c < HD; c += 128) {
            size_t at = ((size_t)line * heads + h) * HD + c;
            if (keys_part) dk.partial[at] = dv.partial[at] = 0.f;
            else dq.partial[at] = 0.f;
        }
        return;
    }
    int q0 = cu_q[s], lq = cu_q[s + 1] - q0, k0 = cu_k[s], lk = cu_k[s + 1] - k0;
    if (max(lq, lk) <= above) return; // attention_short.cu's
    unsigned tile_q = address(smem), tile_o = tile_q + TILE_BYTES, tile_k = tile_o + TILE_BYTES, tile_v = tile_k + TILE_BYTES;
    const float scale = rsqrtf((float)HD), scale2 = scale * 1.44269504088896340f;
    q += (size_t)q0 * ldq + h * HD;
    k += (size_t)k0 * ldk + h * HD;
    v += (size_t)k0 * ldv + h * HD;
    out += ((size_t)q0 * heads + h) * HD;
    dout += ((size_t)q0 * heads + h) * HD;
    lse += (size_t)q0 * heads + h;
    int ldo = heads * HD;
    float x[CHUNK / 8][4], dx[CHUNK / 8][4];

    if (!keys_part) {
        float columns[HD / 8][2];
#pragma unroll
        for (int n = 0; n < HD / 8; n++) columns[n][0] = columns[n][1] = 0.f;
        for (int first = split * TILE; first < lq; first += splits * TILE) {
            __syncthreads();
            fetch_tile<TILE, 128>(tile_q, q + (size_t)first * ldq, ldq, lq - first, TILE);
            fetch_tile<TILE, 128>(tile_o, dout + (size_t)first * ldo, ldo, lq - first, TILE);
            statistics(dot, lse2, out, dout, lse, first, lq, heads);
            float acc[HDP / 8][4];
#pragma unroll
            for (int n = 0; n < HDP / 8; n++) acc[n][0] = acc[n][1] = acc[n][2] = acc[n][3] = 0.f;
            int row = first + warp * 16, end = causal ? min(lk, first + TILE) : lk;
            for (int key = 0; key < end; key += TILE) {
                fetch_tile<TILE, 128>(tile_k, k + (size_t)key * ldk, ldk, lk - key, TILE);
                fetch_tile<TILE, 128>(tile_v, v + (size_t)key * ldv, ldv, lk - key, TILE);
                commit();
                arrive<0>();
                __syncthreads();
#pragma unroll 1
                for (int chunk = 0; chunk < TILE; chunk += CHUNK) {
                    int count = (causal ? min(lk, row + 16) : lk) - key - chunk;
                    if (row >= lq || count <= 0) continue;
                    product(x, tile_q, warp * 16, tile_k, chunk, count, lane);
                    product(dx, tile_o, warp * 16, tile_v, chunk, count, lane);
#pragma unroll
                    for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
                        for (int e = 0; e < 4; e++) {
                            int col = key + chunk + n * 8 + pair * 2 + (e & 1), i = group + (e >> 1) * 8;
                            bool allowed = col < lk && row + i < lq && (!causal || col <= row + i);
                            float p = allowed ? exp2f(x[n][e] * scale2 - lse2[warp * 16 + i]) : 0.f;
                            x[n][e] = p * (dx[n][e] - dot[warp * 16 + i]);
                        }
                    accumulate(acc, x, tile_k, chunk, count, lane);
                }
                __syncthreads();
            }
            emit(acc, scale, dq, q0, row, lq, h, group, pair, columns);
        }
        emit_columns(columns, sums, dq, line, heads, h, lane, warp);
    } else {
        float columns_k[HD / 8][2], columns_v[HD / 8][2];
#pragma unroll
        for (int n = 0; n < HD / 8; n++) columns_k[n][0] = columns_k[n][1] = columns_v[n][0] = columns_v[n][1] = 0.f;
        for (int first = split * TILE; first < lk; first += splits * TILE) {
            __syncthreads();
            fetch_tile<TILE, 128>(tile_k, k + (size_t)first * ldk, ldk, lk - first, TILE);
            fetch_tile<TILE, 128>(tile_v, v + (size_t)first * ldv, ldv, lk - first, TILE);
            float acc_k[HDP / 8][4], acc_v[HDP / 8][4];
#pragma unroll
            for (int n = 0; n < HDP / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) acc_k[n][e] = acc_v[n][e] = 0.f;
            int row = first + warp * 16; // keys of this warp
            for (int query = causal ? first : 0; query < lq; query += TILE) {
                fetch_tile<TILE, 128>(tile_q, q + (size_t)query * ldq, ldq, lq - query, TILE);
                fetch_tile<TILE, 128>(tile_o, dout + (size_t)query * ldo, ldo, lq - query, TILE);
                commit();
                statistics(dot, lse2, out, dout, lse, query, lq, heads);
                arrive<0>();
                __syncthreads();
#pragma unroll 1
                for (int chunk = 0; chunk < TILE; chunk += CHUNK) {
                    int count = lq - query - chunk;
                    if (row >= lk || count <= 0) continue;
                    product(x, tile_k, warp * 16, tile_q, chunk, count, lane);
#pragma unroll
                    for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
                        for (int e = 0; e < 4; e++) {
                            int i = chunk + n * 8 + pair * 2 + (e & 1), key = row + group + (e >> 1) * 8;
                            bool allowed = query + i < lq && key < lk && (!causal || key <= query + i);
                            x[n][e] = allowed ? exp2f(x[n][e] * scale2 - lse2[i]) : 0.f;
                        }
                    accumulate(acc_v, x, tile_o, chunk, count, lane);
                    product(dx, tile_v, warp * 16, tile_o, chunk, count, lane);
#pragma unroll
                    for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
                        for (int e = 0; e < 4; e++) x[n][e] *= dx[n][e] - dot[chunk + n * 8 + pair * 2 + (e & 1)];
                    accumulate(acc_k, x, tile_q, chunk, count, lane);
                }
                __syncthreads();
            }
            // The first tile may be beyond all queries of a causal sequence: the copies must have landed before reuse.
            arrive<0>();
            emit(acc_k, scale, dk, k0, row, lk, h, group, pair, columns_k);
            emit(acc_v, 1.f, dv, k0, row, lk, h, group, pair, columns_v);
        }
        emit_columns(columns_k, sums, dk, line, heads, h, lane, warp);
        emit_columns(columns_v, sums, dv, line, heads, h, lane, warp);
    }
}
