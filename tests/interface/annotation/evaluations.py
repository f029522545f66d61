"""Small evaluations: samples without a corpus, and a server in a separate process."""

from collections.abc import Sequence
from pathlib import Path

from paraforge.interface.annotation.store import BandFigures, Draw, DrawnPair
from tests.page_server import PageServer

NASTY = "<script>document.title = 'owned'</script> & \"quoted\" <b>bold</b>"


def small_draw(bands: Sequence[int] = (0, 0, 1, 2, 3, 4, 4, 4), population: int = 1_000) -> Draw:
    """A sample of one pair a given band; of each band ``population`` pairs, half of them with overlap 1."""
    pairs = [
        DrawnPair(
            band=band,
            source="tatoeba",
            line=number + 1,
            rank=0,
            rejected="paraphrase_score" if band < 2 else None,
            reference=f"Reference {number}.",
            translation=f"Translation {number}: {NASTY}",
            paraphrase_score=0.1 + 0.2 * band,
            overlap_3=0.25,
        )
        for number, band in enumerate(bands)
    ]
    figures = [BandFigures(population, 0.5, 0.5)] * 5
    return Draw("A <corpus>", "src:tatoeba|v:0.1", {"corpus": "00"}, 1, 2, figures, pairs)


class ServerProcess(PageServer):
    """``paraforge annotate serve`` in a process of its own, to be killed."""

    def __init__(self, database: Path, port: int = 0) -> None:
        super().__init__("annotate", "serve", "-d", str(database), "--port", str(port))
