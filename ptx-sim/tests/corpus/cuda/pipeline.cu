// libcu++'s barriers and pipelines with `memcpy_async`: `cp.async`, bulk copies and mbarriers.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

// Arrive now and wait later: the work in between overlaps.
extern "C" __global__ void split_barrier(const int* x, int* y, int rounds) {
    __shared__ int s[128];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ block_barrier bar;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) init(&bar, block.size());
    block.sync();
    int t = block.thread_rank(), v = x[t];
    for (int k = 0; k < rounds; ++k) {
        s[t] = v;
        auto written = bar.arrive();
        int own = v * 3 + k;
        bar.wait(std::move(written));
        v = own + s[(t + 33) % 128];
        bar.arrive_and_wait();
    }
    y[t] = v;
}

// The block loads a tile by its own `memcpy_async` on a barrier.
extern "C" __global__ void copy_on_barrier(const int* x, int* y, int tiles) {
    constexpr int N = 256;
    __shared__ alignas(128) int s[N];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ block_barrier bar;
    auto block = cg::this_thread_block();
    if (block.thread_rank() == 0) {
        init(&bar, block.size());
        // The copies are bulk copies, which access the barrier through the asynchronous proxy.
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    }
    block.sync();
    int sum = 0;
    for (int k = 0; k < tiles; ++k) {
        cuda::memcpy_async(block, s, x + k * N, cuda::aligned_size_t<16>(sizeof(int) * N), bar);
        bar.arrive_and_wait();
        for (int i = threadIdx.x; i < N; i += blockDim.x) sum = sum * 5 + s[N - 1 - i];
        block.sync();
    }
    y[threadIdx.x] = sum;
}

// Each thread copies its own four bytes, which have no wider alignment.
extern "C" __global__ void copy_by_threads(const int* x, int* y) {
    __shared__ int s[128];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ block_barrier bar;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(&s[threadIdx.x], x + 1 + threadIdx.x, cuda::aligned_size_t<4>(sizeof(int)), bar);
    bar.arrive_and_wait();
    y[threadIdx.x] = s[(threadIdx.x * 5 + 1) % 128];
}

// Each thread keeps its own stages full: a pipeline of one thread, `cp.async` with groups.
extern "C" __global__ void stages_of_thread(const float4* x, float4* y, int steps) {
    constexpr int STAGES = 3;
    __shared__ float4 s[STAGES][64];
    auto pipe = cuda::make_pipeline();
    int t = threadIdx.x, ahead = 0;
    float4 sum = {0, 0, 0, 0};
    for (int k = 0; k < steps; ++k) {
        for (; ahead < steps && ahead < k + STAGES; ++ahead) {
            pipe.producer_acquire();
            cuda::memcpy_async(&s[ahead % STAGES][t], &x[ahead * 64 + t], cuda::aligned_size_t<16>(16), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        float4 v = s[k % STAGES][t];
        sum = make_float4(sum.x * 0.5f + v.x, sum.y * 0.5f + v.y, sum.z * 0.5f + v.z, sum.w * 0.5f + v.w);
        pipe.consumer_release();
    }
    y[t] = sum;
}

// All threads of the block produce and consume; each reads what another one loaded.
extern "C" __global__ void stages_of_block(const int* x, int* y, int steps) {
    constexpr int STAGES = 2;
    __shared__ int s[STAGES][128];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int t = threadIdx.x, sum = 0;
    pipe.producer_acquire();
    cuda::memcpy_async(block, s[0], x, sizeof(int) * 128, pipe);
    pipe.producer_commit();
    for (int k = 0; k < steps; ++k) {
        if (k + 1 < steps) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, s[(k + 1) % STAGES], x + (k + 1) * 128, sizeof(int) * 128, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum = sum * 7 + s[k % STAGES][127 - t];
        pipe.consumer_release();
    }
    y[t] = sum;
}

// The first warp produces, and the others consume.
extern "C" __global__ void stages_of_roles(const int* x, int* y, int steps) {
    constexpr int STAGES = 2;
    __shared__ int s[STAGES][96];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto block = cg::this_thread_block();
    auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    int sum = 0;
    for (int k = 0; k < steps; ++k) {
        if (role == cuda::pipeline_role::producer) {
            pipe.producer_acquire();
            for (int i = threadIdx.x; i < 96; i += 32)
                cuda::memcpy_async(&s[k % STAGES][i], &x[k * 96 + i], cuda::aligned_size_t<4>(4), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            sum = sum * 3 + s[k % STAGES][127 - threadIdx.x];
            pipe.consumer_release();
        }
    }
    if (threadIdx.x >= 32) y[threadIdx.x - 32] = sum;
}

// Cooperative groups have copies of their own, for which the whole block waits.
extern "C" __global__ void group_copies(const int* x, int* y) {
    __shared__ int s[2][128];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, s[0], x, sizeof(int) * 128);
    cg::memcpy_async(block, s[1], x + 128, sizeof(int) * 128);
    cg::wait_prior<1>(block);
    int first = s[0][threadIdx.x ^ 5];
    cg::wait(block);
    y[threadIdx.x] = first - s[1][threadIdx.x ^ 70];
}

// Threads that no longer need the barrier drop out of it.
extern "C" __global__ void dropping_out(const int* x, int* y) {
    __shared__ int s[128];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ block_barrier bar;
    int t = threadIdx.x;
    if (t == 0) init(&bar, blockDim.x);
    __syncthreads();
    s[t] = x[t];
    for (int width = 64; width; width >>= 1) {
        if (t >= 2 * width) break;
        if (t >= width) {
            bar.arrive_and_drop();
            break;
        }
        bar.arrive_and_wait();
        s[t] = s[t] * 3 + s[t + width];
    }
    if (t == 0) *y = s[0];
}

struct Counted {
    int* phases;
    __device__ void operator()() { ++*phases; }
};

// A barrier with a completion function, which libcu++ builds from atomics.
extern "C" __global__ void completion(const int* x, int* y) {
    __shared__ int s[64], phases;
    using barrier = cuda::barrier<cuda::thread_scope_block, Counted>;
    __shared__ alignas(barrier) unsigned char memory[sizeof(barrier)];
    barrier& bar = *(barrier*)memory;
    int t = threadIdx.x;
    if (t == 0) {
        phases = 0;
        new (&bar) barrier(blockDim.x, Counted{&phases});
    }
    __syncthreads();
    s[t] = x[t];
    for (int k = 0; k < 3; ++k) {
        bar.arrive_and_wait();
        int v = s[(t + 17) % 64] * 5 + phases;
        bar.arrive_and_wait();
        s[t] = v;
    }
    y[t] = s[t];
}
