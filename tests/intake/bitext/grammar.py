"""Forty sentences with the same meaning in nine languages, some of them close."""

from itertools import product

_PARTS = {
    "en": (
        "My older brother|The new teacher|Our neighbour|A young woman|The old captain",
        "has forgotten the key at home|is waiting for the train to the city|would like to buy fresh bread|"
        "reads the newspaper every morning|does not know what happened yesterday|wants a cheaper flat|"
        "talked about the weather for an hour|comes back from work late in the evening",
    ),
    "cs": (
        "Můj starší bratr|Nový učitel|Náš soused|Mladá žena|Starý kapitán",
        "doma zapomněl klíč od bytu|čeká na vlak do města|by si chtěl koupit čerstvý chléb|"
        "čte každé ráno noviny|neví, co se včera stalo|hledá nějaký levnější byt|"
        "hodinu mluvil o počasí|se vrací z práce pozdě večer",
    ),
    "sk": (
        "Môj starší brat|Nový učiteľ|Náš sused|Mladá žena|Starý kapitán",
        "doma zabudol kľúč od bytu|čaká na vlak do mesta|by si chcel kúpiť čerstvý chlieb|"
        "číta každé ráno noviny|nevie, čo sa včera stalo|hľadá nejaký lacnejší byt|"
        "hodinu hovoril o počasí|sa vracia z práce neskoro večer",
    ),
    "es": (
        "Mi hermano mayor|El nuevo maestro|Nuestro vecino|Una mujer joven|El viejo capitán",
        "ha olvidado la llave en casa|espera el tren a la ciudad|quisiera comprar pan fresco|"
        "lee el periódico cada mañana|no sabe lo que pasó ayer|busca un piso más barato|"
        "habló del tiempo durante una hora|vuelve del trabajo por la noche",
    ),
    "pt": (
        "O meu irmão mais velho|O novo professor|O nosso vizinho|Uma mulher jovem|O velho capitão",
        "esqueceu a chave em casa|espera o comboio para a cidade|gostaria de comprar pão fresco|"
        "lê o jornal todas as manhãs|não sabe o que aconteceu ontem|procura um apartamento mais barato|"
        "falou do tempo durante uma hora|volta do trabalho à noite",
    ),
    "da": (
        "Min ældre bror|Den nye lærer|Vores nabo|En ung kvinde|Den gamle kaptajn",
        "har glemt nøglen derhjemme|venter på toget ind til byen|vil gerne købe noget frisk brød|"
        "læser avisen hver morgen|ved ikke, hvad der skete i går|leder efter en billigere lejlighed|"
        "talte om vejret i en hel time|kommer sent hjem fra arbejde om aftenen",
    ),
    "nb": (
        "Min eldre bror|Den nye læreren|Naboen vår|En ung kvinne|Den gamle kapteinen",
        "har glemt nøkkelen hjemme|venter på toget inn til byen|vil gjerne kjøpe noe ferskt brød|"
        "leser avisen hver morgen|vet ikke hva som skjedde i går|leter etter en billigere leilighet|"
        "snakket om været i en hel time|kommer sent hjem fra jobben om kvelden",
    ),
    "nl": (
        "Mijn oudere broer|De nieuwe leraar|Onze buurman|Een jonge vrouw|De oude kapitein",
        "is de sleutel thuis vergeten|wacht op de trein naar de stad|wil graag vers brood kopen|"
        "leest elke ochtend de krant|weet niet wat er gisteren gebeurd is|zoekt een goedkopere woning|"
        "praatte een uur over het weer|komt 's avonds laat terug van zijn werk",
    ),
    "de": (
        "Mein älterer Bruder|Der neue Lehrer|Unser Nachbar|Eine junge Frau|Der alte Kapitän",
        "hat den Schlüssel zu Hause vergessen|wartet auf den Zug in die Stadt|möchte frisches Brot kaufen|"
        "liest jeden Morgen die Zeitung|weiß nicht, was gestern passiert ist|sucht eine billigere Wohnung|"
        "sprach eine Stunde lang über das Wetter|kommt abends spät von der Arbeit zurück",
    ),
}
SENTENCES = {
    language: [f"{who} {what}." for who, what in product(*(part.split("|") for part in parts))]
    for language, parts in _PARTS.items()
}
