// Devices whose drivers are not part of the library: their modules are loaded before anyone asks
// which devices there are. The layer that loads modules says how.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace plait {

struct DeviceModules {
  void (*load)();                                     // called often, also from inside itself
  std::string (*why_missing)(std::string_view kind);  // empty where it is not known
};
void set_device_modules(const DeviceModules* modules);  // for the life of the process
void load_device_modules();                             // where there are any

}  // namespace plait
