"""Chat templates of several kinds, and the spans of what they render."""

from tiny import chat, tokenizer

from holdfast.chat.prompt import render_with_spans

# the role and the content of every message; BODY stands for a filter
ROLES = "{% for m in messages %}<{{ m['role'] }}>{{ m['content']BODY }}{% endfor %}"
PLAIN = ROLES.replace("BODY", "")
# a text before every chat
PREAMBLE = "You are kind.\n" + PLAIN
# without the system prompt
ROLES_ALONE = PLAIN.replace("messages", "messages if m['role'] != 'system'")
# the first message twice
TWICE = "{{ messages[0]['content'] }}|{% for m in messages %}{{ m['content'] }}|{% endfor %}"
# the part of `PLAIN` that tests replace
CONTENT = "{{ m['content'] }}"

# as Mistral does: the tools before the last user message; a tool's result with its name
TOOLS_LAST = (
    "{% for m in messages %}{% if tools and loop.last %}[TOOLS]{{ tools | tojson }}{% endif %}"
    "<{{ m['role'] }}{{ ' ' + m['name'] if m['name'] }}>{{ m['content'] }}{% if m['tool_calls'] %}"
    "{{ m['tool_calls'] | tojson }}{% endif %}{% endfor %}"
)
KIND_CHAT = chat("Be kind.", "hello")
EMPTY_PROMPT = ({"role": "system", "content": ""}, *chat("", "hello"))


def marked(template: str, messages, **options) -> tuple[str, list[int]]:
    """The rendered text with the spans in brackets, and where they start."""
    text, spans = render_with_spans(messages, tokenizer(template), **options)
    marked, last = "", 0
    for start, end in spans:
        marked, last = f"{marked}{text[last:start]}⟦{text[start:end]}⟧", end
    return marked + text[last:], [start for start, _ in spans]
