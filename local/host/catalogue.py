"""Loads the function app: imports it, checks its functions and describes them to the host.

Functions that the real worker rejects, or that this host doesn't support, are errors at start, so that no
trigger is ignored.
"""

import importlib.util
import inspect
import json
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import azure.functions as func
import azurefunctions.extensions.base as extension_base

from local.host.conversion import Parameter, converter_for, is_sdk_type
from local.host.settings import AppError
from local.host.wire import BindingDocument, FunctionDocument

STREAMING_HINT = "import azurefunctions.extensions.http.fastapi and annotate its Request"


def check_annotation(function_name: str, parameter: Parameter) -> None:
    """Raise an error if the real worker would reject a parameter's annotation. A missing annotation is always
    accepted.

    Raises:
        AppError: if the annotation doesn't match the binding.
    """
    if parameter.binding_type == "httpTrigger":
        _check_http(function_name, parameter)
        return
    annotation = parameter.annotation
    if annotation is None:
        return
    if not inspect.isclass(annotation):
        _check_generic(function_name, parameter)
        return
    converter = converter_for(parameter.binding_type, deferred=parameter.deferred)
    if not converter.check_input_type_annotation(annotation):
        raise AppError(
            f"function {function_name}: parameter {parameter.name} is annotated {annotation.__name__}, "
            f"which does not fit the binding {parameter.binding_type}"
        )


def check_return(function_name: str, annotation: object) -> None:
    """Raise an error if the real worker would reject the return annotation of an HTTP function.

    Raises:
        AppError: if the annotation is a generic such as dict[str, str], or a type that cannot be sent.
    """
    is_sent = inspect.isclass(annotation) and extension_base.ResponseTrackerMeta.check_type(annotation)
    if annotation is not None and not is_sent:
        raise AppError(
            f"function {function_name}: the worker rejects the return annotation {annotation}; a plain class "
            "such as dict is accepted"
        )


def _check_generic(function_name: str, parameter: Parameter) -> None:
    # The worker supports generics of typing, such as typing.Dict[str, int], but not dict[str, int] or unions.
    is_builtin_generic = isinstance(parameter.annotation, types.GenericAlias | types.UnionType)
    is_generic = not is_builtin_generic and inspect.isclass(typing.get_origin(parameter.annotation))
    if not (is_generic and parameter.binding_type == "activityTrigger"):
        raise AppError(
            f"function {function_name}: the worker rejects the annotation {parameter.annotation} "
            f"of parameter {parameter.name}; a plain class such as dict or object is accepted"
        )


def _check_http(function_name: str, parameter: Parameter) -> None:
    # This host supports only the streaming extension. In Azure, importing it anywhere enables it for the
    # whole app.
    if not extension_base.HttpV2FeatureChecker.http_v2_enabled():
        raise AppError(f"function {function_name}: {STREAMING_HINT}")
    annotation = parameter.annotation
    if annotation is not None and not extension_base.RequestTrackerMeta.check_type(annotation):
        raise AppError(
            f"function {function_name}: parameter {parameter.name} is annotated {annotation.__name__}; "
            f"{STREAMING_HINT}"
        )


TRIGGERS = frozenset(
    {"httpTrigger", "blobTrigger", "queueTrigger", "timerTrigger", "orchestrationTrigger", "activityTrigger"}
)


INPUTS = frozenset({"durableClient"})
IMPLICIT_RETURN = frozenset({"orchestrationTrigger", "activityTrigger"})


@dataclass(frozen=True)
class HostedFunction:
    """A function of the app, with its bindings and parameters."""

    name: str
    call: Callable[..., Any]
    bindings: tuple[BindingDocument, ...]
    trigger: BindingDocument
    inputs: Mapping[str, Parameter]
    returns: Parameter | None

    @property
    def kind(self) -> str:
        """The type of the trigger, such as "httpTrigger"."""
        return str(self.trigger["type"])

    @property
    def trigger_parameter(self) -> Parameter:
        return self.inputs[str(self.trigger["name"])]

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.call)

    @property
    def document(self) -> FunctionDocument:
        """The description of the function that the host receives."""
        return FunctionDocument(self.name, self.bindings, self.trigger, self.trigger_parameter.deferred)


