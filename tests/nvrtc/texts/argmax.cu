#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>
#include <plait/lanes.h>

// 4096 steps, by octets
extern "C" __global__ void argmax0_0(In<float> m0, Out<int> m1) {
  for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 8u; step < 4096u; step += gridDim.x * blockDim.x / 8u) {
    const long v1 = step;
    float part_of_v4 = -HUGE_VALF;
    #pragma unroll 8
    for (long v2 = threadIdx.x & 7u; v2 < 128; v2 += 8) {
      const float v3 = m0[v1 * 128 + v2];
      part_of_v4 = lax::max(part_of_v4, v3);
    }
    part_of_v4 = lax::max(part_of_v4, from_lane_after(part_of_v4, 4));
    part_of_v4 = lax::max(part_of_v4, from_lane_after(part_of_v4, 2));
    part_of_v4 = lax::max(part_of_v4, from_lane_after(part_of_v4, 1));
    const float v4 = from_first_lane(part_of_v4);
    long part_of_v14 = 9223372036854775807L;
    #pragma unroll 8
    for (long v7 = threadIdx.x & 7u; v7 < 128; v7 += 8) {
      const float v8 = m0[v1 * 128 + v7];
      const bool v10 = v8 == v4;
      const bool v11 = v8 != v8;
      const bool v12 = v10 | v11;
      const long v13 = v12 ? v7 : 9223372036854775807L;
      part_of_v14 = lax::min(part_of_v14, v13);
    }
    part_of_v14 = lax::min(part_of_v14, from_lane_after(part_of_v14, 4));
    part_of_v14 = lax::min(part_of_v14, from_lane_after(part_of_v14, 2));
    part_of_v14 = lax::min(part_of_v14, from_lane_after(part_of_v14, 1));
    const long v14 = from_first_lane(part_of_v14);
    const int v17 = int(v14);
    if ((threadIdx.x & 7u) == 0) m1[v1] = v17;
  }
}
