// The page is built in sections, each of which is empty if the runs tell nothing about it. If it
// grows beyond its limit it is built again with fewer points and rows.
#include <binade/core/observe/byte_text.h>
#include <binade/train/report/numbers_internal.h>
#include <binade/train/report/page.h>
#include <binade/train/report/run_curves_internal.h>
#include <binade/train/report/run_report.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace binade::train {
namespace {

using page::escaped;
using page::short_number;
using page::TableText;

constexpr size_t kMostText = 300;  // bytes of a cell of settings

std::string shortened(const std::string& value) {
  return value.size() <= kMostText ? value : value.substr(0, kMostText) + "...";
}

std::string tile(const std::string& name, const std::string& value) {
  return text("<div class=\"tile\"><b>", escaped(value), "</b><span>", escaped(name),
              "</span></div>");
}

// The value of a key at the end of a run; empty if it has none.
std::string last_value(const RunRecord& run, const std::string& key) {
  const auto epoch = run.epochs.find(key);
  const Curve* curve = epoch != run.epochs.end() ? &epoch->second : run.curve(key);
  return curve ? short_number(curve->last()) : "";
}

bool smaller_is_better(const std::string& key) {
  for (const char* larger : {"accuracy", "auroc", "f1", "precision", "recall", "r2"}) {
    if (key.find(larger) != std::string::npos) {
      return false;
    }
  }
  return true;
}

std::string best_value(const RunRecord& run, const std::string& key) {
  const Curve* curve = run.epochs.contains(key) ? &run.epochs.at(key) : nullptr;
  if (!curve) {
    return "";
  }
  return short_number(smaller_is_better(key) ? curve->least_finite() : curve->most_finite());
}

std::string peak_memory(const RunRecord& run) {
  for (const char* key : {"device_reserved", "reserved"}) {
    if (const auto found = run.timeline.find(key); found != run.timeline.end()) {
      return byte_text(found->second.most_finite());
    }
  }
  return "";
}

std::string mean_speed(const RunRecord& run) {
  const Curve* speed = run.curve("samples_per_second");
  return speed ? short_number(speed->last()) : "";
}

std::string tiles_of(const RunRecord& run) {
  std::string out = "<div class=\"tiles\">" + tile("outcome", shortened(run.state())) +
                    tile("steps", std::to_string(run.step)) +
                    (run.epoch >= 0 ? tile("epochs begun", std::to_string(run.epoch + 1)) : "");
  const auto add = [&out](const std::string& name, const std::string& value) {
    out += value.empty() ? "" : tile(name, value);
  };
  add("time", run.seconds > 0 ? page::seconds_text(run.seconds) : "");
  for (const auto& [key, curve] : run.epochs) {
    if (key.starts_with("validation_")) {
      add("best " + key, best_value(run, key));
    } else if (key.starts_with("test_")) {
      add(key, short_number(curve.last()));
    }
  }
  add("train_loss", last_value(run, "train_loss"));
  add("samples per second", mean_speed(run));
  add("memory, peak", peak_memory(run));
  add("skipped steps", last_value(run, "skipped_steps"));
  return out + "</div>\n";
}

// A row per run.
std::string comparison(const std::vector<RunRecord>& runs) {
  std::set<std::string> keys;
  for (const RunRecord& run : runs) {
    for (const auto& [key, curve] : run.epochs) {
      if (key.starts_with("validation_") || key.starts_with("test_") || key == "train_loss") {
        keys.insert(key);
      }
    }
  }
  constexpr size_t kMostKeys = 10;
  TableText table{.caption = "Best values of each run; train_loss: the last one",
                  .head = {"run", "outcome", "steps", "time", "samples/s", "memory, peak"}};
  size_t count = 0;
  for (const std::string& key : keys) {
    if (count++ < kMostKeys) {
      table.head.push_back(key);
    }
  }
  for (const RunRecord& run : runs) {
    std::vector<std::string> row{run.name,
                                 shortened(run.state()),
                                 std::to_string(run.step),
                                 run.seconds > 0 ? page::seconds_text(run.seconds) : "",
                                 mean_speed(run),
                                 peak_memory(run)};
    count = 0;
    for (const std::string& key : keys) {
      if (count++ < kMostKeys) {
        row.push_back(key == "train_loss" ? last_value(run, key) : best_value(run, key));
      }
    }
    table.rows.push_back(std::move(row));
  }
  return page::table_of(table);
}

// A row per name, a column per run. `differing`: only rows where runs differ, or only the others.
TableText texts_table(const std::vector<RunRecord>& runs, Texts RunRecord::*part, bool differing) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs) {
    for (const auto& [name, value] : run.*part) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        names.push_back(name);
      }
    }
  }
  TableText table;
  table.head = {""};
  for (const RunRecord& run : runs) {
    table.head.push_back(run.name);
  }
  if (runs.size() == 1) {
    table.head.clear();
  }
  for (const std::string& name : names) {
    const std::string* first = find_text(runs[0].*part, name);
    std::vector<std::string> row{name};
    bool differs = false;
    for (const RunRecord& run : runs) {
      const std::string* value = find_text(run.*part, name);
      differs = differs || (value ? !first || *value != *first : first != nullptr);
      row.push_back(value ? shortened(*value) : "-");
    }
    if (differs == differing || runs.size() == 1) {
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

struct Section {
  std::string id, title, body;
};

Section differences(const std::vector<RunRecord>& runs) {
  if (runs.size() < 2) {
    return {};
  }
  std::string body = comparison(runs);
  for (const auto& [part, what] : {std::pair(&RunRecord::settings, "Settings that differ"),
                                   std::pair(&RunRecord::model, "Models"),
                                   std::pair(&RunRecord::environment, "Environments")}) {
    TableText table = texts_table(runs, part, true);
    table.caption = what;
    body += table.rows.empty() ? "" : page::table_of(table);
  }
  return {"compare", "Comparison", body};
}

Section figures(const char* id, const char* title, const std::vector<page::Plot>& plots) {
  std::string body;
  for (const page::Plot& plot : plots) {
    body += page::figure_with_readout(plot);
  }
  return {id, title, body.empty() ? "" : "<div class=\"plots\">" + body + "</div>\n"};
}

// The last epochs of a run as a table.
std::string epochs_table(const RunRecord& run, size_t most_rows) {
  constexpr size_t kMostColumns = 16;
  std::vector<const Curve*> columns;
  TableText table{.caption = run.name + ": validations and epochs", .head = {"step"}};
  const Curve* longest = nullptr;
  for (const auto& [key, curve] : run.epochs) {
    if (columns.size() < kMostColumns) {
      table.head.push_back(key);
      columns.push_back(&curve);
    }
    longest = !longest || curve.step.size() > longest->step.size() ? &curve : longest;
  }
  if (!longest) {
    return "";
  }
  const size_t count = longest->step.size(), first = count > most_rows ? count - most_rows : 0;
  for (size_t i = first; i < count; ++i) {
    std::vector<std::string> row{short_number(longest->step[i])};
    for (const Curve* curve : columns) {
      const auto at = std::lower_bound(curve->step.begin(), curve->step.end(), longest->step[i]);
      const bool has = at != curve->step.end() && *at == longest->step[i];
      row.push_back(has ? short_number(curve->value[static_cast<size_t>(at - curve->step.begin())])
                        : "");
    }
    table.rows.push_back(std::move(row));
  }
  if (first > 0) {
    table.caption += text(", the last ", most_rows, " of ", count);
  }
  return "<details><summary>" + escaped(run.name) + ": numbers of all epochs</summary>" +
         page::table_of(table) + "</details>\n";
}

Section epochs(const std::vector<RunRecord>& runs, size_t rows) {
  Section section{"epochs", "Epochs", ""};
  for (const RunRecord& run : runs) {
    section.body += epochs_table(run, rows);
  }
  return section;
}

Section heat_maps(const std::vector<RunRecord>& runs, size_t rows) {
  Section section{"lens", "Exponents", ""};
  for (const RunRecord& run : runs) {
    if (run.lens) {
      section.body += (runs.size() > 1 ? "<h3>" + escaped(run.name) + "</h3>" : "") +
                      lens_section(*run.lens, std::max<size_t>(rows / runs.size(), 2));
    }
  }
  return section;
}

std::string rows_table(const std::string& caption, const char* first,
                       const std::vector<TraceRow>& rows, size_t most) {
  TableText table{
      .caption = caption,
      .head = {first, "pass", "calls", "ms", "share", "GFLOP/s", "GB/s", "of roofline"}};
  const auto rate = [](double amount, double milliseconds) {
    return amount > 0 && milliseconds > 0 ? fixed(amount / milliseconds * 1e-6) : std::string();
  };
  for (size_t i = 0; i < std::min(rows.size(), most); ++i) {
    const TraceRow& row = rows[i];
    table.rows.push_back({shortened(row.name), row.detail, fixed(row.calls),
                          fixed(row.milliseconds, 3), percent_of(row.share, 1),
                          rate(row.flops, row.milliseconds), rate(row.bytes, row.milliseconds),
                          row.roofline > 0 ? percent_of(row.roofline, 1) : ""});
  }
  if (rows.size() > most) {
    table.caption += text(", the slowest ", most, " of ", rows.size());
  }
  return rows.empty() ? "" : page::table_of(table);
}

std::string paragraphs_of(const std::string& lines) {
  std::string out;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    out += "<p>" + escaped(lines.substr(at, end - at)) + "</p>\n";
    at = end + 1;
  }
  return out;
}

Section slowest_ops(const std::vector<RunRecord>& runs, size_t rows) {
  Section section{"ops", "Slowest ops", ""};
  for (const RunRecord& run : runs) {
    const std::string what = text(run.name, ", per step of ", run.traced_steps, " traced steps of ",
                                  fixed(run.step_milliseconds, 2), " ms");
    section.body += paragraphs_of(run.stalls);
    section.body += rows_table(what, "op", run.ops, rows);
    section.body += rows_table(run.name + ": by module, per step", "module", run.modules, rows);
  }
  return section;
}

Section checkpoints(const std::vector<RunRecord>& runs) {
  Section section{"checkpoints", "Checkpoints", ""};
  for (const RunRecord& run : runs) {
    TableText table{.caption = run.name, .head = {"name", "step", "size", ""}};
    for (const RecordedCheckpoint& checkpoint : run.checkpoints) {
      table.rows.push_back(
          {checkpoint.name, checkpoint.step < 0 ? "" : std::to_string(checkpoint.step),
           byte_text(static_cast<double>(checkpoint.bytes)), shortened(checkpoint.note)});
    }
    section.body += table.rows.empty() ? "" : page::table_of(table);
  }
  return section;
}

Section texts(const char* id, const char* title, const std::vector<RunRecord>& runs,
              std::initializer_list<Texts RunRecord::*> parts) {
  Section section{id, title, ""};
  for (const auto part : parts) {
    const TableText table = texts_table(runs, part, false);
    section.body += table.rows.empty() ? "" : page::table_of(table);
  }
  return section;
}

Section notes(const std::vector<RunRecord>& runs) {
  Section section{"notes", "What could not be read", ""};
  for (const RunRecord& run : runs) {
    for (const std::string& note : run.notes) {
      section.body += "<p class=\"bad\">" + escaped(run.name + ": " + note) + "</p>\n";
    }
  }
  return section;
}

// How much a page shows.
struct Detail {
  size_t buckets, lens_rows, epoch_rows, plots, op_rows;
};

std::string page_of(const std::vector<RunRecord>& runs, const Detail& detail) {
  const RunPlots plots(runs, detail.buckets, detail.plots);
  const std::vector<Section> sections{
      notes(runs),
      differences(runs),
      figures("loss", "Loss and metrics", plots.results()),
      figures("steps", "Learning rate, loss scale, norms", plots.optimizer()),
      figures("speed", "Speed and stalls", plots.speed()),
      figures("memory", "Memory", plots.memory()),
      slowest_ops(runs, detail.op_rows),
      heat_maps(runs, detail.lens_rows),
      epochs(runs, detail.epoch_rows),
      texts("settings", "Settings", runs, {&RunRecord::settings, &RunRecord::model}),
      texts("environment", "Environment", runs, {&RunRecord::environment, &RunRecord::words}),
      checkpoints(runs)};
  const std::string title = runs.size() == 1 ? "Run " + runs[0].name : text(runs.size(), " runs");
  std::string out = page::head(title, true) + "<h1>" + escaped(title) + "</h1>\n";
  out += runs.size() == 1 && !runs[0].started.empty()
             ? "<p class=\"soft\">begun " + escaped(runs[0].started) + "</p>\n"
             : "";
  out += runs.size() == 1 ? tiles_of(runs[0]) : "";
  out += "<nav aria-label=\"sections\">";
  for (const Section& section : sections) {
    out += section.body.empty()
               ? ""
               : text("<a href=\"#", section.id, "\">", escaped(section.title), "</a> ");
  }
  out += "</nav>\n<main>\n";
  for (const Section& section : sections) {
    out += section.body.empty()
               ? ""
               : text("<section id=\"", section.id, "\"><h2>", escaped(section.title), "</h2>\n",
                      section.body, "</section>\n");
  }
  return out + "</main>\n" + page::foot();
}

}  // namespace

std::string report_page(const std::vector<RunRecord>& runs) {
  check(!runs.empty() && runs.size() <= kMostReportRuns, "report: got ", runs.size(),
        " runs, expected 1 to ", kMostReportRuns);
  std::string out;
  for (const Detail& detail : {Detail{300, 40, 200, 40, 25},
                               {150, 20, 50, 24, 15},
                               {60, 8, 20, 12, 8},
                               {20, 2, 5, 6, 4}}) {
    out = page_of(runs, detail);
    if (out.size() <= kMostReportBytes) {
      return out;
    }
  }
  fail("report: got ", runs.size(), " runs that need ", out.size(), " bytes, expected at most ",
       kMostReportBytes, "; choose fewer runs");
}

void write_report(const std::string& run, const std::string& outcome, FileSystem& files) {
  RunRecord record = read_run(run);
  if (!outcome.empty()) {  // by the process that holds the lock
    record.outcome = outcome;
    record.is_running = false;
  }
  write_file_durably(run + "/report.html", report_page({std::move(record)}), files);
}

}  // namespace binade::train
