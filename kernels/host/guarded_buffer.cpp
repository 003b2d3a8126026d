#include <binade/kernels/host/ranges_internal.h>

#include <sys/mman.h>

#include <cstring>
#include <utility>

namespace binade::kernels::host {
namespace {

constexpr size_t kPageBytes = 4096, kBufferAlignment = 256;
constexpr int kGuardFill = 0xff, kSlackFill = 0xa5;

// In the race build a guard can be read and written, so that a launch goes on.
bool guards_fault() { return !has_race_detector(); }

}  // namespace

GuardedBuffer::GuardedBuffer(const GuardedOptions& options) : options_(options) {
  options_.guard = round_up(std::max(options.guard, kPageBytes), kPageBytes);
  options_.element_bytes = std::max<size_t>(options.element_bytes, 1);
  const size_t inner = round_up(std::max<size_t>(options.bytes, 1), kPageBytes);
  mapped_ = inner + 2 * options_.guard;
  void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(memory != MAP_FAILED, "GuardedBuffer: no memory for ", options.bytes, " bytes of \"",
        options.name, "\"");
  memory_ = static_cast<char*>(memory);
  // The buffer ends as close to the end of its last page as the alignment permits.
  const size_t slack = (inner - options.bytes) / kBufferAlignment * kBufferAlignment;
  data_ = memory_ + options_.guard + slack;
  if (guards_fault()) {
    mprotect(memory_, options_.guard, PROT_NONE);
    mprotect(memory_ + options_.guard + inner, options_.guard, PROT_NONE);
  }
  name_range({.name = options_.name,
              .begin = data_,
              .bytes = options_.bytes,
              .element_bytes = options_.element_bytes,
              .guard = options_.guard,
              .read_only = options_.read_only,
              .host_visible = options_.host_visible,
              .unwritten = options_.unwritten,
              .row_elements = options_.row_elements,
              .row_pitch = options_.row_pitch});
  fill();
}

GuardedBuffer::GuardedBuffer(GuardedBuffer&& other) noexcept
    : options_(std::move(other.options_)),
      memory_(std::exchange(other.memory_, nullptr)),
      mapped_(other.mapped_),
      data_(std::exchange(other.data_, nullptr)) {}

GuardedBuffer::~GuardedBuffer() {
  if (memory_ != nullptr) {
    forget_range(data_);
    munmap(memory_, mapped_);
  }
}

void GuardedBuffer::fill() {
  std::memset(data_, options_.unwritten ? kGuardFill : 0, options_.bytes);
  // The bytes between the guards that fault; if guards do not fault, the pages next to the buffer.
  char* const low =
      guards_fault() ? memory_ + options_.guard : memory_ + options_.guard - kPageBytes;
  char* const end = memory_ + mapped_ - options_.guard;
  char* const high = guards_fault() ? end : end + kPageBytes;
  const int fill = guards_fault() ? kSlackFill : kGuardFill;
  std::memset(low, fill, static_cast<size_t>(data_ - low));
  char* const after = data_ + options_.bytes;
  std::memset(after, fill, static_cast<size_t>(high - after));
}

void GuardedBuffer::write(const void* from, size_t bytes, size_t offset) {
  check(offset <= options_.bytes && bytes <= options_.bytes - offset, "GuardedBuffer: ", bytes,
        " bytes at ", offset, " of the ", options_.bytes, " of \"", options_.name, "\"");
  std::memcpy(data_ + offset, from, bytes);
  mark_written(data_ + offset, bytes);
}

void GuardedBuffer::reset() {
  fill();
  if (options_.unwritten) {
    mark_unwritten(data_, options_.bytes);
  }
}

void GuardedBuffer::retire() {
  forget_range(data_);
  if (guards_fault()) {
    mprotect(memory_, mapped_, PROT_NONE);
  }
  name_range({.name = options_.name + " (freed)",
              .begin = data_,
              .bytes = 0,
              .element_bytes = options_.element_bytes,
              .guard = options_.guard});
}

int GuardedBuffer::check_guards() const {
  const auto fill = static_cast<unsigned char>(guards_fault() ? kSlackFill : kGuardFill);
  const char* const low =
      guards_fault() ? memory_ + options_.guard : memory_ + options_.guard - kPageBytes;
  const char* const end = memory_ + mapped_ - options_.guard;
  const char* const high = guards_fault() ? end : end + kPageBytes;
  int changed = 0;
  const auto look = [&](const char* from, const char* to) {
    for (const char* p = from; p < to; ++p) {
      if (static_cast<unsigned char>(*p) == fill) {
        continue;
      }
      if (changed++ == 0) {
        Finding finding;
        finding.kind = FindingKind::out_of_bounds;
        finding.severity = severity_of(finding.kind);
        finding.element = element_at(p);
        finding.first.act = Act::write;
        finding.message = text("a kernel wrote ", finding.element);
        add_finding(finding);
      }
    }
  };
  look(low, data_);
  look(data_ + options_.bytes, high);
  return changed;
}

}  // namespace binade::kernels::host
