// Fold batch normalisation into convolutions: a rule of two functions, on a saved model.
//
// At inference, normalising what a convolution gives is a convolution with other weights:
//
//   ((conv(x, w) + b) - mean) / sqrt(var + eps) * scale + shift
//     = conv(x, w * k) + (b - mean) * k + shift        k = scale / sqrt(var + eps)
//
// so that the work on images becomes work on weights. Prints the same as its twin,
// fold_batchnorm.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/plait.h>
#include <plait/rewrite.h>

#include <cstdio>
#include <filesystem>

using plait::Array;
namespace jnp = plait::numpy;
namespace lax = plait::lax;

Array conv(const Array& x, const Array& w, int stride = 1) {
  return lax::conv_general_dilated(x, w, {stride, stride}, "SAME");
}

// Beside an image: (channels, height, width).
Array per_channel(const Array& v) { return jnp::reshape(v, {-1, 1, 1}); }

Array batch_norm(Array x, const Array& mean, const Array& var, const Array& scale,
                 const Array& shift, const Array& eps) {
  x = (x - per_channel(mean)) / per_channel(jnp::sqrt(var + eps));
  return x * per_channel(scale) + per_channel(shift);
}

// The rule: two functions of the same arguments. They match any shapes, and eps any number; the
// convolution's strides and padding may be any too, and are those of the match in the replacement.
Array normalised(const Array& x, const Array& w, const Array& b, const Array& mean,
                 const Array& var, const Array& scale, const Array& shift, const Array& eps) {
  return batch_norm(conv(x, w) + per_channel(b), mean, var, scale, shift, eps);
}

Array folded(const Array& x, const Array& w, const Array& b, const Array& mean, const Array& var,
             const Array& scale, const Array& shift, const Array& eps) {
  const Array k = scale / jnp::sqrt(var + eps);
  return conv(x, w * jnp::reshape(k, {-1, 1, 1, 1})) + per_channel((b - mean) * k + shift);
}

// Numbers that Python has too.
Array waves(const plait::Shape& shape) {
  const double size = double(shape.num_elements().constant());
  return jnp::reshape(jnp::sin(jnp::arange(size, {}, 1, plait::DType::float32) * 0.37 + size),
                      shape);
}

struct Block {
  Array b, mean, scale, shift, var, w;  // in the order of a dict's keys
};

Block block(int inputs, int outputs) {
  return {.b = waves({outputs}) * 0.1,
          .mean = waves({outputs}) * 0.2,
          .scale = waves({outputs}) + 1.5,
          .shift = waves({outputs}) * 0.3,
          .var = jnp::square(waves({outputs})) + 0.5,
          .w = waves({outputs, inputs, 3, 3}) * 0.3};
}

// A model: three such blocks, each of its own stride and size.
Array model(const std::vector<Block>& blocks, const Array& images) {
  const int strides[] = {1, 2, 2};
  Array x = images;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& p = blocks[i];
    x = conv(x, p.w, strides[i]) + per_channel(p.b);
    x = batch_norm(x, p.mean, p.var, p.scale, p.shift, 1e-5);
    x = jnp::maximum(x, 0);
  }
  return jnp::mean(x, std::vector<int>{2, 3});
}

using Model = std::function<Array(const std::vector<Block>&, const Array&)>;

// How many numbers equations of images compute, but for convolutions.
long elements_of_images(const Model& f, const std::vector<Block>& blocks, const Array& x) {
  long total = 0;
  plait::walk(plait::make_jaxpr(f, blocks, x).jaxpr,
              [&](const plait::Jaxpr& owner, const plait::Equation& equation) {
                const plait::Shape& shape = owner->aval(equation.outputs[0]).shape;
                if (equation.primitive->name() != "conv" && shape.rank() == 4 && shape[0] == 2)
                  total += shape.num_elements().constant();
              });
  return total;
}

const char* text_of(bool value) { return value ? "True" : "False"; }

bool agree(const Array& a, const Array& b) {
  return (jnp::max(jnp::abs(a - b)) / jnp::max(jnp::abs(a))).item<double>() < 1e-5;
}

int main() {
  const plait::Pass fold_batchnorm = plait::rewrite(
      normalised, folded,
      {.name = "fold_batchnorm",
       .any_params = {"conv"},
       .like = {"n c h w", "o c kh kw", "o", "o", "o", "o", "o", ""}},  // where to begin
      {.verify = true, .low = 0.1, .high = 2});  // compared on random numbers, in float64

  const std::vector<Block> blocks{block(3, 8), block(8, 12), block(12, 16)};
  const Array x = waves({2, 3, 12, 12});
  const auto folder = std::filesystem::temp_directory_path();
  const std::string path = (folder / "fold_batchnorm.plait").string();
  plait::save(path, {{"model", plait::traced(Model(model), blocks, x)}});
  const Model loaded = plait::load(path).entry<Array(std::vector<Block>, Array)>("model");

  const Model faster = fold_batchnorm(loaded);
  const Array before = loaded(blocks, x), after = faster(blocks, x);
  std::printf("matches: %zu\n", fold_batchnorm.statistics().matches);
  std::printf("numbers computed on images: %ld then %ld\n", elements_of_images(loaded, blocks, x),
              elements_of_images(faster, blocks, x));
  std::printf("results agree to 1e-5: %s\n", text_of(agree(before, after)));

  // It is a transform: it composes with the others, and what it gives can be saved.
  auto slope = [&](const Model& f) {
    return plait::grad([&](const Array& x) { return jnp::sum(jnp::square(f(blocks, x))); })(x);
  };
  std::printf("gradients agree to 1e-5: %s\n", text_of(agree(slope(loaded), slope(faster))));
  plait::save(path, {{"model", plait::traced(faster, blocks, x)}});
  const Model again =
      plait::load(path, {.verify = true}).entry<Array(std::vector<Block>, Array)>("model");
  std::printf("saved again: %ld\n", elements_of_images(again, blocks, x));
  std::filesystem::remove(path);
}
