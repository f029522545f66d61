"""Links to the user's files: what the parameters name, and nothing that is gone."""

from pathlib import Path

import pytest
import yaml

from paraforge.interface.configuration import check_parameters
from paraforge.interface.configuration.composition import compose
from paraforge.interface.configuration.inputs import (
    link_inputs,
)
from tests.project import ROOT


def links(directory: Path) -> dict[str, Path]:
    return {path.name: path.readlink() for path in sorted(directory.iterdir())}


def test_links_are_what_the_parameters_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a b.cs", "a b.en", "1.tsv", "2.tsv", "drop.tsv", "held.txt", "vectors.txt"):
        (tmp_path / name).touch()
    monkeypatch.setenv("SOME_PLACE", str(tmp_path))
    monkeypatch.delenv("NOT_SET", raising=False)
    content = yaml.safe_load(compose(ROOT / "configs", ["translation=fake"]))
    content["ingest"]["sources"] = [
        {
            "name": "a",
            "format": "moses",
            "paths": {"source_text": "$SOME_PLACE/a b.cs", "reference": "$SOME_PLACE/a b.en"},
            "drop_rows": "$SOME_PLACE/drop.tsv",
        },
        {
            "name": "b",
            "format": "tsv",
            "path": ["$SOME_PLACE/?.tsv", "$SOME_PLACE/gone.tsv"],
            "columns": {"source_text": 0, "reference": 1},
        },
        {
            "name": "c",
            "format": "tsv",
            "path": "$NOT_SET/x.tsv",
            "columns": {"source_text": 0, "reference": 1},
        },
        {"name": "d", "format": "sample"},
    ]
    (tmp_path / "teacher").mkdir()
    (tmp_path / "teacher" / "_shards.json").touch()
    content["nmt"]["bitext"] = str(tmp_path / "teacher")
    content["paragram"]["vectors"] = "$SOME_PLACE/vectors.txt"
    content["select"]["filters"] = [
        {"kind": "decontamination", "files": [{"path": "$SOME_PLACE/held.txt"}, {"path": "gone.txt"}]}
    ]
    root = tmp_path / "inputs"
    link_inputs(check_parameters(content, "here"), root=root)
    assert links(root / "ingest") == {
        "000-drop.tsv": tmp_path / "drop.tsv",
        "001-a b.cs": tmp_path / "a b.cs",
        "002-a b.en": tmp_path / "a b.en",
        "003-1.tsv": tmp_path / "1.tsv",
        "004-2.tsv": tmp_path / "2.tsv",
    }
    assert links(root / "nmt") == {"000-_shards.json": tmp_path / "teacher" / "_shards.json"}
    assert links(root / "paragram") == {"000-vectors.txt": tmp_path / "vectors.txt"}
    assert links(root / "select") == {"000-held.txt": tmp_path / "held.txt"}
    (tmp_path / "held.txt").unlink()
    content["ingest"]["sources"] = content["ingest"]["sources"][1:]
    link_inputs(check_parameters(content, "here"), ["ingest", "select"], root)
    assert links(root / "ingest") == {"000-1.tsv": tmp_path / "1.tsv", "001-2.tsv": tmp_path / "2.tsv"}
    assert links(root / "select") == {}
    assert links(root / "paragram") == {"000-vectors.txt": tmp_path / "vectors.txt"}
