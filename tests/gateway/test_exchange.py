"""A Trial's exchanges.jsonl: made with the first call, whole lines, closed once."""

import threading
from pathlib import Path

from plural_gym.gateway.exchange import Exchange, ExchangeLog
from plural_gym.records import journal


def exchange(number: int) -> Exchange:
    return Exchange(f"exg_{number}", 0.0, "judge", "v", None, "openai.chat", "own", "http://h/v1", "m")


def test_a_trial_without_calls_has_no_such_file(tmp_path: Path) -> None:
    log = ExchangeLog(tmp_path / "exchanges.jsonl")
    log.close()
    log.close()
    assert not list(tmp_path.iterdir())


def test_every_call_is_a_line_whoever_writes_it(tmp_path: Path) -> None:
    log = ExchangeLog(tmp_path / "exchanges.jsonl")
    threads = [threading.Thread(target=log.append, args=(exchange(number),)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = list(journal.read(tmp_path / "exchanges.jsonl"))
    assert sorted(line["exchange_id"] for line in found) == sorted(f"exg_{number}" for number in range(40))
    assert found[0]["purpose"] == "judge" and found[0]["cost_usd"] is None
    log.close()


def test_what_ends_after_the_trial_is_let_go(tmp_path: Path) -> None:
    log = ExchangeLog(tmp_path / "exchanges.jsonl")
    log.append(exchange(1))
    log.close()
    log.append(exchange(2))
    assert [line["exchange_id"] for line in journal.read(tmp_path / "exchanges.jsonl")] == ["exg_1"]
