// Attention of short sequences, both directions, in one go: all queries, keys and values of a head lie in shared memory, 16
// rows to a warp, so that nothing is loaded or computed twice. ROWS (64, 96 or 128) is the longest side it takes; a sequence
// belongs to the kernel if its longer side is in (above, ROWS]. Longer ones are left to attention.cu and
// attention_back.cu. The backward kernel works in two phases: first each warp owns 16 keys and makes dk and dv, leaving the
// gradient of the scores in shared memory; then each owns 16 queries and makes dq from it. No two warps add to one number.
#include "head.cuh"

#define WARPS (ROWS / 16)
#define THREADS (ROWS * 2)
#define TILE_ROWS (ROWS * PAD * 2) // bytes
#define NONE __int_as_float(0xff800000)
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

__device__ __forceinline__ void clear_row(u16* to) {
    for (int c = threadIdx.x; c < HD / 2; c += THREADS) reinterpret_cast<unsigned*>(to)[c] = 0;
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
        for (int r = real_q + s; r < rows_q; r += gridDim.y) clear_row(out + ((size_t)r * heads + h) * HD);
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
#pragma unroll
    for (int n = 0; n < HDP / 8; n++) o[n][0] = o[n][1] = o[n][2] = o[n][3] = 0.f;
    arrive<1>();
    __syncthreads();
#pragma unroll 1
    for (int first = 0; first < ROWS; first += 64) {
        float x[8][4];
        int count = keys - first;
        bool busy = row < lq && count > 0;
        if (busy) {
#pragma unroll
            for (int n = 0; n < 8; n++) x[n][0] = x[n][1] = x[n][2] = x[n][3] = 0.f;
#pragma unroll
            for (int c = 0; c < HDP; c += 16) {
                unsigned a[4], b[4];
                load_a(a, tile_q, row, c, lane);
#pragma unroll
                for (int n = 0; n < 4; n++)
                    if (n * 16 < count) {
                        load_b(b, tile_k, first + n * 16, c, lane);
                        mma(x[2 * n], a, b[0], b[1]);
                        mma(x[2 * n + 1], a, b[2], b[3]);
                    }
            }
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
        if (busy) {
#pragma unroll
            for (int n = 0; n < 4; n++)
                if (n * 16 < count) {
                    unsigned a[4] = {pack(x[2 * n][0], x[2 * n][1]), pack(x[2 * n][2], x[2 * n][3]),
                                     pack(x[2 * n + 1][0], x[2 * n + 1][1]), pack(x[2 * n + 1][2], x[2 * n + 1][3])};
#pragma unroll
                    for (int c = 0; c < HDP; c += 16) {
                        unsigned b[4];
                        load_bt(b, tile_v, first + n * 16, c, lane);
                        mma(o[c / 8], a, b[0], b[1]);
                        mma(o[c / 8 + 1], a, b[2], b[3]);
                    }
                }
        }
    }
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

struct Grad {
    u16* to;
    int ld;
    float* partial; // [sequences·lines, heads·HD]
};

// x = 16 rows of tile a · `CHUNK` rows of tile b from `first`, `count` of which matter.
__device__ __forceinline__ void product(float (*x)[4], unsigned a_tile, int a_row, unsigned b_tile, int first, int count,
                                        int lane) {
#pragma unroll
    for (int n = 0; n < CHUNK / 8; n++) x[n][0] = x[n][1] = x[n][2] = x[n][3] = 0.f;
#pragma unroll
    for (int c = 0; c < HDP; c += 16) {
        unsigned a[4], b[4];
        load_a(a, a_tile, a_row, c, lane);
#pragma unroll
        for (int n = 0; n < CHUNK / 16; n++)
            if (n * 16 < count) {
                load_b(b, b_tile, first + n * 16, c, lane);
                mma(x[2 * n], a, b[0], b[1]);
                mma(x[2 * n + 1], a, b[2], b[3]);
            }
    }
}

// acc += x · rows of the tile from `first`.
__device__ __forceinline__ void accumulate(float (*acc)[4], float (*x)[4], unsigned tile, int first, int count, int lane) {
#pragma unroll
    for (int n = 0; n < CHUNK / 16; n++)
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

// Writes 16 rows and leaves their column sums (still one per thread) in the first two of each four.
__device__ __forceinline__ void emit(float (*acc)[4], float factor, Grad g, int origin, int row, int len, int h, int group,
                                     int pair) {
#pragma unroll
    for (int n = 0; n < HD / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) acc[n][e] *= factor;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int r = row + group + i * 8;
        if (r < len) {
            unsigned* to = reinterpret_cast<unsigned*>(g.to + (size_t)(origin + r) * g.ld + h * HD);
#pragma unroll
            for (int n = 0; n < HD / 8; n++) to[n * 4 + pair] = pack(acc[n][2 * i], acc[n][2 * i + 1]);
        }
    }
#pragma unroll
    for (int n = 0; n < HD / 8; n++) acc[n][0] += acc[n][2], acc[n][1] += acc[n][3];
}

// The warp's column sums into shared memory.
__device__ __forceinline__ void sum_columns(float (*acc)[4], float* to, int lane) {
#pragma unroll
    for (int n = 0; n < HD / 8; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float x = acc[n][e];
            x += __shfl_xor_sync(0xffffffffu, x, 4);
            x += __shfl_xor_sync(0xffffffffu, x, 8);
            x += __shfl_xor_sync(0xffffffffu, x, 16);
            if (lane < 4) to[n * 8 + lane * 2 + e] = x;
        }
}

__device__ __forceinline__ void clear_rows(Grad g, int real, int capacity, int h) {
    for (int r = real + blockIdx.y; r < capacity; r += gridDim.y) clear_row(g.to + (size_t)r * g.ld + h * HD);
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
        clear_rows(dq, real_q, rows_q, h);
        clear_rows(dk, real_k, rows_k, h);
        clear_rows(dv, real_k, rows_k, h);
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
    { // D = Σ dout∘out and the log-sum-exp (in log2): two threads per query
        int r = threadIdx.x >> 1;
        float sum = 0.f;
        if (r < lq) {
            const uint4* a = reinterpret_cast<const uint4*>(out + (size_t)r * ldo);
            const uint4* b = reinterpret_cast<const uint4*>(dout + (size_t)r * ldo);
#pragma unroll
            for (int c = threadIdx.x & 1; c < HD / 8; c += 2) {
                uint4 x = a[c], y = b[c];
                sum += low(x.x) * low(y.x) + high(x.x) * high(y.x) + low(x.y) * low(y.y) + high(x.y) * high(y.y);
                sum += low(x.z) * low(y.z) + high(x.z) * high(y.z) + low(x.w) * low(y.w) + high(x.w) * high(y.w);
            }
        }
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        if ((threadIdx.x & 1) == 0) {
            dot[r] = sum;
            lse2[r] = r < lq ? lse[(size_t)r * heads] * 1.44269504088896340f : 0.f;
        }
    }
    const float scale = rsqrtf((float)HD), scale2 = scale * 1.44269504088896340f;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, row = warp * 16, group = lane >> 2, pair = lane & 3;
    float acc_k[HDP / 8][4], acc_v[HDP / 8][4];
#pragma unroll
    for (int n = 0; n < HDP / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) acc_k[n][e] = acc_v[n][e] = 0.f;
    arrive<0>();
    __syncthreads();
    if (row < lk) {
#pragma unroll 1
        for (int first = causal ? row / CHUNK * CHUNK : 0; first < lq; first += CHUNK) {
            float x[CHUNK / 8][4], dx[CHUNK / 8][4];
            int count = lq - first;
            product(x, tile_k, row, tile_q, first, count, lane);
#pragma unroll
            for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    int query = first + n * 8 + pair * 2 + (e & 1), key = row + group + (e >> 1) * 8;
                    bool allowed = query < lq && key < lk && (!causal || key <= query);
                    x[n][e] = allowed ? power2(x[n][e] * scale2 - lse2[query]) : 0.f;
                }
            accumulate(acc_v, x, tile_o, first, count, lane);
            product(dx, tile_v, row, tile_o, first, count, lane);
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
            accumulate(acc_k, x, tile_q, first, count, lane);
        }
        emit(acc_k, scale, dk, k0, row, lk, h, group, pair);
        emit(acc_v, 1.f, dv, k0, row, lk, h, group, pair);
    }
    __syncthreads();
    float* sums = reinterpret_cast<float*>(smem + 2 * ROWS * PAD); // [3][WARPS][HD]; values are no longer needed
    sum_columns(acc_k, sums + (WARPS + warp) * HD, lane);
    sum_columns(acc_v, sums + (2 * WARPS + warp) * HD, lane);
#pragma unroll
    for (int n = 0; n < HDP / 8; n++) acc_k[n][0] = acc_k[n][1] = acc_k[n][2] = acc_k[n][3] = 0.f;
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
