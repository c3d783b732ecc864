"""Whatever stands in an activity: it is understood or refused, and never breaks the reading."""

import json
import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.platform.errors import CallerError
from shared.teams.activities import read_activity
from shared.teams.inbox import as_activity
from shared.teams.models import BotActivity
from shared.teams.tokens import CLOUDS, address_parts, is_service
from tests.contract.teams.signing import teams_message

GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# How long it takes to invent JSON says nothing of our code, and much of what else the machine does.
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
TYPES = ("message", "invoke", "conversationUpdate", "typing", "event")

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
nested = st.sampled_from(
    ["from", "recipient", "conversation", "channelData", "value", "entities", "attachments", "membersAdded"]
)


def understood(activity: Any) -> BotActivity | None:
    body = json.dumps(activity).encode()
    try:
        return as_activity(read_activity(body), body, is_local=False)
    except CallerError:
        return None


@patient
@given(
    st.sampled_from(TYPES),
    st.dictionaries(st.sampled_from([*teams_message(), "value", "replyToId", "membersAdded"]), anything),
)
def test_any_values_of_any_fields(kind: str, changes: dict[str, Any]) -> None:
    made = understood({**teams_message(type=kind), **changes})
    if made is not None and made.kind != "ignored":
        object_id = made.sender.object_id
        assert object_id is None or GUID.fullmatch(object_id)
        assert made.conversation.conversation_id.isprintable()


@patient
@given(nested, st.text(max_size=12), anything)
def test_any_value_within_a_field(field: str, name: str, value: Any) -> None:
    inner = teams_message().get(field)
    changed = {**inner, name: value} if isinstance(inner, dict) else [{name: value, "type": "mention"}]
    understood(teams_message(**{field: changed}))


@patient
@given(anything)
def test_any_document(activity: Any) -> None:
    understood(activity)


@patient
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=80))
def test_any_address_is_read_or_refused_and_none_by_chance_is_the_services(text: str) -> None:
    for address in (text, f"https://{text}", f"https://{text}.botframework.com/", f"https://{text}@x.y/"):
        parts = address_parts(address)
        if parts is not None and is_service(parts, CLOUDS["public"].hosts):
            assert (parts.hostname or "").endswith(
                (".botframework.com", "smba.trafficmanager.net", ".microsoft.com")
            )
            assert parts.username is None