def load_app(module_name: str, folder: Path) -> func.FunctionRegister:
    """Import the app's module from `folder` and return its function app object.

    Raises:
        AppError: if the module is missing, doesn't have exactly one app object, or rejects its settings.
    """
    sys.path.insert(0, str(folder))
    if importlib.util.find_spec(module_name) is None:
        raise AppError(f"there is no module {module_name} in {folder}; choose one with --app")
    try:
        module = importlib.import_module(module_name)
    except ValueError as refused:  # the app raises ValueError if a setting is invalid
        raise AppError(f"{module_name} failed to start. {refused}") from refused
    apps = {id(value): value for value in vars(module).values() if isinstance(value, func.FunctionRegister)}
    if len(apps) != 1:
        raise AppError(
            f"{module_name} must have exactly one top-level function app object, but has {len(apps)}"
        )
    return next(iter(apps.values()))


def index_functions(app: func.FunctionRegister) -> list[HostedFunction]:
    """Return a description of every function. Call this once per app, because a second `get_functions()`
    raises an error.

    Raises:
        AppError: if the real worker would reject a function, or this host doesn't support it.
    """
    return [_describe(function) for function in app.get_functions()]


def _describe(function: Any) -> HostedFunction:
    name: str = function.get_function_name()
    call = function.get_user_function()
    bindings = tuple(json.loads(raw) for raw in function.get_raw_bindings())
    triggers = [binding for binding in bindings if binding["type"].lower().endswith("trigger")]
    if len(triggers) != 1 or triggers[0]["type"] not in TRIGGERS:
        raise AppError(f"function {name}: exactly one trigger is required: {', '.join(sorted(TRIGGERS))}")
    parameters = dict(inspect.signature(call).parameters)
    annotations = typing.get_type_hints(call)
    by_name = {binding["name"]: binding for binding in bindings if binding["name"] != "$return"}
    if set(parameters) != set(by_name):
        raise AppError(
            f"function {name}: parameters {sorted(parameters)} do not match its bindings {sorted(by_name)}"
        )
    bound = {key: _parameter(name, binding, annotations) for key, binding in by_name.items()}
    return HostedFunction(
        name=name,
        call=call,
        bindings=bindings,
        trigger=triggers[0],
        inputs=bound,
        returns=_return_parameter(name, bindings, triggers[0], annotations),
    )


def _parameter(function_name: str, binding: BindingDocument, annotations: Mapping[str, Any]) -> Parameter:
    if binding["direction"] == "OUT" or binding["type"] not in INPUTS | TRIGGERS:
        raise AppError(f"function {function_name}: this host does not support the binding {binding['type']}")
    annotation = annotations.get(binding["name"])
    # For str and bytes, the worker uses its generic converter, unless the trigger has an implicit output.
    generic = annotation in {str, bytes} and binding["type"] not in IMPLICIT_RETURN
    kind = "generic" if generic else binding["type"]
    parameter = Parameter(binding["name"], kind, annotation, is_sdk_type(annotation))
    check_annotation(function_name, parameter)
    return parameter


def _return_parameter(
    function_name: str,
    bindings: tuple[BindingDocument, ...],
    trigger: BindingDocument,
    annotations: Mapping[str, Any],
) -> Parameter | None:
    explicit = next((binding for binding in bindings if binding["name"] == "$return"), None)
    if explicit is not None:
        if explicit["type"] != "http":
            raise AppError(
                f"function {function_name}: this host does not support the output binding {explicit['type']}"
            )
        check_return(function_name, annotations.get("return"))
        return Parameter("$return", explicit["type"], annotations.get("return"))
    if trigger["type"] in IMPLICIT_RETURN:
        return Parameter("$return", trigger["type"], annotations.get("return"))
    return None
