"""Compares responses with the served API description: status, media type, headers and schema."""

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import httpx
import jsonschema_rs

STREAM_TYPE = "text/event-stream"
JSON_TYPES = ("application/json", "application/problem+json")


class Described:
    """An API description that checks responses. `seen` contains the checked calls, each with its status."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._validators: dict[str, Any] = {}
        self.seen: set[tuple[str, int]] = set()

    def check(self, answer: httpx.Response) -> None:
        """Raise AssertionError unless the response matches the description. This is an event hook of httpx
        clients.
        """
        answer.read()
        match = self.operation(answer.request.method, answer.request.url.raw_path.decode())
        if match is None:
            return  # the host answers this request, so it isn't a call of the API
        name, operation = match
        self.seen.add((name, answer.status_code))
        about = f"{name} {answer.status_code}"
        described = self._response(operation, answer.status_code)
        assert described is not None, f"{about}: the status is not described"
        self._check_headers(described, answer, about)
        self._check_content(described.get("content", {}), answer, about)

    def check_example(self, schema: Mapping[str, Any], media_type: str, example: Any, about: str) -> None:
        """Raise AssertionError unless an example matches its schema. The example of a stream is the text of
        its events.
        """
        for body in _events(example) if media_type == STREAM_TYPE else [example]:
            self._validate(schema, body, about)

    def call_named(self, name: str) -> tuple[tuple[str, str], Mapping[str, Any]]:
        """Return the (path, method) of a call and its description."""
        paths = self._document["paths"]
        return next(
            ((path, method), call)
            for path, methods in paths.items()
            for method, call in methods.items()
            if call["operationId"] == name
        )

    def operations(self) -> Iterator[Mapping[str, Any]]:
        """Yield all described operations."""
        for methods in self._document["paths"].values():
            yield from methods.values()

    def operation(self, method: str, raw_path: str) -> tuple[str, Mapping[str, Any]] | None:
        """Return the name and description of the operation that a request reaches, or None. Literal paths
        take precedence over paths with parameters.
        """
        parts = raw_path.partition("?")[0].removeprefix("/api").rstrip("/").split("/")
        for path, methods in self._by_literals:
            if method.lower() in methods and _fits(path.split("/"), parts):
                operation = methods[method.lower()]
                return operation["operationId"], operation
        return None

    @cached_property
    def _by_literals(self) -> list[tuple[str, Mapping[str, Any]]]:
        paths: Mapping[str, Mapping[str, Any]] = self._document["paths"]
        return sorted(paths.items(), key=lambda item: [part[:1] == "{" for part in item[0].split("/")])

    def _response(self, operation: Mapping[str, Any], status: int) -> Mapping[str, Any] | None:
        responses: Mapping[str, Mapping[str, Any]] = operation["responses"]
        return responses.get(str(status)) or responses.get(f"{status // 100}XX")

    def _check_headers(self, described: Mapping[str, Any], answer: httpx.Response, about: str) -> None:
        for name, header in described.get("headers", {}).items():
            if name in answer.headers:
                self._validate(header["schema"], answer.headers[name], f"{about} {name}")

    def _check_content(self, contents: Mapping[str, Any], answer: httpx.Response, about: str) -> None:
        if not contents:
            assert answer.content == b"", f"{about}: a body is not described"
            return
        media_type = answer.headers["content-type"].partition(";")[0]
        assert media_type in contents, f"{about}: {media_type} is not described"
        schema = contents[media_type].get("schema")
        if schema is not None:
            for body in _bodies(media_type, answer):
                self._validate(schema, body, f"{about} {media_type}")

    def _validate(self, schema: Mapping[str, Any], value: Any, about: str) -> None:
        key = json.dumps(schema, sort_keys=True)
        if key not in self._validators:
            whole = {**schema, "components": self._document["components"]}
            self._validators[key] = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
        errors = [
            f"{error.instance_path}: {error.message}" for error in self._validators[key].iter_errors(value)
        ]
        assert errors == [], f"{about}: {'; '.join(errors)}"


def _bodies(media_type: str, answer: httpx.Response) -> list[Any]:
    """Return the values that the schema describes: the body, or each event of a stream."""
    if media_type != STREAM_TYPE:
        return [json.loads(answer.content) if media_type in JSON_TYPES else answer.text]
    return _events(answer.text)


def _events(text: str) -> list[Any]:
    frames = [frame.split("\n") for frame in text.split("\n\n")]
    # Split at line feeds only, because str.splitlines also splits at other characters that a text may
    # contain.
    return [
        dict(line.split(": ", 1) for line in lines)
        for lines in frames
        if lines != [""] and lines[0][0] != ":"
    ]


def _fits(template: list[str], parts: list[str]) -> bool:
    return len(template) == len(parts) and all(
        segment[:1] == "{" or segment == part for segment, part in zip(template, parts, strict=True)
    )
