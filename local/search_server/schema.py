"""The schema of an index: the fields of its definition by path, each with a column number."""

from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from local.search_server import analyzers, edm
from local.search_server.definition import (
    FieldDefinition,
    IndexDefinition,
    SemanticConfiguration,
    VectorSearch,
    check_definition,
)
from local.search_server.errors import RequestError

JsonObject = dict[str, JsonValue]


@dataclass(frozen=True)
class Field:
    """A field of an index. `number` is its position in the definition, which is stable because fields can
    only be appended.
    """

    number: int
    path: str
    definition: FieldDefinition

    @property
    def type(self) -> str:
        return self.definition.type

    @property
    def element_type(self) -> str | None:
        return edm.element_type(self.type)

    @property
    def is_vector(self) -> bool:
        return self.type == edm.VECTOR

    @property
    def is_text(self) -> bool:
        return bool(self.definition.searchable) and not self.is_vector

    @property
    def has_column(self) -> bool:
        """Whether the field has an SQL column, which filters, sorting and facets use."""
        attributes = self.definition
        is_queried = attributes.filterable or attributes.sortable or attributes.facetable or attributes.key
        return bool(is_queried) and self.type in edm.SCALAR_TYPES

    @property
    def has_elements(self) -> bool:
        """Whether the field is a collection whose elements are stored for filters or facets."""
        is_queried = self.definition.filterable or self.definition.facetable
        return bool(is_queried) and self.element_type in edm.SCALAR_TYPES

    @property
    def column(self) -> str:
        return f"c{self.number}"

    @property
    def analyzer(self) -> str:
        return self.definition.analyzer or analyzers.STANDARD


class Schema:
    """The validated fields of one index, by path.

    Raises:
        RequestError: 400, if the definition is inconsistent or uses an unsupported feature.
    """

    def __init__(self, definition: IndexDefinition) -> None:
        check_definition(definition)
        self.definition = definition
        profiles = _profiles(definition)
        self.fields: dict[str, Field] = {}
        for number, one in enumerate(definition.fields):
            if one.type == edm.VECTOR and one.vector_search_profile not in profiles:
                raise RequestError(
                    f"The vector field '{one.name}' names the unknown vector search profile"
                    f" '{one.vector_search_profile}'."
                )
            self.fields[one.name] = Field(number, one.name, one)
        self.key = next(field for field in self.fields.values() if field.definition.key)
        self._check_references()

    @cached_property
    def text_fields(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields.values() if field.is_text)

    @cached_property
    def vector_fields(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields.values() if field.is_vector)

    @cached_property
    def column_fields(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields.values() if field.has_column)

    @cached_property
    def element_fields(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields.values() if field.has_elements)

    def field(self, path: str, purpose: str) -> Field:
        """Return the field with the given path.

        Raises:
            RequestError: 400, if there is none; the message names the parameter in `purpose`.
        """
        try:
            return self.fields[path]
        except KeyError:
            raise RequestError(
                f"Invalid expression in {purpose}: Could not find a property named '{path}' on type"
                " 'search.document'."
            ) from None

    def semantic_configuration(self, name: str | None) -> SemanticConfiguration:
        semantic = self.definition.semantic
        chosen = name or (semantic.default_configuration if semantic else None)
        if semantic is None or chosen is None:
            raise RequestError(
                "A semantic query needs a 'semanticConfiguration', or a default configuration in the index."
            )
        for configuration in semantic.configurations:
            if configuration.name == chosen:
                return configuration
        raise RequestError(f"Unknown semantic configuration '{chosen}'.")

    def _check_references(self) -> None:
        """Raise an error if a suggester or semantic configuration names an unknown field or one that isn't
        text.
        """
        definition = self.definition
        for path in (path for one in definition.suggesters for path in one.source_fields):
            if not self.field(path, "suggesters").is_text:
                raise RequestError(f"The field '{path}' in suggesters must be searchable text.")
        configurations = definition.semantic.configurations if definition.semantic else []
        for path in (path for one in configurations for path in semantic_paths(one)):
            if edm.STRING not in self.field(path, "semantic").type:
                raise RequestError(f"The semantic field '{path}' must be text.")


def semantic_paths(configuration: SemanticConfiguration) -> list[str]:
    """Return the field paths of a semantic configuration: title, then content, then keywords."""
    fields = configuration.prioritized_fields
    title = [fields.title_field] if fields.title_field else []
    ordered = [*title, *fields.prioritized_content_fields, *fields.prioritized_keywords_fields]
    return [field.field_name for field in ordered]


def values_at(body: JsonObject, path: str) -> list[JsonValue]:
    """Return the values of a field in a document: the elements of a collection, one scalar, or nothing for
    null.
    """
    value = body.get(path)
    return value if isinstance(value, list) else [] if value is None else [value]


def _profiles(definition: IndexDefinition) -> set[str]:
    """Return the names of the vector profiles. Raise an error if one names an unknown algorithm."""
    vector_search = definition.vector_search or VectorSearch()
    algorithms = {algorithm.name for algorithm in vector_search.algorithms or []}
    for profile in vector_search.profiles or []:
        if profile.algorithm not in algorithms:
            raise RequestError(
                f"The vector profile '{profile.name}' names the unknown algorithm '{profile.algorithm}'."
            )
    return {profile.name for profile in vector_search.profiles or []}
