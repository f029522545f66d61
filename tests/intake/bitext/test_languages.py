"""Language checks: swapped sides of real bitext are found, and correct text passes."""

import random
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from paraforge.base.errors import ConfigurationError, InputError
from paraforge.base.shards.resources import Resources
from paraforge.intake.bitext import examination
from paraforge.intake.bitext.examination import problems
from paraforge.intake.bitext.ingest import ingest
from paraforge.intake.bitext.languages import Languages, identified, is_header, other_language, wrong_language
from paraforge.intake.bitext.parameters import IngestParameters
from paraforge.intake.bitext.sources import resolve
from paraforge.intake.sample_bitext import write_sample
from tests.intake.bitext.grammar import SENTENCES

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
    return wrong_language(texts, languages)


def test_correct_and_swapped_languages_in_each_domain(samples: list[Path]) -> None:
    for path in samples:
        assert _problems(path, {"source_text": 0, "reference": 1}) == [], path.name
        (problem,) = _problems(path, {"source_text": 1, "reference": 0})
        assert f"{path.name}: source_text is in 'en', reference is in 'cs': swapped? Exchange" in problem
        assert _problems(path, {"source_text": 1, "reference": 0}, check_languages=False) == []
        assert _problems(path, {"reference": 0, "translation": 1}, kind="paraphrases") == []


@pytest.mark.parametrize(
    ("source", "target", "language"),
    [
        (["pes", "dům", "voda"] * 100, ["dog", "house", "water"] * 100, "en"),  # a list of words
        (["The dog runs in the park."] * 5, ["Pes běží v parku u řeky."] * 5, "en"),  # a tiny file
        (["The dog runs in the park."] * 50, ["A dog is running in a park."] * 50, "en"),  # one language
        (["Pes běží v parku u řeky."] * 50, ["The dog runs in the park."] * 50, "english"),  # unknown code
        (ENGLISH, ["opus-test-2020+tatoeba-2021", "manythings-2019+opus-test"] * 30, "en"),  # labels
        (GERMAN, ENGLISH, "fr"),  # not swapped, and the source language is not known
        ([], [], "en"),
    ],
)
def test_unjudgeable_text_passes_language_check(source: list[str], target: list[str], language: str) -> None:
    assert _problem(source, target, Languages(None, language)) is None


@pytest.mark.parametrize(
    ("german", "english", "czech", "found"),
    [
        *((48, 0, 12, None), (49, 0, 11, "de"), (30, 28, 2, "de"), (30, 29, 2, None)),
        *((20, 0, 0, "de"), (19, 0, 0, None)),
    ],
)
def test_wrong_language_thresholds(german: int, english: int, czech: int, found: str | None) -> None:
    right = [f"Pes číslo {place} běží v parku pod starými stromy." for place in range(czech)]
    assert other_language([*GERMAN[:german], *ENGLISH[:english], *right], "cs") == found


@pytest.mark.parametrize("source", ["cs", None])
def test_language_of_references_alone_is_checked(source: str | None) -> None:
    def problem(texts: Sequence[str]) -> str | None:
        return wrong_language({"reference": texts}, Languages(source, "en"))

    assert problem(ENGLISH) is None
    assert str(problem(GERMAN)).startswith("reference is in 'de', and nmt.target_language is 'en'")


def test_wrong_language_error_names_option() -> None:
    said = str(_problem(GERMAN, ENGLISH, CZECH_ENGLISH))
    assert "source_text is in 'de', and nmt.source_language is 'cs'" in said
    assert "set nmt.source_language=de, or set ingest.check_languages=false" in said
    assert "nmt.bitext.check_languages" in str(_problem(GERMAN, ENGLISH, Languages("cs", "en", "nmt.bitext")))
    assert "nmt.target_language=de" in str(_problem(ENGLISH, GERMAN, Languages("en", "fr")))
    assert _problem(GERMAN, ENGLISH, Languages("de", "en")) is None


@pytest.mark.parametrize("language", ["en", "en-GB", "en_US", "eng_Latn", "__en__"])
def test_swap_is_found_for_any_form_of_language_code(language: str) -> None:
    assert "swapped?" in str(_problem(ENGLISH, GERMAN, Languages(None, language)))
    assert _problem(GERMAN, ENGLISH, Languages(None, language)) is None


@pytest.mark.parametrize("language", ["cs", "cs-CZ", "cs_CZ", "ces_Latn"])
def test_only_certain_languages_count_as_wrong(language: str, samples: list[Path]) -> None:
    assert other_language(GERMAN, language) == "de"
    assert other_language(GERMAN[:19], language) is None
    assert other_language(GERMAN, "xx") is None
    for path in samples:
        czech = [line.split("\t")[0] for line in path.read_text(encoding="utf-8").splitlines()]
        assert other_language(czech, language) is None
        assert other_language(czech, "en") == "cs"
        assert other_language([*czech[:60], *GERMAN[:60]], language) is None  # mixed: not another


