// Matrix products with what follows them fused in, for few rows: there cuBLASLt loses more between its kernels than inside
// them. A block of four warps makes a 64×64 tile of the result. NEXT says what happens to it (0 a bias, if any; 1 bias and
// activation, both kept; 2 the activation's slope, and column sums; 3 it is a weight gradient, in fp32). FLIP = 0 multiplies
// x by Wᵀ (W is [n, k]), 1 by W ([k, n]), 2 xᵀ by W (x is [k, m]). Sizes are multiples of 64: no bounds. Weights are fetched
// before the kernel waits for its predecessor: nothing inside a step writes them before its end.
//
// Both operands lie in shared memory as 64 rows of 128 bytes, the 16-byte chunks of row r in the order c ^ (r & 7): the
// layout that Hopper's warpgroup products read, and free of bank conflicts for ldmatrix, which does without them.
#include "mma.cuh"
#include "activation.cuh"

#define SIDE 64
#define THREADS 128
#define TILE_BYTES (SIDE * 128)
#define LONG 256
#define LDC (SIDE + 8)
#define CHUNKS (SIDE / 8)
#define ROW_STEP (THREADS / CHUNKS) // rows between the chunks that one thread copies

// Starts copying a tile; `from` and `to` are this thread's first chunk.
__device__ __forceinline__ void fetch(unsigned to, const u16* from, int ld) {
#pragma unroll
    for (int u = 0; u < SIDE / ROW_STEP; u++) copy16(to + u * ROW_STEP * 128, from + (size_t)u * ROW_STEP * ld, true);
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// A tile for the tensor core: its address, 1024 bytes between groups of eight rows, 128-byte swizzle.
__device__ __forceinline__ unsigned long long matrix(unsigned at) {
    return (unsigned long long)((at & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

// Eight of a tile's 32 numbers per thread, as operands of an instruction that changes them.
#define EIGHT(d) \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])

__device__ __forceinline__ void multiply16(float* d, unsigned long long a, unsigned long long b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,"
        "%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, %34, %35;"
        : EIGHT(d), EIGHT((d + 8)), EIGHT((d + 16)), EIGHT((d + 24))
        : "l"(a), "l"(b), "n"(FLIP == 2), "n"(FLIP > 0));
}

// Starts acc += the product of two tiles. Warp w has rows 16w…16w+15, all columns, as mma.sync lays them out.
__device__ __forceinline__ void multiply(float* acc, unsigned a, unsigned b) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    unsigned long long at_a = matrix(a), at_b = matrix(b);
#pragma unroll
    for (int c = 0; c < 4; c++) multiply16(acc, at_a + (FLIP == 2 ? 128 : 2) * c, at_b + (FLIP ? 128 : 2) * c);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits for the products started so far: the accumulators are what they say, the tiles may be overwritten.
__device__ __forceinline__ void settle(float* d) {
    asm volatile("wgmma.wait_group.sync.aligned 0;"
        : EIGHT(d), EIGHT((d + 8)), EIGHT((d + 16)), EIGHT((d + 24))
        :: "memory");
}
// Copies that have arrived become visible to the tensor core.
__device__ __forceinline__ void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#else
__device__ __forceinline__ unsigned chunk_at(unsigned tile, int row, int chunk) {
    return tile + row * 128 + ((chunk ^ (row & 7)) << 4);
}

__device__ __forceinline__ void multiply(float* acc, unsigned a_tile, unsigned b_tile) {
    int lane = threadIdx.x & 31, row = (threadIdx.x >> 5) * 16;
#pragma unroll
    for (int c = 0; c < SIDE; c += 16) {
        unsigned a[4];
        if (FLIP == 2) ldmatrix_t(a, chunk_at(a_tile, c + (lane & 7) + (lane >> 4) * 8, row / 8 + ((lane >> 3) & 1)));
        else ldmatrix(a, chunk_at(a_tile, row + (lane & 15), c / 8 + (lane >> 4)));
#pragma unroll
        for (int j = 0; j < SIDE; j += 16) {
            unsigned b[4];
            if (FLIP) ldmatrix_t(b, chunk_at(b_tile, c + (lane & 15), j / 8 + (lane >> 4)));
            else ldmatrix(b, chunk_at(b_tile, j + (lane & 7) + (lane >> 4) * 8, c / 8 + ((lane >> 3) & 1)));
            mma(acc + j / 2, a, b[0], b[1]);
            mma(acc + j / 2 + 4, a, b[2], b[3]);
        }
    }
}
__device__ __forceinline__ void settle(float*) {}
__device__ __forceinline__ void publish() {}
#endif

// acc = x·W over all of k, STAGES tiles of each at a time; waits for the kernel's predecessor. `meanwhile` runs when the first
// tiles are on their way.
template <int STAGES, class Meanwhile>
__device__ __forceinline__ void product_of(float* acc, unsigned tiles, const u16* x, int ldx, const u16* w, int ldw, int steps,
                                           Meanwhile meanwhile) {
    unsigned tiles_b = tiles + STAGES * TILE_BYTES;
    int row = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    unsigned own = row * 128 + ((chunk ^ (row & 7)) << 4);
    x += (size_t)row * ldx + chunk * 8;
    w += (size_t)row * ldw + chunk * 8;
    size_t next_x = FLIP == 2 ? (size_t)SIDE * ldx : SIDE, next_w = FLIP ? (size_t)SIDE * ldw : SIDE;
    if (NEXT == 3) begin(); // no weights here
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++)
        if (s < steps) fetch(tiles_b + own + s * TILE_BYTES, w + s * next_w, ldw);
    if (NEXT < 3) begin();
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < steps) fetch(tiles + own + s * TILE_BYTES, x + s * next_x, ldx);
        commit();
    }
    meanwhile();
    x += (STAGES - 1) * next_x;
    w += (STAGES - 1) * next_w;
    int stage = 0, fill = STAGES - 1;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        arrive<STAGES - 2>();
        settle(acc); // the step before: its tiles are the ones filled next
        publish();
        __syncthreads();
        multiply(acc, tiles + stage * TILE_BYTES, tiles_b + stage * TILE_BYTES);
        if (step + STAGES - 1 < steps) {
            fetch(tiles + own + fill * TILE_BYTES, x, ldx);
            fetch(tiles_b + own + fill * TILE_BYTES, w, ldw);
            x += next_x;
            w += next_w;
        }
        commit();
        fill = stage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    settle(acc);
    arrive<0>();
}

