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

// 2048 steps, by warps
extern "C" __global__ void cross_entropy_gradient1_0(In<float> m0, In<float> m1, In<float> m2, Out<float> m3) {
  const auto run = [&](auto way) {
    constexpr bool in_fours = decltype(way)::value;
    for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 32u; step < 2048u; step += gridDim.x * blockDim.x / 32u) {
      const long v1 = step;
      Four<float> row_m1[8];
      #pragma unroll (in_fours ? 8 : 1)
      for (int turn = 0; turn < 8; ++turn) {
        row_m1[turn] = Lanes<32, in_fours>::load(m1, v1 * 1000, turn, 1000);
      }
      float parts_of_v4[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      #pragma unroll (in_fours ? 8 : 1)
      for (int turn = 0; turn < 8; ++turn) {
        const Four<float> four_v3 = Lanes<32, in_fours>::load(m0, v1 * 1000, turn, 1000);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (!Lanes<32, in_fours>::has(turn, k, 1000)) continue;
          const float v3 = four_v3.at[k];
          parts_of_v4[k] = parts_of_v4[k] + v3;
        }
      }
      const float v4 = Lanes<32, in_fours>::joined(parts_of_v4, [](float a, float b) { return a + b; });
      float parts_of_v9[4] = {-HUGE_VALF, -HUGE_VALF, -HUGE_VALF, -HUGE_VALF};
      #pragma unroll (in_fours ? 8 : 1)
      for (int turn = 0; turn < 8; ++turn) {
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (!Lanes<32, in_fours>::has(turn, k, 1000)) continue;
          const float v8 = row_m1[turn].at[k];
          parts_of_v9[k] = lax::max(parts_of_v9[k], v8);
        }
      }
      const float v9 = Lanes<32, in_fours>::joined(parts_of_v9, [](float a, float b) { return lax::max(a, b); });
      float parts_of_v16[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      #pragma unroll (in_fours ? 8 : 1)
      for (int turn = 0; turn < 8; ++turn) {
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (!Lanes<32, in_fours>::has(turn, k, 1000)) continue;
          const float v12 = row_m1[turn].at[k];
          const float v14 = v12 - v9;
          const float v15 = lax::exp(v14);
          parts_of_v16[k] = parts_of_v16[k] + v15;
        }
      }
      const float v16 = Lanes<32, in_fours>::joined(parts_of_v16, [](float a, float b) { return a + b; });
      const float v19 = lax::log(v16);
      #pragma unroll (in_fours ? 8 : 1)
      for (int turn = 0; turn < 8; ++turn) {
        const Four<float> four_v22 = Lanes<32, in_fours>::load(m2, v1 * 1000, turn, 1000);
        Four<float> four_7;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          if (!Lanes<32, in_fours>::has(turn, k, 1000)) continue;
          const float v22 = four_v22.at[k];
          const float v24 = row_m1[turn].at[k];
          const float v26 = v24 - v9;
          const float v28 = v26 - v19;
          const float v29 = lax::exp(v28);
          const float v30 = v4 * v29;
          const float v31 = v22 + v30;
          four_7.at[k] = v31;
        }
        Lanes<32, in_fours>::store(m3, v1 * 1000, turn, 1000, four_7);
      }
    }
  };
  if (begins_fours(m0) && begins_fours(m1) && begins_fours(m2) && begins_fours(m3))
    run(InFours());
  else
    run(OneByOne());
}
