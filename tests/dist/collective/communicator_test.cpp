#include <binade/core/tensor/create.h>
#include <binade/dist/job/threads.h>
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>

namespace binade::dist::communicator_test {
namespace {

TEST(Communicator, DoesItsCollectives) {
  for (const int size : {1, 2, 3, 4}) {
    run_threads(size, [&](Communicator& world) {
      const Tensor x = full({2, 3}, world.rank() + 1);
      world.all_reduce(x);
      check(x.at(5) == size * (size + 1) / 2, "sum ", x.at(5));
      world.all_reduce(x, ReduceOp::avg);
      check(x.at(5) == size * (size + 1) / 2, "avg ", x.at(5));

      const Tensor y = full({4}, world.rank(), DType::i64);
      world.broadcast(y, size - 1);
      check(y.at(0) == size - 1, "broadcast ", y.at(0));

      const Tensor all = world.all_gather(full({2}, world.rank()));
      check(all.sizes() == Dims({size, 2}), "all_gather ", all.sizes());
      check(all.at(2 * size - 1) == size - 1, "all_gather ", all.at(2 * size - 1));

      const Tensor part = world.reduce_scatter(ones({size, 5}));
      check(part.sizes() == Dims({5}) && part.at(4) == size, "reduce_scatter ", part.at(4));
      world.barrier();
    });
  }
}

TEST(Communicator, WritesBackToAnyLayout) {
  run_threads(2, [](Communicator& world) {
    const Tensor x = full({2, 3}, world.rank()), turned = x.transpose(0, 1);
    const uint32_t version = x.version();
    world.all_reduce(turned);
    check(x.at(4) == 1, "got ", x.at(4));
    check(x.version() > version, "the version is the same");
    Tensor leaf = full({3}, world.rank());
    leaf.require_grad();
    world.broadcast(leaf, 1);
    check(leaf.at(0) == 1, "got ", leaf.at(0));
  });
}

TEST(Communicator, ReducesAndGathersRangesInPlace) {
  run_threads(3, [](Communicator& world) {
    const std::vector<int64_t> bounds{0, 4, 4, 6};
    const Tensor x = full({6}, world.rank() + 1);
    world.reduce_scatter_ranges(x, bounds, ReduceOp::sum);
    const bool first = world.rank() == 0, last = world.rank() == 2;
    check(x.at(0) == (first ? 6 : world.rank() + 1), "element 0 is ", x.at(0));
    check(x.at(5) == (last ? 6 : world.rank() + 1), "element 5 is ", x.at(5));
    world.gather_ranges(x, bounds);
    check(x.at(3) == 6 && x.at(4) == 6, "gathered ", x.at(3), " and ", x.at(4));
    world.sum(x);
    check(x.at(2) == 18, "sum ", x.at(2));
  });
}

TEST(CommunicatorErrors, RangesThatDifferBetweenRanks) {
  for (const auto& bounds : {std::vector<int64_t>{0, 3, 6}, std::vector<int64_t>{0, 4, 5}}) {
    try {
      run_threads(2, [&](Communicator& world) {
        const Tensor x = ones({6});
        world.gather_ranges(x, world.rank() == 0 ? std::vector<int64_t>{0, 4, 6} : bounds);
      });
      ADD_FAILURE() << "went on";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("different collectives"), std::string::npos)
          << error.what();
    }
  }
  try {
    run_threads(2, [](Communicator& world) {
      world.gather_ranges(ones({6}), std::vector<int64_t>{0, 4, 5});
    });
    ADD_FAILURE() << "went on";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "all_gather: got 3 bounds up to 5, expected 3 that rise from 0 to the 6 elements");
  }
}

TEST(Communicator, Splits) {
  run_threads(5, [](Communicator& world) {
    const int color = world.rank() == 4 ? -1 : world.rank() % 2;
    const auto part = world.split(color, -world.rank());
    if (world.rank() == 4) {
      check(!part, "rank 4 got a group");
    } else {
      check(part->size() == 2 && part->rank() == (world.rank() < 2 ? 1 : 0), "rank ", part->rank());
      const Tensor x = full({1}, world.rank());
      part->all_reduce(x);
      check(x.item() == (color == 0 ? 2 : 4), "sum ", x.item());
    }
    world.barrier();
  });
}

