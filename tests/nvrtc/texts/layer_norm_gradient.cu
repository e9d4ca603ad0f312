#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/functions.h>
#include <plait/lanes.h>

// 8192 steps, by warps
extern "C" __global__ void layer_norm_gradient0_0(In<float> m0, In<float> m1, Out<float> m3, Out<float> m4) {
  const auto run = [&](auto way) {
    constexpr bool in_fours = decltype(way)::value;
    for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 32u; step < 8192u; step += gridDim.x * blockDim.x / 32u) {
      const long v1 = step;
      Four<float> row_m2[6];
      Four<float> row_m0[6];
      #pragma unroll (in_fours ? 6 : 1)
      for (int turn = 0; turn < 6; ++turn) {
        row_m0[turn] = Lanes<32, in_fours>::load(m0, v1 * 768, turn, 768);
      }
      float parts_of_v4[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      #pragma unroll (in_fours ? 6 : 1)
      for (int turn = 0; turn < 6; ++turn) {
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float v3 = row_m0[turn].at[k];
          parts_of_v4[k] = parts_of_v4[k] + v3;
        }
      }
      const float v4 = Lanes<32, in_fours>::joined(parts_of_v4, [](float a, float b) { return a + b; });
      const float v8 = v4 / 768.0f;
      float parts_of_v16[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      #pragma unroll (in_fours ? 6 : 1)
      for (int turn = 0; turn < 6; ++turn) {
        const Four<float> four_v11 = Lanes<32, in_fours>::load(m1, 0, turn, 768);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float v11 = four_v11.at[k];
          const float v12 = row_m0[turn].at[k];
          const float v14 = v12 - v8;
          const float v15 = v11 * v14;
          parts_of_v16[k] = parts_of_v16[k] + v15;
        }
      }
      const float v16 = Lanes<32, in_fours>::joined(parts_of_v16, [](float a, float b) { return a + b; });
      float parts_of_v23[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      #pragma unroll (in_fours ? 6 : 1)
      for (int turn = 0; turn < 6; ++turn) {
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float v19 = row_m0[turn].at[k];
          const float v21 = v19 - v8;
          const float v22 = v21 * v21;
          parts_of_v23[k] = parts_of_v23[k] + v22;
        }
      }
      const float v23 = Lanes<32, in_fours>::joined(parts_of_v23, [](float a, float b) { return a + b; });
      const float v27 = v23 / 768.0f;
      const float v28 = v27 + 1e-05f;
      const float v29 = lax::sqrt(v28);
      const float v33 = 1.0f / v29;
      const float v39 = v33 / v29;
      const float v40 = -v39;
      const float v41 = v16 * v40;
      const float v42 = v29 * 2.0f;
      const float v43 = v41 / v42;
      const float v44 = v43 / 768.0f;
      float parts_of_v61[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      #pragma unroll (in_fours ? 6 : 1)
      for (int turn = 0; turn < 6; ++turn) {
        const Four<float> four_v130 = Lanes<32, in_fours>::load(m1, 0, turn, 768);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float v126 = row_m0[turn].at[k];
          const float v127 = v126 - v8;
          const float v128 = v44 * v127;
          const float v129 = v128 + v128;
          const float v130 = four_v130.at[k];
          const float v131 = v130 * v33;
          const float v132 = v129 + v131;
          row_m2[turn].at[k] = v132;
          const float v60 = -v132;
          parts_of_v61[k] = parts_of_v61[k] + v60;
        }
      }
      const float v61 = Lanes<32, in_fours>::joined(parts_of_v61, [](float a, float b) { return a + b; });
      const float v64 = v61 / 768.0f;
      #pragma unroll (in_fours ? 6 : 1)
      for (int turn = 0; turn < 6; ++turn) {
        Four<float> four_2;
        Four<float> four_6;
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float v67 = row_m2[turn].at[k];
          const float v69 = v67 + v64;
          four_2.at[k] = v69;
          const float v72 = row_m0[turn].at[k];
          const float v74 = v72 - v8;
          const float v76 = v74 * v33;
          four_6.at[k] = v76;
        }
        Lanes<32, in_fours>::store(m3, v1 * 768, turn, 768, four_2);
        Lanes<32, in_fours>::store(m4, v1 * 768, turn, 768, four_6);
      }
    }
  };
  if (begins_fours(m0) && begins_fours(m1) && begins_fours(m3) && begins_fours(m4))
    run(InFours());
  else
    run(OneByOne());
}

