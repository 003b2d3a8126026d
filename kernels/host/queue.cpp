// Streams of the fake runtime: queues, and the order in which a wait runs their work.
#include <binade/kernels/host/runtime_state.h>

#include <algorithm>

namespace binade::kernels::host {

CUstream_st* Runtime::resolve(cudaStream_t stream) {
  if (!stream) {
    return streams[static_cast<size_t>(thread_device())].get();
  }
  for (auto& known : streams) {
    if (known.get() == stream && !known->destroyed) {
      return stream;
    }
  }
  return nullptr;
}

void Runtime::push(CUstream_st& stream, Work work) {
  if (stream.capture) {
    std::vector<Node>& nodes = stream.capture->graph->nodes;
    nodes.push_back({std::move(work), stream.tail});
    stream.tail = {static_cast<int>(nodes.size()) - 1};
    return;
  }
  if (work.kind == Work::record) {
    work.ticket->stream = &stream;
  }
  stream.queue.push_back(std::move(work));
  if (!options.deferred) {
    wait_for([&] { return stream.queue.empty(); }, &stream);
  }
}

bool Runtime::runnable(const CUstream_st& stream) const {
  return !stream.queue.empty() &&
         (stream.queue.front().kind != Work::wait || stream.queue.front().ticket->done);
}

// Follows waits to the stream that must run for `target` to go on; null if target has no work.
CUstream_st* Runtime::needed(CUstream_st* target) const {
  while (target && !target->queue.empty() && !runnable(*target)) {
    target = target->queue.front().ticket->stream;
  }
  return target && runnable(*target) ? target : nullptr;
}

CUstream_st* Runtime::choose(CUstream_st* target) {
  std::vector<CUstream_st*> others;
  for (auto& stream : streams) {
    if (stream.get() != target && runnable(*stream)) {
      others.push_back(stream.get());
    }
  }
  CUstream_st* next = needed(target);
  if (options.seed == 0 && next) {
    return next;
  }
  if (options.seed <= 1 || !next) {
    return others.empty() ? next : others.back();
  }
  const size_t pick = random() % (others.size() + 1);
  return pick < others.size() ? others[pick] : next;
}

void Runtime::step(CUstream_st& stream) {
  Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (work.kind == Work::record) {
    work.ticket->time = Clock::now();
    work.ticket->done = true;
  } else if (work.kind != Work::wait) {
    execute(work);
  }
}

void Runtime::execute(const Work& work) {
  if (sticky != cudaSuccess) {
    return;  // the context is dead
  }
  if (work.kind == Work::kernel) {
    ++counts.kernels;
    const cudaError_t error = fault_of("kernel");
    if (error != cudaSuccess) {
      sticky = is_sticky(error) ? error : cudaErrorLaunchFailure;
      return;
    }
  }
  work.body();
}

void Runtime::wait_for(const std::function<bool()>& done, CUstream_st* target) {
  while (!done()) {
    CUstream_st* next = choose(target);
    if (!next) {
      return;  // happens only if an event was never recorded
    }
    step(*next);
  }
  std::erase_if(streams, [](auto& stream) { return stream->destroyed && stream->queue.empty(); });
}

void Runtime::wait_for_device(int device) {
  const auto busy = [&](const auto& stream) {
    return stream->device == device && !stream->queue.empty();
  };
  for (;;) {
    const auto found = std::find_if(streams.begin(), streams.end(), busy);
    if (found == streams.end()) {
      return;
    }
    CUstream_st* stream = found->get();
    wait_for([&] { return stream->queue.empty(); }, stream);
  }
}

void Runtime::run_something() {
  if (!options.deferred || random() % 2) {
    return;
  }
  std::vector<CUstream_st*> ready;
  for (auto& stream : streams) {
    if (runnable(*stream)) {
      ready.push_back(stream.get());
    }
  }
  if (!ready.empty()) {
    step(*ready[random() % ready.size()]);
  }
}

}  // namespace binade::kernels::host

