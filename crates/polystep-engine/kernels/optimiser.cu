// Everything that runs over the flat buffers. `reduce` adds up the partial column sums of all ops by a table of jobs,
// `square` and `adam` are the two passes of clipping and Adam (and, if there is one, of the average of the weights); every block of `adam` adds up the same partial squares in
// the same order instead of waiting for one more kernel. Elements come in groups of four; the buffers are padded.
#include "common.cuh"

struct Job {
    const float* from;
    float* to;
    int count;  // rows to add up
    int stride; // of a row
    int len;
    int add; // to what `to` holds
};

// One block per 32 columns: (32, 8) threads. blocks[b] = (job, first column).
extern "C" __global__ void __launch_bounds__(256) reduce(const Job* jobs, const int2* blocks) {
    begin();
    __shared__ float shared[8][33];
    int2 b = blocks[blockIdx.x];
    Job job = jobs[b.x];
    int col = b.y + threadIdx.x;
    float sum = 0.f;
    if (col < job.len) {
        int r = threadIdx.y;
        const float* p = job.from + col;
        for (; r + 24 < job.count; r += 32) {
            float a0 = p[(size_t)r * job.stride], a1 = p[(size_t)(r + 8) * job.stride];
            float a2 = p[(size_t)(r + 16) * job.stride], a3 = p[(size_t)(r + 24) * job.stride];
            sum += (a0 + a1) + (a2 + a3);
        }
        for (; r < job.count; r += 8) sum += p[(size_t)r * job.stride];
    }
    shared[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && col < job.len) {
        float all = 0.f;
#pragma unroll
        for (int y = 0; y < 8; y++) all += shared[y][threadIdx.x];
        job.to[col] = job.add ? job.to[col] + all : all;
    }
}

__device__ __forceinline__ float block_sum(float x) {
    __shared__ float shared[8];
    x = warp_sum(x);
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = x;
    __syncthreads();
    float all = 0.f;
#pragma unroll
    for (int w = 0; w < 8; w++) all += shared[w];
    return all;
}

extern "C" __global__ void __launch_bounds__(256) square(const float4* grad, float* partial, int groups) {
    begin();
    float sum = 0.f;
    int i = blockIdx.x * 256 + threadIdx.x, step = gridDim.x * 256;
    for (; i + 3 * step < groups; i += 4 * step) {
        float4 a = grad[i], b = grad[i + step], c = grad[i + 2 * step], d = grad[i + 3 * step];
        sum += (sum4(a * a) + sum4(b * b)) + (sum4(c * c) + sum4(d * d));
    }
    for (; i < groups; i += step) sum += sum4(grad[i] * grad[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__device__ __forceinline__ float update(float p, float g, float& m, float& v, const Header* h, float beta1, float beta2,
                                        float decay) {
    m = beta1 * m + (1.f - beta1) * g;
    v = beta2 * v + (1.f - beta2) * g * g;
    p -= h->lr * decay * p;
    return p - h->lr * (m * h->correct1) / (sqrtf(v * h->correct2) + h->eps);
}

extern "C" __global__ void __launch_bounds__(256)
adam(const float4* grad, float4* param, float4* first, float4* second, uint2* copy, float4* average, const float* partial,
     int partials, const Header* head, Result* ring, int groups, float beta1, float beta2, float decay, float clip) {
    begin();
    float sum = 0.f;
    for (int i = threadIdx.x; i < partials; i += 256) sum += partial[i];
    float norm = sqrtf(block_sum(sum));
    float scale = clip > 0.f && norm > clip ? clip / (norm + 1e-6f) : 1.f;
    if (blockIdx.x == 0 && threadIdx.x == 0) ring[head->result].grad_norm = norm;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < groups; i += gridDim.x * 256) {
        float4 g = grad[i] * scale, p = param[i], m = first[i], v = second[i];
        p.x = update(p.x, g.x, m.x, v.x, head, beta1, beta2, decay);
        p.y = update(p.y, g.y, m.y, v.y, head, beta1, beta2, decay);
        p.z = update(p.z, g.z, m.z, v.z, head, beta1, beta2, decay);
        p.w = update(p.w, g.w, m.w, v.w, head, beta1, beta2, decay);
        param[i] = p;
        first[i] = m;
        second[i] = v;
        copy[i] = make_uint2(pack(p.x, p.y), pack(p.z, p.w));
        if (average) {
            float4 a = average[i];
            average[i] = a + (p + a * -1.f) * head->average;
        }
    }
}

// Parameters and their average in each other's place, with the bf16 copy of what are the parameters now.
extern "C" __global__ void __launch_bounds__(256) exchange(float4* param, float4* average, uint2* copy, int groups) {
    begin();
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= groups) return;
    float4 p = average[i];
    average[i] = param[i];
    param[i] = p;
    copy[i] = make_uint2(pack(p.x, p.y), pack(p.z, p.w));
}

// The bf16 copy after parameters were set from outside.
extern "C" __global__ void __launch_bounds__(256) copy_params(const float4* param, uint2* copy, int groups) {
    begin();
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= groups) return;
    float4 p = param[i];
    copy[i] = make_uint2(pack(p.x, p.y), pack(p.z, p.w));
}
