"""Tests for recognising public networks and plain URLs."""

import pytest

from shared.platform.errors import InvalidQueryError
from shared.platform.web_addresses import may_dial, page_address, page_addresses

pytestmark = pytest.mark.attack("outgoing addresses")

PRIVATE = """
0.0.0.0 10.0.0.1 100.64.0.1 127.0.0.1 127.8.8.8 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192
192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 239.1.1.1 240.0.0.1
255.255.255.255 168.63.129.16 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:a00:1
64:ff9b::a9fe:a9fe 64:ff9b::7f00:1 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:a9fe:a9fe:: 2002:7f00:1::
3fff::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 2600::1%1 fec0::1 ff02::1 5f00::1
""".split()
PUBLIC = "1.1.1.1 93.184.215.14 172.32.0.1 192.0.1.1 2606:4700::1111 64:ff9b::101:101 ::ffff:1.1.1.1".split()


@pytest.mark.parametrize("address", PRIVATE)
def test_private_networks_are_not_dialled(address: str) -> None:
    assert not may_dial(address, 443)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_ones_are_at_the_usual_ports(address: str) -> None:
    assert may_dial(address, 80)
    assert may_dial(address, 443)
    assert not may_dial(address, 22)
    assert not may_dial(address, 8080)


@pytest.mark.parametrize("address", ["", "localhost", "0x7f.1", "127.1", "2130706433", "0177.0.0.1"])
def test_what_is_no_literal_is_not_dialled(address: str) -> None:
    assert not may_dial(address, 80)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        (" https://Example.ORG ", "https://example.org/"),
        ("HTTP://example.org:80/a?b=1#c", "http://example.org/a?b=1"),
        ("https://example.org:443/Ä?q=ü", "https://example.org/%C3%84?q=%C3%BC"),
        ("https://BÜCHER.example/", "https://xn--bcher-kva.example/"),
        ("http://[2606:4700::1111]/", "http://[2606:4700::1111]/"),
    ],
)
def test_equal_addresses_are_equal(url: str, address: str) -> None:
    assert page_address(url) == address
    assert page_address(address) == address


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "example.org",
            "//example.org",
            "ftp://example.org",
            "file:///etc/passwd",
            "javascript:alert(1)",
        ),
        *("data:text/plain,x", "gopher://example.org", "http://", "http:///x", "http://user@example.org"),
        *(
            "http://a:b@example.org",
            "http://example.org:22",
            "http://example.org:443",
            "https://example.org:80",
        ),
        *(
            "http://example.org:x/",
            "http://example.org:99999/",
            "http://exa mple.org",
            "http://[::1",
            "http://a\\b",
        ),
        *("http://example.org\\@127.0.0.1/", "http://example.org/\x00", "http://example.org/\u202e"),
        f"http://example.org/{'a' * 2000}",
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(InvalidQueryError):
        page_address(url)


def test_addresses_that_a_person_wrote_are_found() -> None:
    text = (
        "See https://a.example/x, (http://b.example/y?z=1). And <https://c.example/(d)> or ftp://e.example."
    )
    assert page_addresses(text) >= {
        "https://a.example/x",
        "http://b.example/y?z=1",
        "https://c.example/(d)",
    }
    assert not page_addresses("http://user@a.example and no other")
