"""Timer that starts the synchronisation of each SharePoint or OneDrive library."""

import uuid

import azure.durable_functions as df

from functions.http.trigger_scope import trigger_scope
from shared import wiring
from shared.platform.instances import Instances, is_at_work
from shared.platform.telemetry import get_logger
from shared.sharepoint.libraries import find_libraries
from shared.sharepoint.models import SyncStep
from shared.sharepoint.services import configured


async def synchronise_libraries(client: df.DurableOrchestrationClient) -> None:
    """Start a synchronisation of each library that has none in progress, including libraries that were
    removed from the settings.
    """
    async with trigger_scope("synchronise_libraries"):
        services = await wiring.ready_services()
        store = configured(services.libraries)
        present, absent = await find_libraries(
            services.settings.sharepoint.addresses, configured(services.sharepoint), store
        )
        instances, run = Instances(client), uuid.uuid4().hex
        for library_id in (*present, *absent):
            step = SyncStep(library_id=library_id, run=run, is_configured=library_id in present)
            await _start(step, client, instances)


async def _start(step: SyncStep, client: df.DurableOrchestrationClient, instances: Instances) -> None:
    instance_id = f"synchronise-{step.library_id}"
    if is_at_work(await instances.state(instance_id)):
        return
    try:
        await client.start_new("synchronise_library", instance_id, step.model_dump(mode="json"))
    except Exception as error:  # noqa: BLE001  # another app instance may have started it; the next timer run retries
        get_logger().warning("sharepoint.start_failed", error_type=type(error).__name__)
