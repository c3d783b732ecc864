"""Settings of chat channels: what would let strangers in is named when the app starts."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.fakes.services import fake_settings

ID = "72f988bf-86f1-41af-91ab-2d7cd011db47"
BOT = {"bot_app_id": ID, "bot_tenant_id": ID}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"bot_app_id": ID}, "BOT_TENANT_ID"),
        ({"bot_app_id": "groundwork", "bot_tenant_id": ID}, "BOT_APP_ID"),
        ({"bot_app_id": ID, "bot_tenant_id": "contoso.com"}, "BOT_TENANT_ID"),
        ({**BOT, "bot_local_anonymous": True}, "BOT_LOCAL_ANONYMOUS"),
        ({"bot_local_anonymous": True, "website_site_name": "app"}, "BOT_LOCAL_ANONYMOUS"),
        ({"bot_attachment_hosts": "https://contoso.sharepoint.com"}, "BOT_ATTACHMENT_HOSTS"),
        ({"bot_attachment_hosts": "*"}, "BOT_ATTACHMENT_HOSTS"),
        ({"bot_attachment_hosts": "*.sharepoint.com"}, "BOT_ATTACHMENT_HOSTS"),
        ({"bot_attachment_hosts": "."}, "BOT_ATTACHMENT_HOSTS"),
        ({"public_url": "http://groundwork.contoso.com"}, "PUBLIC_URL"),
        ({"public_url": "https://groundwork.contoso.com/app"}, "PUBLIC_URL"),
        ({"public_url": "https://me@groundwork.contoso.com"}, "PUBLIC_URL"),
        ({"public_url": "groundwork.contoso.com"}, "PUBLIC_URL"),
        ({"bot_stream_seconds": 120}, "BOT_STREAM_SECONDS"),
    ],
)
def test_what_is_wrong_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        fake_settings(**wrong)


def test_a_bot_in_azure_and_a_playground_elsewhere_are_fine() -> None:
    assert fake_settings(**BOT, website_site_name="app").bot.app_id == ID
    assert fake_settings(bot_local_anonymous=True).bot.local_anonymous
    assert fake_settings().bot.app_id is None


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ({}, None),
        ({"website_hostname": "app.azurewebsites.net"}, "https://app.azurewebsites.net"),
        ({"public_url": "https://gw.contoso.com/", "website_hostname": "x"}, "https://gw.contoso.com"),
        ({"public_url": "http://127.0.0.1:7071"}, "http://127.0.0.1:7071"),
    ],
)
def test_links_lead_to_where_people_reach_the_app(given: dict[str, Any], address: str | None) -> None:
    assert fake_settings(**given).host.public_address == address


def test_hosts_of_files_are_compared_in_small_letters() -> None:
    listed = " .SharePoint.com,, files.contoso.com:8443 "
    assert fake_settings(bot_attachment_hosts=listed).bot.attachment_hosts == (
        ".sharepoint.com",
        "files.contoso.com:8443",
    )
