#include <binade/kernels/host/findings_internal.h>
#include <binade/kernels/host/place.h>

namespace binade::kernels::host {

const void* Place::instruction() const {
  const Entry& entry = table().entries[number_];
  return entry.line < 0 ? entry.instruction_or_file : nullptr;
}

FindingLine Place::line() const {
  const Entry& entry = table().entries[number_];
  return entry.line < 0
             ? line_of_instruction(entry.instruction_or_file)
             : line_of(Site{static_cast<const char*>(entry.instruction_or_file), entry.line});
}

std::string to_string(Place place) { return to_string(place.line()); }

}  // namespace binade::kernels::host
