"""Exports of chats, messages, traces and evaluations, in the variations of `log_variations`."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from log_variations import (
    BRIEF,
    HI,
    IMAGE,
    ONE,
    TWO,
    A,
    Variation,
    file_text,
    lines,
    text,
    variations,
)
from paths import ROOT

from holdfast.logs import read_logs
from holdfast.logs.context import Contexts

# exports of chats


def node(role: str, words: Any, parent: str | None, kind: str = "text", **fields: Any) -> dict:
    content = {"content_type": kind, "parts": words if isinstance(words, list) else [words]}
    message = {"author": {"role": role}, "content": content, "recipient": "all", **fields}
    return {"parent": parent, "children": [], "message": message}


def gpt(last: str | None = "2", **nodes: dict) -> list:
    tree = {"root": {"parent": None, "message": None}}
    tree |= {name.removeprefix("n"): {"id": name, **fields} for name, fields in nodes.items()}
    return [{"title": "t", "mapping": tree, "current_node": last, "conversation_id": "c"}]


N1, N2 = node("user", "Hi", "root"), node("assistant", "A.", "1")
HIDDEN = {"metadata": {"is_visually_hidden_from_conversation": True}}

test_exports_of_chatgpt = variations(
    Variation("an export", {"conversations.json": gpt(n1=N1, n2=N2)}, ONE, format="chatgpt"),
    Variation("one conversation", {"c.json": gpt(n1=N1, n2=N2)[0]}, ONE),
    Variation("a hidden system message", {"c.json": gpt(
        n0=node("system", "", "root", **HIDDEN), n1=node("user", "Hi", "0"), n2=N2)}, ONE,
            system=""),
    Variation("no current node", {"c.json": gpt(None, n1=N1, n2=N2)}, ONE),
    Variation("another answer", {"c.json": gpt("3", n1=N1, n2=N2, n3=node("assistant", "B.", "1"))},
              [[("Hi", "B.")]], problem="1 message of abandoned"),
    Variation("an edited question", {"c.json": gpt(
        "4", n1=N1, n2=N2, n3=node("user", "Or?", "root"), n4=node("assistant", "B.", "3"))},
        [[("Or?", "B.")]], problem="2 messages of abandoned"),
    Variation("an image", {"c.json": gpt(n1=node("user", [
        {"content_type": "image_asset_pointer", "asset_pointer": "file://x"}, "Hi"], "root",
        "multimodal_text"), n2=N2)}, ONE, problem="1 of the type 'image_asset_pointer'"),
    Variation("a text that is an object", {"c.json": gpt(n1=node("user", [
        {"content_type": "text", "text": "Hi"}], "root"), n2=N2)}, ONE),
    Variation("thoughts", {"c.json": gpt("3", n1=N1, n2={
        "parent": "1", "message": {"author": {"role": "assistant"}, "recipient": "all", "content": {
            "content_type": "thoughts", "thoughts": [{"summary": "x", "content": "price"}]}}},
        n3=node("assistant", "A.", "2"))}, ONE),
    Variation("a call of a tool", {"c.json": gpt("4", n1=N1, n2={
        "parent": "1", "message": {"author": {"role": "assistant"}, "recipient": "python",
            "content": {
            "content_type": "code", "language": "python", "text": "print(1)"}}},
        n3={"parent": "2", "message": {"author": {"role": "tool", "name": "python"}, "content": {
            "content_type": "execution_output", "text": "1"}}},
        n4=node("assistant", "A.", "3"))}, ONE, calls=["print(1)"], results=["1"]),
    Variation("a page that was quoted", {"c.json": gpt("3", n1=N1, n2={
        "parent": "1", "message": {"author": {"role": "tool"}, "content": {
            "content_type": "tether_browsing_display", "result": "price"}}},
        n3=node("assistant", "A.", "2"))}, ONE, results=["price"]),
    Variation("parts that are null", {"c.json": gpt("3", n1=N1, n2=node("assistant", [None], "1"),
                                                    n3=node("assistant", "A.", "2"))}, ONE),
    Variation("two conversations", {"c.json": gpt(n1=N1, n2=N2) + gpt(n1=N1, n2=node("assistant",
        "B.", "1"))},
              [ONE[0], [("Hi", "B.")]]),
    Variation("an unfinished conversation", {"c.json": gpt(n1=N1, n2=N2) + gpt("1", n1=N1)}, ONE,
              problem="the assistant says nothing"),
    Variation("the same conversation in two exports", {
        "a.json": gpt("2" * 36, **{"1": N1, "2" * 36: N2}),
        "b.json": gpt("4" * 36, **{"1": N1, "2" * 36: N2, "3": node("user", "More?", "2" * 36),
                                   "4" * 36: node("assistant", "B.", "3")})},
        TWO, problem="its only turn is in"),
)  # fmt: skip


def cm(sender: str, words: str = "", **fields: Any) -> dict:
    return {"sender": sender, "text": words, "content": [text(words)] if words else [],
            "attachments": [], "files": [], "created_at": "t", **fields}  # fmt: skip


def cai(*messages: dict, **fields: Any) -> list:
    return [{"uuid": "c", "name": "t", "chat_messages": [*messages], **fields}]


def branch(uuid: str, parent: str) -> dict:
    return {"uuid": uuid, "parent_message_uuid": parent}


START = "00000000-0000-4000-8000-000000000000"
CH, CB = cm("human", "Hi", **branch("1", START)), cm("assistant", "A.", **branch("2", "1"))

test_exports_of_claude_ai = variations(
    Variation("an export", {"conversations.json": cai(CH, CB)}, ONE, format="claude-ai"),
    Variation("no parents", {"c.json": cai(cm("human", "Hi"), cm("assistant", "A."))}, ONE),
    Variation("text without content", {"c.json": cai(
        {"sender": "human", "text": "Hi"}, {"sender": "assistant", "text": "A.", "content": None})},
            ONE),
    Variation("thinking", {"c.json": cai(CH, {**CB, "content": [
        {"type": "thinking", "thinking": "price"}, text("A.")]})}, ONE),
    Variation("a tool", {"c.json": cai(CH, {**CB, "content": [
        {"type": "tool_use", "name": "web_search", "input": {"query": "x"}},
        {"type": "tool_result", "name": "web_search", "content": [{"type": "knowledge",
            "title": "t"}]},
        text("A.")]})}, ONE, calls=["x"], problem="1 of the type 'knowledge'"),
    Variation("an edited question", {"c.json": cai(
        CH, CB, cm("human", "Or?", **branch("3", START)), cm("assistant", "B.", **branch("4", "3")),
        current_leaf_message_uuid="4")}, [[("Or?", "B.")]], problem="2 messages of abandoned"),
    Variation("an edited question without a leaf", {"c.json": cai(
        CH, CB, cm("human", "Or?", **branch("3", START)), cm("assistant", "B.", **branch("4",
            "3")))},
        [[("Or?", "B.")]], problem="2 messages of abandoned"),
    Variation("a flag in a reply", {"c.json": cai(CH, {**CB, "content": [
        text("A."), {"type": "flag", "flag": "x"}, {"type": "token_budget"}]})}, ONE),
    Variation("an empty conversation", {"c.json": cai(CH, CB) + cai()}, ONE,
              problem="the assistant says nothing"),
    Variation("an attachment", {"c.json": cai({**CH, "attachments": [
        {"file_name": "a.txt", "extracted_content": "price"}]}, CB)}, ONE, seen=["price"]),
)  # fmt: skip


def ow(last: str = "2", **messages: dict) -> list:
    by_id = {name.removeprefix("m"): {"id": name[1:], "childrenIds": [], "timestamp": 1, **fields}
             for name, fields in messages.items()}  # fmt: skip
    return [{"id": "1", "user_id": "u", "chat": {"title": "t", "models": ["x"], "history": {
        "currentId": last, "messages": by_id}, "messages": []}}]  # fmt: skip


M1, M2 = {**HI, "parentId": None}, {**A, "parentId": "1", "done": True, "model": "x"}

test_exports_of_open_webui = variations(
    Variation("an export", {"chat.json": ow(m1=M1, m2=M2)}, ONE, format="open-webui"),
    Variation("one chat", {"chat.json": ow(m1=M1, m2=M2)[0]}, ONE),
    Variation("two models", {"chat.json": ow("3", m1=M1, m2=M2, m3={**M2, "content": "B."})},
              [[("Hi", "B.")]], problem="1 message of abandoned"),
    Variation("thinking", {"chat.json": ow(m1=M1, m2={**M2, "content": (
        '<details type="reasoning" done="true" duration="1">\n<summary>x</summary>\n> price\n'
        "</details>\nA.")})}, ONE),
    Variation("a prompt", {"chat.json": [{"chat": {**ow(m1=M1, m2=M2)[0]["chat"],
        "system": "Be brief."}}]},
              ONE, system="Be brief."),
    Variation("a prompt among the parameters", {"chat.json": [{"chat": {
        **ow(m1=M1, m2=M2)[0]["chat"], "params": {"system": "Be brief."}}}]}, ONE,
            system="Be brief."),
    Variation("no current message", {"chat.json": ow(None, m1=M1, m2=M2)}, ONE),
    Variation("a list of messages", {"chat.json": [{"chat": {"messages": [HI, A]}}]}, ONE),
    Variation("content in parts", {"chat.json": ow(m1={**M1, "content": [text("Hi"), {
        "type": "image_url", "image_url": {"url": "data:"}}]}, m2=M2)}, ONE,
        problem="1 of the type 'image_url'"),
    Variation("an empty answer", {"chat.json": ow("3", m1=M1, m2={**M2, "content": ""},
        m3={**M2, "parentId": "2"})}, ONE),
)  # fmt: skip


def lm(name: str, parent: str, is_user: bool, words: Any, **fields: Any) -> dict:
    return {"messageId": name, "parentMessageId": parent, "isCreatedByUser": is_user, "text": words,
            "sender": "User" if is_user else "GPT", "conversationId": "c", **fields}  # fmt: skip


def lc(*messages: dict, **fields: Any) -> dict:
    return {"conversationId": "c", "endpoint": "openAI", "title": "t", "recursive": False,
            "branches": True, "options": {}, "messages": [*messages], **fields}  # fmt: skip


L1, L2 = lm("1", START, True, "Hi"), lm("2", "1", False, "A.")

test_exports_of_librechat = variations(
    Variation("an export", {"x.json": lc(L1, L2)}, ONE, format="librechat"),
    Variation("a prompt", {"x.json": lc(L1, L2, options={"promptPrefix": "Be brief."})}, ONE,
        system="Be brief."),
    Variation("another answer", {"x.json": lc(L1, L2, lm("3", "1", False, "B."))}, [[("Hi", "B.")]],
              problem="1 message of abandoned"),
    Variation("a nested export", {"x.json": lc({**L1, "children": [L2]}, recursive=True)},
        refused="nested"),
    Variation("content in parts", {"x.json": lc(L1, lm("2", "1", False, "", content=[
        {"type": "think", "think": "price"}, {"type": "text", "text": "A."}]))}, ONE),
    Variation("a call", {"x.json": lc(L1, lm("2", "1", False, "", content=[
        {"type": "tool_call", "tool_call": {"id": "c", "name": "f", "args": '{"x": "ls"}',
            "output": "y"}},
        {"type": "text", "text": "A."}]))}, ONE, calls=["ls"], results=["y"]),
    Variation("an unfinished answer", {"x.json": lc(L1, {**L2, "unfinished": True})}, ONE,
        is_cut=False),
    Variation("text that is null", {"x.json": lc(L1, lm("9", "1", False, None), lm("2", "9", False,
        "A."))}, ONE),
)  # fmt: skip


def st(name: str, is_user: bool, words: str, **fields: Any) -> dict:
    return {"name": name, "is_user": is_user, "is_system": False, "mes": words, "send_date": "t",
            "extra": {}, **fields}  # fmt: skip


TAVERN = {"user_name": "Ada", "character_name": "Luna", "create_date": "t", "chat_metadata": {}}
ST1, ST2 = st("Ada", True, "Hi"), st("Luna", False, "A.")

test_chats_of_sillytavern = variations(
    Variation("a chat", {"x.jsonl": lines(TAVERN, ST1, ST2)}, ONE, format="sillytavern"),
    Variation("a greeting", {"x.jsonl": lines(TAVERN, st("Luna", False, "Hello."), ST1, ST2)},
              [[("", "Hello."), ("Hi", "A.")]]),
    Variation("swipes", {"x.jsonl": lines(TAVERN, ST1, {**ST2, "swipes": ["B.", "A."],
        "swipe_id": 1})}, ONE,
              problem="1 other version"),
    Variation("reasoning", {"x.jsonl": lines(TAVERN, ST1, {**ST2,
        "extra": {"reasoning": "price"}})}, ONE),
    Variation("a note of the program", {"x.jsonl": lines(TAVERN, ST1, {
        **st("SillyTavern System", False, "price"), "is_system": True}, ST2)}, ONE),
    Variation("a small notice of an extension's", {"x.jsonl": lines(TAVERN, ST1, {
        **st("Tool", False, "price", extra={"isSmallSys": True}), "is_system": True}, ST2)}, ONE),
    Variation("a message that was hidden", {"x.jsonl": lines(TAVERN, {**ST1, "is_system": True},
        ST2)}, ONE),
    Variation("a narrator", {"x.jsonl": lines(TAVERN, st("x", False, "price",
        extra={"type": "narrator"}),
                                              ST1, ST2)}, ONE, seen=["price"]),
    Variation("a last line that was cut", {"x.jsonl": lines(TAVERN, ST1, ST2, '{"name": "Ad')}, ONE,
              problem="line 4:"),
)  # fmt: skip


# messages of interfaces


def chatfile(*messages: Any, **fields: Any) -> dict:
    return {"log.jsonl": lines({"messages": [*messages], **fields})}


def fn(name: str = "f", arguments: Any = '{"x": "ls"}', call: str = "c1") -> dict:
    return {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}


RESULT = {"role": "tool", "tool_call_id": "c1", "content": "y"}

test_lists_of_messages = variations(
    Variation("content that is null beside a call", chatfile(
        HI, {"role": "assistant", "content": None, "tool_calls": [fn()]}, RESULT, A), ONE,
        calls=["ls"], results=["y"], format="openai"),
    Variation("arguments as an object", chatfile(
        HI, {"role": "assistant", "content": "", "tool_calls": [fn(arguments={"x": "ls"})]}, A),
            ONE, calls=["ls"]),
    Variation("arguments that were cut", chatfile(
        HI, {"role": "assistant", "content": "", "tool_calls": [fn(arguments='{"x": "l')]}, A), ONE,
        calls=['{"x": "l']),
    Variation("no calls", chatfile(HI, {**A, "tool_calls": None}), ONE),
    Variation("an empty list of calls", chatfile(HI, {**A, "tool_calls": []}), ONE),
    Variation("a function call", chatfile(
        HI, {"role": "assistant", "content": None, "function_call": {"name": "f",
            "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "y"}, A), ONE, results=["y"]),
    Variation("a call as JSON in the text", chatfile(
        HI, {"role": "assistant", "content":
            'Wait.\n<tool_call>\n{"name": "f", "arguments": {"x": "ls"}}\n</tool_call>'},
        {"role": "user", "content": "<tool_response>\ny\n</tool_response>"}, A),
        [[("Hi", "Wait.\n\nA.")]], calls=["ls"],
        results=["<tool_response>\ny\n</tool_response>"]),
    Variation("an element of that name that is no call", chatfile(
        HI, {"role": "assistant", "content": "<tool_call>f</tool_call>"}),
        [[("Hi", "<tool_call>f</tool_call>")]], calls=[]),
    Variation("calls in parallel", chatfile(
        HI, {"role": "assistant", "content": "", "tool_calls": [fn("multi_tool_use.parallel",
            {"tool_uses": [{"recipient_name": "functions.f", "parameters": {"x": "ls"}},
                           {"recipient_name": "functions.g", "parameters": {"x": "pwd"}}]})]},
        {"role": "tool", "tool_call_id": "c1", "content": "y"}, A), ONE, calls=["ls", "pwd"],
        results=["y"]),
    Variation("content in parts", chatfile(
        {"role": "user", "content": [text("Hi"), {"type": "image_url", "image_url": {"url": "x"}}]},
        {"role": "assistant", "content": [text("A.")]}), ONE, problem="1 of the type 'image_url'"),
    Variation("sound", chatfile({"role": "user", "content": [{"type": "input_audio",
        "input_audio": {}},
                                                             text("Hi")]}, A), ONE,
        problem="1 of the type 'input_audio'"),
    Variation("a refusal", chatfile(HI, {"role": "assistant", "content": None, "refusal": "No."}),
              [[("Hi", "No.")]]),
    Variation("a developer", chatfile({"role": "developer", "content": "Be brief."}, HI, A), ONE,
              system="Be brief."),
    Variation("two prompts", chatfile(BRIEF, {"role": "system", "content": "Be kind."}, HI, A), ONE,
              system="Be brief.\n\nBe kind."),
    Variation("reasoning beside the content", chatfile(HI, {**A, "reasoning_content": "price"}),
        ONE),
    Variation("reasoning in the content", chatfile(HI, {"role": "assistant",
        "content": "<think>x</think>A."}), ONE),
    Variation("a bare list", {"log.jsonl": lines([HI, A])}, ONE),
    Variation("a document of one list", {"log.json": [HI, A]}, ONE),
    Variation("a document of lists", {"log.json": [[HI, A], [HI, A]]}, [*ONE, *ONE]),
    Variation("a page of results", {"log.json": {"data": [{"messages": [HI, A]}]}}, ONE),
    Variation("upper case", chatfile({**HI, "role": "USER"}, {**A, "role": "ASSISTANT"}), ONE),
    Variation("an unknown role beside a good line", {"log.jsonl": lines(
        {"messages": [{**HI, "role": "wizard"}, A]}, {"messages": [HI, A]})}, ONE,
            problem="wizard"),
    Variation("fields beside the messages", chatfile(HI, A, tools=[], parallel_tool_calls=True),
        ONE),
    Variation("a prompt with answers to choose from", {"log.jsonl": lines(
        {"messages": [HI, A]}, {"input": {"messages": [HI]}, "preferred_output": [A]})}, ONE,
        problem="line 2"),
    Variation("empty lines", {"log.jsonl": f"\n{json.dumps([HI, A])}\n\n\n"}, ONE),
    Variation("a mark of the order of bytes", {"log.jsonl": "\ufeff" + json.dumps([HI, A])}, ONE),
    Variation("a last line that was cut", {"log.jsonl": lines({"messages": [HI, A]},
        '{"messages": [{"ro')},
              ONE, problem="line 2:"),
    Variation("a list that ends with the user", chatfile(HI, A, {"role": "user",
        "content": "More?"}), ONE),
    Variation("two answers", chatfile(HI, A, {**A, "content": "B."}), [[("Hi", "A.\n\nB.")]]),
    Variation("an end at the limit", chatfile(HI, {**A, "finish_reason": "length"}), ONE,
        is_cut=True),
)  # fmt: skip

test_messages_of_anthropic = variations(
    Variation("a sentence that citations split", {"log.jsonl": lines({"system": "x", "messages": [
        HI, {"role": "assistant", "content": [text("It costs "), {**text("5 euros"), "citations": [
            {"type": "char_location", "cited_text": "5"}]}, text(".")]}]})},
        [[("Hi", "It costs 5 euros.")]]),
    Variation("a prompt as text", chatfile(HI, A, system="Be brief."), ONE, system="Be brief.",
        format="anthropic"),
    Variation("a prompt in blocks", chatfile(HI, A, system=[{**text("Be brief."),
        "cache_control": {}}]), ONE,
              system="Be brief."),
    Variation("a call and its result", chatfile(
        HI, {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f",
            "input": {"x": "ls"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "y"}]},
            A),
        ONE, calls=["ls"], results=["y"]),
    Variation("a result and words", chatfile(
        HI, {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f",
            "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [
            text("y"), IMAGE]}, text("More?")]}, A), [[("Hi", ""), ("More?", "A.")]],
                results=["y"], problem="1 of the type 'image'"),
    Variation("thinking", chatfile(HI, {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "price", "signature": "x"}, text("A.")]}), ONE,
            format="anthropic"),
    Variation("a document", chatfile({"role": "user", "content": [
        {"type": "document", "source": {"type": "text", "data": "price"}}, text("Hi")]}, A,
            system="x"), ONE, problem="1 of the type 'document'"),
    Variation("a search of the server", chatfile(HI, {"role": "assistant", "content": [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": [
            {"type": "web_search_result", "url": "u", "title": "t"}]}, text("A.")]}), ONE,
                calls=["x"], problem="1 of the type 'web_search_result'"),
    Variation("a request and its response", {"log.jsonl": lines({
        "request": {"system": "Be brief.", "messages": [HI]},
        "response": {"role": "assistant", "type": "message", "content": [text("A.")],
                     "stop_reason": "max_tokens"}})}, ONE, system="Be brief.", is_cut=True),
)  # fmt: skip


def responses(*items: Any, **fields: Any) -> dict:
    return {"log.jsonl": lines({"object": "response", "input": "Hi", "output": [*items], **fields})}


MSG = {"type": "message", "id": "m", "role": "assistant", "status": "completed",
       "content": [{"type": "output_text", "text": "A.", "annotations": []}]}  # fmt: skip

test_responses = variations(
    Variation("an input as text", responses(MSG), ONE, format="responses"),
    Variation("an input as items", responses(MSG, input=[HI]), ONE),
    Variation("instructions", responses(MSG, instructions="Be brief."), ONE, system="Be brief."),
    Variation("reasoning", responses({"type": "reasoning", "id": "r", "summary": [
        {"type": "summary_text", "text": "price"}]}, MSG), ONE),
    Variation("a call", responses({"type": "function_call", "call_id": "c", "name": "f",
        "arguments": '{"x": "ls"}'},
                                  MSG), ONE, calls=["ls"]),
    Variation("a call and its output", responses(MSG, input=[
        HI, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "y"}]), ONE, results=["y"]),
    Variation("a refusal", responses({**MSG, "content": [{"type": "refusal", "refusal": "No."}]}),
              [[("Hi", "No.")]]),
    Variation("items alone", {"log.jsonl": lines([{"type": "message", "role": "user",
        "content": "Hi"}, MSG])}, ONE),
    Variation("a response that is incomplete", responses(MSG, status="incomplete",
        incomplete_details={
        "reason": "max_output_tokens"}), ONE, is_cut=True),
    Variation("an input with an image", responses(MSG, input=[{"role": "user", "content": [
        {"type": "input_text", "text": "Hi"}, {"type": "input_image", "image_url": "x"}]}]), ONE,
        problem="1 of the type 'input_image'"),
    Variation("a call of a server's tool, with its output", responses({
        "type": "mcp_call", "id": "m", "name": "f", "arguments": '{"x": "ls"}', "output": "y"},
        MSG), ONE, calls=["ls"], results=["y"]),
    Variation("a response that another one continues", {"log.jsonl": lines(
        {"id": "r2", "previous_response_id": "r1", "input": "More?", "output": [{
            **MSG, "content": [{"type": "output_text", "text": "B."}]}]},
        {"id": "r1", "input": "Hi", "output": [MSG]})}, TWO),
    Variation("a response that two others continue", {"log.jsonl": lines(
        {"id": "r1", "input": "Hi", "output": [MSG]},
        {"id": "r2", "previous_response_id": "r1", "input": "More?", "output": [MSG]},
        {"id": "r3", "previous_response_id": "r1", "input": "Or?", "output": [MSG]})},
        [[("Hi", "A."), ("More?", "A.")], [("Or?", "A.")]], problem="1 of its 2 turns"),
    Variation("two responses with one id", {"log.jsonl": lines(
        {"id": "r1", "input": "Hi", "output": [MSG]},
        {"id": "r1", "input": "Or?", "output": [MSG]})},
        [ONE[0], [("Or?", "A.")]], problem="line 1 has the same id"),
    Variation("a response that was written as it began, and at its end", {"log.jsonl": lines(
        {"id": "r1", "input": "Hi", "output": []}, {"id": "r1", "input": "Hi", "output": [MSG]},
        {"id": "r1", "input": "Hi", "output": [MSG]})}, ONE),
    Variation("a response that continues itself", responses(MSG, id="r1",
        previous_response_id="r1"), ONE, problem="continue each other"),
    Variation("responses that continue each other in a circle", {"log.jsonl": lines(
        {"id": "r1", "previous_response_id": "r2", "input": "More?", "output": [{
            **MSG, "content": [{"type": "output_text", "text": "B."}]}]},
        {"id": "r2", "previous_response_id": "r1", "input": "Hi", "output": [MSG]})},
        TWO, problem="continue each other"),
    Variation("a reference to an item", responses(MSG, input=[{"type": "item_reference", "id": "x"},
        HI]), ONE),
)  # fmt: skip


def turn(speaker: str, words: Any) -> dict:
    return {"from": speaker, "value": words}


test_sharegpt = variations(
    Variation("a dialog", {"x.jsonl": lines({"conversations": [turn("human", "Hi"), turn("gpt",
        "A.")]})}, ONE,
              format="sharegpt"),
    Variation("a prompt among the turns", {"x.jsonl": lines({"conversations": [
        turn("system", "Be brief."), turn("human", "Hi"), turn("gpt", "A.")]})}, ONE,
            system="Be brief."),
    Variation("a prompt beside the turns", {"x.jsonl": lines({"system": "Be brief.",
        "conversations": [
        turn("human", "Hi"), turn("gpt", "A.")]})}, ONE, system="Be brief."),
    Variation("other names", {"x.jsonl": lines({"conversations": [turn("user", "Hi"),
        turn("chatgpt", "A.")]})}, ONE),
    Variation("roles and contents", {"x.jsonl": lines({"conversations": [HI, A]})}, ONE),
    Variation("a document", {"x.json": [{"id": "1", "conversations": [turn("human", "Hi"),
        turn("gpt", "A.")]}]}, ONE),
    Variation("a call", {"x.jsonl": lines({"tools": "[]", "conversations": [
        turn("human", "Hi"), turn("function_call", '{"name": "f", "arguments": {"x": "ls"}}'),
        turn("observation", "y"), turn("gpt", "A.")]})}, ONE, calls=["ls"], results=["y"]),
    Variation("a weight", {"x.jsonl": lines({"conversations": [
        {**turn("human", "Hi"), "weight": 0}, {**turn("gpt", "A."), "weight": 1}]})}, ONE),
    Variation("a value that is null", {"x.jsonl": lines({"conversations": [
        turn("human", "Hi"), turn("gpt", None), turn("gpt", "A.")]})}, ONE),
    Variation("a pair of texts", {"x.jsonl": lines(
        {"conversations": [turn("human", "Hi"), turn("gpt", "A.")]},
        {"conversation": [{"human": "Hi", "assistant": "A."}]})}, ONE, problem="line 2"),
)  # fmt: skip


# traces and logs of calls


def part(words: str) -> dict:
    return {"type": "text", "content": words}


def msg(role: str, *parts: dict, **fields: Any) -> dict:
    return {"role": role, "parts": [*parts], **fields}


IN, OUT = [msg("user", part("Hi"))], [msg("assistant", part("A."), finish_reason="stop")]


def span(name: str = "s1", trace: str = "t1", start: Any = 1, **attributes: Any) -> dict:
    fields = {f"gen_ai.{key.replace('__', '.')}": value for key, value in attributes.items()}
    return {"name": "chat x", "context": {"trace_id": trace, "span_id": name}, "start_time": start,
            "attributes": {"gen_ai.operation.name": "chat", **fields}}  # fmt: skip


def spans(*values: dict) -> dict:
    return {"spans.jsonl": lines(*values)}


def io(inputs: Any = IN, outputs: Any = OUT, **fields: Any) -> dict:
    return {
        "input__messages": json.dumps(inputs),
        "output__messages": json.dumps(outputs),
        **fields,
    }


PROMPT = [part("Be brief.")]
MORE = [*IN, msg("assistant", part("A.")), msg("user", part("More?"))]
OUT_B = [msg("assistant", part("B."))]

test_spans_of_opentelemetry = variations(
    Variation("a span", spans(span(**io())), ONE, format="otel"),
    Variation("messages that are no text", spans(span(input__messages=IN, output__messages=OUT)),
        ONE),
    Variation("a prompt", spans(span(**io(system_instructions=json.dumps(PROMPT)))), ONE,
        system="Be brief."),
    Variation("a prompt among the messages", spans(span(**io([msg("system", *PROMPT), *IN]))), ONE,
              system="Be brief."),
    Variation("reasoning", spans(span(**io(outputs=[msg("assistant", {"type": "reasoning",
        "content": "price"},
                                                        part("A."))]))), ONE),
    Variation("a call", spans(span(**io(outputs=[msg("assistant", {
        "type": "tool_call", "id": "c", "name": "f", "arguments": {"x": "ls"}}, part("A."))]))),
            ONE, calls=["ls"]),
    Variation("a result", spans(span(**io([*IN, msg("assistant", {
        "type": "tool_call", "id": "c", "name": "f", "arguments": '{"x": "ls"}'}), msg("tool", {
            "type": "tool_call_response", "id": "c", "response": "y"})]))), ONE, calls=["ls"],
                results=["y"]),
    Variation("an image", spans(span(**io([msg("user", part("Hi"), {
        "type": "blob", "modality": "image", "mime_type": "image/png", "content": "AA=="})]))),
            ONE, problem="1 of the type 'blob'"),
    Variation("a longer call of the same trace", spans(span(**io()), span("s2", start=2, **io(MORE,
        OUT_B))), TWO),
    Variation("calls of two traces", spans(span(**io()), span("s2", "t2", **io(outputs=OUT_B))),
              [ONE[0], [("Hi", "B.")]]),
    Variation("a conversation of two traces", spans(
        span(**io(conversation__id="c1")), span("s2", "t2", 2, **io(MORE, OUT_B,
            conversation__id="c1"))), TWO),
    Variation("spans of other operations", spans(
        {**span(), "attributes": {"gen_ai.operation.name": "execute_tool"}}, span(**io())), ONE),
    Variation("an agent's span beside its call", spans(
        {**span("s0", **io()), "attributes": {**span(**io())["attributes"],
                                              "gen_ai.operation.name": "invoke_agent"}},
                        span(**io())), ONE),
    Variation("a span without messages", spans(span(), span("s2", "t2", **io())), ONE,
        problem="no messages"),
    Variation("an end at the limit", spans(span(**io(outputs=[msg("assistant", part("A."),
        finish_reason="length")]))),
              ONE, is_cut=True),
    Variation("times that are text", spans(
        span("s2", start="2026-05-01T10:00:02Z", **io(MORE, OUT_B)),
            span(start="2026-05-01T10:00:01Z", **io())), TWO),
    Variation("OpenLLMetry", spans(span(**{
        "prompt__0__role": "system", "prompt__0__content": "Be brief.", "prompt__1__role": "user",
        "prompt__1__content": "Hi", "completion__0__role": "assistant",
            "completion__0__content": "A.",
        "completion__0__finish_reason": "stop"})), ONE, system="Be brief."),
    Variation("OpenLLMetry with a call", spans(span(**{
        "prompt__0__role": "user", "prompt__0__content": "Hi", "completion__0__role": "assistant",
        "completion__0__content": "A.", "completion__0__tool_calls__0__id": "c",
        "completion__0__tool_calls__0__name": "f",
            "completion__0__tool_calls__0__arguments": '{"x": "ls"}'})),
        ONE, calls=["ls"]),
    Variation("OpenInference", spans({
        "context": {"trace_id": "t", "span_id": "s"}, "span_kind": "LLM", "start_time": "1",
            "attributes": {
            "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": "Hi",
            "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": "A."}}),
        ONE, format="phoenix"),
    Variation("OpenInference with contents", spans({
        "context": {"trace_id": "t", "span_id": "s"}, "span_kind": "LLM", "attributes": {"llm": {
            "input_messages": [{"message": {"role": "user", "contents": [
                {"message_content": {"type": "text", "text": "Hi"}}]}}],
            "output_messages": [{"message": {"role": "assistant", "content": "A.", "tool_calls": [
                {"tool_call": {"id": "c", "function": {"name": "f",
                    "arguments": '{"x": "ls"}'}}}]}}]}}}),
        ONE, calls=["ls"]),
)  # fmt: skip


def value(of: Any) -> dict:
    """A value of OTLP's."""
    if isinstance(of, list):
        return {"arrayValue": {"values": [value(entry) for entry in of]}}
    if isinstance(of, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": value(v)} for k, v in of.items()]}}
    return {"stringValue": of}


def otlp(*items: dict, name: str = "o.jsonl") -> dict:
    batch = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [*items]}]}]}
    return {name: lines(batch) if name.endswith("l") else batch}


