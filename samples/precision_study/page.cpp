#include "page.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace study {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --ink: #1c2024; --soft: #60656c; --paper: #ffffff; --card: #f5f6f8;
  --grid: #dfe2e6; --good: #18794e; --bad: #c62a2f;
  --c0: #0b68cb; --c1: #d9480f; --c2: #2b8a3e; --c3: #9c36b5; --c4: #8a6d00; --c5: #c2255c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --soft: #9ba1a8; --paper: #14171a;
  --card: #1d2125; --grid: #32383e; --good: #4cc38a; --bad: #ff8589;
  --c0: #6cb6ff; --c1: #ffa26b; --c2: #69db7c; --c3: #da8fe8; --c4: #e8c547; --c5: #ff8fab; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1040px; padding: 24px; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { line-height: 1.2; } h2 { margin: 2.2em 0 .3em; border-top: 1px solid var(--grid); padding-top: .8em; }
a { color: var(--c0); } td a { white-space: nowrap; } .soft { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--bad); }
blockquote { margin: .6em 0; padding: .1em 1em; border-left: 3px solid var(--c0); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .8em 0; font-size: 14px; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .3em; }
th, td { padding: .25em .8em .25em 0; text-align: left; border-bottom: 1px solid var(--grid); vertical-align: top; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(440px, 100%), 1fr)); gap: 16px; }
figure { margin: 0; padding: 12px; background: var(--card); border-radius: 8px; }
figure h3 { margin: 0; font-size: 15px; } figcaption { font-size: 13px; color: var(--soft); }
sup { font-size: .75em; line-height: 0; }
.legend { margin: .3em 0; font-size: 13px; } .legend span { margin-right: 1.1em; white-space: nowrap; }
svg { width: 100%; height: auto; } .swatch { width: 28px; height: 10px; margin-right: .4em; }
svg text { fill: var(--ink); font: 14px system-ui, sans-serif; }
svg .grid { stroke: var(--grid); } svg .axis { stroke: var(--soft); }
svg .mark { stroke: var(--soft); stroke-dasharray: 2 3; }
svg path, svg line { fill: none; stroke-width: 1.2; } svg path { stroke-width: 2; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); }
.c3 { stroke: var(--c3); } .c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); }
path.c1 { stroke-dasharray: 7 4; } path.c2 { stroke-dasharray: 2 3; } path.c3 { stroke-dasharray: 10 3 2 3; }
path.c4 { stroke-dasharray: 5 2; } path.c5 { stroke-dasharray: 1 2; }
circle.c0 { fill: var(--c0); } circle.c1 { fill: var(--c1); } circle.c2 { fill: var(--c2); }
circle.c3 { fill: var(--c3); } circle.c4 { fill: var(--c4); } circle.c5 { fill: var(--c5); }
)";

std::string verdict(bool holds) {
  return holds ? "<b class=\"good\">holds</b>" : "<b class=\"bad\">fails</b>";
}

std::string cells(const char* tag, const std::vector<std::string>& texts) {
  std::string page = "<tr>";
  for (const std::string& text : texts) {
    page += std::string("<") + tag + ">" + text + "</" + tag + ">";
  }
  return page + "</tr>\n";
}

std::vector<std::string> all_html(std::vector<std::string> texts) {
  for (std::string& text : texts) {
    text = html(text);
  }
  return texts;
}

std::string table_of(const Table& table) {
  std::string page = "<div class=\"wide\"><table><caption>" + html(table.caption) + "</caption>\n" +
                     cells("th", all_html(table.head));
  for (const auto& row : table.rows) {
    page += cells("td", all_html(row));
  }
  return page + "</table></div>\n";
}

std::string checks_of(const Report& report) {
  std::string page = "<div class=\"wide\"><table><caption>What must hold</caption>\n" +
                     cells("th", {"figure", "value", "bound", "verdict"});
  for (const Check& check : report.checks) {
    page += cells(
        "td", {html(check.what), number(check.value), html(check.bound()), verdict(check.holds())});
  }
  return page + "</table></div>\n";
}

