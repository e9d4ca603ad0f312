// The stand-in's driver: streams, events, values that streams write and wait for, captures.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "state.h"

namespace cuda_standin {

void release_unused_memory(int device);

namespace {

constexpr int empty_node = 5, values_node = 12;

// Adds a node behind what the stream has recorded last.
void record(CUstream_st& stream, Work work) {
  auto node = std::make_unique<CUgraphNode_st>();
  node->work = std::move(work);
  node->after = stream.last;
  stream.last = {node.get()};
  stream.capture->graph->nodes.push_back(std::move(node));
}

void leave(const std::shared_ptr<Capture>& capture) {
  for (const CUstream handle : capture->streams)
    if (const auto stream = find_stream(handle)) {
      stream->capture = nullptr;
      stream->last.clear();
    }
  for (const auto& event : state().events.all())
    if (event->capture == capture) event->capture = nullptr, event->last.clear();
  state().captures.erase(capture);
}

void join(CUstream_st& stream, CUevent_st& event) {
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    event.capture->streams.insert(&stream);
  }
  for (const CUgraphNode node : event.last)
    if (std::ranges::count(stream.last, node) == 0) stream.last.push_back(node);
}

// Device memory, or host memory that the device sees; nullptr where nothing is.
std::uint64_t* value_at(std::uint64_t address) {
  for (int device = 0; device < num_devices; ++device)
    if (memory_of(device).has(address))
      return reinterpret_cast<std::uint64_t*>(memory_of(device).find(address, 8));
  return pinned().has(address, 8) ? reinterpret_cast<std::uint64_t*>(address) : nullptr;
}

CUresult submit_value(CUstream handle, std::uint64_t address,
                      std::function<void(std::uint64_t*, CUcontext)> work) {
  const auto stream = find_stream(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!has_stream_values()) return CUDA_ERROR_NOT_SUPPORTED;
  if (address % 8 != 0) return CUDA_ERROR_INVALID_VALUE;
  return submit(*stream, {values_node,
                          [address, work = std::move(work), context = stream->context] {
                            if (std::uint64_t* value = value_at(address))
                              work(value, context);
                            else
                              lose(context->device, CUDA_ERROR_ILLEGAL_ADDRESS,
                                   "a stream's value lies where no memory is");
                          },
                          {}});
}

std::shared_ptr<CUstream_st> make_stream(CUcontext context) {
  static std::atomic<unsigned> number{1};
  auto made = std::make_shared<CUstream_st>();
  made->context = context;
  made->queue = std::make_shared<Queue>(number++);
  made->queue->start();
  return made;
}

bool is_default(CUstream stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

}  // namespace

// The three kinds of it are one here, and wait for no other stream.
std::shared_ptr<CUstream_st> find_stream(CUstream stream) {
  if (!is_default(stream)) return state().streams.find(stream);
  const int device = current_context()->device;
  std::call_once(state().made[device],
                 [&] { state().default_streams[device] = make_stream(&state().contexts[device]); });
  return state().default_streams[device];
}

CUresult submit(CUstream_st& stream, Work work) {
  const std::lock_guard lock(state().capturing);
  if (stream.capture != nullptr) {
    if (stream.capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    record(stream, std::move(work));
    return CUDA_SUCCESS;
  }
  stream.queue->submit(
      [context = stream.context, work = std::move(work)] { run_work(context, work); });
  return CUDA_SUCCESS;
}

void run_work(CUcontext context, const Work& work) {
  if (context->error != CUDA_SUCCESS && !work.is_always_done) return;
  if (work.kernel != nullptr)
    run_kernel(context, *work.kernel);
  else if (work.run)
    work.run();
}

CUresult refuse_in_captures() {
  const std::lock_guard lock(state().capturing);
  CUresult result = CUDA_SUCCESS;
  for (const auto& capture : state().captures) {
    const bool is_concerned = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
                              (capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
                               capture->thread == std::this_thread::get_id());
    if (!is_concerned) continue;
    capture->is_invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult refuse_of_capturing(CUstream_st& stream) {
  const std::lock_guard lock(state().capturing);
  if (stream.capture == nullptr) return CUDA_SUCCESS;
  stream.capture->is_invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

STANDIN_EXPORT CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  STANDIN_CALL();
  if (stream == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  *stream = state().streams.add(make_stream(current_context()));
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

STANDIN_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  STANDIN_CALL();
  const auto object = state().streams.remove(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  object->queue->close();
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  STANDIN_CALL();
  const auto object = find_stream(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult refused = refuse_of_capturing(*object)) return refused;
  if (const CUresult refused = refuse_in_captures()) return refused;
  object->queue->wait();
  release_unused_memory(object->context->device);
  return object->context->error;
}

STANDIN_EXPORT CUresult cuStreamQuery(CUstream stream) {
  STANDIN_CALL();
  const auto object = find_stream(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult refused = refuse_of_capturing(*object)) return refused;
  if (const CUresult refused = refuse_in_captures()) return refused;
  if (!object->queue->is_done()) return CUDA_ERROR_NOT_READY;
  return object->context->error;
}

STANDIN_EXPORT CUresult cuEventCreate(CUevent* event, unsigned) {
  STANDIN_CALL();
  auto made = std::make_shared<CUevent_st>();
  made->context = current_context();
  *event = state().events.add(std::move(made));
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  STANDIN_CALL();
  return state().events.remove(event) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

STANDIN_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  STANDIN_CALL();
  const auto object = state().events.find(event);
  const auto on = find_stream(stream);
  if (object == nullptr || on == nullptr || object->context != on->context)
    return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(state().capturing);
  if (on->capture != nullptr) {
    if (on->capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    object->capture = on->capture;
    object->last = on->last;
    object->mark = nullptr;
    return CUDA_SUCCESS;
  }
  auto mark = std::make_shared<Mark>();
  object->capture = nullptr;
  object->mark = mark;
  return submit(*on, {empty_node, [mark] { mark->reach(); }, {}, true});
}

STANDIN_EXPORT CUresult cuEventQuery(CUevent event) {
  STANDIN_CALL();
  const auto object = state().events.find(event);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(state().capturing);
  if (object->capture != nullptr) {
    object->capture->is_invalid = true;
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  if (const CUresult refused = refuse_in_captures()) return refused;
  if (object->mark != nullptr && !object->mark->is_reached()) return CUDA_ERROR_NOT_READY;
  return object->context->error;
}

STANDIN_EXPORT CUresult cuEventSynchronize(CUevent event) {
  STANDIN_CALL();
  const auto object = state().events.find(event);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::shared_ptr<Mark> mark;
  {
    const std::lock_guard lock(state().capturing);
    if (object->capture != nullptr) {
      object->capture->is_invalid = true;
      return CUDA_ERROR_CAPTURED_EVENT;
    }
    mark = object->mark;
  }
  if (const CUresult refused = refuse_in_captures()) return refused;
  if (mark != nullptr) mark->wait();
  release_unused_memory(object->context->device);
  return object->context->error;
}

STANDIN_EXPORT CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
  STANDIN_CALL();
  const auto first = state().events.find(begin), last = state().events.find(end);
  if (first == nullptr || last == nullptr || first->mark == nullptr || last->mark == nullptr)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!first->mark->is_reached() || !last->mark->is_reached()) return CUDA_ERROR_NOT_READY;
  *milliseconds =
      std::chrono::duration<float, std::milli>(last->mark->when() - first->mark->when()).count();
  return CUDA_SUCCESS;
}

STANDIN_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  STANDIN_CALL();
  const auto object = find_stream(stream);
  const auto of = state().events.find(event);
  if (object == nullptr || of == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(state().capturing);
  if (of->capture != nullptr) {
    if (object->capture != nullptr && object->capture != of->capture) {
      object->capture->is_invalid = of->capture->is_invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    join(*object, *of);
    return CUDA_SUCCESS;
  }
  if (object->capture != nullptr) {
    object->capture->is_invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (of->mark == nullptr || is_planted("waits")) return CUDA_SUCCESS;
  return submit(*object, {empty_node, [mark = of->mark] { mark->wait(); }, {}, true});
}

STANDIN_EXPORT CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address,
                                                std::uint64_t value, unsigned flags) {
  STANDIN_CALL();
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT) return CUDA_ERROR_NOT_SUPPORTED;
  if (is_planted("values")) return *value_at(address) = value, CUDA_SUCCESS;
  return submit_value(stream, address, [value](std::uint64_t* memory, CUcontext) {
    __atomic_store_n(memory, value, __ATOMIC_SEQ_CST);
  });
}

STANDIN_EXPORT CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address,
                                               std::uint64_t value, unsigned flags) {
  STANDIN_CALL();
  if (flags > 3) return CUDA_ERROR_INVALID_VALUE;
  if (is_planted("waits")) return CUDA_SUCCESS;
  const auto is_reached = [value, flags](std::uint64_t there) {
    switch (flags) {
      case CU_STREAM_WAIT_VALUE_GEQ:
        return std::int64_t(there - value) >= 0;
      case 1:
        return there == value;
      case 2:
        return (there & value) != 0;
      default:
        return ~(there | value) != 0;
    }
  };
  return submit_value(stream, address, [is_reached](std::uint64_t* memory, CUcontext context) {
    while (!is_reached(__atomic_load_n(memory, __ATOMIC_SEQ_CST)) && context->error == CUDA_SUCCESS)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  });
}

STANDIN_EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  STANDIN_CALL();
  const auto object = find_stream(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (mode < 0 || mode > 2) return CUDA_ERROR_INVALID_VALUE;
  if (is_default(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::lock_guard lock(state().capturing);
  if (const CUresult refused = refuse_of_capturing(*object)) return refused;
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  capture->graph->context = object->context;
  capture->streams.insert(stream);
  object->capture = capture;
  object->last.clear();
  state().captures.insert(capture);
  return CUDA_SUCCESS;
}

// Whether what other streams recorded is known to the stream that the capture began in.
static bool is_joined(const Capture& capture) {
  std::set<CUgraphNode> known;
  std::vector<CUgraphNode> next = find_stream(capture.origin)->last;
  while (!next.empty()) {
    const CUgraphNode node = next.back();
    next.pop_back();
    if (!known.insert(node).second) continue;
    next.insert(next.end(), node->after.begin(), node->after.end());
  }
  return known.size() == capture.graph->nodes.size();
}

STANDIN_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  STANDIN_CALL();
  const auto object = find_stream(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(state().capturing);
  const auto capture = object->capture;
  if (graph != nullptr) *graph = nullptr;
  if (capture == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (capture->origin != stream) {
    capture->is_invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  const CUresult result = capture->is_invalid    ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                          : !is_joined(*capture) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                                 : CUDA_SUCCESS;
  leave(capture);
  if (result == CUDA_SUCCESS) *graph = state().graphs.add(std::move(capture->graph));
  return result;
}

static int status_of(const CUstream_st& stream) {
  return stream.capture == nullptr    ? CU_STREAM_CAPTURE_STATUS_NONE
         : stream.capture->is_invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

STANDIN_EXPORT CUresult cuStreamIsCapturing(CUstream stream, int* status) {
  STANDIN_CALL();
  const auto object = find_stream(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(state().capturing);
  *status = status_of(*object);
  return CUDA_SUCCESS;
}

// Where it captures, what it would run next comes behind these nodes, which live until it goes on.
STANDIN_EXPORT CUresult cuStreamGetCaptureInfo_v3(CUstream stream, int* status, std::uint64_t* id,
                                                  CUgraph* graph, const CUgraphNode** last,
                                                  const CUgraphEdgeData** edges,
                                                  std::size_t* count) {
  STANDIN_CALL();
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (id != nullptr || graph != nullptr || edges != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const auto object = find_stream(stream);
  if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(state().capturing);
  *status = status_of(*object);
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (last != nullptr) *last = object->last.data();
  if (count != nullptr) *count = object->last.size();
  return CUDA_SUCCESS;
}

}  // namespace cuda_standin