def ospan(number: int = 1, **attributes: Any) -> dict:
    fields = [{"key": k, "value": value(v)} for k, v in span(**attributes)["attributes"].items()]
    return {"traceId": "t1", "spanId": f"s{number}", "name": "chat",
        "startTimeUnixNano": str(number),
            "attributes": fields}  # fmt: skip


test_batches_of_otlp = variations(
    Variation("messages as text", otlp(ospan(**io())), ONE, format="otlp"),
    Variation("messages as values", otlp(ospan(input__messages=IN, output__messages=OUT)), ONE),
    Variation("a document", otlp(ospan(**io()), name="o.json"), ONE),
    Variation("two spans of a trace", otlp(ospan(**io()), ospan(2, **io(MORE, OUT_B))), TWO),
    Variation("messages in an event", otlp({**ospan(), "events": [{"name": "x", "attributes": [
        {"key": "gen_ai.input.messages", "value": value(json.dumps(IN))},
        {"key": "gen_ai.output.messages", "value": value(json.dumps(OUT))}]}]}), ONE),
    Variation("OpenInference", otlp({"traceId": "t", "spanId": "s", "attributes": [
        {"key": "openinference.span.kind", "value": value("LLM")},
        {"key": "llm.input_messages.0.message.role", "value": value("user")},
        {"key": "llm.input_messages.0.message.content", "value": value("Hi")},
        {"key": "llm.output_messages.0.message.role", "value": value("assistant")},
        {"key": "llm.output_messages.0.message.content", "value": value("A.")}]}), ONE),
)  # fmt: skip


