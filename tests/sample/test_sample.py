"""The sample as a whole: counts, reproducibility, agreement in every sentence, and its ground truth."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from paraforge.errors import InputError
from paraforge.sample import (
    SOURCES,
    generate,
    generator,
    synonym_pairs,
    write_sample,
    write_sample_test,
)
from paraforge.sample.declension import CASES
from paraforge.sample.entities import NounPhrase, Pronoun
from paraforge.sample.generator import SamplePair, Sentence, SentenceGenerator, domain_sizes, sentences
from paraforge.sample.lexicon import Adverb, Verb, load_lexicon
from paraforge.sample.patterns import load_patterns, read_handwritten
from paraforge.sample.slots import Quality
from paraforge.sample.synonyms import pairs_in


@pytest.fixture(scope="module")
def corpus() -> list[SamplePair]:
    return list(generate(20000, 1))


@pytest.fixture(scope="module")
def made() -> list[Sentence]:
    sizes = domain_sizes(20000 - len(read_handwritten()))
    return [sentence for domain, size in sizes.items() for sentence in sentences(domain, size, 1)]


def test_size_of_the_lexicon_and_the_patterns() -> None:
    assert len(load_lexicon()) >= 400
    assert len(load_patterns()) >= 60
    assert len(read_handwritten()) >= 300


def test_counts(corpus: list[SamplePair]) -> None:
    assert len(corpus) == 20000
    by_source = Counter(pair.source for pair in corpus)
    assert set(by_source) == set(SOURCES)
    assert by_source["sample-handwritten"] == len(read_handwritten())
    generated = [pair for pair in corpus if pair.source != "sample-handwritten"]
    renderings = Counter(pair.cs for pair in generated)
    assert max(renderings.values()) <= 3
    assert len(renderings) > 0.6 * len(generated)
    assert sum(count > 1 for count in renderings.values()) > 2000


@pytest.mark.parametrize("pairs", [1, 7, 100, 1501])
def test_any_size_is_exact(pairs: int) -> None:
    assert len(list(generate(pairs, 5))) == pairs


def test_no_pairs_at_all_is_refused() -> None:
    with pytest.raises(InputError):
        list(generate(0))


def test_more_than_the_patterns_yield_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    few = tuple(pattern for pattern in load_patterns() if pattern.name == "do_not_forget_lock")
    monkeypatch.setattr(generator, "load_patterns", lambda: few)
    with pytest.raises(InputError, match="no more than"):
        list(sentences("everyday", 1000, 1))


def test_no_pair_comes_twice(corpus: list[SamplePair]) -> None:
    assert len({(pair.cs, pair.reference) for pair in corpus}) == len(corpus)


def test_sentences_are_clean(corpus: list[SamplePair]) -> None:
    for pair in corpus:
        for text in (pair.cs, pair.reference):
            assert re.fullmatch(r"[A-ZÁ-Ž].*[.!?]", text), text
            assert not re.search(r"[{}\[\]|~=_\t\n<>]|  | [.,!?]|\bNone\b", text), text
            words = text.lower().split()
            repeated = [first for first, second in itertools.pairwise(words) if first == second]
            assert not repeated or repeated == ["had"], text


def test_same_seed_same_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    code = (
        "import hashlib\nfrom paraforge.sample import generate\n"
        "digest = hashlib.sha256()\n"
        "for pair in generate(1500, 3): digest.update(repr(pair).encode())\nprint(digest.hexdigest())"
    )
    digests = set()
    for hash_seed in ("0", "1", "4711"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout.strip())
    here = hashlib.sha256()
    for pair in generate(1500, 3):
        here.update(repr(pair).encode())
    assert digests == {here.hexdigest()}


def test_another_seed_another_sample() -> None:
    first, second = ({pair.cs for pair in generate(800, seed)} for seed in (1, 2))
    assert len(first & second) < 0.5 * len(first)


def test_written_files(tmp_path: Path) -> None:
    paths = write_sample(tmp_path, pairs=900, seed=4)
    assert [path.name for path in paths] == [f"{source}.tsv" for source in SOURCES]
    lines = [line for path in paths for line in path.read_bytes().decode("utf-8").split("\n")[:-1]]
    assert lines == [f"{pair.cs}\t{pair.reference}" for pair in generate(900, 4)]
    before = {path: path.stat().st_mtime_ns for path in paths}
    write_sample(tmp_path, pairs=900, seed=4)
    assert {path: path.stat().st_mtime_ns for path in paths} == before
    paths[0].write_text("damaged", encoding="utf-8")
    write_sample(tmp_path, pairs=900, seed=4)
    assert paths[0].read_bytes().startswith(lines[0].encode())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)


def test_the_test_split_is_held_out(tmp_path: Path, corpus: list[SamplePair]) -> None:
    path = write_sample_test(tmp_path / "test.tsv")
    held_out = [line.split("\t")[0] for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    assert len(held_out) == len(set(held_out)) == 500
    assert not set(held_out) & {pair.cs for pair in corpus}
    assert not set(held_out) & {pair.cs for pair in generate(5000, 2)}


def test_every_entry_and_pattern_is_used(made: list[Sentence]) -> None:
    used = {sentence.pattern.name for sentence in made}
    assert used == {pattern.name for pattern in load_patterns()}
    words: set[str] = set()
    for sentence in made:
        for filling in sentence.filled.values():
            if isinstance(filling, NounPhrase):
                words.add("noun " + filling.noun.lemma)
                if filling.adjective:
                    words.add("adjective " + filling.adjective.lemma)
            elif isinstance(filling, Quality):
                words.add("adjective " + filling.adjective.lemma)
            elif isinstance(filling, Verb):
                words.add("verb " + filling.key)
            elif isinstance(filling, Adverb):
                words.add("adverb " + filling.czech)
    for pattern in load_patterns():
        for template in (pattern.czech, *pattern.english):
            words.update("verb " + key for key in re.findall(r"\{=([^.}]+)", template))
    lexicon = load_lexicon()
    entries = (
        {"noun " + noun.lemma for noun in lexicon.nouns}
        | {"adjective " + adjective.lemma for adjective in lexicon.adjectives}
        | {"verb " + verb.key for verb in lexicon.verbs}
        | {"adverb " + adverb.czech for adverb in lexicon.adverbs}
    )
    assert entries - words == set()


# Endings of hard adjectives, from a school grammar: nominative, genitive, dative, accusative, locative,
# instrumental.
ENDINGS = {
    "ms": ("ý", "ého", "ému", "ého", "ém", "ým"),
    "is": ("ý", "ého", "ému", "ý", "ém", "ým"),
    "fs": ("á", "é", "é", "ou", "é", "ou"),
    "ns": ("é", "ého", "ému", "é", "ém", "ým"),
    "mp": ("í", "ých", "ým", "é", "ých", "ými"),
    "ip": ("é", "ých", "ým", "é", "ých", "ými"),
    "fp": ("é", "ých", "ým", "é", "ých", "ými"),
    "np": ("á", "ých", "ým", "á", "ých", "ými"),
}


def test_adjectives_agree_with_their_nouns_in_every_sentence(made: list[Sentence]) -> None:
    checked = 0
    for sentence in made:
        for filling in sentence.filled.values():
            if not isinstance(filling, NounPhrase):
                continue
            phrases = {case: filling.case(case) for case in CASES}
            present = [case for case, phrase in phrases.items() if phrase.lower() in sentence.cs.lower()]
            assert present, (sentence.cs, phrases)
            if filling.adjective is None or filling.adjective.lemma.endswith("í"):
                continue
            for case in present:
                *_, adjective, noun = phrases[case].split()
                inner = "gen" if (filling.count or 0) >= 5 and case in ("nom", "acc") else case
                assert noun == filling.noun.forms[filling.number, inner]
                ending = ENDINGS[filling.gender + filling.number][CASES.index(inner)]
                assert adjective.endswith(ending), (sentence.cs, adjective, noun, case)
                checked += 1
    assert checked > 5000


def test_past_participles_agree_with_pronouns(made: list[Sentence]) -> None:
    """With a dropped pronoun the auxiliary or the participle shows person, number and gender."""
    checked = 0
    endings = {("s", "m"): "l", ("s", "f"): "la", ("p", "m"): "li"}
    for sentence in made:
        who = sentence.filled.get("who")
        if not isinstance(who, Pronoun) or ".past:who}" not in sentence.pattern.czech:
            continue
        ending = endings[who.agreement.number, who.agreement.gender]
        words = re.findall(r"\w+", sentence.cs)
        assert any(word.endswith(ending) for word in words), sentence.cs
        auxiliary = {"1s": "jsem", "2s": "js", "1p": "jsme", "2p": "jste"}.get(
            f"{who.agreement.person}{who.agreement.number}"
        )
        if auxiliary:
            assert any(word.startswith(auxiliary) or word in ("ses", "sis") for word in words), sentence.cs
        checked += 1
    assert checked > 300


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("s before a sibilant", r"\b[sz] [szšž]"),
        ("v before v or f", r"\bv [vf]"),
        ("k before k or g", r"\bk [kg]"),
        ("vocalised for no reason", r"\b(ve|ze|ke) [aeiouyáéíóúů]"),
        ("clitics not merged", r"\bjsi s[ei]\b|\bbys s[ei]\b"),
        ("auxiliary first", r"^(Jsem|Jsi|Jsme|Jste) (?!docela)\w+(l|la|li)\b"),
        ("clitic first", r"^(Se|Si|Bych|Mi|Ti) "),
        ("nominative after five", r"\b(pět|šest|sedm|osm|devět|deset) \w+(ové|ti|ři)\b(?<!děti)"),
    ],
)
def test_no_wrong_czech(name: str, wrong: str, made: list[Sentence]) -> None:
    pattern = re.compile(wrong, re.IGNORECASE if name != "auxiliary first" else 0)
    found = [s.cs for s in made if pattern.search(s.cs) and not re.search(r"^Se svou|^Se svým", s.cs)]
    assert found == []


NOT_VOWELS = re.compile(r"(universit|use|European|one\b)", re.IGNORECASE)


def test_articles(corpus: list[SamplePair]) -> None:
    seen: Counter[str] = Counter()
    for pair in corpus:
        for article, word in re.findall(r"\b([Aa]n?) ([\w-]+)", pair.reference):
            vowel = (word[0] in "aeiouAEIOU" and not NOT_VOWELS.match(word)) or word.startswith("hour")
            assert (article.lower() == "an") == vowel, pair.reference
            seen[article.lower()] += 1
    assert seen["a"] > 3000 and seen["an"] > 500


@pytest.mark.parametrize(
    "wrong",
    [
        r"\b(he|she|it) (are|were|have|do|am)\b",
        r"\b(they|we|you) (is|was|has|does|am)\b",
        r"\bI (is|are|has|does|were)\b",
        r"\b(a|an) (\w+ )?(trousers|pants|glasses|spectacles|vegetables|bread|water|milk)\b",
        r"\b(a|an) (\w+ )?(people|men|women|children|knives|wives)\b",
        r"\b(a|an|the|my|your|his|her) (a|an|the|this|these)\b",
        r"\b(two|three|four|five|six|seven|eight|nine|ten|twelve) (\w+ )?(man|woman|child|knife|thief)\b",
        r"\bpolice (is|was|has)\b",
        r"\bthis (trousers|pants|glasses|spectacles|settings|preferences)\b",
        r"\bmore \w+er\b(?<!clever)(?<!inexpensiver)",
        r"\bto (bought|went|made|was)\b",
    ],
)
def test_no_wrong_english(wrong: str, made: list[Sentence]) -> None:
    found = [text for s in made for text in s.renderings if re.search(wrong, text, re.IGNORECASE)]
    assert found == []


def test_synonyms_render_the_same_czech(made: list[Sentence]) -> None:
    """Each pair is open in some sentence, and both sides occur among that sentence's renderings."""
    wanted = {(pair.left, pair.right) for pair in synonym_pairs()}
    assert sum(pair.level == "word" for pair in synonym_pairs()) >= 200
    seen: set[tuple[str, str]] = set()
    open_in: dict[tuple[str, str], list[Sentence]] = defaultdict(list)
    for sentence in made:
        for pair in pairs_in(sentence.alternatives):
            open_in[pair.left, pair.right].append(sentence)
    drawn = SentenceGenerator(99)
    for key in sorted(wanted & set(open_in)):
        for sentence in open_in[key][:20]:
            texts = drawn.renderings(sentence.pattern, sentence.filled, 60)
            padded = [f" {re.sub(r'[.,!?]', ' ', text.lower())} " for text in texts]
            if all(any(f" {side} " in text for text in padded) for side in key):
                seen.add(key)
                break
    assert len(wanted & set(open_in)) > 0.95 * len(wanted)
    assert (wanted & set(open_in)) - seen == set()


def test_synonyms_occur_on_both_sides_in_the_corpus_itself(corpus: list[SamplePair]) -> None:
    by_czech: dict[str, list[str]] = defaultdict(list)
    for pair in corpus:
        by_czech[pair.cs].append(f" {re.sub(r'[.,!?]', ' ', pair.reference.lower())} ")
    several = [texts for texts in by_czech.values() if len(texts) > 1]
    word_pairs = [pair for pair in synonym_pairs() if pair.level == "word"]
    together = 0
    for pair in word_pairs:
        left, right = f" {pair.left} ", f" {pair.right} "
        together += any(
            any(left in text for text in texts) and any(right in text for text in texts) for texts in several
        )
    assert together > 0.7 * len(word_pairs)
