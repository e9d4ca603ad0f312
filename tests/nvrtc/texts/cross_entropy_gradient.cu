#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>
#include <plait/lanes.h>

// 2048 steps, by threads
extern "C" __global__ void cross_entropy_gradient0_0(In<int> m0, Out<int> failed, Failure* failure, int call_step) {
  const Word word{failed, 1, failure, call_step};
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 2048u; step += gridDim.x * blockDim.x) {
    const long v4 = step;
    const int v5 = m0[v4];
    const bool v6 = v5 < 0;
    const int v7 = lax::add(v5, 1000);
    const int v8 = v6 ? v7 : v5;
    const long v9 = long(v8);
    if (v9 < 0 || v9 > 999) {
      fail(word, 1, v9, long(step));
      continue;
    }
  }
}

// 2048000 steps, by threads
extern "C" __global__ void cross_entropy_gradient0_1(In<int> m0, Out<float> m1, Out<float> m2, Out<int> failed) {
  if (has_failed_before(failed, 2)) return;
  if (begins_fours(m1) && begins_fours(m2)) {
    for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 512000u; step += gridDim.x * blockDim.x) {
      const long v10 = step / 250u;
      const long v11 = long(step % 250u) * 4;
      const int v12 = m0[v10];
      const bool v13 = v12 < 0;
      const int v14 = lax::add(v12, 1000);
      const int v15 = v13 ? v14 : v12;
      const long v16 = long(v15);
      const long v17 = long(v16);
      const float v19 = 0.0f + -0.00048828125f;
      Four<float> four9;
      Four<float> four11;
      const long first_v11 = v11;
      #pragma unroll
      for (int lane = 0; lane < 4; ++lane) {
        const long v11 = first_v11 + lane;
        const bool v18 = v11 == v17;
        const float v20 = v18 ? v19 : 0.0f;
        four9.at[lane] = v20;
        const float v31 = -v20;
        four11.at[lane] = v31;
      }
      store4(m1, v10 * 1000 + v11, four9);
      store4(m2, v10 * 1000 + v11, four11);
    }
    return;
  }
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 2048000u; step += gridDim.x * blockDim.x) {
    const long v10 = step / 1000u;
    const long v11 = step % 1000u;
    const int v12 = m0[v10];
    const bool v13 = v12 < 0;
    const int v14 = lax::add(v12, 1000);
    const int v15 = v13 ? v14 : v12;
    const long v16 = long(v15);
    const long v17 = long(v16);
    const bool v18 = v11 == v17;
    const float v19 = 0.0f + -0.00048828125f;
    const float v20 = v18 ? v19 : 0.0f;
    m1[v10 * 1000 + v11] = v20;
    const float v31 = -v20;
    m2[v10 * 1000 + v11] = v31;
  }
}

// 2048 steps, by blocks
extern "C" __global__ void cross_entropy_gradient1_0(In<float> m0, In<float> m1, In<float> m2, Out<float> m3) {
  SHARED(float, row_m1, 1000);
  SHARED(float, terms_float, 1000);
  SHARED(float, total_float, 1);
  for (unsigned step = blockIdx.x; step < 2048u; step += gridDim.x) {
    const long v1 = step;
    __syncthreads();
    for (long i = threadIdx.x; i < 1000; i += blockDim.x) {
      row_m1[i] = m1[v1 * 1000 + i];
    }
    __syncthreads();
    for (long v2 = threadIdx.x; v2 < 1000; v2 += blockDim.x) {
      const float v3 = m0[v1 * 1000 + v2];
      terms_float[v2] = v3;
    }
    __syncthreads();
    if (threadIdx.x < 8) {
      float part_of_v4 = 0.0f;
      #pragma unroll 8
      for (long i = threadIdx.x; i < 1000; i += 8) {
        const float term1 = terms_float[i];
        part_of_v4 = part_of_v4 + term1;
      }
      part_of_v4 = part_of_v4 + from_lane_after(part_of_v4, 4);
      part_of_v4 = part_of_v4 + from_lane_after(part_of_v4, 2);
      part_of_v4 = part_of_v4 + from_lane_after(part_of_v4, 1);
      if (threadIdx.x == 0) total_float[0] = part_of_v4;
    }
    __syncthreads();
    const float v4 = total_float[0];
    __syncthreads();
    if (threadIdx.x < 8) {
      float part_of_v9 = -HUGE_VALF;
      #pragma unroll 8
      for (long v7 = threadIdx.x & 7u; v7 < 1000; v7 += 8) {
        const float v8 = row_m1[v7];
        part_of_v9 = lax::max(part_of_v9, v8);
      }
      part_of_v9 = lax::max(part_of_v9, from_lane_after(part_of_v9, 4));
      part_of_v9 = lax::max(part_of_v9, from_lane_after(part_of_v9, 2));
      part_of_v9 = lax::max(part_of_v9, from_lane_after(part_of_v9, 1));
      if (threadIdx.x == 0) total_float[0] = part_of_v9;
    }
    __syncthreads();
    const float v9 = total_float[0];
    for (long v11 = threadIdx.x; v11 < 1000; v11 += blockDim.x) {
      const float v12 = row_m1[v11];
      const float v14 = v12 - v9;
      const float v15 = lax::exp(v14);
      terms_float[v11] = v15;
    }
    __syncthreads();
    if (threadIdx.x < 8) {
      float part_of_v16 = 0.0f;
      #pragma unroll 8
      for (long i = threadIdx.x; i < 1000; i += 8) {
        const float term1 = terms_float[i];
        part_of_v16 = part_of_v16 + term1;
      }
      part_of_v16 = part_of_v16 + from_lane_after(part_of_v16, 4);
      part_of_v16 = part_of_v16 + from_lane_after(part_of_v16, 2);
      part_of_v16 = part_of_v16 + from_lane_after(part_of_v16, 1);
      if (threadIdx.x == 0) total_float[0] = part_of_v16;
    }
    __syncthreads();
    const float v16 = total_float[0];
    const float v19 = lax::log(v16);
    for (long v21 = threadIdx.x; v21 < 1000; v21 += blockDim.x) {
      const float v22 = m2[v1 * 1000 + v21];
      const float v24 = row_m1[v21];
      const float v26 = v24 - v9;
      const float v28 = v26 - v19;
      const float v29 = lax::exp(v28);
      const float v30 = v4 * v29;
      const float v31 = v22 + v30;
      m3[v1 * 1000 + v21] = v31;
    }
  }
}
