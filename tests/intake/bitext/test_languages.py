"""Languages of the first rows: every swap of real bitext is found, nothing else is called one."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from paraforge.base.errors import ConfigurationError
from paraforge.base.shards.resources import Resources
from paraforge.intake.bitext import sources
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.languages import Languages, language_problem, other_language, swapped_share
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.bitext.sources import problems
from paraforge.intake.sample_bitext import write_sample

pytest.importorskip("py3langid")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_sample(tmp_path_factory.mktemp("sample"), 2000)


CZECH_ENGLISH = Languages("cs", "en")
GERMAN = [f"Der Hund Nummer {place} läuft im Park unter den alten Bäumen." for place in range(60)]
ENGLISH = [f"The dog number {place} runs in the park below the old trees." for place in range(60)]


def _parameters(path: object, columns: dict[str, int], **options: object) -> IngestParameters:
    source = {"name": "a", "format": "tsv", "path": path, "columns": columns}
    return IngestParameters.model_validate({"sources": [source], **options})


def _problems(path: Path, columns: dict[str, int], **options: object) -> list[str]:
    return problems(_parameters(str(path), columns, **options), CZECH_ENGLISH)


def _problem(source: Sequence[str], target: Sequence[str], languages: Languages) -> str | None:
    texts = {"source_text": source, "reference": target}
    return language_problem(
        texts, languages, {"source_text": "column 0", "reference": "column 1"}, "paths: x"
    )


def test_each_domain_is_right_and_its_swap_is_found(samples: list[Path]) -> None:
    for path in samples:
        assert _problems(path, {"source_text": 0, "reference": 1}) == [], path.name
        (problem,) = _problems(path, {"source_text": 1, "reference": 0})
        assert 'swapped? Give columns: {"source_text": 0, "reference": 1}' in problem
        assert "column 1 (source_text) is in 'en', column 0 (reference) is in 'cs'" in problem
        assert path.name in problem
        assert _problems(path, {"source_text": 1, "reference": 0}, check_languages=False) == []


def test_a_file_that_is_swapped_in_part_is_mixed(samples: list[Path]) -> None:
    rows = [line.split("\t")[:2] for line in samples[0].read_text(encoding="utf-8").splitlines()[:100]]
    source, reference = zip(*(row[::-1] if i % 2 else row for i, row in enumerate(rows)), strict=True)
    share = swapped_share(source, reference, "en")
    assert share is not None and 0.3 < share < 0.7
    assert "mixed" in str(_problem(source, reference, CZECH_ENGLISH))


@pytest.mark.parametrize(
    ("source", "target", "language"),
    [
        (["pes", "dům", "voda"] * 100, ["dog", "house", "water"] * 100, "en"),  # a list of words
        (["The dog runs in the park."] * 5, ["Pes běží v parku u řeky."] * 5, "en"),  # a tiny file
        (["The dog runs in the park."] * 50, ["A dog is running in a park."] * 50, "en"),  # one language
        (["Pes běží v parku u řeky."] * 50, ["The dog runs in the park."] * 50, "xxx_Latn"),  # unknown code
        (ENGLISH, ["opus-test-2020+tatoeba-2021", "manythings-2019+opus-test"] * 30, "en"),  # labels
        ([], [], "en"),
    ],
)
def test_what_cannot_be_judged_is_no_problem(source: list[str], target: list[str], language: str) -> None:
    assert _problem(source, target, Languages(None, language)) is None


def test_another_language_than_configured_is_named_with_the_option() -> None:
    said = str(_problem(GERMAN, ENGLISH, CZECH_ENGLISH))
    assert "column 0 (source_text) is in 'de', and nmt.source_language is 'cs'" in said
    assert "set nmt.source_language=de, or set ingest.check_languages=false" in said
    assert "nmt.bitext.check_languages" in str(_problem(GERMAN, ENGLISH, Languages("cs", "en", "nmt.bitext")))
    assert "nmt.target_language=de" in str(_problem(ENGLISH, GERMAN, Languages("en", "fr")))
    assert _problem(GERMAN, ENGLISH, Languages("de", "en")) is None
    assert _problem(GERMAN, ENGLISH, Languages(None, "en")) is None  # no model: no language of sources


@pytest.mark.parametrize("language", ["en", "en-GB", "en_US", "eng_Latn", "__en__"])
def test_a_swap_is_found_however_the_language_is_written(language: str) -> None:
    assert swapped_share(ENGLISH, GERMAN, language) == 1
    assert swapped_share(GERMAN, ENGLISH, language) == 0


@pytest.mark.parametrize("language", ["cs", "cs-CZ", "cs_CZ", "ces_Latn"])
def test_a_language_is_another_only_where_it_is_sure(language: str, samples: list[Path]) -> None:
    assert other_language(GERMAN, language) == "de"
    assert other_language(GERMAN[:19], language) is None
    assert other_language(GERMAN, "xxx_Latn") is None and other_language(GERMAN, "xx") is None
    for path in samples:
        czech = [line.split("\t")[0] for line in path.read_text(encoding="utf-8").splitlines()]
        assert other_language(czech, language) is None
        assert other_language(czech, "en") == "cs"
        assert other_language([*czech[:60], *GERMAN[:60]], language) is None  # mixed: not another


def test_languages_that_are_too_alike_are_not_told_apart() -> None:
    norwegian = [f"Hunden nummer {place} løper i parken under de gamle trærne." for place in range(40)]
    assert other_language(norwegian, "nb") is None and other_language(norwegian, "da") is None
    assert other_language(norwegian, "nb_NO") is None and other_language(GERMAN, "nb") == "de"
    assert other_language(norwegian, "cs") is not None


def test_ingest_refuses_before_it_reads(samples: list[Path], tmp_path: Path) -> None:
    resources = Resources(work=tmp_path / "work", workers=1)
    swapped = {"source_text": 1, "reference": 0}
    with pytest.raises(ConfigurationError, match="swapped"):
        ingest(_parameters(str(samples[0]), swapped), tmp_path / "out", resources, CZECH_ENGLISH)
    assert not (tmp_path / "out").exists() and not list((tmp_path / "work").glob("**/*.parquet"))
    allowed = _parameters(str(samples[0]), swapped, check_languages=False)
    assert ingest(allowed, tmp_path / "out", resources, CZECH_ENGLISH).kept


@pytest.mark.parametrize("right, wrong", [(600, 300), (250, 1700)])
@pytest.mark.parametrize("kind", ["swapped", "german", "half"])
def test_rows_that_were_joined_to_right_ones_are_found_before_shards_are_written(
    kind: str, right: int, wrong: int, samples: list[Path], tmp_path: Path
) -> None:
    rows = [line.split("\t")[:2] for one in samples for line in one.read_text("utf-8").splitlines()]
    rows = rows[: right + wrong]
    others = {
        "swapped": [row[::-1] for row in rows[right:]],
        "german": [[GERMAN[place % 60], row[1]] for place, row in enumerate(rows[right:])],
        "half": [row[::-1] if place % 2 else row for place, row in enumerate(rows[right:])],
    }[kind]
    path = tmp_path / "joined.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in rows[:right] + others), "utf-8")
    columns = {"source_text": 0, "reference": 1}
    resources = Resources(work=tmp_path / "work", workers=1)
    with pytest.raises(ConfigurationError, match=r"joined.tsv:\d+: unlike the first rows") as raised:
        ingest(_parameters(str(path), columns), tmp_path / "out", resources, CZECH_ENGLISH)
    line = int(str(raised.value).split("joined.tsv:")[1].split(":")[0])
    assert right - 200 < line <= right + wrong - 199
    assert "set ingest.check_languages=false" in str(raised.value)
    assert not (tmp_path / "out").exists()
    allowed = _parameters(str(path), columns, check_languages=False)
    assert ingest(allowed, tmp_path / "out", resources, CZECH_ENGLISH).rows == len(
        rows[:right] + others[:wrong]
    )


def test_of_many_files_a_few_are_identified(
    samples: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = samples[0].read_text(encoding="utf-8").splitlines(keepends=True)
    for number in range(40):
        (tmp_path / f"{number:02}.tsv").write_text("".join(lines[number * 5 : number * 5 + 100]))
    asked: list[int] = []
    monkeypatch.setattr(sources, "language_problem", lambda *_: asked.append(1))
    parameters = _parameters(str(tmp_path / "*.tsv"), {"source_text": 0, "reference": 1})
    assert problems(parameters, CZECH_ENGLISH) == []
    assert 2 <= len(asked) <= 5
    ingest(parameters, tmp_path / "out", Resources(work=tmp_path / "work", workers=1), CZECH_ENGLISH)
    assert len(asked) <= 15
