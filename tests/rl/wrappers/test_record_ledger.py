"""RecordLedger: what any loop did, as Parquet, whatever ends the loop."""

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pyarrow.parquet as pq
import pytest
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import NormalizeReward, TimeLimit

from plural_gym import App, DeterministicVerifier, Environment, State, Step, VerifierOutput, action
from plural_gym.errors import AppFault, MachineError, UsageError
from plural_gym.records import ledger, run_ledger
from plural_gym.rl.wrappers import DiscreteActions, RecordLedger

SWITCH = {"action": "switch", "arguments": {"color": "red", "bright": False}}


@pytest.fixture(autouse=True)
def no_writer_left() -> Iterator[None]:
    """Every test gives its writers back."""
    yield
    gc.collect()
    assert run_ledger._writers == {}


def rows(env: Any, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ledger.read(env.ledger_folder, table).to_pylist()
    return found


def play(env: Any, *calls: Any, seed: int = 0) -> None:
    env.reset(seed=seed)
    for call in calls:
        env.step(call)


def test_every_reward_is_a_row(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world(), tmp_path, run="first", agent="ppo")
    play(env, SWITCH, SWITCH, "off", "fly")
    env.close()
    told = rows(env, "rewards")
    assert [(row["action"], row["app"], row["turn"], row["value"], row["status"]) for row in told] == [
        ("switch", "house", 1, 1.0, "ok"),
        ("switch", "house", 2, None, "none"),
        ("off", "house", 3, 1.0, "ok"),
        ("fly", "house", 4, None, "none"),
    ]
    writer = env.ledger_folder.name
    one = told[2]
    assert {key: one[key] for key in ("job_id", "trial_id", "group_id", "task", "agent", "verifier")} == {
        "job_id": "first",
        "trial_id": f"{writer}-e1",
        "group_id": "first/ppo/dusk",
        "task": "dusk",
        "agent": "ppo",
        "verifier": "moved",
    }
    assert (one["event_id"], one["reward_id"]) == (f"{writer}-e1-s3", f"{writer}-e1-s3-step-moved-live")
    assert (one["kind"], one["target"], one["source"], one["run_id"]) == ("step", "step", "live", "live")
    assert one["verifier_version"] == "0.1.0" and one["code_sha256"].startswith("sha256:")
    assert told[0]["ts"] <= told[3]["ts"] and len({row["reward_id"] for row in told}) == 4


def test_every_episode_is_a_row(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world(), tmp_path)
    play(env, "off", "off", "off", "off", "off")
    play(env, *["fly"] * 12, seed=1)
    env.close()
    ended, cut = rows(env, "episodes")
    assert (ended["return"], ended["n_steps"], ended["stop_reason"]) == (5.0, 5, "environment_terminated")
    assert (ended["terminated"], ended["truncated"], ended["status"]) == (True, False, "succeeded")
    assert (cut["return"], cut["n_steps"], cut["stop_reason"]) == (0.0, 12, "max_turns")
    assert (cut["terminated"], cut["truncated"], cut["trainable"]) == (False, True, True)
    assert ended["score"] is None and ended["scores"] == [] and ended["faults"] == "[]"
    assert ended["started"] <= ended["ended"] and ended["revision"] == 1 and ended["seed"] > 0
    assert env.run_id == ended["job_id"] == cut["job_id"]


def test_the_fields_are_those_of_a_job(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world(), tmp_path)
    play(env, "off")
    env.close()
    for table in ("rewards", "episodes"):
        (part,) = (env.ledger_folder / "ledger" / table).glob("*.parquet")
        schema, known = pq.read_schema(part), ledger.TABLES[table].schema
        assert schema.equals(known) and schema.metadata == known.metadata


@pytest.mark.parametrize("outside", [False, True], ids=["inside TimeLimit", "around TimeLimit"])
def test_what_ends_outside_the_environment_is_cut_off(
    outside: bool, world: Callable[..., Any], tmp_path: Path
) -> None:
    env: Any = RecordLedger(TimeLimit(world(), 2), tmp_path) if outside else None
    env = env or TimeLimit(RecordLedger(world(), tmp_path), 2)
    for _ in range(2):
        play(env, "off", "off")
    env.close()
    told = rows(env if outside else env.env, "episodes")
    assert [(row["stop_reason"], row["terminated"], row["truncated"], row["n_steps"]) for row in told] == [
        ("truncated_externally", False, True, 2)
    ] * 2


def test_a_reset_before_the_first_step_leaves_no_episode(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world(), tmp_path)
    for seed in range(3):
        env.reset(seed=seed)
    env.step("off")
    env.close()
    (row,) = rows(env, "episodes")
    assert row["trial_id"].endswith("-e3")


def test_finish_is_no_step(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world("mute", verifiers=[lambda step: 1.0]), tmp_path)
    play(
        env,
        {"action": "knock", "arguments": {"times": 1}},
        {"action": "finish", "arguments": {"answer": {"a": "é"}}},
    )
    env.close()
    (row,) = rows(env, "episodes")
    assert (row["n_steps"], row["return"], row["stop_reason"]) == (1, 1.0, "agent_finished")
    assert json.loads(row["answer"]) == {"a": "é"}
    (reward,) = rows(env, "rewards")
    assert reward["verifier_version"] is None and reward["code_sha256"] is None


def test_values_are_what_the_verifiers_gave(world: Callable[..., Any], tmp_path: Path) -> None:
    env = NormalizeReward(RecordLedger(DiscreteActions(world()), tmp_path))
    play(env, 0, 4, 1)
    env.close()
    assert [row["value"] for row in rows(env.env, "rewards")] == [1.0, 1.0, 1.0]


def test_several_verifiers_give_a_row_each_and_faults_are_no_numbers(tmp_path: Path) -> None:
    class Count(State):
        n: int = 0

    class Counter(App):
        state: Count

        @action
        def add(self) -> str:
            """Count."""
            self.state.n += 1
            if self.state.n == 3:
                raise KeyError("lost")
            return "ok"

    def fails(step: Step) -> float:
        raise LookupError(f"at {step.turn}")

    def pays(step: Step) -> float:
        return 0.5

    world = Environment(name="count", apps={"app": Counter})
    env = RecordLedger(world.gym(verifiers=[pays, fails], on_fault="truncate"), tmp_path)
    play(env, "add", "add", "add")
    env.close()
    told = rows(env, "rewards")
    assert [(row["verifier"], row["value"], row["status"]) for row in told] == [
        ("pays", 0.5, "ok"),
        ("fails", None, "error"),
    ] * 2, "the step at which the App failed earns nothing"
    assert (told[1]["error_type"], told[1]["error_message"]) == ("LookupError", "at 1")
    assert told[1]["error_at"].startswith("test_record_ledger.py:") and told[0]["error_type"] is None
    (row,) = rows(env, "episodes")
    assert (row["status"], row["failure"], row["trainable"], row["drop_reason"]) == (
        "failed",
        "environment",
        False,
        "environment",
    )
    assert (row["return"], row["n_steps"], row["stop_reason"]) == (1.0, 3, "error")
    faults = json.loads(row["faults"])
    assert [(fault["where"], fault["count"]) for fault in faults] == [
        ("verifier fails reward", 1),
        ("verifier fails reward", 1),
        ("app app", 1),
    ]
    env = RecordLedger(world.gym(verifiers=[pays]), tmp_path)
    with pytest.raises(AppFault, match="lost"):
        play(env, "add", "add", "add")
    env.close()
    (row,) = rows(env, "episodes")
    assert (row["failure"], row["n_steps"], row["return"], row["stop_reason"]) == (
        "environment",
        3,
        1.0,
        "error",
    )


def test_scores_are_told_where_they_are_asked_for(world: Callable[..., Any], tmp_path: Path) -> None:
    def half(episode: Any) -> VerifierOutput:
        return VerifierOutput(score=0.5 if episode.stop_reason is not None else 0.25)

    def broken(episode: Any) -> VerifierOutput:
        raise LookupError("no score")

    checks = [DeterministicVerifier(name=one.__name__, check=one, weight=2) for one in (half, broken)]
    for verifiers, score, failure in ((checks[:1], 0.5, "none"), (checks, None, "grader")):
        env = RecordLedger(world(verifiers=verifiers), tmp_path, scores=True)
        play(env, "off", "off", "off", "off", "off")
        env.close()
        (row,) = rows(env, "episodes")
        assert (row["score"], row["failure"]) == (score, failure)
        assert row["scores"][0] == {"verifier": "half", "version": "0.1.0", "score": 0.5, "weight": 2.0}
    assert row["scores"][1]["score"] is None and "no score" in row["faults"]


def test_an_episode_that_is_cut_off_is_scored_as_it_stands(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world(), tmp_path, scores=True)
    play(env, "off", "off")
    env.reset(seed=1)
    env.step("off")
    env.close()
    assert [row["score"] for row in rows(env, "episodes")] == [2.0, 1.0]


def test_parts_appear_while_the_loop_runs(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world(), tmp_path, rows_per_part=10)
    seen = []
    for seed in range(6):
        play(env, *["off"] * 5, seed=seed)
        seen.append(ledger.read(env.ledger_folder, "rewards").num_rows)
    assert seen == sorted(seen) and 0 < seen[2] < 30
    env.flush()
    assert ledger.read(env.ledger_folder, "rewards").num_rows == 30
    manifest = json.loads((env.ledger_folder / "ledger/manifest.json").read_text())
    parts = manifest["tables"]["rewards"]["parts"]
    assert sum(part["rows"] for part in parts) == 30 and len(parts) == len({part["file"] for part in parts})
    env.close()
    assert ledger.read(env.ledger_folder, "episodes").num_rows == 6


def test_memory_holds_one_part(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world(), tmp_path, rows_per_part=100)
    writer = env._record.writer
    most = 0
    for seed in range(100):
        play(env, *["off"] * 5, seed=seed)
        most = max(most, len(writer._rewards) + len(writer._episodes), len(writer._keys))
    assert most <= 101
    env.close()
    assert (len(writer._rewards), len(writer._episodes), len(writer._keys)) == (0, 0, 0)
    assert ledger.read(env.ledger_folder, "rewards").num_rows == 500


def test_old_rows_do_not_wait_for_others(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world(), tmp_path, seconds_per_part=0.0)
    play(env, *["off"] * 5)
    assert ledger.read(env.ledger_folder, "episodes").num_rows == 1
    env.close()


def test_an_empty_ledger_can_be_read(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world(), tmp_path)
    assert not env.ledger_folder.exists(), "nothing is written before the first reset"
    env.reset(seed=0)
    assert rows(env, "rewards") == rows(env, "episodes") == rows(env, "steps") == []
    env.close()


def test_environments_of_one_process_share_a_writer(world: Callable[..., Any], tmp_path: Path) -> None:
    envs = [RecordLedger(world(), tmp_path) for _ in range(3)]
    other = RecordLedger(world(), tmp_path, run="other")
    assert len({env.ledger_folder for env in envs}) == 1 and other.ledger_folder != envs[0].ledger_folder
    for env in envs:
        play(env, "off")
    envs[0].close()
    envs[1].close()
    assert rows(envs[0], "episodes") == [], "others go on"
    envs[2].close()
    assert len({row["trial_id"] for row in rows(envs[0], "episodes")}) == 3
    again = RecordLedger(world(), tmp_path)
    assert again.run_id != envs[0].run_id, "a new run"
    again.close()
    other.close()


def test_a_closed_environment_may_begin_again(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world(), tmp_path)
    play(env, "off")
    env.close()
    env.close()
    first = env.ledger_folder
    play(env, "off", "off")
    env.close()
    assert env.ledger_folder != first and rows(env, "episodes")[0]["n_steps"] == 2


def test_an_environment_that_nobody_holds_tells_its_end(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world(), tmp_path)
    play(env, "off")
    folder = env.ledger_folder
    del env
    gc.collect()
    (row,) = ledger.read(folder, "episodes").to_pylist()
    assert row["stop_reason"] == "truncated_externally"


def test_a_pickled_environment_writes_elsewhere(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(world(), tmp_path, run="same")
    play(env, "off")
    again = pickle.loads(pickle.dumps(env))
    assert again.ledger_folder == env.ledger_folder, "in one process one writer"
    play(again, "off", "off")
    env.close()
    again.close()
    assert [row["n_steps"] for row in rows(env, "episodes")] == [1, 2]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_vectors_in_one_process_record_each_episode_once(
    mode: AutoresetMode, world: Callable[..., Any], tmp_path: Path
) -> None:
    envs = SyncVectorEnv([lambda: RecordLedger(world(), tmp_path)] * 3, autoreset_mode=mode)
    folder = envs.envs[0].ledger_folder  # type: ignore[attr-defined]
    envs.reset(seed=0)
    for _ in range(14):
        *_, terminated, truncated, _ = envs.step(["off"] * 3)
        if mode is AutoresetMode.DISABLED and terminated.any():
            envs.reset(options={"reset_mask": terminated | truncated})
    envs.close()
    told = ledger.read(folder, "episodes").to_pylist()
    steps = sum(row["n_steps"] for row in told)
    assert steps == ledger.read(folder, "rewards").num_rows
    assert steps == (12 if mode is AutoresetMode.NEXT_STEP else 14) * 3
    assert {row["n_steps"] for row in told if row["terminated"]} == {5}


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_processes_of_a_vector_do_not_meet(context: str, desk: Callable[..., Any], tmp_path: Path) -> None:
    def make() -> Any:
        import gymnasium

        from plural_gym.rl.wrappers import RecordLedger

        return RecordLedger(gymnasium.make("plural_gym:plural/SupportDesk-v0"), tmp_path, run="vector")

    envs = AsyncVectorEnv([make] * 2, shared_memory=False, context=context)
    envs.reset(seed=0)
    for _ in range(4):
        envs.step(["read_ticket"] * 2)
    envs.close()
    folders = [folder for folder in tmp_path.iterdir() if (folder / "ledger/rewards").exists()]
    told = [row for folder in folders for row in ledger.read(folder, "rewards").to_pylist()]
    assert len(folders) == 2 and len(told) == 8 == len({row["reward_id"] for row in told})
    assert {row["job_id"] for row in told} == {"vector"}


def test_a_forked_process_writes_elsewhere_from_its_next_reset(
    world: Callable[..., Any], tmp_path: Path
) -> None:
    env = RecordLedger(world(), tmp_path, run="forked")
    play(env, "off")
    parent = env.ledger_folder
    pid = os.fork()
    if pid == 0:  # the child
        status = 1
        try:
            env.step("off")  # of the parent's episode: the parent's to tell
            play(env, "off", "off", "off")
            env.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    env.step("off")
    env.close()
    (child,) = (folder for folder in tmp_path.iterdir() if folder != parent)
    assert [row["n_steps"] for row in ledger.read(child, "episodes").to_pylist()] == [3]
    assert ledger.read(child, "rewards").num_rows == 3
    assert [row["n_steps"] for row in rows(env, "episodes")] == [2]


ENDLESS = """
import sys
from plural_gym import App, Environment, Limits, action
from plural_gym.rl.wrappers import RecordLedger

class Clock(App):
    @action
    def tick(self) -> str:
        "Tick."
        return "tock"

def one(step):
    return 1.0

env = RecordLedger(
    Environment(name="clock", apps={"clock": Clock}, limits=Limits(turns=10)).gym(verifiers=[one]),
    sys.argv[1], rows_per_part=200,
)
env.reset(seed=0)
print(env.ledger_folder, flush=True)
while True:
    if env.step("tick")[3]:
        env.reset()
    if sys.argv[2] == "once":
        break
"""


def endless(tmp_path: Path, how: str) -> subprocess.Popen[str]:
    script = tmp_path / "endless.py"
    script.write_text(textwrap.dedent(ENDLESS))
    return subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "runs"), how], stdout=subprocess.PIPE, text=True
    )


