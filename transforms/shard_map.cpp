// shard_map. See include/plait/transforms/shard_map.h.
//
// It is no primitive: blocks are operations on whole arrays (shard, unshard), and between them
// types say along which axes of the mesh values vary. So every transform applies to what is inside
// as to anything else, from inside and from outside. A call around it is what runs at once.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/base/communicator.h>
#include <plait/trace/named_axes.h>
#include <plait/trace/varying.h>
#include <plait/transforms/shard_map.h>

#include <algorithm>
#include <list>

namespace plait {

Mesh::Mesh(std::vector<std::int64_t> shape, std::vector<std::string> axis_names) {
  if (shape.size() != axis_names.size())
    throw ValueError("mesh: " + std::to_string(shape.size()) + " sizes and " +
                         std::to_string(axis_names.size()) + " names of axes",
                     "give a name for each axis");
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] < 1)
      throw ValueError(
          "mesh: the axis '" + axis_names[i] + "' has " + std::to_string(shape[i]) + " places",
          "give at least 1");
    if (axis_names[i].empty() || axis_names[i].find_first_of(":@,+|{}\n ") != std::string::npos)
      throw ValueError("mesh: '" + axis_names[i] + "' is no name of an axis",
                       "use letters, digits and underscores");
    if (std::ranges::count(axis_names, axis_names[i]) > 1)
      throw ValueError("mesh: there are two axes '" + axis_names[i] + "'",
                       "give each its own name");
    axes_.insert(axes_.begin(), {axis_names[i], shape[i], stride});
    stride *= shape[i];
  }
  if (are_places_ranks() && stride != communicator()->size())
    throw ValueError("mesh: there are " + std::to_string(stride) + " places, and " +
                         std::to_string(communicator()->size()) + " ranks",
                     "start as many ranks as the mesh has places");
}

int process_index() {
  const std::shared_ptr<Communicator> job = communicator();
  return job ? job->rank() : 0;
}
int process_count() {
  const std::shared_ptr<Communicator> job = communicator();
  return job ? job->size() : 1;
}

std::int64_t Mesh::size() const {
  std::int64_t product = 1;
  for (const MeshAxis& axis : axes_) product *= axis.size;
  return product;
}

Mesh Mesh::only(const std::vector<std::string>& axis_names) const {
  (void)spec({axis_names}, "mesh");  // all of them are axes
  Mesh some = *this;
  std::erase_if(some.axes_, [&](const MeshAxis& axis) {
    return std::ranges::find(axis_names, axis.name) == axis_names.end();
  });
  return some;
}

MeshSpec Mesh::spec(const std::vector<std::vector<std::string>>& names,
                    const std::string& what) const {
  MeshSpec spec;
  MeshAxes used;
  for (const std::vector<std::string>& along : names) {
    std::vector<MeshAxis>& part = spec.parts.emplace_back();
    for (const std::string& name : along) {
      const auto axis = std::ranges::find(axes_, name, &MeshAxis::name);
      if (axis == axes_.end()) {
        std::string known;
        for (const MeshAxis& each : axes_) known += (known.empty() ? "'" : ", '") + each.name + "'";
        throw ValueError(what + " names the axis '" + name + "', which the mesh has not",
                         "its axes are " + known);
      }
      if (used.includes(MeshAxes(*axis)))
        throw ValueError(what + " names the axis '" + name + "' twice",
                         "divide one axis of the array along it");
      used |= MeshAxes(*axis);
      part.push_back(*axis);
    }
  }
  return spec;
}

namespace {

// The names of the mesh's axes, for code inside.
class InsideMesh {
 public:
  InsideMesh(const Mesh& mesh, CheckVma check_vma) {
    for (const MeshAxis& axis : mesh.axes()) {
      named_.push_back({axis.name, Dim(axis.size), axis, check_vma == CheckVma::yes});
      scopes_.emplace_back(named_.back());
    }
  }
  ~InsideMesh() {
    while (!scopes_.empty()) scopes_.pop_back();  // the innermost first
  }
  InsideMesh(const InsideMesh&) = delete;

