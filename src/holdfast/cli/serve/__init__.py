"""The commands that use a model, steered or not: serve, proxy, chat, generate.

serve           the server
proxy           between a client and its server
chat            a chat in the terminal, which is a terminal_chat
generate        one reply
"""
