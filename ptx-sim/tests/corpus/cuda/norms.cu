// Normalisation of rows, with the approximate functions that it needs.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ float sum_of_block(float v, float* warps) {
    for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < blockDim.x / 32; ++w) v += warps[w];
    __syncthreads();
    return v;
}

extern "C" __global__ void softmax(const float* x, float* y, int n) {
    __shared__ float warps[8];
    const float* row = x + blockIdx.x * n;
    float most = -INFINITY;
    for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, row[i]);
    for (int o = 16; o; o >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = most;
    __syncthreads();
    for (int w = 0; w < blockDim.x / 32; ++w) most = fmaxf(most, warps[w]);
    __syncthreads();
    float sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(row[i] - most);
    sum = sum_of_block(sum, warps);
    for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = expf(row[i] - most) / sum;
}

// Roots and quotients rounded to nearest: the results are exact.
extern "C" __global__ void layer_norm(const float* x, const float* gain, const float* bias, float* y, int n) {
    __shared__ float warps[8];
    const float* row = x + blockIdx.x * n;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += row[i];
    float mean = sum_of_block(sum, warps) / n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) squares += (row[i] - mean) * (row[i] - mean);
    float scale = 1.0f / sqrtf(sum_of_block(squares, warps) / n + 1e-5f);
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[blockIdx.x * n + i] = (row[i] - mean) * scale * gain[i] + bias[i];
}

extern "C" __global__ void rms_norm(const __nv_bfloat162* x, float2* y, int n) {
    __shared__ float warps[8];
    const __nv_bfloat162* row = x + blockIdx.x * n;
    float squares = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        float2 v = __bfloat1622float2(row[i]);
        squares += v.x * v.x + v.y * v.y;
    }
    float scale = rsqrtf(sum_of_block(squares, warps) / (2 * n) + 1e-6f);
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        float2 v = __bfloat1622float2(row[i]);
        y[blockIdx.x * n + i] = make_float2(v.x * scale, v.y * scale);
    }
}

extern "C" __global__ void approximate(const float* x, float* ex2, float* lg2, float* rsqrt, float* quotient, float* sine,
                                       float* tanh) {
    int i = threadIdx.x;
    float v = x[i], positive = fabsf(v) + 0.25f;
    ex2[i] = exp2f(v);
    lg2[i] = __log2f(positive);
    rsqrt[i] = rsqrtf(positive);
    quotient[i] = __fdividef(v, positive);
    sine[2 * i] = __sinf(v * 0.375f);
    sine[2 * i + 1] = __cosf(v * 0.375f);
    asm("tanh.approx.f32 %0, %1;" : "=f"(tanh[i]) : "f"(v));
}

extern "C" __global__ void approximate_halves(const __half2* x, __half2* ex2, __half2* tanh) {
    __half2 v = x[threadIdx.x];
    ex2[threadIdx.x] = h2exp2(v);
    tanh[threadIdx.x] = h2tanh_approx(v);
}
