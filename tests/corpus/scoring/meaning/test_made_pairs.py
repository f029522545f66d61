"""Rules that alter the meaning of a sentence."""

from random import Random

import pytest

from paraforge.corpus.scoring.meaning.made_pairs import RULES, change_number, changed


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("negation", "He is happy.", "He is not happy."),
        ("negation", "He isn’t happy.", "He is happy."),
        ("negation", "I won't go.", "I will go."),
        ("negation", "You cannot go.", "You can go."),
        ("negation", "He never sleeps.", "He sleeps."),
        ("negation", "There is no tea.", "There is some tea."),
        ("negation", "Tea without milk", "Tea with milk"),
        ("negation", "They sleep.", None),
        ("negation", "There is no 5.", None),
        ("negation", "NO, HE IS NOT, and was never", "NO, HE IS, and was never"),
        ("negation", "We saw nobody.", "We saw everybody."),
        ("negation", "We saw nothing.", "We saw everything."),
        ("number", "They sleep.", None),
        ("number", "A hundred sleep.", None),
        ("number", "At 10:30 on 3.5.2010, 1,000 came.", None),
        ("antonym", "It was possible.", "It was impossible."),
        ("antonym", "They sleep.", "They wake."),
        ("antonym", "They wake.", "They sleep."),
        ("antonym", "It is hot.", "It is cold."),
        ("antonym", "All of them", None),
        ("antonym", "They won't.", None),
        ("person", "He sleeps.", "She sleeps."),
        ("person", "I saw her.", "I saw him."),
        ("person", "I saw her dog.", "I saw his dog."),
        ("person", "They sleep.", None),
    ],
)
def test_rules(rule: str, text: str, expected: str | None) -> None:
    assert {RULES[rule](text, Random(seed)) for seed in range(5)} == {expected}


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("person", "He saw his dog.", {"She saw his dog.", "He saw her dog."}),
        ("antonym", "Wet or hot", {"Dry or hot", "Wet or cold"}),
    ],
)
def test_number_may_change_anywhere(rule: str, text: str, expected: set[str]) -> None:
    assert {RULES[rule](text, Random(seed)) for seed in range(20)} == expected


@pytest.mark.parametrize("number", ["0", "1", "2", "17", "two"])
def test_altered_number_differs(number: str) -> None:
    text = f"They saw {number} ships."
    made = {change_number(text, Random(seed)) for seed in range(50)}
    assert len(made) > 3 and text not in made and None not in made


def test_row_number_selects_rule() -> None:
    text = "He was happy with 5 dogs."
    made = [changed(text, number) for number in range(40)]
    assert made == [changed(text, number) for number in range(40)]
    assert {one[1] for one in made if one} == {"negation", "number", "antonym", "person"}
    assert changed("Dogs.", 1) is None
