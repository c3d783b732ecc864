"""Loads an app with the official worker library, and prints what the worker would report to the host.

`python worker_probe.py FOLDER [CALLS]` under Python 3.13; prints JSON. CALLS is a JSON list of invocations to
make: `{"function", "parameter", "http": {"path", "params", "body"}}` or `{…, "model_binding_data": {…}}`.
It imports no module of this repository, and replaces the worker's protobuf classes with plain records.
"""

import asyncio
import importlib
import json
import sys
import time
import urllib.error
import urllib.request
from typing import Any


class Record:
    """A stand-in for a protobuf message, with its fields and the name of the alternative that is set."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def WhichOneof(self, group: str) -> str:  # noqa: N802 # protobuf's name
        del group
        return next(name for name, value in self.__dict__.items() if value is not None and name != "name")


class StatusResult(Record):
    Failure = 0
    Success = 1


class BindingInfo(Record):
    undefined = 0
    out = 1
    inout = 2


class Protos:
    """The message types. Types without constants are created on first use."""

    StatusResult = StatusResult
    BindingInfo = BindingInfo

    def __getattr__(self, name: str) -> type[Record]:
        return type(name, (Record,), {})


def request(kind: str, **fields: Any) -> Record:
    properties = {"host": "127.0.0.1", "protos": Protos()}
    return Record(request=Record(**{kind: Record(**fields)}), properties=properties)


async def probe(folder: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    worker = importlib.import_module("azure_functions_runtime")

    init = await worker.worker_init_request(
        request("worker_init_request", capabilities={}, function_app_directory=folder)
    )
    if init.result.status != StatusResult.Success:
        return {"init": init.result.exception.message}
    metadata = await worker.functions_metadata_request(request("functions_metadata_request"))
    functions = {}
    for function in metadata.function_metadata_results:
        loaded = await worker.function_load_request(
            request("function_load_request", function_id=function.function_id, metadata=function)
        )
        functions[function.name] = {
            "id": function.function_id,
            "loaded": loaded.result.status == StatusResult.Success,
            "bindings": [json.loads(raw) for raw in function.raw_bindings],
        }
    uri = init.capabilities.get("HttpUri")
    answers = [await invoke(worker, functions[call["function"]]["id"], call, uri) for call in calls]
    capabilities = dict(init.capabilities)
    return {"init": "success", "capabilities": capabilities, "functions": functions, "calls": answers}


async def invoke(worker: Any, function_id: str, call: dict[str, Any], uri: str | None) -> dict[str, Any]:
    """Invoke a function as the host does. HTTP requests are sent to the worker's own server."""
    data = Record(name=call["parameter"], data=typed_data(call))
    invocation = request(
        "invocation_request",
        invocation_id=f"probe-{function_id}",
        function_id=function_id,
        input_data=[data],
        trigger_metadata={},
        trace_context=Record(trace_parent="", trace_state="", attributes={}),
        retry_context=Record(retry_count=0, max_retry_count=0, exception=None),
    )
    data.WhichOneof = lambda group: "data"  # type: ignore[method-assign]
    answering = asyncio.create_task(worker.invocation_request(invocation))
    body = None
    if "http" in call:
        body = await asyncio.to_thread(http_call, f"{uri}{call['http']['path']}", function_id, call["http"])
    response = await answering
    failure = getattr(response.result, "exception", None)
    return {"status": response.result.status, "body": body, "error": failure.message if failure else None}


def typed_data(call: dict[str, Any]) -> Record:
    if "http" in call:
        http = Record(
            method="POST", url="", headers={}, body=Record(bytes=b""), params=call["http"]["params"], query={}
        )
        return Record(http=http)
    content = json.dumps(call["model_binding_data"]).encode()
    data = Record(version="1.0", source="AzureStorageBlobs", content_type="application/json", content=content)
    return Record(model_binding_data=data)


def http_call(url: str, function_id: str, http: dict[str, Any]) -> str:
    headers = {"x-ms-invocation-id": f"probe-{function_id}"}
    http_request = urllib.request.Request(url, data=http["body"].encode(), headers=headers, method="POST")
    give_up_at = time.monotonic() + 30
    while True:
        try:
            # the worker's server on loopback
            with urllib.request.urlopen(http_request, timeout=30) as answer:
                return str(answer.read().decode())
        except urllib.error.URLError as refused:
            # The worker starts its server in a separate thread and doesn't report when it is ready, so try
            # again.
            if not isinstance(refused.reason, ConnectionRefusedError) or time.monotonic() > give_up_at:
                raise
            time.sleep(0.1)


def main() -> None:
    folder = sys.argv[1]
    sys.path.insert(0, folder)
    calls = json.loads(sys.argv[2]) if len(sys.argv) > 2 else []
    sys.stdout.write("PROBE " + json.dumps(asyncio.run(probe(folder, calls))) + "\n")


if __name__ == "__main__":
    main()
