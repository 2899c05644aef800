"""Chats as text: messages, emphasis in them, and what a chat template makes of both."""
