"""Hotels that satisfy the assertions of Microsoft's live tests. The source distribution doesn't contain the
original ones.

The tests expect ten hotels, `hotel` in seven and `motel` in two of them, `WiFi` in four Budget and one Luxury
hotel, and the description of hotel 2 and the name of hotel 9 as the suggestions for `mot`.
"""

import json
from pathlib import Path
from typing import Any

# Name, category and description of each hotel
HOTELS = (
    ("Tall Palace", "Luxury", "Best hotel in town for travellers with taste. Pool, spa and free WiFi."),
    ("Roadside Rest", "Budget", "Cheapest hotel in town. Infact, a motel."),
    ("Evergreen Lodge", "Budget", "A quiet hotel near the station. WiFi in every room."),
    ("Lakeview Suites", "Budget", "Small hotel by the lake, with WiFi and breakfast."),
    ("Harbour Inn", "Budget", "Plain rooms at the harbour. WiFi for a fee."),
    ("Pine Cabins", "Boutique", "Wooden cabins in the forest, no television."),
    ("Grand Central", "Luxury", "A very good hotel right in the centre."),
    ("Old Mill", "Boutique", "This hotel was a mill for two hundred years."),
    ("Secret Point Motel", "Budget", "Rooms by the highway, parking at the door, free WiFi."),
    ("Ocean Breeze", "Resort", "A hotel on the beach for large families."),
)
LARGE_COUNT = 60


def write_hotels(folder: Path) -> None:
    """Write the three fixture files under the names that the live tests expect."""
    _write(folder / "hotel_schema.json", _schema())
    _write(folder / "hotel_small.json", {"value": [_hotel(number) for number in range(1, len(HOTELS) + 1)]})
    _write(folder / "hotel_large.json", {"value": [_hotel(number) for number in range(1, LARGE_COUNT + 1)]})


def _hotel(number: int) -> dict[str, Any]:
    name, category, description = HOTELS[(number - 1) % len(HOTELS)]
    return {
        "hotelId": str(number),
        "hotelName": name,
        "category": category,
        "description": description,
        "tags": ["pool", "view"][: number % 3],
        "parkingIncluded": number % 2 == 0,
        "smokingAllowed": False,
        "lastRenovationDate": f"20{number % 20:02d}-06-27T00:00:00Z",
        "rating": number % 5 + 1,
        "rooms": ["Standard room"][: number % 2],
    }


def _schema() -> dict[str, Any]:
    text = {"searchable": True, "filterable": True, "sortable": False, "facetable": False}
    plain = {"searchable": False, "filterable": True, "sortable": True, "facetable": True}
    return {
        "name": "drgqefsg",
        "fields": [
            {"name": "hotelId", "type": "Edm.String", "key": True, **plain},
            {"name": "hotelName", "type": "Edm.String", **text, "sortable": True},
            {"name": "category", "type": "Edm.String", **plain, "searchable": True},
            {"name": "description", "type": "Edm.String", **text, "filterable": False},
            {"name": "tags", "type": "Collection(Edm.String)", **text},
            {"name": "parkingIncluded", "type": "Edm.Boolean", **plain},
            {"name": "smokingAllowed", "type": "Edm.Boolean", **plain},
            {"name": "lastRenovationDate", "type": "Edm.DateTimeOffset", **plain},
            {"name": "rating", "type": "Edm.Int32", **plain},
            {"name": "rooms", "type": "Collection(Edm.String)", **text},
        ],
        "suggesters": [
            {
                "name": "sg",
                "searchMode": "analyzingInfixMatching",
                "sourceFields": ["description", "hotelName"],
            }
        ],
    }


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1))
