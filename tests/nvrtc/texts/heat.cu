#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/lanes.h>

// 1048576 steps, by threads
extern "C" __global__ void heat0_0(In<float> m0, Out<float> m1) {
  if (begins_fours(m0) && begins_fours(m1)) {
    for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 262144u; step += gridDim.x * blockDim.x) {
      const long v28 = long(step) * 4;
      const Four<float> four0 = load4(m0, v28);
      Four<float> four1;
      #pragma unroll
      for (int lane = 0; lane < 4; ++lane) {
        const float v27 = four0.at[lane];
        four1.at[lane] = v27;
      }
      store4(m1, v28, four1);
    }
    return;
  }
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 1048576u; step += gridDim.x * blockDim.x) {
    const long v28 = step;
    const float v27 = m0[v28];
    m1[v28] = v27;
  }
}

// once, by all blocks
extern "C" __global__ void heat0_1(InOut<float> m1, InOut<float> m2, Grid* grid) {
  const long thread = (long)blockIdx.x * blockDim.x + threadIdx.x, threads = (long)gridDim.x * blockDim.x;
  bool is_swapped_m1_0 = false;
  for (long v0 = 0; v0 < 1000; ++v0) {
    const float v1 = m1[1048575];
    const float v2 = m1[0];
    const float v5 = m1[1];
    const float v6 = v1 + v5;
    const float v7 = v2 * 2.0f;
    const float v8 = v6 - v7;
    const float v9 = v8 * 0.1f;
    const float v10 = v2 + v9;
    if (thread == 0) m2[0] = v10;
    for (long v11 = thread; v11 < 1048574; v11 += threads) {
      const float v12 = m1[v11 + 1];
      const float v13 = m1[v11];
      const float v14 = m1[v11 + 2];
      const float v15 = v13 + v14;
      const float v16 = v12 * 2.0f;
      const float v17 = v15 - v16;
      const float v18 = v17 * 0.1f;
      const float v19 = v12 + v18;
      m2[v11 + 1] = v19;
    }
    const float v21 = m1[1048574];
    const float v22 = v21 + v2;
    const float v23 = v1 * 2.0f;
    const float v24 = v22 - v23;
    const float v25 = v24 * 0.1f;
    const float v26 = v1 + v25;
    if (thread == 0) m2[1048575] = v26;
    sync_grid(grid);
    swap(m1, m2);
    is_swapped_m1_0 = !is_swapped_m1_0;
  }
  if (is_swapped_m1_0) {
    swap(m1, m2);
    for (long i0 = thread; i0 < 1048576; i0 += threads) {
      const float held = m1[(i0)];
      m1[(i0)] = m2[(i0)];
      m2[(i0)] = held;
    }
  }
}
