// Histograms, compare-and-swap loops, a lock, and each atomic operation once.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda/atomic>

extern "C" __global__ void histogram_shared(const unsigned char* x, unsigned* bins, int n) {
    __shared__ unsigned b[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) b[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&b[x[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], b[i]);
}

extern "C" __global__ void histogram_global(const unsigned* x, unsigned long long* bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[x[i] >> 26], 1ull);
}

// Lanes with the same bin elect one of them to add.
extern "C" __global__ void histogram_matched(const unsigned* x, int* bins) {
    unsigned bin = x[blockIdx.x * blockDim.x + threadIdx.x] % 17;
    unsigned peers = __match_any_sync(~0u, bin);
    if (__ffs(peers) - 1 == threadIdx.x % 32) atomicAdd(&bins[bin], __popc(peers));
}

extern "C" __global__ void float_max(const float* x, float* most, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned* at = (unsigned*)most;
    unsigned seen = *at;
    while (__uint_as_float(seen) < x[i]) {
        unsigned found = atomicCAS(at, seen, __float_as_uint(x[i]));
        if (found == seen) break;
        seen = found;
    }
}

// There is no atomic product of doubles. Powers of two are exact in every order.
extern "C" __global__ void double_product(const int* x, double* product) {
    unsigned long long* at = (unsigned long long*)product;
    unsigned long long seen = *at, found;
    do {
        found = seen;
        seen = atomicCAS(at, found, __double_as_longlong(__longlong_as_double(found) * scalbn(1.0, x[threadIdx.x])));
    } while (seen != found);
}

// Lanes of one warp take the same lock. This ends only if lanes are scheduled independently.
extern "C" __global__ void spin_lock(int* lock, volatile int* counter, int rounds) {
    for (int k = 0; k < rounds; ++k) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        *counter = *counter + 3;
        __threadfence();
        atomicExch(lock, 0);
    }
}

extern "C" __global__ void each_atomic(const int* x, int* i, unsigned* u, unsigned long long* l, float* f, double* d,
                                       __half2* h) {
    int v = x[threadIdx.x];
    atomicAdd(&i[0], v);
    atomicSub(&i[1], v);
    atomicMin(&i[2], v);
    atomicMax(&i[3], v);
    atomicXor(&i[4], v);
    atomicAdd(&u[0], v);
    atomicMin(&u[1], v);
    atomicMax(&u[2], v);
    atomicAnd(&u[3], v | 0xff);
    atomicOr(&u[4], v & 0xff00);
    atomicInc(&u[5], 100);
    atomicDec(&u[6], 77);
    atomicAdd(&l[0], (unsigned long long)v);
    atomicMin(&l[1], (unsigned long long)v);
    atomicMax((long long*)&l[2], (long long)v);
    atomicAnd(&l[3], ~0ull << (v & 31));
    atomicOr(&l[4], 1ull << (v & 63));
    atomicXor(&l[5], 1ull << (v & 63));
    // Integers that a float, a double and a half represent exactly, in every order of additions.
    atomicAdd(&f[0], float(v & 255));
    atomicAdd(&d[0], double(v));
    atomicAdd(h, __halves2half2(__float2half(float(v & 1)), __float2half(float(v & 7))));
}

// libcu++: orders and scopes. The second block waits for the release by the first one.
extern "C" __global__ void message(int* data, int* flag, int* out) {
    cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
    if (blockIdx.x == 0) {
        data[threadIdx.x] = 7 * threadIdx.x + 1;
        __syncthreads();
        if (threadIdx.x == 0) ready.store(1, cuda::memory_order_release);
    } else {
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        out[threadIdx.x] = data[threadIdx.x ^ 1];
        cuda::atomic_ref<int, cuda::thread_scope_block> count(out[blockDim.x]);
        count.fetch_add(threadIdx.x, cuda::memory_order_relaxed);
    }
}

// In shared memory, including narrow types.
extern "C" __global__ void shared_atomics(const int* x, unsigned long long* wide, float* f, unsigned short* s) {
    __shared__ unsigned long long l[3];
    __shared__ float total;
    __shared__ double sum;
    __shared__ __half h;
    __shared__ __nv_bfloat16 b;
    __shared__ unsigned short narrow;
    int t = threadIdx.x, v = x[t];
    if (t == 0) l[0] = l[1] = 0, l[2] = ~0ull, total = 0, sum = 0, h = __float2half(0), b = __float2bfloat16(0), narrow = 1;
    __syncthreads();
    atomicAdd(&l[0], (unsigned long long)v << 20);
    atomicMax(&l[1], (unsigned long long)(unsigned)v << 7);
    atomicMin(&l[2], (unsigned long long)(unsigned)v << 9);
    atomicAdd(&total, float(v & 1023));
    atomicAdd(&sum, double(v) * 0.5);
    atomicAdd(&h, __float2half(float(v & 3)));
    atomicAdd(&b, __float2bfloat16(float(v >> 4 & 1)));
    unsigned short seen = *(volatile unsigned short*)&narrow, found;
    while ((found = atomicCAS(&narrow, seen, (unsigned short)(seen * 3))) != seen) seen = found;
    __syncthreads();
    if (t < 3) wide[t] = l[t];
    if (t == 3) f[0] = total, f[1] = sum, f[2] = __half2float(h), f[3] = __bfloat162float(b);
    if (t == 4) s[0] = narrow;
}
