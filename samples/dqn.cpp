// Deep Q-learning (Mnih et al., 2015; double: van Hasselt et al., 2016) of cart-pole, in a loop of
// its own: no Trainer, but save_checkpoint() and load_checkpoint().
#include <binade/binade.h>
#include <binade/train/flags.h>

#include <cmath>
#include <cstdio>

using namespace binade;

namespace {

constexpr int64_t kMostSteps = 500;  // of an episode, each worth 1

// Barto, Sutton and Anderson (1983), with the constants of Gymnasium's CartPole-v1.
struct CartPole {
  Tensor state = rand({4}) * 0.1 - 0.05;  // place, speed, angle, angular speed
  int64_t age = 0;

  void reset() {
    state.copy_(rand({4}) * 0.1 - 0.05);
    age = 0;
  }
  // True if the pole falls or the cart leaves the track.
  bool push(bool right) {
    constexpr double kGravity = 9.8, kMass = 1.1, kPole = 0.1, kHalf = 0.5, kTime = 0.02;
    auto* s = state.data<float>();
    const double sine = std::sin(s[2]), cosine = std::cos(s[2]);
    const double pull = ((right ? 10 : -10) + kPole * kHalf * s[3] * s[3] * sine) / kMass;
    const double turn =
        (kGravity * sine - cosine * pull) / (kHalf * (4.0 / 3 - kPole * cosine * cosine / kMass));
    const double push = pull - kPole * kHalf * turn * cosine / kMass;
    const double change[4] = {s[1], push, s[3], turn};
    for (int i = 0; i < 4; ++i) {
      s[i] = static_cast<float>(s[i] + kTime * change[i]);
    }
    ++age;
    return std::abs(s[0]) > 2.4 || std::abs(s[2]) > 12 * M_PI / 180;
  }
};

// The last transitions, a row each: state before [4], state after [4], action, 1 if still up.
struct Memory {
  void add(const Tensor& before, const Tensor& after, bool right, bool fell) {
    rows[count++ % rows.size(0)].copy_(
        cat({before, after, Tensor::from({right ? 1.f : 0, fell ? 0 : 1.f})}));
  }
  Tensor draw(int64_t batch) const {
    return index_select(rows, 0, randint(std::min(count, rows.size(0)), {batch}));
  }
  Tensor rows;
  int64_t count = 0;
};

bool best_action(nn::Module& net, const Tensor& state) {
  const NoGradGuard guard;
  return argmax(net(unsqueeze(state, 0).to(net.device()))).item() == 1;
}

double mean_return(nn::Module& net, int64_t episodes) {
  double total = 0;
  for (int64_t i = 0; i < episodes; ++i) {
    CartPole game;
    while (!game.push(best_action(net, game.state)) && game.age < kMostSteps) {
    }
    total += game.age;
  }
  return total / episodes;
}

// The loss of Q-learning on rows of the memory; `target` gives the value of the next state.
Tensor q_loss(nn::Module& online, nn::Module& target, const Tensor& rows) {
  Tensor wanted;
  {
    const NoGradGuard guard;
    const Tensor after = narrow(rows, 1, 4, 4), choice = argmax(online(after), 1, true);
    const Tensor future = gather(target(after), 1, choice).to(DType::f32);
    wanted = future * narrow(rows, 1, 9, 1) * 0.99 + 1;
  }
  const Tensor q = gather(online(narrow(rows, 1, 0, 4)), 1, narrow(rows, 1, 8, 1).to(DType::i64));
  return smooth_l1_loss(q, wanted);
}

void run(const train::RunFlags& flags, int64_t size) {
  nn::MLP online({.in = 4, .hidden = {128, 128}, .classes = 2});
  nn::MLP target({.in = 4, .hidden = {128, 128}, .classes = 2});
  online.to(flags.target(), flags.policy());
  target.to(flags.target(), flags.policy());
  nn::copy_module(online, target);
  optim::AdamW adam(online.parameters(), {.lr = flags.lr});
  flags.formats.prepare(adam, flags.seed);
  optim::LinearLR schedule(adam, {.start_factor = 1, .end_factor = 0, .total_iters = flags.steps});
  optim::LossScaler scaler = flags.loss_scaler().value_or(optim::LossScaler::fixed(1));
  CartPole game;
  Memory memory{.rows = zeros({size, 10})};
  int64_t step = 0;
  std::vector<train::CheckpointPart> parts{online, {"target", target}, adam, schedule,
                                           scaler, generator()};
  parts.insert(parts.end(), {{"game", game.state},
                             {"age", game.age},
                             {"memory", memory.rows},
                             {"count", memory.count},
                             {"step", step}});
  const train::CheckpointOptions place = flags.checkpoint_options();
  const bool resumed = train::load_checkpoint(place, parts);
  train::JsonLines log({.file = "metrics.jsonl"});
  log.start({.directory = flags.run, .resumed = resumed, .step = step});
  const int64_t every = std::max<int64_t>(flags.steps / 20, 1);
  while (step < flags.steps) {
    const bool explore = rand({1}).item() < std::max(0.05, 1 - 5.0 * step / flags.steps);
    const bool right = explore ? rand({1}).item() < 0.5 : best_action(online, game.state);
    const Tensor before = game.state.clone();
    const bool fell = game.push(right);
    memory.add(before, game.state, right, fell);
    if (fell || game.age >= kMostSteps) {
      game.reset();
    }
    const Tensor loss = q_loss(online, target, memory.draw(flags.batch).to(online.device()));
    scaler.scale(loss).backward();
    schedule.advance(scaler.step(adam, {.clip_norm = 10}));
    flags.formats.after_step(adam);
    nn::soft_update(target, online, 0.005);
    if (++step % every == 0) {
      const double score = mean_return(online, 10);
      log.scalars({.step = step,
                   .epoch = step / every - 1,
                   .values = {{"train_loss", loss.item()}, {"validation_return", score}},
                   .words = {{"state_hash", train::state_hash(parts)}}});
      std::printf("step %lld: mean return %.1f\n", static_cast<long long>(step), score);
    }
    train::profile_step();
    if (step % std::max<int64_t>(flags.checkpoint_every, 1) == 0 || step == flags.steps) {
      train::save_checkpoint(place, parts);
    }
  }
  log.finish();
  train::save_model(flags.run + "/model.safetensors", online);
  std::printf("mean return: %.1f of 500\n", mean_return(online, 20));
}

}  // namespace

int main(int argc, char** argv) {
  train::Program program("dqn", "Learns to balance a pole on a cart.",
                         {.steps = 100000, .batch = 128, .lr = 3e-4, .checkpoint_every = 5000},
                         {"--data", "--epochs", "--record-gradients", "--black-box"});
  int64_t memory = 20000;
  program.add("--memory", memory, "transitions that it remembers", {1, 1 << 24});
  return program.run(argc, argv, [&](const train::RunFlags& flags) { return run(flags, memory); });
}
