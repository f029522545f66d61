"""Czech nouns of the sample against declension tables written out by hand, for each model word."""

from __future__ import annotations

import pytest

from paraforge.sample.declension import CASES, PARADIGM_GENDER, decline, join, soften
from paraforge.sample.lexicon import load_lexicon, read_lines

# lemma: singular, then plural, each nominative, genitive, dative, accusative, locative, instrumental
TABLES = {
    "kamarád": "kamarád kamaráda kamarádovi kamaráda kamarádovi kamarádem"
    " | kamarádi kamarádů kamarádům kamarády kamarádech kamarády",
    "voják": "voják vojáka vojákovi vojáka vojákovi vojákem | vojáci vojáků vojákům vojáky vojácích vojáky",
    "ministr": "ministr ministra ministrovi ministra ministrovi ministrem"
    " | ministři ministrů ministrům ministry ministrech ministry",
    "soused": "soused souseda sousedovi souseda sousedovi sousedem"
    " | sousedé sousedů sousedům sousedy sousedech sousedy",
    "pes": "pes psa psovi psa psovi psem | psi psů psům psy psech psy",
    "Pavel": "Pavel Pavla Pavlovi Pavla Pavlovi Pavlem | Pavli Pavlů Pavlům Pavly Pavlech Pavly",
    "člověk": "člověk člověka člověku člověka člověku člověkem | lidé lidí lidem lidi lidech lidmi",
    "lékař": "lékař lékaře lékaři lékaře lékaři lékařem | lékaři lékařů lékařům lékaře lékařích lékaři",
    "učitel": "učitel učitele učiteli učitele učiteli učitelem"
    " | učitelé učitelů učitelům učitele učitelích učiteli",
    "otec": "otec otce otci otce otci otcem | otcové otců otcům otce otcích otci",
    "kůň": "kůň koně koni koně koni koněm | koně koní koním koně koních koňmi",
    "soudce": "soudce soudce soudci soudce soudci soudcem | soudci soudců soudcům soudce soudcích soudci",
    "kolega": "kolega kolegy kolegovi kolegu kolegovi kolegou"
    " | kolegové kolegů kolegům kolegy kolezích kolegy",
    "turista": "turista turisty turistovi turistu turistovi turistou"
    " | turisté turistů turistům turisty turistech turisty",
    "mluvčí": "mluvčí mluvčího mluvčímu mluvčího mluvčím mluvčím"
    " | mluvčí mluvčích mluvčím mluvčí mluvčích mluvčími",
    "podezřelý": "podezřelý podezřelého podezřelému podezřelého podezřelém podezřelým"
    " | podezřelí podezřelých podezřelým podezřelé podezřelých podezřelými",
    "vlak": "vlak vlaku vlaku vlak vlaku vlakem | vlaky vlaků vlakům vlaky vlacích vlaky",
    "les": "les lesa lesu les lese lesem | lesy lesů lesům lesy lesech lesy",
    "stůl": "stůl stolu stolu stůl stole stolem | stoly stolů stolům stoly stolech stoly",
    "dům": "dům domu domu dům domě domem | domy domů domům domy domech domy",
    "dárek": "dárek dárku dárku dárek dárku dárkem | dárky dárků dárkům dárky dárcích dárky",
    "výbuch": "výbuch výbuchu výbuchu výbuch výbuchu výbuchem"
    " | výbuchy výbuchů výbuchům výbuchy výbuších výbuchy",
    "počítač": "počítač počítače počítači počítač počítači počítačem"
    " | počítače počítačů počítačům počítače počítačích počítači",
    "nůž": "nůž nože noži nůž noži nožem | nože nožů nožům nože nožích noži",
    "žena": "žena ženy ženě ženu ženě ženou | ženy žen ženám ženy ženách ženami",
    "sestra": "sestra sestry sestře sestru sestře sestrou | sestry sester sestrám sestry sestrách sestrami",
    "kniha": "kniha knihy knize knihu knize knihou | knihy knih knihám knihy knihách knihami",
    "matka": "matka matky matce matku matce matkou | matky matek matkám matky matkách matkami",
    "škola": "škola školy škole školu škole školou | školy škol školám školy školách školami",
    "kráva": "kráva krávy krávě krávu krávě krávou | krávy krav krávám krávy krávách krávami",
    "Lucie": "Lucie Lucie Lucii Lucii Lucii Lucií | Lucie Lucií Luciím Lucie Luciích Luciemi",
    "kuchyně": "kuchyně kuchyně kuchyni kuchyni kuchyni kuchyní"
    " | kuchyně kuchyní kuchyním kuchyně kuchyních kuchyněmi",
    "ulice": "ulice ulice ulici ulici ulici ulicí | ulice ulic ulicím ulice ulicích ulicemi",
    "píseň": "píseň písně písni píseň písni písní | písně písní písním písně písních písněmi",
    "síť": "síť sítě síti síť síti sítí | sítě sítí sítím sítě sítích sítěmi",
    "tramvaj": "tramvaj tramvaje tramvaji tramvaj tramvaji tramvají"
    " | tramvaje tramvají tramvajím tramvaje tramvajích tramvajemi",
    "společnost": "společnost společnosti společnosti společnost společnosti společností"
    " | společnosti společností společnostem společnosti společnostech společnostmi",
    "odpověď": "odpověď odpovědi odpovědi odpověď odpovědi odpovědí"
    " | odpovědi odpovědí odpovědím odpovědi odpovědích odpověďmi",
    "dovolená": "dovolená dovolené dovolené dovolenou dovolené dovolenou"
    " | dovolené dovolených dovoleným dovolené dovolených dovolenými",
    "město": "město města městu město městě městem | města měst městům města městech městy",
    "okno": "okno okna oknu okno okně oknem | okna oken oknům okna oknech okny",
    "jablko": "jablko jablka jablku jablko jablku jablkem | jablka jablek jablkům jablka jablkách jablky",
    "moře": "moře moře moři moře moři mořem | moře moří mořím moře mořích moři",
    "letiště": "letiště letiště letišti letiště letišti letištěm"
    " | letiště letišť letištím letiště letištích letišti",
    "kuře": "kuře kuřete kuřeti kuře kuřeti kuřetem | kuřata kuřat kuřatům kuřata kuřatech kuřaty",
    "štěně": "štěně štěněte štěněti štěně štěněti štěnětem"
    " | štěňata štěňat štěňatům štěňata štěňatech štěňaty",
    "dítě": "dítě dítěte dítěti dítě dítěti dítětem | děti dětí dětem děti dětech dětmi",
    "náměstí": "náměstí náměstí náměstí náměstí náměstí náměstím"
    " | náměstí náměstí náměstím náměstí náměstích náměstími",
    "muzeum": "muzeum muzea muzeu muzeum muzeu muzeem | muzea muzeí muzeím muzea muzeích muzei",
    "datum": "datum data datu datum datu datem | data dat datům data datech daty",
    "dveře": " | dveře dveří dveřím dveře dveřích dveřmi",
    "kalhoty": " | kalhoty kalhot kalhotám kalhoty kalhotách kalhotami",
    "šaty": " | šaty šatů šatům šaty šatech šaty",
    "hodinky": " | hodinky hodinek hodinkám hodinky hodinkách hodinkami",
}


