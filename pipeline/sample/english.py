"""English morphology: plurals, verb forms, articles and contractions."""

from __future__ import annotations

import re

_DOUBLING = frozenset(
    (
        "stop",
        "plan",
        "run",
        "sit",
        "put",
        "get",
        "win",
        "begin",
        "cut",
        "shut",
        "swim",
        "hit",
        "let",
        "chat",
        "hug",
        "drop",
        "ban",
        "set",
        "jog",
        "rob",
        "submit",
        "stir",
        "admit",
        "pet",
        "bet",
        "forget",
        "step",
    )
)
_SILENT_H = ("hour", "honest", "honor", "heir")
_CONSONANT_U = re.compile(r"(uni(?!n)|use|usu|euro|one\b|once|ut[ie]|u\.)", re.IGNORECASE)


def plural(noun: str) -> str:
    """Regular plural of a noun or of a compound's last word (bus stop: bus stops)."""
    if re.search(r"(s|x|z|ch|sh)$", noun):
        return noun + "es"
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + "s"


def _split(verb: str) -> tuple[str, str]:
    head, space, rest = verb.partition(" ")
    return head, space + rest


def third_person(verb: str) -> str:
    """Third person singular of a verb or of a phrase's first word (look for: looks for)."""
    head, rest = _split(verb)
    if head in ("have", "be"):
        return {"have": "has", "be": "is"}[head] + rest
    if head.endswith("o"):
        return head + "es" + rest
    return plural(head) + rest


def participle_ing(verb: str) -> str:
    """The -ing form."""
    head, rest = _split(verb)
    if head in _DOUBLING:
        head += head[-1]
    elif head in ("lie", "die", "tie"):
        head = head[:-2] + "y"
    elif head.endswith("e") and not head.endswith(("ee", "oe", "ye")) and head != "be":
        head = head[:-1]
    return head + "ing" + rest


def regular_past(verb: str) -> str:
    """The regular past tense and past participle."""
    head, rest = _split(verb)
    if head.endswith("e"):
        head += "d"
    elif re.search(r"[^aeiou]y$", head):
        head = head[:-1] + "ied"
    else:
        head += (head[-1] if head in _DOUBLING else "") + "ed"
    return head + rest


def indefinite_article(following: str) -> str:
    """`a` or `an` before the given words, by their first sound."""
    word = following.split(" ", 1)[0]
    if word.lower().startswith(_SILENT_H):
        return "an"
    if _CONSONANT_U.match(word):
        return "a"
    return "an" if word[0].lower() in "aeiou" else "a"


# A joint "~" in a rendering marks where English may contract; a sentence contracts everywhere or nowhere.
_NEGATIVE = {
    "can": "can't",
    "will": "won't",
    "shall": "shan't",
}
_CONTRACTED = {
    "am": "'m",
    "are": "'re",
    "is": "'s",
    "have": "'ve",
    "has": "'s",
    "will": "'ll",
    "would": "'d",
}
_PRONOUNS = frozenset(("i", "you", "he", "she", "it", "we", "they", "there", "that", "where", "what"))
_JOINT = re.compile(r"([\w']+)~(\w+)(?:~(not))?", re.UNICODE)
_NEGATABLE = frozenset(
    (
        "do",
        "does",
        "did",
        "is",
        "are",
        "was",
        "were",
        "has",
        "have",
        "had",
        "would",
        "could",
        "should",
        "must",
    )
)


def contractions(sentence: str) -> list[tuple[str, str]]:
    """The full and the contracted form of each joint of a rendering where they differ."""
    found = []
    for match in _JOINT.finditer(sentence):
        full, contracted = contract(match.group(0), False), contract(match.group(0), True)
        if match.group(3) and match.group(1).lower() not in _PRONOUNS:  # `Petr has not`: the name is no part
            full, contracted = full.partition(" ")[2], contracted.partition(" ")[2]
        if full != contracted:
            found.append((full, contracted))
    return found


def contract(sentence: str, contracted: bool) -> str:
    """Resolve the joints of a rendering: `I~am` becomes `I'm` or `I am`, `do~not` `don't` or `do not`."""

    def resolve(match: re.Match[str]) -> str:
        left, right, negation = match.group(1), match.group(2), match.group(3)
        if not contracted:
            joined = "cannot" if (left.lower(), right) == ("can", "not") else f"{left} {right}"
            return f"{joined} {negation}" if negation else joined.replace("Can not", "Cannot")
        if right == "not":
            negated = _NEGATIVE.get(
                left.lower(), left + "n't" if left.lower() in _NEGATABLE else f"{left} not"
            )
            return negated.capitalize() if left[0].isupper() else negated
        if right == "can" and negation:
            return f"{left} can't"
        if left.lower() in _PRONOUNS:
            if left.lower() in ("there", "that", "where", "what") and right != "is":
                return f"{left} {right}" + (" not" if negation else "")
            if negation and right not in ("am", "are", "is"):
                negated = _NEGATIVE.get(right, right + "n't")
                return f"{left} {negated}"
            return left + _CONTRACTED[right] + (" not" if negation else "")
        if negation:
            negated = _NEGATIVE.get(right, right + "n't")
            return f"{left} {negated}"
        return f"{left} {right}"

    return _JOINT.sub(resolve, sentence)
