// The report of runs: one HTML file of at most 5 MB that needs no other file and sends no request.
// Curves per step and epoch, learning rate, loss scale with the skipped steps, norms, speed,
// waiting and memory, exponent heat maps where the lens ran, the slowest ops where there is a
// trace, the settings, the environment and the checkpoints. Several runs are drawn over each other,
// and what differs between them comes first.
#pragma once
#include <binade/core/io/file_system.h>
#include <binade/train/report/run_record.h>

#include <string>
#include <vector>

namespace binade::train {

inline constexpr size_t kMostReportBytes = 5'000'000;
inline constexpr size_t kMostReportRuns = 24;

// The page. A curve of any length is drawn with at most some thousand points that keep its extremes
// (downsampled()). Throws without a run, and for more than kMostReportRuns.
std::string report_page(const std::vector<RunRecord>& runs);

// Reads the run and writes RUN/report.html; `outcome`, if not empty, is what run.json will say.
void write_report(const std::string& run, const std::string& outcome = "",
                  FileSystem& files = file_system());

}  // namespace binade::train
