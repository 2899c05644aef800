"""The words in which people state rules and give orders.

They tell why a rule was broken (`holdfast logs`), and which sentences of a file are rules
(`holdfast suite init`).

measure_words      how people state what a measure demands, or order against it; command_words, how
                   they ask for commands
rule_statements    finds statements of a rule by these words; rule_text, by the rule's own
breaking_orders    finds orders that ask for what a measure forbids
orders             tells orders from reports; clause_words and act_nouns read their words
"""
