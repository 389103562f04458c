// Decoding: one token per lane. Cached keys and values never move: row position·lanes + l was written by lane l of that
// step, and lineage[p·lanes + l] names the lane at position p from which the present lane l descends. Two tables take
// turns, by the parity of the position, because a graph's pointers are fixed. HD columns per head, one warp per (lane, head).
#include "common.cuh"

#define CHUNK 64
#define GROUP (HD / 8)        // threads that share one key, eight columns each
#define KEYS (32 / GROUP)     // keys that a warp takes at once
#define OWN ((HD + 31) / 32)  // columns of the output that a thread owns

extern "C" __global__ void __launch_bounds__(256)
lineage(const int* parents, int* even, int* odd, const Header* head, int lanes) {
    begin();
    int position = head->position, lane = blockIdx.x * 256 + threadIdx.x;
    if (position == 0 || lane >= head->sequences) return;
    const int* from = position & 1 ? even : odd;
    int* to = position & 1 ? odd : even;
    int parent = parents[lane];
    for (int p = blockIdx.y; p < position; p += gridDim.y)
        to[(size_t)p * lanes + lane] = p == position - 1 ? parent : from[(size_t)p * lanes + parent];
}

struct Keys {
    const u16 *k, *v;
    int ldk, ldv;
    const int* line; // rows by lineage, or in a row from `first`
    int first, lanes, lane, count;
    __device__ size_t row(int i) const {
        if (!line) return first + i;
        return (size_t)i * lanes + (i == count - 1 ? lane : line[(size_t)i * lanes + lane]);
    }
};

// Softmax attention of one query over `keys`, in chunks with a running maximum; `scores` is this warp's own.
__device__ void attend(const u16* q, const Keys& keys, u16* out, float* scores, int thread) {
    float query[8], acc[OWN], best = -INFINITE, total = 0.f;
    int part = thread % GROUP;
#pragma unroll
    for (int c = 0; c < 8; c += 4) {
        float4 x = load4(q + part * 8 + c);
        query[c] = x.x, query[c + 1] = x.y, query[c + 2] = x.z, query[c + 3] = x.w;
    }
#pragma unroll
    for (int c = 0; c < OWN; c++) acc[c] = 0.f;
    for (int begin = 0; begin < keys.count; begin += CHUNK) {
        int n = min(CHUNK, keys.count - begin);
        float top = -INFINITE;
        for (int i = thread / GROUP; i < CHUNK; i += KEYS) {
            float dot = 0.f;
            if (i < n) {
                const u16* k = keys.k + keys.row(begin + i) * keys.ldk + part * 8;
                float4 a = load4(k), b = load4(k + 4);
                dot = (query[0] * a.x + query[1] * a.y) + (query[2] * a.z + query[3] * a.w) +
                      (query[4] * b.x + query[5] * b.y) + (query[6] * b.z + query[7] * b.w);
            }
#pragma unroll
            for (int o = GROUP / 2; o > 0; o >>= 1) dot += __shfl_xor_sync(0xffffffffu, dot, o);
            dot = i < n ? dot * rsqrtf((float)HD) : -INFINITE;
            if (part == 0) scores[i] = dot;
            top = fmaxf(top, dot);
        }
        top = fmaxf(warp_max(top), best);
        float shrink = expf(best - top), sum = 0.f;
        best = top;
        __syncwarp();
        for (int i = thread; i < n; i += 32) {
            float w = expf(scores[i] - top);
            scores[i] = w;
            sum += w;
        }
        total = total * shrink + warp_sum(sum);
        __syncwarp();
#pragma unroll
        for (int c = 0; c < OWN; c++) acc[c] *= shrink;
        for (int i = 0; i < n; i++) {
            const u16* v = keys.v + keys.row(begin + i) * keys.ldv;
#pragma unroll
            for (int c = 0; c < OWN; c++)
                if (HD % 32 == 0 || thread + 32 * c < HD) acc[c] += scores[i] * wide(v[thread + 32 * c]);
        }
        __syncwarp();
    }
#pragma unroll
    for (int c = 0; c < OWN; c++)
        if (HD % 32 == 0 || thread + 32 * c < HD) out[thread + 32 * c] = narrow(acc[c] / total);
}

// grid (lanes, heads / 4), four warps.
extern "C" __global__ void __launch_bounds__(128)
cached_attention(const u16* qkv, u16* cache, u16* out, const int* even, const int* odd, const Header* head, int lanes,
                 int heads) {
    begin();
    __shared__ float scores[4][CHUNK];
    int lane = blockIdx.x, warp = threadIdx.x >> 5, thread = threadIdx.x & 31, h = blockIdx.y * 4 + warp;
    if (h >= heads || lane >= head->sequences) return;
    int d = heads * HD, position = head->position;
    const u16* own = qkv + (size_t)lane * 3 * d + h * HD;
    u16* at = cache + ((size_t)position * lanes + lane) * 2 * d + h * HD;
    for (int c = thread; c < HD; c += 32) {
        at[c] = own[d + c];
        at[d + c] = own[2 * d + c];
    }
    __syncwarp(); // the warp reads back what it wrote
    Keys keys = {cache + h * HD, cache + d + h * HD, 2 * d, 2 * d, position & 1 ? odd : even, 0, lanes, lane, position + 1};
    attend(own, keys, out + (size_t)lane * d + h * HD, scores[warp], thread);
}

extern "C" __global__ void __launch_bounds__(128)
source_attention(const u16* q, const u16* k, const u16* v, int ldk, int ldv, u16* out, const int* cu, const int* sources,
               const Header* head, int heads) {
    begin();
    __shared__ float scores[4][CHUNK];
    int lane = blockIdx.x, warp = threadIdx.x >> 5, thread = threadIdx.x & 31, h = blockIdx.y * 4 + warp;
    if (h >= heads || lane >= head->sequences) return;
    int d = heads * HD, source = sources[lane], first = cu[source];
    Keys keys = {k + h * HD, v + h * HD, ldk, ldv, 0, first, 0, 0, cu[source + 1] - first};
    attend(q + (size_t)lane * d + h * HD, keys, out + (size_t)lane * d + h * HD, scores[warp], thread);
}
