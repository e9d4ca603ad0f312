// Random bits by threefry, bit-exact with JAX: the bits of an element depend on the key and on the
// element's row-major index alone. A key is an element of dtype key, or its two words, uint32[2],
// where an array of keys has leading dimensions.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>
#include <plait/base/threefry.h>
#include <plait/primitives/emitted.h>
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/primitives/random.h>
#include <plait/rules/autocast.h>
#include <plait/rules/emit.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <numeric>

#include "primitives/cost.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

using Values = Sample::Input::Values;

void require_keys(std::string_view name, const Aval& key) {
  if (key.dtype == DType::key || key.dtype == carrier_of(DType::key)) return;
  if (key.dtype != DType::uint32)
    throw DtypeError(std::string(name) + ": a key of dtype " + std::string(name_of(key.dtype)),
                     "give a key, as random.key makes it");
  if (key.rank() == 0 || !(key.shape[key.rank() - 1] == Dim(2)))
    throw ShapeError(std::string(name) + ": a key of shape (" + key.shape.to_string() + ")",
                     "give a key of shape (2), or an array of keys of shape (..., 2)");
}

// Axes behind those of an array of keys: one of words, or none.
int axes_of_key(const Aval& keys) { return keys.dtype == DType::uint32 ? 1 : 0; }
Shape shape_of_keys(const Aval& keys) {
  return Shape(keys.shape.begin(), keys.shape.end() - axes_of_key(keys));
}
// An array of keys of this shape, each like those.
Aval keys_like(const Aval& keys, Shape shape) {
  if (axes_of_key(keys) > 0) shape.push_back(2);
  return {std::move(shape), keys.dtype};
}

ThreefryKey key_at(const Buffer& keys, std::int64_t index) {
  const auto* words = static_cast<const std::uint32_t*>(keys.data()) + 2 * index;
  return {words[0], words[1]};
}

DType bits_dtype(std::int64_t width) {
  switch (width) {
    case 8:
      return DType::uint8;
    case 16:
      return DType::uint16;
    case 32:
      return DType::uint32;
    case 64:
      return DType::uint64;
    default:
      throw ValueError("random_bits: there are no integers of " + std::to_string(width) + " bits",
                       "choose 8, 16, 32 or 64");
  }
}

void bits_eval(std::span<const View> inputs, std::span<const View> outputs, const Params&) {
  const View& out = outputs[0];
  const std::int64_t total = num_elements(out.shape);
  if (total == 0) return;
  const Buffer keys = Buffer::copy_of(inputs[0]);
  const std::int64_t each = total * std::int64_t(sizeof(ThreefryKey)) /
                            (num_elements(keys.shape()) * size_of(keys.dtype()));
  visit_dtype(out.dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (unsigned_integers.has(dtype_of<T>()))
      parallel_for(total, 16384, [&](std::int64_t begin, std::int64_t end) {
        while (begin < end) {
          const std::int64_t key = begin / each, first = begin % each,
                             count = std::min(end - begin, each - first);
          threefry_bits(key_at(keys, key), std::uint64_t(first),
                        std::span<T>(out.as<T>() + begin, count));
          begin += count;
        }
      });
  });
}

// --- In loop programs ----------------------------------------------------------------------------

constexpr double work_of_words = 70;  // in additions

// Both words of the generator, as a uint64, and each of them.
loops::Value emit_words(loops::Writer& w, loops::Value k0, loops::Value k1, loops::Value low,
                        Source source) {
  const loops::Value zero = w.literal(Literal{DType::uint32, false, 0, 0, 0});
  return w.compute(threefry_p, {}, {k0, k1, zero, low}, source);
}
loops::Value emit_cast(loops::Writer& w, loops::Value value, DType dtype) {
  return w.compute(cast_p, {{"dtype", dtype}, {"weak", false}}, {value}, {});
}
std::array<loops::Value, 2> emit_split(loops::Writer& w, loops::Value words, Source source) {
  const loops::Value half = w.literal(Literal{DType::uint64, false, 32, 0, 0});
  const loops::Value high =
      w.compute(shift_p, {{"kind", std::string("right_logical")}}, {words, half}, source);
  return {emit_cast(w, high, DType::uint32), emit_cast(w, words, DType::uint32)};
}

