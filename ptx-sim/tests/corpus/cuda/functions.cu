// Calls, structures as arguments, tables of constants, local memory, jump tables, `printf`.
#include <cstdio>

struct Particle {
    double3 place;
    float mass;
    short kind[3];
};

__device__ __noinline__ int greatest_divisor(int a, int b) {
    while (b) {
        int r = a % b;
        a = b;
        b = r;
    }
    return a;
}

__device__ __noinline__ Particle moved(Particle p, double by, int kind) {
    p.place.x += by * p.mass;
    p.place.z -= by;
    p.kind[kind % 3] += kind;
    return p;
}

__device__ __noinline__ void split(long long v, int* low, int* high) {
    *low = v;
    *high = v >> 32;
}

extern "C" __global__ void calls(Particle p, const int* x, double* y, int* z) {
    int t = threadIdx.x;
    for (int k = 0; k <= t % 3; ++k) p = moved(p, 0.25 * x[t], k + 1);
    y[3 * t] = p.place.x, y[3 * t + 1] = p.place.y, y[3 * t + 2] = p.place.z;
    int low, high;
    split((long long)x[t] * 1000003, &low, &high);
    z[4 * t] = low, z[4 * t + 1] = high, z[4 * t + 2] = p.kind[1] << 16 | p.kind[0] & 0xffff;
    z[4 * t + 3] = greatest_divisor(abs(x[t]), 5040);
}

struct Entry {
    unsigned short key;
    unsigned long long value;
};
__constant__ Entry TABLE[] = {{3, 1ull << 40}, {1, 17}, {4, ~0ull}, {1, 5}, {5, 99999999999}};
__constant__ const char TEXT[] = "constant memory";
__device__ int counter = 40;
__device__ int* pointer = &counter;

extern "C" __global__ void constants(unsigned long long* y, unsigned char* text) {
    int t = threadIdx.x;
    y[t] = TABLE[t % 5].value * TABLE[(t + 1) % 5].key;
    if (t < sizeof(TEXT)) text[t] = TEXT[t];
    int before = atomicAdd(pointer, 2);
    __syncthreads();
    if (before == 40) y[blockDim.x] = counter;
}

// Arrays with run-time indices, which go to local memory.
extern "C" __global__ void local_arrays(const unsigned char* x, unsigned* y) {
    unsigned counts[16] = {};
    short order[32];
    for (int i = 0; i < 32; ++i) {
        unsigned char v = x[threadIdx.x * 32 + i];
        counts[v % 16] += v;
        order[i] = v;
    }
    for (int i = 1; i < 32; ++i)
        for (int j = i; j > 0 && order[j - 1] > order[j]; --j) {
            short a = order[j];
            order[j] = order[j - 1];
            order[j - 1] = a;
        }
    unsigned sum = 0;
    for (int i = 0; i < 16; ++i) sum = sum * 31 + counts[(i * 5 + threadIdx.x) % 16];
    for (int i = 0; i < 32; ++i) sum = sum * 33 + order[i];
    y[threadIdx.x] = sum;
}

extern "C" __global__ void jumps(const unsigned* x, int* y) {
    int v = threadIdx.x;
    for (int i = 0; i < 12; ++i) switch (x[threadIdx.x * 12 + i] % 9) {
        case 0: v += 3; break;
        case 1: v *= 5; break;
        case 2: v ^= 0x55; break;
        case 3: v = -v; // falls through
        case 4: v <<= 1; break;
        case 5: v = __brev(v); break;
        case 6: continue;
        case 7: v -= i; break;
        default: v = v / 3 + 1;
        }
    y[threadIdx.x] = v;
}

// One dynamic allocation that holds arrays of different types.
extern "C" __global__ void dynamic_shared(const float* x, double* sums, int n) {
    extern __shared__ __align__(16) unsigned char memory[];
    double* totals = (double*)memory;
    float* values = (float*)(totals + blockDim.x);
    unsigned char* flags = (unsigned char*)(values + n);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        values[i] = x[i];
        flags[i] = x[i] > 0;
    }
    __syncthreads();
    double total = 0;
    for (int i = 0; i < n; ++i)
        if (flags[(i + threadIdx.x) % n]) total += values[i] * (threadIdx.x + 1);
    totals[threadIdx.x] = total;
    __syncthreads();
    sums[threadIdx.x] = totals[threadIdx.x] - totals[threadIdx.x ^ 1];
}

extern "C" __global__ void prints(const int* x) {
    int v = x[threadIdx.x];
    if (threadIdx.x == 0) printf("%d threads, %s %c %5.2f|%-6d|%06x|%llu%%\n", blockDim.x, "text", 'c', v * 0.5, v, v, 1ull << 40);
    __syncwarp();
    for (int lane = 0; lane < 4; ++lane) {
        if (threadIdx.x == lane) printf("lane %d: %+d %u %e %g\n", lane, v, (unsigned)v, v / 3.0, v * 1e-7);
        __syncwarp();
    }
}

__device__ __noinline__ int sum_of(const int* from, int step, int count) {
    int sum = 0;
    for (int i = 0; i < count; ++i) sum = sum * 3 + from[i * step];
    return sum;
}

// One function reads global, shared, local and constant memory through generic addresses.
__constant__ int SQUARES[8] = {0, 1, 4, 9, 16, 25, 36, 49};
extern "C" __global__ void generic(const int* x, int* y) {
    __shared__ int shared[64];
    int local[8], t = threadIdx.x;
    for (int i = 0; i < 8; ++i) local[(i * 3 + t) % 8] = x[(t + i) % 64] ^ i;
    shared[t] = x[63 - t];
    __syncthreads();
    const int* places[4] = {x, shared, local, SQUARES};
    const int* from = places[x[t] & 3];
    y[2 * t] = sum_of(from, 1, 8);
    y[2 * t + 1] = sum_of(from + 1, 2, 3) + (__isGlobal(from) ? 1 : 0) + (__isShared(from) ? 2 : 0) + (__isLocal(from) ? 4 : 0);
}
