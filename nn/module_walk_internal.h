// Functions that walk the tree of modules, and the names of classes.
#pragma once
#include <binade/nn/module.h>

#include <map>
#include <typeinfo>

namespace binade::nn {

inline std::string join_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : name.empty() ? path : path + "." + name;
}

std::string class_name(const Module& module);  // with namespaces
std::string class_name(const std::type_info& type);

template <class F>
void Module::walk(const std::string& path, F&& f) {
  f(path, *this);
  for (Module* child : children_) {
    child->walk(join_path(path, child->name_), f);
  }
}

template <class F>
void Module::walk(const std::string& path, F&& f) const {
  f(path, *this);
  for (const Module* child : children_) {
    child->walk(join_path(path, child->name_), f);
  }
}

}  // namespace binade::nn
