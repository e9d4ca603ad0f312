// Pictures and profiles of programs for Python; _profile.py handles trees.
// SPDX-License-Identifier: Apache-2.0
#include "bindings.h"

#include <plait/base/progress.h>
#include <plait/inspect/draw.h>
#include <plait/inspect/profile.h>

namespace plait::python {
namespace {

DrawOptions to_draw_options(const py::dict& options) {
  DrawOptions result;
  result.title = options["title"].cast<std::string>();
  result.input_names = options["input_names"].cast<std::vector<std::string>>();
  result.output_names = options["output_names"].cast<std::vector<std::string>>();
  const std::string color = options["color"].cast<std::string>();
  result.color = color == "bytes"     ? DrawColor::bytes
                 : color == "time"    ? DrawColor::time
                 : color == "backend" ? DrawColor::backend
                                      : DrawColor::kind;
  if (const py::object profile = options["profile"]; !profile.is_none())
    result.profile = &profile.cast<const Profile&>();
  return result;
}

}  // namespace

void add_profile(py::module_& module) {
  module.def("draw", [](const Jaxpr& jaxpr, const std::string& path, const py::dict& options) {
    draw(jaxpr, path, to_draw_options(options));
  });
  module.def("draw_html", [](const Jaxpr& jaxpr, const py::dict& options) {
    return draw_html(jaxpr, to_draw_options(options));
  });
  // The callback runs on the working thread, which may have released the GIL.
  module.def("set_progress", [](py::object callback, double after) {
    if (callback.is_none()) return set_progress({}, after);
    set_progress(
        [shared = share(std::move(callback))](const Progress& progress) {
          const py::gil_scoped_acquire gil;
          try {
            borrowed(static_cast<PyObject*>(shared.get()))(
                progress.what, progress.done,
                progress.total ? py::object(py::int_(progress.total)) : py::object(py::none()),
                progress.seconds, progress.is_last);
          } catch (py::error_already_set& error) {
            error.discard_as_unraisable("a callback of set_progress");
          }
        },
        after);
  });
  module.def("reset_progress", &reset_progress);
  auto type = py::class_<Profile>(module, "ProfileData")
                  .def_readonly("seconds", &Profile::seconds)
                  .def("__str__", &Profile::to_string)
                  .def("json", &Profile::json)
                  .def("flame", &Profile::flame)
                  .def("trace", &Profile::trace)
                  .def("write_flame", &Profile::write_flame)
                  .def("write_trace", &Profile::write_trace)
                  .def("by", [](const Profile& profile, const std::string& what) {
                    return profile.by(what == "scope"        ? ProfileBy::scope
                                      : what == "transforms" ? ProfileBy::transforms
                                      : what == "primitive"  ? ProfileBy::primitive
                                      : what == "backend"    ? ProfileBy::backend
                                                             : ProfileBy::line);
                  });
  forbid_construction(type);
  module.def("profile",
             [](const Jaxpr& jaxpr, py::object inputs, const std::string& name, int num_runs) {
               const Arrays arrays = to_arrays(inputs);
               return without_gil([&] { return profile(jaxpr, arrays, {name, num_runs}); });
             });
}

}  // namespace plait::python