def gen(inputs: Any, outputs: Any, **fields: Any) -> dict:
    return {"id": "o", "traceId": "t", "type": "GENERATION", "startTime": "1", "input": inputs,
            "output": outputs, **fields}  # fmt: skip


LCHUMAN = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages",
    "HumanMessage"],
           "kwargs": {"content": "Hi"}}  # fmt: skip
LCAI = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {"content": "A.", "tool_calls": []}}  # fmt: skip

test_observations_of_langfuse = variations(
    Variation("messages", {"x.jsonl": lines(gen([HI], A))}, ONE, format="langfuse"),
    Variation("messages in an object", {"x.jsonl": lines(gen({"messages": [BRIEF, HI]}, A))}, ONE,
              system="Be brief."),
    Variation("texts", {"x.jsonl": lines(gen("Hi", "A."))}, ONE),
    Variation("JSON in texts", {"x.jsonl": lines(gen(json.dumps([HI]), json.dumps(A)))}, ONE),
    Variation("a list as the output", {"x.jsonl": lines(gen([HI], [A]))}, ONE),
    Variation("no output", {"x.jsonl": lines(gen([HI], None), gen([HI], A, traceId="t2"))}, ONE,
              problem="the assistant says nothing"),
    Variation("a trace with observations", {"x.json": [{"id": "t", "sessionId": "s",
        "observations": [
        gen([HI], A), {"id": "o2", "type": "SPAN", "input": "price"}]}]}, ONE),
    Variation("one trace", {"x.json": {"id": "t", "observations": [gen([HI], A)]}}, ONE),
    Variation("names with underscores", {"x.jsonl": lines({"id": "o", "trace_id": "t",
        "type": "GENERATION",
                                                           "start_time": "1", "input": [HI],
                        "output": A})}, ONE),
    Variation("a session", {"x.jsonl": lines(gen([HI], A, sessionId="s"), gen(
        [HI, A, {"role": "user", "content": "More?"}], {**A, "content": "B."}, traceId="t2",
            sessionId="s",
        startTime="2"))}, TWO),
    Variation("messages of LangChain", {"x.jsonl": lines(gen(
        [{"type": "human", "content": "Hi"}], {"type": "ai", "content": "A."}))}, ONE),
    Variation("choices", {"x.jsonl": lines(gen([HI], {"choices": [{"message": A}]}))}, ONE),
    Variation("a call without words", {"x.jsonl": lines(gen([HI], {
        "role": "assistant", "content": None, "tool_calls": [fn()]}))}, [[("Hi", "")]],
            calls=["ls"]),
    Variation("a reply as a text in an object", {"x.jsonl": lines(gen([HI], {"content": "A."}))},
        ONE),
    Variation("a reply of Google's ADK", {"x.jsonl": lines(gen([HI], {
        "content": {"role": "model", "parts": [{"text": "A."}]}, "usage_metadata": {}}))}, ONE),
    Variation("a choice as it is", {"x.jsonl": lines(gen([HI], [
        {"index": 0, "role": "assistant", "message": A}]))}, ONE),
    Variation("a prompt that only the response has", {"x.jsonl": lines(gen([HI], {
        "id": "r", "object": "response", "instructions": "Be brief.", "output": [MSG]}))}, ONE,
        system="Be brief."),
    Variation("messages in one text", {"x.jsonl": lines(gen(
        "system: Be brief.\nuser: H\ni\nassistant: A.\nuser: More?", "B."))},
        [[("H\ni", "A."), ("More?", "B.")]], system="Be brief."),
    Variation("messages in one text, as LangChain writes them", {"x.jsonl": lines(gen(
        "System: Be brief.\nHuman: Hi", "A."))}, ONE, system="Be brief."),
    Variation("calls in LangChain's extra fields", {"x.jsonl": lines(gen([HI, {
        "role": "assistant", "content": "", "additional_kwargs": {"tool_calls": [fn()]}}, RESULT],
        A))}, ONE, calls=["ls"], results=["y"]),
    Variation("tools among the messages", {"x.jsonl": lines(gen([HI, {
        "role": "tool", "content": {"type": "function", "function": {"name": "f"}}}], A))}, ONE,
        results=[]),
    Variation("calls as a content", {"x.jsonl": lines(gen([HI, {
        "role": "tool", "content": json.dumps([fn()])}, {"role": "tool", "content": "y"}], A))},
        ONE, calls=["ls"], results=["y"]),
    Variation("a tool's name as the role of its result", {"x.jsonl": lines(gen([HI, {
        "role": "assistant", "content": "", "tool_calls": [fn()]}, {"role": "f", "content": "y"}],
        A))}, ONE, calls=["ls"], results=["y"]),
    Variation("calls of Vercel's SDK", {"x.jsonl": lines(gen([HI], [
        {"toolCallId": "c", "toolName": "f", "input": {"x": "ls"}}]))}, [[("Hi", "")]],
        calls=["ls"]),
    Variation("a call within a call", {"x.json": {"id": "t", "observations": [
        gen({"prompt": "Hi"}, "A.", id="o1"),
        gen([BRIEF, HI], "A.", id="o2", parentObservationId="o1", startTime="2")]}}, ONE,
        system="Be brief."),
    Variation("a call that is not read, beside another", {"x.json": {"id": "t", "observations": [
        gen([None], "A.", id="o1"), gen([HI], A, id="o2")]}}, ONE, problem="observation o1"),
    Variation("a call with results alone", {"x.json": {"id": "t", "observations": [
        gen([HI], {"role": "assistant", "content": "", "tool_calls": [fn()]}, id="o1"),
        gen([RESULT], A, id="o2", startTime="2")]}}, ONE, calls=["ls"], results=["y"]),
    Variation("a reply as a completion", {"x.jsonl": lines(gen([HI], {"completion": "A."}))}, ONE),
    Variation("a later call that begins with a call of a tool", {"x.jsonl": lines(gen([HI], A), gen(
        [{"role": "assistant", "content": None, "tool_calls": [fn()]}, RESULT], {**A,
            "content": "B."}, startTime="2"))}, [ONE[0], [("", "B.")]], calls=["ls"]),
    Variation("a call within a call, which is not read", {"x.json": {"id": "t", "observations": [
        gen([HI], A, id="o1"), gen([3], A, id="o2", parentObservationId="o1", startTime="2")]}},
        ONE, problem="observation o2"),
    Variation("a call within a call, with another input", {"x.json": {"id": "t", "observations": [
        gen([BRIEF, HI], A, id="o1"), gen([{**HI, "content": "Judge this: A."}], {**A,
            "content": "safe"}, id="o2", parentObservationId="o1", startTime="2")]}},
        [ONE[0], [("Judge this: A.", "safe")]]),
    Variation("a call within a call, without an answer", {"x.json": {"id": "t", "observations": [
        gen([HI], A, id="o1"), gen([HI], None, id="o2", parentObservationId="o1", startTime="2")]}},
        ONE, problem="the assistant says nothing"),
    Variation("a call within a call, with an empty answer", {"x.json": {"id": "t", "observations": [
        gen([HI], A, id="o1"), gen([HI], "", id="o2", parentObservationId="o1", startTime="2")]}},
        [ONE[0], [("Hi", "")]]),
    Variation("a call within a call, with another answer", {"x.json": {"id": "t", "observations": [
        gen([HI], {**A, "content": "B."}, id="o1"),
        gen([HI], A, id="o2", parentObservationId="o1", startTime="2")]}},
        ONE, problem="observation o1: left out, since o2 within it has the same input"),
    Variation("calls within each other", {"x.json": {"id": "t", "observations": [
        gen([HI], A, id="o1", parentObservationId="o2"),
        gen([HI], A, id="o2", parentObservationId="o1")]}}, ONE),
    Variation("calls as the content of a result", {"x.jsonl": lines(gen([HI, {
        "role": "assistant", "content": "", "tool_calls": [fn()]}, {"role": "tool", "content":
            json.dumps([fn()])}], A))}, ONE, calls=["ls"], results=[json.dumps([fn()])]),
    Variation("calls as the content of a user's message", {"x.jsonl": lines(gen([{
        "role": "user", "content": json.dumps([fn()])}], A))}, [[(json.dumps([fn()]), "A.")]]),
    Variation("a tool named user", {"x.jsonl": lines(gen([HI, {
        "role": "assistant", "content": "", "tool_calls": [fn("user")]}, RESULT, A, {
            "role": "user", "content": "More?"}], {**A, "content": "B."}))}, TWO, calls=["ls"],
            results=["y"]),
    Variation("a user's message that begins like a label", {"x.jsonl": lines(gen(
        "System: macOS 14. How do I update?", "A."))},
        [[("System: macOS 14. How do I update?", "A.")]]),
    Variation("a user's message with a label in it", {"x.jsonl": lines(gen(
        "user: is a field\nuser: must be set", "A."))},
        [[("user: is a field\nuser: must be set", "A.")]]),
)  # fmt: skip


