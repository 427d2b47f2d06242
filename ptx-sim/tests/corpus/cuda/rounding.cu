// Rounding modes and saturation.

#define EACH_ROUNDING(name, type, ...)                                                                     \
    extern "C" __global__ void name(const type* x, type* y) {                                              \
        type a = x[3 * threadIdx.x], b = x[3 * threadIdx.x + 1], c = x[3 * threadIdx.x + 2];                \
        type results[] = {__VA_ARGS__};                                                                    \
        constexpr int n = sizeof(results) / sizeof(type);                                                  \
        for (int i = 0; i < n; ++i) y[n * threadIdx.x + i] = results[i];                                   \
    }

EACH_ROUNDING(round_singles, float, __fadd_rn(a, b), __fadd_rz(a, b), __fadd_ru(a, b), __fadd_rd(a, b),
              __fmul_rn(a, b), __fmul_rz(a, b), __fmul_ru(a, b), __fmul_rd(a, b), __fmaf_rn(a, b, c),
              __fmaf_rz(a, b, c), __fmaf_ru(a, b, c), __fmaf_rd(a, b, c), __fdiv_rn(a, b), __fdiv_rz(a, b),
              __fdiv_ru(a, b), __fdiv_rd(a, b), __fsqrt_rn(c), __fsqrt_rz(c), __fsqrt_ru(c), __fsqrt_rd(c),
              __frcp_rz(c), __frcp_ru(c), __saturatef(a), fminf(a, b), fmaxf(b, c), fdimf(a, b),
              fabsf(a), -b)

EACH_ROUNDING(round_doubles, double, __dadd_rn(a, b), __dadd_rz(a, b), __dadd_ru(a, b), __dadd_rd(a, b),
              __dmul_rz(a, b), __dmul_ru(a, b), __dmul_rd(a, b), __fma_rn(a, b, c), __fma_rz(a, b, c),
              __fma_ru(a, b, c), __fma_rd(a, b, c), __ddiv_rn(a, b), __ddiv_rz(a, b), __ddiv_ru(a, b), __ddiv_rd(a, b),
              __dsqrt_rn(c), __dsqrt_rz(c), __dsqrt_ru(c), __dsqrt_rd(c), __drcp_rn(c), fmin(a, b), fmax(b, c), fabs(a), -b)

// From floating point to integers, in each direction. Values out of range are clamped.
extern "C" __global__ void to_integers(const float* x, const double* z, int* i, long long* l) {
    float v = x[threadIdx.x];
    double w = z[threadIdx.x];
    int* is = i + 12 * threadIdx.x;
    is[0] = __float2int_rn(v);
    is[1] = __float2int_rz(v);
    is[2] = __float2int_ru(v);
    is[3] = __float2int_rd(v);
    is[4] = __float2uint_rn(v);
    is[5] = __float2uint_rz(v);
    is[6] = __double2int_rn(w);
    is[7] = __double2uint_ru(w);
    is[8] = (signed char)v;
    is[9] = (unsigned short)v;
    is[10] = (int)rintf(v);
    is[11] = lroundf(v);
    long long* ls = l + 4 * threadIdx.x;
    ls[0] = __float2ll_rn(v);
    ls[1] = __float2ull_rd(v);
    ls[2] = __double2ll_rz(w);
    ls[3] = __double2ull_ru(w);
}

// From integers to floating point, and between singles and doubles.
extern "C" __global__ void from_integers(const int* i, const long long* l, float* x, double* z) {
    int v = i[threadIdx.x];
    long long w = l[threadIdx.x];
    float* xs = x + 12 * threadIdx.x;
    xs[0] = __int2float_rn(v);
    xs[1] = __int2float_rz(v);
    xs[2] = __int2float_ru(v);
    xs[3] = __int2float_rd(v);
    xs[4] = __uint2float_ru(v);
    xs[5] = __ll2float_rn(w);
    xs[6] = __ll2float_rd(w);
    xs[7] = __ull2float_rz(w);
    xs[8] = __double2float_rn(__longlong_as_double(w));
    xs[9] = __double2float_ru(__longlong_as_double(w));
    xs[10] = (signed char)v;
    xs[11] = (unsigned short)v;
    double* zs = z + 4 * threadIdx.x;
    zs[0] = __ll2double_rd(w);
    zs[1] = __ull2double_ru(w);
    zs[2] = __int_as_float(v);
    zs[3] = v;
}

