"""The last layer of a policy over words, whose logits share what they learn."""

import small_wordle
import torch


class WordLogits(torch.nn.Module):
    """Scores of letters in places, added up to the logit of each word of `small_wordle`.

    What one word teaches about its letters holds for every other word that has them, also for words that were
    never a secret. With a free logit for each word those would only be learned to be wrong.
    """

    words: torch.Tensor

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.scores = torch.nn.Linear(inputs, 5 * small_wordle.LETTERS)
        torch.nn.init.orthogonal_(self.scores.weight, 0.01)
        self.register_buffer("words", torch.as_tensor(small_wordle.letters_of_words()))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Logits (batch, words) of features (batch, inputs)."""
        logits: torch.Tensor = self.scores(features) @ self.words
        return logits
