#include <plait/kernel.h>

#include <plait/functions.h>
#include <plait/lanes.h>

// 1048576 steps, by threads
extern "C" __global__ void chain0_0(In<float> m0, In<float> m1, Out<float> m2) {
  #pragma unroll 4
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 1048576u; step += gridDim.x * blockDim.x) {
    const long v0 = step;
    const float v1 = m0[v0];
    const float v2 = m1[v0];
    const float v3 = v1 * v2;
    const float v4 = lax::tanh(v3);
    const float v5 = -v1;
    const float v6 = lax::exp(v5);
    const float v7 = v4 + v6;
    m2[v0] = v7;
  }
}
