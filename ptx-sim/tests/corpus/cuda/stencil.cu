// Neighbours, with a halo in shared memory.

__constant__ float WEIGHTS[9] = {0.015625f, -0.0625f, 0.125f, 0.25f, 0.5f, 0.25f, 0.125f, -0.0625f, 0.015625f};

extern "C" __global__ void stencil_1d(const float* x, float* y, int n) {
    constexpr int R = 4;
    __shared__ float s[128 + 2 * R];
    int i = blockIdx.x * 128 + threadIdx.x, at = threadIdx.x + R;
    auto clamped = [&](int j) { return x[min(max(j, 0), n - 1)]; };
    s[at] = clamped(i);
    if (threadIdx.x < R) {
        s[at - R] = clamped(i - R);
        s[at + 128] = clamped(i + 128);
    }
    __syncthreads();
    float sum = 0;
    #pragma unroll
    for (int k = -R; k <= R; ++k) sum += WEIGHTS[k + R] * s[at + k];
    if (i < n) y[i] = sum;
}

extern "C" __global__ void stencil_2d(const float* x, float* y, int width, int height) {
    __shared__ float s[10][34];
    int cx = blockIdx.x * 32 - 1, cy = blockIdx.y * 8 - 1;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 340; i += 256) {
        int gx = cx + i % 34, gy = cy + i / 34;
        s[i / 34][i % 34] = gx >= 0 && gx < width && gy >= 0 && gy < height ? x[gy * width + gx] : 0.0f;
    }
    __syncthreads();
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1, gx = cx + tx, gy = cy + ty;
    if (gx < width && gy < height)
        y[gy * width + gx] = 0.25f * (s[ty][tx - 1] + s[ty][tx + 1] + s[ty - 1][tx] + s[ty + 1][tx]) - s[ty][tx];
}

// Conway's game of life on a torus: several generations without leaving the block.
extern "C" __global__ void life(unsigned char* cells, int generations) {
    __shared__ unsigned char s[2][32][32];
    int x = threadIdx.x, y = threadIdx.y, p = 0;
    s[0][y][x] = cells[y * 32 + x] & 1;
    __syncthreads();
    for (int g = 0; g < generations; ++g, p ^= 1) {
        int around = 0;
        for (int dy = 31; dy <= 33; ++dy)
            for (int dx = 31; dx <= 33; ++dx)
                if (dx != 32 || dy != 32) around += s[p][(y + dy) % 32][(x + dx) % 32];
        s[p ^ 1][y][x] = around == 3 || (around == 2 && s[p][y][x]);
        __syncthreads();
    }
    cells[y * 32 + x] = s[p][y][x];
}
