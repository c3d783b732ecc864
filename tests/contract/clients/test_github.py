"""The tool `github` against a server that speaks GitHub's REST API, over real HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shared.platform.errors import ConfigurationError, DependencyError, DocumentNotFoundError
from shared.platform.language_models.models import CallLimits
from shared.tools.base import ToolResult
from shared.tools.github_api import MAX_ANSWER_BYTES, GithubApi, GithubSettings
from shared.tools.outside import Outside
from shared.tools.read_github import ReadGithub
from shared.tools.registry import enabled_tools
from tests.contract.clients.conftest import NOWHERE
from tests.contract.clients.scripted_server import Answer, ScriptedServer
from tests.fakes.github import BINARY, LARGE, GithubServer
from tests.fakes.services import fake_settings

pytestmark = [pytest.mark.contract, pytest.mark.attack("outgoing addresses")]

TOKEN = "canary-7731"
LIMITS = CallLimits(timeout_s=60, max_retries=0)


@asynccontextmanager
async def opened(url: str, repositories: str = "contoso/app,contoso/handbook") -> AsyncIterator[GithubApi]:
    settings = {"GITHUB_API_URL": url, "GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORIES": repositories}
    api = GithubApi(GithubSettings.model_validate(settings))
    try:
        yield api
    finally:
        await api.close()


@pytest.fixture
async def server() -> AsyncIterator[GithubServer]:
    async with GithubServer(token=TOKEN) as server:
        yield server


async def read(server: GithubServer, action: str, **arguments: Any) -> ToolResult:
    call_arguments = {"repo": "Contoso/App", **arguments}
    async with opened(server.url) as api:
        return await ReadGithub(api, LIMITS).execute(action=action, **call_arguments)


async def test_files_and_folders_are_read(server: GithubServer) -> None:
    file = await read(server, "get_file", path="/docs/guide.md", ref="v1/next")
    assert (file["path"], file["truncated"]) == ("docs/guide.md", False)
    assert "6.5 bar" in file["text"]
    assert server.requests == ["/repos/contoso/app/contents/docs/guide.md?ref=v1/next"]
    folder = await read(server, "get_file")
    assert folder["entries"][0] == {"path": "docs/guide.md", "kind": "file"}


async def test_issues_and_commits_are_read(server: GithubServer) -> None:
    issue = await read(server, "get_issue", number=7)
    assert (issue["title"], issue["text"], issue["author"]) == ("The valve leaks", "At 7 bar.", "ben")
    assert [comment["text"] for comment in issue["comments"]] == ["Seen, too."]
    commits = await read(server, "list_commits", path="docs")
    assert (commits["count"], commits["commits"][0]["message"]) == (1, "Raise the pressure")
    assert "anna@example.org" not in str(commits)


async def test_a_search_shows_nothing_of_other_repositories(server: GithubServer) -> None:
    code = await read(server, "search_code", query="valve")
    issues = await read(server, "search_issues", query="valve")
    assert (code["result_count"], issues["result_count"]) == (1, 1)
    assert "secret" not in str([code, issues])
    for query in ("valve repo:contoso/secret", "valve ORG:contoso", "user : contoso", ""):
        assert (await read(server, "search_code", query=query))["type"] == "InvalidQueryError"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    "repo", ["contoso/secret", "contoso/app/../secret", "contoso/app?x=", "../../user", "contoso/app#", "x"]
)
async def test_no_other_repository_is_asked_for(repo: str, server: GithubServer) -> None:
    result = await read(server, "get_file", path="docs/guide.md", repo=repo.ljust(3))
    assert result["type"] == "InvalidQueryError"
    assert server.requests == []


@pytest.mark.parametrize("path", ["../../secret/contents/x", "docs/../../x", "a/./b", "a\nb", "\x00"])
async def test_no_path_leads_elsewhere(path: str, server: GithubServer) -> None:
    assert (await read(server, "get_file", path=path))["type"] == "InvalidQueryError"
    assert server.requests == []


async def test_parts_of_a_path_stay_parts(server: GithubServer) -> None:
    for path in ("%2e%2e/%2e%2e/secret", "a?ref=b", "a#b", "a%2F..%2Fb", "a\\..\\b"):
        assert (await read(server, "get_file", path=path))["type"] == "DocumentNotFoundError"
    assert all(request_path.startswith("/repos/contoso/app/contents/") for request_path in server.requests)
    assert all("?" not in request_path for request_path in server.requests)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"action": "get_file", "path": "absent.md"}, "DocumentNotFoundError"),
        ({"action": "get_file", "path": "moved.md"}, "DocumentNotFoundError"),
        ({"action": "get_file", "path": BINARY}, "InvalidQueryError"),
        ({"action": "get_file", "path": LARGE}, "InvalidQueryError"),
        ({"action": "get_issue", "number": 1}, "DocumentNotFoundError"),
        ({"action": "get_issue", "number": 9}, "DocumentNotFoundError"),
        ({"action": "delete_repo"}, "InvalidQueryError"),
    ],
)
async def test_what_cannot_be_read_says_why(
    arguments: dict[str, Any], kind: str, server: GithubServer
) -> None:
    assert (await read(server, **arguments))["type"] == kind


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer("401 Unauthorized"), "AuthenticationError"),
        (Answer("403 Forbidden"), "AuthenticationError"),
        (Answer("403 Forbidden", headers={"x-ratelimit-remaining": "0"}), "RateLimitError"),
        (Answer("429 Too Many Requests", headers={"retry-after": "60"}), "RateLimitError"),
        (Answer("422 Unprocessable Entity"), "InvalidQueryError"),
        (Answer("500 Internal Server Error"), "NetworkError"),
        (Answer(body=b"<html>"), "NetworkError"),
        (Answer(body=b"[1]"), "NetworkError"),
        (Answer(body=b'{"type": "file"}'), "NetworkError"),
        (Answer(body=b"[" * 100_000), "NetworkError"),
        (Answer(body=b" " * (MAX_ANSWER_BYTES + 1)), "NetworkError"),
        (Answer(lost=True), "NetworkError"),
        (Answer("302 Found", headers={"Location": NOWHERE}), "DocumentNotFoundError"),
    ],
)
async def test_what_the_service_does_wrong_is_told(answer: Answer, kind: str) -> None:
    async with ScriptedServer(answer) as server, opened(server.endpoint) as api:
        call_arguments = {"action": "get_file", "repo": "contoso/app", "path": "a.md"}
        result = await ReadGithub(api, LIMITS).execute(**call_arguments)
    assert result["type"] == kind, result
    assert TOKEN not in str(result)


async def test_a_check_reads_a_repository(server: GithubServer) -> None:
    async with opened(server.url) as api:
        await api.check()
    async with opened(server.url, "contoso/absent") as api:
        with pytest.raises(DocumentNotFoundError):
            await api.check()
    async with opened(NOWHERE) as api:
        with pytest.raises(DependencyError):
            await api.check()


def test_the_settings_of_the_tool_are_checked() -> None:
    environment = {"AGENT_TOOLS": "github", "GITHUB_REPOSITORIES": "contoso"}
    refusal = "GITHUB_REPOSITORIES: 'contoso' is not of the form owner/name"
    with pytest.raises(ConfigurationError, match=refusal) as wrong:
        enabled_tools(fake_settings(**environment))
    assert "Example: GITHUB_REPOSITORIES=contoso/handbook,contoso/app" in wrong.value.detail
    for address in ("http://github.example", "ftp://github.example"):
        with pytest.raises(ConfigurationError, match="GITHUB_API_URL"):
            fake_settings(github_api_url=address).group(GithubSettings)


async def test_it_is_off_without_repositories() -> None:
    result = await ReadGithub(None, LIMITS).execute(action="list_commits", repo="contoso/app")
    assert result["type"] == "ConfigurationError"


@pytest.mark.parametrize(
    "arguments",
    [
        {"action": "search_code", "query": "the valve of project Saltmarsh leaks"},
        {"action": "search_issues", "query": "offer OFF-2291"},
        {"action": "get_file", "path": "the/valve/of/project/saltmarsh.md"},
        {"action": "list_commits", "ref": "off-2291"},
    ],
)
async def test_nothing_of_a_document_reaches_github(server: GithubServer, arguments: dict[str, str]) -> None:
    passages = ("Offer OFF-2291: the valve of project Saltmarsh costs more.",)
    typed = Outside(shown=passages, own_words=f"{passages[0]} It leaks. {arguments}")
    async with opened(server.url) as api:
        reading = ReadGithub(api, LIMITS, outside=Outside(shown=passages))
        assert (await reading.execute(repo="contoso/app", **arguments))["type"] == "InvalidQueryError"
        result = await ReadGithub(api, LIMITS, outside=typed).execute(repo="contoso/app", **arguments)
    assert result.get("type") != "InvalidQueryError"


async def test_github_is_not_asked_about_confidential_documents(server: GithubServer) -> None:
    async with opened(server.url) as api:
        reading = ReadGithub(api, LIMITS, outside=Outside(is_closed=True))
        refused = await reading.execute(action="search_code", repo="contoso/app", query="valve")
    assert refused["type"] == "AccessDeniedError"
    assert server.requests == []
