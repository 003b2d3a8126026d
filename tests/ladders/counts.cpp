// Counts of a step from the access report, and the lines that do more than they need.
#include <binade/kernels/base/error.h>
#include <binade/kernels/host/access_report.h>
#include <tests/ladders/cases.h>

#include <vector>

namespace ladders {
namespace {

using binade::kernels::host::AccessRow;

bool shared(const AccessRow& row) { return binade::kernels::host::is_shared(row.kind); }

std::vector<AccessRow> rows_of(const std::string& file) {
  std::vector<AccessRow> rows = binade::kernels::host::access_report();
  std::erase_if(rows, [&](const AccessRow& row) { return row.file != file; });
  return rows;
}

}  // namespace

std::string counts(const Case& one, void* solve, const Shape& shape, const std::string& file) {
  binade::kernels::host::reset_access_report();
  plain_cuda::executed() = {};
  set_order(orders().front());
  binade::kernels::host::options().count_accesses = true;
  const Outcome outcome = one.run(solve, shape, one.inputs.front());
  binade::kernels::host::options().count_accesses = false;
  if (!outcome.fault.empty()) {
    return outcome.fault;
  }
  uint64_t requests = 0, sectors = 0, shared_requests = 0, passes = 0;
  for (const AccessRow& row : rows_of(file)) {
    (shared(row) ? shared_requests : requests) += row.requests;
    (shared(row) ? passes : sectors) += shared(row) ? row.wavefronts : row.sectors;
  }
  const plain_cuda::Counts& more = plain_cuda::executed();
  return binade::text("global ", requests, " requests ", sectors, " sectors, shared ",
                      shared_requests, " requests ", passes, " passes, ", more.barriers,
                      " barriers, ", more.shuffles, " shuffles, ", more.atomics, " atomics, ",
                      more.products, " products");
}

std::vector<std::string> slow_lines(const std::string& file) {
  std::vector<std::string> slow;
  for (const AccessRow& row : rows_of(file)) {
    const uint64_t needed = shared(row) ? row.ideal_wavefronts : row.ideal_sectors;
    const uint64_t taken = shared(row) ? row.wavefronts : row.sectors;
    if (2 * taken > 3 * needed) {
      slow.push_back(binade::text("line ", row.line, ": ", taken,
                                  shared(row) ? " passes" : " sectors", " in ", row.requests,
                                  " requests, ", needed, " would do"));
    }
  }
  return slow;
}

}  // namespace ladders