def run(inputs: Any, outputs: Any, **fields: Any) -> dict:
    return {"id": "r", "run_type": "llm", "trace_id": "t", "start_time": "1", "inputs": inputs,
            "outputs": outputs, **fields}  # fmt: skip


test_runs_of_langsmith = variations(
    Variation("a batch of messages", {"x.jsonl": lines(run(
        {"messages": [[LCHUMAN]]}, {"generations": [[{"text": "A.", "message": LCAI}]]}))}, ONE,
        format="langsmith"),
    Variation("choices", {"x.jsonl": lines(run({"messages": [HI]}, {"choices": [{"message": A}]}))},
        ONE),
    Variation("a message", {"x.jsonl": lines(run({"messages": [HI]}, {"message": A}))}, ONE),
    Variation("messages as the output", {"x.jsonl": lines(run({"messages": [HI]},
        {"messages": [A]}))}, ONE),
    Variation("prompts", {"x.jsonl": lines(run({"prompts": ["Hi"]},
        {"generations": [[{"text": "A."}]]}))}, ONE),
    Variation("a role and content", {"x.jsonl": lines(run({"messages": [HI]}, A))}, ONE),
    Variation("runs of other types", {"x.jsonl": lines(run({}, {}, run_type="tool"),
        run({"messages": [HI]}, A))}, ONE),
    Variation("a tree of runs", {"x.json": {"id": "c", "run_type": "chain", "inputs": {},
        "outputs": {}, "child_runs": [
        run({"messages": [HI]}, A)]}}, ONE),
    Variation("no output", {"x.jsonl": lines(run({"messages": [HI]}, None, error="429"), run(
        {"messages": [HI]}, A, id="r2", trace_id="t2"))}, ONE,
            problem="the assistant says nothing"),
    Variation("a thread", {"x.jsonl": lines(
        run({"messages": [HI]}, A, extra={"metadata": {"thread_id": "s"}}),
        run({"messages": [HI, A, {"role": "user", "content": "More?"}]}, {**A, "content": "B."},
            id="r2",
            trace_id="t2", start_time="2", extra={"metadata": {"thread_id": "s"}}))}, TWO),
)  # fmt: skip


