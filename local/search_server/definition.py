"""Index definitions as JSON: strict validation, and the default values that the service adds."""

import re
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from local.search_server import analyzers, edm
from local.search_server.errors import RequestError

_INDEX_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9]|-(?!-)){0,126}[a-z0-9]")
_FIELD_NAME: Final = re.compile(r"(?!azureSearch)[A-Za-z][A-Za-z0-9_]{0,127}")
MAX_DIMENSIONS: Final = 4096


class WireModel(BaseModel):
    """Base of the wire models: camelCase in JSON, immutable, and unknown properties are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class FieldDefinition(WireModel):
    name: str
    type: str
    key: bool | None = None
    retrievable: bool | None = None
    stored: bool | None = None
    searchable: bool | None = None
    filterable: bool | None = None
    sortable: bool | None = None
    facetable: bool | None = None
    analyzer: str | None = None
    search_analyzer: str | None = None
    index_analyzer: str | None = None
    normalizer: str | None = None
    dimensions: int | None = None
    vector_search_profile: str | None = None
    vector_encoding: str | None = None
    synonym_maps: list[str] | None = None

    def with_defaults(self) -> Self:
        """Return the field with defaults for all attributes that the request omitted, as the service returns
        it.
        """
        is_text = edm.STRING in self.type
        ordinary = self.type != edm.VECTOR
        defaults = {
            "key": False,
            "retrievable": True,
            "stored": True,
            "searchable": is_text,
            "filterable": ordinary,
            "sortable": self.type in edm.SCALAR_TYPES,
            "facetable": ordinary,
            "synonym_maps": [],
        }
        values = {name: getattr(self, name) for name in defaults}
        return self.model_copy(
            update={name: default for name, default in defaults.items() if values[name] is None}
        )


class Suggester(WireModel):
    name: str
    search_mode: Literal["analyzingInfixMatching"] = "analyzingInfixMatching"
    source_fields: list[str] = Field(min_length=1)


class SemanticField(WireModel):
    field_name: str


class PrioritizedFields(WireModel):
    title_field: SemanticField | None = None
    prioritized_content_fields: list[SemanticField] = []
    prioritized_keywords_fields: list[SemanticField] = []


class SemanticConfiguration(WireModel):
    name: str
    prioritized_fields: PrioritizedFields
    ranking_order: str | None = None


class Semantic(WireModel):
    default_configuration: str | None = None
    configurations: list[SemanticConfiguration] = []


class VectorProfile(WireModel):
    name: str
    algorithm: str
    vectorizer: str | None = None
    compression: str | None = None


Metric = Literal["cosine"]


class HnswParameters(WireModel):
    """Parameters of an HNSW index. They are stored but not used, because this server searches
    exhaustively.
    """

    metric: Metric = "cosine"
    m: int = 4
    ef_construction: int = 400
    ef_search: int = 500


class ExhaustiveKnnParameters(WireModel):
    metric: Metric = "cosine"


class VectorAlgorithm(WireModel):
    name: str
    kind: Literal["hnsw", "exhaustiveKnn"]
    hnsw_parameters: HnswParameters | None = None
    exhaustive_knn_parameters: ExhaustiveKnnParameters | None = None

    def with_defaults(self) -> Self:
        if self.kind == "hnsw":
            return self.model_copy(update={"hnsw_parameters": self.hnsw_parameters or HnswParameters()})
        parameters = self.exhaustive_knn_parameters or ExhaustiveKnnParameters()
        return self.model_copy(update={"exhaustive_knn_parameters": parameters})


class VectorSearch(WireModel):
    profiles: list[VectorProfile] | None = None
    algorithms: list[VectorAlgorithm] | None = None
    vectorizers: list[dict[str, JsonValue]] | None = None
    compressions: list[dict[str, JsonValue]] | None = None


class IndexDefinition(WireModel):
    name: str
    description: str | None = None
    fields: list[FieldDefinition] = Field(min_length=1)
    scoring_profiles: list[dict[str, JsonValue]] = []
    default_scoring_profile: str | None = None
    cors_options: dict[str, JsonValue] | None = None
    suggesters: list[Suggester] = []
    analyzers: list[dict[str, JsonValue]] = []
    normalizers: list[dict[str, JsonValue]] = []
    tokenizers: list[dict[str, JsonValue]] = []
    token_filters: list[dict[str, JsonValue]] = []
    char_filters: list[dict[str, JsonValue]] = []
    encryption_key: dict[str, JsonValue] | None = None
    similarity: dict[str, JsonValue] | None = None
    semantic: Semantic | None = None
    vector_search: VectorSearch | None = None
    etag: str | None = Field(default=None, alias="@odata.etag")
    context: str | None = Field(default=None, alias="@odata.context")

    def with_defaults(self) -> Self:
        fields = [field.with_defaults() for field in self.fields]
        vector_search = self.vector_search
        if vector_search is not None:
            algorithms = [algorithm.with_defaults() for algorithm in vector_search.algorithms or []]
            vector_search = vector_search.model_copy(update={"algorithms": algorithms})
        return self.model_copy(
            update={"fields": fields, "vector_search": vector_search, "etag": None, "context": None}
        )


def check_definition(definition: IndexDefinition) -> None:
    """Raise an error if the service would reject the definition, or if it contains anything that this server
    would ignore.

    Raises:
        RequestError: 400, naming the field or part.
    """
    if not _INDEX_NAME.fullmatch(definition.name):
        raise RequestError(
            f"Invalid index name '{definition.name}': use lower-case letters, digits and single dashes only."
        )
    keys = [field.name for field in definition.fields if field.key]
    if len(keys) != 1:
        raise RequestError(f"The index must have exactly one key field; found {keys}.")
    _check_names(definition.fields)
    for field in definition.fields:
        _check_field(field)
    if definition.default_scoring_profile is not None:
        raise RequestError(
            "Scoring profiles are not applied by the local search server; remove defaultScoringProfile."
        )


def _check_names(fields: list[FieldDefinition]) -> None:
    seen: set[str] = set()
    for field in fields:
        if not _FIELD_NAME.fullmatch(field.name):
            raise RequestError(f"Invalid field name '{field.name}'.")
        if field.name.lower() in seen:
            raise RequestError(f"The field name '{field.name}' is used twice.")
        seen.add(field.name.lower())


def _check_field(field: FieldDefinition) -> None:
    element = edm.element_type(field.type)
    base = element or field.type
    if field.type == edm.VECTOR:
        _check_vector_field(field)
    elif base not in edm.SCALAR_TYPES:
        raise RequestError(f"The type '{field.type}' of field '{field.name}' is not supported.")
    if field.key and field.type != edm.STRING:
        raise RequestError(f"The key field '{field.name}' must be an {edm.STRING}.")
    _check_text_attributes(field, base)
    if field.sortable and element:
        raise RequestError(f"The field '{field.name}' of type '{field.type}' cannot be sortable.")


def _check_text_attributes(field: FieldDefinition, base: str) -> None:
    if field.searchable and base != edm.STRING and field.type != edm.VECTOR:
        raise RequestError(f"The field '{field.name}' of type '{field.type}' cannot be searchable.")
    for name in (field.analyzer, field.search_analyzer, field.index_analyzer):
        if name is not None and not analyzers.is_known(name):
            raise RequestError(f"The analyzer '{name}' is not supported by the local search server.")
    if field.normalizer is not None or field.synonym_maps:
        raise RequestError(
            f"'{field.name}': normalizers and synonym maps are not applied by the local search server."
        )


def _check_vector_field(field: FieldDefinition) -> None:
    if field.dimensions is None or not 2 <= field.dimensions <= MAX_DIMENSIONS:
        raise RequestError(
            f"The vector field '{field.name}' needs dimensions between 2 and {MAX_DIMENSIONS}."
        )
    if field.vector_search_profile is None:
        raise RequestError(f"The vector field '{field.name}' needs a vectorSearchProfile.")
    if field.filterable or field.sortable or field.facetable:
        raise RequestError(f"The vector field '{field.name}' cannot be filterable, sortable or facetable.")
