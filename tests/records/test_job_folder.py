import os
import threading
from pathlib import Path

import pytest

from plural_gym.errors import MachineError, RecordError, UnknownName
from plural_gym.records.job_folder import JobFolder, JobStore


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    made = JobStore(tmp_path / ".plural" / "jobs")
    for age, (job_id, trials) in enumerate(
        {"quiet-fox": ["t-aa1", "t-ab2"], "quick-hen": ["t-aa1", "u-9"]}.items()
    ):
        job = made.job(job_id)
        job.create({"name": job_id})
        os.utime(job.pins_path, (1000 + age, 1000 + age))
        for trial in trials:
            job.trial(trial).create()
    return made


def test_a_job_is_pinned_once(store: JobStore) -> None:
    job = store.job("new")
    job.create({"tasks": ["crane"]})
    assert job.pins() == {"tasks": ["crane"]}
    with pytest.raises(RecordError, match="the Job exists already"):
        job.create({})
    with pytest.raises(RecordError, match="there is no such record"):
        job.result()
    job.write_result({"score": 0.5})
    job.write_result({"score": 0.6})
    assert job.result() == {"score": 0.6}
    assert job.inputs_path.is_dir() and job.ledger_path.parent == job.path
    assert "new" in repr(job)


def test_notes_of_late_changes_stand_until_they_are_settled(store: JobStore) -> None:
    job = store.find("quiet-fox")
    assert job.unsettled() == store.job("none").unsettled() == {}
    for trial in ("t-aa1", "t-aa1", "t.b-2"):
        job.note_unsettled(trial)
    notes = job.unsettled()
    assert sorted(notes.values()) == ["t-aa1", "t-aa1", "t.b-2"]
    first, *others = notes
    job.settle_notes([first, first])
    assert list(job.unsettled()) == others
    assert [one.id for one in store.jobs()] == ["quick-hen", "quiet-fox"]
    with pytest.raises(UnknownName, match="is no Trial id"):
        job.note_unsettled("../x")
    with pytest.raises(MachineError, match="cannot write"):
        store.job("none").note_unsettled("t-aa1")


def test_of_two_that_summarise_at_once_the_second_sees_what_the_first_saw(store: JobStore) -> None:
    job, seen = store.find("quiet-fox"), []
    inside, go = threading.Event(), threading.Event()
    (job.path / ".result.json.1-2.tmp").touch()

    def slow() -> dict[str, int]:
        inside.set()
        go.wait(10)
        seen.append("slow")
        return {"by": 1}

    def quick() -> dict[str, int]:
        seen.append("quick")
        return {"by": 2}

    writers = [threading.Thread(target=job.summarise, args=(make,)) for make in (slow, quick)]
    writers[0].start()
    inside.wait(10)
    writers[1].start()
    writers[1].join(0.1)
    assert seen == [] and writers[1].is_alive()
    go.set()
    for writer in writers:
        writer.join()
    assert (seen, job.result()) == (["slow", "quick"], {"by": 2})
    assert not list(job.path.glob("*.tmp")), "what a killed writer left is gone"


def test_a_job_is_run_by_one_process(store: JobStore) -> None:
    job = store.find("quick-hen")
    with job.lock():
        assert job.running()
        with pytest.raises(MachineError, match="another process"), job.lock():
            pass
    assert not job.running()


def test_trials_are_listed_by_id(store: JobStore) -> None:
    job = store.find("quiet-fox")
    (job.trials_path / "stray.txt").write_text("")
    assert [trial.id for trial in job.trials()] == job.trial_ids() == ["t-aa1", "t-ab2"]
    assert list(JobFolder(store.root / "none").trials()) == []


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "../x", "nul\0"])
def test_ids_never_lead_out_of_the_folder(store: JobStore, bad: str) -> None:
    with pytest.raises(UnknownName, match="is no Trial id"):
        store.find("quick-hen").trial(bad)
    with pytest.raises(UnknownName, match="is no Job id"):
        store.job(bad)


def test_jobs_are_listed_newest_first(store: JobStore) -> None:
    (store.root / "half-made").mkdir()
    assert [job.id for job in store.jobs()] == ["quick-hen", "quiet-fox"]
    assert JobStore(store.root / "none").jobs() == []


def test_a_job_is_found_by_id_or_by_a_start_that_only_it_has(store: JobStore) -> None:
    assert store.find("quick-hen").id == store.find("quic").id == "quick-hen"
    with pytest.raises(UnknownName, match=r"'qui' could be 2 Jobs .*quick-hen, quiet-fox\. Write more of it"):
        store.find("qui")
    with pytest.raises(UnknownName, match=r"no Job 'quick-hem' .*did you mean 'quick-hen'\?"):
        store.find("quick-hem")
    with pytest.raises(UnknownName, match=r"it has: quick-hen, quiet-fox"):
        store.find("")
    with pytest.raises(UnknownName, match="there are none"):
        JobStore(store.root / "none").find("x")


def test_a_whole_id_wins_over_the_start_of_another(store: JobStore) -> None:
    store.job("quick").create({})
    assert store.find("quick").id == "quick"


def test_a_trial_is_found_across_jobs(store: JobStore) -> None:
    assert store.find_trial("u-").path.parent.parent.name == "quick-hen"
    assert store.find_trial("t-ab").id == "t-ab2"
    assert store.find_trial("quiet/t-aa1").path == store.root / "quiet-fox" / "trials" / "t-aa1"
    with pytest.raises(UnknownName, match=r"could be 2 Trials .*quick-hen/t-aa1, quiet-fox/t-aa1"):
        store.find_trial("t-aa1")
    with pytest.raises(UnknownName, match=r"no Trial 't-ac2' .*did you mean 't-ab2'\?"):
        store.find_trial("t-ac2")
