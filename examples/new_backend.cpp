// Recipe: a backend from outside. It claims the equations it is good at and compiles groups of
// them; the rest stays where it was, and explain shows both.
// SPDX-License-Identifier: Apache-2.0
#include <plait/backend.h>
#include <plait/plait.h>

#include <cmath>
#include <cstdio>

using namespace plait;

// float32 sines, and nothing else, by the C library.
struct Sines final : Backend {
  struct Loop final : Kernel {
    void enqueue(std::span<const View> in, std::span<const View> out, void*,
                 const Launch&) const override {
      const Buffer x = Buffer::copy_of(in[0]);  // inputs may have any strides
      for (std::int64_t i = 0; i < out[0].size(); ++i)
        out[0].as<float>()[i] = std::sin(static_cast<const float*>(x.data())[i]);
    }
    std::string note() const override { return "libm"; }
  };
  std::string_view name() const override { return "sines"; }
  Support supports(const Equation& e, std::span<const Aval> in, std::span<const Aval>,
                   Device) const override {
    if (!(*e.primitive == sin_p)) return Support::no();
    return in[0].dtype == DType::float32 ? Support::yes() : Support::no("only float32");
  }
  std::unique_ptr<Kernel> compile(const Jaxpr&, const Target&) const override {
    return std::make_unique<Loop>();
  }
};
static const bool registered = register_backend(std::make_unique<Sines>(), Preference::library);

Array f(const Array& x) { return lax::sin(x) * lax::cos(x); }

int main() {
  const Array x = lax::full({3}, 0.5, DType::float32);
  std::puts(compile(make_jaxpr(f, x).jaxpr)->explain().c_str());
  std::printf("%.6f\n", jit(f)(x).buffer().view().as<float>()[2]);
}