using namespace binade::kernels::host;  // NOLINT: the calls below are global

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int priority) {
  return call("cudaStreamCreateWithPriority", [&](Runtime& r) {
    auto made = std::make_unique<CUstream_st>();
    made->device = thread_device();
    made->priority = priority;
    *stream = made.get();
    r.streams.push_back(std::move(made));
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", [&](Runtime& r) {
    if (!stream || !r.resolve(stream)) {
      return cudaErrorInvalidResourceHandle;
    }
    stream->destroyed = true;
    std::erase_if(r.streams, [](auto& s) { return s->destroyed && s->queue.empty(); });
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", [&](Runtime& r) {
    CUstream_st* target = r.resolve(stream);
    if (!target) {
      return cudaErrorInvalidResourceHandle;
    }
    if (target->capture) {
      target->capture->invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    ++r.counts.waits;
    r.wait_for([&] { return target->queue.empty(); }, target);
    return r.sticky;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call("cudaStreamQuery", [&](Runtime& r) {
    CUstream_st* target = r.resolve(stream);
    if (!target) {
      return cudaErrorInvalidResourceHandle;
    }
    if (cudaError_t error = r.unsafe_in_capture(); error != cudaSuccess) {
      return error;
    }
    r.run_something();
    return r.sticky != cudaSuccess ? r.sticky
                                   : (target->queue.empty() ? cudaSuccess : cudaErrorNotReady);
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [&](Runtime& r) {
    if (cudaError_t error = r.unsafe_in_capture(); error != cudaSuccess) {
      return error;
    }
    ++r.counts.waits;
    r.wait_for_device(thread_device());
    return r.sticky;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", [&](Runtime&) {
    *event = new CUevent_st;
    (*event)->device = thread_device();
    (*event)->flags = flags;
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {  // frees the object, whatever it returns
  std::lock_guard lock(runtime().mutex);
  delete event;
  return call("cudaEventDestroy", [](Runtime&) { return cudaSuccess; });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&](Runtime& r) {
    CUstream_st* target = r.resolve(stream);
    if (!target || target->device != event->device) {
      return cudaErrorInvalidResourceHandle;
    }
    ++r.counts.events;
    if (target->capture) {
      event->capture = target->capture;
      event->nodes = target->tail;
      event->ticket = nullptr;
      return target->capture->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
    }
    event->capture = nullptr;
    event->ticket = std::make_shared<Ticket>();
    r.push(*target, {Work::record, nullptr, event->ticket});
    return cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call("cudaStreamWaitEvent", [&](Runtime& r) {
    CUstream_st* target = r.resolve(stream);
    if (!target) {
      return cudaErrorInvalidResourceHandle;
    }
    if (event->capture) {  // forks the capture to this stream, or joins
      if (target->capture && target->capture != event->capture) {
        return cudaErrorStreamCaptureMerge;
      }
      if (!target->capture) {
        target->capture = event->capture;
        target->tail.clear();
      }
      target->tail.insert(target->tail.end(), event->nodes.begin(), event->nodes.end());
      return cudaSuccess;
    }
    if (target->capture) {
      target->capture->invalid = true;
      return cudaErrorStreamCaptureIsolation;
    }
    if (event->ticket && !event->ticket->done) {
      r.push(*target, {Work::wait, nullptr, event->ticket});
    }
    return cudaSuccess;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", [&](Runtime& r) {
    if (event->capture) {
      event->capture->invalid = true;
      return cudaErrorCapturedEvent;
    }
    if (cudaError_t error = r.unsafe_in_capture(); error != cudaSuccess) {
      return error;
    }
    r.run_something();
    return r.sticky != cudaSuccess
               ? r.sticky
               : (!event->ticket || event->ticket->done ? cudaSuccess : cudaErrorNotReady);
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", [&](Runtime& r) {
    if (event->capture) {
      event->capture->invalid = true;
      return cudaErrorCapturedEvent;
    }
    if (event->ticket) {
      ++r.counts.waits;
      const auto ticket = event->ticket;
      r.wait_for([&] { return ticket->done; }, ticket->done ? nullptr : ticket->stream);
    }
    return r.sticky;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call("cudaEventElapsedTime", [&](Runtime&) {
    if (!start->ticket || !end->ticket || ((start->flags | end->flags) & cudaEventDisableTiming)) {
      return cudaErrorInvalidResourceHandle;
    }
    if (!start->ticket->done || !end->ticket->done) {
      return cudaErrorNotReady;
    }
    *milliseconds =
        std::chrono::duration<float, std::milli>(end->ticket->time - start->ticket->time).count();
    return cudaSuccess;
  });
}
