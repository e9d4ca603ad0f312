#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/sort.h>

// once, by all blocks
extern "C" __global__ void __launch_bounds__(256, 3) sort0_0(In<float> m0, InOut<float> m1, InOut<uint8_t> m2, Grid* grid) {
  SHARED(unsigned long, sorting, 2696);
  const long thread = (long)blockIdx.x * blockDim.x + threadIdx.x, threads = (long)gridDim.x * blockDim.x;
  sort_long_rows<Order<unsigned, KeyKind::floating, 0x7f800000, false>, NoValue, 12, 8>({grid, blockIdx.x, gridDim.x}, sorting, 12288, (InOut<unsigned>)m0, (InOut<unsigned>)m1, {}, {}, (InOut<unsigned char>)m2, 4194304, 4194304, 1, 1048576, 4);
}
