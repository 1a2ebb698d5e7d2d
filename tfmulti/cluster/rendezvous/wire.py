"""Messages between members of a job, over TCP: one JSON object a line.

    server -> client   {"tfmulti": 1, "nonce": a}
    client -> server   {"nonce": b}
    both ways          {"body": "...", "mac": HMAC(key, a, b, way, n, body)}

The key comes from the job's token, so that who does not know the token can
neither speak nor replay what others said. The token itself is never sent.
Whatever is too long, too slow or no such line ends the connection.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
from typing import Any

VERSION = 1
MOST_BYTES = 1 << 20
PATIENCE_S = 5.0

# Two classes before Python 3.11.
TIMED_OUT = (asyncio.TimeoutError, TimeoutError)


class Stranger(Exception):
    """The other side does not speak as a worker of tfmulti does."""


class OtherJob(Exception):
    """The other side is a worker of tfmulti with another token."""


class Channel:
    """One connection between two workers, as seen from one of them."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        token: str,
        client: bool,
    ):
        self._reader = reader
        self._writer = writer
        self._key = hashlib.sha256(f"tfmulti {token}".encode()).digest()
        self._client = client
        self._session = ""
        self._sent = self._received = 0

    async def greet(self) -> None:
        """Exchanges nonces; must come first.

        Raises:
            Stranger: The other side does not do so.
        """
        own = secrets.token_hex(16)
        if not self._client:
            await self._write({"tfmulti": VERSION, "nonce": own})
        other = await self._read(PATIENCE_S)
        if self._client:
            if other.get("tfmulti") != VERSION:
                raise Stranger(f"greeted with {sorted(other)}")
            await self._write({"nonce": own})
        theirs = str(other.get("nonce"))
        self._session = theirs + own if self._client else own + theirs

    async def send(self, body: dict[str, Any]) -> None:
        """Sends one message."""
        text = json.dumps(body)
        mac = self._mac(self._client, self._sent, text)
        self._sent += 1
        await self._write({"body": text, "mac": mac})

    async def receive(
        self, limit_s: float | None = PATIENCE_S
    ) -> dict[str, Any]:
        """Receives one message.

        Raises:
            OtherJob: It has another token.
            Stranger: It is no message.
        """
        line = await self._read(limit_s)
        text, mac = str(line.get("body")), str(line.get("mac"))
        wanted = self._mac(not self._client, self._received, text)
        if "refused" in line or not hmac.compare_digest(
            mac.encode(), wanted.encode()
        ):
            await self._write({"refused": "token"})
            raise OtherJob
        self._received += 1
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise Stranger("not a message")
        return body

    def close(self) -> None:
        """Ends the connection."""
        self._writer.close()

    async def finish(self) -> None:
        """Ends the connection when all that was sent has left."""
        self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), PATIENCE_S)
        except (OSError, *TIMED_OUT):
            return

    def _mac(self, by_client: bool, number: int, text: str) -> str:
        way = "client" if by_client else "server"
        content = f"{self._session} {way} {number} {text}".encode()
        return hmac.new(self._key, content, hashlib.sha256).hexdigest()

    async def _write(self, line: dict[str, Any]) -> None:
        self._writer.write(json.dumps(line).encode() + b"\n")
        await asyncio.wait_for(self._writer.drain(), PATIENCE_S)

    async def _read(self, limit_s: float | None) -> dict[str, Any]:
        try:
            data = await asyncio.wait_for(self._reader.readline(), limit_s)
            line = json.loads(data)
        except TIMED_OUT:
            raise Stranger("it says nothing") from None
        except (ValueError, RecursionError):
            raise Stranger("not a message") from None
        if not isinstance(line, dict):
            raise Stranger("not a message")
        return line
