"""What a server is asked, how often, and what of its answers is taken for a translation; n-best from
samples."""

import gzip
import math
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from paraforge.intake.sample_bitext import generate
from paraforge.translation.decoding.batching import Untranslatable
from paraforge.translation.decoding.remote.answers import Answer, best_of, fault_of, read_answer
from paraforge.translation.decoding.remote.settings import Example, Server
from paraforge.translation.decoding.remote.throttle import Throttle
from paraforge.translation.stage.parameters import TranslateParameters
from tests.translation.decoding.remote.fake_server import Json, choice

SOURCE = "Pes dnes spí v naší velké zahradě."
GOOD = "The dog sleeps in our big garden today."


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("I'm sorry, but I can't assist with that.", "refusal"),
        ("I’m sorry, I am not able to translate this text.", "refusal"),
        ("As an AI language model, I do not have a garden.", "refusal"),
        ("I cannot provide a translation of this.", "refusal"),
        ("I can’t comply with that request.", "refusal"),
        ("Please provide the text you would like me to translate.", "refusal"),
        (f"Sure! Here's the translation: {GOOD}", "explanation"),
        (f"Here is the English translation: {GOOD}", "explanation"),
        (f"Translation: {GOOD}", "explanation"),
        (f'The translation of the sentence is: "{GOOD}"', "explanation"),
        (f"English translation: {GOOD}", "explanation"),
        (f'"Pes dnes spí" translates to "{GOOD}"', "explanation"),
        (f"{GOOD} (Note: 'zahrada' may also be a yard.)", "explanation"),
        (f"{GOOD} (or, more literally: in our large garden)", "explanation"),
        (f"{GOOD} Note: the word order was changed.", "explanation"),
        (f"{GOOD}\nThe dog is asleep in our garden.", "several lines"),
        (f"{GOOD}\r\n\r\nLet me know if you need more.", "several lines"),
        (f"**Dog**: {GOOD}", "markup"),
        (f"# English\u2028{GOOD}".replace("\u2028", " "), "markup"),
        ("<b>The dog</b> sleeps in our garden.", "markup"),
        (SOURCE, "source language"),
        ("pes dnes spí v naší velké zahradě", "source language"),
        ("Собака сегодня спит в нашем саду.", "source language"),
        (GOOD, None),
        ("Yes.", None),
        ("...", None),
        ("12:30", None),
    ],
)
def test_faults(answer: str, fault: str | None) -> None:
    assert read_answer(choice(answer), SOURCE, in_english=True).fault == fault


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("Note: the dog bites.", "Poznámka: pes kouše."),
        ("The dog (note: a big one) bites.", "Pes (pozn. velký) kouše."),
        ("Windows 11 Home Edition x64", "Windows 11 Home Edition x64"),
        ("Karel Čapek", "Karel Čapek"),
        ("I can't help you with that.", "S tím ti nemůžu pomoct."),
        ("Sure, that's what he says.", "Jistě, to říká."),
        ("The translation is good.", "Překlad je dobrý."),
        ("A **bold** word", "Slovo **tučně**"),
        ("one\ntwo", "jedna\ndvě"),
    ],
)
def test_what_the_sentence_has_itself_is_no_fault(answer: str, sentence: str) -> None:
    assert fault_of(answer, sentence) is None


@pytest.mark.parametrize(
    "answer",
    [
        f'"{GOOD}"',
        f"“{GOOD}”",
        f"„{GOOD}“",
        f"  **{GOOD}**\n",
        f"```\n{GOOD}\n```",
        f"```text\n{GOOD}\n```",
        f'**"{GOOD}"**',
        f"<think>Dog, garden…\nDone.</think>\n\n{GOOD}",
    ],
)
def test_what_is_around_a_translation_is_removed(answer: str) -> None:
    found = read_answer(choice(answer), SOURCE, in_english=True)
    assert (found.text, found.fault) == (GOOD, None)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ('"Come," he said, "in."', "Pojď, řekl, dál."),
        ('"Come in."', "„Pojď dál.“"),
        ('"Come" and "go"', "Pojď a běž"),
        ('"', "x"),
        ("''", "x"),
    ],
)
def test_quotation_marks_of_the_text_stay(answer: str, sentence: str) -> None:
    assert read_answer(choice(answer), sentence, in_english=True).text == answer


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("The dog \ud83d sleeps.", "The dog \ufffd sleeps."),
        ("The dog \ud83d\ude00 sleeps.", "The dog \U0001f600 sleeps."),
        ("The \x00dog\x1b sleeps.\x07", "The dog sleeps."),
        ("\x00", ""),
    ],
)
def test_what_no_file_can_have_is_not_in_a_translation(answer: str, text: str) -> None:
    found = read_answer(choice(answer), SOURCE, in_english=True)
    assert (found.text, found.fault) == (text, None)
    assert pa.array([found.text]).to_pylist() == [text]


