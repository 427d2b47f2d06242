// 16-bit and 8-bit floating-point types: arithmetic and conversions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

extern "C" __global__ void half_arithmetic(const __half2* x, __half2* y) {
    __half2 a = x[3 * threadIdx.x], b = x[3 * threadIdx.x + 1], c = x[3 * threadIdx.x + 2];
    __half2 results[] = {
        __hadd2(a, b), __hsub2(a, b), __hmul2(a, b), __hfma2(a, b, c), __hadd2_sat(a, b), __hfma2_sat(a, b, c),
        __hfma2_relu(a, b, c), __hmin2(a, b), __hmax2(a, b), __hmin2_nan(a, b), __hmax2_nan(a, b), __hneg2(a), __habs2(a),
        __heq2(a, b), __hlt2(a, b), __hgeu2(a, c), __lows2half2(a, b), __lowhigh2highlow(c),
    };
    constexpr int n = sizeof(results) / sizeof(__half2);
    for (int i = 0; i < n; ++i) y[n * threadIdx.x + i] = results[i];
}

extern "C" __global__ void bfloat_arithmetic(const __nv_bfloat162* x, __nv_bfloat162* y) {
    __nv_bfloat162 a = x[3 * threadIdx.x], b = x[3 * threadIdx.x + 1], c = x[3 * threadIdx.x + 2];
    __nv_bfloat162 results[] = {
        __hadd2(a, b), __hsub2(a, b), __hmul2(a, b), __hfma2(a, b, c), __hfma2_relu(a, b, c), __hmin2(a, b),
        __hmax2_nan(a, b), __hneg2(a), __habs2(b), __hgt2(a, b), __hneu2(a, c),
    };
    constexpr int n = sizeof(results) / sizeof(__nv_bfloat162);
    for (int i = 0; i < n; ++i) y[n * threadIdx.x + i] = results[i];
}

extern "C" __global__ void to_halves(const float* x, unsigned short* y) {
    float v = x[2 * threadIdx.x], w = x[2 * threadIdx.x + 1];
    __half2 pair = __floats2half2_rn(v, w);
    __nv_bfloat162 bpair = __floats2bfloat162_rn(v, w);
    unsigned short results[] = {
        __half_as_ushort(__float2half_rn(v)), __half_as_ushort(__float2half_rz(v)), __half_as_ushort(__float2half_ru(v)),
        __half_as_ushort(__float2half_rd(v)), __half_as_ushort(__double2half(w)),
        __bfloat16_as_ushort(__float2bfloat16_rn(v)), __bfloat16_as_ushort(__float2bfloat16_rz(v)),
        __bfloat16_as_ushort(__float2bfloat16_ru(w)), __half_as_ushort(pair.x), __half_as_ushort(pair.y),
        __bfloat16_as_ushort(bpair.x), __bfloat16_as_ushort(bpair.y),
        __half_as_ushort(__int2half_rn(__float_as_int(v) >> 12)), __half_as_ushort(__uint2half_rz(__float_as_uint(w) >> 14)),
    };
    constexpr int n = sizeof(results) / 2;
    for (int i = 0; i < n; ++i) y[n * threadIdx.x + i] = results[i];
}

extern "C" __global__ void from_halves(const unsigned short* x, float* f, int* i) {
    unsigned short bits = x[threadIdx.x];
    __half h = __ushort_as_half(bits);
    __nv_bfloat16 b = __ushort_as_bfloat16(bits);
    f[4 * threadIdx.x] = __half2float(h);
    f[4 * threadIdx.x + 1] = __bfloat162float(b);
    f[4 * threadIdx.x + 2] = __half2float(hfloor(h)) + __half2float(hrint(h));
    f[4 * threadIdx.x + 3] = __half2float(__hdiv(h, __float2half(3.0f)));
    i[4 * threadIdx.x] = __half2int_rn(h);
    i[4 * threadIdx.x + 1] = __half2short_rz(h);
    i[4 * threadIdx.x + 2] = __half2uint_ru(h);
    i[4 * threadIdx.x + 3] = __bfloat162int_rd(b);
}

// 8-bit types E4M3 and E5M2. Finite numbers saturate.
extern "C" __global__ void eights(const float2* x, const unsigned short* pairs, unsigned short* y, __half2* z) {
    float2 v = x[threadIdx.x];
    unsigned short e4 = __nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, __NV_E4M3);
    unsigned short e5 = __nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, __NV_E5M2);
    y[2 * threadIdx.x] = e4;
    y[2 * threadIdx.x + 1] = e5;
    z[2 * threadIdx.x] = __half2(__nv_cvt_fp8x2_to_halfraw2(pairs[threadIdx.x], __NV_E4M3));
    z[2 * threadIdx.x + 1] = __half2(__nv_cvt_fp8x2_to_halfraw2(pairs[threadIdx.x], __NV_E5M2));
}
