// The lens over time: a slider chooses a step, and runs stand side by side under it. The rows are
// drawn by a script from the numbers of each step, which are in the page as JSON.
#include <binade/core/io/json_text.h>
#include <binade/train/lens_report.h>
#include <binade/train/report/page.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace binade::train {
namespace {

using page::escaped;

constexpr size_t kMostSteps = 60;  // of a run in the page, spread evenly
constexpr size_t kMostRows = 200;
constexpr size_t kMostWorst = 40'000;  // elements that a page names
constexpr size_t kMostOfCell = 8;

constexpr const char* kTimeStyle = R"(<style>
.runs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(320px, 100%), 1fr)); gap: 16px; }
.strip { width: 100%; height: 16px; display: block; cursor: pointer; } .strip line { vector-effect: non-scaling-stroke; }
.name { font: 12px monospace; margin: .5em 0 0; display: flex; justify-content: space-between; gap: 1em; }
.name span { overflow-wrap: anywhere; } .at { position: sticky; top: 0; background: var(--paper); padding: .4em 0; z-index: 1; }
.at input { width: 100%; } .chosen { stroke: var(--ink); stroke-width: 2; vector-effect: non-scaling-stroke; }
</style>)";

// Draws the rows of each run at the step of the slider: the last one observed up to it. A cell
// tells what it holds at a click, and under the arrow keys.
constexpr const char* kTimeScript = R"(<script type="module">
const box = document.querySelector('#time'), data = JSON.parse(box.querySelector('script').textContent);
const slider = box.querySelector('input'), label = box.querySelector('output'), out = box.querySelector('.readout');
const list = box.querySelector('.worst'), ns = box.querySelector('svg')?.namespaceURI, steps = [...new Set(data.runs.flatMap(r => r.steps))].sort((a, b) => a - b);
const width = data.most - data.least + 1;
slider.max = steps.length - 1; slider.value = steps.length - 1;
const add = (to, name, attributes) => {
  const element = document.createElementNS(ns, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  return to.appendChild(element);
};
const percent = share => share === 0 ? '0' : (100 * share).toPrecision(3) + '%';
const cell = (m, e) => {
  let sum = 0;
  m.exponents.forEach((n, i) => { const at = Math.max(m.least + i, data.least); if (at === e) sum += n; });
  return sum;
};
let chosen = null;
const tell = (run, row, m, e) => {
  chosen = {run, row, e};
  const n = cell(m, e);
  out.textContent = (run.name ? run.name + ', ' : '') + 'step ' + m.step + ', layer ' + (row.layer || '(model)') + ', ' + row.tensor + ', ' + row.kind +
    ': ' + (e === data.least ? 'below 2^' + (e + 1) : '2^' + e + ' to 2^' + (e + 1)) + ': ' + n + ' of ' + m.elements + ' elements (' + percent(n / m.elements) + ')' +
    '; largest ' + m.largest.toPrecision(4) + ', zero ' + percent(m.zeros / m.elements) + (m.nans ? ', NaN ' + m.nans : '') +
    (m.infinities ? ', inf ' + m.infinities : '') + (m.scale !== 1 ? ', loss scale ' + m.scale : '');
  const worst = m.worst.filter(x => Math.max(x[0], data.least) === e).sort((a, b) => b[0] - a[0]).slice(0, data.each);
  list.hidden = !worst.length;
  list.tBodies[0].replaceChildren(...worst.map(([, place, value, f16, bf16]) => {
    const line = document.createElement('tr');
    const number = x => x === null ? (value < 0 ? '-inf' : 'inf') : x === 0 ? '0' : x.toPrecision(7);
    for (const word of ['[' + place.join(', ') + ']', number(value), number(f16), number(bf16)])
      line.appendChild(document.createElement('td')).textContent = word;
    return line;
  }));
};
const draw = () => {
  const step = steps[slider.value];
  label.textContent = 'step ' + step;
  for (const run of data.runs) for (const row of run.rows) {
    const m = row.moments.filter(x => x.step <= step).pop(), svg = row.svg;
    svg.replaceChildren();
    row.note.textContent = m ? 'largest ' + m.largest.toPrecision(3) + (m.zeros ? ', zero ' + percent(m.zeros / m.elements) : '') : 'not seen yet';
    add(svg, 'rect', {class: 'row', width: width * 8, height: 14});
    for (let e = data.least; m && e <= data.most; ++e) {
      const share = cell(m, e) / m.elements;
      if (share > 0) add(svg, 'rect', {class: 'h', x: (e - data.least) * 8, width: 8, height: 14, 'fill-opacity': Math.max(.04, Math.min(1, 1 + Math.log10(share) / 4)).toFixed(2)});
    }
    for (const e of [-25, -14, 16]) if (e >= data.least && e <= data.most + 1) add(svg, 'line', {class: 'border', x1: (e - data.least) * 8, x2: (e - data.least) * 8, y1: 0, y2: 14});
    if (chosen && chosen.row === row) {
      add(svg, 'rect', {class: 'chosen', x: (chosen.e - data.least) * 8, width: 8, height: 14, fill: 'none'});
      if (m) tell(run, row, m, chosen.e);
    }
    row.now = m;
  }
};
box.querySelectorAll('[data-run]').forEach((column, r) => {
  const run = data.runs[r];
  column.querySelectorAll('svg').forEach((svg, i) => {
    const row = run.rows[i];
    row.svg = svg; row.note = svg.previousElementSibling.lastElementChild;
    const choose = e => { if (row.now) { tell(run, row, row.now, Math.max(data.least, Math.min(data.most, e))); draw(); } };
    svg.addEventListener('click', event => {
      const frame = svg.getBoundingClientRect();
      choose(data.least + Math.floor((event.clientX - frame.left) / frame.width * width));
    });
    svg.addEventListener('keydown', event => {
      const move = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!move) return;
      choose(chosen && chosen.row === row ? chosen.e + move : data.most);
      event.preventDefault();
    });
  });
});
slider.addEventListener('input', draw);
draw();
</script>)";

