"""The words in which people state rules and give orders.

They tell why a rule was broken (`holdfast logs`), and which sentences of a file are rules
(`holdfast suite init`).

rule_text          finds a rule in a text by the rule's own words, and orders against it
rule_statements    finds statements of a rule by the words for its measure
breaking_orders    finds orders that ask for what a measure forbids

measure_words      the words for each measure, from four tables: length_words, phrase_words,
                   layout_words and agent_words; wordings has the types of their rows
command_words      how people ask for commands

orders             splits a text into sentences and clauses, and tells orders from reports
clause_words       reads the words of a clause, each with whether it is asked for or forbidden
act_nouns          tells words for acts, such as "push", from nouns that look like them
"""
