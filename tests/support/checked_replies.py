"""Replies that keep or break the rules of the proxy's suite, and answers that delay a retry."""

import httpx2
from fake_upstream import SYSTEM, completion, reply_json

CHAT = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Hi."}]
REMINDED = [CHAT[0], {"role": "user", "content": "[Reminder: Sign as Tony.]\n\nHi."}]
BROKEN, KEPT = reply_json(completion("Fine, sir")), reply_json(completion("Fine, Tony"))
WORSE = reply_json(completion("Fine. Yes, sir"))  # breaks both rules
CHECKED = "check-and-retry:n=2"


def busy(status="429 Slow down", *headers):
    """Answers with a status after which the same request may succeed."""
    body = b'{"error": {"message": "no"}}'
    fields = ("Content-Type: application/json", *headers)
    return lambda request, writer: writer.whole(status, body, *fields)


refuse = busy("400 No")  # for good


def close(request, writer):
    return False


def break_off(request, writer):
    writer.head("200 OK", "Content-Type: application/json", "Content-Length: 500")
    writer.raw(b'{"choices": [')
    return False


def stall(request, writer):
    writer.client_is_gone(20)
    return False


# failures after which the same request may succeed
BUSY = {
    "429 with seconds": busy("429 Slow down", "Retry-After: 0.02"),
    "429 with milliseconds": busy("429 Slow down", "Retry-After-Ms: 20"),
    "429": busy(),
    "503": busy("503 Later"),
    "529": busy("529 Overloaded"),
    "said to pass": busy("400 No", "x-should-retry: true"),
    "closed": close,
    "broken off": break_off,
}


def ask(url, **fields):
    """Sends a chat to the proxy."""
    return httpx2.post(f"{url}/v1/chat/completions", json={"messages": CHAT, **fields})


def text_of(reply):
    return reply.json()["choices"][0]["message"]["content"]
