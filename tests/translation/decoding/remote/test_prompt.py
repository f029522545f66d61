"""Templates are checked before anything is sent, and a sentence is text, whatever is in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from paraforge.translation.decoding.remote.settings import Example, Server
from paraforge.translation.stage.parameters import TranslateParameters


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
