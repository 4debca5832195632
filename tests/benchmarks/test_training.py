"""Training: how long it takes beside the floating-point floor and beside other libraries, and how much memory.

``python -m tests.benchmarks.test_training`` prints a table; with pytest-benchmark ``pytest tests/benchmarks
-o python_functions="bench_*" --benchmark-only`` times the same rows. All times are CPU time of one thread. What is
compared in one run:

* The **floor**: the operations of the network (products of the GRU and of the two heads, two for each weight; once for
  each turn played, and in each epoch three times, forwards and backwards) over the rate at which this machine
  multiplies two square matrices of 512 rows in float32. Nothing that is padded, or evaluated, counts.
* The **full profile of the lab**, 2 reward modes × 5 seeds, stacked and one run after the other. Of the latter the
  fastest round of each run counts.
* **Recurrent PPO of sb3-contrib** on the same world, in the fastest of a few settings: one-hot observation and previous
  action, an LSTM of 32 units shared by actor and critic, heads without hidden layers, 4 epochs.
* A **per-step loop in the style of CleanRL** with an LSTM of 32 units: 48 environments that are stepped one by one, 8
  turns an update, and in each of 4 epochs the LSTM again a step at a time.

Steps are the turns that were played to learn from. A peer that is not installed is left out, with the reason.

Measured with Python 3.11 and torch 2.13 on one core of a machine that did little else (products at 72 operations a
nanosecond, floor 0.11 s): the full profile stacked 18.6 times the floor, one run after the other 50 times (42 with the
rounds of a quieter minute, 55 in a busy one: what is left is the cost of calling torch, some 20,000 times a run); in
steps per CPU second 14 times Recurrent PPO's fastest setting stacked, 5.2 times one run after the other, the per-step
loop 2.5 times. Memory above the imports: the whole stack 10 MB, one run less than 1, Recurrent PPO 25 to 37.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch import nn

import keydoor.training
from keydoor._play import one_thread
from keydoor.env import KeyDoorAgentEnv
from keydoor.profiles import PROFILES
from keydoor.rules import ACTIONS, OBSERVATIONS, REWARD_MODES
from keydoor.stacked import train_many
from keydoor.training import TrainingConfig, train_actor_critic
from tests.benchmarks.recipe import best, versions, write_json

FULL = PROFILES["full"]
SIZE: dict[str, int] = {
    "updates": FULL.updates,
    "episodes_per_update": FULL.episodes_per_update,
    "evaluation_interval": max(1, FULL.updates // 5),
    "evaluation_episodes": FULL.evaluation_episodes,
}
RUNS = [(mode, seed) for mode in sorted(REWARD_MODES) for seed in FULL.seeds]
INPUTS = len(OBSERVATIONS) + len(ACTIONS) + 1
STEPS = 6144  # about what one run of the full profile plays
MATRIX = 512
PEERS = {"sb3_contrib": "sb3-contrib is not installed; the extra keydoor[bench] brings it"}


def full_stacked() -> None:
    train_many([seed for _, seed in RUNS], reward_mode=[mode for mode, _ in RUNS], **SIZE)


def one_run(mode: str, seed: int) -> None:
    train_actor_critic(seed=seed, reward_mode=mode, **SIZE)


def turns_of(function: Callable[[], None]) -> int:
    """The turns that a training plays to learn from."""
    counted, play = [], keydoor.training.play_stack

    def watch(*arguments: Any, **settings: Any) -> Any:
        played = play(*arguments, **settings)
        counted.append(int(played.lengths.sum()))
        return played

    keydoor.training.play_stack = watch
    try:
        function()
    finally:
        keydoor.training.play_stack = play
    return sum(counted)


def operations(turns: int) -> int:
    """Floating-point operations of the network for so many turns: played once, learned from in each epoch."""
    config = TrainingConfig()
    width, outputs = config.hidden_size, len(ACTIONS) + 1
    forwards = 2 * (3 * width * (INPUTS + width) + width * outputs)
    return turns * forwards * (1 + 3 * config.epochs)


def matmul_rate(seconds: float = 0.2) -> float:
    """Operations per CPU second in products of two square matrices, one thread, the fastest of a few rounds."""
    a, out, best, start = torch.rand(MATRIX, MATRIX), torch.empty(MATRIX, MATRIX), float("inf"), time.process_time()
    with one_thread():
        while time.process_time() - start < seconds:
            begun = time.process_time()
            for _ in range(5):
                torch.mm(a, a, out=out)
            best = min(best, (time.process_time() - begun) / 5)
    return 2 * MATRIX**3 / best


# --- peers ------------------------------------------------------------------------------------------------------------


class Flat(gymnasium.Env[Any, int]):
    """The world for libraries that know no previous action: it is a part of the observation, both one-hot."""

    def __init__(self) -> None:
        self.env = KeyDoorAgentEnv(observation_mode="indices", reward_mode="potential", seed=0)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (INPUTS,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(len(ACTIONS))

    def shown(self, observation: int, action: int) -> Any:
        both = np.zeros(INPUTS, np.float32)
        both[[observation, len(OBSERVATIONS) + action]] = 1.0
        return both

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed)
        return self.shown(observation, len(ACTIONS)), info

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(int(action))
        return self.shown(observation, int(action)), reward, terminated, truncated, info


SETTINGS = ((8, 128, 128), (16, 64, 256), (48, 8, 384), (48, 64, 1024))
"""Environments, turns of each per update, and turns of a minibatch, for Recurrent PPO."""


def recurrent_ppo(environments: int, turns: int, batch: int) -> Callable[[], None]:
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    def run() -> None:
        with one_thread():
            model = RecurrentPPO(
                "MlpLstmPolicy",
                DummyVecEnv([Flat] * environments),
                n_steps=turns,
                batch_size=batch,
                n_epochs=4,
                learning_rate=0.01,
                gae_lambda=0.65,
                ent_coef=0.05,
                max_grad_norm=1.0,
                policy_kwargs={
                    "net_arch": [],
                    "lstm_hidden_size": 32,
                    "enable_critic_lstm": False,
                    "shared_lstm": True,
                },
                device="cpu",
                seed=0,
            )
            model.learn(STEPS)

    return run


class Agent(nn.Module):
    """An LSTM and two heads, stepped a turn at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = nn.LSTMCell(INPUTS, 32)
        self.actor, self.critic = nn.Linear(32, len(ACTIONS)), nn.Linear(32, 1)

    def forward(self, seen: torch.Tensor, begins: torch.Tensor, state: Any) -> Any:
        keep = 1.0 - begins.unsqueeze(-1)
        state = self.memory(seen, (state[0] * keep, state[1] * keep))
        return torch.distributions.Categorical(logits=self.actor(state[0])), self.critic(state[0]).squeeze(-1), state


