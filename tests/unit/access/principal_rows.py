"""A table of every kind of principal header that App Service Authentication may send, and the expected
user.
"""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

from shared.access.identity import MAX_HEADER_CHARS

USER, TENANT, OTHER = (
    "6f1c1d0e-52d1-4f0b-9d5b-0d5f1b1e7a01",
    "72f988bf-86f1-41af-91ab-2d7cd011db47",
    "0d4c3b2a-1f0e-4d5c-8b7a-665544332211",
)
MICROSOFT = "http://schemas.microsoft.com/identity/claims/"
WINDOWS = "http://schemas.microsoft.com/ws/2008/06/identity/claims/"
XMLSOAP = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
SOURCES = ("_claim_sources", '{"src1":{"endpoint":"https://graph.windows.net/x/getMemberObjects"}}')
OVERAGE = ("_claim_names", '{"groups":"src1"}')
LOOKED_UP = frozenset({"g7", "g8", "g9"})
ME = ("oid", USER)


def encoded(content: Any) -> str:
    return base64.b64encode(json.dumps(content).encode()).decode()


def header(*claims: tuple[str, str], provider: str = "aad") -> str:
    return encoded(
        {
            "auth_typ": provider,
            "name_typ": f"{XMLSOAP}emailaddress",
            "role_typ": f"{WINDOWS}role",
            "claims": [{"typ": typ, "val": val} for typ, val in claims],
        }
    )


@dataclass(frozen=True)
class Row:
    """A principal header and the expected result.

    Attributes:
        who: fields of the user, or the code of the refusal.
        asks: whether the directory is asked.
    """

    about: str
    header: str
    who: dict[str, Any] | str
    settings: dict[str, Any] = field(default_factory=dict)
    asks: bool = False


NOBODY, CLOSED = "NotAuthenticatedError", "AccessDeniedError"
HIDDEN = {"user_id": USER, "groups": ()}
FOUND = {"user_id": USER, "groups": ("g7", "g8", "g9")}