// Both words of the key at a place of an array of keys.
std::array<loops::Value, 2> emit_key(loops::Writer& w, const loops::Tensor& keys,
                                     loops::Indices at) {
  if (axes_of_key(keys.aval) == 0) {
    const auto [high, low] = emit_split(w, w.element(keys, at), {});
    return {low, high};
  }
  at.push_back({0});
  const loops::Value first = w.element(keys, at);
  at.back() = {1};
  return {first, w.element(keys, at)};
}
// The same of a single key, whose elements are known.
std::array<loops::Value, 2> emit_key(loops::Writer& w, const Aval& keys,
                                     std::span<const loops::Value> elements, std::size_t number) {
  if (axes_of_key(keys) > 0) return {elements[2 * number], elements[2 * number + 1]};
  const auto [high, low] = emit_split(w, elements[number], {});
  return {low, high};
}

// Lists are read by numbers that are known: what loops go over lies in memory, or is a formula.
loops::Tensor in_loops(loops::Writer& w, const loops::Tensor& tensor) {
  return tensor.formula ? tensor : w.in_memory(tensor);
}

// The leading axes as one, at axis `last`, in order.
loops::Tensor merged_to(loops::Writer& w, const loops::Tensor& tensor, int last) {
  std::vector<int> axes(std::size_t(last + 1));
  std::iota(axes.begin(), axes.end(), 0);
  return loops::merged(w, in_loops(w, tensor), axes);
}

loops::Tensors emit_bits(loops::Writer& w, const Equation& equation,
                         std::span<const loops::Tensor> inputs) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();  // that are counted
  const Shape& shape = equation.params.get<Shape>("shape");
  const DType dtype = bits_dtype(equation.params.integer("bit_width"));
  Aval aval{shape_of_keys(inputs[0].aval), dtype};
  const auto num_keys = std::size_t(aval.rank());  // axes
  for (Dim dim : shape) aval.shape.push_back(dim);
  if (aval.shape.num_elements().constant() > most) w.refuse("many random numbers");
  const loops::Tensor keys = num_keys == 0 ? loops::Tensor{inputs[0].aval, w.elements_of(inputs[0])}
                                           : w.in_memory(inputs[0]);
  loops::Formula formula;
  formula.work = work_of_words;
  formula.reads = w.reads_of(keys);
  for (loops::Formula::Read& read : formula.reads) read.is_anywhere = true;
  formula.element = [=, &w, strides = dense_strides(shape.to_sizes()),
                     source = equation.source](std::span<const loops::Index> at) {
    const auto [k0, k1] = emit_key(w, keys, {at.begin(), at.begin() + std::ptrdiff_t(num_keys)});
    loops::Place number{0};
    for (std::size_t i = 0; i < strides.size(); ++i)
      loops::add_index(number, at[num_keys + i], strides[i]);
    const loops::Value counter =
        emit_cast(w, w.number({number.offset, number.terms}), DType::uint32);
    const loops::Value words = emit_words(w, k0, k1, counter, source);
    if (dtype == DType::uint64) return words;
    const auto [x, y] = emit_split(w, words, source);
    return emit_cast(w, w.compute(xor_p, {}, {x, y}, source), dtype);
  };
  return {w.computed(aval, std::move(formula))};
}

