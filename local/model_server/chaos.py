"""The knob `chaos=SEED`: each request gets one of all the faults, or none. Pure: a draw, no dice.

What a request gets depends on the seed and on its number alone, so that a run that failed can be repeated.
"""

import hashlib

from local.model_server.knobs import Knobs, parse_knobs

FAULTS = tuple(
    """stall=0 stall=3 tps=1 ttft=3000 fail=429,retry_after=1 fail=429,retry_after=60 fail=500 fail=503 drop=0
    drop=3 midstream=3 cut=20 garbage=content garbage=shape garbage=body garbage=protocol filter refuse
    toolloop=2 overtalk=2000""".split()
)
_NO_FAULT = 10  # places of the draw that bring none: a third


def draw(seed: int, request_number: int) -> str:
    """The fault for the request with that number, as the knobs that make it; empty = none."""
    digest = hashlib.blake2b(f"{seed}#{request_number}".encode(), digest_size=8).digest()
    place = int.from_bytes(digest, "big") % (len(FAULTS) + _NO_FAULT)
    return FAULTS[place] if place < len(FAULTS) else ""


def with_fault(knobs: Knobs, request_number: int) -> Knobs:
    """The knobs with the fault that their seed draws, if they have one; it goes before what they say."""
    drawn = parse_knobs("" if knobs.chaos is None else draw(knobs.chaos, request_number))
    return knobs.model_copy(update={name: getattr(drawn, name) for name in drawn.model_fields_set})
