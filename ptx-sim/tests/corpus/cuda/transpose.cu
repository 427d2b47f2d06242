// Transposes through shared memory.

extern "C" __global__ void transpose_padded(const float* x, float* y, int n) {
    __shared__ float s[32][33];
    int bx = blockIdx.x * 32, by = blockIdx.y * 32;
    for (int j = threadIdx.y; j < 32; j += 8) s[j][threadIdx.x] = x[(by + j) * n + bx + threadIdx.x];
    __syncthreads();
    for (int j = threadIdx.y; j < 32; j += 8) y[(bx + j) * n + by + threadIdx.x] = s[threadIdx.x][j];
}

// Without padding: columns are permuted by row, which avoids bank conflicts. Edges are clipped.
extern "C" __global__ void transpose_xor(const unsigned short* x, unsigned short* y, int rows, int cols) {
    __shared__ unsigned short s[32][32];
    int bx = blockIdx.x * 32, by = blockIdx.y * 32, t = threadIdx.x;
    for (int j = threadIdx.y; j < 32; j += blockDim.y)
        if (by + j < rows && bx + t < cols) s[j][t ^ j] = x[(by + j) * cols + bx + t];
    __syncthreads();
    for (int j = threadIdx.y; j < 32; j += blockDim.y)
        if (bx + j < cols && by + t < rows) y[(bx + j) * rows + by + t] = s[t][j ^ t];
}

// A warp's 32x32 bits, with shuffles only.
extern "C" __global__ void transpose_bits(const unsigned* x, unsigned* y) {
    int lane = threadIdx.x;
    unsigned v = x[blockIdx.x * 32 + lane], mask = 0xffff;
    for (int o = 16; o; o >>= 1, mask ^= mask << o) {
        unsigned other = __shfl_xor_sync(~0u, v, o);
        v = lane & o ? v & ~mask | other >> o & mask : v & mask | (other & mask) << o;
    }
    y[blockIdx.x * 32 + lane] = v;
}
