// Memory of devices that is exchanged with other libraries, by the terms of DLPack. A foreign
// stream is one of another library on the same device, by its number (Driver::foreign_number).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <functional>
#include <optional>

namespace plait {

// Memory that another library lends, for reads in the order of the stream. It is never written:
// the storage's data() is not its address. give_back runs once, on any thread, when nobody holds
// the storage and the work that plait submitted on it is done. It must not throw.
Storage lent_storage(void* data, std::size_t bytes, const Stream& stream,
                     std::function<void()> give_back);
// What the library that lends memory is asked to order behind its own work.
std::optional<std::int64_t> foreign_number(const Stream& stream);

// What the foreign stream is given from now on comes behind what writes the buffer. Waits, and
// throws what failed, where the driver cannot order the two.
void let_foreign_read(const Buffer& buffer, std::int64_t stream);
// Says that the foreign stream has been given all that it does with the memory.
void note_foreign_read(const Storage& storage, std::int64_t stream) noexcept;

}  // namespace plait