// To integral values, and remainders.
extern "C" __global__ void integral(const float* x, float* y) {
    float v = x[2 * threadIdx.x], w = x[2 * threadIdx.x + 1];
    float* of_thread = y + 10 * threadIdx.x;
    of_thread[0] = floorf(v);
    of_thread[1] = ceilf(v);
    of_thread[2] = truncf(v);
    of_thread[3] = rintf(v);
    of_thread[4] = roundf(v);
    of_thread[5] = fmodf(v, w);
    of_thread[6] = remainderf(v, w);
    of_thread[7] = copysignf(v, w);
    of_thread[8] = ldexpf(v, (int)w % 20);
    of_thread[9] = nextafterf(v, w);
}

// Flushing of subnormals, and the comparisons that compilers emit, which C++ does not have.
extern "C" __global__ void flushed(const float* x, float* y, unsigned* z) {
    float a = x[3 * threadIdx.x], b = x[3 * threadIdx.x + 1], c = x[3 * threadIdx.x + 2];
    float* of_thread = y + 12 * threadIdx.x;
    asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(of_thread[0]) : "f"(a), "f"(b));
    asm("mul.rz.ftz.f32 %0, %1, %2;" : "=f"(of_thread[1]) : "f"(a), "f"(b));
    asm("fma.rp.ftz.f32 %0, %1, %2, %3;" : "=f"(of_thread[2]) : "f"(a), "f"(b), "f"(c));
    asm("fma.rn.ftz.sat.f32 %0, %1, %2, %3;" : "=f"(of_thread[3]) : "f"(a), "f"(b), "f"(c));
    asm("min.ftz.f32 %0, %1, %2;" : "=f"(of_thread[4]) : "f"(a), "f"(b));
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(of_thread[5]) : "f"(a), "f"(b));
    asm("max.ftz.NaN.xorsign.abs.f32 %0, %1, %2;" : "=f"(of_thread[6]) : "f"(a), "f"(b));
    asm("div.rn.ftz.f32 %0, %1, %2;" : "=f"(of_thread[7]) : "f"(a), "f"(b));
    asm("sqrt.rn.ftz.f32 %0, %1;" : "=f"(of_thread[8]) : "f"(a));
    asm("abs.ftz.f32 %0, %1;" : "=f"(of_thread[9]) : "f"(a));
    asm("cvt.rmi.ftz.f32.f32 %0, %1;" : "=f"(of_thread[10]) : "f"(a));
    asm("copysign.f32 %0, %1, %2;" : "=f"(of_thread[11]) : "f"(a), "f"(b));
    unsigned* bits = z + 8 * threadIdx.x;
    asm("set.lt.ftz.u32.f32 %0, %1, %2;" : "=r"(bits[0]) : "f"(a), "f"(b));
    asm("set.geu.u32.f32 %0, %1, %2;" : "=r"(bits[1]) : "f"(a), "f"(b));
    asm("{ .reg .pred p, q; setp.num.f32 p, %1, %2; setp.eq.and.f32 q, %1, %3, p; selp.u32 %0, 7, 9, q; }"
        : "=r"(bits[2]) : "f"(a), "f"(b), "f"(c));
    asm("{ .reg .pred p; testp.subnormal.f32 p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(bits[3]) : "f"(a));
    asm("{ .reg .pred p; testp.normal.f32 p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(bits[4]) : "f"(a));
    asm("slct.u32.f32 %0, 11, 13, %1;" : "=r"(bits[5]) : "f"(a));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits[6]) : "f"(a));
    asm("cvt.rn.relu.f16x2.f32 %0, %1, %2;" : "=r"(bits[7]) : "f"(a), "f"(b));
}

// The NaN that results from several, and conversions of it.
extern "C" __global__ void nans(const double* x, double* y, unsigned* z) {
    double a = x[3 * threadIdx.x], b = x[3 * threadIdx.x + 1], c = x[3 * threadIdx.x + 2];
    double* of_thread = y + 8 * threadIdx.x;
    of_thread[0] = __dadd_rn(a, b);
    of_thread[1] = __dadd_rz(a, b);
    of_thread[2] = __dmul_rn(a, b);
    of_thread[3] = __fma_rn(a, b, c);
    of_thread[4] = __fma_ru(a, b, c);
    of_thread[5] = __dsub_rn(a, b);
    of_thread[6] = fmin(a, b);
    of_thread[7] = __int_as_float((int)(__double_as_longlong(a) >> 32) | (int)__double_as_longlong(a));
    unsigned* bits = z + 4 * threadIdx.x;
    float f = __int_as_float((int)(__double_as_longlong(b) >> 32) | (int)__double_as_longlong(b));
    bits[0] = __float_as_uint(__double2float_rn(a));
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits[1]) : "f"(f));
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits[2]) : "f"(f));
    asm("cvt.rz.relu.tf32.f32 %0, %1;" : "=r"(bits[3]) : "f"(f));
}