// Returns the error of each rank's call.
std::vector<std::string> errors_of(int size, const std::function<void(Communicator&)>& body,
                                   const CommunicatorOptions& options = {}) {
  std::mutex mutex;
  std::vector<std::string> errors(static_cast<size_t>(size));
  try {
    run_threads(
        size,
        [&](Communicator& world) {
          try {
            body(world);
          } catch (const Error& error) {
            const std::lock_guard lock(mutex);
            errors[static_cast<size_t>(world.rank())] = error.what();
            throw;
          }
        },
        options);
  } catch (const Error&) {
  }
  return errors;
}

void expect_one_error(const std::vector<std::string>& errors, std::initializer_list<int> ranks,
                      const std::vector<std::string>& parts) {
  for (const int rank : ranks) {
    const std::string& error = errors[static_cast<size_t>(rank)];
    EXPECT_EQ(error, errors[static_cast<size_t>(*ranks.begin())]);
    for (const std::string& part : parts) {
      EXPECT_NE(error.find(part), std::string::npos) << part << " is not in:\n" << error;
    }
  }
}

TEST(CommunicatorErrors, DifferentCountsAreNamed) {
  const auto errors = errors_of(3, [](Communicator& world) {
    world.barrier();
    world.set_step(12);
    world.all_reduce(ones({world.rank() == 1 ? 11 : 10}));
  });
  expect_one_error(errors, {0, 1, 2},
                   {"ranks call different collectives: rank ", "#2 all_reduce f32 sum 11",
                    "#2 all_reduce f32 sum 10", "  12"});
}

TEST(CommunicatorErrors, EveryPartOfASignatureCounts) {
  const std::function<void(Communicator&)> bodies[] = {
      [](Communicator& w) { w.rank() ? w.barrier() : w.broadcast(ones({1})); },
      [](Communicator& w) { w.broadcast(ones({1}), w.rank()); },
      [](Communicator& w) { w.all_reduce(ones({1}, w.rank() ? DType::f16 : DType::bf16)); },
      [](Communicator& w) { w.all_reduce(ones({1}), w.rank() ? ReduceOp::max : ReduceOp::min); },
      [](Communicator& w) {
        w.all_reduce(ones({1}, DType::f16), ReduceOp::sum, {.f32_carry = w.rank() == 0});
      },
  };
  for (const auto& body : bodies) {
    expect_one_error(errors_of(2, body), {0, 1}, {"ranks call different collectives: rank "});
  }
}

TEST(CommunicatorErrors, ALateRankIsShown) {
  const auto errors = errors_of(3,
                                [](Communicator& world) {
                                  world.barrier();
                                  if (world.rank() == 2) {
                                    std::this_thread::sleep_for(std::chrono::milliseconds(600));
                                  }
                                  world.all_reduce(ones({4}));
                                },
                                {.timeout = 0.2, .first_timeout = 5});
  expect_one_error(
      errors, {0, 1, 2},
      {"could not finish #2 all_reduce f32 sum 4: no answer in 0.2 s", "2     after  #1 barrier"});
}

TEST(CommunicatorErrors, ARankThatReturnsIsShown) {
  const auto errors = errors_of(3, [](Communicator& world) {
    world.barrier();
    if (world.rank() != 1) {
      world.all_reduce(ones({4}));
    }
  });
  expect_one_error(errors, {0, 2}, {"rank 1 has left", "1     returned  #1 barrier"});
  EXPECT_EQ(errors[1], "");
}

TEST(CommunicatorErrors, TheRanksOwnErrorIsThrown) {
  try {
    run_threads(2, [](Communicator& world) {
      check(world.rank() == 0, "rank 1 has no data");
      world.barrier();
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rank 1 has no data");
  }
}

TEST(CommunicatorErrors, BadInputIsRefused) {
  const auto errors = errors_of(1, [](Communicator& world) {
    EXPECT_THROW(world.all_reduce(ones({2}, DType::u8)), Error);
    EXPECT_THROW(world.broadcast(ones({2}), 1), Error);
    EXPECT_THROW(world.reduce_scatter(ones({2})), Error);
    world.all_reduce(ones({2}), ReduceOp::sum, {.algorithm = Algorithm::library});
  });
  EXPECT_EQ(errors[0],
            "all_reduce: the transport threads has no all-reduce of a library; use the ring");
}

}  // namespace
}  // namespace binade::dist::communicator_test
