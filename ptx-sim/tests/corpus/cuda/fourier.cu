// Transforms of 64 complex numbers: butterflies through shared memory, and a table of roots.
__constant__ float ROOTS[32][2] = {
    {1, 0}, {0.9951847f, -0.09801714f}, {0.9807853f, -0.1950903f}, {0.9569403f, -0.2902847f},
    {0.9238795f, -0.3826834f}, {0.8819213f, -0.4713967f}, {0.8314696f, -0.5555702f}, {0.7730105f, -0.6343933f},
    {0.7071068f, -0.7071068f}, {0.6343933f, -0.7730105f}, {0.5555702f, -0.8314696f}, {0.4713967f, -0.8819213f},
    {0.3826834f, -0.9238795f}, {0.2902847f, -0.9569403f}, {0.1950903f, -0.9807853f}, {0.09801714f, -0.9951847f},
    {0, -1}, {-0.09801714f, -0.9951847f}, {-0.1950903f, -0.9807853f}, {-0.2902847f, -0.9569403f},
    {-0.3826834f, -0.9238795f}, {-0.4713967f, -0.8819213f}, {-0.5555702f, -0.8314696f}, {-0.6343933f, -0.7730105f},
    {-0.7071068f, -0.7071068f}, {-0.7730105f, -0.6343933f}, {-0.8314696f, -0.5555702f}, {-0.8819213f, -0.4713967f},
    {-0.9238795f, -0.3826834f}, {-0.9569403f, -0.2902847f}, {-0.9807853f, -0.1950903f}, {-0.9951847f, -0.09801714f}};

extern "C" __global__ void fft64(const float2* x, float2* y) {
    __shared__ float2 s[64];
    int t = threadIdx.x;
    const float2* of_block = x + blockIdx.x * 64;
    s[__brev(t) >> 26] = of_block[t];
    s[__brev(t + 32) >> 26] = of_block[t + 32];
    for (int half = 1; half < 64; half <<= 1) {
        __syncwarp();
        int k = t % half, a = t / half * 2 * half + k;
        float wr = ROOTS[k * (32 / half)][0], wi = ROOTS[k * (32 / half)][1];
        float2 u = s[a], v = s[a + half];
        // Explicit rounding: without it, PTX allows a product and a sum to be fused or not.
        float2 w = {fmaf(v.x, wr, -__fmul_rn(v.y, wi)), fmaf(v.x, wi, __fmul_rn(v.y, wr))};
        s[a] = {u.x + w.x, u.y + w.y};
        s[a + half] = {u.x - w.x, u.y - w.y};
    }
    __syncwarp();
    y[blockIdx.x * 64 + t] = s[t];
    y[blockIdx.x * 64 + t + 32] = s[t + 32];
}
