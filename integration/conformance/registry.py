"""A registry on loopback with one image: enough for a client that pulls it."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

PORT = 58431  # built into the suite by integration/toolbox/recipes/containerd-suite.sh
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


class Registry:
    """Serves a layer as the image of every name and tag, until `close`."""

    def __init__(self, layer: bytes) -> None:
        self.blobs: dict[str, bytes] = {}
        config = {
            "architecture": "amd64", "os": "linux",
            "config": {"Cmd": ["sh"], "Env": ["PATH=/bin:/sbin:/usr/bin:/usr/sbin"]},
            "rootfs": {"type": "layers", "diff_ids": [self._add(layer)]},
        }  # fmt: skip
        encoded = json.dumps(config).encode()
        manifest = {
            "schemaVersion": 2, "mediaType": _MANIFEST,
            "config": {"mediaType": _CONFIG, "digest": self._add(encoded), "size": len(encoded)},
            "layers": [{"mediaType": _LAYER, "digest": self._add(layer), "size": len(layer)}],
        }  # fmt: skip
        self.manifest = json.dumps(manifest).encode()
        self._server = ThreadingHTTPServer(("127.0.0.1", PORT), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def _add(self, data: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.blobs[digest] = data
        return digest

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(registry: Registry) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, *, body: bool) -> None:
            kind, _, reference = self.path.removeprefix("/v2/").partition("/")[2].partition("/")
            data, media = b"{}", "application/json"
            if kind == "manifests":
                data, media = registry.manifest, _MANIFEST
            elif kind == "blobs":
                data, media = registry.blobs.get(reference.partition("?")[0], b""), "application/octet-stream"
            self.send_response(200 if data else 404)
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Docker-Content-Digest", f"sha256:{hashlib.sha256(data).hexdigest()}")
            self.end_headers()
            if body:
                self.wfile.write(data)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    return Handler
