// Tiles loaded and stored with tensor maps, through `cuda::ptx`.
#include <cuda.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cstdint>
namespace ptx = cuda::ptx;

__device__ void wait(uint64_t* bar, uint32_t parity) {
    while (!ptx::mbarrier_try_wait_parity(bar, parity)) {}
}

// A barrier with a count of one, ready for copies.
__device__ void start(uint64_t* bar) {
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(bar, 1);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
}

__device__ void expect(uint64_t* bar, uint32_t bytes) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, bar, bytes);
}

// Makes the threads' writes to shared memory visible to stores that the first thread then issues.
__device__ void publish() {
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
}

__device__ void finish() {
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
}

// Loads and stores. The tiles at the edges are clipped.
extern "C" __global__ void tile_copy(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap y) {
    __shared__ alignas(128) float s[16][32];
    __shared__ alignas(8) uint64_t bar;
    int at[2] = {int(blockIdx.x * 32), int(blockIdx.y * 16)};
    start(&bar);
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, s, &x, at, &bar);
        expect(&bar, sizeof s);
    }
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 512; i += blockDim.x) s[i / 32][i % 32] = s[i / 32][i % 32] * 2 + 1;
    publish();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &y, at, s);
        finish();
    }
}

// The tile as it is in shared memory, with padding and fill. Loads may start before the tensor.
extern "C" __global__ void tile_dump(const __grid_constant__ CUtensorMap x, unsigned* y, int column, int row, int bytes) {
    extern __shared__ __align__(1024) unsigned s[];
    __shared__ alignas(8) uint64_t bar;
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) s[i] = 0xabababab;
    publish();
    start(&bar);
    if (threadIdx.x == 0) {
        int at[2] = {column, row};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, s, &x, at, &bar);
        expect(&bar, bytes);
    }
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) y[i] = s[i];
}

// A transpose with both tiles swizzled by 128 bytes: rows and columns are free of bank conflicts.
extern "C" __global__ void tile_transpose(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap y) {
    __shared__ alignas(1024) float in[32 * 32], out[32 * 32];
    __shared__ alignas(8) uint64_t bar;
    int from[2] = {int(blockIdx.x * 32), int(blockIdx.y * 32)}, to[2] = {from[1], from[0]};
    auto swizzled = [](int row, int col) { return row * 32 + (col / 4 ^ row % 8) * 4 + col % 4; };
    start(&bar);
    if (threadIdx.x == 0) {
        expect(&bar, sizeof in);
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, in, &x, from, &bar);
    }
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) out[swizzled(i / 32, i % 32)] = in[swizzled(i % 32, i / 32)];
    publish();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &y, to, out);
        finish();
    }
}

// All blocks add to the same tile, and take the maximum into another.
extern "C" __global__ void tile_reduce(const __grid_constant__ CUtensorMap sums, const __grid_constant__ CUtensorMap most,
                                       const int* x) {
    __shared__ alignas(128) int s[8][16];
    for (int i = threadIdx.x; i < 128; i += blockDim.x) s[i / 16][i % 16] = x[blockIdx.x * 128 + i];
    publish();
    if (threadIdx.x == 0) {
        int at[2] = {int(blockIdx.x % 2 * 8), int(blockIdx.x % 3)};
        ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_add, &sums, at, s);
        ptx::cp_reduce_async_bulk_tensor(ptx::space_global, ptx::space_shared, ptx::op_max, &most, at, s);
        finish();
    }
}

// Three dimensions in, planes summed, one dimension out; two loads on one barrier.
extern "C" __global__ void volume_sum(const __grid_constant__ CUtensorMap x, const __grid_constant__ CUtensorMap y) {
    __shared__ alignas(128) short s[2][4][4][16];
    __shared__ alignas(128) int sums[64];
    __shared__ alignas(8) uint64_t bar;
    start(&bar);
    if (threadIdx.x == 0) {
        expect(&bar, sizeof s);
        for (int half = 0; half < 2; ++half) {
            int at[3] = {16 * half - 8, int(blockIdx.x * 4), -1};
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, s[half], &x, at, &bar);
        }
    }
    wait(&bar, 0);
    int row = threadIdx.x / 16, column = threadIdx.x % 16, sum = 0;
    for (int half = 0; half < 2; ++half)
        for (int plane = 0; plane < 4; ++plane) sum = sum * 3 + s[half][plane][row][column];
    sums[threadIdx.x] = sum;
    publish();
    if (threadIdx.x == 0) {
        int at[1] = {int(blockIdx.x * 64)};
        ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &y, at, sums);
        finish();
    }
}
