"""Patterns of emojis, for the `regex` package, in rules about replies and about files."""

# Every emoji has one of these signs. ©, ™ and arrows have them only where they are shown as emojis.
EMOJI_SIGNS = r"\p{Emoji_Presentation}\uFE0F\u20E3"
# how an emoji begins: a flag, a keycap, or an emoji without its skin tone
EMOJI_START = (
    r"(?:[\U0001F1E6-\U0001F1FF]{2}|[0-9#*]\uFE0F?\u20E3|\p{Emoji_Presentation}"
    r"|\p{Extended_Pictographic}\uFE0F)"
)
# a whole emoji, with its skin tone, and perhaps joined from several
EMOJI = (
    rf"{EMOJI_START}"
    r"(?:\uFE0F|[\U0001F3FB-\U0001F3FF\U000E0020-\U000E007F]|\u200D\p{Extended_Pictographic})*+"
)
