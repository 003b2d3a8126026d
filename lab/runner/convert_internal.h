// Converts the executor's findings and counts to the lab's types.
#pragma once
#include <binade/kernels/host/access_report.h>
#include <binade/kernels/host/findings.h>
#include <binade/lab/runner/events_internal.h>
#include <binade/lab/runner/found.h>

namespace binade::lab {

Found found_from(const kernels::host::Finding& finding);
FoundAccess found_from(const kernels::host::AccessRow& row);
FoundTogether found_from(const kernels::host::TogetherRow& row);
FoundLaunch found_from(const KernelShape& shape);
// The threads that wrote the elements of an array last; each element has `element_bytes` bytes.
FoundWriters writers_of(const std::string& array, const void* begin, size_t elements,
                        size_t element_bytes);
FoundNumber found_from(const NumberNote& note);

}  // namespace binade::lab
