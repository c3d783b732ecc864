"""What the fresh process does: decides on questions of every kind, and prints its times as JSON.

Its text is run by `python -c`: a benchmark imports nothing of the app but its models.
"""

# Settings that need no server: nothing is connected to.
POLICY_SETTINGS = {
    "AZURE_SEARCH_ENDPOINT": "http://127.0.0.1:9",
    "DocumentsStorage": "UseDevelopmentStorage=true",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "CHAT_MODEL": "unused",
    "EMBEDDING_MODEL": "unused",
    "EMBEDDING_DIMENSIONS": "384",
}

POLICY = """
import collections, datetime, json, sys, time
from shared.subagents.control import ControlView
from shared.subagents.policy import decide, decision_event
from shared.subagents.policy_input import DelegationRequest, describe
from shared.subagents.policy_models import RuntimeBudget, SubagentFacts
from shared.access.models import UserContext
from shared.runs.plan import PlannedTodo, QuestionPlan
from shared.runs.models import RunRequest
from shared.retrieval.models import Hit
from shared.runs.evidence import Evidence, StoredPlan
from shared.platform.settings import load_settings

TYPES = {
    "fact_lookup": "CONTENT_SEARCH", "doc_summary": "DOCUMENT_SUMMARY", "compare_docs": "COMPARISON",
    "evidence_trace": "CONTENT_SEARCH", "exploratory": "LISTING", "procedural": "CONTENT_SEARCH",
}
FACTS = SubagentFacts(
    installed_profiles=("doc_reader", "comparator", "evidence_builder", "web_verifier"),
    healthy_tools=("retrieve_documents", "query_metadata", "web_search"),
    targets_readable=True,
    web_allowed=True,
)


def delegation_request(intent, number):
    best = (number % 11) / 10
    hits = tuple(
        Hit(block_id=f"b{rank}", doc_id=f"d{rank % 3}", filename="f.pdf", content="word " * 200,
            score=best * (1 - rank * (number % 5) / 100))
        for rank in range(10)
    )
    plan = QuestionPlan(
        query_type=TYPES[intent], intent=intent, standalone_question="At what pressure does the pump run?",
        language="en", reply="", search_queries=("pump pressure",), filters=(), document_references=(),
        todo=(PlannedTodo(description="Known", acceptance_criteria="Cited", dependencies=()),),
    )
    request = RunRequest(
        run_id="run", thread_id="thread", user=UserContext(user_id="anna"), question="At what pressure?",
        created_at=datetime.datetime.now(datetime.UTC),
    )
    tokens = 20_000 if number % 2 else 0
    return DelegationRequest(request, StoredPlan(plan=plan), Evidence(hits=hits), document_tokens=tokens)


def spread(seconds):
    ordered = sorted(second * 1000 for second in seconds)
    return {"p50": ordered[len(ordered) // 2], "p99": ordered[len(ordered) * 99 // 100], "max": ordered[-1]}


count = int(sys.argv[1])
delegation_requests = [delegation_request(intent, number) for intent in TYPES for number in range(20)]
settings = load_settings()
deciding, whole, decisions = [], [], collections.Counter()
for number in range(count):
    asked = delegation_requests[number % len(delegation_requests)]
    began = time.perf_counter()
    budget = RuntimeBudget(
        max_total_latency_ms=60_000, remaining_latency_ms=15_000 + number % 45_000,
        max_total_tokens=120_000, remaining_tokens=100_000,
    )
    waiting = 30 if number % 13 == 0 else 0
    control = ControlView(circuit_closed=True, active=0, waiting=waiting, free=20)
    policy_input = describe(asked, settings, budget, control)
    began_deciding = time.perf_counter()
    decided = decide(policy_input, FACTS, settings)
    deciding.append(time.perf_counter() - began_deciding)
    decision_event("run", decided, settings).model_dump(mode="json")
    whole.append(time.perf_counter() - began)
    decisions[decided.decision] += 1
assert min(decisions[name] for name in ("delegate", "no_delegate", "defer")) > 0, decisions
print(json.dumps({
    "count": count, "decisions": decisions, "first": spread(whole[:1]), "decide": spread(deciding[1:]),
    "all": spread(whole[1:]),
}))
"""
