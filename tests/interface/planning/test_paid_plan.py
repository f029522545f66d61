"""The plan of a translation by a server: tokens, prices, and nothing paid twice."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from paraforge.base.errors import InputError
from paraforge.interface.configuration import check_parameters
from paraforge.interface.configuration.composition import compose
from paraforge.interface.configuration.parameters import Parameters
from paraforge.interface.planning.plan import make_plan, plan_text
from paraforge.translation.decoding.faults import EngineError
from paraforge.translation.decoding.server_settings import Server
from paraforge.translation.stage.translate import translate
from tests.interface.planning.test_plan import SENTENCES
from tests.project import ROOT
from tests.translation.engines.fake_server import FakeServer, Json, Reply, translated
from tests.translation.stage.test_population import write_corpus


def parameters_of(work: Path, **server: Any) -> Parameters:
    """Parameters of a translation by a server."""
    content = compose(ROOT / "configs", ["translation=server", "translate.server.model=m"])
    content["resources"] |= {"work": str(work)}
    content["translate"]["server"] |= server
    return check_parameters(content, where="test")


@pytest.mark.full
@pytest.mark.parametrize("counts", [True, False])
def test_a_server_is_paid_by_tokens(tmp_path: Path, server: FakeServer, counts: bool) -> None:
    """Of the sample, which is small, the server counts 50 and 10 tokens a sentence."""
    pytest.importorskip("openai")
    corpus = write_corpus(tmp_path / "in", SENTENCES, rows=300)

    def behave(sentence: str, body: Json, nth: int) -> Reply:
        reply = translated(sentence, body)
        return reply if counts else Reply({"choices": reply.body["choices"]})

    server.behave = behave
    asked = {"devices": [1], "seconds": 600, "token_prices": (2.0, 10.0), "sentences": 10_000}
    plan = make_plan(parameters_of(tmp_path / "work"), corpus, tmp_path, **asked)
    # 6 blocks of 64, of which some of a rare length come twice.
    assert 375 < len(server.bodies) <= 384
    assert set(server.asked.values()) == {1}
    assert plan.tokens == ((50, 10) if counts else None)
    if counts:
        assert plan.token_price == pytest.approx(10_000 * (50 * 2 + 10 * 10) / 1e6)
        assert "500,000 input, 100,000 output" in plan_text({"": plan}, None)
        assert "price 2.00" in plan_text({"": plan}, None)


@pytest.mark.full
@pytest.mark.parametrize(
    ("dies", "repeated"),
    [
        (False, range(1)),
        # The block that was under way is lost; what was being asked when the server died was asked again.
        (True, range(64 + Server().concurrency + 1)),
    ],
)
def test_what_a_plan_has_paid_for_is_not_paid_for_again(
    tmp_path: Path, server: FakeServer, dies: bool, repeated: range
) -> None:
    parameters = parameters_of(tmp_path / "work", max_retries=0)
    corpus = write_corpus(tmp_path / "in", SENTENCES, rows=300)
    none, output = tmp_path / "none", tmp_path / "out"
    if dies:
        server.at[200] = server.die
    with pytest.raises(EngineError) if dies else nullcontext():
        make_plan(parameters, corpus, none, devices=[1])
    if dies:
        server.start()
    translate(parameters.translate, tmp_path / "in", none, output, parameters.resources)
    assert set(server.asked) == set(SENTENCES)
    assert sum(server.asked.values()) - len(SENTENCES) in repeated
    with pytest.raises(InputError, match=r"nothing to translate.*--rate"):
        make_plan(parameters, corpus, none, devices=[1])


def test_a_plan_of_a_few_sentences_asks_for_each_once(tmp_path: Path, server: FakeServer) -> None:
    for count in (1, 2, 13):
        corpus = write_corpus(tmp_path / f"in{count}", SENTENCES[:count], rows=300)
        server.asked.clear()
        parameters = parameters_of(tmp_path / f"work{count}")
        plan = make_plan(parameters, corpus, tmp_path, devices=[1])
        assert set(server.asked.values()) == {1}
        assert plan.left == count - len(server.asked)
        assert "sentences/s" in plan_text({"": plan}, None)
        if plan.left:  # another plan asks for these
            assert make_plan(parameters, corpus, tmp_path, devices=[1]).left == 0
            assert set(server.asked) == set(SENTENCES[:count]) and set(server.asked.values()) == {1}