loops::Tensors emit_fold(loops::Writer& w, const Equation& equation,
                         std::span<const loops::Tensor> inputs) {
  const loops::Tensor &keys = inputs[0], &data = inputs[1];
  const Shape key_shape = shape_of_keys(keys.aval);
  const bool one_key = key_shape.empty(), one_datum = data.aval.rank() == 0;
  const Aval aval = keys_like(keys.aval, one_key ? data.aval.shape : key_shape);
  const std::int64_t count = shape_of_keys(aval).num_elements().constant();
  // The elements of the new key: its words, or both as one, the first one in the low half.
  const auto folded = [&](std::array<loops::Value, 2> key, loops::Value datum) -> loops::Values {
    const loops::Value words = emit_words(w, key[0], key[1], datum, equation.source);
    const auto [first, second] = emit_split(w, words, equation.source);
    if (axes_of_key(aval) > 0) return {first, second};
    const loops::Value half = w.literal(Literal{DType::uint64, false, 32, 0, 0});
    const loops::Value high =
        w.compute(shift_p, {{"kind", std::string("left")}},
                  {emit_cast(w, second, DType::uint64), half}, equation.source);
    return {w.compute(or_p, {}, {high, emit_cast(w, first, DType::uint64)}, equation.source)};
  };
  if (2 * count <= loops::few) {
    const loops::Values words = w.elements_of(keys), numbers = w.elements_of(data);
    loops::Tensor result{aval};
    for (std::size_t i = 0; i < std::size_t(count); ++i)
      for (loops::Value word :
           folded(emit_key(w, keys.aval, words, one_key ? 0 : i), numbers[one_datum ? 0 : i]))
        result.elements.push_back(word);
    return {result};
  }
  const int last = shape_of_keys(aval).rank() - 1;  // axis of the keys
  const loops::Tensor result = w.make(aval);
  const loops::Tensor list = one_key ? keys : merged_to(w, w.in_memory(keys), last),
                      numbers = one_datum ? data : merged_to(w, data, last);
  const loops::Values key = one_key ? w.elements_of(keys) : loops::Values{},
                      datum = one_datum ? w.elements_of(data) : loops::Values{};
  w.for_each_apart(count, [&](const loops::Index& index) {
    loops::Indices at(std::size_t(last) + 1, loops::Index{0});
    at.back() = index;
    const loops::Value number = one_datum ? datum[0] : w.element(numbers, at);
    const auto words = one_key ? emit_key(w, keys.aval, key, 0) : emit_key(w, list, at);
    loops::Place to = result.place;
    loops::add_index(to, index, 1 + axes_of_key(aval));
    for (loops::Value value : folded(words, number)) {
      w.store(to, value);
      ++to.offset;
    }
  });
  return {result};
}

}  // namespace

constinit const Primitive threefry_p{"threefry"};
static const auto threefry_def =
    define(
        threefry_p,
        "Both words of threefry2x32 of a key of two words and a counter of two, the first one in "
        "the high half.")
        .family(elementwise(dtypes<std::uint32_t>(), 4))
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          Aval aval = inputs[0];
          for (const Aval& input : inputs) {
            require_dtype("threefry", input, dtypes<std::uint32_t>());
            const Aval both[] = {aval, input};
            aval = infer(xor_p, both, params)[0];
          }
          return std::vector<Aval>{{aval.shape, DType::uint64}};
        })
        .rule<Pointwise>([](std::span<const DType>, const Params&) -> Chunk {
          return {[](const void* const* inputs, void* output, std::int64_t n, std::int64_t) {
            const auto words = [&](int i) { return static_cast<const std::uint32_t*>(inputs[i]); };
            threefry_each(words(0), words(1), words(2), words(3),
                          {static_cast<std::uint64_t*>(output), std::size_t(n)});
          }};
        })
        .refuse<Spelling>(spelling::no_function)
        .rule<Jvp>(zero_derivative())
        .rule<Samples>([] {
          const Sample::Input words{{{2, 3}, DType::uint32}, Values::indices, 1000},
              word{{{}, DType::uint32}, Values::indices, 1000};
          return std::vector<Sample>{{{words, words, words, words}, {}},
                                     {{word, word, words, words}, {}},
                                     {{word, word, word, word}, {}}};
        });