 private:
  std::list<NamedAxis> named_;
  std::list<NamedAxisScope> scopes_;
};

void check_input(const Aval& aval, const MeshSpec& spec, std::size_t index) {
  const std::string who = "shard_map: " + ArgumentNames::of(index);
  if (spec.parts.size() > aval.shape.size())
    throw ShapeError(who + " is " + aval.to_string() + ", and its spec is for " +
                         std::to_string(spec.parts.size()) + " axes",
                     "give a spec of at most as many entries as the array has axes");
  if (!(aval.varying & spec.axes()).empty())
    throw ValueError(who + " differs along " + (aval.varying & spec.axes()).to_string() +
                         " already, inside another shard_map",
                     "use other axes of the mesh inside");
  for (std::size_t i = 0; i < spec.parts.size(); ++i) {
    const std::int64_t parts = spec.num_parts(i);
    const Dim size = aval.shape[int(i)];
    if (parts > 1 && (!size.is_constant() || size.constant() % parts != 0)) {
      std::string along;
      for (const MeshAxis& axis : spec.parts[i])
        along += (along.empty() ? "'" : ", '") + axis.name + "'";
      throw ShapeError(
          who + ", " + aval.to_string() + ", does not divide along axis " + std::to_string(i) +
              " among the " + std::to_string(parts) + " places along " + along,
          "give a size that is a multiple of " + std::to_string(parts) + ", or pad the array");
    }
  }
}

// Without types to go by, what the spec does not name is the same along it: the first place's.
Array trusted(const Array& output, const Mesh& mesh, const MeshSpec& spec) {
  Array result = output;
  for (const MeshAxis& axis : mesh.axes())
    if (!spec.axes().includes(MeshAxes(axis)) && result.aval().varying.includes(MeshAxes(axis)))
      result = places::invariant(result, axis);
  return result;
}

Array whole(const Array& output, const MeshSpec& spec, const std::string& who) {
  if (spec.parts.size() > output.shape().size())
    throw ShapeError("shard_map: " + who + " is " + output.aval().to_string() +
                         ", and its spec is for " + std::to_string(spec.parts.size()) + " axes",
                     "give a spec of at most as many entries as the array has axes");
  // What differs in another shard_map around this one does so outside, too.
  MeshAxes around;
  for (const NamedAxis& axis : NamedAxes::current().axes)
    if (axis.of_mesh) around |= MeshAxes(*axis.of_mesh);
  const MeshAxes left = output.aval().varying.without(spec.axes() | around);
  if (!left.empty())
    throw ValueError("shard_map: " + who + ", " + output.aval().to_string() +
                         ", differs along the axis '" + left.axes()[0].name +
                         "' of the mesh, which its spec does not name",
                     "name it in out_specs, or make the result the same in all places, as with "
                     "lax.psum or lax.pmean");
  return places::unshard(output, spec);
}

}  // namespace

Arrays flat::shard_map(const Function& function, const Mesh& mesh,
                       std::span<const MeshSpec> in_specs, const OutSpecs& out_specs,
                       std::span<const Array> inputs, std::string_view name, CheckVma check_vma) {
  for (std::size_t i = 0; i < inputs.size(); ++i) check_input(inputs[i].aval(), in_specs[i], i);
  const ArgumentNames none({});  // what runs below has its own arguments
  MeshAxes all_axes;
  for (const MeshAxis& axis : mesh.axes()) all_axes |= MeshAxes(axis);
  const bool is_checked = check_vma == CheckVma::yes;
  const Traced traced = make_jaxpr(
      [&](std::span<const Array> whole_inputs) {
        Arrays outputs;
        {
          const InsideMesh inside(mesh, check_vma);
          Arrays blocks;
          for (std::size_t i = 0; i < whole_inputs.size(); ++i)
            blocks.push_back(places::shard(whole_inputs[i], in_specs[i]));
          if (!is_checked)
            for (Array& block : blocks) block = varying_along(block, all_axes);
          outputs = function(blocks);
        }
        const std::vector<MeshSpec> specs = out_specs.specs(outputs.size());
        for (std::size_t i = 0; i < outputs.size(); ++i)
          outputs[i] = whole(is_checked ? outputs[i] : trusted(outputs[i], mesh, specs[i]),
                             specs[i], out_specs.name(i));
        return outputs;
      },
      avals_of(inputs), "shard_map");
  Arrays all(inputs.begin(), inputs.end());
  all.insert(all.end(), traced.captured.begin(), traced.captured.end());
  return call(traced.jaxpr, all, std::string(name));
}

}  // namespace plait
