#include <binade/core/io/hash64.h>
#include <binade/core/observe/warning.h>
#include <binade/train/background_saves_internal.h>
#include <binade/train/bad_loss_internal.h>
#include <binade/train/checkpoint/checkpoint.h>
#include <binade/train/checkpoint/part_internal.h>
#include <binade/train/model_file.h>
#include <binade/train/ranks_internal.h>
#include <binade/train/run_directory.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>

namespace binade::train {
namespace {

namespace fs = std::filesystem;
using manifest::Fields;

constexpr const char* kSuffix = ".safetensors";
constexpr const char* kPart = "part.";    // part.NAME = kind
constexpr const char* kValue = "value.";  // value.NAME.FIELD

// directories of this process ---------------------------------------------------------------------

struct OpenRun {
  OpenRun(const std::string& path, bool resume, bool overwrite, int keep)
      : directory(path, resume, overwrite), store(path, keep, directory.files()) {}
  RunDirectory directory;
  CheckpointStore store;
  bool is_ours = false;   // its checkpoints were loaded or written by this process
  BackgroundSaves saves;  // ends before the store that it writes to
};

// The open runs of this process. They keep their locks until the process ends.
struct OpenRuns {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<OpenRun>> runs;  // by canonical path
};

OpenRuns& open_runs() {
  (void)file_system();  // a save in the background, which the end of the process waits for, uses it
  static OpenRuns runs;
  return runs;
}

std::string canonical(const std::string& path) {
  check(!path.empty(), "checkpoint: got an empty path, expected the directory of a run");
  std::error_code error;
  const fs::path absolute = fs::absolute(path);  // what does not exist stays relative otherwise
  const fs::path found = fs::weakly_canonical(absolute, error);
  const std::string text = (error ? absolute : found).native();
  return text.size() > 1 && text.back() == '/' ? text.substr(0, text.size() - 1) : text;
}

std::shared_ptr<OpenRun> find_or_open(const CheckpointOptions& o, bool resume) {
  OpenRuns& all = open_runs();
  const std::string name = canonical(o.path);
  const std::lock_guard lock(all.mutex);
  std::shared_ptr<OpenRun>& run = all.runs[name];
  if (!run) {
    try {
      run = std::make_shared<OpenRun>(o.path, resume, o.overwrite, o.keep);
    } catch (...) {
      all.runs.erase(name);
      throw;
    }
  }
  return run;
}

// The open run of a path, after its save in the background has ended; throws the save's error.
std::shared_ptr<OpenRun> open_run(const CheckpointOptions& o, bool resume) {
  std::shared_ptr<OpenRun> run = find_or_open(o, resume);
  run->saves.wait();
  return run;
}

// parts -------------------------------------------------------------------------------------------

using PartEntry = NamedPart;

// The entries of the parts, in their order; a part without a name gets that of its kind. Names
// differ, and never depend on the order: two parts may fit each other's content.
std::vector<PartEntry> entries_of(const std::vector<CheckpointPart>& parts, const char* call) {
  check(!parts.empty(), call, ": got no parts, expected at least one");
  std::vector<PartEntry> entries;
  std::map<std::string, int> unnamed;          // by kind
  std::map<const void*, std::string> objects;  // by address
  std::map<std::string, int> names;
  for (const CheckpointPart& part : parts) {
    PartObject& object = part.object();
    std::string name = part.name();
    if (name.empty()) {
      name = object.kind();
      check(
          ++unnamed[name] == 1, call, ": got two parts of kind ", name,
          " without a name, expected a name for all of them but one, such as {\"target\", net} or "
          "named(\"target\", net); without names an exchange of the two would not be noticed");
    }
    check(++names[name] == 1, call, ": got two parts of the name '", name,
          "', expected different names");
    const auto [before, is_new] = objects.emplace(object.address(), name);
    check(is_new, call, ": got one object as two parts, '", before->second, "' and '", name,
          "', expected each once");
    entries.push_back({std::move(name), &object});
  }
  check_relations(entries, call);
  return entries;
}

std::string list(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) {
    all += (all.empty() ? "'" : ", '") + name + "'";
  }
  return all;
}

// Throws one error that lists all missing and unexpected parts, and parts of another kind.
void check_parts(const std::vector<PartEntry>& entries, const Fields& fields,
                 const std::string& path) {
  const std::string prefix = kPart;
  std::map<std::string, std::string> saved;  // name -> kind
  for (auto at = fields.lower_bound(prefix); at != fields.end() && at->first.starts_with(prefix);
       ++at) {
    saved[at->first.substr(prefix.size())] = at->second;
  }
  check(!saved.empty(), "load_checkpoint: got ", path,
        ", which a Trainer saved, expected one of save_checkpoint(); resume it with a Trainer, or "
        "load its model.safetensors with load_model()");
  std::vector<std::string> missing;
  std::string other;
  for (const auto& [name, object] : entries) {
    const auto found = saved.find(name);
    if (found == saved.end()) {
      missing.push_back(name);
      continue;
    }
    if (found->second != object->kind()) {
      other += text("; '", name, "' is of kind ", object->kind(), ", but was ", found->second);
    }
    saved.erase(found);
  }
  std::vector<std::string> left;
  for (const auto& [name, kind] : saved) {
    left.push_back(name);
  }
  check(missing.empty() && left.empty() && other.empty(),
        "load_checkpoint: the parts are not those of ", path,
        missing.empty() ? "" : "; it does not have ", list(missing),
        left.empty() ? "" : "; not given: ", list(left), other,
        "; expected the parts that were saved, and nothing was changed");
}

Fields fields_of(const Fields& all, const std::string& name) {
  const std::string prefix = kValue + name + ".";
  Fields fields;
  for (auto at = all.lower_bound(prefix); at != all.end() && at->first.starts_with(prefix); ++at) {
    fields[at->first.substr(prefix.size())] = at->second;
  }
  return fields;
}

// saving ------------------------------------------------------------------------------------------

int64_t step_of(const CheckpointOptions& o, const std::vector<PartEntry>& entries,
                const std::vector<PartContent>& contents, const CheckpointStore& store) {
  const std::vector<int64_t> steps = store.steps();
  const int64_t newest = steps.empty() ? -1 : steps.back();
  if (o.step >= 0) {
    check(o.step >= newest, "save_checkpoint: got step ", o.step, ", but ", store.path(),
          " has one of step ", newest, ", which would be loaded as the newest; expected at least ",
          newest);
    return o.step;
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].object->kind() == "optimizer") {
      const auto step = static_cast<int64_t>(manifest::real(contents[i].fields, "step"));
      return step >= newest ? step : newest + 1;
    }
  }
  return newest + 1;
}

