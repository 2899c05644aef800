"""The readers of rules for replies, one for each theme."""

from collections.abc import Callable

from holdfast.drafting.drafts import Draft
from holdfast.drafting.reply_rules.address_rules import address_rules
from holdfast.drafting.reply_rules.bot_prompts import BotClause
from holdfast.drafting.reply_rules.edge_rules import edge_rules
from holdfast.drafting.reply_rules.format_rules import format_rules
from holdfast.drafting.reply_rules.language_rules import language_rules
from holdfast.drafting.reply_rules.length_rules import length_rules
from holdfast.drafting.reply_rules.reply_prohibitions import reply_prohibitions
from holdfast.drafting.reply_rules.tone_rules import tone_rules
from holdfast.drafting.reply_rules.wording_rules import wording_rules

REPLY_READERS: tuple[Callable[[BotClause], list[Draft]], ...] = (
    language_rules,
    address_rules,
    length_rules,
    edge_rules,
    wording_rules,
    format_rules,
    tone_rules,
    reply_prohibitions,
)
