// Residual sum, dropout and layer norm in one pass.
// The backward kernel also sums the columns it has in its hands: of gamma's and beta's gradient, and of df, which is the
// bias gradient of the linear layer that made f. Its sums are partial (one row per block); optimiser.cu adds them up in a
// fixed order. Rows past the batch leave as exact zeros.
#include "rows.cuh"

extern "C" __global__ void __launch_bounds__(128)
addnorm(const float* x, const u16* f, const float* gamma, const float* beta, float* s, float* stat, u16* y,
        float* stream, const Header* head, int rows, Drop drop) {
    int lane = threadIdx.x & 31, row = blockIdx.x * 4 + (threadIdx.x >> 5);
    unsigned seed_lo = head->seed_lo, seed_hi = head->seed_hi;
    float4 v[GROUPS], weight[GROUPS], shift[GROUPS];
    EACH_GROUP weight[j] = load4(gamma + 4 * c), shift[j] = load4(beta + 4 * c);
    begin();
    if (row >= rows) return;
    size_t at = (size_t)row * D;
    float sum = 0.f;
    EACH_GROUP {
        v[j] = load4(x + at + 4 * c);
        if (f) {
            float4 add = load4(f + at + 4 * c);
            if (drop.scale != 0.f) add = add * keep4(drop, seed_lo, seed_hi, row, c);
            v[j] = v[j] + add;
            store4(s + at + 4 * c, v[j]);
        }
        sum += sum4(v[j]);
    }
    float rstd = centre(v, sum, stat, row, lane);
    EACH_GROUP {
        float4 out = v[j] * rstd * weight[j] + shift[j];
        store4(y + at + 4 * c, out);
        if (stream) store4(stream + at + 4 * c, out);
    }
}

extern "C" __global__ void __launch_bounds__(256)
addnorm_back(const float* s, const float* stat, const float* gamma, float* g, const u16* dy, u16* df, float* partial,
             const Header* head, int side, int rows, int post, int first, Drop drop) {
    __shared__ float shared[8][D];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, real = side < 0 ? rows : head->tokens[side];
    unsigned seed_lo = head->seed_lo, seed_hi = head->seed_hi;
    float4 dgamma[GROUPS], dbeta[GROUPS], dbias[GROUPS], weight[GROUPS];
    EACH_GROUP weight[j] = load4(gamma + 4 * c);
    begin();
#pragma unroll
    for (int j = 0; j < GROUPS; j++) dgamma[j] = dbeta[j] = dbias[j] = zero4();
    for (int row = blockIdx.x * 8 + warp; row < rows; row += gridDim.x * 8) {
        size_t at = (size_t)row * D;
        if (row >= real) {
            EACH_GROUP {
                store4(g + at + 4 * c, zero4());
                if (df) store4(df + at + 4 * c, zero4());
            }
            continue;
        }
        float2 st = *reinterpret_cast<const float2*>(stat + 2 * row);
        float4 hat[GROUPS], a[GROUPS], old[GROUPS];
        float c1 = 0.f, c2 = 0.f;
        EACH_GROUP {
            hat[j] = (load4(s + at + 4 * c) + make_float4(-st.x, -st.x, -st.x, -st.x)) * st.y;
            float4 up = load4(dy + at + 4 * c);
            old[j] = first ? zero4() : load4(g + at + 4 * c);
            if (post) up = up + old[j];
            dbeta[j] = dbeta[j] + up;
            dgamma[j] = dgamma[j] + up * hat[j];
            a[j] = up * weight[j];
            c1 += sum4(a[j]);
            c2 += sum4(a[j] * hat[j]);
        }
        c1 = warp_sum(c1) * (1.f / D);
        c2 = warp_sum(c2) * (1.f / D);
        EACH_GROUP {
            float4 ds = (a[j] + make_float4(-c1, -c1, -c1, -c1) + hat[j] * -c2) * st.y;
            if (!post) ds = ds + old[j];
            store4(g + at + 4 * c, ds);
            if (df) {
                if (drop.scale != 0.f) ds = ds * keep4(drop, seed_lo, seed_hi, row, c);
                store4(df + at + 4 * c, ds);
                dbias[j] = dbias[j] + ds;
            }
        }
    }
    float* out = partial + (size_t)blockIdx.x * 3 * D;
    block_columns(dgamma, out, shared, lane, warp);
    block_columns(dbeta, out + D, shared, lane, warp);
    if (df) block_columns(dbias, out + 2 * D, shared, lane, warp);
}
