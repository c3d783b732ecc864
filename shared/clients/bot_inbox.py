"""`BotInbox`: whose activity it is, before what it says. Stores nothing.

The order is: the token, then the shape, then whether the two tell of the same address, then the tenant.
Without a token an activity counts on a developer's machine alone (BOT_LOCAL_ANONYMOUS).
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from shared.clients.bot_clouds import CLOUDS
from shared.clients.bot_hosts import address_parts, is_loopback, is_service, origin
from shared.clients.bot_tokens import ChannelToken, ChannelTokens, refuse
from shared.errors import AccessDeniedError, CallerError, NotAuthenticatedError
from shared.ports import BotInbox
from shared.settings import Settings

# For annotations alone: the start of the app need not build the models of activities.
if TYPE_CHECKING:
    from urllib.parse import SplitResult

    from shared.clients.bot_wire import Received
    from shared.models.bot import BotActivity


_HINT = "See docs/teams.md on the Agents Playground."


class ChannelInbox(BotInbox):
    """What the channels of one bot send."""

    def __init__(self, settings: Settings, tokens: ChannelTokens | None) -> None:
        """`tokens` is None where there is no bot, or one without an identity."""
        self._settings = settings
        self._tokens = tokens
        self._hosts = CLOUDS[settings.bot_cloud].hosts

    async def receive(self, authorization: str | None, body: bytes, peer: str | None) -> BotActivity:
        """As the port says; besides:

        Raises:
            AccessDeniedError: somebody of another tenant.
            DependencyError: the Bot Service's keys cannot be had.
        """
        from shared.clients.bot_meaning import as_activity
        from shared.clients.bot_wire import read_activity

        if self._tokens is None:
            return self._receive_local(body, peer)
        token = await self._tokens.believed(authorization)
        received = read_activity(body)
        _check_came_from(received, token, self._hosts)
        self._check_tenant(received)
        return as_activity(received, body, is_local=False)

    def _receive_local(self, body: bytes, peer: str | None) -> BotActivity:
        from shared.clients.bot_meaning import as_activity
        from shared.clients.bot_wire import read_activity

        if not self._settings.bot_local_anonymous or self._settings.in_azure:
            raise NotAuthenticatedError("There is no bot here.", "Set BOT_APP_ID; see docs/settings.md.")
        if not _is_this_machine(peer):
            raise NotAuthenticatedError(
                "Without a token activities are taken from this machine alone.", _HINT
            )
        received = read_activity(body)
        if not is_loopback(_address(received)):
            raise NotAuthenticatedError("Without a token an activity must come from this machine.", _HINT)
        self._check_tenant(received)
        return as_activity(received, body, is_local=True)

    def _check_tenant(self, received: Received) -> None:
        """Other channels than Teams know no tenants; their people are known to nobody."""
        from shared.clients.bot_wire import TEAMS

        ours = (self._settings.bot_tenant_id or "").casefold()
        if received.channel_name != TEAMS or not ours:
            return
        told: tuple[str | None, ...] = (received.sender_tenant, received.conversation.tenant_id)
        if self._tokens is None:  # the Playground tells a tenant in one of the two places
            told = tuple(tenant for tenant in told if tenant) or ("",)
        if any((tenant or "").casefold() != ours for tenant in told):
            raise AccessDeniedError(
                "This bot is for the people of its organisation.", "Write from an account of it."
            )


def _address(received: Received) -> SplitResult:
    parts = address_parts(received.service_url)
    if parts is None:
        raise CallerError("No activity: serviceUrl is no http address.")
    return parts


def _check_came_from(received: Received, token: ChannelToken, hosts: tuple[str, ...]) -> None:
    """
    Raises:
        CallerError: the activity's address is none.
        NotAuthenticatedError: it is another than the token's, or not the Bot Service's; or the token's key
            does not stand for its channel.
    """
    told, proved = _address(received), address_parts(token.service_url)
    if proved is None or origin(told) != origin(proved):
        refuse("other_service_url")
    if not is_service(told, hosts):
        refuse("foreign_service_url")
    if token.endorsements and received.channel_name not in token.endorsements:
        refuse("channel_not_endorsed")


def _is_this_machine(peer: str | None) -> bool:
    try:
        return ipaddress.ip_address(peer or "").is_loopback
    except ValueError:
        return False
