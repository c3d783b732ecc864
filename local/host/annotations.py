"""Checks a parameter's annotation against its binding, as the worker does when it loads a function."""

import inspect
import types
import typing

import azurefunctions.extensions.base as extension_base

from local.host.conversion import Parameter, converter_for
from local.host.errors import AppError

STREAMING_HINT = "import azurefunctions.extensions.http.fastapi and annotate its Request"


def check_annotation(function_name: str, parameter: Parameter, *, is_output: bool) -> None:
    """Refuse an annotation that the worker refuses. No annotation is always right.

    Raises:
        AppError: the annotation does not fit the binding.
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
    fits = (
        converter.check_output_type_annotation(annotation)
        if is_output
        else converter.check_input_type_annotation(annotation)
    )
    if not fits:
        raise AppError(
            f"function {function_name}: parameter {parameter.name} is annotated {annotation.__name__}, "
            f"which does not fit the binding {parameter.binding_type}"
        )


def check_return(function_name: str, binding_type: str, annotation: object) -> None:
    """Refuse the return annotation of a function with a $return binding that the worker refuses.

    Raises:
        AppError: a generic such as dict[str, str], or a type that the binding cannot send.
    """
    if annotation is None:
        return
    fits = inspect.isclass(annotation) and (
        extension_base.ResponseTrackerMeta.check_type(annotation)
        if binding_type == "http"
        else converter_for(binding_type).check_output_type_annotation(annotation)
    )
    if not fits:
        raise AppError(
            f"function {function_name}: the worker refuses the return annotation {annotation} "
            f"for the binding {binding_type}; a plain class such as dict is accepted"
        )


def _check_generic(function_name: str, parameter: Parameter) -> None:
    # The worker knows typing's generics (typing.Dict[str, int]) but neither dict[str, int] nor unions.
    is_builtin_generic = isinstance(parameter.annotation, types.GenericAlias | types.UnionType)
    is_generic = not is_builtin_generic and inspect.isclass(typing.get_origin(parameter.annotation))
    if not (is_generic and parameter.binding_type == "activityTrigger"):
        raise AppError(
            f"function {function_name}: the worker refuses the annotation {parameter.annotation} "
            f"of parameter {parameter.name}; a plain class such as dict or object is accepted"
        )


def _check_http(function_name: str, parameter: Parameter) -> None:
    # This host serves the streaming extension only; importing it anywhere switches the whole app in Azure,
    # too.
    if not extension_base.HttpV2FeatureChecker.http_v2_enabled():
        raise AppError(f"function {function_name}: {STREAMING_HINT}")
    annotation = parameter.annotation
    if annotation is not None and not extension_base.RequestTrackerMeta.check_type(annotation):
        raise AppError(
            f"function {function_name}: parameter {parameter.name} is annotated {annotation.__name__}; "
            f"{STREAMING_HINT}"
        )
