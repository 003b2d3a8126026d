// The cases that steps of a ladder and exercises solve: shapes, inputs, expected results. A case
// runs an entry once on buffers with guarded ends and compares what it wrote.
#pragma once
#include <binade/kernels/host/executor.h>
#include <tests/ladders/step.h>

#include <string>
#include <vector>

namespace ladders {

struct Shape {
  int size[3] = {1, 1, 1};
};
std::string to_string(const Shape& shape, int dimensions);

struct Outcome {
  std::string fault;       // empty: right
  std::vector<float> out;  // what the entry wrote
};

struct Case {
  std::string name;
  int dimensions;
  std::vector<Shape> shapes;  // small and odd
  Shape counted;              // for counts
  std::vector<std::string> inputs;
  // Calls the entry; a KernelError of the executor comes back as a fault.
  Outcome (*run)(void* solve, const Shape& shape, const std::string& inputs);
};
// Null if there is none of this name.
const Case* find_case(const std::string& name);
std::string case_names();

// The counts of one run of the counted shape, of accesses in lines of FILE only:
//   global 128 requests 512 sectors, shared 0 requests 0 passes, 0 barriers, 0 shuffles, ...
std::string counts(const Case& one, void* solve, const Shape& shape, const std::string& file);
// Lines of FILE that touch more sectors or take more passes than they need, after counts().
std::vector<std::string> slow_lines(const std::string& file);

// Orders of threads and blocks in which results must agree.
struct Order {
  const char* name;
  binade::kernels::host::Schedule schedule;
  uint64_t seed;
};
const std::vector<Order>& orders();
// Sets the order for the launches that follow.
void set_order(const Order& order);

}  // namespace ladders
