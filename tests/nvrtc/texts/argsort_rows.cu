#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/sort.h>

// 4096000 steps, by threads
extern "C" __global__ void argsort_rows0_0(Out<int> m0) {
  if (begins_fours(m0)) {
    for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 1024000u; step += gridDim.x * blockDim.x) {
      const long v0 = step / 250u;
      const long v1 = long(step % 250u) * 4;
      Four<int> four1;
      const long first_v1 = v1;
      #pragma unroll
      for (int lane = 0; lane < 4; ++lane) {
        const long v1 = first_v1 + lane;
        const int v2 = int(v1);
        four1.at[lane] = v2;
      }
      store4(m0, v0 * 1000 + v1, four1);
    }
    return;
  }
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 4096000u; step += gridDim.x * blockDim.x) {
    const long v0 = step / 1000u;
    const long v1 = step % 1000u;
    const int v2 = int(v1);
    m0[v0 * 1000 + v1] = v2;
  }
}

// once, by all blocks
extern "C" __global__ void __launch_bounds__(256, 3) argsort_rows1_0(In<int> m0, In<int> m1, InOut<int> m2, InOut<int> m3, Grid* grid) {
  SHARED(unsigned long, sorting, 2184);
  const long thread = (long)blockIdx.x * blockDim.x + threadIdx.x, threads = (long)gridDim.x * blockDim.x;
  sort_short_rows<Order<unsigned, KeyKind::with_sign, 0, false>, unsigned, 4, 8>({grid, blockIdx.x, gridDim.x}, sorting, 8192, (InOut<unsigned>)m0, (InOut<unsigned>)m2, (InOut<unsigned>)m1, (InOut<unsigned>)m3, 4096, 1000, 4);
}