// The steps of a run that go into the page: at most so many, the first and the last among them.
std::set<int64_t> shown_steps(const LensReport& report) {
  std::set<int64_t> all;
  for (const LensMoment& moment : report.moments) {
    all.insert(moment.step);
  }
  const std::vector<int64_t> steps(all.begin(), all.end());
  if (steps.size() <= kMostSteps) {
    return all;
  }
  std::set<int64_t> shown;
  for (size_t i = 0; i < kMostSteps; ++i) {
    shown.insert(steps[i * (steps.size() - 1) / (kMostSteps - 1)]);
  }
  return shown;
}

std::string plain(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", std::isfinite(value) ? value : 0);
  return buffer;
}

// The elements of a moment that the page names, at most so many of each exponent.
std::string json_of(const std::vector<LensWorst>& worst, size_t each) {
  const auto number = [](double value) { return std::isfinite(value) ? plain(value) : "null"; };
  std::string list;
  int exponent = 0;
  size_t of_exponent = 0;
  for (const LensWorst& w : worst) {
    of_exponent = w.exponent == exponent ? of_exponent + 1 : 1;
    exponent = w.exponent;
    if (of_exponent > each) {
      continue;
    }
    std::string place;
    for (const int64_t index : w.place) {
      place += text(place.empty() ? "" : ",", index);
    }
    list += text(list.empty() ? "" : ",", "[", w.exponent, ",[", place, "],", number(w.value), ",",
                 number(w.in_f16), ",", number(w.in_bf16), "]");
  }
  return list;
}

std::string json_of(const LensMoment& m, size_t each) {
  std::string counts;
  for (const double count : m.exponents) {
    counts += (counts.empty() ? "" : ",") + plain(count);
  }
  return text("{\"step\":", m.step, ",\"elements\":", plain(std::max(m.elements, 1.0)),
              ",\"zeros\":", plain(m.zeros), ",\"nans\":", plain(m.nans),
              ",\"infinities\":", plain(m.infinities), ",\"largest\":", plain(m.largest),
              ",\"scale\":", plain(m.scale), ",\"least\":", m.least_exponent, ",\"exponents\":[",
              counts, "],\"worst\":[", json_of(m.worst, each), "]}");
}

// How many elements of each cell the page names: what its size allows.
size_t worst_of_cell(const std::vector<const NamedLens*>& runs) {
  std::vector<size_t> elements(kMostOfCell + 1, 0);  // that are the nth of their cell
  for (const NamedLens* run : runs) {
    const std::set<int64_t> steps = shown_steps(run->report);
    for (const LensMoment& moment : run->report.moments) {
      size_t of_exponent = 0;
      for (size_t i = 0; steps.contains(moment.step) && i < moment.worst.size(); ++i) {
        const bool same = i > 0 && moment.worst[i].exponent == moment.worst[i - 1].exponent;
        of_exponent = same ? of_exponent + 1 : 1;
        ++elements[std::min(of_exponent, kMostOfCell)];
      }
    }
  }
  size_t each = 0, sum = 0;
  while (each < kMostOfCell && (sum += elements[each + 1]) <= kMostWorst) {
    ++each;
  }
  return each;
}

