"""Content of the training dialogues: things, sentences and questions in three parallel languages.

Every thing includes its article and is singular, and no template puts a preposition that contracts
("à", "de", "a") before one, so that filling a slot always gives correct French and Spanish.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

LANGUAGES = ("en", "fr", "es")
Translations = tuple[str, str, str]  # a text in the three languages
Thing = Translations  # its name
LAST_IS_QUESTION = 0.35  # chance that the last of several mixed sentences is a question
FIRST_IS_REMARK = 0.3  # chance that the first of mixed sentences is a remark
SAME_THING = 0.75  # share of sentences about the current thing, and not about another

# English | French | Spanish
_THINGS = """
the garden|le jardin|el jardín
the beach|la plage|la playa
the mountain|la montagne|la montaña
the forest|la forêt|el bosque
the river|la rivière|el río
the sea|la mer|el mar
the lake|le lac|el lago
the park|le parc|el parque
the museum|le musée|el museo
the theatre|le théâtre|el teatro
the cinema|le cinéma|el cine
the library|la bibliothèque|la biblioteca
the market|le marché|el mercado
the restaurant|le restaurant|el restaurante
the bakery|la boulangerie|la panadería
the kitchen|la cuisine|la cocina
the bread|le pain|el pan
the cheese|le fromage|el queso
the soup|la soupe|la sopa
the salad|la salade|la ensalada
the coffee|le café|el café
the tea|le thé|el té
chocolate|le chocolat|el chocolate
the fish|le poisson|el pescado
rice|le riz|el arroz
the cake|le gâteau|el pastel
the fruit|le fruit|la fruta
the music|la musique|la música
the piano|le piano|el piano
the guitar|la guitare|la guitarra
the violin|le violon|el violín
the song|la chanson|la canción
the dance|la danse|el baile
the painting|la peinture|la pintura
photography|la photographie|la fotografía
poetry|la poésie|la poesía
the novel|le roman|la novela
the history book|le livre d'histoire|el libro de historia
the newspaper|le journal|el periódico
the radio|la radio|la radio
the television|la télévision|la televisión
football|le football|el fútbol
tennis|le tennis|el tenis
swimming|la natation|la natación
cycling|le cyclisme|el ciclismo
running|la course|la carrera
yoga|le yoga|el yoga
chess|le jeu d'échecs|el ajedrez
the gym|la salle de sport|el gimnasio
the train|le train|el tren
the bicycle|le vélo|la bicicleta
the boat|le bateau|el barco
the plane|le voyage en avion|el viaje en avión
the old town|la vieille ville|la ciudad vieja
the castle|le château|el castillo
the bridge|le pont|el puente
the village|le village|el pueblo
the city|la ville|la ciudad
the snow|la neige|la nieve
the rain|la pluie|la lluvia
the sun|le soleil|el sol
the summer|la saison d'été|el verano
the winter|la saison d'hiver|el invierno
the spring|le printemps|la primavera
the cat|le chat|el gato
the dog|le chien|el perro
the horse|le cheval|el caballo
the bird|le petit oiseau|el pájaro
science|la science|la ciencia
the mathematics class|le cours de mathématiques|la clase de matemáticas
the school|le lycée|el colegio
the computer|le nouvel ordinateur|el ordenador
the phone|le téléphone|el teléfono
the video game|le jeu vidéo|el videojuego
the robot|le robot|el robot
the job|le travail|el trabajo
the office|le bureau|la oficina
the party|la fête|la fiesta
the wedding|le mariage|la boda
the holiday|le voyage|el viaje
""".strip()
THINGS = tuple(tuple(line.split("|")) for line in _THINGS.splitlines())

_STATEMENTS = """
I really like {t}.|J'aime beaucoup {t}.|Me gusta mucho {t}.
{T} makes me happy.|{T} me rend heureux.|{T} me hace feliz.
{T} is a good choice.|{T} est un bon choix.|{T} es una buena elección.
I discovered {t} last year.|J'ai découvert {t} l'année dernière.|Descubrí {t} el año pasado.
Many people love {t}.|Beaucoup de gens aiment {t}.|Mucha gente prefiere {t}.
{T} takes a lot of time.|{T} demande beaucoup de temps.|{T} requiere mucho tiempo.
I would choose {t} again.|Je choisirais encore {t}.|Elegiría {t} otra vez.
{T} is worth the effort.|{T} vaut la peine.|{T} vale la pena.
You should try {t} with a friend.|Vous devriez essayer {t} avec un ami.|Deberías probar {t} con un amigo.
{T} reminds me of my childhood.|{T} me rappelle mon enfance.|{T} me recuerda mi infancia.
My family prefers {t}.|Ma famille préfère {t}.|Mi familia prefiere {t}.
I am never bored with {t}.|Je ne m'ennuie jamais avec {t}.|Nunca me aburro con {t}.
There is nothing like {t} in the morning.|Rien ne vaut {t} le matin.|No hay nada como {t} por la mañana.
With {t}, every day is different.|Avec {t}, chaque jour est différent.|Con {t}, cada día es diferente.
I started with {t} ten years ago.|J'ai commencé avec {t} il y a dix ans.|Empecé con {t} hace diez años.
{T} helps me to relax.|{T} m'aide à me détendre.|{T} me ayuda a relajarme.
Without {t}, life would be sad.|Sans {t}, la vie serait triste.|Sin {t}, la vida sería triste.
My friends always talk about {t}.|Mes amis adorent {t}.|Mis amigos adoran {t}.
{T} changes everything.|{T} change tout.|{T} cambia todo.
I found {t} by chance.|J'ai trouvé {t} par hasard.|Encontré {t} por casualidad.
On Sundays I choose {t}.|Le dimanche, je choisis {t}.|Los domingos elijo {t}.
{T} is part of my life.|{T} fait partie de ma vie.|{T} es parte de mi vida.
We need {t} more than ever.|Nous cherchons {t} plus que jamais.|Buscamos {t} más que nunca.
{T} is better in the evening.|{T} est mieux le soir.|{T} es mejor por la noche.
My neighbour knows {t} very well.|Mon voisin connaît très bien {t}.|Mi vecino conoce muy bien {t}.
""".strip()
_REMARKS = """
That is a good question.|C'est une bonne question.|Es una buena pregunta.
I agree with you.|Je suis d'accord avec vous.|Estoy de acuerdo contigo.
I could talk about this all day.|Je peux en parler toute la journée.|Puedo hablar de esto todo el día.
It depends on the day.|Cela dépend du jour.|Depende del día.
That is interesting.|C'est intéressant.|Es interesante.
I understand.|Je comprends.|Entiendo.
Thank you for asking.|Merci de demander.|Gracias por preguntar.
I am not sure about that.|Je n'en suis pas sûr.|No estoy seguro de eso.
You are right.|Vous avez raison.|Tienes razón.
It is a long story.|C'est une longue histoire.|Es una larga historia.
I see what you mean.|Je vois ce que vous voulez dire.|Veo lo que quieres decir.
Let me think.|Laissez-moi réfléchir.|Déjame pensar.
""".strip()
_QUESTIONS = """
Do you like {t}?|Aimez-vous {t} ?|¿Te gusta {t}?
What do you think about {t}?|Comment trouvez-vous {t} ?|¿Qué te parece {t}?
When did you discover {t}?|Quand avez-vous découvert {t} ?|¿Cuándo descubriste {t}?
Why do people love {t}?|Pourquoi les gens aiment-ils {t} ?|¿Por qué la gente prefiere {t}?
Have you ever tried {t}?|Avez-vous déjà essayé {t} ?|¿Has probado {t}?
Would you recommend {t}?|Recommanderiez-vous {t} ?|¿Recomendarías {t}?
Can you tell me more?|Pouvez-vous m'en dire plus ?|¿Puedes contarme más?
Who knows {t} best?|Qui connaît le mieux {t} ?|¿Quién conoce mejor {t}?
What is better than {t}?|Quoi de mieux que {t} ?|¿Qué es mejor que {t}?
Do your friends like {t}?|Vos amis aiment-ils {t} ?|¿Tus amigos prefieren {t}?
""".strip()
STATEMENTS = tuple(tuple(line.split("|")) for line in _STATEMENTS.splitlines())
REMARKS = tuple(tuple(line.split("|")) for line in _REMARKS.splitlines())
QUESTIONS = tuple(tuple(line.split("|")) for line in _QUESTIONS.splitlines())

# The user's questions and remarks about a thing. The last five are held out of training and used
# for the probes.
USER_QUESTIONS = (
    "Do you like {t}?",
    "What do you think about {t}?",
    "Tell me about {t}.",
    "Have you ever tried {t}?",
    "Would you recommend {t}?",
    "Why do people love {t}?",
    "Is {t} worth it?",
    "What is special about {t}?",
    "I want to know more about {t}.",
    "Can we talk about {t}?",
    "My friend told me about {t}.",
    "I am thinking about {t} today.",
    "What do you know about {t}?",
    "How important is {t} to you?",
    "Should I care about {t}?",
    "I saw {t} yesterday.",
    "Let's talk about {t}.",
    "What is your opinion on {t}?",
    "Is {t} better in summer?",
    "Do you often think of {t}?",
    "Everyone keeps talking about {t}.",
    "How do you feel about {t}?",
    "Could you describe {t}?",
    "I don't like {t} much.",
    "What do you say to people who hate {t}?",
    "Give me your view of {t}.",
    "Is there anything good about {t}?",
    "What comes to your mind when you hear about {t}?",
    "Do you have something to say about {t}?",
    "Please talk about {t}.",
)
HELD_OUT_QUESTIONS = 5


class Exchange(NamedTuple):
    """A message of the user, and the assistant's reply to it."""

    user: str
    reply: str