std::string first_bad(const std::vector<PartEntry>& entries,
                      const std::vector<PartContent>& contents) {
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string bad = first_not_finite(contents[i].tensors);
    if (!bad.empty()) {
      return text(bad, " of the part '", entries[i].name, "'");
    }
  }
  return "";
}

void show_warnings(CheckpointStore& store) {
  for (const std::string& warning : store.take_warnings()) {
    warn(warning);
  }
}

void save_state(CheckpointStore& store, int64_t step, const StateParts& state,
                const Fields& fields) {
  store.save(step, checkpoint_files(state), fields);
}

void write(const CheckpointOptions& o, const std::vector<PartEntry>& entries,
           const std::vector<PartContent>& contents) {
  const std::shared_ptr<OpenRun> run = open_run(o, !o.overwrite);
  check(run->is_ours || run->store.steps().empty(), "save_checkpoint: got ", o.path,
        ", which has checkpoints of an earlier run; call load_checkpoint() first to continue it, "
        "set overwrite (--overwrite) to begin anew and keep it as RUN.replaced-N, or give another "
        "directory (--run DIR)");
  Fields fields;
  manifest::add_settings(fields, manifest::with_version(o.settings));
  StateParts state;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& [name, object] = entries[i];
    fields[kPart + name] = object->kind();
    for (const auto& [key, value] : contents[i].fields) {
      fields[kValue + name + "." + key] = value;
    }
    if (!contents[i].tensors.empty()) {
      state.push_back({name + kSuffix, contents[i].tensors});
    }
    if (!contents[i].scales.empty()) {
      state.push_back({name + "." + kScalesFile, contents[i].scales});
    }
  }
  const int64_t step = step_of(o, entries, contents, run->store);
  if (o.async_save) {
    run->saves.add([store = &run->store, step, fields, copy = run->saves.copy(step, state)] {
      save_state(*store, step, copy->parts(), fields);
    });
  } else {
    save_state(run->store, step, state, fields);
  }
  run->is_ours = true;
  show_warnings(run->store);
}

// loading -----------------------------------------------------------------------------------------

struct Loaded {
  std::shared_ptr<OpenRun> run;
  Fields fields;  // empty: there is no checkpoint
  std::string path;
  std::map<std::string, NamedTensors> tensors, scales;  // by part
};

