#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>
#include <plait/lanes.h>

// 4096 steps, by blocks
extern "C" __global__ void softmax_gradient0_0(In<float> m0, Out<float> m3) {
  SHARED(float, row_m0, 1000);
  SHARED(float, row_m1, 1000);
  SHARED(float, row_m2, 1000);
  SHARED(float, terms_float, 1000);
  SHARED(float, total_float, 1);
  for (unsigned step = blockIdx.x; step < 4096u; step += gridDim.x) {
    const long v1 = step;
    __syncthreads();
    for (long i = threadIdx.x; i < 1000; i += blockDim.x) {
      row_m0[i] = m0[v1 * 1000 + i];
    }
    __syncthreads();
    __syncthreads();
    if (threadIdx.x < 8) {
      float part_of_v4 = -HUGE_VALF;
      #pragma unroll 8
      for (long v2 = threadIdx.x & 7u; v2 < 1000; v2 += 8) {
        const float v3 = row_m0[v2];
        part_of_v4 = lax::max(part_of_v4, v3);
      }
      part_of_v4 = lax::max(part_of_v4, from_lane_after(part_of_v4, 4));
      part_of_v4 = lax::max(part_of_v4, from_lane_after(part_of_v4, 2));
      part_of_v4 = lax::max(part_of_v4, from_lane_after(part_of_v4, 1));
      if (threadIdx.x == 0) total_float[0] = part_of_v4;
    }
    __syncthreads();
    const float v4 = total_float[0];
    for (long v13 = threadIdx.x; v13 < 1000; v13 += blockDim.x) {
      const float v45 = row_m0[v13];
      const float v46 = v45 - v4;
      const float v47 = lax::exp(v46);
      row_m1[v13] = v47;
      terms_float[v13] = v47;
    }
    __syncthreads();
    if (threadIdx.x < 8) {
      float part_of_v15 = 0.0f;
      #pragma unroll 8
      for (long i = threadIdx.x; i < 1000; i += 8) {
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
    __syncthreads();
    for (long v23 = threadIdx.x; v23 < 1000; v23 += blockDim.x) {
      const float v48 = row_m1[v23];
      const float v49 = v48 / v15;
      row_m2[v23] = v49;
      const float v25 = -1.0f * v49;
      terms_float[v23] = v25;
    }
    __syncthreads();
    if (threadIdx.x < 8) {
      float part_of_v26 = 0.0f;
      #pragma unroll 8
      for (long i = threadIdx.x; i < 1000; i += 8) {
        const float term1 = terms_float[i];
        part_of_v26 = part_of_v26 + term1;
      }
      part_of_v26 = part_of_v26 + from_lane_after(part_of_v26, 4);
      part_of_v26 = part_of_v26 + from_lane_after(part_of_v26, 2);
      part_of_v26 = part_of_v26 + from_lane_after(part_of_v26, 1);
      if (threadIdx.x == 0) total_float[0] = part_of_v26;
    }
    __syncthreads();
    const float v26 = total_float[0];
    const float v31 = 1.0f + v26;
    __syncthreads();
    for (long v29 = threadIdx.x; v29 < 1000; v29 += blockDim.x) {
      const float v32 = row_m2[v29];
      const float v33 = v31 * v32;
      m3[v1 * 1000 + v29] = v33;
    }
  }
}
