"""Tests for the synchronisation status, changes that users may make, and registration of the timer."""

import subprocess
import sys
from datetime import timedelta

import pytest

from shared.documents.requests import AccessChange
from shared.documents.state import DocumentState, Rights
from shared.ingestion.changes import change_access, delete
from shared.platform.errors import ConfigurationError, ConflictError
from shared.platform.settings import load_settings
from shared.sharepoint.models import MAX_EXAMPLES, SkippedItem
from shared.sharepoint.status import view_libraries
from tests.fakes.services import LEAST_ENVIRONMENT, fake_services
from tests.fakes.sharepoint_server import TENANT, Fault, user
from tests.unit.sharepoint.tenant import ANNA, START, tenant

LIBRARY = "https://contoso.sharepoint.com/sites/hr"


async def test_the_status_follows_the_runs() -> None:
    async with tenant() as t:
        t.server.file(t.server.drive(), "a.md", permissions=[user(ANNA)])
        await t.run()
        (library,) = (await view_libraries(t.services)).libraries
        assert (library.status, library.counts.files, library.succeeded_at) == ("current", 1, t.now)
        t.server.faults = [Fault("/delta", 403, times=100)]
        await t.run()
        (library,) = (await view_libraries(t.services)).libraries
        assert (library.status, library.error) == ("failed", "AuthenticationError")
        await t.run(after=timedelta(days=2))
        (library,) = (await view_libraries(t.services)).libraries
        assert library.status == "closed"


async def test_hidden_documents_are_named_before_skipped_files() -> None:
    async with tenant() as t:
        drive = t.server.drive()
        for number in range(MAX_EXAMPLES):
            t.server.file(drive, f"{number}.bin", permissions=[user(ANNA)])
        hidden = t.server.file(drive, "pay.md", permissions=[user(ANNA)])
        t.server.faults = [Fault(f"{hidden}/permissions", 403, times=10)]
        await t.run()
        (library,) = (await view_libraries(t.services)).libraries
        counts = library.counts
        assert (counts.hidden, dict(counts.skipped)) == (1, {"format": MAX_EXAMPLES})
        assert len(counts.examples) == MAX_EXAMPLES
        assert counts.examples[0] == SkippedItem(name="pay.md", reason="permissions_unreadable")


async def test_without_libraries_there_is_no_status() -> None:
    assert (await view_libraries(fake_services())).libraries == ()


async def test_sharepoint_decides_who_reads_and_what_is_deleted() -> None:
    services = fake_services()
    state = DocumentState(
        doc_id="0" * 24,
        blob_name="sharepoint/a/b/plan.md",
        filename="plan.md",
        rights=Rights(),
        updated_at=START,
    )
    with pytest.raises(ConflictError, match="SharePoint"):
        await change_access(state, AccessChange(acl=("*",)), services)
    with pytest.raises(ConflictError, match="SharePoint"):
        await delete(state, services)


@pytest.mark.parametrize(
    ("libraries", "tenants"),
    [
        (LIBRARY, ""),
        ("http://contoso.sharepoint.com/sites/hr", TENANT),
        ("sites/hr", TENANT),
        (f"{LIBRARY}?a=1", TENANT),
    ],
)
def test_wrong_settings_are_refused(libraries: str, tenants: str) -> None:
    with pytest.raises(ConfigurationError, match="SHAREPOINT_LIBRARIES"):
        load_settings({**LEAST_ENVIRONMENT, "SHAREPOINT_LIBRARIES": libraries, "ALLOWED_TENANTS": tenants})


@pytest.mark.parametrize("libraries", ["", LIBRARY])
def test_the_timer_is_registered_only_with_libraries(libraries: str) -> None:
    names = "import function_app; print([f.get_function_name() for f in function_app.app.get_functions()])"
    environment = {**LEAST_ENVIRONMENT, "SHAREPOINT_LIBRARIES": libraries, "ALLOWED_TENANTS": TENANT}
    done = subprocess.run(
        [sys.executable, "-c", names], env=environment, capture_output=True, text=True, check=True
    )
    assert ("synchronise_libraries" in done.stdout) == bool(libraries)
