# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Files that are not whole yet.

One with an id of the client's outlives its connection for a while, so that the client can go on where it was cut off.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time

from paths import Place, refusal
from reading import PIECE, new_sha256
from wire import PeerGone, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds that the beginning of a file waits for its rest, and how many such may wait.
RETENTION = 600.0
WAITING_LIMIT = 64


class Partials:
    """Knows whose turn it is: of two connections for one file, the later, for a client knows when it lost the first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.current: dict[tuple[str, str], Partial] = {}
        self._waiting: dict[tuple[str, str], float] = {}

    def open(self, place: Place, key: str | None) -> Partial:
        self._sweep()
        partial = Partial(self, place, key)
        with self.lock:
            self.current[partial.key] = partial
            self._waiting.pop(partial.key, None)
        try:
            partial.begin()
        except BaseException:
            partial.drop()
            partial.close()
            raise
        return partial

    def wait(self, key: tuple[str, str]) -> None:
        with self.lock:
            self._waiting[key] = time.monotonic()

    def _sweep(self) -> None:
        """Delete what no client continued."""
        now = time.monotonic()
        with self.lock:
            waiting = sorted(self._waiting.items(), key=lambda item: item[1])
            surplus = len(waiting) - WAITING_LIMIT
            old = [key for index, (key, since) in enumerate(waiting) if index < surplus or now - since > RETENTION]
            for key in old:
                del self._waiting[key]
        for folder, name in old:
            with contextlib.suppress(OSError, Refused), Place(os.path.join(folder, name)) as place:
                os.unlink(name, dir_fd=place.fd)


class Partial:
    """The beginning of one file, open for one connection. A context manager that closes it, and tidies up."""

    def __init__(self, partials: Partials, place: Place, key: str | None) -> None:
        self._partials = partials
        self._place = place
        self._lasting = key is not None
        self.id = key or os.urandom(8).hex()
        self._name = f".namzu-{self.id}.part"
        self.key = (os.path.dirname(place.path), self._name)
        self._fd = -1
        self._hash = new_sha256()
        self._owned = False
        self.size = 0

    @property
    def path(self) -> str:
        return self._place.path

    def begin(self) -> None:
        """Open it; what is there of it already counts, and goes into the checksum."""
        try:
            self._fd = self._place.open(self._name, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise refusal(error, self.path) from None
        found = os.fstat(self._fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != os.geteuid():
            raise Refused("denied", f"{self.path[:300]}: {self._name} beside it belongs to another user")
        self._owned = True
        for piece in self._pieces():
            self._hash.update(piece)
            self.size += len(piece)

    def _pieces(self) -> Iterator[bytes]:
        while True:
            piece = os.pread(self._fd, PIECE, self.size)
            if not piece:
                return
            yield piece

    def write(self, data: memoryview) -> None:
        """Append. Without room left, what is there is no use to anybody, and is deleted."""
        try:
            with self._ownership():
                written = 0
                while written < len(data):
                    written += os.pwrite(self._fd, data[written:], self.size + written)
        except OSError:
            self.drop()
            raise
        self._hash.update(data)
        self.size += len(data)

    def check(self, size: int, checksum: str) -> None:
        """Refused ``checksum`` when it is not what it should be; then the next try begins at its first byte."""
        if (size, checksum) != (self.size, self._hash.hexdigest()):
            self.drop()
            raise Refused("checksum", f"{self.path[:300]}: {self.size} bytes arrived that are not the {size} sent")

    def become(self, mode: int, sync: bool) -> None:
        """Take the mode and the name of the target. ``sync``: when that is on the disk, not before."""
        with self._ownership():
            os.fchmod(self._fd, mode)
            if sync:
                os.fsync(self._fd)
            os.rename(self._name, self._place.name, src_dir_fd=self._place.fd, dst_dir_fd=self._place.fd)
            self._lasting, self._owned = False, False
        if sync:
            sync_folder(self._place)

    def drop(self) -> None:
        """Delete it, before the client is answered."""
        self._lasting = False
        with self._partials.lock:
            self._unlink()

    def _ownership(self) -> Ownership:
        return Ownership(self._partials, self)

    def __enter__(self) -> Partial:  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete it, or leave it for the client to come back to; unless another connection has it by now."""
        with self._partials.lock:
            current = self._partials.current.get(self.key) is self
            if current:
                if not self._lasting:
                    self._unlink()
                del self._partials.current[self.key]
        if current and self._lasting:
            self._partials.wait(self.key)
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _unlink(self) -> None:
        if self._owned and self._partials.current.get(self.key) is self:
            self._owned = False
            with contextlib.suppress(OSError):
                os.unlink(self._name, dir_fd=self._place.fd)


class Ownership:
    """A moment in which no other connection can take over the file. PeerGone when one has."""

    def __init__(self, partials: Partials, partial: Partial) -> None:
        self._partials = partials
        self._partial = partial

    def __enter__(self) -> None:
        self._partials.lock.acquire()
        if self._partials.current.get(self._partial.key) is not self._partial:
            self._partials.lock.release()
            raise PeerGone

    def __exit__(self, *_: object) -> None:
        self._partials.lock.release()


def sync_folder(place: Place) -> None:
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place.fd)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
