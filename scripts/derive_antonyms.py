"""Derives the antonyms for the signs of a changed meaning from WordNet and some pairs of our own.

WordNet is that of the Debian package wordnet-base. Only words that the built-in scorer knows are kept; of
adjectives also those that are similar to one of a pair.

python -m scripts.derive_antonyms pipeline/corpus/scoring/meaning/antonyms.txt
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.command_line import start
from paraforge.corpus.scoring.general import DIRECTORY
from paraforge.corpus.scoring.word_scorer import WordScorer

EXCLUSIVE = (
    "monday tuesday wednesday thursday friday saturday sunday",
    "january february march april may june july august september october november december",
    "spring summer autumn winter",
    "morning afternoon evening night",
    "north south east west",
    "northern southern eastern western",
    "red green blue yellow white black brown purple orange pink grey",
    "father mother son daughter brother sister uncle aunt",
    "english french german spanish italian russian chinese japanese czech american british",
)
"""Words of which only one can be true of a thing at a time."""
OPPOSITES = (
    "before after", "above below", "over under", "inside outside", "into out", "in out", "up down",
    "on off", "with without", "more less", "more fewer", "most least", "many few", "much little",
    "all none", "all some", "every no", "everyone nobody", "everybody nobody", "everything nothing",
    "someone nobody", "something nothing", "always never", "often rarely", "sometimes never",
    "everywhere nowhere", "first last", "here there", "yes no", "both neither", "both either",
    "only also", "early late", "man woman", "boy girl", "husband wife", "king queen", "male female",
    "he she", "his her", "him her", "himself herself", "upper lower", "left right", "win lose", "buy sell",
    "push pull", "come go", "arrive leave", "start stop", "begin end", "start finish", "open close",
    "open shut", "rise fall", "increase decrease", "love hate", "like dislike", "remember forget",
    "succeed fail", "accept refuse", "accept reject", "allow forbid", "allow prevent", "agree disagree",
    "true false", "right wrong", "alive dead", "live die", "day night", "today tomorrow", "today yesterday",
    "yesterday tomorrow", "friend enemy", "war peace", "north south", "east west", "add remove",
    "possible impossible", "able unable", "easy difficult", "easy hard", "near far", "same different",
    "support oppose", "against for", "enter exit", "find lose", "give take", "send receive", "ask answer",
    "attack defend", "gain lose", "best worst", "better worse", "good bad", "happy sad", "safe dangerous",
    "stand sit", "sleep wake", "sit run", "walk run", "laugh cry", "speak listen", "indoor outdoor",
    "indoors outdoors", "top bottom", "front back", "parent child", "teacher student", "old new",
    "old young",
)  # fmt: skip
"""Pairs that WordNet does not have, or not as these parts of speech."""
PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
_HEADER = """\
# Antonyms: a word, those that it is opposed to, and behind a stroke those that are similar to one of these.
# Made by scripts/derive_antonyms.py.
#
# Most are derived from WordNet 3.0, Copyright 2006 by Princeton University; its license, which applies to
# them, is in the README.md of paraforge.corpus.scoring.general. The others are in the script.
"""


@dataclass
class Synset:
    """A synonym set of WordNet, with its position in the file.

    pointers: to other sets: symbol, position, and the words concerned.
    """

    place: str
    words: list[str]
    pointers: list[tuple[str, str, str]]
    definition: str


def synsets(directory: Path, part: str) -> Iterator[Synset]:
    """Yield the synonym sets of a part of speech."""
    for line in (directory / f"data.{part}").read_text(encoding="utf-8").split("\n"):
        if not line or line.startswith("  "):  # the license comes before the sets
            continue
        data, _, gloss = line.partition("|")
        fields = data.split()
        count = int(fields[3], 16)
        words = [fields[4 + 2 * place].partition("(")[0] for place in range(count)]
        after = 4 + 2 * count
        pointers = [
            tuple(fields[after + 1 + 4 * place : after + 5 + 4 * place])
            for place in range(int(fields[after]))
        ]
        definition = gloss.partition(";")[0].partition('"')[0].strip()
        kept = [(symbol, place, ends) for symbol, place, _, ends in pointers]
        yield Synset(fields[0], words, kept, definition)


def wordnet_antonyms(directory: Path) -> Iterator[tuple[str, str, bool]]:
    """Return WordNet's antonyms, or with False head adjectives with words similar to their antonyms."""
    for part in PARTS_OF_SPEECH:
        found = {synset.place: synset for synset in synsets(directory, part)}
        for synset in found.values():
            for symbol, place, ends in synset.pointers:
                if symbol != "!":
                    continue
                other = found[place]
                first = synset.words[int(ends[:2], 16) - 1].lower()
                yield first, other.words[int(ends[2:], 16) - 1].lower(), True
                for near, near_place, _ in other.pointers:
                    if near == "&":
                        yield from ((first, word.lower(), False) for word in found[near_place].words[:2])


def main(
    output: Annotated[Path, typer.Argument(help="file of antonyms; replaced")],
    wordnet: Annotated[Path, typer.Option(help="WordNet's data files")] = Path("/usr/share/wordnet"),
) -> None:
    """Write the list."""
    found = [*wordnet_antonyms(wordnet)]
    direct = {frozenset(pair.split()) for pair in OPPOSITES}
    direct |= {frozenset(pair) for line in EXCLUSIVE for pair in itertools.combinations(line.split(), 2)}
    direct |= {frozenset((first, second)) for first, second, opposed in found if opposed}
    near = {frozenset((first, second)) for first, second, opposed in found if not opposed} - direct
    words = sorted({word for pair in direct | near for word in pair if word.isalpha()})
    known = WordScorer.open(DIRECTORY).vectors.knows(words)
    kept = {word for word, there in zip(words, known, strict=True) if there}
    lists = [_by_first(pairs, kept) for pairs in (direct, near)]
    lines = [
        " ".join([word, *lists[0].get(word, ()), *(["/", *lists[1][word]] if word in lists[1] else [])])
        for word in sorted({*lists[0], *lists[1]})
    ]
    output.write_text(_HEADER + "".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    print(f"{len(lines):,} lines")


def _by_first(pairs: Iterable[frozenset[str]], kept: set[str]) -> dict[str, list[str]]:
    """Group the second words of kept pairs by the first word, in order."""
    found: dict[str, list[str]] = {}
    for first, *others in sorted(sorted(pair) for pair in pairs if pair <= kept):
        found.setdefault(first, []).extend(others)
    return found


if __name__ == "__main__":
    start(main)
