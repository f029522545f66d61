"""An engine is one file, and need not be in the package."""

from __future__ import annotations

import json
from pathlib import Path

from tests.plugin import COMMAND, install, run

ENGINE = '''
from pydantic import Field

from paraforge.translation.decoding.translator import (
    EngineSettings, Hypotheses, fingerprint_of, make_hypothesis, settings_of,
)
from paraforge.base.files import hash_json

NAME = "echoing"
LIBRARIES = ()
MODEL_FREE = True


class SETTINGS(EngineSettings):
    """What the engine says."""

    times: int = Field(1, ge=1, le=3, description="how often each word is said")


def resolve(options, placement):
    return options


def open_engine(model, options, placement, settings):
    return Echo(options, settings_of(SETTINGS, NAME, settings, options))


class Echo:
    def __init__(self, options, settings):
        self.fingerprint = fingerprint_of(NAME, hash_json(settings.model_dump()), options)
        self.times = settings.times

    def translate(self, sentences):
        for sentence in sentences:
            words = [word for word in sentence.split() for _ in range(self.times)]
            yield Hypotheses((make_hypothesis(" ".join(words), -1.0, words, ended=True),))
'''
RUN = """
import json
from paraforge.interface.cli import main
from paraforge.interface.configuration.reference import parameters_markdown
from paraforge.translation.engines import open_translator
from paraforge.translation.stage.parameters import TranslateParameters

chosen = TranslateParameters.model_validate({"engine": "echoing", "echoing": {"times": 2}})
translator = open_translator(chosen.engine, None, chosen.options(), None, chosen.settings())
print(json.dumps([result.hypotheses[0].text for result in translator.translate(["a b", "c"])]))
print("`times`" in parameters_markdown())
from pathlib import Path
from paraforge.base.shards.resources import Resources
from paraforge.translation.stage.sentences import choose_engine

chosen = [choose_engine("echoing", Path(), chosen.options(), {"times": n}, Resources()) for n in (1, 2, 2)]
print(len({json.dumps(one.description()) for one in chosen}))
try:
    TranslateParameters.model_validate({"engine": "echoing", "echoing": {"times": 9}})
except ValueError as error:
    print("times" in str(error))
"""


def test_an_engine_from_outside_the_package(tmp_path: Path) -> None:
    install(tmp_path, "engines", "echoing", ENGINE)
    (tmp_path / "in.txt").write_text("pes spí\n")
    texts, documented, remembered, checked = run(tmp_path, RUN).stdout.splitlines()
    assert json.loads(texts) == ["a a b b", "c c"]
    assert (documented, checked) == ("True", "True")
    assert remembered == "2"  # sets of the memory, one for each of the settings
    arguments = ["translate", "in.txt", "-", "--engine", "echoing", "--set", "times=2"]
    assert run(tmp_path, COMMAND, *arguments).stdout == "1\t0\t-1.000000\tpes pes spí spí\n"


def test_every_engine_of_the_package_is_found_by_its_file() -> None:
    from paraforge.translation import engines

    assert list(engines.ENGINES) == sorted(path.stem for path in Path(engines.__path__[0]).glob("[!_]*.py"))
    assert set(engines.engine_settings()) == {"fairseq", "fake", "imported", "server", "torch"}
    assert [name for name in engines.ENGINES if engines.is_model_free(name)] == ["fake", "imported", "server"]