def per_step_loop() -> None:
    """Clipped policy gradients with fixed lengths of rollout and resets inside, as single-file programs do it."""
    count, turns, epochs = 48, 8, 4
    torch.manual_seed(0)
    envs = [Flat() for _ in range(count)]
    with one_thread():
        agent = Agent()
        optimiser = torch.optim.Adam(agent.parameters(), lr=0.01, eps=1e-5)
        seen = torch.from_numpy(np.stack([env.reset(seed=i)[0] for i, env in enumerate(envs)]))
        begins, state = torch.zeros(count), (torch.zeros(count, 32), torch.zeros(count, 32))
        for _ in range(STEPS // (count * turns)):
            first = tuple(x.clone() for x in state)
            store: list[tuple[torch.Tensor, ...]] = []
            with torch.no_grad():
                for _ in range(turns):
                    policy, value, state = agent(seen, begins, state)
                    action = policy.sample()
                    rows, rewards, ends = [], [], []
                    for env, choice in zip(envs, action.tolist(), strict=True):
                        row, reward, terminated, truncated, _ = env.step(choice)
                        rows.append(env.reset()[0] if terminated or truncated else row)
                        rewards.append(reward)
                        ends.append(float(terminated or truncated))
                    store.append((seen, begins, action, policy.log_prob(action), value, torch.tensor(rewards)))
                    seen, begins = torch.from_numpy(np.stack(rows)), torch.tensor(ends)
                following, ended, running, gains = agent(seen, begins, state)[1], begins, torch.zeros(count), []
                for _, begun, _, _, value, reward in reversed(store):
                    delta = reward + 0.99 * following * (1 - ended) - value
                    running = delta + 0.99 * 0.65 * (1 - ended) * running
                    gains.append(running)
                    following, ended = value, begun
            gain = torch.stack(gains[::-1])
            goal = gain + torch.stack([turn[4] for turn in store])
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            for _ in range(epochs):
                memory, parts = first, []
                for t, (shown, begun, action, old, _, _) in enumerate(store):
                    policy, value, memory = agent(shown, begun, memory)
                    ratio = (policy.log_prob(action) - old).exp()
                    surrogate = torch.minimum(ratio * gain[t], ratio.clamp(0.8, 1.2) * gain[t])
                    parts.append((-surrogate + 0.5 * (value - goal[t]) ** 2 - 0.05 * policy.entropy()).mean())
                optimiser.zero_grad()
                torch.stack(parts).mean().backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 1.0)
                optimiser.step()
            state = tuple(x.detach() for x in state)


def missing(name: str) -> str | None:
    """Why a row is left out, if it is."""
    for package, reason in PEERS.items():
        if name.startswith(package) and importlib.util.find_spec(package) is None:
            return reason
    return None


