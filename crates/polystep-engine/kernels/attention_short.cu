// Attention of short sequences, both directions, in one go: all queries, keys and values of a head lie in shared memory, 16
// rows to a warp, so that nothing is loaded or computed twice. ROWS (64, 96 or 128) is the longest side it takes; a sequence
// belongs to the kernel if its longer side is in (above, ROWS]. Longer ones are left to attention.cu and
// attention_back.cu. The backward kernel works in two phases: first each warp owns 16 keys and makes dk and dv, leaving the
// gradient of the scores in shared memory; then each owns 16 queries and makes dq from it. No two warps add to one number.
#include "scores.cuh"

#define WARPS (ROWS / 16)
#define THREADS (ROWS * 2)
#define TILE_ROWS (ROWS * PAD * 2) // bytes
#define STRIDE (ROWS + 8) // of the scores' gradient, [key][query]
#define CHUNK 32          // queries whose scores a warp holds at once, backward
#define BLOCKS (HD > 64 ? 1 : ROWS > 64 ? 2 : 4)

__device__ __forceinline__ float power2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// `len` rows, and zeros up to the next multiple of 16.
__device__ __forceinline__ void fetch_rows(unsigned tile, const u16* from, int ld, int len) {
    fetch_tile<ROWS, THREADS>(tile, from, ld, len, (len + 15) / 16 * 16);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
attention_short(const u16* q, const u16* k, const u16* v, int ldq, int ldk, int ldv, u16* out, float* lse,
                const Header* head, const int* cu_q, const int* cu_k, int side_q, int rows_q, int causal, int above,
                int clears) {
    extern __shared__ __align__(16) u16 smem[];
    int h = blockIdx.x, s = blockIdx.y, heads = gridDim.x, sequences = head->sequences, real_q = head->tokens[side_q];
    int q0 = cu_q[s], lq = cu_q[s + 1] - q0, k0 = cu_k[s], lk = cu_k[s + 1] - k0, longest = max(lq, lk);
    begin();
    if (clears)
        for (int r = real_q + s; r < rows_q; r += gridDim.y) clear_row<THREADS>(out + ((size_t)r * heads + h) * HD);
    if (s >= sequences) return;
    if (longest > ROWS || longest <= above) return;
    unsigned tile_q = address(smem), tile_k = tile_q + TILE_ROWS, tile_v = tile_k + TILE_ROWS;
    fetch_rows(tile_q, q + (size_t)q0 * ldq + h * HD, ldq, lq);
    fetch_rows(tile_k, k + (size_t)k0 * ldk + h * HD, ldk, lk);
    commit();
    fetch_rows(tile_v, v + (size_t)k0 * ldv + h * HD, ldv, lk);
    commit();
    int lane = threadIdx.x & 31, row = (threadIdx.x >> 5) * 16, group = lane >> 2, pair = lane & 3;
    const float scale = 1.44269504088896340f * rsqrtf((float)HD);
    int keys = causal ? min(lk, row + 16) : lk;
    float o[HDP / 8][4], peak[2] = {NONE, NONE}, sum[2] = {0.f, 0.f};
    clear<HDP / 8>(o);
    arrive<1>();
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first < ROWS; first += 64) {
        float x[8][4];
        int count = keys - first;
        bool busy = row < lq && count > 0;
        if (busy) {
            product<64>(x, tile_q, row, tile_k, first, count, lane);
            float top[2] = {peak[0], peak[1]};
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    int col = first + n * 8 + pair * 2 + (e & 1), r = row + group + (e >> 1) * 8;
                    x[n][e] = col < lk && (!causal || col <= r) ? x[n][e] * scale : NONE;
                    top[e >> 1] = fmaxf(top[e >> 1], x[n][e]);
                }
#pragma unroll
            for (int i = 0; i < 2; i++) {
                top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 1));
                top[i] = fmaxf(top[i], __shfl_xor_sync(0xffffffffu, top[i], 2));
                float base = top[i] == NONE ? 0.f : top[i], shrink = power2(peak[i] - base);
                peak[i] = top[i];
                top[i] = base;
                sum[i] *= shrink;
                if (first > 0)
#pragma unroll
                    for (int n = 0; n < HDP / 8; n++) o[n][2 * i] *= shrink, o[n][2 * i + 1] *= shrink;
            }
