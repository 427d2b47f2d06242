// Bulk copies and reductions without a tensor map, through `cuda::ptx`.
#include <cuda/barrier>
#include <cuda/ptx>
#include <cstdint>
namespace ptx = cuda::ptx;

__device__ void wait(uint64_t* bar, uint32_t parity) {
    while (!ptx::mbarrier_try_wait_parity(bar, parity)) {}
}

// Copy in, change in place, copy out.
extern "C" __global__ void bulk_scale(const float* x, float* y, float by) {
    constexpr int N = 512;
    __shared__ alignas(16) float s[N];
    __shared__ alignas(8) uint64_t bar;
    bool leader = threadIdx.x == 0;
    if (leader) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    if (leader) {
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s, x + blockIdx.x * N, sizeof s, &bar);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof s);
    }
    wait(&bar, 0);
    for (int i = threadIdx.x; i < N; i += blockDim.x) s[i] = s[i] * by + i;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (leader) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, y + blockIdx.x * N, s, sizeof s);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}

// A ring of stages with full and empty barriers: one warp loads, the others sum.
extern "C" __global__ void bulk_ring(const int* x, int* y, int tiles) {
    constexpr int STAGES = 3, N = 128;
    __shared__ alignas(16) int s[STAGES][N];
    __shared__ alignas(8) uint64_t full[STAGES], empty[STAGES];
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            ptx::mbarrier_init(&full[i], 1);
            ptx::mbarrier_init(&empty[i], N);
        }
        ptx::fence_proxy_async(ptx::space_shared);
    }
    __syncthreads();
    if (threadIdx.x >= N) {
        if (threadIdx.x != N) return;
        for (int k = 0; k < tiles; ++k) {
            int stage = k % STAGES;
            if (k >= STAGES) wait(&empty[stage], (k / STAGES - 1) & 1);
            ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &full[stage], sizeof s[0]);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, s[stage], x + k * N, sizeof s[0], &full[stage]);
        }
    } else {
        int sum = 0;
        for (int k = 0; k < tiles; ++k) {
            int stage = k % STAGES;
            wait(&full[stage], k / STAGES & 1);
            sum = sum * 3 + s[stage][(threadIdx.x + k) % N];
            ptx::mbarrier_arrive(&empty[stage]);
        }
        y[threadIdx.x] = sum;
    }
}

// Adds shared memory to global memory, and compares it with global memory.
extern "C" __global__ void bulk_reduce(const int* x, int* sums, int* least, unsigned* ors) {
    constexpr int N = 64;
    __shared__ alignas(16) int s[N];
    s[threadIdx.x] = x[blockIdx.x * N + threadIdx.x];
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, sums, s, sizeof s);
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_min, least, s, sizeof s);
        ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_or_op, ors, (unsigned*)s, sizeof s);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}
