"""Model replies for plans that tests describe in their stored form."""

from shared.answering.plan_reply import TYPES, PlanDetails, PlanReply
from shared.runs.plan import QuestionPlan

KINDS = {types: kind for kind, types in TYPES.items()}


def plan_reply(plan: QuestionPlan) -> PlanReply:
    """Return the model's reply that the app converts to this plan.

    Raises:
        KeyError: No reply of a model has this combination of type and intent.
    """
    details = PlanDetails.model_validate(plan.model_dump(include=set(PlanDetails.model_fields)))
    return PlanReply(
        kind=KINDS[plan.query_type, plan.intent],
        language=plan.language,
        question=plan.standalone_question or None,
        searches=plan.search_queries,
        documents=plan.document_references,
        more=details if any(dict(details).values()) else None,
    )
