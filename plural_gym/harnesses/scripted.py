"""The Harness kind `scripted`: an author's own code, which need not call a model."""

from collections.abc import Mapping
from typing import Any, ClassVar

from plural_gym.harness import Harness, Seat, TaskBrief, as_harness


class Scripted(Harness):
    """Plays with a function `(task, seat)` or a class with `play`, named as `play: play.py:play`.

    Its config goes as keyword arguments to the class when it is made, or to the function at each call.

    Raises:
        DefinitionError: code that cannot play, or a config that it does not take.
    """

    kind: ClassVar[str] = "scripted"

    # The first parameter is named as the manifest's key; the method below is another thing.
    def __init__(self, play: Any, **config: Any) -> None:
        self._inner = as_harness(play, config)
        self.name = self._inner.name

    def play(self, task: TaskBrief, seat: Seat) -> Any:
        return self._inner.play(task, seat)

    @property
    def code(self) -> Any:
        return self._inner.code

    @property
    def config(self) -> Mapping[str, Any]:
        return self._inner.config
