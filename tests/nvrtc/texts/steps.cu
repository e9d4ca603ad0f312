#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>

// 4096 steps, by threads
extern "C" __global__ void steps0_0(In<float> m0, Out<float> m1) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 4096u; step += gridDim.x * blockDim.x) {
    const long v11 = step;
    const float v22 = m0[v11];
    float v20 = v22;
    for (long v13 = 0; v13 < 50; ++v13) {
      const bool v15 = v20 > 0.5f;
      const float v16 = v20 * 0.25f;
      const float v17 = v20 + 0.125f;
      const float v18 = v15 ? v16 : v17;
      v20 = v18;
    }
    const float v21 = v20;
    m1[v11] = v21;
  }
}
