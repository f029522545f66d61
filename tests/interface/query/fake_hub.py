"""As much of the Hugging Face Hub's HTTP interface as an upload of a dataset uses, on this machine."""

import base64
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_test"
USER = "me"


@dataclass
class FakeHub:
    """What is in the repositories and how the server behaves.

    repositories: by USER/NAME the content of each file. blobs: what was uploaded, by SHA-256.
    sent: bytes of each upload. commits: number of them. break_after: uploads after which the server fails.
    uploaded: called after each upload, before the client hears of it.
    """

    address: str = ""
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)
    commits: int = 0
    break_after: int | None = None
    private: set[str] = field(default_factory=set)
    uploaded: Callable[[], object] = lambda: None


@contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """A running one."""
    hub = FakeHub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing is said."""

        def answer(self, status: int, value: Any = None, **headers: str) -> None:
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            for name, text in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name.replace("_", "-"), text)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") == "chunked":
                parts = []
                while size := int(self.rfile.readline(), 16):
                    parts.append(self.rfile.read(size))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))

        def do_GET(self) -> None:
            path, _, _ = self.path.partition("?")
            parts = path.strip("/").split("/")
            if path.startswith("/api/datasets/") and "tree" in parts:
                files = hub.repositories["/".join(parts[2:4])]
                return self.answer(200, [described(name, content) for name, content in files.items()])
            if path.startswith("/api/datasets/") and "revision" in parts:  # releases before 1.3 ask for it
                name = "/".join(parts[2:4])
                return self.answer(200, {"id": name, "sha": "0" * 40, "xetEnabled": False})
            if "resolve" in parts:
                content = hub.repositories["/".join(parts[1:3])].get(parts[-1])
                if content is None:
                    return self.answer(404, {"error": "Entry not found"}, X_Error_Code="EntryNotFound")
                tag = f'"{hashlib.sha1(content).hexdigest()}"'
                return self.answer(200, content, ETag=tag, X_Repo_Commit="0" * 40)
            return self.answer(404, {"error": f"no {path}"})

        do_HEAD = do_GET  # noqa: N815

        def do_PUT(self) -> None:
            content = self.body()
            if len(content) < int(self.headers.get("Content-Length") or 0):
                return None  # whoever sent it was killed
            if hub.break_after is not None and len(hub.sent) >= hub.break_after:
                return self.answer(403, {"error": "broken"})
            hub.sent.append(len(content))
            hub.blobs[hashlib.sha256(content).hexdigest()] = content
            hub.uploaded()
            return self.answer(200, {})

        def do_POST(self) -> None:
            content = self.body()
            path, _, _ = self.path.partition("?")
            parts = path.strip("/").split("/")
            if path.endswith("validate-yaml"):
                return self.answer(200, {"errors": [], "warnings": []})
            if self.headers.get("Authorization") != f"Bearer {TOKEN}" and "lfs" not in parts:
                return self.answer(401, {"error": "Invalid credentials"})
            if path == "/api/repos/create":
                wanted = json.loads(content)
                name = f"{wanted.get('organization') or USER}/{wanted['name']}"
                url = f"{hub.address}/datasets/{name}"
                if not name.startswith(f"{USER}/"):
                    return self.answer(403, {"error": "no right to create"})
                if name in hub.repositories:
                    return self.answer(409, {"error": "exists", "url": url})
                hub.repositories[name] = {".gitattributes": b"*.parquet filter=lfs"}
                if wanted.get("private") or wanted.get("visibility") == "private":
                    hub.private.add(name)
                return self.answer(200, {"url": url, "name": name})
            if "preupload" in parts:
                modes = [
                    {
                        "path": file["path"],
                        "uploadMode": "lfs" if file["path"].endswith((".parquet", ".arrow")) else "regular",
                        "shouldIgnore": False,
                        "oid": None,
                    }
                    for file in json.loads(content)["files"]
                ]
                return self.answer(200, {"files": modes})
            if path.endswith("objects/batch"):
                objects = []
                for one in json.loads(content)["objects"]:
                    upload = {"upload": {"href": f"{hub.address}/upload/{one['oid']}"}}
                    known = one["oid"] in hub.blobs
                    objects.append({**one, **({} if known else {"actions": upload})})
                return self.answer(200, {"transfer": "basic", "objects": objects})
            if "commit" in parts:
                files = hub.repositories["/".join(parts[2:4])]
                for line in map(json.loads, content.splitlines()):
                    value = line["value"]
                    if line["key"] == "file":
                        files[value["path"]] = base64.b64decode(value["content"])
                    elif line["key"] == "lfsFile":
                        files[value["path"]] = hub.blobs[value["oid"]]
                    elif line["key"] == "deletedFile":
                        del files[value["path"]]
                hub.commits += 1
                url = f"{hub.address}/datasets/{'/'.join(parts[2:4])}/commit/{'0' * 40}"
                return self.answer(200, {"success": True, "commitOid": "0" * 40, "commitUrl": url})
            return self.answer(404, {"error": f"no {path}"})

    def described(name: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        pointer = {"lfs": {"oid": digest, "size": len(content), "pointerSize": 130}}
        whole = {"type": "file", "path": name, "size": len(content), "oid": digest[:40]}
        return whole | (pointer if digest in hub.blobs else {})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
