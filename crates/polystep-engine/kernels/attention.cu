// Attention over packed sequences, forward, in flash style: 64 queries at a time (16 per warp) over tiles of 64 keys, so
// that shared memory does not depend on the length. Grid (heads, sequences, splits); the query tiles of a sequence
// are dealt out over the splits. Work is skipped in steps of 16 rows and 16 keys: sequences of 44 tokens are common.
// Rows past the batch are set to zero: their memory may hold anything, and weight gradients multiply them by zero.
#include "scores.cuh"

extern "C" __global__ void __launch_bounds__(128)
attention(const u16* q, const u16* k, const u16* v, int ldq, int ldk, int ldv, u16* out, float* lse, const Header* head,
          const int* cu_q, const int* cu_k, int side_q, int rows_q, int causal,
          int above, int clears) {
    begin();
    extern __shared__ __align__(16) u16 smem[];
    int h = blockIdx.x, s = blockIdx.y, heads = gridDim.x;
    for (int r = clears ? head->tokens[side_q] + s + blockIdx.z * gridDim.y : rows_q; r < rows_q; r += gridDim.y * gridDim.z)
        clear_row<128>(out + ((size_t)r * heads + h) * HD);
    if (s >= head->sequences) return;
    int q0 = cu_q[s], lq = cu_q[s + 1] - q0, k0 = cu_k[s], lk = cu_k[s + 1] - k0;
    if (max(lq, lk) <= above) return; // attention_short.cu's
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = lane >> 2, pair = lane & 3;
    unsigned tile_q = address(smem), tile_k = tile_q + TILE_BYTES, tile_v = tile_k + 2 * TILE_BYTES;
    const float scale = 1.44269504088896340f * rsqrtf((float)HD); // scores in units of log2
    q += (size_t)q0 * ldq + h * HD;
    k += (size_t)k0 * ldk + h * HD;
    v += (size_t)k0 * ldv + h * HD;

    for (int first = blockIdx.z * TILE; first < lq; first += gridDim.z * TILE) {
        int last_key = causal ? min(lk, first + TILE) : lk, tiles = (last_key + TILE - 1) / TILE;
        __syncthreads();
        fetch_tile<TILE, 128>(tile_q, q + (size_t)first * ldq, ldq, lq - first, TILE);
        fetch_tile<TILE, 128>(tile_k, k, ldk, lk, TILE);
        fetch_tile<TILE, 128>(tile_v, v, ldv, lk, TILE);
        commit();
        float o[HDP / 8][4], peak[2] = {NONE, NONE}, sum[2] = {0.f, 0.f};
        clear<HDP / 8>(o);
        int row = first + warp * 16; // of this warp, in the sequence
        for (int t = 0; t < tiles; t++) {
            unsigned now_k = tile_k + (t & 1) * TILE_BYTES, now_v = tile_v + (t & 1) * TILE_BYTES;
            if (t + 1 < tiles) {
                int next = (t + 1) * TILE;
                fetch_tile<TILE, 128>(tile_k + (~t & 1) * TILE_BYTES, k + (size_t)next * ldk, ldk, lk - next, TILE);
                fetch_tile<TILE, 128>(tile_v + (~t & 1) * TILE_BYTES, v + (size_t)next * ldv, ldv, lk - next, TILE);
                commit();
                arrive<1>();
            } else {
                arrive<0>();
            }
            __syncthreads();
            int keys = min(TILE, (causal ? min(lk, row + 16) : lk) - t * TILE); // that this warp needs
            if (row < lq && keys > 0) {
                float x[TILE / 8][4];
                product<TILE>(x, tile_q, warp * 16, now_k, 0, keys, lane);
                float top[2] = {peak[0], peak[1]};
#pragma unroll
                for (int n = 0; n < TILE / 8; n++) {
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        int col = t * TILE + n * 8 + pair * 2 + (e & 1), r = row + group + (e >> 1) * 8;
                        bool allowed = col < lk && (!causal || col <= r);
                        x[n][e] = allowed ? x[n][e] * scale : NONE;
                        top[e >> 1] = fmaxf(top[e >> 1], x[n][e]);
                    }
                }
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 1));
                    top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 2));
                    float base = top[i] == NONE ? 0.f : top[i], shrink = exp2f(peak[i] - base);
                    peak[i] = top[i];
                    top[i] = base;
                    sum[i] *= shrink;
#pragma unroll
                    for (int n = 0; n < HDP / 8; n++) o[n][2 * i] *= shrink, o[n][2 * i + 1] *= shrink;
                }
#pragma unroll
                for (int n = 0; n < TILE / 8; n++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        x[n][e] = exp2f(x[n][e] - top[e >> 1]);
                        sum[e >> 1] += x[n][e];
                    }
                accumulate<TILE>(o, x, now_v, 0, keys, lane);
            }
            __syncthreads();
        }
        finish(o, peak, sum, out, lse, q0, row, lq, heads, h, group, pair);
    }
}
