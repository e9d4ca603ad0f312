// See exchange.h; lent_storage is in placement.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/driver.h>
#include <plait/base/exchange.h>

namespace plait {

std::optional<std::int64_t> foreign_number(const Stream& stream) {
  if (stream.is_host()) return {};
  return driver_of(stream.device().kind)->foreign_number(stream.handle());
}

void let_foreign_read(const Buffer& buffer, std::int64_t stream) {
  if (buffer.device().is_host()) return;
  const Stream own = Stream::current(buffer.device());
  buffer.storage().wait_to_read(own);
  const std::uint64_t ticket = own.ticket();
  if (own.is_done(ticket)) return buffer.wait();  // for what failed; else the mark is set by now
  if (!driver_of(own.device().kind)->order_foreign(stream, own.handle(), ticket)) buffer.wait();
}

void note_foreign_read(const Storage& storage, std::int64_t stream) noexcept {
  if (storage.device().is_host()) return;
  try {
    const Stream own = Stream::current(storage.device());
    if (driver_of(own.device().kind)->order_behind_foreign(own.handle(), stream))
      storage.note_read(own);
  } catch (...) {  // a device that is lost, or a forked child: nothing runs there any more
  }
}

}  // namespace plait
