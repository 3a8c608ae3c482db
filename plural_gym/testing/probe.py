"""The code that `check_runtime` sends into processes: an App and a check that answer, talk, exit and loop.

It is loaded by its file, as a project's code is, so that it reaches a process in the way worlds do.
"""

import itertools
import os
import sys
import time
from typing import Any

from plural_gym.app import App, action
from plural_gym.state import State
from plural_gym.verifier import VerifierOutput


class Count(State):
    """How often the probe was asked."""

    asked: int = 0


class Probe(App):
    """An App that does what a Runtime must cope with."""

    state: Count

    @action
    def echo(self, text: str) -> dict[str, Any]:
        """Give back the text and how often it was asked for one."""
        self.state.asked += 1
        return {"text": text, "asked": self.state.asked}

    @action
    def speak(self, text: str) -> str:
        """Say the text on both outputs."""
        return speak(text)

    @action
    def leave(self, status: int) -> None:
        """Exit, without a word."""
        os._exit(status)

    @action
    def loop(self) -> None:
        """Never end, and say so all the time."""
        loop()


def check(episode: Any) -> VerifierOutput:
    """Do what the answer asks for."""
    order, text = episode.answer["do"], episode.answer.get("text", "")
    if order == "ask":
        text = episode.apps["probe"].query("anything")
    elif order == "speak":
        speak(text)
    elif order == "leave":
        os._exit(episode.answer["status"])
    elif order == "loop":
        loop()
    return VerifierOutput(score=float(len(text)), evidence=text)


def speak(text: str) -> str:
    """Say the text on both outputs."""
    print(f"out {text}")
    print(f"err {text}", file=sys.stderr)
    return text


def loop() -> None:
    """Never end, and say so all the time."""
    for turn in itertools.count():
        print(f"still here {turn}", file=sys.stderr, flush=True)
        time.sleep(0.005)
