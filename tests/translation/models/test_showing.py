"""``paraforge model show``: any model by its description, without loading it."""

from __future__ import annotations

from pathlib import Path

import pytest

from paraforge.base.errors import InputError
from paraforge.base.files import write_json
from paraforge.translation.models.showing import describe


@pytest.mark.parametrize(
    ("file", "content", "kind", "shown"),
    [
        (
            "encoder.json",
            {"architecture": {"kind": "average", "unit": "word"}, "about": {"pairs": 3, "vectors": None}},
            "sentence embeddings",
            {"architecture.kind": "average", "architecture.unit": "word", "about.pairs": 3},
        ),
        ("decoders.json", {"vocabulary": 7}, "decoders of neighbouring sentences", {"vocabulary": 7}),
        ("sif.json", {"components": 1}, "SIF sentence embeddings", {"components": 1}),
        ("table.json", {"words": 2, "dimension": 3}, "word vectors", {"words": 2, "dimension": 3}),
        (
            "modules.json",
            [{"idx": 0, "type": "a.B"}],
            "sentence-transformers model",
            {"0.idx": 0, "0.type": "a.B"},
        ),
    ],
)
def test_every_kind(tmp_path: Path, file: str, content: object, kind: str, shown: dict[str, object]) -> None:
    write_json(tmp_path / file, content)
    (tmp_path / "model.safetensors").write_bytes(b"12345")
    size = 5 + (tmp_path / file).stat().st_size
    assert describe(tmp_path) == {"kind": kind, **shown, "bytes": size}
    if file == "decoders.json":
        assert describe(Path(f"{tmp_path}@unrolled:3"))["kind"] == kind


def test_no_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory of a model"):
        describe(tmp_path / "missing")
    with pytest.raises(InputError):
        describe(tmp_path)
