"""The support desk: the world, its Verifier, the tickets, and the Agent that goes by keywords."""

from collections import Counter
from typing import Any

import pytest
from gymnasium.utils.env_checker import check_env

from plural_gym import DeterministicVerifier, Environment, Limits
from plural_gym.episode import Episode, recorded_apps
from plural_gym.state import freeze_value
from plural_gym.step import TaskView

ROWS = "envs/support-desk/tasks/support-desk/tickets.jsonl"


@pytest.fixture
def desk(table: Any) -> Any:
    return lambda setup=None: table("app.py:Desk", "envs/support-desk", setup or {}, 10)


def handle(seat: Any, category: str) -> None:
    seat.act("categorize", category=category)
    seat.act("draft_reply", text="We refunded the second charge.")
    seat.act("send_reply")
    seat.act("resolve")


def test_a_ticket_goes_from_open_to_resolved(desk: Any) -> None:
    seat = desk()
    statuses = [seat.state["status"]]
    for name, arguments in [
        ("categorize", {"category": "billing"}),
        ("draft_reply", {"text": "We refunded the second charge."}),
        ("send_reply", {}),
        ("resolve", {}),
    ]:
        assert not seat.finished
        seat.act(name, **arguments)
        statuses.append(seat.state["status"])
    assert statuses == ["open", "triaged", "drafted", "drafted", "resolved"]
    assert seat.finished


def test_reading_shows_the_ticket_and_never_the_right_category(desk: Any) -> None:
    seat = desk({"customer": "Grace", "issue": "Please delete it.", "expected": "account"})
    assert seat.act("read_ticket") == {
        "customer": "Grace",
        "issue": "Please delete it.",
        "status": "open",
        "category": None,
        "draft_reply": "",
        "sent": False,
    }


@pytest.mark.parametrize(
    ("before", "name", "arguments", "message"),
    [
        ([], "draft_reply", {"text": "Hello."}, "file the ticket under a category before you draft a reply"),
        ([], "send_reply", {}, "there is no draft to send; write one with draft_reply"),
        ([], "resolve", {}, "send a reply before you resolve the ticket"),
        (["categorize"], "categorize", {"category": "bug"}, "the ticket is filed under billing already"),
        (["categorize"], "send_reply", {}, "there is no draft to send; write one with draft_reply"),
        (["categorize"], "draft_reply", {"text": " \n"}, "the reply is empty"),
        (["categorize", "draft_reply"], "resolve", {}, "send a reply before you resolve the ticket"),
        (["categorize", "draft_reply", "send_reply"], "send_reply", {}, "the reply was sent already"),
        (
            ["categorize", "draft_reply", "send_reply"],
            "draft_reply",
            {"text": "Once more."},
            "the reply was sent and cannot be changed",
        ),
    ],
)
def test_an_action_out_of_order_is_rejected_and_changes_nothing(
    desk: Any, before: list[str], name: str, arguments: dict[str, Any], message: str
) -> None:
    given = {"categorize": {"category": "billing"}, "draft_reply": {"text": "We refunded it."}}
    seat = desk()
    for earlier in before:
        seat.act(earlier, **given.get(earlier, {}))
    state = seat.state
    assert seat.try_act(name, **arguments) == message
    assert seat.state == state


def test_the_board_is_the_ticket_and_never_the_right_category(desk: Any) -> None:
    def told(seat: Any) -> tuple[str, list[str]]:
        board = seat.host.boards()["app"]
        return str(board), [cell.background for cell in board.rows[0]]

    seats = [desk({"expected": category}) for category in ("billing", "shipping")]
    for seat in seats:
        handle(seat, "billing")
    assert told(seats[0]) == told(seats[1])
    text, stages = told(seats[0])
    assert "We refunded the second charge." in text and "Ada Park" in text and "billing" in text
    assert len(set(stages[:3])) == 1 and stages[3] != stages[2], "resolved stands out"
    assert len(set(told(desk())[1][1:])) == 1, "only the first stage is reached"


def test_a_category_that_does_not_exist_is_rejected(desk: Any) -> None:
    message = desk().try_act("categorize", category="refunds")
    assert "'billing', 'bug', 'account' or 'shipping'" in message
    assert "'refunds'" in message


def test_a_draft_may_be_replaced_until_it_is_sent(desk: Any) -> None:
    seat = desk()
    seat.act("categorize", category="billing")
    seat.act("draft_reply", text="One.")
    seat.act("draft_reply", text="Two.")
    seat.act("send_reply")
    assert (seat.state["draft_reply"], seat.state["sent"]) == ("Two.", True)


