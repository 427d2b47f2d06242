// Clusters: blocks that use each other's shared memory.
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda/barrier>
#include <cuda/ptx>
#include <cstdint>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;

__device__ void wait(uint64_t* bar, uint32_t parity) {
    while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, bar, parity)) {}
}

// Each block has a part of the bins. Atomics go to the block that has the bin.
extern "C" __global__ void __cluster_dims__(4) cluster_histogram(const unsigned char* x, unsigned* bins, int n) {
    __shared__ unsigned own[64];
    auto cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < 64; i += blockDim.x) own[i] = 0;
    cluster.sync();
    int begin = cluster.block_rank() * blockDim.x + threadIdx.x;
    for (int i = begin; i < n; i += 4 * blockDim.x) {
        unsigned* there = cluster.map_shared_rank(own, x[blockIdx.x / 4 * n + i] / 64);
        atomicAdd(&there[x[blockIdx.x / 4 * n + i] % 64], 1u);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < 64; i += blockDim.x) bins[blockIdx.x * 64 + i] = own[i];
}

// Reads the neighbours' edges.
extern "C" __global__ void __cluster_dims__(2, 2) cluster_halo(const float* x, float* y) {
    __shared__ float s[64];
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank(), blocks = cluster.num_blocks(), t = threadIdx.x;
    int place = (blockIdx.y * gridDim.x + blockIdx.x) * 64 + t;
    s[t] = x[place];
    cluster.sync();
    float left = t ? s[t - 1] : cluster.map_shared_rank(s, (rank + blocks - 1) % blocks)[63];
    float right = t < 63 ? s[t + 1] : *cluster.map_shared_rank(&s[0], (rank + 1) % blocks);
    cluster.sync();
    y[place] = left + 2 * s[t] + right;
}

// Every block writes a part of every other one.
extern "C" __global__ void __cluster_dims__(8) cluster_exchange(const int* x, int* y) {
    __shared__ int s[64];
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank(), t = threadIdx.x;
    cluster.sync();
    cluster.map_shared_rank(s, t / 8)[rank * 8 + t % 8] = x[blockIdx.x * 64 + t];
    cluster.sync();
    y[blockIdx.x * 64 + t] = s[t];
}

// Arrival and wait separately; a tree of sums over the blocks.
extern "C" __global__ void cluster_sum(const double* x, double* y) {
    __shared__ double total;
    auto cluster = cg::this_cluster();
    double v = x[blockIdx.x * 32 + threadIdx.x];
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
    if (threadIdx.x == 0) total = v;
    cluster.barrier_arrive();
    int blocks = cluster.num_blocks(), rank = cluster.block_rank();
    cluster.barrier_wait();
    double all = 0;
    if (threadIdx.x == 0)
        for (int i = 0; i < blocks; ++i) all += *cluster.map_shared_rank(&total, (rank + i) % blocks);
    cluster.sync();
    if (threadIdx.x == 0) y[blockIdx.x] = all;
}

// Each block loads half of the tile for both of them.
extern "C" __global__ void __cluster_dims__(2) multicast(const __grid_constant__ CUtensorMap x, int* y) {
    __shared__ alignas(128) int s[16][32];
    __shared__ alignas(8) uint64_t bar;
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof s);
    }
    cluster.sync();
    if (threadIdx.x == 0) {
        int at[2] = {int(blockIdx.x / 2 * 32), 8 * rank};
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, s[8 * rank], &x, at, &bar, uint16_t(3));
    }
    wait(&bar, 0);
    for (int i = threadIdx.x; i < 512; i += blockDim.x) y[blockIdx.x * 512 + i] = s[i / 32][i % 32] * (rank + 1);
    cluster.sync();
}

// A ring: each block copies its tile into the next one's memory, and signals that block's barrier.
extern "C" __global__ void __cluster_dims__(4) bulk_to_neighbour(const int* x, int* y) {
    __shared__ alignas(16) int own[128], got[128];
    __shared__ alignas(8) uint64_t bar;
    auto cluster = cg::this_cluster();
    int next = (cluster.block_rank() + 1) % 4, t = threadIdx.x;
    own[t] = x[blockIdx.x * 128 + t];
    if (t == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof got);
    }
    ptx::fence_proxy_async(ptx::space_shared);
    cluster.sync();
    if (t == 0)
        ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, cluster.map_shared_rank(got, next), own, sizeof own,
                           cluster.map_shared_rank(&bar, next));
    wait(&bar, 0);
    y[blockIdx.x * 128 + t] = got[t ^ 3] - own[t];
    cluster.sync();
}

// Threads of all blocks arrive at the first block's barrier, and that block waits for all of them.
extern "C" __global__ void __cluster_dims__(4) remote_arrival(const int* x, int* y) {
    __shared__ int slots[4];
    __shared__ alignas(8) uint64_t bar;
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 4);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    }
    cluster.sync();
    int sum = __reduce_add_sync(~0u, x[blockIdx.x * 32 + threadIdx.x]);
    if (threadIdx.x == 0) {
        cluster.map_shared_rank(slots, 0)[rank] = sum;
        ptx::mbarrier_arrive(ptx::sem_release, ptx::scope_cluster, ptx::space_cluster, cluster.map_shared_rank(&bar, 0));
    }
    if (rank == 0) {
        wait(&bar, 0);
        if (threadIdx.x < 4) y[blockIdx.x / 4 * 4 + threadIdx.x] = slots[threadIdx.x] * (threadIdx.x + 1);
    }
    cluster.sync();
}

// Stores that signal a barrier themselves: `st.async`.
extern "C" __global__ void __cluster_dims__(2) async_stores(const int* x, int* y) {
    __shared__ int got[64];
    __shared__ alignas(8) uint64_t bar;
    auto cluster = cg::this_cluster();
    int other = cluster.block_rank() ^ 1, t = threadIdx.x;
    if (t == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof got);
    }
    cluster.sync();
    ptx::st_async(cluster.map_shared_rank(&got[t ^ 1], other), x[blockIdx.x * 64 + t], cluster.map_shared_rank(&bar, other));
    wait(&bar, 0);
    y[blockIdx.x * 64 + t] = got[t];
    cluster.sync();
}

// Additions that signal a barrier: of single numbers, and of a whole array by the copy engine.
extern "C" __global__ void __cluster_dims__(4) async_adds(const int* x, int* y) {
    __shared__ unsigned sums[32];
    __shared__ alignas(16) int own[32], totals[32];
    __shared__ alignas(8) uint64_t bar;
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank(), t = threadIdx.x;
    own[t] = x[blockIdx.x * 32 + t];
    sums[t] = rank;
    totals[t] = -rank;
    if (t == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, 4 * sizeof sums + 4 * sizeof totals);
    }
    ptx::fence_proxy_async(ptx::space_shared);
    cluster.sync();
    for (int to = 0; to < 4; ++to) {
        uint64_t* there = cluster.map_shared_rank(&bar, to);
        ptx::red_async(ptx::op_add, cluster.map_shared_rank(&sums[(t + to) % 32], to), (unsigned)own[t], there);
        if (t == 0)
            ptx::cp_reduce_async_bulk(ptx::space_cluster, ptx::space_shared, ptx::op_add, cluster.map_shared_rank(totals, to), own,
                                      sizeof own, there);
    }
    wait(&bar, 0);
    y[blockIdx.x * 64 + t] = sums[t];
    y[blockIdx.x * 64 + 32 + t] = totals[t];
    cluster.sync();
}
