from plural import Step

ORDER = ("open", "triaged", "drafted", "resolved")


def progress(step: Step) -> float | None:
    if step.error:
        return -0.1
    before = ORDER.index(step.previous_state["status"])
    after = ORDER.index(step.current_state["status"])
    return 0.25 * max(after - before, 0)