def check(load: Any, state: dict[str, Any]) -> float:
    frozen = freeze_value(state)
    episode = Episode(TaskView("", ""), recorded_apps({"desk": ("full", frozen, frozen)}), ())
    return load("verifiers/correct-resolution/verify.py:resolved_correctly")(episode).score


def test_the_score_is_the_right_category_whatever_was_said(load: Any, desk: Any) -> None:
    seat = desk()
    assert check(load, seat.state) == 0.0
    handle(seat, "billing")
    assert check(load, seat.state) == 1.0
    wrong = desk()
    handle(wrong, "bug")
    assert check(load, wrong.state) == 0.0
    assert check(load, {}) == 0.0


def test_each_stage_is_rewarded_and_rejections_cost(load: Any, desk: Any) -> None:
    seat = desk()
    seat.try_act("resolve")
    seat.act("read_ticket")
    handle(seat, "bug")
    reward = load("verifiers/correct-resolution/verify.py:progress")
    assert [reward(step) for step in seat.steps] == [-0.1, 0.0, 0.25, 0.25, 0.0, 0.25]


def test_every_ticket_is_a_case_of_its_own(rows: Any) -> None:
    tickets = rows(ROWS)
    assert [row["name"] for row in tickets] == [f"ticket-{n}" for n in range(1, 25)]
    assert len({row["setup"]["desk"]["issue"] for row in tickets}) == 24
    for row in tickets:
        assert row["info"] == {"ticket_id": row["name"]}


def test_tickets_whose_replies_are_reviewed_are_one_of_each_category(load: Any, desk: Any, rows: Any) -> None:
    tickets = rows("envs/support-desk/tasks/support-desk-reviewed/tickets.jsonl")
    assert Counter(row["setup"]["desk"]["expected"] for row in tickets) == dict.fromkeys(
        ("billing", "bug", "account", "shipping"), 1
    )
    others = {row["setup"]["desk"]["issue"] for row in rows(ROWS)}
    for row in tickets:
        assert row["setup"]["desk"]["issue"] not in others and row["split"] == "test"
        seat = desk(row["setup"]["desk"])
        assert (
            load("harnesses/keyword/play.py:play")(TaskView("", ""), seat) == row["setup"]["desk"]["expected"]
        )
        assert check(load, seat.state) == 1.0


def test_both_splits_hold_every_category_alike(rows: Any) -> None:
    sizes = Counter((row["split"], row["setup"]["desk"]["expected"]) for row in rows(ROWS))
    categories = ("billing", "bug", "account", "shipping")
    assert sizes == {("train", each): 4 for each in categories} | {("test", each): 2 for each in categories}


def test_the_keyword_agent_handles_every_ticket(load: Any, desk: Any, rows: Any) -> None:
    play = load("harnesses/keyword/play.py:play")
    for row in rows(ROWS):
        seat = desk(row["setup"]["desk"])
        assert play(TaskView("", ""), seat) == row["setup"]["desk"]["expected"]
        assert seat.state["status"] == "resolved"
        assert check(load, seat.state) == 1.0
        assert seat.state["draft_reply"].startswith(f"Dear {row['setup']['desk']['customer']}, ")


def test_the_keyword_agent_files_what_it_has_no_word_for(load: Any) -> None:
    categorise = load("harnesses/keyword/play.py:categorise")
    assert categorise("Good morning.") == "billing"
    assert categorise("The APP crashes!") == "bug"


def test_a_ticket_through_the_environment(load: Any) -> None:
    desk = load("envs/support-desk/app.py:Desk")
    environment = Environment(name="support-desk", apps={"desk": desk}, limits=Limits(turns=10))
    verifier = DeterministicVerifier(
        name="correct-resolution",
        check=load("verifiers/correct-resolution/verify.py:resolved_correctly"),
        reward=load("verifiers/correct-resolution/verify.py:progress"),
    )
    environment.reset(verifiers=[verifier], seed=0)
    _, reward, terminated, truncated, info = environment.step("categorize", category="billing")
    assert (reward, terminated, truncated) == (0.25, False, False)
    assert info["rewards"] == {"correct-resolution": 0.25}
    environment.step("draft_reply", text="We refunded the second charge.")
    environment.step("send_reply")
    _, reward, terminated, _, _ = environment.step("resolve")
    assert (reward, terminated) == (0.25, True)
    environment.close()
    check_env(environment.gym(), skip_render_check=True)
