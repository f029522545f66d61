"""Which licence a source has: its own, or what publish.licences says of it or of a part of its name."""

from __future__ import annotations

import pytest
import yaml

from paraforge.corpus.publication.parameters import PublishParameters
from paraforge.interface.configuration import check_parameters
from paraforge.interface.configuration.composition import compose
from tests.project import ROOT


@pytest.mark.parametrize(
    ("own", "named", "found"),
    [
        ({"a": None}, {}, {}),
        ({"a": "MIT"}, {}, {"a": "MIT"}),
        ({"a": "MIT"}, {"a": "CC0"}, {"a": "CC0"}),
        ({"a.b": "MIT", "a.c": None}, {"a": "CC0"}, {"a.b": "MIT", "a.c": "CC0"}),
        # One source's own licence is nobody else's.
        ({"a": "MIT", "a-b": None, "a.b": "CC0"}, {}, {"a": "MIT", "a-b": "not stated", "a.b": "CC0"}),
    ],
)
def test_licences(own: dict[str, str | None], named: dict[str, str], found: dict[str, str]) -> None:
    content = yaml.safe_load(compose(ROOT / "configs", []))
    columns = {"source_text": 1, "reference": 0}
    content["ingest"]["sources"] = [
        {"name": name, "format": "tsv", "path": f"{name}.tsv", "columns": columns, "licence": licence}
        for name, licence in own.items()
    ]
    content["publish"]["licences"] = named
    parameters = check_parameters(content, "here")
    published = parameters.publish.model_copy(update={"licences": parameters.licences})
    assert published.licences_of(own) == found


def test_a_pair_of_two_bitexts_has_the_licences_of_both() -> None:
    licences = PublishParameters(licences={"a": "MIT", "b": "CC0", "d": "MIT"})
    assert licences.licences_of(["a-x/b", "a/d", "a/e"]) == {"a-x/b": "MIT and CC0", "a/d": "MIT"}
