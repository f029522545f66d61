"""No manifest or index leads out of its own directory."""

import json
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.errors import InputError
from paraforge.base.files import plain_name
from paraforge.base.shards.store import ShardDirectory
from paraforge.corpus.publication.lexicon_layout import read_lexicon_json

OUTSIDE = ["../other.parquet", "/etc/passwd", "a/b.parquet", "..", ".", "", "a\\b", "a\0b"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a plain file name"):
        plain_name(name)
    entry = {"file": name, "rows": 1, "sha256": "0"}
    descriptions: list[tuple[str, dict[str, Any], Any]] = [
        ("_shards.json", {"format": 1, "shards": [entry]}, ShardDirectory),
        (
            "_shards.json",
            {"format": 1, "shards": [], "more_columns": [name]},
            lambda path: ShardDirectory(path).with_aligned(),
        ),
        ("lexicon.json", {"format": 1, "files": [entry]}, read_lexicon_json),
    ]
    for file, content, read in descriptions:
        (tmp_path / file).write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(InputError, match="not a plain file name"):
            read(tmp_path)


def test_plain_names_stay() -> None:
    assert plain_name("shard-00000.parquet") == "shard-00000.parquet"
    assert plain_name("žluť 1.parquet") == "žluť 1.parquet"
