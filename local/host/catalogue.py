"""Indexes the function app once and describes each function as the worker does.

Refuses at start what the worker refuses at load, and what this host does not serve: better than a silent
trigger.
"""

import importlib
import importlib.util
import inspect
import json
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import azure.functions as func

from local.host.annotations import check_annotation, check_return
from local.host.conversion import Parameter, is_sdk_type
from local.host.errors import AppError

TRIGGERS = frozenset(
    {"httpTrigger", "blobTrigger", "queueTrigger", "timerTrigger", "orchestrationTrigger", "activityTrigger"}
)
INPUTS = frozenset({"durableClient"})
OUTPUTS = frozenset({"http", "queue", "blob"})
IMPLICIT_RETURN = frozenset({"orchestrationTrigger", "activityTrigger"})

# One entry of function.json: camelCase keys, as get_raw_bindings() writes it.
BindingDocument: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class HostedFunction:
    """One function of the app."""

    name: str
    call: Callable[..., Any]
    folder: str
    bindings: tuple[BindingDocument, ...]
    trigger: BindingDocument
    inputs: Mapping[str, Parameter]
    outputs: Mapping[str, Parameter]
    returns: Parameter | None
    wants_context: bool

    @property
    def kind(self) -> str:
        """The trigger's type, such as httpTrigger."""
        return str(self.trigger["type"])

    @property
    def trigger_parameter(self) -> Parameter:
        return self.inputs[str(self.trigger["name"])]

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.call)

    def binding(self, name: str) -> BindingDocument:
        return next(binding for binding in self.bindings if binding["name"] == name)


def load_app(module_name: str, folder: Path) -> func.FunctionRegister:
    """Import the app's module from `folder` and return its one top-level app object.

    Raises:
        AppError: no such module, not exactly one app object in it, or it refuses its settings.
    """
    sys.path.insert(0, str(folder))
    if importlib.util.find_spec(module_name) is None:
        raise AppError(f"no module {module_name} in {folder}: name it with --app")
    try:
        module = importlib.import_module(module_name)
    except ValueError as refused:  # as an app says that a setting is wrong
        raise AppError(f"{module_name} refuses to start. {refused}") from refused
    apps = {id(value): value for value in vars(module).values() if isinstance(value, func.FunctionRegister)}
    if len(apps) != 1:
        raise AppError(
            f"{module_name} must have exactly one top-level function app object, it has {len(apps)}"
        )
    return next(iter(apps.values()))


def index_functions(app: func.FunctionRegister) -> list[HostedFunction]:
    """Describe every function of the app. Call once: `get_functions()` raises on its second call.

    Raises:
        AppError: a function that the worker would refuse to load, or that this host does not serve.
    """
    return [_describe(function) for function in app.get_functions()]


def _describe(function: Any) -> HostedFunction:
    name: str = function.get_function_name()
    call = function.get_user_function()
    bindings = tuple(json.loads(raw) for raw in function.get_raw_bindings())
    triggers = [binding for binding in bindings if binding["type"].lower().endswith("trigger")]
    if len(triggers) != 1 or triggers[0]["type"] not in TRIGGERS:
        raise AppError(f"function {name}: this host serves {', '.join(sorted(TRIGGERS))}, one per function")
    parameters = dict(inspect.signature(call).parameters)
    annotations = typing.get_type_hints(call)
    named = {binding["name"]: binding for binding in bindings if binding["name"] != "$return"}
    wants_context = "context" in parameters and "context" not in named
    if wants_context:
        parameters.pop("context")
    if set(parameters) != set(named):
        raise AppError(
            f"function {name}: parameters {sorted(parameters)} do not match its bindings {sorted(named)}"
        )
    bound = {key: _parameter(name, binding, annotations) for key, binding in named.items()}
    return HostedFunction(
        name=name,
        call=call,
        folder=str(Path(inspect.getfile(inspect.unwrap(call))).parent),
        bindings=bindings,
        trigger=triggers[0],
        inputs={key: bound[key] for key, binding in named.items() if binding["direction"] == "IN"},
        outputs={key: bound[key] for key, binding in named.items() if binding["direction"] == "OUT"},
        returns=_return_parameter(name, bindings, triggers[0], annotations),
        wants_context=wants_context,
    )


def _parameter(function_name: str, binding: BindingDocument, annotations: Mapping[str, Any]) -> Parameter:
    is_output = binding["direction"] == "OUT"
    allowed = OUTPUTS if is_output else INPUTS | TRIGGERS
    if binding["type"] not in allowed:
        raise AppError(f"function {function_name}: this host does not serve the binding {binding['type']}")
    annotation = annotations.get(binding["name"])
    if is_output and annotation is not None:
        if getattr(typing.get_origin(annotation), "__name__", "") != "Out":
            raise AppError(
                f"function {function_name}: output {binding['name']} must be annotated func.Out[...]"
            )
        annotation = typing.get_args(annotation)[0]
    # The worker hands str and bytes to its generic converter, except where the trigger has an implicit
    # output.
    generic = annotation in {str, bytes} and binding["type"] not in IMPLICIT_RETURN
    deferred = not is_output and is_sdk_type(annotation)
    parameter = Parameter(binding["name"], "generic" if generic else binding["type"], annotation, deferred)
    check_annotation(function_name, parameter, is_output=is_output)
    return parameter


def _return_parameter(
    function_name: str,
    bindings: tuple[BindingDocument, ...],
    trigger: BindingDocument,
    annotations: Mapping[str, Any],
) -> Parameter | None:
    explicit = next((binding for binding in bindings if binding["name"] == "$return"), None)
    if explicit is not None:
        check_return(function_name, explicit["type"], annotations.get("return"))
        return Parameter("$return", explicit["type"], annotations.get("return"))
    if trigger["type"] in IMPLICIT_RETURN:
        return Parameter("$return", trigger["type"], annotations.get("return"))
    return None
