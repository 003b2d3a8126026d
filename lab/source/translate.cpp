#include <binade/core/io/file_system.h>
#include <binade/lab/source/rewrite_internal.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace binade::lab {
namespace {

constexpr int kMostIncludes = 32;  // nesting depth of includes

// Names that kernels in the lab cannot use, with advice on what to use instead.
const std::map<std::string, const char*, std::less<>>& unsupported() {
  static const char* const kAsm = "inline assembly; the lab runs C++: use the intrinsics";
  static const char* const kTexture = "textures and surfaces are not supported; read memory";
  static const char* const kGroups =
      "groups larger than the block are not supported; end the kernel and launch another one";
  static const char* const kClock = "clocks are not supported: the lab has no time of a GPU";
  static const std::map<std::string, const char*, std::less<>> names = {
      {"asm", kAsm},
      {"__asm__", kAsm},
      {"__asm", kAsm},
      {"cudaTextureObject_t", kTexture},
      {"cudaSurfaceObject_t", kTexture},
      {"tex1D", kTexture},
      {"tex2D", kTexture},
      {"tex3D", kTexture},
      {"tex1Dfetch", kTexture},
      {"surf2Dread", kTexture},
      {"surf2Dwrite", kTexture},
      {"this_grid", kGroups},
      {"grid_group", kGroups},
      {"this_cluster", kGroups},
      {"cluster_group", kGroups},
      {"this_multi_grid", kGroups},
      {"multi_grid_group", kGroups},
      {"__cluster_dims__", kGroups},
      {"cudaLaunchCooperativeKernel", kGroups},
      {"clock", kClock},
      {"clock64", kClock},
      {"globaltimer", kClock},
      {"__managed__", "__managed__ variables are not supported; pass an array to solve()"},
      {"cudaLaunchKernel",
       "launches by function are not supported; write kernel<<<grid, block>>>()"},
      {"cudaLaunchKernelEx",
       "launches by function are not supported; write kernel<<<grid, block>>>()"},
      {"cudaLaunchKernelExC",
       "launches by function are not supported; write kernel<<<grid, block>>>()"},
      {"cudaStreamBeginCapture", "graphs are not supported; launch kernels directly"},
      {"cudaGraphLaunch", "graphs are not supported; launch kernels directly"},
  };
  return names;
}

bool is_call_of_library(const Rewriter& file, size_t i) {
  const Token& token = file.at(i);
  return file.at(i + 1).is("::") && (token.is("thrust") || token.is("cub") || token.is("cutlass"));
}

// The argument of #include with its quotes or brackets; empty for other directives.
std::string included_name(std::string_view directive) {
  const auto skip = [&](std::string_view blank) {
    const size_t at = directive.find_first_not_of(blank);
    directive.remove_prefix(std::min(at, directive.size()));
  };
  skip("# \t");
  if (!directive.starts_with("include")) {
    return {};
  }
  directive.remove_prefix(7);
  skip(" \t");
  const char close = directive.starts_with('<') ? '>' : '"';
  const size_t end = directive.find(close, 1);
  return std::string(directive.substr(0, end == std::string_view::npos ? end : end + 1));
}

std::string line_directive(int line, const std::string& path) {
  std::string quoted;
  for (const char c : path) {
    quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  }
  return text("#line ", line, " \"", quoted, "\"");
}

// True for CUDA headers that lab/device/cuda provides.
bool is_known_cuda(const std::string& name) {
  static const std::set<std::string> known = {"cuda_runtime.h",
                                              "cuda_runtime_api.h",
                                              "cuda_fp16.h",
                                              "cuda_bf16.h",
                                              "cuda.h",
                                              "cuda_pipeline.h",
                                              "mma.h",
                                              "device_launch_parameters.h",
                                              "cooperative_groups.h",
                                              "cooperative_groups/reduce.h",
                                              "vector_types.h",
                                              "vector_functions.h",
                                              "math_constants.h",
                                              "device_functions.h",
                                              "sm_30_intrinsics.h"};
  return known.contains(name);
}

// True for headers that come with CUDA but that the lab does not provide.
bool is_other_cuda(const std::string& name) {
  for (const char* prefix : {"cu", "thrust/", "cutlass/", "cute/", "nv", "nccl",
                             "cooperative_groups/", "curand", "texture", "surface", "binade/"}) {
    if (name.starts_with(prefix)) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string read_source(const std::string& path) {
  constexpr uint64_t kMostBytes = uint64_t{8} << 20;
  const std::vector<std::byte> bytes = read_file(path, kMostBytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void refuse_unsupported(const Rewriter& file) {
  for (size_t i = 0; i < file.size(); ++i) {
    const Token& token = file.at(i);
    if (token.kind == TokenKind::directive) {
      const bool launches = token.text.find("<<<") != std::string_view::npos;
      if (launches || token.text.find("__shared__") != std::string_view::npos) {
        file.fail(token, launches ? "a launch" : "__shared__",
                  " in a macro; write it where the macro is used, or make it a template");
      }
      continue;
    }
    if (token.kind != TokenKind::identifier || (i > 0 && file.at(i - 1).is("."))) {
      continue;
    }
    const auto found = unsupported().find(token.text);
    const bool is_call = token.is("clock") ? file.at(i + 1).is("(") : true;
    if (found != unsupported().end() && is_call) {
      file.fail(token, token.text, ": ", found->second);
    }
    if (is_call_of_library(file, i)) {
      file.fail(token, token.text,
                ":: is not supported; the lab is for kernels that are written out");
    }
  }
}

std::optional<std::string> replace_include(const Rewriter& file, const Token& directive,
                                           TranslationState& state) {
  const std::string quoted = included_name(directive.text);
  if (quoted.size() < 3) {
    return std::nullopt;
  }
  const std::string name = quoted.substr(1, quoted.size() - 2);
  const std::filesystem::path beside = std::filesystem::path(file.path()).parent_path() / name;
  std::error_code ignored;
  if (quoted[0] == '"' && std::filesystem::is_regular_file(beside, ignored)) {
    if (state.included.contains(beside.lexically_normal().string())) {
      return std::string();
    }
    if (state.depth >= kMostIncludes) {
      file.fail(directive, "more than ", kMostIncludes, " files that include each other");
    }
    const std::string source = read_source(beside.string());
    if (source.find("#pragma once") != std::string::npos) {
      state.included.insert(beside.lexically_normal().string());
    }
    return translate_part(beside.string(), source, state) +
           text("\n", line_directive(directive.line, file.path()));
  }
  if (!is_known_cuda(name) && is_other_cuda(name)) {
    file.fail(
        directive, "#include ", quoted,
        ": the lab does not have this header; it has cuda_runtime.h, cuda_fp16.h, cuda_bf16.h, "
        "cooperative_groups.h, cuda_pipeline.h and mma.h");
  }
  return std::nullopt;
}

std::string translate_part(const std::string& path, std::string_view source,
                           TranslationState& state) {
  const size_t zero = source.find('\0');
  if (zero != std::string_view::npos) {
    throw SourceError(text(path, ":", 1 + std::count(source.begin(), source.begin() + zero, '\n'),
                           ": a zero byte: this is no text"));
  }
  state.result.files.push_back(path);
  Rewriter file(path, source);
  refuse_unsupported(file);
  ++state.depth;
  for (size_t i = 0; i < file.size(); ++i) {
    if (file.at(i).kind == TokenKind::directive) {
      if (const auto text = replace_include(file, file.at(i), state)) {
        file.replace(i, i, *text);
      }
    } else if (file.at(i).is("__noinline__")) {  // no macro: the standard library uses the name
      file.replace(i, i, "__attribute__((noinline))");
    }
  }
  --state.depth;
  rewrite_shared(file, state);
  rewrite_launches(file);
  find_entry(file, state);
  return line_directive(1, path) + "\n" + file.result();
}

Translation translate(const std::string& path, std::string_view source) {
  TranslationState state;
  std::string code = translate_part(path, source, state);
  if (!state.has_entry) {
    throw SourceError(text(path,
                           ":1: no extern \"C\" void solve(...), which the lab calls; its "
                           "parameters are those of the case, by name"));
  }
  state.result.code =
      std::move(code) + "\n#line 1 \"binade-kernel-entry\"\n" + entry_code(state.result.parameters);
  return std::move(state.result);
}

Translation translate_file(const std::string& path) { return translate(path, read_source(path)); }

}  // namespace binade::lab
