"""What becomes of a definition in a new index, and what rows cannot follow. Pure."""

from shared.clients.index_definition import VALUE_ATTRIBUTES, with_missing_parts
from shared.models.search import IndexRow

Refusal = str

_OF_ONE_INDEX = ("name", "@odata.etag", "@odata.context")


def refusals(existing: IndexRow, wanted: IndexRow) -> list[Refusal]:
    """Why rows of `existing` cannot be rows of `wanted`, such as "vector: dimensions 384, not 1536"."""
    fields: dict[str, IndexRow] = {field["name"]: field for field in existing["fields"]}
    changed = [
        f"{field['name']}: {attribute} {fields[field['name']].get(attribute)}, not {field[attribute]}"
        for field in wanted["fields"]
        if field["name"] in fields
        for attribute in VALUE_ATTRIBUTES
        if field.get(attribute) and field[attribute] != fields[field["name"]].get(attribute)
    ]
    unread = [f"{name}: is not stored" for name, field in fields.items() if field.get("stored") is False]
    return [*changed, *unread]


def new_definition(existing: IndexRow, wanted: IndexRow, name: str) -> IndexRow:
    """`wanted`, with what `existing` has beyond it: whoever still writes the fields of before may do so."""
    rest = {key: value for key, value in existing.items() if key not in _OF_ONE_INDEX}
    return with_nothing_hidden({**with_missing_parts(wanted, rest), "name": name})


def with_nothing_hidden(definition: IndexRow) -> IndexRow:
    """All fields can be read: rows are copied, and compared, by reading them."""
    return {**definition, "fields": [{**field, "retrievable": True} for field in definition["fields"]]}


def hidden_again(existing: IndexRow, wanted: IndexRow) -> IndexRow:
    """`existing`, with those fields hidden that `wanted` hides."""
    hidden = {field["name"] for field in wanted["fields"] if field.get("retrievable") is False}
    fields = [{**field, "retrievable": field["name"] not in hidden} for field in existing["fields"]]
    return {**existing, "fields": fields}
