"""Models of the hub, against a server on this machine that speaks as much of its protocol as is needed."""

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.translation.models.importing import download, import_model, is_hub_name, wanted
from tests.translation.models.tiny import write_ctranslate2

pytest.importorskip("huggingface_hub")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tiny_fairseq: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A hub with the model org/tiny; gives the list of files that were asked for."""
    from huggingface_hub import constants

    folder = write_ctranslate2(tiny_fairseq, tmp_path / "repository")
    (folder / "run_me.py").write_text("raise SystemExit('code of the model was run')")
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, body: bool) -> None:
            parts = self.path.partition("?")[0].strip("/").split("/")
            revisions = ([], ["revision", "main"], ["revision", COMMIT])
            if parts[:4] == ["api", "models", "org", "tiny"] and parts[4:] in revisions:
                files = [{"rfilename": file.name} for file in sorted(folder.iterdir())]
                content = json.dumps({"id": "org/tiny", "sha": COMMIT, "siblings": files}).encode()
                self._send(200, content, body)
            elif parts[:4] == ["org", "tiny", "resolve", COMMIT] and (folder / parts[4]).is_file():
                asked.append(parts[4])
                self._send(200, (folder / parts[4]).read_bytes(), body)
            else:
                missing = "RevisionNotFound" if "tiny" in parts else "RepoNotFound"
                self._send(404, b"{}", body, {"X-Error-Code": missing})

        def _send(self, code: int, content: bytes, body: bool, headers: dict[str, str] | None = None) -> None:
            self.send_response(code)
            etag = hashlib.sha256(content).hexdigest()
            for name, value in {"X-Repo-Commit": COMMIT, "ETag": f'"{etag}"', **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, endpoint)
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_model_is_imported_by_its_name(hub: list[str], tmp_path: Path) -> None:
    description = import_model("org/tiny", tmp_path / "nmt")
    assert description["imported_from"] == f"org/tiny@{COMMIT}"
    assert description["origin"] == "ctranslate2"
    assert "run_me.py" not in hub
    local = import_model(tmp_path / "repository", tmp_path / "local")
    assert description["fingerprint"] == local["fingerprint"]
    assert import_model(f"org/tiny@{COMMIT}", tmp_path / "pinned")["fingerprint"] == local["fingerprint"]


def test_what_is_not_on_the_hub(hub: list[str]) -> None:
    with pytest.raises(InputError, match="org/absent is neither a path here nor a model of the hub"):
        download("org/absent")
    with pytest.raises(InputError, match="the hub's org/tiny has no revision 'v9'"):
        download("org/tiny@v9")


def test_no_way_to_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(InputError, match=r"cannot reach the Hub for|the Hub does not give"):
        download("org/tiny")


def test_names() -> None:
    assert is_hub_name("Helsinki-NLP/opus-mt-cs-en")
    assert is_hub_name("facebook/nllb-200@main")
    for text in ("models", "../models/x", "/a/b", "a/b/c", "", "a/.."):
        assert not is_hub_name(text)


def test_files_that_are_wanted() -> None:
    names = ["config.json", "pytorch_model.bin", "model.safetensors", "tf_model.h5", "model.py", "source.spm"]
    assert wanted(names) == ["config.json", "model.safetensors", "source.spm"]
    assert wanted(["pytorch_model.bin", "a/model.safetensors"]) == ["pytorch_model.bin"]
    assert wanted(["model.bin", "shared_vocabulary.txt"]) == ["model.bin", "shared_vocabulary.txt"]
