#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>

// 1048576 steps, by threads
extern "C" __global__ void chain0_0(In<float> m0, In<float> m1, Out<float> m2) {
  if (begins_fours(m0) && begins_fours(m1) && begins_fours(m2)) {
    for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 262144u; step += gridDim.x * blockDim.x) {
      const long v0 = long(step) * 4;
      const Four<float> four0 = load4(m0, v0);
      const Four<float> four1 = load4(m1, v0);
      Four<float> four7;
      #pragma unroll
      for (int lane = 0; lane < 4; ++lane) {
        const float v1 = four0.at[lane];
        const float v2 = four1.at[lane];
        const float v3 = v1 * v2;
        const float v4 = lax::tanh(v3);
        const float v5 = -v1;
        const float v6 = lax::exp(v5);
        const float v7 = v4 + v6;
        four7.at[lane] = v7;
      }
      store4(m2, v0, four7);
    }
    return;
  }
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
