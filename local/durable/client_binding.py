"""The JSON that a durable client binding hands to DurableOrchestrationClient.

Source: HttpApiHandler.cs (GetInstanceCreationLinks, GetClientResponseLinks) and DurableOrchestrationBindings.
"""

import json
from urllib.parse import quote

RPC_PREFIX = "/durabletask"
WEBHOOK_PREFIX = "/runtime/webhooks/durabletask"

# The SDK puts the instance's id in place of this text, which managementUrls["id"] tells it.
_ID_PLACEHOLDER = "INSTANCEID"


def client_binding_json(base_url: str, task_hub: str) -> str:
    """Clients call the RPC address; the management addresses are for people and other programs."""
    root = base_url.rstrip("/")
    return json.dumps(
        {
            "taskHubName": task_hub,
            "creationUrls": _creation_urls(root + WEBHOOK_PREFIX),
            "managementUrls": management_urls(root + WEBHOOK_PREFIX, _ID_PLACEHOLDER, task_hub),
            "rpcBaseUrl": f"{root}{RPC_PREFIX}/",
        }
    )


def management_urls(webhook_url: str, instance_id: str, task_hub: str) -> dict[str, str]:
    """What can be done with one instance, by name; also the body of an accepted start."""
    instance = f"{webhook_url}/instances/{quote(instance_id, safe='')}"
    hub = f"taskHub={quote(task_hub, safe='')}&connection=Storage"
    return {
        "id": instance_id,
        "statusQueryGetUri": f"{instance}?{hub}",
        "sendEventPostUri": f"{instance}/raiseEvent/{{eventName}}?{hub}",
        "terminatePostUri": f"{instance}/terminate?reason={{text}}&{hub}",
        "rewindPostUri": f"{instance}/rewind?reason={{text}}&{hub}",
        "purgeHistoryDeleteUri": f"{instance}?{hub}",
        "restartPostUri": f"{instance}/restart?{hub}",
        "suspendPostUri": f"{instance}/suspend?reason={{text}}&{hub}",
        "resumePostUri": f"{instance}/resume?reason={{text}}&{hub}",
    }


def _creation_urls(webhook_url: str) -> dict[str, str]:
    start = f"{webhook_url}/orchestrators/{{functionName}}[/{{instanceId}}]"
    wait = "timeout={timeoutInSeconds}&pollingInterval={intervalInSeconds}"
    return {
        "createNewInstancePostUri": start,
        "createAndWaitOnNewInstancePostUri": f"{start}?{wait}",
    }
