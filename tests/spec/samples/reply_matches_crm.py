from plural import Step


def reply_matches_crm(step: Step) -> float | None:
    if step.action != "send_reply":
        return None
    customer = step.apps["crm"].query("get_customer", id=step.task.info["customer_id"])
    return 1.0 if customer["name"] in step.arguments["text"] else 0.0
