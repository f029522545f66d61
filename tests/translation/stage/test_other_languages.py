"""German to English by configuration alone: ingest, a multilingual model with its tags, translation, card."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from paraforge.base.shards.store import ShardDirectory
from paraforge.intake.bitext.ingest import ingest
from paraforge.interface.configuration import check_parameters
from paraforge.interface.configuration.composition import compose
from paraforge.translation.models.model import open_model
from paraforge.translation.stage.translate import translate
from paraforge.translation.training.stage import build_nmt
from tests.project import ROOT
from tests.translation.models.ready import PAIRS, write_m2m100


@pytest.mark.slow
def test_german_to_english_by_configuration_alone(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    bitext = tmp_path / "news.tsv"
    bitext.write_text("".join(f"{english}\t{german}\n" for german, english in PAIRS[:40]), encoding="utf-8")
    source = f"{{name: news, format: tsv, path: {bitext}, columns: {{reference: 0, source_text: 1}}}}"
    overrides = [
        "translation=opus-mt",
        f"ingest.sources=[{source}]",
        f"nmt.model={write_m2m100(tmp_path / 'm2m')}",
        "nmt.source_language=de",
        "score.languages=[en,de]",
        "publish.languages=[en,de]",
        "publish.licences={news: CC-BY-4.0}",
        "translate.beam=2",
        "translate.maximum_target_tokens=12",
        f"resources.work={tmp_path / 'work'}",
        "resources.workers=1",
    ]
    parameters = check_parameters(yaml.safe_load(compose(ROOT / "configs", overrides)), where="test")
    resources = parameters.resources
    ingest(parameters.ingest, tmp_path / "ingested", resources)
    report = build_nmt(
        parameters.nmt, tmp_path / "ingested", tmp_path / "nmt", tmp_path / "plot.csv", resources
    )
    assert report.origin == "transformers"
    model = open_model(tmp_path / "nmt", "ctranslate2")
    assert (model.source_language, model.target_language) == ("de", "en")
    assert (model.source_prefix, model.target_prefix) == (("__de__",), ("__en__",))
    done = translate(
        parameters.translate, tmp_path / "ingested", tmp_path / "nmt", tmp_path / "translated", resources
    )
    assert done.failed == {}
    assert done.translated + done.rejected == done.rows == 40
    for table in ShardDirectory(tmp_path / "translated").tables(["translation"]):
        assert not any((text or "").startswith("__en__") for text in table["translation"].to_pylist())