#pragma unroll
            for (int n = 0; n < 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    x[n][e] = power2(x[n][e] - top[e >> 1]);
                    sum[e >> 1] += x[n][e];
                }
        }
        if (first == 0) {
            arrive<0>();
            __syncthreads();
        }
        if (busy) accumulate<64>(o, x, tile_v, first, count, lane);
    }
    finish(o, peak, sum, out, lse, q0, row, lq, heads, h, group, pair);
}

// Writes 16 rows and leaves their column sums (still one per thread) in the first two of each four.
__device__ __forceinline__ void emit(float (*acc)[4], float factor, Grad g, int origin, int row, int len, int h, int group,
                                     int pair) {
#pragma unroll
    for (int n = 0; n < HD / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) acc[n][e] *= factor;
    write_rows(acc, g, origin, row, len, h, group, pair);
#pragma unroll
    for (int n = 0; n < HD / 8; n++) acc[n][0] += acc[n][2], acc[n][1] += acc[n][3];
}

// The warp's column sums into shared memory.
__device__ __forceinline__ void sum_columns(float (*acc)[4], float* to, int lane) {
#pragma unroll
    for (int n = 0; n < HD / 8; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float x = column_sum(acc[n][e]);
            if (lane < 4) to[n * 8 + lane * 2 + e] = x;
        }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
attention_back_short(const u16* q, const u16* k, const u16* v, int ldq, int ldk, int ldv, const u16* out, const u16* dout,
                     const float* lse, Grad dq, Grad dk, Grad dv, const Header* head, const int* cu_q, const int* cu_k,
                     int side_q, int side_k, int rows_q, int rows_k, int causal, int above, int clears, int lines) {
    extern __shared__ __align__(16) u16 smem[];
    __shared__ float dot[ROWS], lse2[ROWS];
    int h = blockIdx.x, s = blockIdx.y, heads = gridDim.x, sequences = head->sequences;
    int real_q = head->tokens[side_q], real_k = head->tokens[side_k];
    int q0 = cu_q[s], lq = cu_q[s + 1] - q0, k0 = cu_k[s], lk = cu_k[s + 1] - k0, longest = max(lq, lk);
    begin();
    if (clears) {
        clear_rows<THREADS>(dq, real_q, rows_q, h);
        clear_rows<THREADS>(dk, real_k, rows_k, h);
        clear_rows<THREADS>(dv, real_k, rows_k, h);
    }
    size_t line = ((size_t)s * lines * heads + h) * HD;
    if (s >= sequences) {
        if (clears)
            for (int c = threadIdx.x; c < lines * HD; c += THREADS) {
                size_t at = line + (size_t)(c / HD) * heads * HD + c % HD;
                dq.partial[at] = dk.partial[at] = dv.partial[at] = 0.f;
            }
        return;
    }
    if (longest > ROWS || longest <= above) return;
    unsigned tile_q = address(smem), tile_k = tile_q + TILE_ROWS, tile_v = tile_k + TILE_ROWS, tile_o = tile_v + TILE_ROWS;
    u16* scores = smem + 4 * ROWS * PAD;
    unsigned scores_at = tile_o + TILE_ROWS;
    int ldo = heads * HD;
    out += ((size_t)q0 * heads + h) * HD;
    dout += ((size_t)q0 * heads + h) * HD;
    lse += (size_t)q0 * heads + h;
    fetch_rows(tile_q, q + (size_t)q0 * ldq + h * HD, ldq, lq);
    fetch_rows(tile_k, k + (size_t)k0 * ldk + h * HD, ldk, lk);
    fetch_rows(tile_v, v + (size_t)k0 * ldv + h * HD, ldv, lk);
    fetch_rows(tile_o, dout, ldo, lq);
    commit();
    statistics(dot, lse2, out, dout, lse, threadIdx.x >> 1, threadIdx.x >> 1, lq, heads);
    const float scale = rsqrtf((float)HD), scale2 = scale * 1.44269504088896340f;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row = warp * 16, group = lane >> 2, pair = lane & 3;
    float acc_k[HDP / 8][4], acc_v[HDP / 8][4];
    clear<HDP / 8>(acc_k);
    clear<HDP / 8>(acc_v);
    arrive<0>();
    __syncthreads();
    if (row < lk) {
#pragma unroll 1
        for (int first = causal ? row / CHUNK * CHUNK : 0; first < lq; first += CHUNK) {
            float x[CHUNK / 8][4], dx[CHUNK / 8][4];
            int count = lq - first;
            product<CHUNK>(x, tile_k, row, tile_q, first, count, lane);
#pragma unroll
            for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    int query = first + n * 8 + pair * 2 + (e & 1), key = row + group + (e >> 1) * 8;
                    bool allowed = query < lq && key < lk && (!causal || key <= query);
                    x[n][e] = allowed ? power2(x[n][e] * scale2 - lse2[query]) : 0.f;
                }
            accumulate<CHUNK>(acc_v, x, tile_o, first, count, lane);
            product<CHUNK>(dx, tile_v, row, tile_o, first, count, lane);
#pragma unroll
            for (int n = 0; n < CHUNK / 8; n++) {
                int query = first + n * 8 + pair * 2;
                if (n / 2 * 16 < count) {
#pragma unroll
                    for (int e = 0; e < 4; e++) x[n][e] *= dx[n][e] - dot[query + (e & 1)];
                    *reinterpret_cast<unsigned*>(scores + (row + group) * STRIDE + query) = pack(x[n][0], x[n][1]);
                    *reinterpret_cast<unsigned*>(scores + (row + group + 8) * STRIDE + query) = pack(x[n][2], x[n][3]);
                }
            }
            accumulate<CHUNK>(acc_k, x, tile_q, first, count, lane);
        }
        emit(acc_k, scale, dk, k0, row, lk, h, group, pair);
        emit(acc_v, 1.f, dv, k0, row, lk, h, group, pair);
    }
    __syncthreads();
    float* sums = reinterpret_cast<float*>(smem + 2 * ROWS * PAD); // [3][WARPS][HD]; values are no longer needed
    sum_columns(acc_k, sums + (WARPS + warp) * HD, lane);
    sum_columns(acc_v, sums + (2 * WARPS + warp) * HD, lane);
    clear<HDP / 8>(acc_k);
    if (row < lq) {
        int end = causal ? min(lk, row + 16) : lk;
#pragma unroll 1
        for (int key = 0; key < end; key += 16) {
            unsigned a[4], b[4];
            ldmatrix_t(a, scores_at + 2 * ((key + (lane & 7) + (lane >> 4) * 8) * STRIDE + row + ((lane >> 3) & 1) * 8));
#pragma unroll
            for (int c = 0; c < HDP; c += 16) {
                load_bt(b, tile_k, key, c, lane);
                mma(acc_k[c / 8], a, b[0], b[1]);
                mma(acc_k[c / 8 + 1], a, b[2], b[3]);
            }
        }
        emit(acc_k, scale, dq, q0, row, lq, h, group, pair);
    }
    sum_columns(acc_k, sums + warp * HD, lane);
    __syncthreads();
    for (int i = threadIdx.x; i < 3 * HD; i += THREADS) {
        int which = i / HD, c = i % HD;
        float all = 0.f;
#pragma unroll
        for (int w = 0; w < WARPS; w++) all += sums[(which * WARPS + w) * HD + c];
        float* to = (which == 0 ? dq : which == 1 ? dk : dv).partial + line + c;
        to[0] = all;
        for (int l = 1; l < lines; l++) to[(size_t)l * heads * HD] = 0.f;
    }
}