TABLE = (
    # Claim names
    Row("short names", header(ME, ("tid", TENANT), ("groups", "g1")), {"org_id": TENANT, "groups": ("g1",)}),
    Row(
        "long names",
        header(
            (f"{MICROSOFT}objectidentifier", USER),
            (f"{MICROSOFT}tenantid", TENANT),
            (f"{WINDOWS}groups", "g1"),
            (f"{WINDOWS}role", "admin"),
        ),
        {"user_id": USER, "org_id": TENANT, "groups": ("g1",), "roles": ("admin",)},
    ),
    Row("short and long, the same", header(ME, (f"{MICROSOFT}objectidentifier", USER)), {"user_id": USER}),
    Row(
        "groups under both names",
        header(ME, ("groups", "a"), (f"{WINDOWS}groups", "b")),
        {"groups": ("a", "b")},
    ),
    Row("several roles", header(ME, ("roles", "admin"), ("roles", "reader")), {"roles": ("admin", "reader")}),
    Row("no roles", header(ME), {"roles": ()}),
    Row("a name", header(ME, ("name", "Eva  Lind")), {"name": "Eva Lind"}),
    Row("a display name", header(ME, (f"{MICROSOFT}displayname", "Eva Lind")), {"name": "Eva Lind"}),
    Row("only a mapped name", header(ME, (f"{XMLSOAP}name", "eva@x.example")), {"name": "eva@x.example"}),
    Row(
        "the name before the mapped one",
        header(ME, (f"{XMLSOAP}name", "e"), ("name", "Eva")),
        {"name": "Eva"},
    ),
    Row(
        "claims that nobody knows",
        header(ME, ("ver", "2.0"), ("https://x.example/y", "z")),
        {"user_id": USER},
    ),
    Row("a subject is no user id", header(("sub", USER)), NOBODY),
    Row("nor is its mapped name", header((f"{XMLSOAP}nameidentifier", USER)), NOBODY),
    Row("nor a principal name", header((f"{XMLSOAP}upn", "eva@x.example")), NOBODY),
    Row("claims compare by letter", header(("OID", USER)), NOBODY),
    # Repeated claims
    Row("twice the same person", header(ME, ME), {"user_id": USER}),
    Row("two people", header(ME, ("oid", OTHER)), NOBODY),
    Row("two people, short and long", header(ME, (f"{MICROSOFT}objectidentifier", OTHER)), NOBODY),
    Row("twice the same tenant", header(ME, ("tid", TENANT), ("tid", TENANT)), {"org_id": TENANT}),
    Row("two tenants", header(ME, ("tid", TENANT), ("tid", OTHER)), NOBODY),
    Row("a group twice", header(ME, ("groups", "g"), ("groups", "g")), {"groups": ("g",)}),
    Row("a role twice", header(ME, ("roles", "r"), (f"{WINDOWS}role", "r")), {"roles": ("r",)}),
    Row("two departments", header(ME, ("department", "A"), ("department", "B")), {"department": None}),
    # Unreadable headers
    Row("no header", "", NOBODY),
    Row("no base64", "%%%", NOBODY),
    Row("no JSON", base64.b64encode(b"{").decode(), NOBODY),
    Row("no object", encoded([]), NOBODY),
    Row("no claims", encoded({"auth_typ": "aad"}), NOBODY),
    Row("claims are null", encoded({"auth_typ": "aad", "claims": None}), NOBODY),
    Row("a claim without a value", encoded({"auth_typ": "aad", "claims": [{"typ": "oid"}]}), NOBODY),
    Row(
        "a value that is no text",
        encoded(
            {"auth_typ": "aad", "claims": [{"typ": "oid", "val": USER}, {"typ": "hasgroups", "val": True}]}
        ),
        NOBODY,
    ),
    Row("deep nesting", base64.b64encode(b"[" * 60_000).decode(), NOBODY),
    Row("a header without end", header(ME, ("x", "x" * MAX_HEADER_CHARS)), NOBODY),
    Row("200 groups fit", header(ME, *(("groups", f"{n:036}") for n in range(200))), {"user_id": USER}),
    # Identity providers
    Row("another provider", header(ME, provider="google"), NOBODY),
    Row("a provider without name", header(ME, provider=""), NOBODY),
    Row("no provider", encoded({"claims": [{"typ": "oid", "val": USER}]}), NOBODY),
    Row("its older name", header(ME, provider="AzureActiveDirectory"), {"user_id": USER}),
    # Ids
    Row("an empty id", header(("oid", "")), NOBODY),
    Row("a blank id", header(("oid", "  ")), NOBODY),
    Row("everybody", header(("oid", "*")), NOBODY),
    Row("an organisation", header(("oid", "org:x")), NOBODY),
    Row("a group that is everybody", header(ME, ("groups", "*"), ("groups", "g")), {"groups": ("g",)}),
    Row("a group that is an organisation", header(ME, ("groups", "org:other")), {"groups": ()}),
    Row("a blank group", header(ME, ("groups", " ")), {"groups": ()}),
    # Departments
    Row("a department", header(ME, ("department", " Legal ")), {"department": "Legal"}),
    Row("an extension", header(ME, ("extn.department", "Legal")), {"department": "Legal"}),
    Row("one without app", header(ME, ("extension_department", "Legal")), {"department": "Legal"}),
    Row("one of an app", header(ME, (f"extension_{'0f' * 16}_department", "Legal")), {"department": "Legal"}),
    Row("a mapped one", header(ME, (f"{XMLSOAP}department", "Legal")), {"department": "Legal"}),
    Row("a mapped extension", header(ME, (f"{MICROSOFT}extn.department", "Legal")), {"department": "Legal"}),
    Row("somebody else's claim", header(ME, ("http://x.example/department", "Legal")), {"department": None}),
    Row("a longer name", header(ME, ("department_head", "Legal")), {"department": None}),
    Row("a longer name before", header(ME, ("my_department", "Legal")), {"department": None}),
    Row("an empty one", header(ME, ("department", " ")), {"department": None}),
    Row("one that is everybody", header(ME, ("department", "*")), {"department": None}),
    Row("one that is a person", header(ME, ("department", OTHER)), {"department": None}),
    Row("one that is a group in capitals", header(ME, ("department", OTHER.upper())), {"department": None}),
    Row("one that is an organisation", header(ME, ("department", "org:x")), {"department": None}),
    Row(
        "the claim that is set",
        header(ME, ("division", "Legal"), ("department", "Sales")),
        {"department": "Legal"},
        {"department_claim": "division"},
    ),
    Row(
        "no other than that",
        header(ME, ("department", "Sales")),
        {"department": None},
        {"department_claim": "division"},
    ),
    # More groups than a token can contain
    Row("by its claim names", header(ME, OVERAGE, SOURCES), FOUND, asks=True),
    Row("by hasgroups", header(ME, ("hasgroups", "true")), FOUND, asks=True),
    Row("hasgroups in other letters", header(ME, ("hasgroups", "True")), FOUND, asks=True),
    Row("it has none", header(ME, ("hasgroups", "false")), HIDDEN),
    Row("taken apart", header(ME, ("groups:src1", "https://graph.windows.net/x")), FOUND, asks=True),
    Row("claim names that cannot be read", header(ME, ("_claim_names", "{")), FOUND, asks=True),
    Row("claim names of something else", header(ME, ("_claim_names", '{"photo":"src1"}')), HIDDEN),
    Row("some groups beside are not the list", header(ME, OVERAGE, ("groups", "g1")), FOUND, asks=True),
    Row("refused", header(ME, OVERAGE), CLOSED, {"group_overage": "refuse"}),
    Row("ignored", header(ME, OVERAGE, ("groups", "g1")), HIDDEN, {"group_overage": "ignore"}),
    Row(
        "refusal is for them alone",
        header(ME, ("groups", "g")),
        {"groups": ("g",)},
        {"group_overage": "refuse"},
    ),
    Row("whom the directory does not know", header(("oid", OTHER), OVERAGE), CLOSED, asks=True),
    # Tenants, guests and programs
    Row("of the tenant", header(ME, ("tid", TENANT)), {"org_id": TENANT}, {"allowed_tenants": TENANT}),
    Row(
        "of the tenant in capitals",
        header(ME, ("tid", TENANT.upper())),
        {"user_id": USER},
        {"allowed_tenants": TENANT},
    ),
    Row("of another tenant", header(ME, ("tid", OTHER)), CLOSED, {"allowed_tenants": TENANT}),
    Row("of none", header(ME), CLOSED, {"allowed_tenants": TENANT}),
    Row(
        "strangers are not looked up",
        header(ME, OVERAGE, ("tid", OTHER)),
        CLOSED,
        {"allowed_tenants": TENANT},
    ),
    Row(
        "a guest",
        header(ME, ("tid", TENANT), ("acct", "1"), ("groups", "g"), ("department", "Legal")),
        {"org_id": None, "groups": ("g",), "department": None},
    ),
    Row("a member", header(ME, ("tid", TENANT), ("acct", "0")), {"org_id": TENANT}),
    Row(
        "a guest by home",
        header(ME, ("tid", TENANT), ("idp", f"https://sts.windows.net/{OTHER}/")),
        {"org_id": None},
    ),
    Row("a personal account", header(ME, ("tid", TENANT), ("idp", "live.com")), {"org_id": None}),
    Row(
        "at home",
        header(ME, ("tid", TENANT), (f"{MICROSOFT}identityprovider", f"https://sts.windows.net/{TENANT}/")),
        {"org_id": TENANT},
    ),
    Row(
        "acct tells more than idp",
        header(ME, ("tid", TENANT), ("acct", "0"), ("idp", f"https://sts.windows.net/{OTHER}/")),
        {"org_id": TENANT},
    ),
    Row(
        "a guest as a member",
        header(ME, ("tid", TENANT), ("acct", "1")),
        {"org_id": TENANT},
        {"guests": "members"},
    ),
    Row("a guest refused", header(ME, ("tid", TENANT), ("acct", "1")), CLOSED, {"guests": "refused"}),
    Row("a program", header(ME, ("idtyp", "app"), ("roles", "admin")), CLOSED),
    Row("a program by its subject", header(ME, ("sub", USER)), CLOSED),
    Row("the same by long names", header(ME, (f"{XMLSOAP}nameidentifier", USER)), CLOSED),
    Row(
        "a program that may",
        header(ME, ("idtyp", "app"), ("roles", "admin")),
        {"user_id": USER, "roles": ("admin",)},
        {"allow_applications": True},
    ),
    Row("a person in a program", header(ME, ("idtyp", "user"), ("sub", USER)), {"user_id": USER}),
    Row("a person with scopes", header(ME, ("sub", USER), (f"{MICROSOFT}scope", "ask")), {"user_id": USER}),
    Row("a person by a pairwise subject", header(ME, ("sub", "AAAA-pairwise")), {"user_id": USER}),
)