def lite(**fields: Any) -> dict:
    return {"id": "1", "call_type": "acompletion", "status": "success", "messages": [HI],
            "startTime": 1.0, "response": {"choices": [{"message": A, "finish_reason": "stop"}]},
                **fields}  # fmt: skip


test_payloads_of_litellm = variations(
    Variation("a payload", {"x.jsonl": lines(lite())}, ONE, format="litellm"),
    Variation("JSON in texts", {"x.jsonl": lines(lite(messages=json.dumps([HI]),
        response=json.dumps(
        {"choices": [{"message": A}]})))}, ONE),
    Variation("a response as text", {"x.jsonl": lines(lite(response="A."))}, ONE),
    Variation("a failure beside a success", {"x.jsonl": lines(lite(status="failure", response=None),
        lite())},
              ONE, problem="line 1"),
    Variation("a longer call", {"x.jsonl": lines(lite(), lite(
        startTime=2.0, messages=[HI, A, {"role": "user", "content": "More?"}],
        response={"choices": [{"message": {**A, "content": "B."}}]}))}, TWO),
    Variation("a request with choices", {"x.jsonl": lines({"messages": [HI],
        "choices": [{"message": A}]})}, ONE),
    Variation("a request and its completion", {"x.jsonl": lines({"messages": [HI],
        "completion": "A."})}, ONE),
    Variation("no choices, and again", {"x.jsonl": lines(lite(response={"choices": []}), lite())},
        ONE),
    Variation("a response of the Responses API", {"x.jsonl": lines(lite(
        call_type="aresponses", response={"output": [MSG]}))}, ONE),
    Variation("a response of Anthropic's", {"x.jsonl": lines(lite(
        call_type="anthropic_messages", response={"role": "assistant", "content": [text("A.")]}))},
            ONE),
)  # fmt: skip


