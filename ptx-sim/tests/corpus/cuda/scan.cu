// Prefix sums of a block.

// Hillis and Steele: two buffers, alternately.
extern "C" __global__ void scan(const int* x, int* y) {
    __shared__ int s[2][256];
    int t = threadIdx.x, p = 0;
    s[0][t] = x[t];
    __syncthreads();
    for (int o = 1; o < 256; o <<= 1) {
        s[1 - p][t] = t >= o ? s[p][t] + s[p][t - o] : s[p][t];
        p = 1 - p;
        __syncthreads();
    }
    y[t] = s[p][t];
}

// Blelloch: up and down a tree in place, exclusive.
extern "C" __global__ void tree_scan(const unsigned* x, unsigned* y) {
    __shared__ unsigned s[512 + 16];
    auto at = [](int i) { return i + i / 32; };
    int t = threadIdx.x;
    s[at(t)] = x[t];
    s[at(t + 256)] = x[t + 256];
    int stride = 1;
    for (int width = 256; width; width >>= 1, stride <<= 1) {
        __syncthreads();
        if (t < width) s[at(stride * (2 * t + 2) - 1)] += s[at(stride * (2 * t + 1) - 1)];
    }
    if (t == 0) s[at(511)] = 0;
    for (int width = 1; width <= 256; width <<= 1) {
        stride >>= 1;
        __syncthreads();
        if (t >= width) continue;
        int a = at(stride * (2 * t + 1) - 1), b = at(stride * (2 * t + 2) - 1);
        unsigned left = s[a];
        s[a] = s[b];
        s[b] += left;
    }
    __syncthreads();
    y[t] = s[at(t)];
    y[t + 256] = s[at(t + 256)];
}

// Shuffles within warps, then over the totals of the warps: inclusive and exclusive.
extern "C" __global__ void warp_scan(const int* x, int* inclusive, int* exclusive) {
    __shared__ int totals[32];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    int own = x[t], v = own;
    for (int o = 1; o < 32; o <<= 1) {
        int before = __shfl_up_sync(~0u, v, o);
        if (lane >= o) v += before;
    }
    if (lane == 31) totals[warp] = v;
    __syncthreads();
    if (warp == 0) {
        int total = lane < blockDim.x / 32 ? totals[lane] : 0;
        for (int o = 1; o < 32; o <<= 1) {
            int before = __shfl_up_sync(~0u, total, o);
            if (lane >= o) total += before;
        }
        totals[lane] = total;
    }
    __syncthreads();
    if (warp > 0) v += totals[warp - 1];
    inclusive[t] = v;
    exclusive[t] = v - own;
}

// Sums that restart wherever a flag is set.
extern "C" __global__ void segmented_scan(const float* x, const unsigned char* starts, float* y) {
    int lane = threadIdx.x;
    float v = x[lane];
    bool start = starts[lane] % 4 == 0;
    for (int o = 1; o < 32; o <<= 1) {
        float before = __shfl_up_sync(~0u, v, o);
        bool started = __shfl_up_sync(~0u, start, o);
        if (lane >= o && !start) {
            v += before;
            start = started;
        }
    }
    y[lane] = v;
}
