// One thread per element, and loops whose trip count differs between lanes.

extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void doubles(const double* x, double* y) {
    int i = threadIdx.x;
    y[i] = sqrt(x[i]) / (x[i] + 3.0);
}

extern "C" __global__ void longs(const long long* x, long long* y, int n) {
    long long v = x[threadIdx.x];
    for (int k = 0; k < n; ++k) v = v * 6364136223846793005LL + (v >> 7) % 1000003LL;
    y[threadIdx.x] = v;
}

extern "C" __global__ void collatz(int* steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int k = 0;
    for (unsigned n = i + 1; n != 1; ++k) n = n & 1 ? 3 * n + 1 : n / 2;
    steps[i] = k;
}

extern "C" __global__ void mandelbrot(unsigned short* steps, int width) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    float re = x * (3.0f / width) - 2.0f, im = y * (2.0f / width) - 1.0f;
    float a = 0, b = 0;
    unsigned short k = 0;
    while (k < 64 && a * a + b * b <= 4.0f) {
        float t = a * a - b * b + re;
        b = 2 * a * b + im;
        a = t;
        ++k;
    }
    steps[y * width + x] = k;
}

// A grid-stride loop: each thread takes four elements at a time.
extern "C" __global__ void grid_stride(const float4* x, float4* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 v = x[i];
        y[i] = make_float4(v.w - v.x, fabsf(v.y), fmaxf(v.z, v.x), -v.x * 0.5f);
    }
}
