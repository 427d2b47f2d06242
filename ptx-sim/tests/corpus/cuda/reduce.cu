// Sums and extremes: through shared memory, shuffles, `redux`, packed halves, and in two stages.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;

extern "C" __global__ void block_sum(const float* x, float* out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    float v = 0;
    for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) v += x[i];
    s[t] = v;
    __syncthreads();
    for (int w = 128; w > 0; w >>= 1) {
        if (t < w) s[t] += s[t + w];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0];
}

extern "C" __global__ void warp_sum(const int* x, int* out) {
    int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}

// The last block to finish adds the results of all blocks.
extern "C" __global__ void two_stage_sum(const float* x, float* partial, unsigned* done, float* out, int n) {
    __shared__ float warps[8];
    __shared__ bool last;
    auto sum_of_block = [&](float v) {
        for (int o = 16; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
        if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
        __syncthreads();
        v = threadIdx.x < 8 ? warps[threadIdx.x] : 0;
        for (int o = 4; o; o >>= 1) v += __shfl_down_sync(~0u, v, o);
        return v;
    };
    float v = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) v += x[i];
    v = sum_of_block(v);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = v;
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    v = threadIdx.x < gridDim.x ? ((volatile float*)partial)[threadIdx.x] : 0;
    v = sum_of_block(v);
    if (threadIdx.x == 0) *out = v;
}

extern "C" __global__ void redux(const int* x, int* out) {
    int v = x[threadIdx.x];
    unsigned odd = __ballot_sync(~0u, v & 1), members = v & 1 ? odd : ~odd;
    int* of_lane = out + 8 * threadIdx.x;
    of_lane[0] = __reduce_add_sync(members, v);
    of_lane[1] = __reduce_min_sync(members, v);
    of_lane[2] = __reduce_max_sync(members, v);
    of_lane[3] = __reduce_min_sync(members, (unsigned)v);
    of_lane[4] = __reduce_max_sync(members, (unsigned)v);
    of_lane[5] = __reduce_and_sync(members, (unsigned)v);
    of_lane[6] = __reduce_or_sync(members, (unsigned)v);
    of_lane[7] = __reduce_xor_sync(members, (unsigned)v);
}

extern "C" __global__ void half2_sum(const __half2* x, __half2* out) {
    __half2 v = x[threadIdx.x];
    for (int o = 16; o; o >>= 1) v = __hadd2(v, __shfl_xor_sync(~0u, v, o));
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = v;
}

extern "C" __global__ void group_sum(const float* x, float* out) {
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    float v = x[blockIdx.x * blockDim.x + threadIdx.x];
    float sum = cg::reduce(tile, v, cg::plus<float>()), most = cg::reduce(tile, v, cg::greater<float>());
    if (tile.thread_rank() == 0) {
        out[2 * (blockIdx.x * tile.meta_group_size() + tile.meta_group_rank())] = sum;
        out[2 * (blockIdx.x * tile.meta_group_size() + tile.meta_group_rank()) + 1] = most;
    }
}

// The index of the greatest element: pairs of value and index, reduced as one 64-bit number.
extern "C" __global__ void arg_max(const float* x, unsigned long long* best, int n) {
    unsigned long long mine = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        unsigned bits = __float_as_uint(x[i]);
        unsigned ordered = bits >> 31 ? ~bits : bits | 1u << 31;
        unsigned long long pair = (unsigned long long)ordered << 32 | (unsigned)~i;
        mine = pair > mine ? pair : mine;
    }
    for (int o = 16; o; o >>= 1) {
        unsigned long long other = __shfl_down_sync(~0u, mine, o);
        mine = other > mine ? other : mine;
    }
    if (threadIdx.x % 32 == 0) atomicMax(best, mine);
}
