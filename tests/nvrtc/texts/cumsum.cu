#include <plait/kernel.h>

#include <plait/functions.h>
#include <plait/lanes.h>

// 9216 steps, by octets
extern "C" __global__ void cumsum0_0(In<float> m0, Out<float> m2) {
  for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 8u; step < 9216u; step += gridDim.x * blockDim.x / 8u) {
    const long v1 = step / 9u;
    const long v2 = step % 9u;
    float part_of_v5 = -0.0f;
    for (long v3 = threadIdx.x & 7u; v3 < 32; v3 += 8) {
      const float v4 = m0[v1 * 300 + v2 * 32 + v3];
      part_of_v5 = part_of_v5 + v4;
    }
    part_of_v5 = part_of_v5 + from_lane_after(part_of_v5, 4);
    part_of_v5 = part_of_v5 + from_lane_after(part_of_v5, 2);
    part_of_v5 = part_of_v5 + from_lane_after(part_of_v5, 1);
    const float v5 = from_first_lane(part_of_v5);
    if ((threadIdx.x & 7u) == 0) m2[v1 * 9 + v2] = v5;
  }
}

// 9216 steps, by threads
extern "C" __global__ void cumsum0_1(Out<float> m2, Out<float> m3) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 9216u; step += gridDim.x * blockDim.x) {
    const long v1 = step / 9u;
    const long v7 = step % 9u;
    float parts_of_v17[8];
    #pragma unroll
    for (long part0 = 0; part0 < 8; ++part0) parts_of_v17[part0] = -0.0f;
    for (long first1 = 0; first1 < 8; first1 += 8) {
      #pragma unroll
      for (long part0 = 0; part0 < 8; ++part0) {
        const long v10 = first1 + part0;
        const long v12 = 0L + v10;
        const long v13 = lax::min(v12, 8L);
        const float v14 = m2[v1 * 9 + v13];
        const bool v15 = v10 <= v7;
        const float v16 = v15 ? v14 : -0.0f;
        parts_of_v17[part0] = parts_of_v17[part0] + v16;
      }
    }
    #pragma unroll
    for (long part0 = 0; part0 < 1; ++part0) {
      const long v10 = 8 + part0;
      const long v12 = 0L + v10;
      const long v13 = lax::min(v12, 8L);
      const float v14 = m2[v1 * 9 + v13];
      const bool v15 = v10 <= v7;
      const float v16 = v15 ? v14 : -0.0f;
      parts_of_v17[part0] = parts_of_v17[part0] + v16;
    }
    parts_of_v17[0] = parts_of_v17[0] + parts_of_v17[4];
    parts_of_v17[1] = parts_of_v17[1] + parts_of_v17[5];
    parts_of_v17[2] = parts_of_v17[2] + parts_of_v17[6];
    parts_of_v17[3] = parts_of_v17[3] + parts_of_v17[7];
    parts_of_v17[0] = parts_of_v17[0] + parts_of_v17[2];
    parts_of_v17[1] = parts_of_v17[1] + parts_of_v17[3];
    parts_of_v17[0] = parts_of_v17[0] + parts_of_v17[1];
    const float v17 = parts_of_v17[0];
    m3[v1 * 9 + v7] = v17;
  }
}

// 307200 steps, by octets
extern "C" __global__ void cumsum0_2(In<float> m0, Out<float> m1, Out<float> m3) {
  for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 8u; step < 307200u; step += gridDim.x * blockDim.x / 8u) {
    const long v1 = step / 300u;
    const long v19 = step % 300u;
    const long v20 = lax::div(v19, 32L);
    const long v21 = lax::rem(v19, 32L);
    const long v24 = v20 * 32L;
    float part_of_v30 = -0.0f;
    for (long v22 = threadIdx.x & 7u; v22 < 32; v22 += 8) {
      const long v25 = v24 + v22;
      const long v26 = lax::min(v25, 299L);
      const float v27 = m0[v1 * 300 + v26];
      const bool v28 = v22 <= v21;
      const float v29 = v28 ? v27 : -0.0f;
      part_of_v30 = part_of_v30 + v29;
    }
    part_of_v30 = part_of_v30 + from_lane_after(part_of_v30, 4);
    part_of_v30 = part_of_v30 + from_lane_after(part_of_v30, 2);
    part_of_v30 = part_of_v30 + from_lane_after(part_of_v30, 1);
    const float v30 = from_first_lane(part_of_v30);
    const long v32 = v20 - 1L;
    const long v33 = lax::max(v32, 0L);
    const float v34 = m3[v1 * 9 + v33];
    const bool v35 = v20 > 0L;
    const float v36 = v35 ? v34 : -0.0f;
    const float v37 = v30 + v36;
    if ((threadIdx.x & 7u) == 0) m1[v1 * 300 + v19] = v37;
  }
}
