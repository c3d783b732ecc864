"""Checks a parameter's annotation against its binding, as the worker does when it loads a function."""

import inspect

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
    if annotation is None or not inspect.isclass(annotation):
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
