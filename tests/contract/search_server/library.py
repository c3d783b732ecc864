"""A small library of books for every kind of search, with vectors that can be verified by hand."""

from typing import Any

DIMENSIONS = 4

FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "Edm.String", "key": True, "sortable": True},
    {"name": "title", "type": "Edm.String", "sortable": True},
    {"name": "content", "type": "Edm.String", "filterable": False},
    {"name": "code", "type": "Edm.String", "analyzer": "keyword"},
    {"name": "genre", "type": "Edm.String", "searchable": False},
    {"name": "pages", "type": "Edm.Int32"},
    {"name": "price", "type": "Edm.Double"},
    {"name": "printed", "type": "Edm.DateTimeOffset"},
    {"name": "in_stock", "type": "Edm.Boolean"},
    {"name": "tags", "type": "Collection(Edm.String)"},
    {"name": "access_control_list", "type": "Collection(Edm.String)", "searchable": False},
    {
        "name": "secret_note",
        "type": "Edm.String",
        "retrievable": False,
        "filterable": False,
        "searchable": False,
    },
    {
        "name": "vector",
        "type": "Collection(Edm.Single)",
        "searchable": True,
        "dimensions": DIMENSIONS,
        "vectorSearchProfile": "exact",
    },
]

PARTS: dict[str, Any] = {
    "vectorSearch": {
        "algorithms": [
            {"name": "knn", "kind": "exhaustiveKnn", "exhaustiveKnnParameters": {"metric": "cosine"}}
        ],
        "profiles": [{"name": "exact", "algorithm": "knn"}],
    },
    "suggesters": [
        {"name": "sg", "searchMode": "analyzingInfixMatching", "sourceFields": ["title", "content"]}
    ],
    "semantic": {
        "configurations": [
            {
                "name": "books",
                "prioritizedFields": {
                    "titleField": {"fieldName": "title"},
                    "prioritizedContentFields": [{"fieldName": "content"}],
                    "prioritizedKeywordsFields": [{"fieldName": "tags"}],
                },
            }
        ]
    },
}


def _book(number: int, title: str, content: str, **rest: Any) -> dict[str, Any]:
    vector = [0.0] * DIMENSIONS
    vector[(number - 1) % DIMENSIONS] = 1.0
    return {"id": str(number), "title": title, "content": content, "vector": vector, **rest}


BOOKS: list[dict[str, Any]] = [
    _book(
        1, "Pumps and valves",
        "A valve controls the flow. Running pumps need valves that close. Safety comes first.",
        code="AB-100", genre="engineering", pages=320, price=49.5, printed="2020-03-01T00:00:00Z",
        in_stock=True,
        tags=["water", "pressure"], access_control_list=["*"], secret_note="heron",
    ),
    _book(
        2, "Garden birds", "Birds in the garden. The wren is a small bird; it sings loudly.",
        code="AB-200", genre="nature", pages=120, price=15.0, printed="2021-06-15T12:30:00Z", in_stock=False,
        tags=["birds"], access_control_list=["u123", "biology"],
    ),
    _book(
        3, "Water birds", "Herons and ducks live by the water. A heron stands in the flow of a river.",
        code="AB-201", genre="nature", pages=240, price=22.5, printed="2022-01-31T23:59:59.5Z", in_stock=True,
        tags=["birds", "water"], access_control_list=["biology"],
    ),
    _book(
        4, "The price of water", "Markets for water. Nobody knows what a river is worth.",
        code="EC-300", genre="economics", pages=410, price=35.0, printed="2019-11-05T08:00:00+02:00",
        tags=[], access_control_list=["u123"],
    ),
    _book(5, "Empty notebook", "", genre=None, tags=["paper"], access_control_list=[]),
]  # fmt: skip
