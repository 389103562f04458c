// Matrix products with what follows them fused in, for few rows: there cuBLASLt loses more between its kernels than inside
// them. A block makes a 64×64 tile of the result, four warps 32×32 each. NEXT says what happens to it (0 a bias, if any; 1
// bias and activation, both kept; 2 the activation's slope, and column sums); FLIP = 0 multiplies by Wᵀ (W is [n, k]), 1
// by W ([k, n]). Sizes are multiples of 64: no bounds. The weights are fetched before the kernel waits for its
// predecessor: nothing inside a step writes them before its end.
#include "mma.cuh"
#include "activation.cuh"

#define BM 64
#define BN 64
#define BK 64
#define WM 32
#define WN 32
#define STAGES 4
#define WARPS_N (BN / WN)
#define THREADS (BM / WM * WARPS_N * 32)
#define LDA (BK + 8)
#define LDB (FLIP ? BN + 8 : BK + 8)
#define A_BYTES (BM * LDA * 2)
#define B_BYTES ((FLIP ? BK : BN) * LDB * 2)
#define LDC (BN + 8)

// Each thread copies the same chunk of every few rows.
#define A_STEP (THREADS / (BK / 8))
#define B_CHUNKS ((FLIP ? BN : BK) / 8)
#define B_STEP (THREADS / B_CHUNKS)

__device__ __forceinline__ void fetch_a(unsigned tile, const u16* a, int lda) {
#pragma unroll
    for (int u = 0; u < BM / A_STEP; u++) copy16(tile + 2 * u * A_STEP * LDA, a + (size_t)u * A_STEP * lda, true);
}
__device__ __forceinline__ void fetch_b(unsigned tile, const u16* b, int ldb) {
#pragma unroll
    for (int u = 0; u < (FLIP ? BK : BN) / B_STEP; u++) copy16(tile + 2 * u * B_STEP * LDB, b + (size_t)u * B_STEP * ldb, true);
}

// Grid (n / BN, m / BM). y gets the product; with NEXT 1 also `kept`, the value before the activation; with NEXT 2 `kept` is
// read, and `partial` gets one row of column sums per row of blocks, up to `lines` of them.
extern "C" __global__ void __launch_bounds__(THREADS)
product(const u16* x, int ldx, const u16* w, int ldw, const u16* bias, u16* y, int ldy, u16* kept, float* partial, int k,
        int gelu, int lines) {
    extern __shared__ __align__(16) u16 smem[];
    int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    int wm = warp / WARPS_N * WM, wn = warp % WARPS_N * WN, steps = k / BK;
    unsigned tiles_a = address(smem), tiles_b = tiles_a + STAGES * A_BYTES;
    // Where this thread copies from and to.
    int row_a = threadIdx.x / (BK / 8), chunk_a = threadIdx.x % (BK / 8);
    int row_b = threadIdx.x / B_CHUNKS, chunk_b = threadIdx.x % B_CHUNKS;
    x += (size_t)(m0 + row_a) * ldx + chunk_a * 8;
    w += FLIP ? (size_t)row_b * ldw + n0 + chunk_b * 8 : (size_t)(n0 + row_b) * ldw + chunk_b * 8;
    size_t next_b = FLIP ? (size_t)BK * ldw : BK;
    unsigned to_a = tiles_a + 2 * (row_a * LDA + chunk_a * 8), to_b = tiles_b + 2 * (row_b * LDB + chunk_b * 8);
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++)
        if (s < steps) fetch_b(to_b + s * B_BYTES, w + s * next_b, ldw);
    begin();
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) fetch_a(to_a + s * A_BYTES, x + s * BK, ldx);
        commit();
    }
    x += (STAGES - 1) * BK;
    w += (STAGES - 1) * next_b;
    // Where this lane's rows of the operands lie in the first stage.
    unsigned at_a = tiles_a + 2 * ((wm + (lane & 15)) * LDA + (lane >> 4) * 8);
    unsigned at_b = tiles_b + 2 * (FLIP ? (lane & 15) * LDB + wn + (lane >> 4) * 8
                                        : (wn + (lane & 7) + (lane >> 4) * 8) * LDB + ((lane >> 3) & 1) * 8);
    int stage = 0, fill = STAGES - 1;
    float acc[WM / 16][WN / 8][4];
#pragma unroll
    for (int i = 0; i < WM / 16; i++)
#pragma unroll
        for (int j = 0; j < WN / 8; j++) acc[i][j][0] = acc[i][j][1] = acc[i][j][2] = acc[i][j][3] = 0.f;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        arrive<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < steps) {
            fetch_a(to_a + fill * A_BYTES, x, ldx);
            fetch_b(to_b + fill * B_BYTES, w, ldw);
            x += BK;
            w += next_b;
        }
        commit();
        unsigned a_now = at_a + stage * A_BYTES, b_now = at_b + stage * B_BYTES;
        fill = stage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
