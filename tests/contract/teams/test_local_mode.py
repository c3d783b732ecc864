"""Activities without a token are accepted only on a developer's machine, from this machine."""

from typing import Any

import pytest

from tests.contract.teams.bot_fixture import local_app
from tests.contract.teams.signing import (
    SERVICE,
    Messages,
    bot_services,
    bot_settings,
    messages,
    teams_message,
)

__all__ = ["local_app"]

pytestmark = [pytest.mark.contract, pytest.mark.attack("identity")]

LOCAL = teams_message(
    serviceUrl="http://localhost:56150/_connector",
    channelData={"tenant": {"id": "00000000-0000-0000-0000-0000000000001"}},
    **{
        "from": {
            "id": "user-id-0",
            "name": "Alex Wilber",
            "aadObjectId": "00000000-0000-0000-0000-0000000000020",
        }
    },
)


async def test_on_a_developers_machine_the_playground_is_believed(local_app: Messages) -> None:
    assert (await local_app.post(LOCAL)).status_code == 202
    (message,) = local_app.handled
    assert message.kind == "message"
    assert message.sender.object_id == "00000000-0000-0000-0000-0000000000020"


@pytest.mark.parametrize(
    "post_arguments",
    [
        {"peer": "192.168.1.5"},
        {"peer": "::ffff:10.0.0.1"},
        {"host": "192.168.1.2"},
        {"host": "localhost.evil.example"},
        {"headers": {"X-Forwarded-For": "1.2.3.4"}},
        {"headers": {"Forwarded": "for=1.2.3.4"}},
    ],
    ids=str,
)
async def test_nobody_else_is_believed_there(local_app: Messages, post_arguments: dict[str, Any]) -> None:
    assert (await local_app.post(LOCAL, **post_arguments)).status_code == 401
    assert local_app.has_changed_nothing()


@pytest.mark.parametrize(
    ("tenant_fields", "status"),
    [
        ({"channelData": {}}, 202),
        ({"conversation": {"id": "a", "conversationType": "personal"}}, 202),
        ({"channelData": {"tenant": {"id": "99999999-86f1-41af-91ab-2d7cd011db47"}}}, 403),
        ({"channelData": {}, "conversation": {"id": "a"}}, 403),
    ],
)
async def test_there_a_tenant_may_be_told_in_one_place_and_must_be_ours(
    monkeypatch: pytest.MonkeyPatch, tenant_fields: dict[str, Any], status: int
) -> None:
    settings = bot_settings(bot_app_id=None, bot_local_anonymous=True)
    app = messages(monkeypatch, bot_services(None, settings))
    answered = await app.post(teams_message(serviceUrl="http://localhost:1/", **tenant_fields))
    assert answered.status_code == status


@pytest.mark.parametrize("service", [SERVICE, "http://192.168.1.5/", "http://localhost.evil.example/"])
async def test_answers_of_a_developers_machine_stay_there(local_app: Messages, service: str) -> None:
    assert (await local_app.post(teams_message(serviceUrl=service))).status_code == 401
    assert local_app.has_changed_nothing()


async def test_without_the_setting_nobody_is_believed_there(monkeypatch: pytest.MonkeyPatch) -> None:
    app = messages(monkeypatch, bot_services(None, bot_settings(bot_app_id=None, bot_tenant_id=None)))
    assert (await app.post(LOCAL)).status_code == 401
    assert app.has_changed_nothing()


async def test_a_web_page_of_another_site_is_refused(local_app: Messages) -> None:
    assert (await local_app.post(LOCAL, headers={"Origin": "http://evil.example"})).status_code == 403
    assert local_app.has_changed_nothing()


async def test_a_web_page_that_posts_as_a_form_would_is_refused(local_app: Messages) -> None:
    assert (await local_app.post(LOCAL, headers={"Content-Type": "text/plain"})).status_code == 400
    assert local_app.has_changed_nothing()


@pytest.mark.parametrize("name", ["*", "conversation:1", "channel:a:b", "a b", "x" * 129, "org:1"])
async def test_an_id_that_is_a_principal_of_another_kind_is_nobodys(local_app: Messages, name: str) -> None:
    await local_app.post({**LOCAL, "from": {"id": "u", "aadObjectId": name}})
    (message,) = local_app.handled
    assert message.kind == "message"
    assert message.sender.object_id is None
