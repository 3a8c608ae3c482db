"""What a training library ships to its workers arrives: in another interpreter, with its Tasks."""

import pickle
import subprocess
import sys

from plural_gym.shipped import project

PLAYS = """
import pickle, sys
env = pickle.load(sys.stdin.buffer)
env.reset(seed=5)
observation, reward, *_ = env.step({"action": "guess", "arguments": {"word": "slate"}})
print(env.plans.count, observation["text"], reward)
"""


def test_an_environment_with_a_projects_tasks_goes_to_a_fresh_interpreter() -> None:
    worlds = project()
    env = worlds.environments["wordle"].gym(tasks=worlds.tasks_of("wordle", "test"))
    env.reset(seed=5)
    observation, reward, *_ = env.step({"action": "guess", "arguments": {"word": "slate"}})
    packed = pickle.dumps(env)
    assert len(packed) < 20_000, "Tasks travel by name"
    seen = subprocess.run([sys.executable, "-c", PLAYS], input=packed, check=True, capture_output=True)
    assert seen.stdout.decode().strip() == f"{env.plans.count} {observation['text']} {reward}"


def test_a_set_of_tasks_and_each_part_of_it_come_back_equal() -> None:
    tasks = project().tasks
    for part in (tasks, tasks.split("test"), tasks[:3], tasks.choose(["wordle/crane"])):
        again = pickle.loads(pickle.dumps(part))
        assert again.names == part.names and again[0].content_hash == part[0].content_hash


def test_a_checkpoint_comes_back_and_is_played_on() -> None:
    worlds = project()
    env = worlds.environments["wordle"].gym(tasks=[worlds.tasks["crane"]])
    env.reset(seed=1)
    env.step("guess", word="slate")
    saved = pickle.loads(pickle.dumps(env.checkpoint()))
    first = env.step("guess", word="brace")[0]["text"]
    env.restore(saved)
    assert env.step("guess", word="brace")[0]["text"] == first
