#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>
#include <plait/lanes.h>

// 1024 steps, by blocks
extern "C" __global__ void matrix_vector0_0(In<float> m0, In<float> m1, Out<float> m2) {
  SHARED(float, terms_float, 1536);
  SHARED(float, total_float, 1);
  for (unsigned step = blockIdx.x; step < 1024u; step += gridDim.x) {
    const long v0 = step;
    for (long v2 = threadIdx.x; v2 < 768; v2 += blockDim.x) {
      const float v3 = m0[v0 * 768 + v2];
      const float v4 = m1[v2];
      terms_float[v2] = v3;
      terms_float[768 + v2] = v4;
    }
    __syncthreads();
    if (threadIdx.x < 8) {
      float part_of_v5 = 0.0f;
      #pragma unroll 8
      for (long i = threadIdx.x; i < 768; i += 8) {
        const float term1 = terms_float[i];
        const float term2 = terms_float[768 + i];
        part_of_v5 = lax::fma(term1, term2, part_of_v5);
      }
      part_of_v5 = part_of_v5 + from_lane_after(part_of_v5, 4);
      part_of_v5 = part_of_v5 + from_lane_after(part_of_v5, 2);
      part_of_v5 = part_of_v5 + from_lane_after(part_of_v5, 1);
      if (threadIdx.x == 0) total_float[0] = part_of_v5;
    }
    __syncthreads();
    const float v5 = total_float[0];
    if (threadIdx.x == 0) m2[v0] = v5;
  }
}
