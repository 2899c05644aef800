"""`TextDecoder`: when the text of a token is certain, and where a stop string cuts it."""

from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer
from tokenizers.decoders import ByteFallback, ByteLevel, Fuse, Sequence
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from holdfast.models.requests import Reply, Token
from holdfast.models.streaming import TextDecoder

# the bytes of "é" are split between two tokens; byte-level tokenizers write them as Ã and ©
PIECES = ["Ã", "©!", "a", "!b", "!"]


def byte_level_tokenizer():
    backend = Tokenizer(BPE({piece: number for number, piece in enumerate(PIECES)}, []))
    backend.decoder = ByteLevel()
    return SimpleNamespace(backend_tokenizer=backend)


@pytest.fixture
def decode():
    def texts_of(pieces, stops):
        decoder = TextDecoder(byte_level_tokenizer(), stops)
        tokens = []
        for piece in pieces:
            tokens += decoder.add(Token(PIECES.index(piece)))
        return [token.text for token in tokens], decoder.stopped

    return texts_of


def test_a_stop_string_inside_the_token_that_completes_a_character_leaves_the_character(decode):
    assert decode(["a", "Ã", "©!"], ["!"]) == (["a", "", "é"], True)


def test_a_stop_string_across_tokens_cuts_the_first_of_them(decode):
    assert decode(["a", "Ã", "©!", "!b"], ["!!"]) == (["a", "", "é"], True)
    assert decode(["a", "!"], ["a!"]) == ([], True)


def test_a_text_that_may_begin_a_stop_string_waits(decode):
    assert decode(["a", "!"], ["!b"]) == (["a"], False)
    assert decode(["a", "!", "a"], ["!b"]) == (["a", "!", "a"], False)
    assert decode(["a", "Ã"], ["!"]) == (["a"], False)


def test_a_character_is_released_once_it_is_whole_or_the_reply_is_over():
    decoder = TextDecoder(byte_level_tokenizer())
    assert [token.text for token in decoder.add(Token(PIECES.index("a")))] == ["a"]
    assert decoder.add(Token(PIECES.index("Ã"))) == ()
    tokens = decoder.finish(Reply("a\ufffd", (2, 0), "length"))
    assert [token.text for token in tokens] == ["\ufffd"]


def test_an_invalid_byte_after_a_whole_character_does_not_end_the_stream():
    """In tokenizers like those of Llama 2 and Gemma, a byte without a character is a token."""
    vocabulary = {f"<0x{byte:02X}>": byte for byte in range(256)} | {"a": 256, "b": 257}
    backend = Tokenizer(BPE(vocabulary, [], byte_fallback=True))
    backend.decoder = Sequence([ByteFallback(), Fuse()])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)
    token_ids = [*"\u4e2d".encode(), 0xF0, 256, 257]
    decoder = TextDecoder(tokenizer)
    texts = ["".join(t.text for t in decoder.add(Token(token_id))) for token_id in token_ids]
    texts.append(
        "".join(t.text for t in decoder.finish(Reply(tokenizer.decode(token_ids), None, "")))
    )
    assert texts == ["", "", "\u4e2d", "", "\ufffd\ufffd\ufffda", "b", ""]
