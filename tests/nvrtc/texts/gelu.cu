#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>

// 1572864 steps, by threads
extern "C" __global__ void gelu0_0(In<float> m0, In<float> m1, Out<float> m2) {
  if (begins_fours(m0) && begins_fours(m1) && begins_fours(m2)) {
    for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 393216u; step += gridDim.x * blockDim.x) {
      const long v5 = step / 768u;
      const long v6 = long(step % 768u) * 4;
      const Four<float> four0 = load4(m0, v5 * 3072 + v6);
      const Four<float> four2 = load4(m1, v6);
      Four<float> four13;
      #pragma unroll
      for (int lane = 0; lane < 4; ++lane) {
        const float v7 = four0.at[lane];
        const float v8 = v7 * 2.0f;
        const float v9 = four2.at[lane];
        const float v10 = v8 + v9;
        const float v11 = v10 * v10;
        const float v12 = v11 * v10;
        const float v13 = 0.044715f * v12;
        const float v14 = v10 + v13;
        const float v15 = 0.7978846f * v14;
        const float v16 = lax::tanh(v15);
        const float v17 = 1.0f + v16;
        const float v18 = 0.5f * v17;
        const float v19 = v10 * v18;
        four13.at[lane] = v19;
      }
      store4(m2, v5 * 3072 + v6, four13);
    }
    return;
  }
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 1572864u; step += gridDim.x * blockDim.x) {
    const long v5 = step / 3072u;
    const long v6 = step % 3072u;
    const float v7 = m0[v5 * 3072 + v6];
    const float v8 = v7 * 2.0f;
    const float v9 = m1[v6];
    const float v10 = v8 + v9;
    const float v11 = v10 * v10;
    const float v12 = v11 * v10;
    const float v13 = 0.044715f * v12;
    const float v14 = v10 + v13;
    const float v15 = 0.7978846f * v14;
    const float v16 = lax::tanh(v15);
    const float v17 = 1.0f + v16;
    const float v18 = 0.5f * v17;
    const float v19 = v10 * v18;
    m2[v5 * 3072 + v6] = v19;
  }
}
