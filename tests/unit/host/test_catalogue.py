"""Tests for errors found while the host indexes an app, including bindings that it doesn't support."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import azure.durable_functions as df
import azure.functions as func
import pytest
from azurefunctions.extensions.http.fastapi import Request, Response

from local.host.catalogue import index_functions, load_app
from local.host.settings import AppError

Register = Callable[[Any], object]


def app_with(register: Register) -> df.DFApp:
    app = df.DFApp(http_auth_level=func.AuthLevel.ANONYMOUS)
    register(app)
    return app


def test_function_is_described_as_the_worker_sees_it() -> None:
    def register(app: Any) -> None:
        @app.queue_trigger(arg_name="message", queue_name="in", connection="C")
        async def handle(message: str) -> None: ...

    (function,) = index_functions(app_with(register))
    assert (function.name, function.kind, function.is_async) == ("handle", "queueTrigger", True)
    assert function.inputs["message"].binding_type == "generic"  # annotated str
    assert function.returns is None


def test_durable_functions_have_an_implicit_return() -> None:
    def register(app: Any) -> None:
        @app.activity_trigger(input_name="number")
        def square(number: int) -> int:
            return number * number

    (function,) = index_functions(app_with(register))
    assert function.returns is not None
    assert function.returns.binding_type == "activityTrigger"


def http_request_of_the_old_kind(app: Any) -> None:
    @app.route(route="a")
    def f(req: func.HttpRequest) -> Response:
        return Response()


def generic_return(app: Any) -> None:
    @app.route(route="a")
    def f(req: Request) -> dict[str, str]:
        return {}


def union_return(app: Any) -> None:
    @app.route(route="a")
    def f(req: Request) -> Response | str:
        return ""


def generic_activity_input(app: Any) -> None:
    @app.activity_trigger(input_name="payload")
    def f(payload: dict[str, str]) -> str:
        return ""


def wrong_trigger_type(app: Any) -> None:
    @app.timer_trigger(arg_name="timer", schedule="0 * * * * *")
    def f(timer: int) -> None: ...


def parameter_without_binding(app: Any) -> None:
    @app.timer_trigger(arg_name="timer", schedule="0 * * * * *")
    def f(timer: func.TimerRequest, other: str) -> None: ...


def output_that_is_not_served(app: Any) -> None:
    @app.queue_trigger(arg_name="message", queue_name="in", connection="C")
    @app.queue_output(arg_name="answer", queue_name="out", connection="C")
    def f(message: str, answer: func.Out[str]) -> None: ...


def trigger_that_is_not_served(app: Any) -> None:
    @app.service_bus_queue_trigger(arg_name="message", queue_name="in", connection="C")
    def f(message: str) -> None: ...


def input_that_is_not_served(app: Any) -> None:
    @app.timer_trigger(arg_name="timer", schedule="0 * * * * *")
    @app.blob_input(arg_name="blob", path="a/b", connection="C")
    def f(timer: func.TimerRequest, blob: bytes) -> None: ...


@pytest.mark.parametrize(
    "register",
    [
        http_request_of_the_old_kind,
        generic_return,
        union_return,
        generic_activity_input,
        wrong_trigger_type,
        parameter_without_binding,
        output_that_is_not_served,
        trigger_that_is_not_served,
        input_that_is_not_served,
    ],
)
def test_function_that_would_not_run_is_refused_by_name(register: Register) -> None:
    with pytest.raises(AppError, match="function f"):
        index_functions(app_with(register))


def test_an_app_that_refuses_its_settings_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "app_refusing.py").write_text("raise ValueError('CHAT_MODEL: Field required.')\n")
    with pytest.raises(AppError, match=r"failed to start\. CHAT_MODEL"):
        load_app("app_refusing", tmp_path)


@pytest.mark.parametrize(
    "code", ["", "import azure.functions as f\na = f.FunctionApp()\nb = f.FunctionApp()\n"]
)
def test_module_must_have_exactly_one_app(tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = f"app_{abs(hash(code))}"
    (tmp_path / f"{name}.py").write_text(code)
    with pytest.raises(AppError, match="exactly one"):
        load_app(name, tmp_path)
