// Philox4x32-10, word for word src/philox.rs: the CPU and the GPU must draw the same dropout masks, so a change here
// without the same change there breaks the comparison of the two devices. Counter (column / 4, row, site, 0).
#pragma once

__device__ __forceinline__ uint4 philox(uint4 c, unsigned k0, unsigned k1) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        unsigned a_hi = __umulhi(0xD2511F53u, c.x), a_lo = 0xD2511F53u * c.x;
        unsigned b_hi = __umulhi(0xCD9E8D57u, c.z), b_lo = 0xCD9E8D57u * c.z;
        c = make_uint4(b_hi ^ c.y ^ k0, b_lo, a_hi ^ c.w ^ k1, a_lo);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

// Where an op drops: nothing if scale is 0.
struct Drop {
    unsigned site;
    unsigned limit; // words below are dropped
    float scale;    // 1 / (1 - p)
};

// The factors of columns 4c … 4c+3 of a row.
__device__ __forceinline__ float4 keep4(Drop d, unsigned lo, unsigned hi, int row, int c) {
    uint4 w = philox(make_uint4(c, row, d.site, 0), lo, hi);
    return make_float4(w.x >= d.limit ? d.scale : 0.f, w.y >= d.limit ? d.scale : 0.f,
                       w.z >= d.limit ? d.scale : 0.f, w.w >= d.limit ? d.scale : 0.f);
}
