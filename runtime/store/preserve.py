"""Keep a whole image directory in the local store, because whoever made it is about to delete it."""

from __future__ import annotations

import errno
import os
import time

from diapause.runtime import private
from diapause.runtime.linux import files
from diapause.runtime.store import entry, layout, local
from diapause.runtime.store.entry import Entry
from diapause.runtime.store.local import Local

_CHUNK = 16 << 20  # bytes per call; the kernel copies, or shares, them by itself


def keep(image: str, store: Local, *, id: str, note: str) -> str:
    """The path of the copy, which is a snapshot like the image. Costs no room where hard links can be made.

    Only for an image that nobody writes to any more. Raises OSError and what Local.create() does.
    """
    disk = Local(store.disk, "", store.limit)  # it has to outlive the machine's next boot
    private.make(disk.disk)
    found = [file for file in os.scandir(image) if file.is_file(follow_symlinks=False)]
    same = os.stat(disk.disk).st_dev == os.stat(image).st_dev
    size = sum(file.stat(follow_symlinks=False).st_size for file in found)
    draft = disk.create(local.new_name(id), 0 if same else size)
    try:
        for file in sorted(found, key=lambda each: each.name == layout.MANIFEST):  # the manifest last
            _link_or_copy(file.path, f"{draft.path}/{file.name}")
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        described = Entry(kind=entry.IMAGE, id=id, created=created, image=image, note=note)
        draft.commit(described, sync=True)
    except BaseException:
        draft.abandon()
        raise
    draft.close()
    return draft.path


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as e:
        if e.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
            raise
        _copy(source, target)


def _copy(source: str, target: str) -> None:
    reader = files.open_regular(source)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        writer = os.open(target, flags, layout.FILE_MODE)
        try:
            while os.sendfile(writer, reader, None, _CHUNK):
                pass
        finally:
            os.close(writer)
    finally:
        os.close(reader)