// Grid (n / SIDE, m / SIDE). y gets the product; with NEXT 1 also `kept`, the value before the activation; with NEXT 2 `kept`
// is read, and `partial` gets one row of column sums per row of blocks. `option`: whether the activation is GELU (else ReLU).
// Long sums have more tiles on their way.
extern "C" __global__ void __launch_bounds__(THREADS)
product(const u16* x, int ldx, const u16* w, int ldw, const u16* bias, u16* y, int ldy, u16* kept, float* partial, int k,
        int option) {
    extern __shared__ __align__(1024) u16 smem[];
    int m0 = blockIdx.y * SIDE, n0 = blockIdx.x * SIDE, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    x += FLIP == 2 ? (size_t)m0 : (size_t)m0 * ldx;
    w += FLIP ? (size_t)n0 : (size_t)n0 * ldw;
    float acc[SIDE / 2];
#pragma unroll
    for (int i = 0; i < SIDE / 2; i++) acc[i] = 0.f;
    int chunk = threadIdx.x % CHUNKS;
    constexpr int per = SIDE / ROW_STEP;
    unsigned add[NEXT < 2 ? SIDE / 8 : 1];
    uint4 before[NEXT == 2 ? per : 1];
    auto meanwhile = [&] {
        if (NEXT < 2)
#pragma unroll
            for (int j = 0; j < SIDE / 8; j++)
                add[j] = bias ? *reinterpret_cast<const unsigned*>(bias + n0 + j * 8 + (lane & 3) * 2) : 0;
        if (NEXT == 2)
#pragma unroll
            for (int u = 0; u < per; u++) {
                int row = threadIdx.x / CHUNKS + u * ROW_STEP;
                before[u] = *reinterpret_cast<const uint4*>(kept + (size_t)(m0 + row) * ldy + n0 + chunk * 8);
            }
    };
    if (k > LONG) product_of<6>(acc, address(smem), x, ldx, w, ldw, k / SIDE, meanwhile);
    else product_of<4>(acc, address(smem), x, ldx, w, ldw, k / SIDE, meanwhile);
    if (NEXT == 3) {
#pragma unroll
        for (int i = 0; i < SIDE / 4; i++) {
            int row = warp * 16 + (lane >> 2) + (i & 1) * 8, col = i / 2 * 8 + (lane & 3) * 2;
            float2* to = reinterpret_cast<float2*>(y) + ((size_t)(m0 + row) * ldy + n0 + col) / 2;
            *to = make_float2(acc[2 * i], acc[2 * i + 1]);
        }
        return;
    }
    __syncthreads();
    // The tile goes through shared memory, so that global memory sees whole rows.
    u16* tile = smem;
#pragma unroll
    for (int j = 0; j < SIDE / 8; j++) {
        int row = warp * 16 + (lane >> 2), col = j * 8 + (lane & 3) * 2;
        float b0 = NEXT < 2 ? low(add[NEXT < 2 ? j : 0]) : 0.f, b1 = NEXT < 2 ? high(add[NEXT < 2 ? j : 0]) : 0.f;
        *reinterpret_cast<unsigned*>(tile + row * LDC + col) = pack(acc[4 * j] + b0, acc[4 * j + 1] + b1);
        *reinterpret_cast<unsigned*>(tile + (row + 8) * LDC + col) = pack(acc[4 * j + 2] + b0, acc[4 * j + 3] + b1);
    }
    __syncthreads();
    float sums[8];
#pragma unroll
    for (int e = 0; e < 8; e++) sums[e] = 0.f;
#pragma unroll
    for (int u = 0; u < per; u++) {
        int row = threadIdx.x / CHUNKS + u * ROW_STEP;
        uint4 v = *reinterpret_cast<const uint4*>(tile + row * LDC + chunk * 8);
        size_t at = (size_t)(m0 + row) * ldy + n0 + chunk * 8;
        if (NEXT == 1) {
            *reinterpret_cast<uint4*>(kept + at) = v;
            v = make_uint4(activate2(v.x, option), activate2(v.y, option), activate2(v.z, option), activate2(v.w, option));
        } else if (NEXT == 2) {
            v.x = slope2(v.x, before[u].x, option, sums), v.y = slope2(v.y, before[u].y, option, sums + 2);
            v.z = slope2(v.z, before[u].z, option, sums + 4), v.w = slope2(v.w, before[u].w, option, sums + 6);
        }
        *reinterpret_cast<uint4*>(y + at) = v;
    }
    if (NEXT == 2) {
        __syncthreads();
        float* shared = reinterpret_cast<float*>(smem);
        constexpr int groups = THREADS / CHUNKS;
#pragma unroll
        for (int e = 0; e < 8; e++) shared[threadIdx.x / CHUNKS * (SIDE + 1) + chunk * 8 + e] = sums[e];
        __syncthreads();
        int n = gridDim.x * SIDE;
        for (int c = threadIdx.x; c < SIDE; c += THREADS) {
            float all = 0.f;
#pragma unroll
            for (int g = 0; g < groups; g++) all += shared[g * (SIDE + 1) + c];
            partial[(size_t)blockIdx.y * n + n0 + c] = all;
        }
    }
}
