// What delayed scales remember (internal to core; core/precision/simulated_formats.h).
#pragma once
#include <binade/core/precision/simulated_formats.h>

#include <array>
#include <compare>
#include <map>
#include <mutex>

namespace binade {

// An operand: of which call, and which input or (of a gradient) which output.
struct SimulatedFormats::Place {
  uint32_t module = 0;
  std::string op = {};
  int64_t call = 0;
  bool is_output = false;
  int index = 0;

  auto operator<=>(const Place&) const = default;
};

// The largest magnitudes of the last uses of each place.
class SimulatedFormats::Histories {
 public:
  // True for a result or a view of one: an op that calls another passes its rounded inputs on.
  bool is_result(const Tensor& x);
  void remember(const Tensor& result);

  // The scale for this use of x; undefined if the place has no history. `notes`: the largest
  // magnitude of x counts for the next uses.
  Tensor next_scale(const Tensor& x, const FormatScheme& scheme, const Place& place, bool notes);

  NamedTensors tensors();
  void set(const NamedTensors& tensors);

 private:
  // f32 [history], of which a use takes the place of the oldest.
  struct History {
    Tensor largest = {};
    int64_t uses = 0;

    Tensor ordered() const;  // without unused places, the oldest first
    void fit(int64_t length, Device device);
  };
  static constexpr size_t kRemembered = 16;

  std::mutex mutex_;
  std::map<Place, History> places_;
  // The last results, which are kept alive so that their memory is not taken for another tensor's.
  std::array<Tensor, kRemembered> results_;
  size_t next_result_ = 0;
};

}  // namespace binade
