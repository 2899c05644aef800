"""The commands that use a model, steered or not: serve, proxy, chat, generate.

serve           the server
proxy           between a client and its server; served_url has the addresses of both
chat            a chat in the terminal; terminal_chat has its commands, chat_dialog its messages,
                and reply_printer shows it
generate        one reply
"""