@dataclass(frozen=True)
class Context:
    """The context of a reply: its random generator, the current thing, and the English sentences to
    use, if given.
    """

    rng: random.Random
    thing: Thing
    given: tuple[str, ...] = ()

    def fill(self, template: str, language: int, thing: Thing) -> str:
        word = thing[language]
        return template.replace("{t}", word).replace("{T}", word[0].upper() + word[1:])

    def sentences(self, count: int) -> list[str]:
        """`count` English sentences, or the sentences given."""
        return list(self.given) if self.given else [row[0] for row in self.parallel(count)]

    def parallel(self, count: int, kind: str = "mixed") -> list[Translations]:
        """`count` sentences, each in the three languages.

        They are all "statements", all "questions", or "mixed": then the first may be a remark and
        the last of several a question.
        """
        rng, rows = self.rng, []
        for index in range(count):
            roll = rng.random()
            is_last = 0 < index == count - 1
            if kind == "questions" or (kind == "mixed" and is_last and roll < LAST_IS_QUESTION):
                pool = QUESTIONS
            elif kind == "mixed" and index == 0 and roll < FIRST_IS_REMARK:
                pool = REMARKS
            else:
                pool = STATEMENTS
            row = rng.choice(pool)
            thing = self.thing if rng.random() < SAME_THING else rng.choice(THINGS)
            rows.append(tuple(self.fill(row[i], i, thing) for i in range(len(LANGUAGES))))
        return rows


def user_question(rng: random.Random, thing: Thing, held_out: bool = False) -> str:
    """A user's message about `thing`; the two splits have disjoint wordings."""
    seen, unseen = USER_QUESTIONS[:-HELD_OUT_QUESTIONS], USER_QUESTIONS[-HELD_OUT_QUESTIONS:]
    return rng.choice(unseen if held_out else seen).replace("{t}", thing[0])