@pytest.mark.parametrize(
    ("meant", "found"),
    [
        *(("cs", "sk"), ("sk", "cs"), ("es", "pt"), ("pt-BR", "es"), ("es-419", "pt"), ("nl", "de")),
        *(("da", "nb"), ("nb", "da"), ("no", "da"), ("nob_Latn", "da"), ("ces", "sk"), ("ces_Latn", "sk")),
    ],
)
def test_close_languages_are_distinguished(meant: str, found: str) -> None:
    told = {"nb": "no"}.get(found, found)
    said = str(_problem(SENTENCES[found], SENTENCES["en"], Languages(meant, "en")))
    assert f"is in {told!r}, and nmt.source_language is {meant!r}" in said
    right = {"ces": "cs", "ces_Latn": "cs", "nob_Latn": "nb", "no": "nb", "pt-BR": "pt", "es-419": "es"}
    for target in ("en", "eng", "eng_Latn", "en-GB"):
        assert _problem(SENTENCES[right.get(meant, meant)], SENTENCES["en"], Languages(meant, target)) is None


def test_similar_languages_are_not_distinguished() -> None:
    croatian = [f"Pas broj {place} trči u parku ispod starog drveća." for place in range(40)]
    assert all(other_language(croatian, language) is None for language in ("hr", "sr", "bs"))
    both = [
        "Moj stariji brat zaboravio je ključ kod kuće.",
        "Naš susjed želio bi kupiti svježi kruh.",
        "Stari kapetan ne zna što se jučer dogodilo.",
        "Stari kapetan ne zna šta se juče desilo.",
        "Naš komšija bi želeo da kupi svež hleb.",
    ]
    assert [identified(texts) for texts in (both[:3], both[3:], both)] == ["hr", "sr", "hr"]
    assert other_language(SENTENCES["nb"], "nn") is None and other_language(croatian, "cs") is not None


