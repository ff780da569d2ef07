"""Who joins a job proves that it knows the job's secret, and so does who is joined. The secret itself is not sent.

The job's facts (its name, address, port and size) are part of each proof, so that ranks of another job are sent away.
Reference: HMAC (RFC 2104), a fresh number of each side in both proofs.
"""

from __future__ import annotations

import hmac
import json
import secrets
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xcc.runtime.hub import Connection

__all__ = ["ask", "greet"]

_BYTES = 16         # of a fresh number


def greet(connection: Connection, secret: str, facts: Any, size: int) -> int:
    """Which rank has come; ValueError for one that does not prove it, EOFError or OSError where it is gone."""
    own = secrets.token_hex(_BYTES)
    connection.send({"number": own})
    message = connection.receive()
    rank, other = message.get("join"), message.get("number")
    if type(rank) is not int or not 0 <= rank < size or not isinstance(other, str):
        raise ValueError("no rank")
    _check(message, _proof(secret, "rank", facts, rank, own, other))
    connection.send({"joined": rank, "proof": _proof(secret, "hub", facts, rank, own, other)})
    return rank


def ask(connection: Connection, secret: str, facts: Any, rank: int) -> None:
    """Joins as `rank`; ValueError where who listens does not know the secret, or is of another job."""
    own, other = secrets.token_hex(_BYTES), connection.receive().get("number")
    if not isinstance(other, str):
        raise ValueError("no hub")
    connection.send({"join": rank, "number": own, "proof": _proof(secret, "rank", facts, rank, other, own)})
    _check(connection.receive(), _proof(secret, "hub", facts, rank, other, own))


def _proof(secret: str, side: str, facts: Any, rank: int, *numbers: str) -> str:
    return hmac.new(secret.encode(), json.dumps([side, facts, rank, *numbers]).encode(), "sha256").hexdigest()


def _check(message: dict[str, Any], proof: str) -> None:
    said = message.get("proof")
    if not isinstance(said, str) or not hmac.compare_digest(said.encode(), proof.encode()):
        raise ValueError("a wrong proof")