# trajectories and evaluations


def atif(*steps: dict, **fields: Any) -> dict:
    numbered = [{"step_id": n, **step} for n, step in enumerate(steps, start=1)]
    return {"t.json": {"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "x"},
                       "steps": numbered, **fields}}  # fmt: skip


def step(source: str, message: Any, **fields: Any) -> dict:
    return {"source": source, "message": message, **fields}


SU, SA = step("user", "Hi"), step("agent", "A.")
ACALL = {"tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {"x": "ls"}}]}

test_trajectories = variations(
    Variation("a trajectory", atif(SU, SA), ONE, format="atif"),
    Variation("messages in parts", atif(step("user", [text("Hi"), {"type": "image", "source": {}}]),
        SA), ONE, problem="1 of the type 'image'"),
    Variation("calls that are null", atif(SU, {**SA, "tool_calls": None, "observation": None}),
        ONE),
    Variation("a call and its result", atif(SU, step("agent", "A.", **ACALL, observation={
        "results": [{"source_call_id": "c", "content": "y"}]})), ONE, calls=["ls"], results=["y"]),
    Variation("a result in parts", atif(SU, step("agent", "A.", **ACALL, observation={
        "results": [{"source_call_id": "c", "content": [text("y")]}]})), ONE, results=["y"]),
    Variation("a result that is null", atif(SU, step("agent", "A.", **ACALL, observation={
        "results": [{"source_call_id": "c", "content": None}]})), ONE, results=[""]),
    Variation("a message that is null", atif(SU, step("agent", None, **ACALL), SA), ONE,
        calls=["ls"]),
    Variation("a prompt", atif(step("system", "Be brief."), SU, SA), ONE, system="Be brief."),
    Variation("a step of the system's later", atif(SU, SA, step("system", "Compacted."),
        step("user", "More?"),
                                                   step("agent", "B.")), TWO, seen=["Compacted."]),
    Variation("reasoning", atif(SU, {**SA, "reasoning_content": "price"}), ONE),
    Variation("a subagent", atif(SU, SA, subagent_trajectories=[atif(step("user", "Count."), step(
        "agent", "One."))["t.json"]]), [ONE[0], [("Count.", "One.")]], subagents=1),
    Variation("copied context", atif({**SU, "is_copied_context": True}, {**SA,
        "is_copied_context": True},
                                     step("user", "More?"), step("agent", "B.")), [[("More?",
                        "B.")]]),
    Variation("an unknown source", {"a.json": atif(SU, step("wizard", "x"))["t.json"], **atif(SU,
        SA)}, ONE,
              problem="wizard"),
)  # fmt: skip


def sample(*messages: dict, **fields: Any) -> dict:
    return {"id": 1, "epoch": 1, "input": "Hi", "target": "", "messages": [*messages],
            "output": {"choices": []}, **fields}  # fmt: skip


def inspected(*samples: dict, **fields: Any) -> dict:
    return {
        "log.json": {
            "version": 2,
            "status": "success",
            "eval": {"task": "t"},
            "samples": [*samples],
            **fields,
        }
    }


IH, IA = {**HI, "id": "m1", "source": "input"}, {**A, "id": "m2", "source": "generate"}

test_logs_of_inspect = variations(
    Variation("a log", inspected(sample(IH, IA)), ONE, format="inspect"),
    Variation("two epochs", inspected(sample(IH, IA), sample(IH, IA, epoch=2)), [*ONE, *ONE]),
    Variation("reasoning", inspected(sample(IH, {**IA, "content": [
        {"type": "reasoning", "reasoning": "price", "signature": None}, text("A.")]})), ONE),
    Variation("a call", inspected(sample(IH, {**IA, "content": "", "tool_calls": [
        {"id": "c", "function": "bash", "arguments": {"cmd": "ls"}, "type": "function"}]},
        {"role": "tool", "tool_call_id": "c", "function": "bash", "content": "y"}, IA)), ONE,
        calls=["ls"], results=["y"]),
    Variation("a call that failed", inspected(sample(IH, {**IA, "content": "", "tool_calls": [
        {"id": "c", "function": "bash", "arguments": {"cmd": "ls"}}]}, {
            "role": "tool", "tool_call_id": "c", "content": "", "error": {"type": "timeout",
                "message": "no"}},
        IA)), ONE, results=["no"]),
    Variation("attachments", inspected(sample({**IH, "content": "attachment://x"}, IA,
        attachments={"x": "Hi"})), ONE),
    Variation("attachments within a call", inspected(sample(IH, {**IA, "tool_calls": [
        {"id": "c", "function": "bash", "arguments": {"cmd": "attachment://x"}}]},
            attachments={"x": "ls"})), ONE,
        calls=["ls"]),
    Variation("an error", inspected(sample(IH, IA, error={"message": "429"})), ONE, problem="429"),
    Variation("a log of a later version", inspected(sample(IH, IA), version=9), ONE,
        problem="version"),
    Variation("a summary of the dialog so far", inspected(sample(IH, IA, {
        "role": "user", "content": "[CONTEXT COMPACTION SUMMARY]", "metadata": {"summary": True}},
        {"role": "user", "content": "More?"}, {**A, "content": "B."})), TWO),
    Variation("samples in lines", {"s.jsonl": lines(sample(IH, IA))}, ONE),
    Variation("a tool of the provider's", inspected(sample(IH, {**IA, "content": [
        {"type": "tool_use", "tool_type": "web_search", "id": "w", "name": "web_search",
         "arguments": '{"query": "x"}', "result": "y"}, text("A.")]})), ONE, calls=["x"]),
    Variation("an image", inspected(sample({**IH, "content": [text("Hi"), {
        "type": "image", "image": "data:", "detail": "auto"}]}, IA)), ONE,
        problem="1 of the type 'image'"),
)  # fmt: skip


def test_turns_that_a_call_with_the_last_messages_repeats_count_once(tmp_path):
    why = [msg("user", part("Why?"))]
    content = spans(
        span(**io()),
        span("s2", start=2, **io(MORE, OUT_B)),
        span("s3", start=3, **io([*MORE[2:], *OUT_B, *why], [msg("assistant", part("C."))])),
        span("s4", start=4, **io([*why, msg("assistant", part("C.")), *MORE[2:]], OUT_B)),
    )
    path = tmp_path / "spans.jsonl"
    path.write_text(file_text(content["spans.jsonl"]))
    logs = read_logs([path])
    texts = [[(turn.user, turn.done.text) for turn in dialog.turns] for dialog in logs.dialogs]
    assert texts == [TWO[0], [("Why?", "C.")], [("More?", "B.")]]


def test_a_summary_in_a_log_of_inspect_replaces_all_but_the_input(tmp_path):
    summary = {"role": "user", "content": "Summary.", "metadata": {"summary": True}}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(inspected(sample(IH, IA, summary, IA))["log.json"]))
    (dialog,) = read_logs([path]).dialogs
    events = dialog.transcript.path
    context = Contexts(events).before(len(events) - 1)
    assert [event.text for event in context.events] == ["Hi", "Summary."]


