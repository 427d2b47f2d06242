// Integer intrinsics: bits, bytes, halves of words, high products, wide integers.
#include <cstdint>

extern "C" __global__ void bits(const unsigned* x, unsigned* y) {
    unsigned a = x[3 * threadIdx.x], b = x[3 * threadIdx.x + 1], c = x[3 * threadIdx.x + 2];
    unsigned long long wide = (unsigned long long)a << 32 | b;
    unsigned results[] = {
        (unsigned)__clz(a >> (b & 31)), (unsigned)__popc(a), __brev(a), (unsigned)__ffs(a << (c & 31)),
        (unsigned)__clzll(wide >> (c & 63)), (unsigned)__popcll(wide), (unsigned)__brevll(wide),
        (unsigned)__ffsll(wide), __byte_perm(a, b, c), __funnelshift_l(a, b, c), __funnelshift_r(a, b, c),
        __funnelshift_lc(a, b, c & 63), __funnelshift_rc(a, b, c & 63), __fns(a, b & 31, (int)(c & 7) - 3),
        (a & b) | (~a & c), (a ^ b) ^ c, (a & b) | (b & c) | (a & c), a << (b & 63), (unsigned)((int)a >> (b & 31)),
    };
    constexpr int n = sizeof(results) / 4;
    for (int i = 0; i < n; ++i) y[n * threadIdx.x + i] = results[i];
}

extern "C" __global__ void products(const int* x, int* y) {
    int a = x[2 * threadIdx.x], b = x[2 * threadIdx.x + 1];
    long long p = (long long)a * b, q = p ^ (long long)b << 31;
    int results[] = {
        __mulhi(a, b), (int)__umulhi(a, b), __mul24(a, b), (int)__umul24(a, b), (int)__sad(a, b, 17),
        (int)__usad(a, b, 17), __hadd(a, b), __rhadd(a, b), (int)__uhadd(a, b), (int)__urhadd(a, b),
        (int)__mul64hi(p, q), (int)(__mul64hi(p, q) >> 32), (int)__umul64hi(p, q), (int)(__umul64hi(p, q) >> 32),
        b ? a / b : 0, b ? a % b : 0, b ? (int)((unsigned)a / (unsigned)b) : 0, b ? (int)((unsigned)a % (unsigned)b) : 0,
        b ? (int)(q / b) : 0, b ? (int)((unsigned long long)q % (unsigned)b) : 0, a / 7, (int)((unsigned)a / 1000u), abs(a), min(a, b),
        (int)max((unsigned)a, (unsigned)b), (int)min(p, q), (int)max((unsigned long long)p, (unsigned long long)q),
    };
    constexpr int n = sizeof(results) / 4;
    for (int i = 0; i < n; ++i) y[n * threadIdx.x + i] = results[i];
}

extern "C" __global__ void packed(const unsigned* x, unsigned* y) {
    unsigned a = x[3 * threadIdx.x], b = x[3 * threadIdx.x + 1], c = x[3 * threadIdx.x + 2];
    unsigned results[] = {
        __vadd4(a, b), __vaddss4(a, b), __vaddus4(a, b), __vsub4(a, b), __vsubss4(a, b), __vsubus4(a, b),
        __vadd2(a, b), __vaddss2(a, b), __vaddus2(a, b), __vsubss2(a, b), __vabsdiffu4(a, b), __vabsdiffs2(a, b),
        __vavgu4(a, b), __vavgs2(a, b), __vmaxs4(a, b), __vminu2(a, b), __vcmpeq4(a, b & c), __vcmpgts2(a, b),
        __vsetltu4(a, b), __vsadu4(a, b), __vsads2(a, b), __vneg4(a), __vabsss2(a), __vhaddu4(a, b),
        (unsigned)__dp4a((int)a, (int)b, (int)c), __dp4a(a, b, c), (unsigned)__dp2a_lo((int)a, (int)b, (int)c),
        __dp2a_hi(a, b, c), (unsigned)__viaddmax_s32_relu(a, b, c), __vimax3_s16x2(a, b, c),
        (unsigned)__vimin_s32_relu(a, b), __viaddmin_u16x2(a, b, c),
    };
    constexpr int n = sizeof(results) / 4;
    for (int i = 0; i < n; ++i) y[n * threadIdx.x + i] = results[i];
}

// 128-bit integers: chains of carries.
extern "C" __global__ void wide(const unsigned long long* x, unsigned long long* y) {
    using u128 = unsigned __int128;
    const unsigned long long* of_thread = x + 4 * threadIdx.x;
    u128 a = (u128)of_thread[0] << 64 | of_thread[1], b = (u128)(of_thread[2] >> 20) << 64 | of_thread[3];
    u128 results[] = {a + b, a - b, a * b, a / b, a % b, a << (of_thread[3] & 127), (u128)((__int128)a >> 77)};
    for (int i = 0; i < 7; ++i) {
        y[14 * threadIdx.x + 2 * i] = results[i];
        y[14 * threadIdx.x + 2 * i + 1] = results[i] >> 64;
    }
}

