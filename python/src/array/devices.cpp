// Devices: their names, the current one, and moving arrays.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/driver.h>
#include <plait/base/memory.h>
#include <plait/primitives/primitives.h>
#include <plait/trace/devices.h>

#include "bindings.h"
#include "convert/numpy_memory.h"

namespace plait::python {

// A plait.Device: a str with the parts of the name.
py::object device_object(Device device) {
  static PyObject* const type =
      py::object(py::module_::import("plait._devices").attr("Device")).release().ptr();
  return borrowed(type)(device.to_string());
}

// A wait lets other threads of Python run, which the device's work may need.
Buffer host_buffer_of(const Array& array) {
  const Buffer buffer = array.buffer();
  if (buffer.device().is_host()) return buffer;
  return without_gil([&] { return buffer.on_host(); });
}

void add_devices(py::module_& module) {
  module.def("devices", [] {
    py::list names;
    for (const Device device : devices()) names.append(device_object(device));
    return names;
  });
  module.def("describe_device", [](const std::string& name) {
    const Device device = Device::named(name);
    const Driver* driver = driver_of(device.kind);
    return driver ? driver->describe(device) : std::string();
  });
  module.def("memory_stats_of", [](const std::string& name) -> py::object {
    const Device device = Device::named(name);
    py::dict facts;
    if (device.is_host()) {
      const MemoryStats memory = memory_stats();
      facts["bytes_in_use"] = memory.bytes_in_use;
      facts["pool_bytes"] = memory.bytes_in_use + memory.bytes_cached;
      return facts;
    }
    const auto known = driver_of(device.kind)->memory_statistics(device);
    if (!known) return py::none();
    facts["num_allocs"] = known->num_allocations;
    facts["bytes_in_use"] = known->in_use;
    facts["peak_bytes_in_use"] = known->most_in_use;
    facts["largest_alloc_size"] = known->largest;
    facts["bytes_limit"] = known->limit;
    facts["pool_bytes"] = known->reserved;
    facts["largest_free_block_bytes"] = known->largest_kept;
    return facts;
  });
  module.def("current_device", [] { return device_object(DeviceScope::current()); });
  module.def("set_current_device", [](const std::string& name) {
    const Device before = DeviceScope::current();
    DeviceScope::set(Device::named(name));
    return device_object(before);
  });
  module.def("device_put", [](py::object x, const std::string& name) {
    const Device device = Device::named(name);
    // NumPy's memory is copied once, into what the device copies.
    BorrowedMemory borrowed;
    std::optional<Array> array;
    if (!device.is_host() && !Trace::current() && is_numpy_array(x.ptr()))
      array = borrowed.read(x.ptr());
    if (!array) array = to_array(x.ptr(), {"device_put"});
    return to_python(device_put(*array, device));
  });
}

}  // namespace plait::python
