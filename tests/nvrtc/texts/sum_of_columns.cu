#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>

// 65536 steps, by threads
extern "C" __global__ void sum_of_columns0_0(In<float> m0, Out<float> m1) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 65536u; step += gridDim.x * blockDim.x) {
    const long v1 = step / 512u;
    const long v2 = step % 512u;
    float v5 = 0.0f;
    for (long v3 = 0; v3 < 64; ++v3) {
      const float v4 = m0[v1 * 32768 + v2 + v3 * 512];
      v5 = v5 + v4;
    }
    m1[v1 * 512 + v2] = v5;
  }
}

// 32768 steps, by threads
extern "C" __global__ void sum_of_columns0_1(Out<float> m1, Out<float> m2) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 32768u; step += gridDim.x * blockDim.x) {
    const long v6 = step / 512u;
    const long v7 = step % 512u;
    const float v8 = m1[v6 * 1024 + v7];
    const float v9 = m1[v6 * 1024 + v7 + 512];
    const float v10 = v8 + v9;
    m2[v6 * 512 + v7] = v10;
  }
}

// 16384 steps, by threads
extern "C" __global__ void sum_of_columns0_2(Out<float> m2, Out<float> m3) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 16384u; step += gridDim.x * blockDim.x) {
    const long v11 = step / 512u;
    const long v12 = step % 512u;
    const float v13 = m2[v11 * 1024 + v12];
    const float v14 = m2[v11 * 1024 + v12 + 512];
    const float v15 = v13 + v14;
    m3[v11 * 512 + v12] = v15;
  }
}

// 8192 steps, by threads
extern "C" __global__ void sum_of_columns0_3(Out<float> m3, Out<float> m4) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 8192u; step += gridDim.x * blockDim.x) {
    const long v16 = step / 512u;
    const long v17 = step % 512u;
    const float v18 = m3[v16 * 1024 + v17];
    const float v19 = m3[v16 * 1024 + v17 + 512];
    const float v20 = v18 + v19;
    m4[v16 * 512 + v17] = v20;
  }
}

// 512 steps, by threads
extern "C" __global__ void sum_of_columns0_4(Out<float> m4, Out<float> m5) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 512u; step += gridDim.x * blockDim.x) {
    const long v21 = step;
    const float v22 = m4[v21];
    const float v23 = m4[v21 + 512];
    const float v24 = m4[v21 + 1024];
    const float v25 = m4[v21 + 1536];
    const float v26 = m4[v21 + 2048];
    const float v27 = m4[v21 + 2560];
    const float v28 = m4[v21 + 3072];
    const float v29 = m4[v21 + 3584];
    const float v30 = m4[v21 + 4096];
    const float v31 = m4[v21 + 4608];
    const float v32 = m4[v21 + 5120];
    const float v33 = m4[v21 + 5632];
    const float v34 = m4[v21 + 6144];
    const float v35 = m4[v21 + 6656];
    const float v36 = m4[v21 + 7168];
    const float v37 = m4[v21 + 7680];
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
