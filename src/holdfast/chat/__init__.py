"""Chats as text: messages, emphasis in them, and what a chat template makes of both.

messages           messages, tools, and checks of both
emphasis           the emphasised parts of messages; nearest finds what a wrong text may have meant
prompt             renders a chat as text and as tokens, with its span
rendered_chat      finds the words of messages in a rendered chat
templates          chat templates, and what they support
lost_messages      notices messages, and parts of tools, that a template leaves out
default_prompts    the system prompt that a template inserts by itself
reasoning          separates a reply from the reasoning before it
chat_completions   reads the assistant's message in an answer of OpenAI's API
"""
