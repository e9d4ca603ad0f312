#define PLAIT_NO_COMPLEX
#include <plait/kernel.h>

// 4096 steps, by threads
extern "C" __global__ void mean_and_variance0_0(In<float> m0, Out<float> m1) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 4096u; step += gridDim.x * blockDim.x) {
    const long v1 = step / 64u;
    const long v2 = step % 64u;
    float v5 = 0.0f;
    for (long v3 = 0; v3 < 64; ++v3) {
      const float v4 = m0[v1 * 4096 + v2 + v3 * 64];
      v5 = v5 + v4;
    }
    m1[v1 * 64 + v2] = v5;
  }
}

// 2048 steps, by threads
extern "C" __global__ void mean_and_variance0_1(Out<float> m1, Out<float> m2) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 2048u; step += gridDim.x * blockDim.x) {
    const long v6 = step / 64u;
    const long v7 = step % 64u;
    const float v8 = m1[v6 * 128 + v7];
    const float v9 = m1[v6 * 128 + v7 + 64];
    const float v10 = v8 + v9;
    m2[v6 * 64 + v7] = v10;
  }
}

// 1024 steps, by threads
extern "C" __global__ void mean_and_variance0_2(Out<float> m2, Out<float> m3) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 1024u; step += gridDim.x * blockDim.x) {
    const long v11 = step / 64u;
    const long v12 = step % 64u;
    const float v13 = m2[v11 * 128 + v12];
    const float v14 = m2[v11 * 128 + v12 + 64];
    const float v15 = v13 + v14;
    m3[v11 * 64 + v12] = v15;
  }
}

// 64 steps, by threads
extern "C" __global__ void mean_and_variance0_3(Out<float> m3, Out<float> m4) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 64u; step += gridDim.x * blockDim.x) {
    const long v17 = step;
    const float v18 = m3[v17];
    const float v19 = m3[v17 + 64];
    const float v20 = m3[v17 + 128];
    const float v21 = m3[v17 + 192];
    const float v22 = m3[v17 + 256];
    const float v23 = m3[v17 + 320];
    const float v24 = m3[v17 + 384];
    const float v25 = m3[v17 + 448];
    const float v26 = m3[v17 + 512];
    const float v27 = m3[v17 + 576];
    const float v28 = m3[v17 + 640];
    const float v29 = m3[v17 + 704];
    const float v30 = m3[v17 + 768];
    const float v31 = m3[v17 + 832];
    const float v32 = m3[v17 + 896];
    const float v33 = m3[v17 + 960];
    const float v34 = v18 + v19;
    const float v35 = v20 + v21;
    const float v36 = v34 + v35;
    const float v37 = v22 + v23;
    const float v38 = v24 + v25;
    const float v39 = v37 + v38;
    const float v40 = v36 + v39;
    const float v41 = v26 + v27;
    const float v42 = v28 + v29;
    const float v43 = v41 + v42;
    const float v44 = v30 + v31;
    const float v45 = v32 + v33;
    const float v46 = v44 + v45;
    const float v47 = v43 + v46;
    const float v48 = v40 + v47;
    const float v49 = v48 / 4096.0f;
    m4[v17] = v49;
  }
}

// 4096 steps, by threads
extern "C" __global__ void mean_and_variance1_0(In<float> m0, In<float> m1, Out<float> m2) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 4096u; step += gridDim.x * blockDim.x) {
    const long v1 = step / 64u;
    const long v2 = step % 64u;
    const float v5 = m1[v2];
    float v8 = 0.0f;
    for (long v3 = 0; v3 < 64; ++v3) {
      const float v4 = m0[v1 * 4096 + v2 + v3 * 64];
      const float v6 = v4 - v5;
      const float v7 = v6 * v6;
      v8 = v8 + v7;
    }
    m2[v1 * 64 + v2] = v8;
  }
}

// 2048 steps, by threads
extern "C" __global__ void mean_and_variance1_1(Out<float> m2, Out<float> m3) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 2048u; step += gridDim.x * blockDim.x) {
    const long v9 = step / 64u;
    const long v10 = step % 64u;
    const float v11 = m2[v9 * 128 + v10];
    const float v12 = m2[v9 * 128 + v10 + 64];
    const float v13 = v11 + v12;
    m3[v9 * 64 + v10] = v13;
  }
}

// 1024 steps, by threads
extern "C" __global__ void mean_and_variance1_2(Out<float> m3, Out<float> m4) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 1024u; step += gridDim.x * blockDim.x) {
    const long v14 = step / 64u;
    const long v15 = step % 64u;
    const float v16 = m3[v14 * 128 + v15];
    const float v17 = m3[v14 * 128 + v15 + 64];
    const float v18 = v16 + v17;
    m4[v14 * 64 + v15] = v18;
  }
}

// 64 steps, by threads
extern "C" __global__ void mean_and_variance1_3(Out<float> m4, Out<float> m5) {
  for (unsigned step = blockIdx.x * blockDim.x + threadIdx.x; step < 64u; step += gridDim.x * blockDim.x) {
    const long v20 = step;
    const float v21 = m4[v20];
    const float v22 = m4[v20 + 64];
    const float v23 = m4[v20 + 128];
    const float v24 = m4[v20 + 192];
    const float v25 = m4[v20 + 256];
    const float v26 = m4[v20 + 320];
    const float v27 = m4[v20 + 384];
    const float v28 = m4[v20 + 448];
    const float v29 = m4[v20 + 512];
    const float v30 = m4[v20 + 576];
    const float v31 = m4[v20 + 640];
    const float v32 = m4[v20 + 704];
    const float v33 = m4[v20 + 768];
    const float v34 = m4[v20 + 832];
    const float v35 = m4[v20 + 896];
    const float v36 = m4[v20 + 960];
    const float v37 = v21 + v22;
    const float v38 = v23 + v24;
    const float v39 = v37 + v38;
    const float v40 = v25 + v26;
    const float v41 = v27 + v28;
    const float v42 = v40 + v41;
    const float v43 = v39 + v42;
    const float v44 = v29 + v30;
    const float v45 = v31 + v32;
    const float v46 = v44 + v45;
    const float v47 = v33 + v34;
    const float v48 = v35 + v36;
    const float v49 = v47 + v48;
    const float v50 = v46 + v49;
    const float v51 = v43 + v50;
    const float v52 = v51 / 4096.0f;
    m5[v20] = v52;
  }
}
