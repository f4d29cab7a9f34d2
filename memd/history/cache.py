"""What was counted, kept over a restart. Law: it holds no word, and whatever does not fit is counted anew.

One file a transcript, `<home>/cache/history/<hash of its path>`, replaced whole. It is not synced: after a power cut
it is missing or does not check, and then the transcript is read again. SPEC sections 1 and 11. Blocking code.
"""

import hashlib
import os
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from memd.fs import Disk, NotRegularError
from memd.history.transcript import Frozen, Transcript, freeze, thaw

FORMAT = b"memd history 3\n"
FILE_MAX = 256 << 20
"""Bytes of a cache file; a longer one is not ours."""

_DIGEST = 16
_OURS = re.compile(r"[0-9a-f]{32}|\.[0-9a-f]{32}\.tmp")
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO is an error, not a wait
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Frozen).decode


class Cache:
    """The directory of cache files."""

    def __init__(self, directory: Path, disk: Disk | None = None) -> None:
        self.directory = directory
        self.disk = disk or Disk()

    def load(self, path: Path) -> Transcript | None:
        """A transcript as it was kept; None when it was not, or does not fit together."""
        try:
            raw, _ = self.disk.read(self._file(path), FILE_MAX)
        except (OSError, NotRegularError):
            return None
        body = raw[len(FORMAT) + _DIGEST :]
        if raw[: len(FORMAT) + _DIGEST] != FORMAT + _checksum(body):
            return None
        with suppress(msgspec.MsgspecError, ValueError):
            known = thaw(_decode(body))
            return known if known.path == path else None
        return None

    def store(self, transcript: Transcript) -> None:
        """Keep a transcript. Errors: OSError; what was kept before is still there then."""
        body = _encode(freeze(transcript))
        self.disk.make_dirs(self.directory)
        path = self._file(transcript.path)
        staged = path.with_name(f".{path.name}.tmp")
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FLAGS, 0o600)
        try:
            self.disk.write(descriptor, FORMAT + _checksum(body) + body)
        finally:
            os.close(descriptor)
        self.disk.replace(staged, path)

    def keep(self, wanted: Collection[Path]) -> None:
        """Remove what is kept of transcripts that are no more. Errors: OSError.

        Nothing else goes: the directory may be one that others use, behind a symlink.
        """
        names = {self._file(path).name for path in wanted}
        with suppress(FileNotFoundError):
            for seen in self.disk.scan(self.directory):
                if seen.regular and seen.name not in names and _OURS.fullmatch(seen.name):
                    self.disk.remove(self.directory / seen.name)

    def _file(self, path: Path) -> Path:
        return self.directory / hashlib.blake2b(os.fsencode(path), digest_size=16).hexdigest()


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST).digest()
