"""Deep Q-learning (Mnih et al., 2015; double: van Hasselt et al., 2016) of cart-pole, in a loop of its
own."""

import math

import shared
import torch
from torch import nn

MOST_STEPS = 500  # steps per episode; each gives a reward of 1


class CartPole:
    """Cart-pole of Barto, Sutton and Anderson (1983), with the constants of Gymnasium's CartPole-v1."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.state = torch.rand(4) * 0.1 - 0.05  # position, speed, angle, angular speed
        self.age = 0

    def push(self, right):
        """True if the pole falls or the cart leaves the track."""
        gravity, mass, pole, half, time = 9.8, 1.1, 0.1, 0.5, 0.02
        x, speed, angle, turning = self.state.tolist()
        sine, cosine = math.sin(angle), math.cos(angle)
        pull = ((10 if right else -10) + pole * half * turning**2 * sine) / mass
        turn = (gravity * sine - cosine * pull) / (half * (4 / 3 - pole * cosine**2 / mass))
        push = pull - pole * half * turn * cosine / mass
        self.state = self.state + time * torch.tensor([speed, push, turning, turn])
        self.age += 1
        x, _, angle, _ = self.state.tolist()
        return abs(x) > 2.4 or abs(angle) > math.radians(12)


class Memory:
    """The last transitions, one per row: state before, state after, action, 1 if still up."""

    def __init__(self, size):
        self.rows, self.count = torch.zeros(size, 10), 0

    def add(self, before, after, right, fell):
        row = torch.cat([before, after, torch.tensor([float(right), float(not fell)])])
        self.rows[self.count % len(self.rows)] = row
        self.count += 1


def mlp():
    return nn.Sequential(
        nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)
    )


@torch.no_grad()
def best_action(net, state):
    return net(state.to(next(net.parameters()).device)).argmax().item() == 1


def mean_return(net, episodes):
    total = 0
    for _ in range(episodes):
        game = CartPole()
        while not game.push(best_action(net, game.state)) and game.age < MOST_STEPS:
            pass
        total += game.age
    return total / episodes


def q_loss(online, target, rows):
    before, after, right, up = rows.split([4, 4, 1, 1], 1)
    with torch.no_grad():
        future = target(after).gather(1, online(after).argmax(1, keepdim=True))
        wanted = 1 + 0.99 * up * future.float()
    return nn.functional.smooth_l1_loss(online(before).gather(1, right.long()), wanted)


def main():
    parser = shared.parser(
        "dqn",
        "Learns to balance a pole on a cart.",
        ["data", "epochs"],
        steps=100000,
        batch=128,
        lr=3e-4,
        checkpoint_every=5000,
    )
    parser.add_argument("--memory", type=int, default=20000, help="transitions that it remembers")
    flags = shared.start(parser)
    online, target = mlp().to(flags.device), mlp().to(flags.device)
    target.load_state_dict(online.state_dict())
    adam = torch.optim.AdamW(online.parameters(), flags.lr)
    schedule = torch.optim.lr_scheduler.LinearLR(adam, 1, 0, flags.steps)
    scaler = torch.amp.GradScaler(flags.device, enabled=flags.precision == "fp16")
    low = torch.bfloat16 if flags.precision == "bf16" else torch.float16
    game, memory, step = CartPole(), Memory(flags.memory), 0
    parts = {
        "online": online,
        "target": target,
        "adam": adam,
        "schedule": schedule,
        "scaler": scaler,
    }
    checkpoint = flags.run / "checkpoint.pt"
    if flags.resume and checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=False)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        torch.set_rng_state(saved["random"])
        game.__dict__.update(saved["game"])
        memory.__dict__.update(saved["memory"])
        step = saved["step"]
    every = max(flags.steps // 20, 1)
    while step < flags.steps:
        explore = torch.rand(1).item() < max(0.05, 1 - 5 * step / flags.steps)
        right = torch.rand(1).item() < 0.5 if explore else best_action(online, game.state)
        before = game.state
        fell = game.push(right)
        memory.add(before, game.state, right, fell)
        if fell or game.age >= MOST_STEPS:
            game.reset()
        picks = torch.randint(min(memory.count, flags.memory), (flags.batch,))
        with torch.autocast(flags.device, low, enabled=flags.precision != "fp32"):
            loss = q_loss(online, target, memory.rows[picks].to(flags.device))
        adam.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(adam)
        nn.utils.clip_grad_norm_(online.parameters(), 10)
        scaler.step(adam)
        scaler.update()
        schedule.step()
        with torch.no_grad():
            for mine, theirs in zip(target.parameters(), online.parameters()):
                mine.lerp_(theirs, 0.005)
        step += 1
        if step % every == 0:
            score = mean_return(online, 10)
            shared.write_line(
                flags.run,
                step=step,
                epoch=step // every - 1,
                train_loss=loss.item(),
                validation_return=score,
                state_hash=shared.state_hash(online.state_dict(), target.state_dict()),
            )
            print(f"step {step}: mean return {score:.1f}")
        if step % max(flags.checkpoint_every, 1) == 0 or step == flags.steps:
            saved = {name: part.state_dict() for name, part in parts.items()}
            saved |= {"game": vars(game), "memory": vars(memory), "step": step}
            torch.save(saved | {"random": torch.get_rng_state()}, checkpoint)
    torch.save(online.state_dict(), flags.run / "model.pt")
    print(f"mean return: {mean_return(online, 20):.1f} of 500")


if __name__ == "__main__":
    main()
