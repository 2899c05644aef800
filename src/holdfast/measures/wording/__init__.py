"""The words in which people state rules and give orders.

They tell why a rule was broken (`holdfast logs`), and which sentences of a file are rules
(`holdfast suite init`).

rule_text          finds a rule in a text by the rule's own words, and orders against it, as
                   rule_sentences does for each of its sentences
rule_statements    finds statements of a rule by the words for its measure
breaking_orders    finds orders that ask for what a measure forbids

measure_words      the words for each measure, from four tables: length_words, phrase_words,
                   layout_words and agent_words; wordings has the types of their rows
command_words      how people ask for commands

orders             finds what a message asks for, and for how long; order_clauses tells orders from
                   other clauses
sentences          splits a text into sentences, clauses and their signed words
clause_words       the words of a clause, each with whether the clause asks for it or forbids it
word_stems         words without endings, and synonyms; plain_text, texts without markup, case and
                   contractions
act_nouns          tells words for acts, such as "push", from nouns that look like them; compounds
                   are those that have a word for an act in them
"""
