// Tiles of one attention head in shared memory. Rows have PAD = HDP + 8 elements: the 16 bytes of padding spread the rows
// of one ldmatrix over all banks for every head width that is a multiple of 8.
#pragma once
#include "mma.cuh"

#define HDP ((HD + 15) / 16 * 16)
#define PAD (HDP + 8)
#define TILE 64
#define TILE_BYTES (TILE * PAD * 2)

// Rows `row…row+15`, columns `col…col+15` of a tile as the left operand. Tiles are named by their shared-memory address.
__device__ __forceinline__ void load_a(unsigned* r, unsigned tile, int row, int col, int lane) {
    ldmatrix(r, tile + 2 * ((row + (lane & 15)) * PAD + col + (lane >> 4) * 8));
}
// The right operand of X·tileᵀ: 16 rows of the tile are 16 columns of the product; r[0..1] the first eight, r[2..3] the rest.
__device__ __forceinline__ void load_b(unsigned* r, unsigned tile, int row, int col, int lane) {
    ldmatrix(r, tile + 2 * ((row + (lane & 7) + (lane >> 4) * 8) * PAD + col + ((lane >> 3) & 1) * 8));
}
// The right operand of X·tile: columns `col…col+15` of the tile, summed over its rows `row…row+15`.
__device__ __forceinline__ void load_bt(unsigned* r, unsigned tile, int row, int col, int lane) {
    ldmatrix_t(r, tile + 2 * ((row + (lane & 15)) * PAD + col + (lane >> 4) * 8));
}

// Starts copying a tile of ROWS rows by THREADS threads: `valid` rows from memory, zeros up to `end`; columns from HD on
// become zeros.
template <int ROWS_, int THREADS_>
__device__ __forceinline__ void fetch_tile(unsigned tile, const u16* from, int ld, int valid, int end) {
    constexpr int chunks = HDP / 8;
#pragma unroll
    for (int u = 0; u < (ROWS_ * chunks + THREADS_ - 1) / THREADS_; u++) {
        int i = threadIdx.x + u * THREADS_, row = i / chunks, chunk = i % chunks;
        bool in = row < valid && chunk < HD / 8;
        if (row < end) copy16(tile + 2 * (row * PAD + chunk * 8), in ? from + (size_t)row * ld + chunk * 8 : from, in);
    }
}
