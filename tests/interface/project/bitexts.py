"""Bitexts of users."""

import gzip
import lzma
from pathlib import Path

from tests.sample import generate


def bitext(directory: Path, czech: str = "a.cs.gz", english: str = "a.en.gz") -> tuple[Path, Path]:
    """200 sentences of the sample in both languages."""
    pairs = list(generate(200))
    for name, texts in ((czech, [pair.cs for pair in pairs]), (english, [pair.reference for pair in pairs])):
        data = "".join(f"{text}\n" for text in texts).encode()
        packed = {".gz": gzip.compress, ".xz": lzma.compress}.get(Path(name).suffix, bytes)(data)
        (directory / name).write_bytes(packed)
    return directory / czech, directory / english
