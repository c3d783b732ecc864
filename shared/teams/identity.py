"""Who writes in a chat: a person of the organisation where the channel vouches for one, else nobody by name.

Room rule: takes what the channel says, settings and the directory; returns a UserContext or raises.
"""

from shared.access.admission import plain_user
from shared.access.directory import GroupDirectory
from shared.access.identity import user_from_directory
from shared.access.models import UserContext
from shared.access.security_filter import NOBODYS
from shared.platform.errors import DependencyError
from shared.platform.settings import Settings
from shared.teams.models import BotConversation, BotSender
from shared.teams.parsing import owner_of


async def person_in_chat(
    conversation: BotConversation, sender: BotSender, settings: Settings, directory: GroupDirectory
) -> tuple[UserContext, bool]:
    """The user as whom a message is answered, and whether they stand alone: their groups are not known now.

    Where several people read along, and where nobody vouches for the sender, it is a user of no name that
    anybody has: what everybody may read is open to it. Somebody who stands alone belongs to nothing, not even
    to the organisation: whether they are a guest is not known either. So a deployment that refuses guests
    refuses them.

    Raises:
        NotAuthenticatedError, AccessDeniedError: somebody who is not let in.
        DependencyError: they may be a guest, and guests are refused.
    """
    owner = owner_of(conversation, sender)
    if owner.startswith(NOBODYS):
        return UserContext(user_id=owner), False
    if settings.bot_local_anonymous:  # there is no directory on one machine
        return plain_user(UserContext(user_id=owner, name=sender.name)), False
    tenant_id = settings.bot_tenant_id or conversation.tenant_id or ""
    try:
        return await user_from_directory(owner, tenant_id, settings, directory), False
    except DependencyError:
        if settings.guests == "refused":
            raise
        return plain_user(UserContext(user_id=owner)), True