Loaded read(const CheckpointOptions& o, const std::vector<PartEntry>& entries) {
  const bool resume = o.resume && !o.overwrite;
  Loaded loaded;
  loaded.run = open_run(o, resume);
  CheckpointStore& store = loaded.run->store;
  const std::optional<Checkpoint> found = resume ? store.newest_verified() : std::nullopt;
  show_warnings(store);
  if (!found) {
    return loaded;
  }
  manifest::check_settings(manifest::with_version(o.settings), *found, o.force);
  check_parts(entries, found->fields, found->path);
  loaded.fields = found->fields;
  loaded.path = found->path;
  for (const PartEntry& entry : entries) {
    if (found->files.contains(entry.name + kSuffix)) {
      loaded.tensors[entry.name] = load_tensors(found->file(entry.name + kSuffix), store.files());
    }
    const std::string scales = entry.name + "." + kScalesFile;
    if (found->files.contains(scales)) {
      loaded.scales[entry.name] = load_tensors(found->file(scales), store.files());
    }
  }
  return loaded;
}

// Loads all parts or none.
void load_all(const std::vector<PartEntry>& entries, const std::vector<PartContent>& contents,
              const std::string& path, bool force) {
  std::vector<size_t> order(entries.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return entries[a].object->order() < entries[b].object->order();
  });
  std::vector<PartContent> before(entries.size());
  for (const size_t i : order) {
    before[i] = entries[i].object->save();
    before[i].tensors = host_copies(before[i].tensors);
  }
  for (size_t done = 0; done < order.size(); ++done) {
    const PartEntry& entry = entries[order[done]];
    try {
      entry.object->load(contents[order[done]], {.force = force});
    } catch (Error& error) {
      // In the same order: an optimizer sets the masters that a model has rounded.
      for (size_t k = 0; k < done; ++k) {
        entries[order[k]].object->load(before[order[k]], {.force = true});
      }
      error.add_context(text("(part '", entry.name, "' of ", path, "; nothing was changed)"));
      throw;
    }
  }
}

}  // namespace

bool save_checkpoint(const CheckpointOptions& options, const std::vector<CheckpointPart>& parts) {
  const std::vector<PartEntry> entries = entries_of(parts, "save_checkpoint");
  const Ranks ranks(options.group);
  std::vector<PartContent> contents;
  for (const PartEntry& entry : entries) {
    contents.push_back(entry.object->save());
  }
  std::string bad;
  ranks.on_root([&] {
    bad = first_bad(entries, contents);
    if (bad.empty()) {
      write(options, entries, contents);
    }
  });
  bad = ranks.share(bad);
  if (!bad.empty() && ranks.is_root()) {
    warn(text("save_checkpoint: nothing is saved, ", bad,
              " is not finite; the checkpoint before it stays"));
  }
  return bad.empty();
}

bool load_checkpoint(const CheckpointOptions& options, const std::vector<CheckpointPart>& parts) {
  const std::vector<PartEntry> entries = entries_of(parts, "load_checkpoint");
  const Ranks ranks(options.group);
  Loaded loaded;
  ranks.on_root([&] { loaded = read(options, entries); });
  loaded.fields = ranks.share(loaded.fields);
  if (!loaded.fields.empty()) {
    std::vector<PartContent> contents;
    for (const PartEntry& entry : entries) {
      contents.push_back({.tensors = ranks.share(loaded.tensors[entry.name]),
                          .fields = fields_of(loaded.fields, entry.name),
                          .scales = ranks.share(loaded.scales[entry.name])});
    }
    load_all(entries, contents, ranks.share(loaded.path), options.force);
  }
  if (loaded.run) {
    loaded.run->is_ours = true;
  }
  return !loaded.fields.empty();
}

std::string state_hash(const std::vector<CheckpointPart>& parts) {
  Hash64 hash;
  for (const PartEntry& entry : entries_of(parts, "state_hash")) {
    const PartContent content = entry.object->save();
    hash.add(entry.name + "\n" + state_hash(content.tensors));
    hash.add(content.scales.empty() ? "" : state_hash(content.scales));
    for (const auto& [name, value] : content.fields) {
      hash.add(name + "=" + value + "\n");
    }
  }
  return hash.hex();
}

void close_checkpoints(const std::string& path) {
  OpenRuns& all = open_runs();
  std::shared_ptr<OpenRun> run;
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.runs.find(canonical(path));
    if (found == all.runs.end()) {
      return;
    }
    run = std::move(found->second);
    all.runs.erase(found);
  }
  run->saves.wait();
  show_warnings(run->store);
}

}  // namespace binade::train
