// Tensor-core building blocks: 16×8×16 bf16 products with fp32 sums, their operands loaded from shared memory.
// A tile in shared memory has rows of PAD = HDP + 8 elements: the 16 bytes of padding spread the rows of one ldmatrix
// over all banks for every head width that is a multiple of 8.
#pragma once
#include "common.cuh"

#define HDP ((HD + 15) / 16 * 16)
#define PAD (HDP + 8)
#define TILE 64
#define TILE_ELEMS (TILE * PAD)

__device__ __forceinline__ unsigned address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void ldmatrix(unsigned* r, const u16* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address(p)));
}
__device__ __forceinline__ void ldmatrix_t(unsigned* r, const u16* p) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address(p)));
}
__device__ __forceinline__ void mma(float* c, const unsigned* a, unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Rows `row…row+15`, columns `col…col+15` of a tile as the left operand.
__device__ __forceinline__ void load_a(unsigned* r, const u16* tile, int row, int col, int lane) {
    ldmatrix(r, tile + (row + (lane & 15)) * PAD + col + (lane >> 4) * 8);
}
// The right operand of X·tileᵀ: 16 rows of the tile are 16 columns of the product; r[0..1] the first eight, r[2..3] the rest.
__device__ __forceinline__ void load_b(unsigned* r, const u16* tile, int row, int col, int lane) {
    ldmatrix(r, tile + (row + (lane & 7) + (lane >> 4) * 8) * PAD + col + ((lane >> 3) & 1) * 8);
}
// The right operand of X·tile: columns `col…col+15` of the tile, summed over its rows `row…row+15`.
__device__ __forceinline__ void load_bt(unsigned* r, const u16* tile, int row, int col, int lane) {
    ldmatrix_t(r, tile + (row + (lane & 15)) * PAD + col + (lane >> 4) * 8);
}

// Starts copying a tile of 64 rows; rows from `valid` on and columns from HD on become zeros. 128 threads.
__device__ __forceinline__ void fetch(u16* tile, const u16* from, int ld, int valid) {
#pragma unroll
    for (int i = threadIdx.x; i < TILE * (HDP / 8); i += 128) {
        int row = i / (HDP / 8), chunk = i % (HDP / 8);
        bool in = row < valid && chunk < HD / 8;
        const u16* src = in ? from + (size_t)row * ld + chunk * 8 : from;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(tile + row * PAD + chunk * 8)), "l"(src),
                     "r"(in ? 16 : 0));
    }
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;"); }
template <int N> __device__ __forceinline__ void arrive() { asm volatile("cp.async.wait_group %0;" ::"n"(N)); }