# what is written twice, or in another order

SAME = span(**io())

test_order_and_repetition = variations(
    Variation("a span that was exported twice", spans(SAME, SAME), ONE),
    Variation("an observation that was exported twice", {"x.jsonl": lines(gen([HI], A), gen([HI],
        A))}, ONE),
    Variation("times with fewer digits", spans(
        span("s2", start=10, **io(MORE, OUT_B)), span(start=9, **io())), TWO),
    Variation("times of two zones", spans(
        span("s2", start="2026-05-01T10:00:00+00:00", **io(MORE, OUT_B)),
        span(start="2026-05-01T11:00:00+02:00", **io())), TWO),
    Variation("equal calls of users without sessions", {"x.jsonl": lines(lite(), lite())}, [*ONE,
        *ONE]),
    Variation("another answer to the same question", {"x.jsonl": lines(
        lite(), lite(startTime=2.0, response={"choices": [{"message": {**A, "content": "B."}}]}))},
        [ONE[0], [("Hi", "B.")]]),
    Variation("a call that goes on from the second answer", {"x.jsonl": lines(
        lite(), lite(startTime=2.0, response={"choices": [{"message": {**A, "content": "B."}}]}),
        lite(startTime=3.0, messages=[HI, {**A, "content": "B."}, {"role": "user", "content": "?"}],
             response={"choices": [{"message": {**A, "content": "C."}}]}))},
        [ONE[0], [("Hi", "B."), ("?", "C.")]]),
    Variation("a failure, and again", spans(span(start=1, **io(outputs=[])), span("s2", start=2,
        **io())),
              ONE),
    Variation("a fork in a trace", spans(span(**io()), span("s2", start=2, **io(MORE, OUT_B)), span(
        "s3", start=3, **io([*MORE[:2], msg("user", part("Or?"))], [msg("assistant",
            part("C."))]))),
        [TWO[0], [("Or?", "C.")]], problem="1 of its 2 turns"),
    Variation("a session in two exports", {
        "a.jsonl": lines(gen([HI], A, sessionId="s")),
        "b.jsonl": lines(gen([HI, A, {"role": "user", "content": "More?"}], {**A, "content": "B."},
                             sessionId="s", startTime="2"))}, TWO, problem="its only turn is in"),
    Variation("spans without a trace", spans(
        {"attributes": span(**io())["attributes"]},
        {"attributes": span(**io(outputs=OUT_B))["attributes"]}), [ONE[0], [("Hi", "B.")]]),
    Variation("a span of Vercel's AI SDK", spans({
        "name": "ai.generateText.doGenerate", "traceId": "t", "spanId": "s", "attributes": {
            "gen_ai.system": "openai", "ai.prompt.messages": json.dumps([
                BRIEF, {"role": "user", "content": [text("Hi")]}]), "ai.response.text": "A.",
            "ai.response.toolCalls": json.dumps([{"toolCallId": "c", "toolName": "f",
                                                  "input": {"x": "ls"}}])}}),
        ONE, calls=["ls"], system="Be brief."),
    Variation("parts as JSON in a string", spans(span(**{
        "prompt__0__role": "user", "prompt__0__content": json.dumps([text("Hi")]),
        "completion__0__role": "assistant", "completion__0__content": "A."})), ONE),
    Variation("two answers to choose from", spans(span(**io(outputs=[*OUT, {**OUT[0], "parts": [
        part("B.")]}]))), ONE),
    Variation("a chunk of a stream", {"x.jsonl": lines(lite(response={"choices": [
        {"delta": {"role": "assistant", "content": "A."}}]}))}, ONE),
    Variation("an output that is text", {"x.jsonl": lines(run({"messages": [HI]},
        {"output": "A."}))},
              ONE),
    Variation("a response that goes on from another", responses(MSG, previous_response_id="r1"),
        ONE,
              problem="it continues response 'r1', which is not included"),
    Variation("two chats of SillyTavern", {"x.jsonl": lines(
        TAVERN, ST1, ST2, TAVERN, st("Ada", True, "More?"), st("Luna", False, "B."))},
        [ONE[0], [("More?", "B.")]]),
    Variation("an error of ChatGPT", {"c.json": gpt("3", n1=N1, n2={
        "parent": "1", "message": {"author": {"role": "assistant"}, "recipient": "all", "content": {
            "content_type": "system_error", "name": "x", "text": "429"}}},
        n3=node("assistant", "A.", "2"))}, ONE),
    Variation("a batch of an older OTLP", {"o.json": {"resourceSpans": [{
        "instrumentationLibrarySpans": [{"spans": [ospan(**io())]}]}]}}, ONE),
    Variation("a compaction of Anthropic's interface", chatfile(
        HI, A, {"role": "user", "content": "More?"}, {"role": "assistant", "content": [
            {"type": "compaction", "content": "Summary."}, text("B.")]}, system="x"), TWO),
)  # fmt: skip


