#include "page.h"

#include <binade/train/report/page.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace study {
namespace {

using binade::train::page::cells;

std::string verdict(bool holds) {
  return holds ? "<b class=\"good\">holds</b>" : "<b class=\"bad\">fails</b>";
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
    page += binade::train::page::figure_of(plot);
  }
  page += "</div>\n";
  for (const Table& table : outcome.report.tables) {
    page += binade::train::page::table_of({table.caption, table.head, table.rows});
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
                              {"by_mechanism", check.by_mechanism},
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
  std::string page = binade::train::page::head("Mixed precision training, claim by claim");
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
  return page + binade::train::page::foot();
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