@pytest.mark.parametrize("lemma", TABLES)
def test_full_tables(lemma: str) -> None:
    noun = next(noun for noun in load_lexicon().nouns if noun.lemma == lemma)
    expected = {}
    for number, forms in zip("sp", TABLES[lemma].split("|"), strict=True):
        expected.update({(number, case): form for case, form in zip(CASES, forms.split(), strict=False)})
    assert noun.forms == expected


def test_every_model_word_has_a_table() -> None:
    model = dict(line.split("  ")[:2] for _, line in read_lines("nouns.txt"))
    assert {model[lemma] for lemma in TABLES} == set(PARADIGM_GENDER)


@pytest.mark.parametrize(
    ("stem", "ending", "expected"),
    [
        ("síť", "e", "sítě"),
        ("kuchyň", "í", "kuchyní"),
        ("štěň", "ata", "štěňata"),
        ("loď", "i", "lodi"),
        ("střech", "E", "střeše"),
        ("kniž", "0", "kniž"),
        ("sestr", "E", "sestře"),
        ("Praz", "E", "Praze"),
        ("hoch", "I", "hoši"),
        ("jazyk", "ECH", "jazycích"),
        ("les", "ECH", "lesech"),
    ],
)
def test_join_keeps_czech_spelling(stem: str, ending: str, expected: str) -> None:
    assert join(stem, ending) == expected


def test_soften() -> None:
    assert [soften(stem) for stem in ("ruk", "Prah", "hoch", "dobr", "dialog")] == [
        "ruc",
        "Praz",
        "hoš",
        "dobř",
        "dialoz",
    ]


def test_an_unknown_exception_is_an_error() -> None:
    with pytest.raises(KeyError):
        decline("hrad", "hrad", None, {"xs": "hradu"})
