// The best next tokens: log-softmax of one row of V logits per warp, then the largest, k times over. Ties go to the smaller
// token.
#include "common.cuh"

#define PER ((V + 31) / 32)

extern "C" __global__ void __launch_bounds__(128)
top_tokens(const float* logits, int* tokens, float* logprobs, const Header* head, int k) {
    begin();
    int lane = threadIdx.x & 31, row = blockIdx.x * 4 + (threadIdx.x >> 5);
    if (row >= head->tokens[1]) return;
    float x[PER], best = -INFINITE, sum = 0.f;
#pragma unroll
    for (int j = 0; j < PER; j++) {
        int c = lane + 32 * j;
        x[j] = c < V ? logits[(size_t)row * V + c] : -INFINITE;
        best = fmaxf(best, x[j]);
    }
    best = warp_max(best);
#pragma unroll
    for (int j = 0; j < PER; j++) sum += expf(x[j] - best);
    float norm = best + logf(warp_sum(sum));
    for (int i = 0; i < k; i++) {
        float top = -INFINITE;
        int arg = V;
#pragma unroll
        for (int j = 0; j < PER; j++)
            if (x[j] > top) top = x[j], arg = lane + 32 * j;
#pragma unroll
        for (int o = 16; o > 0; o >>= 1) {
            float other = __shfl_xor_sync(0xffffffffu, top, o);
            int other_arg = __shfl_xor_sync(0xffffffffu, arg, o);
            if (other > top || (other == top && other_arg < arg)) top = other, arg = other_arg;
        }
#pragma unroll
        for (int j = 0; j < PER; j++)
            if (lane + 32 * j == arg) x[j] = -INFINITE;
        if (lane == 0) {
            tokens[(size_t)row * k + i] = arg;
            logprobs[(size_t)row * k + i] = top - norm;
        }
    }
}
