"""Parts of a file through the host and from real storage, as a viewer of large PDFs asks for them."""

from collections.abc import Iterator

import httpx
import pytest

from local.run_all.stack import LocalStack
from samples.acl import BEN

pytestmark = [pytest.mark.contract, pytest.mark.e2e]  # long: see `make e2e`
HANG_GUARD_S = 120.0


@pytest.fixture(name="file", scope="module")
def make_file(stack: LocalStack) -> Iterator[tuple[httpx.Client, str]]:
    """A caller who may read it, and its address."""
    headers = {"Authorization": f"Bearer {stack.token(BEN)}"}
    with httpx.Client(base_url=f"{stack.base_url}/api", headers=headers, timeout=HANG_GUARD_S) as caller:
        listed = caller.get("/documents", params={"filename": "leave-policy.pdf"}).json()["documents"]
        yield caller, f"/documents/{listed[0]['doc_id']}/content"


@pytest.mark.parametrize(
    ("span", "first", "last"), [("bytes=0-9", 0, 9), ("bytes=0-0", 0, 0), ("bytes=5-99", 5, 99)]
)
def test_a_part_is_exactly_what_was_asked_for(
    file: tuple[httpx.Client, str], span: str, first: int, last: int
) -> None:
    caller, address = file
    whole = caller.get(address).content
    part = caller.get(address, headers={"Range": span})
    assert (part.status_code, part.content) == (206, whole[first : last + 1])
    assert part.headers["content-range"] == f"bytes {first}-{last}/{len(whole)}"


def test_the_first_and_the_last_bytes_make_the_whole(file: tuple[httpx.Client, str]) -> None:
    caller, address = file
    whole = caller.get(address)
    same = {"If-Range": whole.headers["etag"]}
    parts = [
        caller.get(address, headers={"Range": span, **same}).content
        for span in ("bytes=0-999", "bytes=1000-")
    ]
    assert b"".join(parts) == whole.content


def test_a_part_of_a_version_that_is_gone_is_the_whole_of_the_new_one(
    file: tuple[httpx.Client, str],
) -> None:
    caller, address = file
    answered = caller.get(address, headers={"Range": "bytes=0-9", "If-Range": '"0x0"'})
    assert answered.status_code == 200
    assert answered.content == caller.get(address).content