#pragma unroll
        for (int c = 0; c < BK; c += 16) {
            unsigned a[WM / 16][4], b[WN / 16][4];
#pragma unroll
            for (int i = 0; i < WM / 16; i++) ldmatrix(a[i], a_now + 2 * (i * 16 * LDA + c));
#pragma unroll
            for (int j = 0; j < WN / 16; j++) {
                if (FLIP) ldmatrix_t(b[j], b_now + 2 * (c * LDB + j * 16));
                else ldmatrix(b[j], b_now + 2 * (j * 16 * LDB + c));
            }
#pragma unroll
            for (int i = 0; i < WM / 16; i++)
#pragma unroll
                for (int j = 0; j < WN / 16; j++) {
                    mma(acc[i][2 * j], a[i], b[j][0], b[j][1]);
                    mma(acc[i][2 * j + 1], a[i], b[j][2], b[j][3]);
                }
        }
    }
    arrive<0>();
    __syncthreads();
    // The tile goes through shared memory, so that global memory sees whole rows.
    u16* tile = smem;
#pragma unroll
    for (int j = 0; j < WN / 8; j++) {
        int col = wn + j * 8 + (lane & 3) * 2;
        float b0 = 0.f, b1 = 0.f;
        if (NEXT < 2 && bias) {
            unsigned both = *reinterpret_cast<const unsigned*>(bias + n0 + col);
            b0 = low(both), b1 = high(both);
        }
#pragma unroll
        for (int i = 0; i < WM / 16; i++) {
            int row = wm + i * 16 + (lane >> 2);
            *reinterpret_cast<unsigned*>(tile + row * LDC + col) = pack(acc[i][j][0] + b0, acc[i][j][1] + b1);
            *reinterpret_cast<unsigned*>(tile + (row + 8) * LDC + col) = pack(acc[i][j][2] + b0, acc[i][j][3] + b1);
        }
    }
    __syncthreads();
    constexpr int chunks = BN / 8;
    int chunk = threadIdx.x % chunks;
    float sums[8];
#pragma unroll
    for (int e = 0; e < 8; e++) sums[e] = 0.f;
    constexpr int per = BM / (THREADS / chunks);
    uint4 before[NEXT == 2 ? per : 1];
    if (NEXT == 2) {
#pragma unroll
        for (int u = 0; u < per; u++) {
            int row = threadIdx.x / chunks + u * (THREADS / chunks);
            before[u] = *reinterpret_cast<const uint4*>(kept + (size_t)(m0 + row) * ldy + n0 + chunk * 8);
        }
    }
#pragma unroll
    for (int u = 0; u < per; u++) {
        int row = threadIdx.x / chunks + u * (THREADS / chunks);
        uint4 v = *reinterpret_cast<const uint4*>(tile + row * LDC + chunk * 8);
        size_t at = (size_t)(m0 + row) * ldy + n0 + chunk * 8;
        if (NEXT == 1) {
            *reinterpret_cast<uint4*>(kept + at) = v;
            v = make_uint4(activate2(v.x, gelu), activate2(v.y, gelu), activate2(v.z, gelu), activate2(v.w, gelu));
        } else if (NEXT == 2) {
            v.x = slope2(v.x, before[u].x, gelu, sums), v.y = slope2(v.y, before[u].y, gelu, sums + 2);
            v.z = slope2(v.z, before[u].z, gelu, sums + 4), v.w = slope2(v.w, before[u].w, gelu, sums + 6);
        }
        *reinterpret_cast<uint4*>(y + at) = v;
    }
    if (NEXT == 2) {
        __syncthreads();
        float* shared = reinterpret_cast<float*>(smem);
        constexpr int groups = THREADS / chunks;
#pragma unroll
        for (int e = 0; e < 8; e++) shared[threadIdx.x / chunks * (BN + 1) + chunk * 8 + e] = sums[e];
        __syncthreads();
        int n = gridDim.x * BN;
        for (int c = threadIdx.x; c < BN; c += THREADS) {
            float all = 0.f;
#pragma unroll
            for (int g = 0; g < groups; g++) all += shared[g * (BN + 1) + c];
            partial[(size_t)blockIdx.y * n + n0 + c] = all;
            if (blockIdx.y == 0)
                for (int line = gridDim.y; line < lines; line++) partial[(size_t)line * n + n0 + c] = 0.f;
        }
    }
}