def _without_marks(text: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFD", text) if not unicodedata.combining(one))


def _pairs(language: str = "cs") -> list[tuple[str, str]]:
    return list(zip(SENTENCES[language], SENTENCES["en"], strict=True))


def _changed(change: Callable[[str], str]) -> list[tuple[str, str]]:
    return [(change(czech), change(english)) for czech, english in _pairs()]


_WORDS = [
    *(("pes", "dog"), ("kočka", "cat"), ("voda", "water"), ("dům", "house"), ("strom", "tree")),
    *(("chléb", "bread"), ("ruka", "hand"), ("noha", "leg"), ("město", "town"), ("ulice", "street")),
    *(("žena", "woman"), ("dítě", "child"), ("škola", "school"), ("kniha", "book"), ("slunce", "sun")),
    *(("měsíc", "moon"), ("hvězda", "star"), ("řeka", "river"), ("kuchyně", "kitchen"), ("okno", "window")),
]
RIGHT = {
    "sentences": _pairs(),
    "words": [(f"{a} {b}", f"{c} {d}") for a, c in _WORDS for b, d in _WORDS],
    "single words": [pair for _ in range(8) for pair in _WORDS],
    "capitals": _changed(str.upper),
    "no diacritics": _changed(lambda text: _without_marks(text).lower()),
    "numbered": [
        (f"{place} {czech}", f"{place} {english}") for place, (czech, english) in enumerate(_pairs())
    ],
    "spoken": _changed(lambda text: f"- {text}"),
    "formats": _changed(lambda text: f"%s: {text} (%d, {{name}})"),
    "addresses": [(f"https://a.cz/{n}/o-nas", f"https://a.com/{n}/about-us") for n in range(200)],
    "hashes": [(f"{n * 2**90:032x}", f"{n * 3**70:032x}") for n in range(200)],
    "emoji": [(f"😀 👍 {n}", f"😀 ok 👍 {n}") for n in range(200)],
    "few": _pairs()[:19],
    "untranslated": _pairs() + [(english, english) for _, english in _pairs()[:20]],
}


def _written(tmp_path: Path, pairs: Sequence[tuple[str, str]], name: str = "a.tsv") -> Path:
    (tmp_path / name).write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    return tmp_path / name


@pytest.mark.parametrize("name", RIGHT)
def test_correct_text_of_any_domain_passes(name: str, tmp_path: Path) -> None:
    assert _problems(_written(tmp_path, RIGHT[name]), {"source_text": 0, "reference": 1}) == []


@pytest.mark.parametrize("name", ["sentences", "words", "capitals", "no diacritics", "numbered", "spoken"])
def test_swapped_text_of_any_domain_is_found(name: str, tmp_path: Path) -> None:
    (said,) = _problems(_written(tmp_path, RIGHT[name]), {"source_text": 1, "reference": 0})
    assert "swapped? Exchange their columns or paths" in said


def test_suggested_remedy_works() -> None:
    said = str(
        _problem(SENTENCES["en"], [f"{sentence[:-1]}!" for sentence in SENTENCES["en"]], CZECH_ENGLISH)
    )
    assert "is in 'en', and nmt.source_language is 'cs'" in said and "source_language=en" not in said


def test_later_rows_are_checked_before_publication(tmp_path: Path) -> None:
    right = [(f"{czech} {n}", f"{english} {n}") for n in range(180) for czech, english in _pairs()]
    path = _written(tmp_path, right[:1200] + [pair[::-1] for pair in right[1200:]])
    resources = Resources(work=tmp_path / "work", workers=1)
    columns = {"source_text": 0, "reference": 1}
    assert _problems(path, columns) == []
    with pytest.raises(ConfigurationError, match=r"a\.tsv: source_text is in 'en'.*swapped"):
        ingest(_parameters(str(path), columns), tmp_path / "out", resources, CZECH_ENGLISH)
    assert not (tmp_path / "out").exists()
    right_only = _parameters(str(_written(tmp_path, right, "b.tsv")), columns)
    assert ingest(right_only, tmp_path / "out", resources, CZECH_ENGLISH).kept == len(right)


def test_rejected_rows_are_not_checked_for_language(tmp_path: Path) -> None:
    """Untranslated rows are an example."""
    parameters = _parameters(str(_written(tmp_path, _pairs())), {"source_text": 0, "reference": 1})
    english = [f"{text} {n}" for n in range(9) for text in ENGLISH]
    rows = [(*pair, None) for pair in _pairs()] + [(text, text, "identical") for text in english]
    columns = zip(("source_text", "reference", "rejected"), zip(*rows, strict=True), strict=True)
    pq.write_table(pa.table(dict(columns)), tmp_path / "part.parquet")
    (source,) = resolve(parameters, tmp_path)
    examination.check_spread_rows(source, [[tmp_path / "part.parquet"]], parameters, CZECH_ENGLISH)
    (tmp_path / "part.parquet").write_bytes(b"damaged")
    with pytest.raises(InputError, match=r"part\.parquet.* Delete it if it exists, and run"):
        examination.check_spread_rows(source, [[tmp_path / "part.parquet"]], parameters, CZECH_ENGLISH)


def test_few_of_many_files_are_identified(
    samples: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = samples[0].read_text(encoding="utf-8").splitlines(keepends=True)
    for number in range(40):
        (tmp_path / f"{number:02}.tsv").write_text("".join(lines[number * 5 : number * 5 + 100]))
    asked: list[int] = []
    monkeypatch.setattr(
        examination, "wrong_language", lambda texts, *_: asked.append(len(texts["reference"]))
    )
    parameters = _parameters(str(tmp_path / "*.tsv"), {"source_text": 0, "reference": 1})
    assert problems(parameters, CZECH_ENGLISH) == []
    ingest(parameters, tmp_path / "out", Resources(work=tmp_path / "work", workers=1), CZECH_ENGLISH)
    assert asked == [100] * 5 + [1000]


def test_no_identification_without_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert (identified(ENGLISH), other_language(GERMAN, "en")) == (None, None)


@pytest.mark.parametrize("texts", [[], [""], ["Hello world."], ["Hi.", "Bye."], ["Stop!"], ["12", "OK"]])
def test_few_letters_have_no_language(texts: list[str]) -> None:
    """The identifier would call such texts Fulah, Haitian or Afrikaans."""
    assert identified(texts) is None


def test_unknown_language_is_not_called_wrong() -> None:
    """The identifier assigns the made-up words to several languages."""
    chance = random.Random(1)
    words = ["".join(chance.choices("abdeikmnorsuwy", k=chance.randint(2, 8))) for _ in range(300)]
    texts = [" ".join(chance.choices(words, k=10)) for _ in range(60)]
    assert identified(texts) is None
    assert identified(ENGLISH) == "en" and identified(GERMAN) == "de"
    assert identified([*ENGLISH[:47], *GERMAN[:13]]) is None  # less than four fifths
    assert identified([*ENGLISH[:48], *GERMAN[:12]]) == "en"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Die Katze schläft {}", "de"),
        ("Der Hund schläft {}", None),  # of fourteen letters
        ("Die Katze schläft", None),  # one text
    ],
)
def test_twenty_texts_of_fifteen_letters_suffice(text: str, found: str | None) -> None:
    assert other_language([text.format(place) for place in range(20)], "cs") == found


HEADERS = [
    "source\treference",
    "en\tcs",
    "en\ttwi",
    "en\tluo",
    "pcm\ten",
    "eng_Latn\tnya_Latn",
    "text 1\ttext 2",
    "English\tHindi",
]
ROWS = ["Yes.\tAno.", "en\ten", "yes\tano", "en\tThe dog runs.", "twi\tluo", "text"]


@pytest.mark.parametrize("row", [*HEADERS, *ROWS])
def test_headers_are_distinguished_from_rows(row: str) -> None:
    assert is_header(row.split("\t")) == (row in HEADERS)
