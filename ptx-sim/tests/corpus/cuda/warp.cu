// Communication between the lanes of a warp, and between the warps of a block.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;

extern "C" __global__ void votes(const int* x, unsigned* y) {
    int v = x[threadIdx.x], lane = threadIdx.x % 32;
    unsigned odd = __ballot_sync(~0u, v & 1);
    unsigned any = __any_sync(~0u, v > 90), all = __all_sync(~0u, v < 99);
    y[threadIdx.x] = __popc(odd & (1u << lane) - 1) + 1000 * any + 2000 * all + __reduce_add_sync(~0u, (unsigned)v);
}

extern "C" __global__ void shuffles(const int* x, int* y) {
    int v = x[threadIdx.x], lane = threadIdx.x % 32;
    int* of_lane = y + 8 * threadIdx.x;
    of_lane[0] = __shfl_sync(~0u, v, lane * 7 + 3);
    of_lane[1] = __shfl_sync(~0u, v, v, 8);
    of_lane[2] = __shfl_up_sync(~0u, v, 5);
    of_lane[3] = __shfl_up_sync(~0u, v, 3, 16);
    of_lane[4] = __shfl_down_sync(~0u, v, 9);
    of_lane[5] = __shfl_down_sync(~0u, v, 2, 4);
    of_lane[6] = __shfl_xor_sync(~0u, v, 21);
    of_lane[7] = __shfl_xor_sync(~0u, v, 12, 8);
}

extern "C" __global__ void matches(const unsigned* x, unsigned* y) {
    unsigned v = x[threadIdx.x] % 5;
    unsigned long long wide = (unsigned long long)(v & 1) << 40 | 3;
    int same;
    unsigned* of_lane = y + 4 * threadIdx.x;
    of_lane[0] = __match_any_sync(~0u, v);
    of_lane[1] = __match_any_sync(~0u, wide);
    of_lane[2] = __match_all_sync(~0u, x[threadIdx.x / 32 * 32] / (threadIdx.x < 32 ? 1 : v + 1), &same);
    of_lane[3] = same;
}

// Parts of a warp that diverge, and the data they exchange.
extern "C" __global__ void partial(const int* x, unsigned* y) {
    int v = x[threadIdx.x], lane = threadIdx.x % 32;
    unsigned found = 0;
    if (v % 3 == 0) {
        unsigned here = __activemask();
        found = __popc(__ballot_sync(here, v & 4)) + 100;
        __syncwarp(here);
    } else if (lane < 16) {
        found = 7;
    }
    __syncwarp();
    y[threadIdx.x] = found + 1000 * __shfl_sync(~0u, found, 31 - lane);
}

// Keeps the elements that pass, in order: ranks by ballots, offsets by one scan over the warps.
extern "C" __global__ void compact(const int* x, int* kept, int* count) {
    __shared__ int before[33];
    int v = x[threadIdx.x], lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    bool keep = v % 3 == 0;
    unsigned voters = __ballot_sync(~0u, keep);
    if (lane == 0) before[warp + 1] = __popc(voters);
    if (threadIdx.x == 0) before[0] = 0;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 0; w < blockDim.x / 32; ++w) before[w + 1] += before[w];
    __syncthreads();
    if (keep) kept[before[warp] + __popc(voters & (1u << lane) - 1)] = v;
    if (threadIdx.x == 0) *count = before[blockDim.x / 32];
}

// `__syncthreads` that counts, or tests whether all or any of the predicates hold.
extern "C" __global__ void block_votes(const int* x, int* y) {
    int v = x[threadIdx.x];
    int count = __syncthreads_count(v & 1), all = __syncthreads_and(v >= 0), any = __syncthreads_or(v > 1 << 30);
    y[threadIdx.x] = count | all << 16 | any << 17;
}

// Named barriers: two warps pass a buffer to two others and get it back. One lane of each counts.
extern "C" __global__ void named_barriers(const int* x, int* y, int rounds) {
    __shared__ int s[64], turns;
    int t = threadIdx.x, sum = 0;
    if (t == 0) turns = 0;
    __syncthreads();
    for (int k = 0; k < rounds; ++k) {
        if (t < 64) {
            if (k > 0) asm volatile("bar.sync 2, 128;" ::: "memory");
            s[t] = x[k * 64 + t];
            asm volatile("bar.arrive 1, 128;" ::: "memory");
        } else {
            asm volatile("barrier.sync 1, 128;" ::: "memory");
            sum = sum * 3 + s[127 - t];
            if (k + 1 < rounds) asm volatile("barrier.arrive 2, 128;" ::: "memory");
        }
        unsigned leads;
        asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(leads));
        if (leads) atomicAdd(&turns, 1);
    }
    __syncthreads();
    if (t >= 64) y[t - 64] = sum + turns;
}

// Cooperative groups: the active lanes, and the lanes with the same label.
extern "C" __global__ void groups(const int* x, int* y) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int v = x[threadIdx.x], result = 0;
    if (v % 3) {
        auto here = cg::coalesced_threads();
        result = cg::inclusive_scan(here, v & 255) * 32 + here.thread_rank();
        result += here.shfl(v & 7, here.num_threads() - 1);
    }
    warp.sync();
    auto peers = cg::labeled_partition(warp, v & 3);
    y[2 * threadIdx.x] = result;
    y[2 * threadIdx.x + 1] = cg::reduce(peers, v, cg::less<int>()) ^ cg::exclusive_scan(warp, v, cg::bit_xor<int>());
}