// 98304 steps, by threads
extern "C" __global__ void layer_norm_gradient1_0(In<float> m0, Out<float> m1) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 98304u; step += gridDim.x * blockDim.x) {
    const long v1 = step / 768u;
    const long v2 = step % 768u;
    float v5 = 0.0f;
    for (long v3 = 0; v3 < 64; ++v3) {
      const float v4 = m0[v1 * 49152 + v2 + v3 * 768];
      v5 = v5 + v4;
    }
    m1[v1 * 768 + v2] = v5;
  }
}

// 49152 steps, by threads
extern "C" __global__ void layer_norm_gradient1_1(Out<float> m1, Out<float> m2) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 49152u; step += gridDim.x * blockDim.x) {
    const long v6 = step / 768u;
    const long v7 = step % 768u;
    const float v8 = m1[v6 * 1536 + v7];
    const float v9 = m1[v6 * 1536 + v7 + 768];
    const float v10 = v8 + v9;
    m2[v6 * 768 + v7] = v10;
  }
}

// 24576 steps, by threads
extern "C" __global__ void layer_norm_gradient1_2(Out<float> m2, Out<float> m3) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 24576u; step += gridDim.x * blockDim.x) {
    const long v11 = step / 768u;
    const long v12 = step % 768u;
    const float v13 = m2[v11 * 1536 + v12];
    const float v14 = m2[v11 * 1536 + v12 + 768];
    const float v15 = v13 + v14;
    m3[v11 * 768 + v12] = v15;
  }
}

// 12288 steps, by threads
extern "C" __global__ void layer_norm_gradient1_3(Out<float> m3, Out<float> m4) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 12288u; step += gridDim.x * blockDim.x) {
    const long v16 = step / 768u;
    const long v17 = step % 768u;
    const float v18 = m3[v16 * 1536 + v17];
    const float v19 = m3[v16 * 1536 + v17 + 768];
    const float v20 = v18 + v19;
    m4[v16 * 768 + v17] = v20;
  }
}

// 768 steps, by threads
extern "C" __global__ void layer_norm_gradient1_4(Out<float> m4, Out<float> m5) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 768u; step += gridDim.x * blockDim.x) {
    const long v21 = step;
    const float v22 = m4[v21];
    const float v23 = m4[v21 + 768];
    const float v24 = m4[v21 + 1536];
    const float v25 = m4[v21 + 2304];
    const float v26 = m4[v21 + 3072];
    const float v27 = m4[v21 + 3840];
    const float v28 = m4[v21 + 4608];
    const float v29 = m4[v21 + 5376];
    const float v30 = m4[v21 + 6144];
    const float v31 = m4[v21 + 6912];
    const float v32 = m4[v21 + 7680];
    const float v33 = m4[v21 + 8448];
    const float v34 = m4[v21 + 9216];
    const float v35 = m4[v21 + 9984];
    const float v36 = m4[v21 + 10752];
    const float v37 = m4[v21 + 11520];
    const float v38 = v22 + v23;
    const float v39 = v24 + v25;
    const float v40 = v38 + v39;
    const float v41 = v26 + v27;
    const float v42 = v28 + v29;
    const float v43 = v41 + v42;
    const float v44 = v40 + v43;
    const float v45 = v30 + v31;
    const float v46 = v32 + v33;
    const float v47 = v45 + v46;
    const float v48 = v34 + v35;
    const float v49 = v36 + v37;
    const float v50 = v48 + v49;
    const float v51 = v47 + v50;
    const float v52 = v44 + v51;
    m5[v21] = v52;
  }
}

