/* Lesson 14: trains the digits with a shared object that plait compile made, on two threads at
 * once, each with a session of its own, and writes the weights for classify.cpp.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <digits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIXELS = 64, BATCH = 64, EPOCHS = 20, LEAVES = 13, WEIGHTS = 4, MOST_TEST = 512 };

/* Elements of the four arrays of weights. Adam's state is a count and two times as much again. */
static const int weight_size[WEIGHTS] = {64 * 32, 32, 32 * 10, 10};

static int size_of_leaf(int leaf) {
  return leaf == WEIGHTS ? 1 : weight_size[(leaf > WEIGHTS ? leaf - 1 : leaf) % WEIGHTS];
}

typedef struct {
  int count;
  float* images;
  int32_t* labels;
} Images;

typedef struct {
  Images train, test;
  float* leaves[LEAVES]; /* weights and state when it ends */
  float loss;
  double accuracy;
} Training;

static void fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, digits_message());
  exit(1);
}

static void* room(size_t bytes) {
  void* memory = malloc(bytes);
  if (!memory) fail("there is not enough memory");
  return memory;
}

static void add_image(Images* images, const float* image, int32_t label) {
  memcpy(images->images + (size_t)images->count * PIXELS, image, PIXELS * sizeof(float));
  images->labels[images->count++] = label;
}

/* Every fifth image is for testing. */
static void load(const char* path, Images* train, Images* test) {
  FILE* file = fopen(path, "rb");
  int32_t count = 0;
  if (!file || fread(&count, sizeof count, 1, file) != 1) {
    fprintf(stderr, "%s cannot be read\n", path);
    exit(1);
  }
  float* images = room((size_t)count * PIXELS * sizeof(float));
  int32_t* labels = room((size_t)count * sizeof(int32_t));
  if (fread(images, PIXELS * sizeof(float), (size_t)count, file) != (size_t)count ||
      fread(labels, sizeof(int32_t), (size_t)count, file) != (size_t)count) {
    fprintf(stderr, "%s is cut off\n", path);
    exit(1);
  }
  fclose(file);
  for (Images* images_of = train;; images_of = test) {
    images_of->count = 0;
    images_of->images = room((size_t)count * PIXELS * sizeof(float));
    images_of->labels = room((size_t)count * sizeof(int32_t));
    if (images_of == test) break;
  }
  for (int i = 0; i < count; ++i)
    add_image(i % 5 == 0 ? test : train, images + (size_t)i * PIXELS, labels[i]);
  free(images);
  free(labels);
}

static double accuracy_of(digits_session* session, float* const* leaves, const Images* test) {
  static const int most = MOST_TEST;
  const int n = test->count < most ? test->count : most;
  float* scores = room((size_t)n * 10 * sizeof(float));
  if (digits_predict(session, n, leaves[0], leaves[1], leaves[2], leaves[3], test->images, scores))
    fail("predict");
  int right = 0;
  for (int i = 0; i < n; ++i) {
    int best = 0;
    for (int k = 1; k < 10; ++k)
      if (scores[i * 10 + k] > scores[i * 10 + best]) best = k;
    right += best == test->labels[i];
  }
  free(scores);
  return 100.0 * right / n;
}

static void* train(void* argument) {
  Training* training = argument;
  digits_session* session;
  if (digits_open(&session)) fail("open");
  /* A step reads one set of buffers and writes the other one. */
  float* sets[2][LEAVES];
  for (int set = 0; set < 2; ++set)
    for (int leaf = 0; leaf < LEAVES; ++leaf)
      sets[set][leaf] = room((size_t)size_of_leaf(leaf) * sizeof(float));
  if (digits_call(session, DIGITS_ENTRY_INIT, NULL, NULL, (void* const*)sets[0])) fail("init");
  int now = 0;
  for (int epoch = 0; epoch < EPOCHS; ++epoch)
    for (int i = 0; i + BATCH <= training->train.count; i += BATCH, now = !now) {
      const void* inputs[LEAVES + 2];
      void* outputs[LEAVES + 1];
      for (int leaf = 0; leaf < LEAVES; ++leaf) {
        inputs[leaf] = sets[now][leaf];
        outputs[leaf] = sets[!now][leaf];
      }
      inputs[LEAVES] = training->train.images + (size_t)i * PIXELS;
      inputs[LEAVES + 1] = training->train.labels + i;
      outputs[LEAVES] = &training->loss;
      if (digits_call(session, DIGITS_ENTRY_TRAIN_STEP, NULL, inputs, outputs)) fail("train_step");
    }
  training->accuracy = accuracy_of(session, sets[now], &training->test);
  for (int leaf = 0; leaf < LEAVES; ++leaf) {
    training->leaves[leaf] = sets[now][leaf];
    free(sets[!now][leaf]);
  }
  digits_close(session);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: train digits.bin weights.bin\n");
    return 2;
  }
  Training trainings[2];
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) load(argv[1], &trainings[i].train, &trainings[i].test);
  for (int i = 0; i < 2; ++i)
    if (pthread_create(&threads[i], NULL, train, &trainings[i])) fail("no thread");
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  printf("in C:       loss %.3f, accuracy %.1f %%\n", trainings[0].loss, trainings[0].accuracy);

  int same = trainings[0].loss == trainings[1].loss;
  FILE* file = fopen(argv[2], "wb");
  for (int leaf = 0; leaf < LEAVES; ++leaf) {
    const size_t bytes = (size_t)size_of_leaf(leaf) * sizeof(float);
    same &= !memcmp(trainings[0].leaves[leaf], trainings[1].leaves[leaf], bytes);
    if (leaf < WEIGHTS && (!file || fwrite(trainings[0].leaves[leaf], bytes, 1, file) != 1))
      fail(argv[2]);
    for (int i = 0; i < 2; ++i) free(trainings[i].leaves[leaf]);
  }
  fclose(file);
  printf("two threads came to the same weights: %s\n", same ? "yes" : "no");
  for (int i = 0; i < 2; ++i) {
    free(trainings[i].train.images), free(trainings[i].train.labels);
    free(trainings[i].test.images), free(trainings[i].test.labels);
  }
  return !same;
}