std::string section_of(const Outcome& outcome) {
  const Experiment& e = *outcome.experiment;
  std::string page = "<h2 id=\"" + std::string(e.name) + "\">" + html(e.title) + "</h2>\n";
  page += "<p class=\"soft\">" + std::string(e.name) + " \u00b7 " + html(e.section) + " \u00b7 " +
          number(outcome.cpu_seconds) + " CPU seconds \u00b7 " + verdict(outcome.holds()) +
          "</p>\n<blockquote><p>" + html(e.claim) + "</p></blockquote>\n<p>" + html(e.method) +
          "</p>\n";
  if (!outcome.error.empty()) {
    page += "<p class=\"bad\">" + html(outcome.error) + "</p>\n";
  }
  page += checks_of(outcome.report) + "<div class=\"plots\">\n";
  for (const Plot& plot : outcome.report.plots) {
    page += "<figure><h3>" + html(plot.title) + "</h3>" + legend_of(plot) + to_svg(plot) +
            "<figcaption>" + html(plot.caption) + "</figcaption></figure>\n";
  }
  page += "</div>\n";
  for (const Table& table : outcome.report.tables) {
    page += table_of(table);
  }
  for (const std::string& remark : outcome.report.remarks) {
    page += "<p>" + html(remark) + "</p>\n";
  }
  return page + "<p class=\"soft\">--break " + std::string(e.name) +
         " switches off: " + html(e.mechanism) + "</p>\n";
}

nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value)
                              : nlohmann::ordered_json(number(value));
}

nlohmann::ordered_json json_of(const Outcome& outcome) {
  const Experiment& e = *outcome.experiment;
  nlohmann::ordered_json json = {{"name", e.name},
                                 {"section", e.section},
                                 {"claim", e.claim},
                                 {"holds", outcome.holds()},
                                 {"cpu_seconds", outcome.cpu_seconds},
                                 {"seconds", outcome.seconds}};
  if (!outcome.error.empty()) {
    json["error"] = outcome.error;
  }
  json["checks"] = nlohmann::ordered_json::array();
  for (const Check& check : outcome.report.checks) {
    json["checks"].push_back({{"what", check.what},
                              {"value", json_number(check.value)},
                              {"bound", check.bound()},
                              {"holds", check.holds()}});
  }
  for (const Table& table : outcome.report.tables) {
    json["tables"].push_back(
        {{"caption", table.caption}, {"head", table.head}, {"rows", table.rows}});
  }
  for (const Plot& plot : outcome.report.plots) {
    nlohmann::ordered_json series;
    for (const Series& s : plot.series) {
      series.push_back({{"name", s.name}, {"x", s.x}, {"y", s.y}});
    }
    json["plots"].push_back({{"title", plot.title}, {"series", series}});
  }
  return json;
}

}  // namespace

std::string to_html(const Study& study) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\">"
      "<title>Mixed precision training, claim by claim</title><style>" +
      std::string(kStyle) + "</style></head><body>\n";
  page +=
      "<h1>Mixed precision training, claim by claim</h1>\n"
      "<p>The claims of Micikevicius et al., <i>Mixed Precision Training</i> (ICLR 2018), each as "
      "an experiment small enough for a laptop, run by Binade's sample "
      "<code>precision_study</code>. An experiment states the claim, what is run, a bound, and "
      "whether the bound held; <code>--break NAME</code> switches its mechanism off, and then "
      "the bound must fail. All arithmetic is direct (no Winograd), and a run repeats bit for "
      "bit at any number of threads.</p>\n<p class=\"soft\">Pictures: " +
      html(study.pictures) + ". Text: " + html(study.text) + ". Trained on: " + html(study.device) +
      ".</p>\n";
  if (!study.broken.empty()) {
    page += "<p class=\"bad\">The mechanism of " + html(study.broken) +
            " was switched off for this run.</p>\n";
  }
  page += "<div class=\"wide\"><table>" +
          cells("th", {"experiment", "claim", "section of the paper", "CPU seconds", "verdict"});
  for (const Outcome& outcome : study.outcomes) {
    const Experiment& e = *outcome.experiment;
    page +=
        cells("td", {"<a href=\"#" + std::string(e.name) + "\">" + e.name + "</a>", html(e.title),
                     html(e.section), number(outcome.cpu_seconds), verdict(outcome.holds())});
  }
  page += "</table></div>\n";
  for (const Outcome& outcome : study.outcomes) {
    page += section_of(outcome);
  }
  return page + "</body></html>\n";
}

std::string to_json(const Study& study) {
  nlohmann::ordered_json json = {
      {"pictures", study.pictures}, {"text", study.text}, {"device", study.device}};
  if (!study.broken.empty()) {
    json["broken"] = study.broken;
  }
  for (const Outcome& outcome : study.outcomes) {
    json["experiments"].push_back(json_of(outcome));
  }
  return json.dump(1) + "\n";
}

}  // namespace study