// 6291456 steps, by threads
extern "C" __global__ void layer_norm_gradient2_0(Out<float> m0) {
  if (begins_fours(m0)) {
    for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 1572864u; step += gridDim.x * blockDim.x) {
      const long v2 = long(step) * 4;
      Four<float> four0;
      #pragma unroll
      for (int lane = 0; lane < 4; ++lane) {
        four0.at[lane] = 1.0f;
      }
      store4(m0, v2, four0);
    }
    return;
  }
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 6291456u; step += gridDim.x * blockDim.x) {
    const long v2 = step;
    m0[v2] = 1.0f;
  }
}

// 98304 steps, by threads
extern "C" __global__ void layer_norm_gradient3_0(In<float> m0, Out<float> m1) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 98304u; step += gridDim.x * blockDim.x) {
    const long v1 = step / 768u;
    const long v2 = step % 768u;
    float v5 = 0.0f;
    for (long v3 = 0; v3 < 64; ++v3) {
      const float v4 = m0[v1 * 49152 + v2 + v3 * 768];
      v5 = v5 + v4;
    }
    m1[v1 * 768 + v2] = v5;
  }
}

// 49152 steps, by threads
extern "C" __global__ void layer_norm_gradient3_1(Out<float> m1, Out<float> m2) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 49152u; step += gridDim.x * blockDim.x) {
    const long v6 = step / 768u;
    const long v7 = step % 768u;
    const float v8 = m1[v6 * 1536 + v7];
    const float v9 = m1[v6 * 1536 + v7 + 768];
    const float v10 = v8 + v9;
    m2[v6 * 768 + v7] = v10;
  }
}

// 24576 steps, by threads
extern "C" __global__ void layer_norm_gradient3_2(Out<float> m2, Out<float> m3) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 24576u; step += gridDim.x * blockDim.x) {
    const long v11 = step / 768u;
    const long v12 = step % 768u;
    const float v13 = m2[v11 * 1536 + v12];
    const float v14 = m2[v11 * 1536 + v12 + 768];
    const float v15 = v13 + v14;
    m3[v11 * 768 + v12] = v15;
  }
}

// 12288 steps, by threads
extern "C" __global__ void layer_norm_gradient3_3(Out<float> m3, Out<float> m4) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 12288u; step += gridDim.x * blockDim.x) {
    const long v16 = step / 768u;
    const long v17 = step % 768u;
    const float v18 = m3[v16 * 1536 + v17];
    const float v19 = m3[v16 * 1536 + v17 + 768];
    const float v20 = v18 + v19;
    m4[v16 * 768 + v17] = v20;
  }
}

// 768 steps, by threads
extern "C" __global__ void layer_norm_gradient3_4(Out<float> m4, Out<float> m5) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 768u; step += gridDim.x * blockDim.x) {
    const long v21 = step;
    const float v22 = m4[v21];
    const float v23 = m4[v21 + 768];
    const float v24 = m4[v21 + 1536];
    const float v25 = m4[v21 + 2304];
    const float v26 = m4[v21 + 3072];
    const float v27 = m4[v21 + 3840];
    const float v28 = m4[v21 + 4608];
    const float v29 = m4[v21 + 5376];
    const float v30 = m4[v21 + 6144];
    const float v31 = m4[v21 + 6912];
    const float v32 = m4[v21 + 7680];
    const float v33 = m4[v21 + 8448];
    const float v34 = m4[v21 + 9216];
    const float v35 = m4[v21 + 9984];
    const float v36 = m4[v21 + 10752];
    const float v37 = m4[v21 + 11520];
    const float v38 = v22 + v23;
    const float v39 = v24 + v25;
    const float v40 = v38 + v39;
    const float v41 = v26 + v27;
    const float v42 = v28 + v29;
    const float v43 = v41 + v42;
    const float v44 = v40 + v43;
    const float v45 = v30 + v31;
    const float v46 = v32 + v33;
    const float v47 = v45 + v46;
    const float v48 = v34 + v35;
    const float v49 = v36 + v37;
    const float v50 = v48 + v49;
    const float v51 = v47 + v50;
    const float v52 = v44 + v51;
    m5[v21] = v52;
  }
}
