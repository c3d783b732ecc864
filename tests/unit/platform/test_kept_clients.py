"""Clients of one table or one blob are made once, and made anew when their connection was."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

from shared.platform.connections import Connection
from shared.platform.tables import Table
from shared.runs.blob_run_log import KEPT_CLIENTS, BlobRunLog


class Service:
    """Counts the clients that it makes."""

    def __init__(self) -> None:
        self.made: Counter[str] = Counter()

    def get_blob_client(self, container: str, name: str) -> Any:
        self.made[name] += 1

        async def append_block(*_: Any, **__: Any) -> dict[str, str]:
            return {"blob_append_offset": "0"}

        return SimpleNamespace(append_block=append_block)

    def get_table_client(self, name: str) -> Any:
        self.made[name] += 1

        async def get_entity(*_: Any) -> dict[str, str]:
            return {"made_by": str(id(self))}

        return SimpleNamespace(get_entity=get_entity)

    async def close(self) -> None:
        pass


def connected() -> tuple[Connection[Any], list[Service]]:
    services: list[Service] = []

    def make() -> Service:
        services.append(Service())
        return services[-1]

    return Connection(make), services


async def test_a_table_keeps_its_client_until_the_connection_is_another() -> None:
    connection, services = connected()
    table = Table(connection, "runs")
    for _ in range(3):
        await table.get("p", "r")
    assert services[0].made == {"runs": 1}
    await connection.close()
    await table.get("p", "r")
    assert [service.made["runs"] for service in services] == [1, 1]


async def test_a_log_keeps_the_clients_of_the_runs_that_were_written_last() -> None:
    connection, services = connected()
    log = BlobRunLog(connection)
    busy = "busy/events.jsonl"
    for number in range(KEPT_CLIENTS + 10):
        await log.append("busy", [])
        await log.append(f"run{number}", [])
    assert services[0].made[busy] == 1
    await log.append("run0", [])  # it was let go
    assert services[0].made["run0/events.jsonl"] == 2
    await connection.close()
    await log.append("busy", [])
    assert services[1].made[busy] == 1
