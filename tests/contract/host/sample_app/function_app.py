"""A small app with one function for every kind of trigger that the host serves. Each function records its
input.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Generator
from pathlib import Path
from typing import Any

import azure.durable_functions as df
import azure.functions as func
from azurefunctions.extensions.http.fastapi import JSONResponse, Request, Response, StreamingResponse
from blob_reference import BlobReference  # type: ignore[import-not-found]  # beside this file, as in an app
from starlette.exceptions import HTTPException

app = df.DFApp(http_auth_level=func.AuthLevel.ANONYMOUS)
counters = {"flood_chunks": 0}


def note(kind: str, **facts: object) -> None:
    with Path(os.environ["SAMPLE_NOTES"]).open("a", encoding="utf-8") as notes:
        notes.write(json.dumps({"kind": kind, **facts}) + "\n")


# Functions with HTTP triggers


def rest_of(req: Request) -> str:
    return str(req.url.path.split("/", 3)[3])


@app.route(route="echo/{*name}")
async def name_echo(req: Request) -> Response:
    body = (await req.body()).decode()
    return JSONResponse(
        {
            "name": rest_of(req),
            "query": dict(req.query_params),
            "body": body,
            "method": req.method,
        },
        headers={"x-sample": "yes"},
    )


@app.route(route="echo/fixed")
async def echo_fixed(req: Request) -> dict:  # type: ignore[type-arg]  # the worker refuses dict[str, str]
    return {"route": "fixed"}


@app.route(route="files/{*path}")
def files(req: Request) -> str:
    return rest_of(req)


@app.route(route="boom")
async def boom(req: Request) -> Response:
    raise RuntimeError("the secret inside")


@app.route(route="teapot")
async def teapot(req: Request) -> Response:
    raise HTTPException(status_code=418, detail="short and stout")


@app.route(route="nothing")
async def nothing(req: Request) -> Response:
    return None


@app.route(route="ticks")
async def ticks(req: Request) -> StreamingResponse:
    async def events() -> AsyncIterator[str]:
        number = 0
        try:
            while True:
                yield f"id: {number}\ndata: tick\n\n"
                number += 1
                await asyncio.sleep(0.02)
        finally:
            note("ticks.ended", sent=number)

    return StreamingResponse(events(), media_type="text/event-stream")


@app.route(route="flood")
async def flood(req: Request) -> StreamingResponse:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(2000):
            counters["flood_chunks"] += 1
            yield b"x" * 65536

    return StreamingResponse(chunks(), media_type="application/octet-stream")


@app.route(route="counters")
async def show_counters(req: Request) -> JSONResponse:
    return JSONResponse(counters)


@app.route(route="slow/{*seconds}")
def slow(req: Request) -> str:
    counters["slow_began"] = 1
    time.sleep(int(rest_of(req)))
    return "done"


# Functions with blob and queue triggers


@app.blob_trigger(
    arg_name="document",
    path="%DOCUMENTS%/{name}",
    connection="DocumentsStorage",
    source=func.BlobSource.EVENT_GRID,
)
async def on_document(document: BlobReference) -> None:
    note("document", name=document.name, container=document.container, connection=document.connection)
    if document.name.startswith("bad"):
        raise ValueError("cannot read this one")
    if document.name.startswith("slow"):
        await asyncio.sleep(3600)


@app.queue_trigger(arg_name="message", queue_name="%INBOX%", connection="AzureWebJobsStorage")
def on_message(message: func.QueueMessage) -> None:
    text = message.get_body().decode()
    note("message", text=text, tries=message.dequeue_count)
    if text.startswith("bad"):
        raise ValueError("cannot handle this one")


@app.queue_trigger(
    arg_name="message", queue_name="%LOCAL_BLOB_DELETED_QUEUE%", connection="AzureWebJobsStorage"
)
def on_deletion(message: str) -> None:
    event = json.loads(message)
    note("deletion", type=event["eventType"], subject=event["subject"])


@app.timer_trigger(arg_name="timer", schedule="*/1 * * * * *", run_on_startup=True)
async def every_second(timer: func.TimerRequest) -> None:
    note("timer", past_due=timer.past_due, status=timer.schedule_status)  # type: ignore[attr-defined]


# Durable functions


@app.route(route="square-all")
@app.durable_client_input(client_name="client")
async def start_squares(req: Request, client: Any) -> JSONResponse:
    return JSONResponse({"id": await client.start_new("square_all", None, await req.json())})


@app.route(route="instances/{*instance_id}")
@app.durable_client_input(client_name="client")
async def instance(req: Request, client: Any) -> JSONResponse:
    status = await client.get_status(rest_of(req))
    return JSONResponse({"status": status.runtime_status.name, "output": status.output})


@app.orchestration_trigger(context_name="context")
def square_all(context: df.DurableOrchestrationContext) -> Generator[Any, Any, Any]:
    squares = yield context.task_all(
        [context.call_activity("square", number) for number in context.get_input()]
    )
    try:
        yield context.call_activity("fail", "x")
    except Exception as error:  # noqa: BLE001 # the SDK raises nothing more precise
        failure = str(error)
    own_name = yield context.call_activity("own_status", context.instance_id)
    return {"squares": squares, "failure": failure, "found": own_name}


@app.orchestration_trigger(context_name="context")
def wait_once(context: df.DurableOrchestrationContext) -> Generator[Any, Any, Any]:
    return (yield context.call_activity("wait", "x"))


@app.activity_trigger(input_name="unused")
async def wait(unused: str) -> str:
    note("wait.began")
    await asyncio.sleep(3600)
    return unused


@app.activity_trigger(input_name="number")
def square(number: int) -> int:
    return number * number


@app.activity_trigger(input_name="unused")
def fail(unused: str) -> str:
    raise KeyError("no such thing")


@app.activity_trigger(input_name="instance")
@app.durable_client_input(client_name="client")
async def own_status(instance: str, client: Any) -> str:
    return str((await client.get_status(instance)).name)
