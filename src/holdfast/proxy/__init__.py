"""Edits requests to chat APIs with message methods, and scores the replies by a suite's rules.

`holdfast proxy` does this between any client and any server, `holdfast.wrap` inside a client of
OpenAI's package.

proxy_app         the proxy as an application, with its page and its metrics (proxy_metrics)
forwarding        forwards requests, from the client (client_streams) to the server (upstream)
measure_threads   the threads in which it edits and scores
wrapping          `holdfast.wrap`
relay             for both: edits a request on its way up, and scores the reply; chat_log keeps it
suite_middleware  finds the case of a chat, and edits it (chat_edits); suite_rules, what is scored
chat_requests     the messages in a request, and their places; json_edits changes only those bytes
chat_replies      the messages in a reply, which is read from the server's answer (upstream_answer)
reply_scores      a reply -> its scores, which tally counts
checked_answers   the best of several answers; retry_attempts, how long a retry waits for a server
"""
