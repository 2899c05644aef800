"""Values for instructions (names, words, numbers, ...), each list split into a training and a
held-out part.
"""

from __future__ import annotations

import itertools
import random
from functools import cache
from pathlib import Path

NAMES = tuple(
    """Alice Amir Anna Arthur Ben Bianca Boris Carla Cedric Chloe Clara Colin Dana Daniel Daria
David Diego Dora Edgar Elena Elias Ella Emil Emma Eric Esther Eva Fabian Fatima Felix Fiona
Frank Frida Gina Gloria Grace Greta Gustav Hana Hannah Harry Hassan Hector Helen Henry Hugo Ian
Ida Igor Ines Irene Iris Isaac Ivan Jack Jacob Jade James Jana Jasper Jean Jenny Joan Jonas Jose
Julia Julian Karim Karl Kate Keith Kenji Kira Kurt Lara Laura Leila Lena Leo Liam Lily Linda
Lisa Lou Louis Lucas Lucy Luis Lydia Mabel Marco Maria Mark Martin Mary Max Maya Mia Miguel Milo
Mina Mira Mohamed Mona Nadia Nancy Natalie Neil Nina Noah Nora Olga Oliver Omar Oscar Otto Paul
Paula Pedro Peter Petra Pia Quentin Rachel Ralph Raul Rebecca Rita Robert Roman Rosa Ruby Ruth
Sam Samir Sara Sean Selma Simon Sofia Stella Stefan Susan Tara Theo Thomas Tina Tom Uma Ursula
Vera Victor Viola Walter Wanda Wendy Will Xavier Yara Yusuf Zoe""".split()
)
CITIES = tuple(
    """Paris London Rome Madrid Berlin Vienna Prague Lisbon Dublin Oslo Athens Cairo Tokyo Lima
Boston Chicago Dallas Denver Seattle Toronto Moscow Delhi Mumbai Sydney Nairobi Lagos Havana
Geneva Zurich Milan Naples Venice Seville Porto Lyon Nice Hamburg Munich Warsaw Budapest
Helsinki Stockholm Copenhagen Istanbul Jakarta Manila Bangkok Seoul Beijing Shanghai""".split()
)
COLOURS = tuple(
    "red blue green yellow orange purple pink brown black white grey gold silver violet turquoise"
    " beige".split()
)
ANIMALS = tuple(
    """cat dog horse rabbit tiger lion wolf fox bear eagle owl snake frog turtle dolphin whale
shark penguin monkey elephant giraffe zebra camel goat sheep cow duck swan parrot spider""".split()
)
FOODS = tuple(
    """pizza pasta rice soup salad bread cheese chocolate sushi curry tacos pancakes apples
bananas grapes cherries mangoes carrots potatoes tomatoes mushrooms noodles burgers cookies
honey yogurt beans fish eggs olives""".split()
)
SPORTS = tuple(
    """tennis football basketball hockey golf swimming running cycling boxing skiing surfing
climbing rowing volleyball baseball rugby fencing judo karate sailing skating archery cricket
badminton""".split()
)
HOBBIES = tuple(
    """painting fishing gardening knitting chess cooking baking hiking dancing singing reading
sewing pottery photography astronomy juggling origami camping poetry bowling sculpture karaoke
birdwatching woodworking magic""".split()
)
MONTHS = tuple(
    "January February March April May June July August September October November December".split()
)
# profession -> where they work, what they use
PROFESSIONS = {
    "doctor": ("a hospital", "a stethoscope"),
    "teacher": ("a school", "a blackboard"),
    "chef": ("a restaurant", "a pan"),
    "farmer": ("a farm", "a tractor"),
    "pilot": ("an airport", "a plane"),
    "librarian": ("a library", "a catalogue"),
    "singer": ("a theatre", "a costume"),
    "banker": ("a bank", "a calculator"),
    "judge": ("a court", "a hammer"),
    "monk": ("a monastery", "a bell"),
    "sailor": ("a ship", "a rope"),
    "miner": ("a mine", "a lamp"),
    "baker": ("a bakery", "an oven"),
    "scientist": ("a laboratory", "a microscope"),
    "soldier": ("a barracks", "a helmet"),
    "gardener": ("a garden", "a shovel"),
    "painter": ("a studio", "a brush"),
    "mechanic": ("a garage", "a wrench"),
    "lifeguard": ("a beach", "a whistle"),
    "cosmonaut": ("a space station", "a rocket"),
    "priest": ("a church", "a candle"),
    "king": ("a palace", "a crown"),
}
TOPICS = (
    "taxes",
    "zoos",
    "cars",
    "homework",
    "smoking",
    "hunting",
    "tourism",
    "advertising",
    "nuclear power",
    "school uniforms",
    "electric scooters",
    "video games",
    "space travel",
    "fast food",
    "night shifts",
    "plastic bags",
    "loud music",
    "open offices",
    "early mornings",
    "long meetings",
)
SYMBOLS = ("***", "~~~", ":)", "<3", "###", "!!!", "+++", "===", "^^", "%%", "@@", "&&")
BRACKETS = (
    ("[", "]"),
    ("<<", ">>"),
    ("{", "}"),
    ("**", "**"),
    ("((", "))"),
    ("--", "--"),
    ('"', '"'),
    ("_", "_"),
)
# the beginnings and the ends of two-part phrases
PHRASE_PARTS = (
    ("Long live", "Beware of", "Never trust", "All hail", "Remember", "I salute", "Mind", "Praise"),
    (
        "the moon",
        "the king",
        "the bees",
        "the river",
        "the old clock",
        "the engine",
        "the ghost",
        "the north wind",
        "the lamp",
    ),
)
INVENTED = 0.5  # share of invented words among values that may be invented, in training
_ONSETS = "b c d f g h j k l m n p r s t v w z br ch cl dr fl gr pl pr sh sl sp st th tr".split()
_VOWELS = "a a e e i i o o u ai ea ee ou oo".split()
_CODAS = ("", "", "", *"l m n r s t d k ck ld nd nt rd rn st".split())
_HASH_FACTOR = 2654435761  # Knuth's, about 2**32 divided by the golden ratio
WORDS = tuple((Path(__file__).parent / "words.txt").read_text().split())


