// Softmax cross-entropy, one warp per row of V logits. The gradient overwrites the logits (rows past the batch become
// zeros). Sums over rows are left to one block of loss_sum, in a fixed order, so that the loss is the same bit for bit in
// every run. Arg-max takes the first index on ties. Logits and their gradient are bf16, or fp32 if WIDE is defined.
#include "common.cuh"

#ifdef WIDE
typedef float logit;
__device__ __forceinline__ float get(float x) { return x; }
__device__ __forceinline__ float put(float x) { return x; }
#else
typedef u16 logit;
__device__ __forceinline__ float get(u16 x) { return wide(x); }
__device__ __forceinline__ u16 put(float x) { return narrow(x); }
#endif

#define PER ((V + 31) / 32)

extern "C" __global__ void __launch_bounds__(128)
loss_rows(logit* logits, const int* labels, float* row_loss, int* row_right, const Header* head, int rows, int backward) {
    begin();
    int lane = threadIdx.x & 31, row = blockIdx.x * 4 + (threadIdx.x >> 5);
    if (row >= rows) return;
    logit* at = logits + (size_t)row * V;
    if (row >= head->tokens[1]) {
        if (backward)
            for (int c = lane; c < V; c += 32) at[c] = 0;
        return;
    }
    float x[PER], best = -INFINITE;
    int arg = V;
#pragma unroll
    for (int j = 0; j < PER; j++) {
        int c = lane + 32 * j;
        x[j] = c < V ? get(at[c]) : -INFINITE;
        if (x[j] > best) best = x[j], arg = c;
    }
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
        float other = __shfl_xor_sync(0xffffffffu, best, o);
        int other_arg = __shfl_xor_sync(0xffffffffu, arg, o);
        if (other > best || (other == best && other_arg < arg)) best = other, arg = other_arg;
    }
    int label = labels[row];
    float sum = 0.f, own = 0.f;
#pragma unroll
    for (int j = 0; j < PER; j++) {
        if (lane + 32 * j == label) own = x[j];
        x[j] = expf(x[j] - best);
        sum += x[j];
    }
    sum = warp_sum(sum);
    own = warp_sum(own);
    if (lane == 0) {
        row_loss[row] = logf(sum) + best - own;
        row_right[row] = arg == label;
    }
    if (backward) {
        float inverse = 1.f / sum, per_token = head->per_token;
#pragma unroll
        for (int j = 0; j < PER; j++) {
            int c = lane + 32 * j;
            if (c < V) at[c] = put((x[j] * inverse - (c == label ? 1.f : 0.f)) * per_token);
        }
    }
}

// One block of 1024 threads: a warp per sequence, then the sums.
extern "C" __global__ void __launch_bounds__(1024)
loss_sum(const float* row_loss, const int* row_right, const int* cu, int* right, Result* ring, const Header* head) {
    begin();
    __shared__ float losses[32];
    __shared__ unsigned tokens[32], whole[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, rows = head->tokens[1];
    unsigned right_tokens = 0, right_sequences = 0;
    for (int s = warp; s < head->sequences; s += 32) {
        int wrong = 0;
        for (int r = cu[s] + lane; r < cu[s + 1]; r += 32) {
            wrong |= !row_right[r];
            right_tokens += row_right[r];
        }
        bool all = !__any_sync(0xffffffffu, wrong);
        right_sequences += all;
        if (lane == 0) right[s] = all;
    }
    float sum = 0.f;
    for (int r = threadIdx.x; r < rows; r += 1024) sum += row_loss[r];
    sum = warp_sum(sum);
#pragma unroll
    for (int o = 16; o > 0; o >>= 1) right_tokens += __shfl_xor_sync(0xffffffffu, right_tokens, o);
    if (lane == 0) losses[warp] = sum, tokens[warp] = right_tokens, whole[warp] = right_sequences;
    __syncthreads();
    if (warp == 0) {
        float loss = warp_sum(losses[lane]);
        unsigned t = tokens[lane], w = whole[lane];
#pragma unroll
        for (int o = 16; o > 0; o >>= 1) t += __shfl_xor_sync(0xffffffffu, t, o), w += __shfl_xor_sync(0xffffffffu, w, o);
        if (lane == 0) {
            Result* out = ring + head->result;
            out->loss = loss * head->per_token;
            out->grad_norm = 0.f;
            out->right_tokens = t;
            out->right_sequences = w;
        }
    }
}