def test_a_kill_loses_what_is_in_no_part_and_nothing_else(tmp_path: Path) -> None:
    process = endless(tmp_path, "always")
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    deadline = time.monotonic() + 60
    while len(list((folder / "ledger/rewards").glob("*.parquet"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    told = ledger.read(folder, "rewards").to_pylist()
    assert len(told) >= 600 and {row["value"] for row in told} == {1.0}
    ids = [row["event_id"].rpartition("-e")[2].partition("-s") for row in told]
    numbers = [(int(episode) - 1) * 10 + int(step) for episode, _, step in ids]
    assert numbers == list(range(1, len(told) + 1)), "no row is missing before the last, none stands twice"
    for table in ("rewards", "episodes"):
        for part in (folder / "ledger" / table).glob("*.parquet"):
            assert pq.read_table(part).num_rows > 0, "parts are whole"


def test_the_end_of_the_process_writes_what_is_left(tmp_path: Path) -> None:
    process = endless(tmp_path, "once")
    assert process.stdout is not None
    folder = Path(process.stdout.read().strip())
    process.stdout.close()
    assert process.wait() == 0
    (row,) = ledger.read(folder, "episodes").to_pylist()
    assert (row["n_steps"], row["stop_reason"]) == (1, "truncated_externally")
    assert ledger.read(folder, "rewards").num_rows == 1


def test_data_frames_read_it(world: Callable[..., Any], needs: Callable[..., None], tmp_path: Path) -> None:
    needs("duckdb", "polars", "pandas")
    import duckdb
    import pandas
    import polars

    for run in ("a", "b"):
        env = RecordLedger(world(), tmp_path, run=run, rows_per_part=4)
        play(env, *["off"] * 5)
        env.close()
    pattern = str(tmp_path / "*/ledger/rewards/*.parquet")
    found = duckdb.sql(
        f"select job_id, count(*), sum(value) from read_parquet('{pattern}') group by 1 order by 1"
    ).fetchall()
    assert found == [("a", 5, 5.0), ("b", 5, 5.0)]
    frame = (
        polars.scan_parquet(pattern)
        .group_by("job_id")
        .agg(polars.col("value").sum())
        .sort("job_id")
        .collect()
    )
    assert frame["value"].to_list() == [5.0, 5.0]
    episodes = pandas.read_parquet(env.ledger_folder / "ledger/episodes")
    assert episodes["return"].tolist() == [5.0] and episodes["stop_reason"].tolist() == [
        "environment_terminated"
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"run": ""}, "run is an id that can name a folder, got ''"),
        ({"run": "a/b"}, "run is an id"),
        ({"run": ".."}, "run is an id"),
        ({"rows_per_part": 0}, "rows_per_part is a whole number from 1, got 0"),
        ({"rows_per_part": 1.5}, "rows_per_part is a whole number"),
    ],
)
def test_options_out_of_range_are_refused(
    world: Callable[..., Any], tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        RecordLedger(world(), tmp_path, **options)


def test_a_directory_that_cannot_be_made_is_told_at_reset(world: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    env = RecordLedger(world(), tmp_path / "file/below")
    with pytest.raises(MachineError, match="file/below"):
        env.reset(seed=0)
    env.close()


def test_wrong_use_leaves_the_episode_open(world: Callable[..., Any], tmp_path: Path) -> None:
    env = RecordLedger(DiscreteActions(world()), tmp_path)
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(UsageError, match="the catalogue has calls"):
        env.step(99)
    env.step(4)
    env.close()
    (row,) = rows(env, "episodes")
    assert row["n_steps"] == 2
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)


def test_an_autoreset_inside_loses_no_episode(tmp_path: Path) -> None:
    inner = gym.wrappers.Autoreset(gym.make("plural_gym:plural/Wordle-v0", task="crane"))
    env = RecordLedger(inner, tmp_path)
    env.reset(seed=0)
    guess = {"action": "guess", "arguments": {"word": "crane"}}
    ends = sum(env.step(guess)[2] for _ in range(20))
    folder = env.ledger_folder
    env.close()
    assert (ends, ledger.read(folder, "episodes").num_rows) == (10, 10)
