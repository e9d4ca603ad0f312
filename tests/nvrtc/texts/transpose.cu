#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>

// 700000 steps, by threads
extern "C" __global__ void transpose0_0(In<float> m0, Out<float> m1) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 700000u; step += gridDim.x * blockDim.x) {
    const long v1 = step / 1000u;
    const long v2 = step % 1000u;
    const float v3 = m0[v1 + v2 * 700];
    const float v4 = v3 * 2.0f;
    m1[v1 * 1000 + v2] = v4;
  }
}
