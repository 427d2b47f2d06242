// Sorting networks and ranks.

extern "C" __global__ void bitonic_sort(int* x) {
    extern __shared__ int s[];
    int t = threadIdx.x, n = blockDim.x;
    s[t] = x[t];
    for (int size = 2; size <= n; size <<= 1)
        for (int stride = size / 2; stride; stride >>= 1) {
            __syncthreads();
            int other = t ^ stride;
            if (other > t) {
                int a = s[t], b = s[other];
                if ((a > b) == !(t & size)) {
                    s[t] = b;
                    s[other] = a;
                }
            }
        }
    __syncthreads();
    x[t] = s[t];
}

// Four keys per thread, in registers and by shuffles, without shared memory.
extern "C" __global__ void warp_sort(float* x) {
    int lane = threadIdx.x;
    float v = x[lane];
    for (int size = 2; size <= 32; size <<= 1)
        for (int stride = size / 2; stride; stride >>= 1) {
            float other = __shfl_xor_sync(~0u, v, stride);
            bool up = !(lane & size) == !(lane & stride);
            v = up ? fminf(v, other) : fmaxf(v, other);
        }
    x[lane] = v;
}

// Radix sort from the least significant digit, one bit per pass.
extern "C" __global__ void radix_sort(unsigned* keys, unsigned short* values) {
    __shared__ unsigned k[256];
    __shared__ unsigned short p[256];
    __shared__ int zeros[8];
    int t = threadIdx.x, lane = t % 32, warp = t / 32;
    unsigned key = keys[t];
    unsigned short value = t;
    for (int bit = 0; bit < 16; ++bit) {
        bool one = key >> bit & 1;
        unsigned of_warp = __ballot_sync(~0u, !one);
        if (lane == 0) zeros[warp] = __popc(of_warp);
        __syncthreads();
        int before = 0, all = 0;
        for (int w = 0; w < 8; ++w) {
            if (w < warp) before += zeros[w];
            all += zeros[w];
        }
        before += __popc(of_warp & (1u << lane) - 1);
        int to = one ? all + t - before : before;
        k[to] = key;
        p[to] = value;
        __syncthreads();
        key = k[t];
        value = p[t];
    }
    keys[t] = key;
    values[t] = value;
}

// The position of each of a list of needles in a sorted table.
extern "C" __global__ void lower_bound(const unsigned* needles, const unsigned* steps, int* places, int n) {
    __shared__ unsigned table[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) table[i] = i * 16777216u + steps[i] % 16777216u;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int low = 0, high = 256;
    while (low < high) {
        int middle = (low + high) / 2;
        if (table[middle] < needles[i]) low = middle + 1;
        else high = middle;
    }
    places[i] = low;
}
