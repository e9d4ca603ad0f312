#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>
#include <plait/lanes.h>

// 4096 steps, by warps
extern "C" __global__ void sum0_0(In<float> m0, Out<float> m1) {
  const auto run = [&](auto way) {
    constexpr bool in_fours = decltype(way)::value;
    for (unsigned step = (blockIdx.x * blockDim.x + threadIdx.x) / 32u; step < 4096u; step += gridDim.x * blockDim.x / 32u) {
      const long v1 = step;
      float parts_of_v4[4] = {0.0f, 0.0f, 0.0f, 0.0f};
      #pragma unroll (in_fours ? 8 : 1)
      for (int turn = 0; turn < 8; ++turn) {
        const Four<float> four_v3 = Lanes<32, in_fours>::load(m0, v1 * 1024, turn, 1024);
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float v3 = four_v3.at[k];
          parts_of_v4[k] = parts_of_v4[k] + v3;
        }
      }
      const float v4 = Lanes<32, in_fours>::joined(parts_of_v4, [](float a, float b) { return a + b; });
      if ((threadIdx.x & 31u) == 0) m1[v1] = v4;
    }
  };
  if (begins_fours(m0))
    run(InFours());
  else
    run(OneByOne());
}

// 2048 steps, by threads
extern "C" __global__ void sum0_1(Out<float> m1, Out<float> m2) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 2048u; step += gridDim.x * blockDim.x) {
    const long v5 = step;
    const float v6 = m1[v5 * 2];
    const float v7 = m1[v5 * 2 + 1];
    const float v8 = v6 + v7;
    m2[v5] = v8;
  }
}

// 1024 steps, by threads
extern "C" __global__ void sum0_2(Out<float> m2, Out<float> m3) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 1024u; step += gridDim.x * blockDim.x) {
    const long v9 = step;
    const float v10 = m2[v9 * 2];
    const float v11 = m2[v9 * 2 + 1];
    const float v12 = v10 + v11;
    m3[v9] = v12;
  }
}

// 512 steps, by threads
extern "C" __global__ void sum0_3(Out<float> m3, Out<float> m4) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 512u; step += gridDim.x * blockDim.x) {
    const long v13 = step;
    const float v14 = m3[v13 * 2];
    const float v15 = m3[v13 * 2 + 1];
    const float v16 = v14 + v15;
    m4[v13] = v16;
  }
}

// 256 steps, by threads
extern "C" __global__ void sum0_4(Out<float> m4, Out<float> m5) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 256u; step += gridDim.x * blockDim.x) {
    const long v17 = step;
    const float v18 = m4[v17 * 2];
    const float v19 = m4[v17 * 2 + 1];
    const float v20 = v18 + v19;
    m5[v17] = v20;
  }
}

// 128 steps, by threads
extern "C" __global__ void sum0_5(Out<float> m5, Out<float> m6) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 128u; step += gridDim.x * blockDim.x) {
    const long v21 = step;
    const float v22 = m5[v21 * 2];
    const float v23 = m5[v21 * 2 + 1];
    const float v24 = v22 + v23;
    m6[v21] = v24;
  }
}

// 64 steps, by threads
extern "C" __global__ void sum0_6(Out<float> m6, Out<float> m7) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 64u; step += gridDim.x * blockDim.x) {
    const long v25 = step;
    const float v26 = m6[v25 * 2];
    const float v27 = m6[v25 * 2 + 1];
    const float v28 = v26 + v27;
    m7[v25] = v28;
  }
}

// 32 steps, by threads
extern "C" __global__ void sum0_7(Out<float> m7, Out<float> m8) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 32u; step += gridDim.x * blockDim.x) {
    const long v29 = step;
    const float v30 = m7[v29 * 2];
    const float v31 = m7[v29 * 2 + 1];
    const float v32 = v30 + v31;
    m8[v29] = v32;
  }
}

// once
extern "C" __global__ void sum0_8(Out<float> m8, Out<float> m9) {
  const float v68 = m8[0];
  const float v69 = m8[1];
  const float v70 = v68 + v69;
  const float v71 = m8[2];
  const float v72 = m8[3];
  const float v73 = v71 + v72;
  const float v53 = v70 + v73;
  const float v74 = m8[4];
  const float v75 = m8[5];
  const float v76 = v74 + v75;
  const float v77 = m8[6];
  const float v78 = m8[7];
  const float v79 = v77 + v78;
  const float v54 = v76 + v79;
  const float v55 = v53 + v54;
  const float v80 = m8[8];
  const float v81 = m8[9];
  const float v82 = v80 + v81;
  const float v83 = m8[10];
  const float v84 = m8[11];
  const float v85 = v83 + v84;
  const float v56 = v82 + v85;
  const float v86 = m8[12];
  const float v87 = m8[13];
  const float v88 = v86 + v87;
  const float v89 = m8[14];
  const float v90 = m8[15];
  const float v91 = v89 + v90;
  const float v57 = v88 + v91;
  const float v58 = v56 + v57;
  const float v59 = v55 + v58;
  const float v92 = m8[16];
  const float v93 = m8[17];
  const float v94 = v92 + v93;
  const float v95 = m8[18];
  const float v96 = m8[19];
  const float v97 = v95 + v96;
  const float v60 = v94 + v97;
  const float v98 = m8[20];
  const float v99 = m8[21];
  const float v100 = v98 + v99;
  const float v101 = m8[22];
  const float v102 = m8[23];
  const float v103 = v101 + v102;
  const float v61 = v100 + v103;
  const float v62 = v60 + v61;
  const float v104 = m8[24];
  const float v105 = m8[25];
  const float v106 = v104 + v105;
  const float v107 = m8[26];
  const float v108 = m8[27];
  const float v109 = v107 + v108;
  const float v63 = v106 + v109;
  const float v110 = m8[28];
  const float v111 = m8[29];
  const float v112 = v110 + v111;
  const float v113 = m8[30];
  const float v114 = m8[31];
  const float v115 = v113 + v114;
  const float v64 = v112 + v115;
  const float v65 = v63 + v64;
  const float v66 = v62 + v65;
  const float v67 = v59 + v66;
  m9[0] = v67;
}
