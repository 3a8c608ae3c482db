from plural import HumanVerifier, RubricCriterion

human_review = HumanVerifier(
    name="customer-review",
    instructions="Read the ticket, policy, draft reply, and action history before scoring.",
    criteria=[
        RubricCriterion(
            name="helpfulness",
            description=(
                "0: incorrect, unsafe, or unhelpful. "
                "1: useful but needs an important correction. "
                "2: accurate, actionable, and ready for the customer."
            ),
            min_score=0,
            max_score=2,
        ),
    ],
)
