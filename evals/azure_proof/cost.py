"""Estimates what a run of the kit cost, from metered usage and list prices. The actual bill is available a
day later.
"""

from datetime import UTC, datetime

from evals.azure_proof.evidence import Evidence, Outcome
from evals.azure_proof.target import World

# List prices in docs/cost-and-size.md, in US dollars per million tokens. Contracts may differ.
CHAT_READ, CHAT_WRITE, EMBEDDING = 0.75, 4.50, 0.13
# Input share of the tokens of a question: 6,100 read, 1,200 written.
READ_SHARE = 0.84
SEARCH_UNIT_HOUR = 75 / 730
PAGES_THOUSAND = 0.691
SAMPLE_PAGES = 33
# Price of a busy instance in US dollars per GB and second.
GB_SECOND = 0.000026
INSTANCE_GB = 2


def estimate(world: World, evidence: Evidence) -> Outcome:
    """Return the estimated cost, from the usage that the app metered and the running time of the kit."""
    hours = (datetime.now(UTC) - evidence.begun_at).total_seconds() / 3600
    with world.client() as client:
        used = {one["resource"]: one["used"] for one in client.call("GET", "/api/me").get("today", [])}
    tokens = float(used.get("chat_tokens") or used.get("tokens") or 0)
    models = tokens * (READ_SHARE * CHAT_READ + (1 - READ_SHARE) * CHAT_WRITE) / 1e6
    documents = SAMPLE_PAGES * PAGES_THOUSAND / 1000
    search = max(hours, 1) * SEARCH_UNIT_HOUR
    # This is an upper limit: it assumes two groups of instances that are always busy.
    instances = hours * 3600 * 2 * INSTANCE_GB * GB_SECOND
    command = world.target.bill_command()
    bill = (f"The bill, from tomorrow on: {command}",) if command else ("Nothing is billed on this machine.",)
    return Outcome(
        figures={
            **{f"metered today: {name}": round(value) for name, value in used.items()},
            "hours since the kit began": round(hours, 2),
            "chat model, US dollars": round(models, 4),
            "reading the samples, US dollars": round(documents, 4),
            "search service, US dollars": round(search, 2),
            "instances at most, US dollars": round(instances, 2),
            "together, US dollars": round(models + documents + search + instances, 2),
        },
        notes=("Estimated with the list prices of docs/cost-and-size.md.", *bill),
    )
