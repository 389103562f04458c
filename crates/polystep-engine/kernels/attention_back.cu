// Gradient of attention. Nothing is kept from the forward pass but the log-sum-exp; scores are computed again. Grid
// (heads, sequences, 2·splits): blocks with even z own query tiles and make dq, blocks with odd z own key tiles and make
// dk and dv, so that no two blocks add to one number. (A single pass that makes all three needs atomics on dq, and then
// two runs differ.) Rows past the batch are set to zero. Each block also leaves the column sums of what it wrote, one
// row per (sequence, split): the bias gradients of the projections.
#include "scores.cuh"

#define CHUNK (HD > 32 ? 32 : 64) // columns of scores in registers at once

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
    write_rows(acc, g, origin, row, len, h, group, pair);
}

// Adds the column sums of the four warps and writes the block's row.
__device__ __forceinline__ void emit_columns(float (*columns)[2], float* shared, Grad g, int line, int heads, int h, int lane,
                                             int warp) {
    __syncthreads();
#pragma unroll
    for (int n = 0; n < HD / 8; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float x = column_sum(columns[n][e]);
            if (lane < 4) shared[warp * HD + n * 8 + lane * 2 + e] = x;
        }
    __syncthreads();
    for (int c = threadIdx.x; c < HD; c += 128)
        g.partial[((size_t)line * heads + h) * HD + c] =
            (shared[c] + shared[HD + c]) + (shared[2 * HD + c] + shared[3 * HD + c]);
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
            clear_rows<128>(dk, head->tokens[side_k], rows_k, h);
            clear_rows<128>(dv, head->tokens[side_k], rows_k, h);
        } else {
            clear_rows<128>(dq, head->tokens[side_q], rows_q, h);
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
            statistics(dot, lse2, out, dout, lse, threadIdx.x >> 1, first + (threadIdx.x >> 1), lq, heads);
            float acc[HDP / 8][4];
            clear<HDP / 8>(acc);
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
                    product<CHUNK>(x, tile_q, warp * 16, tile_k, chunk, count, lane);
                    product<CHUNK>(dx, tile_o, warp * 16, tile_v, chunk, count, lane);
#pragma unroll
                    for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
                        for (int e = 0; e < 4; e++) {
                            int col = key + chunk + n * 8 + pair * 2 + (e & 1), i = group + (e >> 1) * 8;
                            bool allowed = col < lk && row + i < lq && (!causal || col <= row + i);
                            float p = allowed ? exp2f(x[n][e] * scale2 - lse2[warp * 16 + i]) : 0.f;
                            x[n][e] = p * (dx[n][e] - dot[warp * 16 + i]);
                        }
                    accumulate<CHUNK>(acc, x, tile_k, chunk, count, lane);
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
            clear<HDP / 8>(acc_k);
            clear<HDP / 8>(acc_v);
            int row = first + warp * 16; // keys of this warp
            for (int query = causal ? first : 0; query < lq; query += TILE) {
                fetch_tile<TILE, 128>(tile_q, q + (size_t)query * ldq, ldq, lq - query, TILE);
                fetch_tile<TILE, 128>(tile_o, dout + (size_t)query * ldo, ldo, lq - query, TILE);
                commit();
                statistics(dot, lse2, out, dout, lse, threadIdx.x >> 1, query + (threadIdx.x >> 1), lq, heads);
                arrive<0>();
                __syncthreads();
#pragma unroll 1
                for (int chunk = 0; chunk < TILE; chunk += CHUNK) {
                    int count = lq - query - chunk;
                    if (row >= lk || count <= 0) continue;
                    product<CHUNK>(x, tile_k, warp * 16, tile_q, chunk, count, lane);
#pragma unroll
                    for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
                        for (int e = 0; e < 4; e++) {
                            int i = chunk + n * 8 + pair * 2 + (e & 1), key = row + group + (e >> 1) * 8;
                            bool allowed = query + i < lq && key < lk && (!causal || key <= query + i);
                            x[n][e] = allowed ? exp2f(x[n][e] * scale2 - lse2[i]) : 0.f;
                        }
                    accumulate<CHUNK>(acc_v, x, tile_o, chunk, count, lane);
                    product<CHUNK>(dx, tile_v, warp * 16, tile_o, chunk, count, lane);
#pragma unroll
                    for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
                        for (int e = 0; e < 4; e++) x[n][e] *= dx[n][e] - dot[chunk + n * 8 + pair * 2 + (e & 1)];
                    accumulate<CHUNK>(acc_k, x, tile_q, chunk, count, lane);
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
