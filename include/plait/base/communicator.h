// What the ranks of a job give each other: bytes, in an order that all of them keep. The engine is
// MPI, in a module (lib/backends/mpi); arithmetic is plait's (lib/base/collectives.h).
//
// Every call is made by all ranks of its group, in the same order, from one thread at a time. It
// returns when this rank's part is done.
//
// NOTE: [deadlines] No wait is for ever. A rank that waits looks now and then whether a rank that
// it waits for has ended, or has gone on to another collective: that, or PLAIT_DEADLINE seconds
// (600 without it), ends the job with a message on stderr that names the rank, its machine, the
// collective with the user's line, and for whom it waited; ranks that wait elsewhere say the same
// of themselves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/error.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plait {

// Ranks that take part in a call, in the order of their places: the same list on each of them.
using Ranks = std::vector<int>;

struct Bytes {
  void* data = nullptr;
  std::size_t size = 0;
};
struct ConstBytes {
  const void* data = nullptr;
  std::size_t size = 0;
};

// Ranks disagree, or a process that is no rank takes part. In Python it is plait.Error.
struct JobError : UserError {
  using UserError::UserError;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;          // of this process, from 0 on
  virtual int size() const = 0;          // of the job
  virtual std::string name() const = 0;  // "Open MPI v4.1.4"
  // Ranks on this machine, among which its cores are divided.
  virtual int num_on_this_machine() const = 0;

  // what: the collective and the user's line, for the message of a wait that takes too long.
  // Calls of different purposes do not meet.
  // Block i of `all`, one for each of the ranks, becomes what that rank gives as `mine`. Blocks may
  // be of several sizes, and empty.
  void all_gather(const Ranks& ranks, ConstBytes mine, std::span<const Bytes> all,
                  const std::string& what, std::uint64_t purpose = 0);
  // Block i goes to rank i of the list; what rank i has for this one arrives in received[i]. The
  // sizes agree.
  void all_to_all(const Ranks& ranks, std::span<const ConstBytes> sent,
                  std::span<const Bytes> received, const std::string& what,
                  std::uint64_t purpose = 0);
  // To one rank of the job and from one, either of which may be -1: none.
  void send_receive(int to, ConstBytes sent, int from, Bytes received, const std::string& what,
                    std::uint64_t purpose = 0);
  // Ends all processes of the job, after this message on stderr.
  [[noreturn]] virtual void abort(const std::string& message) = 0;

  // The place of this rank in a list. ValueError where it has none.
  int place_in(const Ranks& ranks) const;
  // How often this was called for the group before.
  std::uint64_t count_call(const Ranks& ranks) { return num_calls_[ranks]++; }

 protected:
  // tag: from 0 to 32767, the same for both ranks where they make the same call, on as many bytes,
  // and have exchanged as many messages before; most likely another one where not. They wait in
  // vain then, and find out.
  // is_awaited: the call returns only once the receiver has begun to take it. Some are, so that a
  // rank that only sends is not ahead of the others by more than these.
  struct Sent {
    int to, tag;
    ConstBytes bytes;
    bool is_awaited;
  };
  struct Received {
    int from, tag;
    Bytes bytes;
  };
  // All that an engine does: messages between this rank and others, none of them empty or to
  // itself. Those of one tag between two ranks arrive in the order in which they were sent.
  virtual void exchange(std::span<const Sent> sent, std::span<const Received> received,
                        const std::string& what) = 0;

 private:
  void send(int to, std::uint64_t call, ConstBytes bytes);
  void receive(int from, std::uint64_t call, Bytes bytes);
  void exchange_all(const std::string& what);  // what was given to these
  void all_gather_doubling(const Ranks& ranks, ConstBytes mine, std::span<const Bytes> all,
                           std::uint64_t call, const std::string& what);
  std::map<Ranks, std::uint64_t> num_calls_;
  std::vector<std::uint64_t> num_sent_, num_received_;  // messages, by the other rank
  std::vector<Sent> sent_;
  std::vector<Received> received_;
};

// The communicator of this job; null in a process that is alone, as children of a rank are. A job
// is started by mpirun, or `plait run -n 4 script.py`; nothing is loaded before the first call.
// BackendError where the job has an MPI that plait cannot load.
std::shared_ptr<Communicator> communicator();
// Whether the places of a mesh are the ranks of a job: a process that is alone has them all.
bool are_places_ranks();
// For tests, whose ranks are their own; null makes the process one that is alone.
void set_communicator(std::shared_ptr<Communicator> communicator);
// Called by the module of an engine, when it is loaded: start is called in the first
// communicator().
void set_engine(std::shared_ptr<Communicator> (*start)());

// How long a wait may take: PLAIT_DEADLINE. ValueError where that is no number of seconds.
std::chrono::duration<double> deadline_of_waits();

}  // namespace plait
