// A communicator on one ABI of MPI, whose functions are found by name: nothing of MPI is linked.
//
// An Abi says what handles are, and the few constants that differ: see the files abi_*.cpp.
// Messages are those of one communicator of plait's own; a second one carries notes between ranks,
// about deadlines and ends, which only ranks that wait for long or end read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/communicator.h>

#include <sched.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>

#include "backends/mpi/find.h"
#include "backends/mpi/watch.h"
#include "base/job.h"
#include "base/library.h"

namespace plait::mpi {

template <class Abi>
struct Functions {
  using Comm = typename Abi::Comm;
  using Request = typename Abi::Request;
  using Type = typename Abi::Datatype;
  int (*initialized)(int* flag);
  int (*init_thread)(int* argc, char*** argv, int required, int* provided);
  int (*query_thread)(int* provided);
  int (*finalized)(int* flag);
  int (*finalize)();
  int (*abort)(Comm, int code);
  int (*comm_dup)(Comm, Comm* copy);
  int (*comm_free)(Comm*);
  int (*comm_rank)(Comm, int* rank);
  int (*comm_size)(Comm, int* size);
  int (*comm_split_type)(Comm, int type, int key, typename Abi::Info, Comm* part);
  int (*comm_set_errhandler)(Comm, typename Abi::Errhandler);
  int (*isend)(const void*, int count, Type, int to, int tag, Comm, Request*);
  int (*issend)(const void*, int count, Type, int to, int tag, Comm, Request*);
  int (*irecv)(void*, int count, Type, int from, int tag, Comm, Request*);
  int (*test)(Request*, int* flag, void* status);
  int (*iprobe)(int from, int tag, Comm, int* flag, void* status);
  int (*error_string)(int code, char* text, int* length);
  int (*get_library_version)(char* text, int* length);

  explicit Functions(const Library& library) {
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
      if (!function && missing.empty()) missing = name;
    };
    find(initialized, "MPI_Initialized");
    find(init_thread, "MPI_Init_thread");
    find(query_thread, "MPI_Query_thread");
    find(finalized, "MPI_Finalized");
    find(finalize, "MPI_Finalize");
    find(abort, "MPI_Abort");
    find(comm_dup, "MPI_Comm_dup");
    find(comm_free, "MPI_Comm_free");
    find(comm_rank, "MPI_Comm_rank");
    find(comm_size, "MPI_Comm_size");
    find(comm_split_type, "MPI_Comm_split_type");
    find(comm_set_errhandler, "MPI_Comm_set_errhandler");
    find(isend, "MPI_Isend");
    find(issend, "MPI_Issend");
    find(irecv, "MPI_Irecv");
    find(test, "MPI_Test");
    find(iprobe, "MPI_Iprobe");
    find(error_string, "MPI_Error_string");
    find(get_library_version, "MPI_Get_library_version");
  }
  std::string missing;  // the first one that is
};

// What to look for where ranks do not come.
constexpr char fix_of_start[] =
    "\n  fix: see that every rank is alive and uses plait: a rank joins when it first asks for its "
    "mesh,\n  its index or a collective. PLAIT_DEADLINE is how many seconds a rank may wait";

template <class Abi>
class Engine final : public Communicator {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  using Comm = typename Abi::Comm;
  using Request = typename Abi::Request;

 public:
  // BackendError where the library is not the MPI that started the job.
  Engine(const Library& library, const Job& job)
      : mpi_(library), constants_(library), job_(job), deadline_(deadline_of_waits()) {
    if (!mpi_.missing.empty() || !constants_.are_complete())
      throw BackendError("the library of MPI that was found has no " +
                             (mpi_.missing.empty() ? std::string("handles") : mpi_.missing),
                         fix_of_library);
    const Seconds to_join = std::max(deadline_, Seconds(20));  // processes start one by one
    const Watch watch(to_join,
                      self() + " has waited " + text_of(to_join) +
                          " for the other ranks to join the job, so it ends" + fix_of_start,
                      1);
    initialise();
    check(mpi_.comm_dup(constants_.world, &data_), "MPI_Comm_dup");
    check(mpi_.comm_dup(constants_.world, &notes_), "MPI_Comm_dup");
    check(mpi_.comm_set_errhandler(data_, constants_.errors_return), "MPI_Comm_set_errhandler");
    check(mpi_.comm_set_errhandler(notes_, constants_.errors_return), "MPI_Comm_set_errhandler");
    check(mpi_.comm_rank(data_, &rank_), "MPI_Comm_rank");
    check(mpi_.comm_size(data_, &size_), "MPI_Comm_size");
    Comm machine = constants_.world;
    check(mpi_.comm_split_type(data_, Abi::type_shared, rank_, constants_.no_info, &machine),
          "MPI_Comm_split_type");
    check(mpi_.comm_size(machine, &num_on_this_machine_), "MPI_Comm_size");
    check(mpi_.comm_free(&machine), "MPI_Comm_free");
    is_crowded_ = num_on_this_machine_ > sysconf(_SC_NPROCESSORS_ONLN);
    has_ended_.resize(std::size_t(size_));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return name_; }
  int num_on_this_machine() const override { return num_on_this_machine_; }