def test_other_scripts_are_no_fault_of_other_target_languages() -> None:
    assert read_answer(choice("Собака спит."), SOURCE, in_english=False).fault is None


@pytest.mark.parametrize(
    ("given_choice", "score", "truncated", "fault"),
    [
        (choice(GOOD, [-0.5, -1.5]), -1.0, False, None),
        (choice(GOOD, []), math.nan, False, None),
        ({**choice(GOOD), "logprobs": None}, math.nan, False, None),
        ({**choice(GOOD), "logprobs": {"content": [{"logprob": None}]}}, math.nan, False, None),
        ({**choice(GOOD), "logprobs": {"content": [{"logprob": math.inf}]}}, math.nan, False, None),
        ({**choice(GOOD), "logprobs": "none"}, math.nan, False, None),
        (choice("The dog sleeps in", [-1.0], "length"), -1.0, True, None),
        (choice(f"<think>hm</think>{GOOD}", [-1.0]), math.nan, False, None),
        (choice("<think>hm, the dog", None, "length"), math.nan, True, None),
        (choice(None, None, "content_filter"), math.nan, False, "refusal"),
        (choice(None, refusal="I can't."), math.nan, False, "refusal"),
        (choice(None), math.nan, False, None),
        ({"message": {"content": [{"type": "text", "text": GOOD}]}}, math.nan, False, None),
        ({"message": {"content": 12}}, math.nan, False, None),
    ],
)
def test_scores_and_ends(given_choice: Json, score: float, truncated: bool, fault: str | None) -> None:
    found = read_answer(given_choice, SOURCE, in_english=True)
    assert found.score == pytest.approx(score, nan_ok=True)
    assert (found.truncated, found.fault) == (truncated, fault)
    assert "think" not in found.text and "\n" not in found.text


ANSWER = st.builds(
    Answer,
    st.sampled_from(["a", "b", "c", ""]),
    st.sampled_from([-0.25, -0.5, -1.0, math.nan]),
    st.just(3),
    st.booleans(),
    st.sampled_from([None, None, None, "refusal", "markup"]),
)


@given(st.lists(ANSWER, min_size=1, max_size=8), st.integers(1, 5))
def test_the_best_of_samples(answers: list[Answer], nbest: int) -> None:
    good = [one for one in answers if one.fault is None]
    if not good:
        with pytest.raises(Untranslatable, match=str(answers[0].fault)):
            best_of(answers, nbest)
        return
    found = best_of(answers, nbest)
    texts = [one.text for one in found]
    possible = {one.text for one in good if one.text} or {""}
    assert len(texts) == len(set(texts)) == min(nbest, len(possible)) and set(texts) <= possible
    known = {text: [one.score for one in good if one.text == text] for text in possible}
    best = {text: max((one for one in scores if one == one), default=None) for text, scores in known.items()}
    if None in best.values():
        counts = [len(known[text]) for text in texts]
        assert counts == sorted((len(one) for one in known.values()), reverse=True)[: len(texts)]
    else:
        scores = [one.score for one in found]
        assert scores == sorted((one for one in best.values() if one is not None), reverse=True)[: len(texts)]


def test_no_translation_of_the_sample_is_taken_for_something_else() -> None:
    assert not [pair for pair in generate() if fault_of(pair.reference, pair.cs) is not None]


def test_few_human_translations_are_taken_for_something_else(data_directory: Path) -> None:
    found: Counter[str] = Counter()
    for name in ("tatoeba", "newstest2008-2023", "fishfillets.dialogs"):
        with gzip.open(data_directory / "bitext" / f"{name}.en-cs.tsv.gz", "rt", encoding="utf-8") as file:
            for line in file:
                english, czech = line.rstrip("\n").split("\t")[-2:]
                found["pairs"] += 1
                found[str(fault_of(english, czech))] += 1
    assert found["pairs"] > 60_000
    assert found["refusal"] <= 1 and found["pairs"] - found["None"] < found["pairs"] / 5000


@given(st.text(), st.text(min_size=1))
def test_a_sentence_comes_out_as_it_is(sentence: str, example: str) -> None:
    server = Server(
        model="m",
        source_language="Czech",
        system="{source_language} to {target_language}, {{so}}",
        user="<{sentence}>",
        examples=[Example(source=example, translation="{x}")],
    )
    assert [(one["role"], one["content"]) for one in server.messages(sentence)] == [
        ("system", "Czech to English, {so}"),
        ("user", f"<{example}>"),
        ("assistant", "{x}"),
        ("user", f"<{sentence}>"),
    ]