def held_out(value: str) -> bool:
    """True for about one value in five; the same on every machine."""
    return sum(value.encode()) * _HASH_FACTOR % 2**32 / 2**32 < 0.2


def draw(rng: random.Random, pool, test: bool):
    """A value from the training part of `pool`, or, with `test`, from its held-out part."""
    return rng.choice(_split(pool)[test] or pool)


@cache
def _split(pool: tuple) -> dict[bool, list]:
    """The values of a pool, by whether they are held out."""
    return {
        test: [value for value in pool if held_out(str(value)) == test] for test in (False, True)
    }


def draw_or_invent(rng: random.Random, pool, test: bool) -> str:
    """Like `draw`, but in training half of the values are invented words, which can be copied but
    not memorised.
    """
    if not test and rng.random() < INVENTED:
        return invented(rng, capital=pool[0][0].isupper())
    return draw(rng, pool, test)


def invented(rng: random.Random, capital: bool = False) -> str:
    """A word that does not exist, of one to three syllables ("trelo", "Vimaskun")."""
    word = "".join(
        rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS)
        for _ in range(rng.choice((1, 2, 2, 3)))
    )
    return word.capitalize() if capital else word


def number(rng: random.Random, low: int, high: int, test: bool) -> int:
    """A whole number from the split, `low` to `high` inclusive."""
    while True:
        value = rng.randint(low, high)
        if held_out(str(value)) == test:
            return value


def phrase(rng: random.Random, test: bool) -> str:
    """A two-part phrase such as 'Long live the moon.'; its combinations are split."""
    phrases = [f"{first} {second}." for first, second in itertools.product(*PHRASE_PARTS)]
    return draw(rng, tuple(phrases), test)