# how a file is written

FIXTURES = sorted((ROOT / "tests" / "data" / "logs").glob("*.jsonl"))


def as_read(path: Path) -> tuple[list, int]:
    """The texts in the dialogs of a file, and the number of its problems."""
    logs = read_logs([path])
    turns = [[(turn.user, turn.done) for turn in dialog.turns] for dialog in logs.dialogs]
    return turns, len(logs.problems)


def rewritten(content: str, change: Callable[[Any], Any]) -> bytes:
    values = map(json.loads, content.splitlines())
    return "".join(json.dumps(change(value)) + "\n" for value in values).encode()


def in_reverse(value: Any) -> Any:
    """A value with the fields of all its objects in the opposite order."""
    if isinstance(value, dict):
        return {name: in_reverse(field) for name, field in reversed(value.items())}
    return [*map(in_reverse, value)] if isinstance(value, list) else value


def with_new_fields(value: Any) -> Any:
    """A value with fields that its program has yet to invent."""
    new = {"schemaVersion": 9, "labels": None, "traits": {"mood": "fine"}}
    return {**new, **value} if isinstance(value, dict) else value


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
def test_how_a_file_is_written_changes_nothing(fixture, tmp_path):
    content = fixture.read_text(encoding="utf-8")
    expected = as_read(fixture)
    forms = {
        "mark.jsonl": ("\ufeff" + content).encode(),
        "windows.jsonl": content.replace("\n", "\r\n").encode(),
        "open.jsonl": content.rstrip("\n").encode(),
        "spaced.jsonl": ("\n\n" + content.replace("\n", "\n \n")).encode(),
        "wide.jsonl": content.encode("utf-16"),
        "escaped.jsonl": rewritten(content, lambda value: value),
        "reversed.jsonl": rewritten(content, in_reverse),
        "later_version.jsonl": rewritten(content, with_new_fields),
        "packed.jsonl.gz": gzip.compress(content.encode()),
    }
    for name, form in forms.items():
        (tmp_path / name).write_bytes(form)
        assert as_read(tmp_path / name) == expected, name


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
def test_a_last_line_that_was_cut_is_named(fixture, tmp_path):
    content = fixture.read_text(encoding="utf-8")
    turns, problems = as_read(fixture)
    path = tmp_path / "cut.jsonl"
    path.write_text(content + content.splitlines()[-1][:-9], encoding="utf-8")
    assert as_read(path) == (turns, problems + 1)


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)
def test_a_line_of_no_format_is_named(fixture, tmp_path):
    content = fixture.read_text(encoding="utf-8")
    turns, problems = as_read(fixture)
    path = tmp_path / "other.jsonl"
    path.write_text(content + '{"weather": "fine"}\n', encoding="utf-8")
    assert as_read(path) == (turns, problems + 1)
