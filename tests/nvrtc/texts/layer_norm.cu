#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>
#include <plait/lanes.h>

// 8192 steps, by blocks
extern "C" __global__ void layer_norm0_0(In<float> m0, In<float> m1, In<float> m2, Out<float> m3) {
  SHARED(float, row_m0, 768);
  SHARED(float, terms_float, 768);
  SHARED(float, total_float, 1);
  for (unsigned step = blockIdx.x; step < 8192u; step += gridDim.x) {
    const long v1 = step;
    __syncthreads();
    for (long i = threadIdx.x; i < 768; i += blockDim.x) {
      row_m0[i] = m0[v1 * 768 + i];
    }
    __syncthreads();
    __syncthreads();
    if (threadIdx.x < 8) {
      float part_of_v4 = 0.0f;
      #pragma unroll 8
      for (long v2 = threadIdx.x & 7u; v2 < 768; v2 += 8) {
        const float v3 = row_m0[v2];
        part_of_v4 = part_of_v4 + v3;
      }
      part_of_v4 = part_of_v4 + from_lane_after(part_of_v4, 4);
      part_of_v4 = part_of_v4 + from_lane_after(part_of_v4, 2);
      part_of_v4 = part_of_v4 + from_lane_after(part_of_v4, 1);
      if (threadIdx.x == 0) total_float[0] = part_of_v4;
    }
    __syncthreads();
    const float v4 = total_float[0];
    const float v8 = v4 / 768.0f;
    for (long v10 = threadIdx.x; v10 < 768; v10 += blockDim.x) {
      const float v11 = row_m0[v10];
      const float v13 = v11 - v8;
      const float v14 = v13 * v13;
      terms_float[v10] = v14;
    }
    __syncthreads();
    if (threadIdx.x < 8) {
      float part_of_v15 = 0.0f;
      #pragma unroll 8
      for (long i = threadIdx.x; i < 768; i += 8) {
        const float term1 = terms_float[i];
        part_of_v15 = part_of_v15 + term1;
      }
      part_of_v15 = part_of_v15 + from_lane_after(part_of_v15, 4);
      part_of_v15 = part_of_v15 + from_lane_after(part_of_v15, 2);
      part_of_v15 = part_of_v15 + from_lane_after(part_of_v15, 1);
      if (threadIdx.x == 0) total_float[0] = part_of_v15;
    }
    __syncthreads();
    const float v15 = total_float[0];
    const float v20 = v15 / 768.0f;
    const float v21 = v20 + 1e-05f;
    const float v22 = lax::sqrt(v21);
    const float v23 = 1.0f / v22;
    for (long v25 = threadIdx.x; v25 < 768; v25 += blockDim.x) {
      const float v26 = row_m0[v25];
      const float v28 = v26 - v8;
      const float v30 = v28 * v23;
      const float v31 = m1[v25];
      const float v32 = v30 * v31;
      const float v33 = m2[v25];
      const float v34 = v32 + v33;
      m3[v1 * 768 + v25] = v34;
    }
  }
}