def rows() -> dict[str, Callable[[], Callable[[], None]]]:
    """What is timed, by name: each makes the function to call. All but the first play about :data:`STEPS` turns."""
    made: dict[str, Callable[[], Callable[[], None]]] = {
        "full profile, stacked": lambda: full_stacked,
        "one run, shaped": lambda: lambda: one_run("potential", 1),
        "one run, sparse": lambda: lambda: one_run("sparse", 1),
        "per-step loop": lambda: per_step_loop,
    }
    for setting in SETTINGS:
        label = "sb3_contrib RecurrentPPO, {} environments, {} turns, minibatch {}".format(*setting)
        made[label] = lambda setting=setting: recurrent_ppo(*setting)
    return made


@pytest.mark.parametrize("name", [*rows()])
def bench_training(benchmark: Any, name: str) -> None:
    if reason := missing(name):
        pytest.skip(reason)
    function = rows()[name]()
    rounds = 1 if name.startswith("sb3") else 3
    benchmark.pedantic(function, rounds=rounds, warmup_rounds=1)


# --- the table --------------------------------------------------------------------------------------------------------


def memory(name: str) -> float:
    """Peak memory of a row in MB, in a process of its own, above that of the same imports and a tiny run."""
    peaks = []
    for row in ("imports", name):
        command = [sys.executable, "-m", "tests.benchmarks.test_training", "--memory-of", row]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(float(done.stdout.split()[-1]))
    return peaks[1] - peaks[0]


def peak_after(name: str) -> float:
    """In MB. What ``getrusage`` says begins, on Linux, with the memory of the process that started this one."""
    if importlib.util.find_spec("sb3_contrib"):
        import sb3_contrib  # noqa: F401
    train_actor_critic(
        seed=0, reward_mode="sparse", **{**SIZE, "updates": 1, "episodes_per_update": 1}
    )  # loads the rest
    if name != "imports":
        rows()[name]()()
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(rounds: int) -> dict[str, Any]:
    table: list[dict[str, Any]] = []

    def add(name: str, seconds: float, steps: int, **rest: Any) -> None:
        table.append(
            {"row": name, "cpu_seconds": seconds, "steps": steps, "steps_per_cpu_second": steps / seconds, **rest}
        )

    one_run("potential", 1)  # what is loaded at first use
    turns, rate, stacked = turns_of(full_stacked), 0.0, float("inf")
    alone = [float("inf")] * len(RUNS)
    for _ in range(rounds):  # the rate is of the same minutes as what it is compared with
        rate = max(rate, matmul_rate())
        stacked = min(stacked, best(full_stacked, 1))
        alone = [min(old, best(lambda run=run: one_run(*run), 1)) for old, run in zip(alone, RUNS, strict=True)]
    floor = operations(turns) / rate
    for name, seconds in (("full profile, stacked", stacked), ("full profile, one run after the other", sum(alone))):
        add(name, seconds, turns, times_the_floor=seconds / floor)
    add("per-step loop", best(per_step_loop, rounds), STEPS)
    skipped = {}
    for name, make in rows().items():
        if name.startswith("sb3"):
            if reason := missing(name):
                skipped[name] = reason
            else:
                add(name, best(make(), max(1, rounds // 2)), STEPS)
    for row in table:
        if row["row"] in rows():
            row["memory_mb"] = memory(row["row"])
    table[1]["memory_mb"] = memory("one run, shaped")
    fastest = max((row["steps_per_cpu_second"] for row in table if row["row"].startswith("sb3")), default=None)
    for row in table:
        row["times_recurrent_ppo"] = fastest and row["steps_per_cpu_second"] / fastest
    return {
        "matmul": {"rows": MATRIX, "gigaflops": rate / 1e9},
        "floor_cpu_seconds": floor,
        "operations": operations(turns),
        "versions": versions(),
        "rows": table,
        "left_out": skipped,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="time the training")
    parser.add_argument("--rounds", type=int, default=5, help="the fastest of so many rounds counts")
    parser.add_argument("--save", action="store_true", help="write tests/benchmarks/results/training.json")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        print(peak_after(arguments.memory_of))
        return
    result = measure(arguments.rounds)
    print(
        f"floor {1000 * result['floor_cpu_seconds']:.0f} ms: {result['operations'] / 1e9:.2f} billion operations at "
        f"{result['matmul']['gigaflops']:.0f} a nanosecond (float32, {MATRIX} × {MATRIX})"
    )
    for row in result["rows"]:
        floor = f"{row['times_the_floor']:6.1f} x floor" if "times_the_floor" in row else " " * 14
        ppo = f"{row['times_recurrent_ppo']:6.2f} x PPO" if row["times_recurrent_ppo"] else ""
        print(
            f"{row['row']:66} {row['cpu_seconds']:7.2f} s {row['steps_per_cpu_second']:9,.0f} steps/s {floor} {ppo} "
            f"{row['memory_mb']:6.0f} MB"
        )
    for name, reason in result["left_out"].items():
        print(f"{name}: left out, {reason}")
    if arguments.save:
        rounded = json.loads(json.dumps(result), parse_float=lambda text: float(f"{float(text):.4g}"))
        print(write_json("training.json", rounded))


if __name__ == "__main__":
    main()