  [[noreturn]] void abort(const std::string& message) override { abort(message, 1); }

  // At exit of the process: the others are told, and MPI ends when all of them have come here. A
  // rank that fails does not wait for those that are still at work.
  void end(int status) {
    if (getpid() != process_) return;
    int flag = 0;
    if (mpi_.finalized(&flag) != 0 || flag || !is_ours_) return;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock)
      abort(self() + " ends while another of its threads waits for other ranks",
            status != 0 ? status : 1);
    std::vector<Pending> notes;
    tell_all(Note::end, notes);
    const Clock::time_point began = Clock::now();
    const auto has_all = [&] {
      test_all(notes);
      for (int other = 0; other < size_; ++other)
        if (other != rank_ && !has_ended_[std::size_t(other)]) return false;
      return notes.empty();
    };
    for (long turn = 0; read_notes("has ended its program"), !has_all(); ++turn) {
      const Seconds waited = Clock::now() - began;
      if (status != 0 && waited > sure_)
        abort(self() + " ended with exit code " + std::to_string(status) +
                  " while others are at work, and ends the job",
              status);
      if (waited > deadline_) {
        Ranks others;
        for (int other = 0; other < size_; ++other)
          if (other != rank_ && !has_ended_[std::size_t(other)]) others.push_back(other);
        abort(self() + " has ended its program, and has waited " + text_of(waited) + " for " +
                  (others.empty() ? "MPI" : named(others)) +
                  " to end too, so the job ends\n  fix: where one rank works for longer than the "
                  "others, PLAIT_DEADLINE is how many seconds they wait",
              1);
      }
      turn < 100 ? sched_yield() : usleep(1000);
    }
    const Watch watch(
        deadline_, self() + " has waited " + text_of(deadline_) + " for MPI to end, so it ends", 1);
    mpi_.finalize();
  }

 protected:
  void exchange(std::span<const Sent> sent, std::span<const Received> received,
                const std::string& what) override {
    if (getpid() != process_)
      throw JobError("a child of rank " + std::to_string(rank_) + " is no rank of the job: " + what,
                     "call collectives in the process that was started by the launcher");
    const std::lock_guard lock(mutex_);
    pending_.clear();
    std::size_t bytes = 0;
    for (const Received& one : received) {
      bytes += one.bytes.size;
      in_pieces(one.bytes, [&](char* data, int size) {
        check(mpi_.irecv(data, size, constants_.byte, one.from, one.tag, data_,
                         add(pending_, one.from, Pending::receive)),
              "MPI_Irecv", &what);
      });
    }
    for (const Sent& one : sent) {
      bytes += one.bytes.size;
      const auto send = one.is_awaited ? mpi_.issend : mpi_.isend;
      in_pieces({const_cast<void*>(one.bytes.data), one.bytes.size}, [&](char* data, int size) {
        check(send(data, size, constants_.byte, one.to, one.tag, data_,
                   add(pending_, one.to, Pending::send)),
              one.is_awaited ? "MPI_Issend" : "MPI_Isend", &what);
      });
    }
    wait(bytes, what);
  }

 private:
  enum class Note : char { deadline = 'd', end = 'e' };
  struct Pending {
    enum Kind { send, receive };
    Request request;
    int peer;
    Kind kind;
  };

  void initialise() {
    int flag = 0, provided = 0;
    check(mpi_.initialized(&flag), "MPI_Initialized");
    is_ours_ = !flag;
    if (flag)
      check(mpi_.query_thread(&provided), "MPI_Query_thread");
    else
      check(mpi_.init_thread(nullptr, nullptr, Abi::thread_serialized, &provided),
            "MPI_Init_thread");
    char text[8192] = {};
    int length = 0, size = 0;
    check(mpi_.get_library_version(text, &length), "MPI_Get_library_version");
    name_ = name_of_version(text);
    if (provided < Abi::thread_serialized)
      throw BackendError(name_ + " was initialised for one thread alone",
                         "initialise it with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE");
    check(mpi_.comm_size(constants_.world, &size), "MPI_Comm_size");
    if (job_.size > 0 && size != job_.size)
      throw BackendError(name_ + " sees " + std::to_string(size) + " of the " +
                             std::to_string(job_.size) +
                             " ranks: it is not the MPI that started this job",
                         fix_of_library);
  }

  void check(int code, const char* function, const std::string* what = nullptr) const {
    if (code == 0) return;
    char text[8192] = {};
    int length = 0;
    if (mpi_.error_string(code, text, &length) != 0) text[0] = 0;
    const std::string problem =
        std::string(function) + " failed" + (what ? " in " + *what : "") + ": " + text;
    // Messages that are under way would write into memory that the caller gives back.
    if (what) const_cast<Engine*>(this)->abort(self() + ": " + problem);
    throw BackendError(problem, "see the messages of MPI above");
  }

  // Counts are ints.
  template <class Body>
  static void in_pieces(Bytes bytes, const Body& body) {
    constexpr std::size_t most = std::size_t(1) << 30;
    for (std::size_t start = 0; start < bytes.size; start += most)
      body(static_cast<char*>(bytes.data) + start, int(std::min(most, bytes.size - start)));
  }

  static Request* add(std::vector<Pending>& pending, int peer, typename Pending::Kind kind) {
    pending.push_back({Request{}, peer, kind});
    return &pending.back().request;
  }

  void test_all(std::vector<Pending>& pending, const std::string* what = nullptr) {
    for (std::size_t i = 0; i < pending.size();) {
      int is_done = 0;
      check(mpi_.test(&pending[i].request, &is_done, Abi::no_status()), "MPI_Test", what);
      if (!is_done) {
        ++i;
        continue;
      }
      pending[i] = pending.back();
      pending.pop_back();
    }
  }

  // It spins for as long as the bytes are likely to take, since MPI moves them in here; then other
  // processes may run in between; then it sleeps. Where ranks are more than cores it sleeps almost
  // at once: who sleeps runs first when it wakes, and what it waits for runs meanwhile.
  void wait(std::size_t bytes, const std::string& what) {
    constexpr long between_looks = 32;
    const Clock::time_point began = Clock::now();
    const Seconds spinning{is_crowded_ ? 0 : 15e-6 + 0.5e-9 * double(bytes)},
        awake{is_crowded_ ? 0 : 5e-3 + 4e-9 * double(bytes)};
    Clock::time_point looked = began;
    enum { spins, yields, sleeps } way = spins;
    num_odd_looks_.assign(std::size_t(size_), 0);
    for (long turn = 1;; ++turn) {
      test_all(pending_, &what);
      if (pending_.empty()) return;
      if (way == yields) sched_yield();
      if (way == sleeps) usleep(50);
      if (turn % between_looks != 0) continue;
      const Clock::time_point now = Clock::now();
      way = now - began > awake ? sleeps : now - began > spinning ? yields : spins;
      if (now - looked < between_looks_around_ && now - began < deadline_) continue;
      looked = now;
      look_around(now - began, bytes, what);
    }
  }

  std::string self() const {
    return "rank " + std::to_string(rank_) + " of " + std::to_string(size_) + " (process " +
           std::to_string(process_) + " on " + machine_name() + ")";
  }

  // "rank 2", "ranks 2 and 3"
  std::string awaited() const {
    std::vector<bool> is_awaited(static_cast<std::size_t>(size_));
    for (const Pending& one : pending_) is_awaited[std::size_t(one.peer)] = true;
    Ranks ranks;
    for (int other = 0; other < size_; ++other)
      if (is_awaited[std::size_t(other)]) ranks.push_back(other);
    return named(ranks);
  }

  // See NOTE: [deadlines] in communicator.h.
  void look_around(Seconds waited, std::size_t bytes, const std::string& what) {
    const std::string state = "has waited " + text_of(waited) + " for " + awaited() + " in " + what;
    read_notes(state);
    if (waited > deadline_) give_up(state, "the time is up");
    // What should not be is believed when it has been seen again and again: messages may be under
    // way, and this process may have been stopped between two looks.
    const auto is_sure = [&](int peer, bool is_odd) {
      int& num_looks = num_odd_looks_[std::size_t(peer)];
      num_looks = is_odd ? num_looks + 1 : 0;
      return num_looks > looks_to_be_sure && waited > sure_ + Seconds(2e-8 * double(bytes));
    };
    std::vector<bool> is_seen(static_cast<std::size_t>(size_));
    for (const Pending& one : pending_) {
      if (one.kind != Pending::receive || is_seen[std::size_t(one.peer)]) continue;
      is_seen[std::size_t(one.peer)] = true;
      // What it sent for this call would have been taken: this belongs to another call.
      int is_there = 0;
      check(mpi_.iprobe(one.peer, Abi::any_tag, data_, &is_there, Abi::no_status()), "MPI_Iprobe",
            &what);
      const bool has_ended = has_ended_[std::size_t(one.peer)];
      if (is_sure(one.peer, is_there || has_ended))
        give_up(state, named({one.peer}) +
                           (is_there ? " is in another collective, or in one of another size"
                                     : " has ended its program"));
    }
    for (const Pending& one : pending_)  // it will not be taken
      if (!is_seen[std::size_t(one.peer)] && is_sure(one.peer, has_ended_[std::size_t(one.peer)]))
        return give_up(state, named({one.peer}) + " has ended its program");
  }

  void give_up(const std::string& state, const std::string& reason) {
    // Another rank did: it ends the job, or it is gone.
    const Clock::time_point now = Clock::now();
    if (has_spoken_ && now - *has_spoken_ < Seconds(5)) return;
    if (!std::exchange(has_spoken_, now))
      say(self() + " " + state + ": " + reason +
          ", so the job ends\n  fix: see what the ranks do that it waits for: those that say "
          "nothing "
          "here\n  were not waiting. PLAIT_DEADLINE is how many seconds a rank may wait");
    std::vector<Pending> notes;
    tell_all(Note::deadline, notes);
    // Others say where they are. What they wait for may come meanwhile, and helps nobody any more.
    for (const auto began = Clock::now(); Clock::now() - began < sure_ / 2;) {
      test_all(notes);
      usleep(1000);
    }
    abort("", 1);
  }

  void tell_all(Note note, std::vector<Pending>& pending) {
    static char notes[] = {char(Note::deadline), char(Note::end)};
    char* text = &notes[note == Note::end];
    for (int other = 0; other < size_; ++other)
      if (other != rank_)
        check(mpi_.isend(text, 1, constants_.byte, other, 0, notes_,
                         add(pending, other, Pending::send)),
              "MPI_Isend");
  }

  // state: what this rank says of itself where another one gives up.
  void read_notes(const std::string& state) {
    for (int other = 0; other < size_; ++other) {
      int is_there = 0;
      if (other != rank_)
        check(mpi_.iprobe(other, 0, notes_, &is_there, Abi::no_status()), "MPI_Iprobe");
      if (!is_there) continue;
      char note = 0;
      std::vector<Pending> pending;
      check(mpi_.irecv(&note, 1, constants_.byte, other, 0, notes_,
                       add(pending, other, Pending::receive)),
            "MPI_Irecv");
      while (!pending.empty()) test_all(pending);
      if (note == char(Note::end))
        has_ended_[std::size_t(other)] = true;
      else if (!std::exchange(has_spoken_, Clock::now()))
        say(self() + " " + state);
    }
  }

  [[noreturn]] void abort(const std::string& message, int code) {
    if (!message.empty()) say(message);
    usleep(50000);                            // launchers drop what they have not read yet
    const Watch watch(Seconds(5), "", code);  // the launcher may be out of reach
    mpi_.abort(constants_.world, code);
    _exit(code);
  }

  const Functions<Abi> mpi_;
  const typename Abi::Constants constants_;
  const Job job_;
  const Seconds deadline_;
  static constexpr int looks_to_be_sure = 8;
  const Seconds sure_{std::min(2.0, deadline_.count() / 4)};
  const Seconds between_looks_around_{sure_ / looks_to_be_sure};
  const pid_t process_ = getpid();
  std::mutex mutex_;  // MPI_THREAD_SERIALIZED
  Comm data_{}, notes_{};
  int rank_ = job_.rank, size_ = job_.size, num_on_this_machine_ = 1;
  bool is_ours_ = false, is_crowded_ = false;
  std::optional<Clock::time_point> has_spoken_;  // of its wait, where a rank gave up
  std::string name_;
  std::vector<Pending> pending_;
  std::vector<bool> has_ended_;     // by rank
  std::vector<int> num_odd_looks_;  // by rank, of this wait
};

// Starts MPI, and ends it when the process does. The engine lives for ever.
template <class Abi>
std::shared_ptr<Communicator> start(const Library& library, const Job& job) {
  static std::shared_ptr<Engine<Abi>>& engine = *new std::shared_ptr<Engine<Abi>>;
  engine = std::make_shared<Engine<Abi>>(library, job);
  // Unlike handlers of atexit it learns whether the process failed.
  on_exit([](int status, void*) { engine->end(status); }, nullptr);
  return engine;
}

// One for each ABI.
std::shared_ptr<Communicator> start_openmpi(const Library& library, const Job& job);
std::shared_ptr<Communicator> start_mpich(const Library& library, const Job& job);
std::shared_ptr<Communicator> start_standard(const Library& library, const Job& job);

}  // namespace plait::mpi
