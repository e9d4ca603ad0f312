// Lesson 14: classifies digits in C++ with the weights that train.c wrote, some at a time: the
// number of images is a named size of the program.
// SPDX-License-Identifier: Apache-2.0
#include <digits.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <vector>

struct Close {
  void operator()(digits_session* session) const { digits_close(session); }
};
using Session = std::unique_ptr<digits_session, Close>;

void check(int code) {
  if (code != DIGITS_OK) throw std::runtime_error(digits_message());
}

Session open() {
  digits_session* session = nullptr;
  check(digits_open(&session));
  return Session(session);
}

std::vector<float> read(std::istream& file, std::size_t count) {
  std::vector<float> numbers(count);
  if (!file.read(reinterpret_cast<char*>(numbers.data()), std::streamsize(count * sizeof(float))))
    throw std::runtime_error("a file is cut off");
  return numbers;
}

int main(int, char** argv) try {
  std::ifstream data(argv[1], std::ios::binary), trained(argv[2], std::ios::binary);
  data.ignore(sizeof(std::int32_t));
  const std::vector<float> images = read(data, 9 * 64);
  const std::array weights = {read(trained, 64 * 32), read(trained, 32), read(trained, 32 * 10),
                              read(trained, 10)};
  const Session session = open();
  std::printf("in C++:    ");
  for (std::int64_t n : {1, 3, 5}) {
    std::vector<float> scores(std::size_t(n * 10));
    const std::int64_t first = n == 1 ? 0 : n == 3 ? 1 : 4;
    check(digits_predict(session.get(), n, weights[0].data(), weights[1].data(), weights[2].data(),
                         weights[3].data(), images.data() + first * 64, scores.data()));
    for (std::int64_t i = 0; i < n; ++i) {
      const float* row = scores.data() + i * 10;
      std::printf(" %d", int(std::max_element(row, row + 10) - row));
    }
  }
  std::printf("\n");
  const float* some = weights[0].data();
  float scores[10];
  if (digits_predict(session.get(), 100000, some, some, some, some, some, scores) != DIGITS_OK)
    std::printf("refused:    %s\n", digits_message());
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