// The Ethernet checksum, with a table in shared memory that the block builds first.
extern "C" __global__ void crc32(const unsigned char* bytes, unsigned* sums, int length) {
    __shared__ unsigned table[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        unsigned v = i;
        for (int k = 0; k < 8; ++k) v = v & 1 ? 0xedb88320u ^ v >> 1 : v >> 1;
        table[i] = v;
    }
    __syncthreads();
    unsigned sum = ~0u;
    for (int i = 0; i < length; ++i) sum = table[(sum ^ bytes[threadIdx.x * length + i]) & 255] ^ sum >> 8;
    sums[threadIdx.x] = ~sum;
}

// Rounds of ChaCha20: additions, exclusive ors and rotations.
extern "C" __global__ void chacha(const unsigned* key, unsigned* stream) {
    unsigned s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    for (int i = 0; i < 8; ++i) s[4 + i] = key[i];
    s[12] = threadIdx.x;
    for (int i = 13; i < 16; ++i) s[i] = 0;
    unsigned v[16];
    for (int i = 0; i < 16; ++i) v[i] = s[i];
    auto rotated = [](unsigned x, int n) { return x << n | x >> (32 - n); };
    auto quarter = [&](int a, int b, int c, int d) {
        v[a] += v[b], v[d] = rotated(v[d] ^ v[a], 16), v[c] += v[d], v[b] = rotated(v[b] ^ v[c], 12);
        v[a] += v[b], v[d] = rotated(v[d] ^ v[a], 8), v[c] += v[d], v[b] = rotated(v[b] ^ v[c], 7);
    };
    for (int round = 0; round < 10; ++round) {
        quarter(0, 4, 8, 12), quarter(1, 5, 9, 13), quarter(2, 6, 10, 14), quarter(3, 7, 11, 15);
        quarter(0, 5, 10, 15), quarter(1, 6, 11, 12), quarter(2, 7, 8, 13), quarter(3, 4, 9, 14);
    }
    for (int i = 0; i < 16; ++i) stream[threadIdx.x * 16 + i] = v[i] + s[i];
}

// Instructions that compilers generate from patterns, requested by name.
extern "C" __global__ void fields(const unsigned* x, unsigned* y) {
    unsigned a = x[3 * threadIdx.x], b = x[3 * threadIdx.x + 1], c = x[3 * threadIdx.x + 2], at = b & 63, count = c & 63;
    unsigned* of_thread = y + 16 * threadIdx.x;
    asm("bfind.u32 %0, %1;" : "=r"(of_thread[0]) : "r"(a >> at % 32));
    asm("bfind.s32 %0, %1;" : "=r"(of_thread[1]) : "r"((int)a >> at % 32));
    asm("bfind.shiftamt.u32 %0, %1;" : "=r"(of_thread[2]) : "r"(a >> count % 32));
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(of_thread[3]) : "r"(a), "r"(at), "r"(count));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(of_thread[4]) : "r"(a), "r"(at), "r"(count));
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(of_thread[5]) : "r"(a), "r"(b), "r"(at), "r"(count));
    asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(of_thread[6]) : "r"(at), "r"(count));
    asm("bmsk.wrap.b32 %0, %1, %2;" : "=r"(of_thread[7]) : "r"(at), "r"(count));
    asm("lop3.b32 %0, %1, %2, %3, 0x6b;" : "=r"(of_thread[8]) : "r"(a), "r"(b), "r"(c));
    asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(of_thread[9]) : "r"(a), "r"(b), "r"(c));
    asm("prmt.b32.b4e %0, %1, %2, %3;" : "=r"(of_thread[10]) : "r"(a), "r"(b), "r"(c));
    asm("prmt.b32.rc8 %0, %1, %2, %3;" : "=r"(of_thread[11]) : "r"(a), "r"(b), "r"(c));
    asm("prmt.b32.ecl %0, %1, %2, %3;" : "=r"(of_thread[12]) : "r"(a), "r"(b), "r"(c));
    asm("prmt.b32.ecr %0, %1, %2, %3;" : "=r"(of_thread[13]) : "r"(a), "r"(b), "r"(c));
    asm("prmt.b32.rc16 %0, %1, %2, %3;" : "=r"(of_thread[14]) : "r"(a), "r"(b), "r"(c));
    asm("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(of_thread[15]) : "r"(a), "r"(b), "r"(c));
}
