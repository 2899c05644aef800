"""Measures score a reply from 0 (the instruction is broken) to 1 (it is followed).

They are pure, deterministic and offline, and no string makes them raise. `build` makes a measure
from a spec, and `catalogue` lists the built-in ones. Importing this package loads no lexicons or
word lists; these are read when a measure first needs them.

What a measure is:

registry           `@measure` registers a function; arguments has the types of its arguments
scores             `Score`, and which replies that were cut off have one; reasons words the reasons
measure_specs      `build`: a spec of a suite -> a measure with its arguments
user_functions     measures that users write; judging, the one that asks a model
patterns           runs users' regular expressions within a time limit
turns              a turn of a log, and the conditions under which a rule applies to it
rule_kinds         kinds of rules, by which results are grouped

Measures of the text of a reply:

content            words and phrases; word_patterns, letters, their case, and repeated words
counting           how many words, sentences and paragraphs; layout, lists, JSON, beginning and end
text               splits a reply into words and sentences for all of these; prose, into sentences
                   without code, headings and lists
language           which language it is in; language_names has their names
grammar            tenses, plurals and rare words, which verb_tenses and word_forms tell apart
syllables          how long words are; sentiment, how joyful or sad the reply is
mentioned_numbers  numbers in digits and in words, which number_words reads
multiple_choice    which option it picks, by the patterns of choice_patterns
ifeval_keywords    the instructions of IFEval, with those in ifeval_formats and ifeval_lengths;
                   ifeval_sentences counts sentences as these do
released           measures as Li et al. 2024 published them
combined           measures that combine others
repeated_turns     how much of a turn repeats others; phrases, what its speaker was told to say

Measures of the acts of a coding agent, in turns of logs:

conduct            the tools it called, the commands it ran, the files it changed
procedure          in which order it did what, and with which tools
asking_first       whether it asked the user first, or the user ordered it: approval,
                   assistant_questions and user_orders read what they said
commits            its commits; pull_requests, their form, as opened_pull_requests reads them
written_files      the text that it wrote into files

Beside them:

agent_acts         what an agent did, read from the calls of its tools: commands, files, commits
wording            the words of rules and orders, by which causes are found and rules are drafted
"""

from holdfast.measures import (  # each of these modules registers its measures
    asking_first,
    combined,
    commits,
    conduct,
    content,
    counting,
    grammar,
    ifeval_formats,
    ifeval_keywords,
    ifeval_lengths,
    judging,
    language,
    layout,
    mentioned_numbers,
    multiple_choice,
    procedure,
    pull_requests,
    released,
    sentiment,
    syllables,
    user_functions,
    word_patterns,
    written_files,
)
from holdfast.measures.arguments import list_names
from holdfast.measures.measure_specs import Measure, build
from holdfast.measures.registry import catalogue
from holdfast.measures.scores import Score
from holdfast.measures.user_functions import as_measure