constinit const Primitive random_bits_p{"random_bits"};
static const auto random_bits_def =
    define(random_bits_p,
           "Random unsigned integers of bit_width 8, 16, 32 or 64 from a key: element i of shape, "
           "counted row-major, is that of "
           "jax.random.bits. An array of keys gives such an array for each.")
        .operands(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          require_keys("random_bits", inputs[0]);
          Aval aval{shape_of_keys(inputs[0]), bits_dtype(params.integer("bit_width"))};
          for (Dim dim : params.get<Shape>("shape")) {
            require_less_equal(0, dim, [&] {
              return ShapeError("random_bits: the shape (" +
                                    params.get<Shape>("shape").to_string() +
                                    ") has a negative size",
                                "give sizes >= 0");
            });
            aval.shape.push_back(dim);
          }
          return std::vector<Aval>{aval};
        })
        .rule<Eval>(bits_eval)
        .rule<Emit>(emit_bits)
        .rule<Cost>(cost::for_each_result(1))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(zero_derivative())
        .rule<Batch>([](Dim size, std::span<const Batched> inputs,
                        const Params& params) -> std::vector<Batched> {
          return {{Array(bind(random_bits_p, {batch_to_front(inputs[0], size)}, params)), 0}};
        })
        .rule<Mask>([](std::span<const Masked> inputs, std::span<const Aval> outputs,
                       const Params& params, const SizeValues& sizes) -> Arrays {
          // Elements are numbered by real sizes: as many as a row may have are generated, then
          // reshaped like the real row.
          const Shape& shape = params.get<Shape>("shape");
          Aval flat{shape_of_keys(inputs[0].aval), outputs[0].dtype};
          flat.shape.push_back(shape.num_elements());
          const Params row = params.with("shape", Shape{sizes.bound(shape.num_elements())});
          const Masked bits{Array(bind(random_bits_p, {inputs[0].padded}, row)), flat};
          if (shape.rank() == 1) return {bits.padded};
          return rule<Mask>(reshape_p)(std::span(&bits, 1), outputs, {{"shape", outputs[0].shape}},
                                       sizes);
        })
        .rule<Samples>([] {
          const Sample::Input key{{{2}, DType::uint32}, Values::key},
              keys{{{3, 2}, DType::uint32}, Values::key};
          std::vector<Sample> samples;
          for (int width : {8, 16, 32, 64})
            samples.push_back({{key}, {{"shape", Shape{2, 3}}, {"bit_width", Dim(width)}}});
          samples.push_back({{keys}, {{"shape", Shape{5}}, {"bit_width", Dim(32)}}});
          samples.push_back({{key}, {{"shape", Shape{}}, {"bit_width", Dim(32)}}});
          return samples;
        });
Array lax::random_bits(Operand key, const Shape& shape, int bit_width) {
  return bind(random_bits_p, {key}, {{"shape", shape}, {"bit_width", Dim(bit_width)}});
}

