// Block-level algorithms of CUB.
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

extern "C" __global__ void cub_scan(const int* x, int* y, int* total) {
    using Load = cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Scan = cub::BlockScan<int, 64>;
    __shared__ union {
        Load::TempStorage load;
        Scan::TempStorage scan;
    } shared;
    int items[4], sum;
    Load(shared.load).Load(x, items);
    __syncthreads();
    Scan(shared.scan).ExclusiveSum(items, items, sum);
    for (int i = 0; i < 4; ++i) y[4 * threadIdx.x + i] = items[i];
    if (threadIdx.x == 0) *total = sum;
}

extern "C" __global__ void cub_sort(unsigned* keys, unsigned short* values) {
    using Sort = cub::BlockRadixSort<unsigned, 64, 3, unsigned short>;
    __shared__ Sort::TempStorage shared;
    unsigned k[3];
    unsigned short v[3];
    for (int i = 0; i < 3; ++i) k[i] = keys[3 * threadIdx.x + i], v[i] = 3 * threadIdx.x + i;
    Sort(shared).Sort(k, v, 0, 20);
    for (int i = 0; i < 3; ++i) keys[3 * threadIdx.x + i] = k[i], values[3 * threadIdx.x + i] = v[i];
}

extern "C" __global__ void cub_reduce(const double* x, double* least) {
    using Reduce = cub::BlockReduce<double, 96>;
    __shared__ Reduce::TempStorage shared;
    double found = Reduce(shared).Reduce(x[threadIdx.x], [](double a, double b) { return a < b ? a : b; }, 80);
    if (threadIdx.x == 0) *least = found;
}
