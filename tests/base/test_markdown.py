"""Escaped text stays text in Markdown, as a CommonMark parser sees it."""

from html.parser import HTMLParser

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from paraforge.base.markdown import Code, clip, code, escape, table, text_table

MARKUP = st.text(st.sampled_from("a b_*`|\\<>&[]()!#~$-+1.\n\t\"'{}:=/@é"), max_size=40)
RENDER = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")


class Seen(HTMLParser):
    """Elements and text of a page, with single spaces."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.pieces: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.pieces).split())


def plain(text: str) -> str:
    return " ".join(text.split())


@given(MARKUP)
@example("<b>a</b> &lt; <!-- b -->")
def test_escaped_text_renders_literally(text: str) -> None:
    seen = Seen(RENDER.render(f"# title {escape(text)} end"))
    assert seen.tags == ["h1"]
    assert seen.text == plain(f"title {text} end")


@given(MARKUP)
@example("`a")
@example("a``")
def test_code_renders_literally(text: str) -> None:
    if not plain(text):
        return
    seen = Seen(RENDER.render(f"see {code(text)} here"))
    assert seen.tags == ["p", "code"]
    assert seen.text == plain(f"see {text} here")


@given(MARKUP, MARKUP)
@example("a|b", "`a|b")
def test_any_text_fits_in_a_table(first: str, second: str) -> None:
    shown = plain(second) or "x"
    rows = [[first, second], [Code(shown), "y"]]
    seen = Seen(RENDER.render(table(["a", "b"], rows, right=[1])))
    cells = ["td", "td", "tr", "td", "code", "td"]
    assert seen.tags == ["table", "thead", "tr", "th", "th", "tbody", "tr", *cells]
    assert seen.text == plain(f"a b {first} {second} {shown} y")


def test_only_longer_texts_are_shortened() -> None:
    assert [clip(text, 5) for text in ("five\n5", " five ", "fives", None)] == ["five…", "five", "fives", ""]


def test_text_table() -> None:
    assert text_table(["name", "n"], [["a", "10"], ["longer", "1"]]) == [
        "name     n",
        "a       10",
        "longer   1",
    ]
