// The style sheet keeps to classes: an SVG of a plot has no colour of its own.
#include <binade/core/io/json_text.h>
#include <binade/kernels/base/error.h>
#include <binade/train/report/page.h>

#include <cmath>
#include <cstdio>

namespace binade::train::page {
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
figure { margin: 0; min-width: 0; padding: 12px; background: var(--card); border-radius: 8px; }
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
.thin { stroke-width: 1; opacity: .75; }
code { overflow-wrap: anywhere; } h1, h2, h3, td, p { overflow-wrap: anywhere; } td:first-child { min-width: 5.5em; }
:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
nav { display: flex; flex-wrap: wrap; gap: .2em 1.1em; margin: .8em 0; }
details { margin: .8em 0; } summary { cursor: pointer; font-weight: 600; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 10px; margin: 1em 0; }
.tile { background: var(--card); border-radius: 8px; padding: 8px 12px; } .tile b { display: block; font-size: 20px; }
.tile span { font-size: 13px; color: var(--soft); }
.readout { min-height: 1.4em; font-size: 13px; font-variant-numeric: tabular-nums; }
.cursor { stroke: var(--ink); } svg[tabindex] { touch-action: pan-y; }
.row { fill: var(--paper); } .border { stroke: var(--bad); }
.h { fill: var(--c0); } svg.heat { width: auto; max-width: none; } svg.heat text { font: 11px monospace; }
@media (max-width: 600px) { body { padding: 14px; } h1 { font-size: 24px; } }
)";

// Shows the values of a plot at the pointer, and under the arrow keys, Home and End.
constexpr const char* kReadout = R"(
for (const figure of document.querySelectorAll('figure')) {
  const data = figure.querySelector('script'), svg = figure.querySelector('svg[tabindex]');
  if (!data || !svg) continue;
  const series = JSON.parse(data.textContent), out = figure.querySelector('.readout');
  const xs = [...new Set(series.flatMap(s => s.x))].sort((a, b) => a - b);
  const [left, right, low, high] = svg.dataset.x.split(' ').map(Number);
  const log = svg.dataset.log === '1', f = v => log ? Math.log(v) : v;
  const at = v => left + (f(v) - f(low)) / (f(high) - f(low)) * (right - left);
  const line = svg.querySelector('.cursor');
  let index = -1;
  const show = i => {
    index = Math.max(0, Math.min(xs.length - 1, i));
    const x = xs[index], px = at(x);
    line.setAttribute('x1', px); line.setAttribute('x2', px);
    out.textContent = svg.dataset.name + ' ' + x + ': ' + series.map(s => {
      let best = -1;
      s.x.forEach((v, k) => { if (v <= x) best = k; });
      return best < 0 ? '' : s.name + ' ' + (s.y[best] === null ? 'not finite' : s.y[best]) + (s.x[best] === x ? '' : ' (at ' + s.x[best] + ')');
    }).filter(Boolean).join(', ');
  };
  svg.addEventListener('pointermove', e => {
    const box = svg.getBoundingClientRect(), px = (e.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
    let best = 0;
    xs.forEach((v, k) => { if (Math.abs(at(v) - px) < Math.abs(at(xs[best]) - px)) best = k; });
    show(best);
  });
  svg.addEventListener('keydown', e => {
    const step = {ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20}[e.key];
    if (step) show(index + step); else if (e.key === 'Home') show(0); else if (e.key === 'End') show(xs.length - 1); else return;
    e.preventDefault();
  });
  svg.addEventListener('focus', () => { if (index < 0 && xs.length) show(xs.length - 1); });
}
)";

std::string decimal(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.5g", value);
  return buffer;
}

std::string json_list(const std::vector<double>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    out += i ? "," : "";
    if (!std::isfinite(values[i])) {
      out += "null";
    } else if (values[i] == std::trunc(values[i]) && std::abs(values[i]) < 1e15) {
      out += std::to_string(static_cast<long long>(values[i]));
    } else {
      out += decimal(values[i]);
    }
  }
  return out + "]";
}

std::string values_of(const Plot& plot) {
  std::string out = "[";
  for (const Series& s : plot.series) {
    out += text(out.size() > 1 ? "," : "", "{\"name\":", json_quoted(s.name),
                ",\"x\":", json_list(s.x), ",\"y\":", json_list(s.y), "}");
  }
  return "<script type=\"application/json\">" + in_script(out + "]") + "</script>";
}

}  // namespace

std::string in_script(std::string json) {
  for (size_t at = 0; (at = json.find('<', at)) != std::string::npos;) {
    json.replace(at, 1, "\\u003c");
  }
  return json;
}

std::string head(const std::string& title, bool readout) {
  const std::string policy =
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'\">";
  return text(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\">",
      readout ? policy : "", "<title>", escaped(title), "</title><style>", kStyle, "</style>",
      readout ? text("<script type=\"module\">", kReadout, "</script>") : std::string(),
      "</head><body>\n");
}

std::string foot() { return "</body></html>\n"; }

std::string cells(const char* tag, const std::vector<std::string>& texts) {
  std::string row = "<tr>";
  for (const std::string& cell : texts) {
    row += text("<", tag, ">", cell, "</", tag, ">");
  }
  return row + "</tr>\n";
}

std::string table_of(const TableText& table) {
  const auto escape_all = [](std::vector<std::string> texts) {
    for (std::string& cell : texts) {
      cell = html(cell);
    }
    return texts;
  };
  std::string out = "<div class=\"wide\" tabindex=\"0\"><table>";
  out += table.caption.empty() ? "" : "<caption>" + html(table.caption) + "</caption>";
  out += "\n" + (table.head.empty() ? std::string() : cells("th", escape_all(table.head)));
  for (const auto& row : table.rows) {
    out += cells("td", escape_all(row));
  }
  return out + "</table></div>\n";
}

std::string figure_of(const Plot& plot) {
  return text("<figure><h3>", html(plot.title), "</h3>", legend_of(plot), to_svg(plot),
              "<figcaption>", html(plot.caption), "</figcaption></figure>\n");
}

std::string figure_with_readout(const Plot& plot) {
  return text("<figure><h3>", html(plot.title), "</h3>", legend_of(plot), to_svg(plot, true),
              "<div class=\"readout\" aria-live=\"polite\"></div><figcaption>", html(plot.caption),
              "</figcaption>", values_of(plot), "</figure>\n");
}

std::string short_number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.4g", value);
  return buffer;
}

std::string seconds_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (!(seconds >= 0)) {
    return "-";
  }
  char buffer[48];
  if (seconds < kMinute) {
    std::snprintf(buffer, sizeof buffer, "%.3g s", seconds);
  } else if (seconds < kHour) {
    std::snprintf(buffer, sizeof buffer, "%.0f min %.0f s", std::floor(seconds / kMinute),
                  std::fmod(seconds, kMinute));
  } else {
    std::snprintf(buffer, sizeof buffer, "%.0f h %.0f min", std::floor(seconds / kHour),
                  std::floor(std::fmod(seconds, kHour) / kMinute));
  }
  return buffer;
}

}  // namespace binade::train::page