constinit const Primitive random_fold_p{"random_fold"};
static const auto random_fold_def =
    define(random_fold_p,
           "A new key from a key and uint32 data, that of jax.random.fold_in. Keys and data have "
           "equal leading shapes, or there is "
           "one key or one datum.")
        .operands(2)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          require_keys("random_fold", inputs[0]);
          const Aval& data = inputs[1];
          if (data.dtype != DType::uint32)
            throw DtypeError("random_fold: data of dtype " + std::string(name_of(data.dtype)),
                             "convert it to uint32 with astype");
          const Shape keys = shape_of_keys(inputs[0]);
          if (!keys.empty() && data.rank() > 0 && !(keys == data.shape))
            throw ShapeError("random_fold: keys of shape (" + keys.to_string() +
                                 ") and data of shape (" + data.shape.to_string() + ")",
                             "give equal shapes, one key, or one datum");
          return std::vector<Aval>{keys_like(inputs[0], keys.empty() ? data.shape : keys)};
        })
        .rule<Emit>(emit_fold)
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          const std::int64_t bytes = num_elements(outputs[0].shape) * size_of(outputs[0].dtype),
                             count = bytes / std::int64_t(sizeof(ThreefryKey));
          if (count == 0) return;
          const Buffer keys = Buffer::copy_of(inputs[0]), data = Buffer::copy_of(inputs[1]);
          const auto* words = static_cast<const std::uint32_t*>(data.data());
          const bool has_words = inputs[0].dtype == DType::uint32;
          const bool one_key = inputs[0].rank() == (has_words ? 1 : 0),
                     one_datum = inputs[1].rank() == 0;
          auto* out = outputs[0].as<std::uint32_t>();
          parallel_for(count, 4096, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
              const ThreefryKey folded =
                  threefry_fold_in(key_at(keys, one_key ? 0 : i), words[one_datum ? 0 : i]);
              std::copy_n(folded.data(), 2, out + 2 * i);
            }
          });
        })
        .rule<Cost>(cost::for_each_result(1))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(zero_derivative())
        .rule<Batch>([](Dim size, std::span<const Batched> inputs,
                        const Params&) -> std::vector<Batched> {
          const Aval example = example_aval(inputs[0]);
          const int keys = shape_of_keys(example).rank(), data = example_aval(inputs[1]).rank();
          Array key = inputs[0].dim ? batch_to_front(inputs[0], size) : inputs[0].array;
          Array datum = inputs[1].dim ? batch_to_front(inputs[1], size) : inputs[1].array;
          // A single unbatched key or datum is broadcast as it is; the others are expanded to the
          // shape of the result.
          const bool one_key = !inputs[0].dim && keys == 0, one_datum = !inputs[1].dim && data == 0;
          Shape shape{size};
          for (Dim dim : keys == 0 ? example_aval(inputs[1]).shape : shape_of_keys(example))
            shape.push_back(dim);
          auto grown = [&](const Array& array, bool batched, const Shape& to, int trailing) {
            std::vector<int> dims;
            for (int i = 0; i < array.ndim() - trailing;
                 ++i)  // the batch axis if present, then the result's dimensions
              dims.push_back(batched ? i : i + 1);
            for (int i = 0; i < trailing; ++i) dims.push_back(to.rank() - trailing + i);
            return lax::broadcast_in_dim(array, to, dims);
          };
          if (!one_datum) datum = grown(datum, inputs[1].dim.has_value(), shape, 0);
          if (!one_key)
            key = grown(key, inputs[0].dim.has_value(), keys_like(example, shape).shape,
                        axes_of_key(example));
          return {{Array(bind(random_fold_p, {key, datum})), 0}};
        })
        .rule<Mask>(
            [](std::span<const Masked> inputs, auto, const Params& params, const SizeValues&) {
              return Arrays(bind(random_fold_p, {inputs[0].padded, inputs[1].padded}, params));
            })
        .rule<Samples>([] {
          const Sample::Input key{{{2}, DType::uint32}, Values::key},
              keys{{{3, 2}, DType::uint32}, Values::key};
          const Sample::Input datum{{{}, DType::uint32}, Values::indices, 100},
              data{{{3}, DType::uint32}, Values::indices, 100};
          return std::vector<Sample>{
              {{key, datum}, {}}, {{keys, datum}, {}}, {{key, data}, {}}, {{keys, data}, {}}};
        });
Array lax::random_fold(Operand key, Operand data) { return bind(random_fold_p, {key, data}); }

// jax.random.split: child i, counted row-major, folds i in.
Array lax::random_split(Operand key, const Shape& shape) {
  require_keys("random_split", key.aval());
  const Array children = lax::reshape(lax::iota(DType::uint32, {shape.num_elements()}, 0), shape);
  Shape all = shape_of_keys(key.aval());
  const int leading = all.rank();
  if (leading == 0) return random_fold(key, children);
  std::vector<int> key_dims, child_dims;
  for (int i = 0; i < leading; ++i) key_dims.push_back(i);
  for (Dim dim : shape) {
    child_dims.push_back(all.rank());
    all.push_back(dim);
  }
  const Array data = lax::broadcast_in_dim(children, all, child_dims);
  if (axes_of_key(key.aval()) > 0) key_dims.push_back(all.rank());
  return random_fold(lax::broadcast_in_dim(key, keys_like(key.aval(), all).shape, key_dims), data);
}

}  // namespace plait
