// The page of a shadow: the difference of the loss over the run, and for some of its steps the
// modules, ops and weights that cause it.
#include <binade/train/precision/shadow_report.h>
#include <binade/train/report/page.h>

#include <algorithm>
#include <cmath>

namespace binade::train {
namespace {

using page::escaped;
using page::short_number;

constexpr size_t kMostSteps = 12;   // with tables of their own
constexpr size_t kMostModules = 6;  // with a curve

std::string name_of(const std::string& module) { return module.empty() ? "(model)" : module; }

// A bar to the right for a larger loss, to the left for a smaller one.
std::string bar(double budget, double largest) {
  const double half = 60, length = largest > 0 ? half * std::abs(budget) / largest : 0;
  return text(
      "<svg viewBox=\"0 0 120 12\" style=\"width:120px\" aria-hidden=\"true\"><line "
      "class=\"axis\" x1=\"60\" x2=\"60\" y1=\"0\" y2=\"12\"/><rect class=\"h\" x=\"",
      budget < 0 ? half - length : half, "\" y=\"1\" width=\"", length, "\" height=\"10\"/></svg>");
}

std::string share_of(double part, const ShadowStep& s) {
  return s.resolved() ? short_number(100 * part / s.difference()) + "%" : "not resolved";
}

std::string module_table(const ShadowStep& s) {
  const std::vector<ShadowModule> modules = modules_of(s);
  const double largest = modules.empty() ? 0 : std::abs(modules[0].budget);
  std::string out =
      "<div class=\"wide\"><table><caption>What each module adds to the loss, by "
      "size</caption>" +
      page::cells("th", {"module", "", "adds", "share", "largest introduced error"});
  for (const ShadowModule& m : modules) {
    out += page::cells("td", {escaped(name_of(m.module)), bar(m.budget, largest),
                              s.resolved() ? short_number(m.budget) : "", share_of(m.budget, s),
                              short_number(m.largest)});
  }
  return out + "</table></div>\n";
}

std::string op_table(const ShadowStep& s) {
  page::TableText forward{.caption = "Forward. Errors are relative; ulp is of the stored dtype",
                          .head = {"module", "op", "stored", "calls", "introduced", "inherited",
                                   "total", "grows", "ulp", "worst ulp", "bias", "adds"}};
  page::TableText backward{
      .caption = "Backward: gradients of an op's inputs. Sum is the rounding where several meet",
      .head = {"module", "op", "introduced", "inherited", "total", "grows", "bias", "cosine",
               "sum"}};
  for (const ShadowRow& row : s.rows) {
    const ShadowErrors &f = row.forward, &b = row.backward;
    forward.rows.push_back({name_of(row.module), row.op, row.stored, text(row.calls),
                            short_number(f.introduced), short_number(f.inherited),
                            short_number(f.total), short_number(f.amplification),
                            short_number(f.ulp), short_number(f.worst_ulp), short_number(f.bias),
                            s.resolved() ? short_number(row.budget) : ""});
    if (f.not_finite > 0) {
      forward.rows.back()[1] += text(" (", f.not_finite, " not finite)");
    }
    if (b.elements > 0) {
      backward.rows.push_back({name_of(row.module), row.op, short_number(b.introduced),
                               short_number(b.inherited), short_number(b.total),
                               short_number(b.amplification), short_number(b.bias),
                               short_number(b.cosine), short_number(row.accumulation)});
    }
  }
  page::TableText weights{.caption = "Weights, and their gradients against those of the f64 run",
                          .head = {"weight", "rounding", "adds", "gradient error", "cosine"}};
  for (const ShadowWeight& w : s.weights) {
    weights.rows.push_back({w.name, short_number(w.rounding),
                            s.resolved() ? short_number(w.budget) : "",
                            short_number(w.gradient_error), short_number(w.gradient_cosine)});
  }
  std::string out;
  for (const page::TableText& table : {forward, backward, weights}) {
    out += "<div class=\"wide\" tabindex=\"0\">" + page::table_of(table) + "</div>\n";
  }
  return out;
}

std::string summary(const ShadowStep& s) {
  if (!s.text.empty()) {
    return text("<p>", escaped(s.text), "</p>\n");
  }
  const std::string budget =
      s.resolved() ? text("The budget explains ", short_number(s.explained), ": residual ",
                          short_number(100 * s.residual()), "%, from ", s.points, " runs in f64.")
                   : "Not resolved: that is less than ten times the noise.";
  return text("<p>Loss ", s.loss, ", in f64 ", s.exact, ": difference <b>",
              short_number(s.difference()), "</b>; another order of sums in f64 makes ",
              short_number(s.noise), ". ", budget, "</p>\n");
}

std::string section(const ShadowStep& s, bool open) {
  return text("<details", open ? " open" : "", "><summary>Step ", s.step, "</summary>\n",
              summary(s), s.text.empty() ? module_table(s) + op_table(s) : "", "</details>\n");
}

page::Series series_of(const std::string& name) { return {.name = name, .x = {}, .y = {}}; }

std::string plots(const std::vector<ShadowStep>& steps) {
  page::Plot losses{.title = "Difference of the loss",
                    .caption = "Magnitudes. Below ten times the noise a difference means nothing.",
                    .x = {.label = "step"},
                    .y = {.label = "loss", .scale = page::Axis::log10}};
  page::Series difference = series_of("low - f64"), rest = series_of("not explained"),
               noise = series_of("noise of f64");
  page::Plot modules{.title = "What modules add to it",
                     .caption = "Magnitudes, of the modules that add most in the last step.",
                     .x = {.label = "step"},
                     .y = {.label = "loss", .scale = page::Axis::log10}};
  const std::vector<ShadowModule> top = modules_of(steps.back());
  for (size_t i = 0; i < std::min(top.size(), kMostModules); ++i) {
    modules.series.push_back(series_of(name_of(top[i].module)));
  }
  const auto add = [](page::Series& to, int64_t step, double value) {
    if (value > 0 && std::isfinite(value)) {
      to.x.push_back(static_cast<double>(step));
      to.y.push_back(value);
    }
  };
  for (const ShadowStep& s : steps) {
    add(difference, s.step, std::abs(s.difference()));
    add(rest, s.step, s.resolved() ? std::abs(s.difference() - s.explained) : 0);
    add(noise, s.step, s.noise);
    for (const ShadowModule& m : s.resolved() ? modules_of(s) : std::vector<ShadowModule>()) {
      for (page::Series& series : modules.series) {
        if (series.name == name_of(m.module)) {
          add(series, s.step, std::abs(m.budget));
        }
      }
    }
  }
  losses.series = {difference, rest, noise};
  for (page::Plot* plot : {&losses, &modules}) {
    std::erase_if(plot->series, [](const page::Series& s) { return s.x.empty(); });
  }
  if (losses.series.empty()) {
    return "";
  }
  return "<div class=\"plots\">" + page::figure_with_readout(losses) +
         (modules.series.empty() ? "" : page::figure_with_readout(modules)) + "</div>\n";
}

}  // namespace

std::string to_html(const std::vector<ShadowStep>& steps) {
  check(!steps.empty(), "shadow: got no step for a page");
  std::string out =
      page::head("Shadow in f64", true) +
      "<style>.wide td { white-space: nowrap; }</style><h1>Shadow in f64</h1>\n<p>Steps ran as "
      "they are, and beside themselves in f64 with exact "
      "weights. An op <b>introduces</b> an error: its result minus that of the same op in f64 on "
      "the same inputs. It <b>inherits</b> one from its inputs, and <b>grows</b> it by a factor. "
      "What an op adds to the loss is its introduced error times the adjoint; all of it together "
      "is the difference of the losses.</p>\n" +
      plots(steps);
  const size_t stride = (steps.size() + kMostSteps - 1) / kMostSteps;
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool last = i + 1 == steps.size();
    if (last || i % stride == 0) {
      out += section(steps[i], last);
    }
  }
  return out + page::foot();
}

}  // namespace binade::train
