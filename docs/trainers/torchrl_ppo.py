"""TorchRL: rollouts of JSON tool calls, and its PPO learns Wordle with 200 words.

Text travels through TorchRL as it is: `JsonAction` lets a policy write each call as a language model does,
and `text_rollout` collects what it wrote and read in a TensorDict. To learn, actions become numbers, and
`MaskInObservation` puts what is legal where TorchRL's `ActionMask` and `MaskedCategorical` look for it.

    python docs/trainers/torchrl_ppo.py --seed 1
"""

import json
from typing import Any

import desk
import gymnasium as gym
import small_wordle
import torch
from progress import Progress, run
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import ActionMask, Compose, DTypeCastTransform, GymWrapper, SerialEnv, TransformedEnv
from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE
from word_logits import WordLogits

from plural_gym.rl.wrappers import JsonAction, MaskInObservation

STEPS = 160_000
GAMES, FRAMES = 16, 2_000
EPOCHS, MINIBATCH = 4, 500
MEASURED = 10
"""Updates between two measurements."""


def text_rollout(turns: int = 10, seed: int = 0) -> TensorDictBase:
    """One ticket, handled by a policy that reads text and writes calls; `next/text` holds what it read."""
    env = GymWrapper(JsonAction(gym.make(desk.ID, split="train")))
    env.set_seed(seed)

    def policy(step: TensorDictBase) -> TensorDictBase:
        read = step["text"]
        if "filed under" in read:
            call = {"action": "draft_reply", "arguments": {"text": desk.REPLY}}
        elif "draft saved" in read:
            call = {"action": "send_reply", "arguments": {}}
        elif "reply sent" in read:
            call = {"action": "resolve", "arguments": {}}
        elif read.startswith("{"):
            category = "shipping" if "parcel" in read or "order" in read else "billing"
            call = {"action": "categorize", "arguments": {"category": category}}
        else:
            call = {"action": "read_ticket", "arguments": {}}
        return step.set("action", json.dumps(call))

    return env.rollout(turns, policy)


def make() -> TransformedEnv:
    """The world of `small_wordle`, with its masks, for TorchRL."""
    env = MaskInObservation(small_wordle.make("train"))
    as_bool = DTypeCastTransform(torch.int8, torch.bool, in_keys=["action_mask"])
    return TransformedEnv(GymWrapper(env, categorical_action_encoding=True), Compose(as_bool, ActionMask()))


def networks() -> tuple[ProbabilisticActor, ValueOperator]:
    """An actor over the words that are legal, and a critic."""
    actor = ProbabilisticActor(
        TensorDictModule(WordLogits(small_wordle.FEATURES), in_keys=["observation"], out_keys=["logits"]),
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )
    hidden = torch.nn.Linear(small_wordle.FEATURES, 128), torch.nn.Tanh(), torch.nn.Linear(128, 1)
    return actor, ValueOperator(torch.nn.Sequential(*hidden), in_keys=["observation"])


def main(steps: int = STEPS, seed: int = 0) -> Progress:
    """Learn; returns the rates of games won, measured greedily on both splits."""
    torch.set_num_threads(1)  # the networks are small: a second thread costs more than it brings
    torch.manual_seed(seed)
    envs = SerialEnv(GAMES, make)
    envs.set_seed(seed)
    actor, critic = networks()
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.03, critic_coeff=0.5, normalize_advantage=True)
    estimator = GAE(gamma=0.9, lmbda=0.9, value_network=critic)
    optimizer = torch.optim.Adam(loss.parameters(), 1e-3)
    collector = Collector(
        envs,
        actor,
        frames_per_batch=FRAMES,
        total_frames=max(steps, FRAMES),
        auto_register_policy_transforms=False,
    )
    progress = Progress("torchrl_ppo", seed)
    measure(progress, actor, 0)
    for number, batch in enumerate(collector, start=1):
        for _ in range(EPOCHS):
            with torch.no_grad():
                estimator(batch)
            flat = batch.reshape(-1)
            for chosen in torch.randperm(len(flat)).split(MINIBATCH):
                losses = loss(flat[chosen])
                optimizer.zero_grad()
                sum(losses[key] for key in ("loss_objective", "loss_entropy", "loss_critic")).backward()
                torch.nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimizer.step()
        if number % MEASURED == 0 or number * FRAMES >= steps:
            measure(progress, actor, number * FRAMES)
    collector.shutdown()
    return progress


@torch.no_grad()
def measure(progress: Progress, actor: ProbabilisticActor, steps: int) -> None:
    """Play every Task of both splits once."""
    logits = actor[0].module

    def player(known: Any, mask: Any) -> Any:
        scores = logits(torch.as_tensor(known))
        return scores.masked_fill(~torch.as_tensor(mask), -torch.inf).argmax().item()

    with progress.aside():
        rates = small_wordle.rates(player)
    progress.add(steps, **rates)


if __name__ == "__main__":
    for call, read in zip((told := text_rollout())["action"], told["next", "text"], strict=True):
        print(f"> {call}\n{read}")
    run(main, STEPS, small_wordle.rates)