std::string kind_text(const std::string& kind) {  // "activation gradient"
  std::string words = kind;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string json_of(const NamedLens& run, size_t rows, size_t each) {
  const std::set<int64_t> steps = shown_steps(run.report);
  std::vector<std::string> moments(rows);
  for (const LensMoment& moment : run.report.moments) {
    if (moment.row < rows && steps.contains(moment.step)) {
      std::string& of = moments[moment.row];
      of += (of.empty() ? "" : ",") + json_of(moment, each);
    }
  }
  std::string list, numbers;
  for (size_t i = 0; i < rows; ++i) {
    const LensRow& row = run.report.rows[i];
    list += text(list.empty() ? "" : ",", "{\"kind\":", json_quoted(kind_text(row.kind)),
                 ",\"layer\":", json_quoted(row.layer), ",\"tensor\":", json_quoted(row.tensor),
                 ",\"moments\":[", moments[i], "]}");
  }
  for (const int64_t step : steps) {
    numbers += text(numbers.empty() ? "" : ",", step);
  }
  return text("{\"name\":", json_quoted(run.name), ",\"steps\":[", numbers, "],\"rows\":[", list,
              "]}");
}

std::string column_of(const NamedLens& run, size_t rows, const ExponentSpan& span) {
  std::string out = "<div data-run=\"\">";
  out += run.name.empty() ? "" : "<h3>" + escaped(run.name) + "</h3>\n";
  std::string kind;
  for (size_t i = 0; i < rows; ++i) {
    const LensRow& row = run.report.rows[i];
    if (row.kind != kind) {
      kind = row.kind;
      out += "<h4>" + escaped(kind_text(kind)) + "s</h4>\n";
    }
    out +=
        text("<p class=\"name\"><span>", escaped(row.tensor), "</span><span class=\"soft\"></span>",
             "</p><svg class=\"strip\" tabindex=\"0\" role=\"img\" aria-label=\"",
             escaped(row.tensor), "\" preserveAspectRatio=\"none\" viewBox=\"0 0 ",
             (span.most - span.least + 1) * 8, " 14\"></svg>\n");
  }
  if (rows < run.report.rows.size()) {
    out += text("<p class=\"soft\">", run.report.rows.size() - rows, " more tensors below</p>");
  }
  return out + "</div>\n";
}

}  // namespace

std::string lens_over_time(const std::vector<const NamedLens*>& runs) {
  ExponentSpan span{0, 0};
  for (const NamedLens* run : runs) {
    const ExponentSpan own = span_of(run->report);
    span = {std::min(span.least, own.least), std::max(span.most, own.most)};
  }
  const size_t each = worst_of_cell(runs);
  std::string json, columns;
  for (const NamedLens* run : runs) {
    const size_t rows = std::min(run->report.rows.size(), kMostRows);
    json += (json.empty() ? "" : ",") + json_of(*run, rows, each);
    columns += column_of(*run, rows, span);
  }
  json = text("{\"least\":", span.least, ",\"most\":", span.most,
              ",\"each\":", std::max<size_t>(each, 1), ",\"runs\":[", json, "]}");
  return text(kTimeStyle,
              "<div id=\"time\"><div class=\"at\"><label>Step by step: <output></output><input "
              "type=\"range\" min=\"0\" value=\"0\" aria-label=\"step\"></label><p "
              "class=\"readout\" aria-live=\"polite\">Choose a cell for its numbers.</p>\n"
              "<div class=\"wide\"><table class=\"worst\" hidden><thead><tr><th>element</th>"
              "<th>value</th><th>in f16</th><th>in bf16</th></tr></thead><tbody></tbody></table>"
              "</div></div>\n",
              each == 0 ? "<p class=\"soft\">The page is too large for the elements of each cell; "
                          "lens.jsonl has them.</p>\n"
                        : "",
              "<p class=\"soft\">Columns are exponents ", span.least, " to ", span.most,
              ". The red lines are those of f16: flushed to 0, subnormal, inf.</p>\n",
              "<script type=\"application/json\">", page::in_script(json), "</script>\n",
              "<div class=\"runs\">\n", columns, "</div></div>\n", kTimeScript);
}

}  // namespace binade::train
