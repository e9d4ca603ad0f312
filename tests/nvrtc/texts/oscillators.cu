#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>

// 100000 steps, by threads
extern "C" __global__ void oscillators0_0(In<float> m0, In<float> m1, In<float> m2, Out<float> m3, Out<float> m4) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 100000u; step += gridDim.x * blockDim.x) {
    const long v18 = step;
    const float v43 = m0[v18];
    const float v44 = m1[v18];
    const float v45 = m2[v18];
    float v39 = v43;
    float v41 = v44;
    for (long v22 = 0; v22 < 200; ++v22) {
      const float v26 = v45 * v39;
      const float v27 = v26 * 0.005f;
      const float v28 = v41 - v27;
      const float v29 = v28 * 0.01f;
      const float v30 = v39 + v29;
      const float v31 = v41 * 0.005f;
      const float v32 = v39 + v31;
      const float v33 = v45 * v32;
      const float v34 = v33 * 0.01f;
      const float v35 = v41 - v34;
      v39 = v30;
      v41 = v35;
    }
    const float v40 = v39;
    const float v42 = v41;
    m3[v18] = v40;
    m4[v18] = v42;
  }
}
