// Token and position embedding with its layer norm, and the gradient of all three tables. No atomics: the token table is
// summed in shared memory, each thread owning a column, over a chunk of tokens per block; the position table by one
// block per position. Lookups read the fp32 master weights, not the bf16 copy. V tokens, D columns.
#include "rows.cuh"

extern "C" __global__ void __launch_bounds__(128)
embed(const int* ids, const int* pos, const float* token, const float* position, const float* gamma, const float* beta,
      float* stat, float* out, u16* out_act, const Header* head, int rows, float scale, Drop drop) {
    begin();
    int lane = threadIdx.x & 31, row = blockIdx.x * 4 + (threadIdx.x >> 5);
    if (row >= rows) return;
    size_t at = (size_t)row * D, t = (size_t)ids[row] * D, p = (size_t)(pos[row] + 2) * D;
    float4 v[GROUPS];
    float sum = 0.f;
    EACH_GROUP {
        v[j] = load4(token + t + 4 * c) * scale + load4(position + p + 4 * c);
        sum += sum4(v[j]);
    }
    float rstd = centre(v, sum, stat, row, lane);
    EACH_GROUP {
        float4 y = v[j] * rstd * load4(gamma + 4 * c) + load4(beta + 4 * c);
        if (drop.scale != 0.f) y = y * keep4(drop, head->seed_lo, head->seed_hi, row, c);
        store4(out + at + 4 * c, y);
        if (out_act) store4(out_act + at + 4 * c, y);
    }
}

// The gradient of each row before the norm, kept in fp32 for the two kernels below; partial sums for gamma and beta.
extern "C" __global__ void __launch_bounds__(256)
embed_back(const int* ids, const int* pos, const float* token, const float* position, const float* gamma,
           const float* stat, const float* g, const u16* dy, float* rows_out, float* partial, const Header* head, int side,
           float scale, Drop drop) {
    begin();
    __shared__ float shared[8][D];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, real = head->tokens[side];
    float4 dgamma[GROUPS], dbeta[GROUPS];
#pragma unroll
    for (int j = 0; j < GROUPS; j++) dgamma[j] = dbeta[j] = zero4();
    for (int row = blockIdx.x * 8 + warp; row < real; row += gridDim.x * 8) {
        size_t at = (size_t)row * D, t = (size_t)ids[row] * D, p = (size_t)(pos[row] + 2) * D;
        float2 st = *reinterpret_cast<const float2*>(stat + 2 * row);
        float4 hat[GROUPS], a[GROUPS];
        float c1 = 0.f, c2 = 0.f;
        EACH_GROUP {
            float4 e = load4(token + t + 4 * c) * scale + load4(position + p + 4 * c);
            hat[j] = (e + make_float4(-st.x, -st.x, -st.x, -st.x)) * st.y;
            float4 up = load4(g + at + 4 * c);
            if (dy) up = up + load4(dy + at + 4 * c);
            if (drop.scale != 0.f) up = up * keep4(drop, head->seed_lo, head->seed_hi, row, c);
            dbeta[j] = dbeta[j] + up;
            dgamma[j] = dgamma[j] + up * hat[j];
            a[j] = up * load4(gamma + 4 * c);
            c1 += sum4(a[j]);
            c2 += sum4(a[j] * hat[j]);
        }
        c1 = warp_sum(c1) * (1.f / D);
        c2 = warp_sum(c2) * (1.f / D);
        EACH_GROUP store4(rows_out + at + 4 * c, (a[j] + make_float4(-c1, -c1, -c1, -c1) + hat[j] * -c2) * st.y);
    }
    float* out = partial + (size_t)blockIdx.x * 2 * D;
#pragma unroll
    for (int q = 0; q < 2; q++) block_columns(q ? dbeta : dgamma, out + q * D, shared, lane, warp);
}

// grid (chunks, D / blockDim); dynamic shared memory V·blockDim floats; one partial token table per chunk.
extern "C" __global__ void embed_back_token(const int* ids, const float* rows_in, float* partial, const Header* head,
                                            int side, float scale) {
    begin();
    extern __shared__ float acc[];
    int col = blockIdx.y * blockDim.x + threadIdx.x, width = blockDim.x, real = head->tokens[side];
    int chunk = (real + gridDim.x - 1) / gridDim.x;
    int row = blockIdx.x * chunk, end = min(real, row + chunk);
    for (int v = 0; v < V; v++) acc[v * width + threadIdx.x] = 0.f;
    if (col < D) {
        for (; row + 8 <= end; row += 8) {
            float x[8];
            int id[8];
#pragma unroll
            for (int k = 0; k < 8; k++) {
                x[k] = rows_in[(size_t)(row + k) * D + col];
                id[k] = ids[row + k];
            }
#pragma unroll
            for (int k = 0; k < 8; k++) acc[id[k] * width + threadIdx.x] += x[k];
        }
        for (; row < end; row++) acc[ids[row] * width + threadIdx.x] += rows_in[(size_t)row * D + col];
        float* out = partial + (size_t)blockIdx.x * V * D;
        for (int v = 0; v < V; v++) out[(size_t)v * D + col] = acc[v * width + threadIdx.x] * scale;
    }
}

// One block per row of the table: blockDim (64, 4), threads y take every fourth sequence. Rows 0 and 1 are never read.
extern "C" __global__ void __launch_bounds__(256)
embed_back_position(const int* cu, const float* rows_in, float* grad, const Header* head) {
    begin();
    __shared__ float4 shared[4][64];
    int p = (int)blockIdx.x - 2, sequences = p < 0 ? 0 : head->sequences;
    for (int c = threadIdx.x; c < (D / 4 + 63) / 64 * 64; c += 64) {
        float4 sum = zero4();
        if (c < D / 4) {
            for (int s = threadIdx.y; s < sequences; s += 16) {
                float4 x[4];
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    int seq = s + 4 * k;
                    bool in = seq < sequences && cu[seq] + p < cu[seq + 1];
                    x[k] = in ? load4(rows_in + (size_t)(cu[seq] + p) * D + 4 * c) : zero4();
                }
#pragma unroll
                for (int k = 0; k < 4; k++) sum = sum + x[k];
            }
        }
        shared[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && c < D / 4) {
            float4 all = (shared[0][threadIdx.x] + shared[1][threadIdx.x]) + (shared[2][threadIdx.x] + shared[3][threadIdx.x]);
            store4(grad + (size_t)blockIdx.x * D + 4 * c, all);
        }
        __syncthreads();
    }
}
