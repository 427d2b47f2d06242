// Matrix and matrix-vector products.

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float as[16][16], bs[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int at = 0; at < k; at += 16) {
        as[y][x] = row < m && at + x < k ? a[row * k + at + x] : 0;
        bs[y][x] = at + y < k && col < n ? b[(at + y) * n + col] : 0;
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < 16; ++i) sum = fmaf(as[y][i], bs[i][x], sum);
        __syncthreads();
    }
    if (row < m && col < n) c[row * n + col] = sum;
}

// Four by four results per thread, in registers; vectors of four from shared memory.
extern "C" __global__ void matmul_blocked(const float4* a, const float4* b, float4* c, int k) {
    __shared__ __align__(16) float as[8][64], bs[8][64];
    float sums[4][4] = {};
    int t = threadIdx.x, tx = t % 16, ty = t / 16;
    for (int at = 0; at < k; at += 8) {
        if (t < 128) {
            // `a` is k by 64, like `b`.
            ((float4*)as)[t] = a[at * 16 + t];
            ((float4*)bs)[t] = b[at * 16 + t];
        }
        __syncthreads();
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            float4 u = *(float4*)&as[i][4 * ty], v = *(float4*)&bs[i][4 * tx];
            float us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
            #pragma unroll
            for (int r = 0; r < 4; ++r)
                #pragma unroll
                for (int s = 0; s < 4; ++s) sums[r][s] = fmaf(us[r], vs[s], sums[r][s]);
        }
        __syncthreads();
    }
    #pragma unroll
    for (int r = 0; r < 4; ++r)
        c[(4 * ty + r) * 16 + tx] = make_float4(sums[r][0], sums[r][1], sums[r][2], sums[r][3]);
}

// One warp per row.
extern "C" __global__ void matvec(const double* a, const double* x, double* y, int cols) {
    int lane = threadIdx.x % 32, row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    double sum = 0;
    for (int i = lane; i < cols; i += 32) sum = fma(a[row * cols + i], x[i], sum);
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (lane == 0) y[row] = sum;
}

// Bytes, with four products per instruction.
extern "C" __global__ void matvec_bytes(const int* a, const int* x, int* y, int words) {
    int row = threadIdx.x, sum = 0;
    unsigned mixed = 0;
    for (int i = 0; i < words; ++i) {
        sum = __dp4a(a[row * words + i], x[i], sum);
        mixed = __dp4a((unsigned)a[row * words + i], (unsigned)x[i], mixed);
    }
    y[2 * row] = sum;
    y[2 * row + 1] = __dp2a_lo(a[row * words], x[0], (int)mixed) + __dp2a_hi(a[row * words], x[1], 5);
}

// 8x8 matrices between shared memory and registers, plain and transposed.
extern "C" __global__ void matrices(const uint4* x, uint4* y) {
    __shared__ uint4 from[32], to[3][32];
    int t = threadIdx.x;
    from[t] = x[t];
    for (int i = 0; i < 3; ++i) to[i][t] = make_uint4(t, i, 0, 0);
    __syncthreads();
    unsigned here = __cvta_generic_to_shared(&from[t]), a, b, c, d, e, f, g;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(here));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(e), "=r"(f) : "r"(here));
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared::cta.b16 {%0}, [%1];" : "=r"(g) : "r"(here));
    unsigned first = __cvta_generic_to_shared(&to[0][t]), second = __cvta_generic_to_shared(&to[1][t]);
    unsigned third = __cvta_generic_to_shared(&to[2][t]);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(first), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(second), "r"(e), "r"(f) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(third), "r"(g) : "memory");
    __syncthreads();
    for (int i = 0; i < 3; ++i) y[32 * i + t] = to[i][t];
    y[96 + t] = make_uint4(a ^ b, c - d, e + f, g);
}