def test_the_usual_prompt_names_the_languages_that_are_known() -> None:
    first = Server(model="m").messages("Ahoj")
    assert "into English." in first[0]["content"] and "from" not in first[0]["content"]
    other = Server(model="m", source_language="Czech", target_language="German").messages("Ahoj")
    assert "from Czech into German." in other[0]["content"]
    assert first[-1] == other[-1] == {"role": "user", "content": "Ahoj"}
    assert Server(model="m", system="").messages("Ahoj") == [first[-1]]


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("user", "no place", "{sentence} is missing"),
        ("user", "{{sentence}}", "{sentence} is missing"),
        ("user", "{sentence} {language}", "no placeholder {language}"),
        ("user", "{sentence.__class__}", "no placeholder"),
        ("user", "{sentence!r}", "no placeholder"),
        ("user", "{sentence:>10}", "no placeholder"),
        ("user", "{sentence} {}", "no placeholder {}"),
        ("user", "{sentence", "twice"),
        ("user", "{sentence}}", "twice"),
        ("system", "Translate {sentence}", "no placeholder {sentence}"),
    ],
)
def test_a_template_that_cannot_be_filled(field: str, text: str, said: str) -> None:
    with pytest.raises(ValidationError) as error:
        Server.model_validate({"model": "m", field: text})
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "server.model is missing"),
        ({"server": {"model": " "}}, "server.model is missing"),
        ({"server": {"model": "m", "user": "{source_language}: {sentence}"}}, "server.source_language"),
        ({"server": {"model": "m"}, "nbest": 3}, "server.temperature is 0"),
        ({"server": {"model": "m", "temperature": 1, "samples": 2}, "nbest": 3}, "fewer than nbest"),
        ({"server": {"model": "m", "url_variable": "http://localhost/v1"}}, "environment variable"),
        ({"server": {"model": "m", "body": {"messages": []}}}, "the engine sets this itself"),
        ({"server": {"model": "m", "examples": [{"source": "Ahoj"}]}}, "translation"),
    ],
)
def test_settings_that_do_not_go_together(values: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        TranslateParameters.model_validate({"engine": "server", **values})
    assert said in str(error.value)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def rounds(throttle: Throttle, clock: Clock, count: int) -> list[int]:
    """Requests of each round, all of which are answered."""
    sizes = []
    for _ in range(count):
        clock.now += 60
        size = int(throttle.limit)
        for _ in range(size):
            throttle.enter()
        for _ in range(size):
            throttle.succeeded()
        sizes.append(size)
    return sizes


def test_it_doubles_until_the_first_overload_then_adds_one_a_round() -> None:
    clock = Clock()
    throttle = Throttle(1000, clock)
    assert rounds(throttle, clock, 4) == [4, 8, 16, 32]
    clock.now += 1
    begun = [throttle.enter() for _ in range(int(throttle.limit))]
    clock.now += 1
    for one in begun:  # all of a round say the same thing once
        throttle.overloaded(one)
    assert throttle.limit == 32
    assert rounds(throttle, clock, 3) == [32, 32, 33]


def test_it_never_exceeds_the_most_nor_falls_below_one() -> None:
    clock = Clock()
    throttle = Throttle(6, clock)
    assert rounds(throttle, clock, 3) == [4, 6, 6]
    for _ in range(10):
        clock.now += 60
        throttle.overloaded(throttle.enter())
    assert throttle.limit == 1
    assert rounds(throttle, clock, 3) == [1, 2, 2]


@pytest.mark.parametrize(
    ("waits", "least"), [([7.0], 7.0), ([None], 0.25), ([None] * 5, 4.0), ([0.0] * 5, 4.0)]
)
def test_pauses_grow_and_are_as_long_as_the_server_asks(waits: list[float | None], least: float) -> None:
    clock = Clock()
    throttle = Throttle(8, clock)
    for wait in waits:
        clock.now += 100
        throttle.overloaded(throttle.enter(), wait)
    assert least <= throttle._resume_at - clock.now <= max(2 * least, 0.5)


def test_trouble_lasts_until_an_answer() -> None:
    clock = Clock()
    throttle = Throttle(8, clock)
    clock.now += 1000
    assert throttle.trouble_seconds() == 0
    throttle.enter()
    throttle.failed()
    clock.now += 5
    assert throttle.trouble_seconds() == 5
    throttle.enter()
    throttle.succeeded()
    assert throttle.trouble_seconds() == 0
