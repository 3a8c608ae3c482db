"""TokenObservation takes a tokenizer of the package tokenizers as it is; with the real package."""

from collections.abc import Callable

import gymnasium as gym
import pytest

from plural_gym.rl.wrappers import TokenObservation

pytestmark = pytest.mark.trainers


def test_a_trained_tokenizer_reads_what_the_world_says(trainers: Callable[..., None]) -> None:
    trainers("tokenizers")
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel as Decoder
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel
    from tokenizers.trainers import BpeTrainer

    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), Decoder()
    trainer = BpeTrainer(vocab_size=300, initial_alphabet=ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(["the ticket", "the reply"], trainer)

    env = TokenObservation(gym.make("plural_gym:plural/SupportDesk-v0"), tokenizer, 1024)
    observation, _ = env.reset(seed=0)
    assert env.observation_space["input_ids"].high.max() == tokenizer.get_vocab_size() - 1
    ids = observation["input_ids"][observation["attention_mask"] == 1]
    assert tokenizer.decode(ids.tolist()) == env.unwrapped.session.task.instructions
