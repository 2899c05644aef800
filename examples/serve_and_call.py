"""Starts `holdfast serve`, and calls it with the official OpenAI client; each request chooses its
own steering.

    pip install 'holdfast-llm[serve]'
    python examples/serve_and_call.py
"""

import re
import subprocess
import sys

import openai

from holdfast.client import steer

MESSAGES = [
    {"role": "system", "content": "Always reply in French."},
    {"role": "user", "content": "Do you like the garden?"},
]


def main() -> None:
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+", server.stdout.readline())[0]
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="none")
        for method in ("none", "boost:factor=4"):
            ask(client, method)
        stream(client)
    finally:
        server.terminate()
        server.wait()


def ask(client: openai.OpenAI, method: str) -> None:
    reply = client.chat.completions.create(
        model="default", messages=MESSAGES, seed=1, extra_body=steer(method, trace=True)
    )
    choice = reply.choices[0]
    masses = [token["mass"] for token in choice.model_extra["holdfast"]["tokens"]]
    print(f"{method}: {choice.message.content}")
    print(f"  mean attention mass on the prompt: {sum(masses) / len(masses):.3f}")


def stream(client: openai.OpenAI) -> None:
    chunks = client.chat.completions.create(
        model="default", messages=MESSAGES, stream=True, extra_body=steer("boost:factor=4")
    )
    for chunk in chunks:
        if chunk.choices:
            print(chunk.choices[0].delta.content or "", end="", flush=True)
    print()


if __name__ == "__main__":
    main()
