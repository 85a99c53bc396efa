"""A GGUF file of a few kilobytes with random weights: real for the runtime, and no model at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WIDTH, HEADS, LAYERS, INNER, CONTEXT = 32, 2, 1, 64, 2048
MERGES = (
    "n a", "m e", "na me", '{ "', '" :', '": "', '" ,', '", "', "a r", "g s", "ar gs", "r e", "a d", "re ad", "f i",
    "l e", "fi le", "t h", "p a", "pa th", '" }', "} }", '": {', "Ġ t", "i n", "e r",
)  # fmt: skip
CONTROL = ("<|start|>", "<|end|>")
TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def byte_letters() -> list[str]:
    """The letters that byte-level vocabularies write for the 256 bytes."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    beyond = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(beyond)) for byte in range(256)]


def vocabulary() -> list[str]:
    """Every byte, what the merges make of them, and the control tokens."""
    return [*byte_letters(), *(merge.replace(" ", "") for merge in MERGES), *CONTROL]


def sentence_pieces() -> list[str]:
    """A vocabulary of the other kind: bytes by their numbers, and pieces in which `\u2581` stands for a space."""
    letters = [chr(code).replace(" ", "\u2581") for code in range(32, 127)]
    pieces = [merge.replace(" ", "").replace("\u0120", "\u2581") for merge in MERGES]
    return ["<unk>", *CONTROL, *(f"<0x{byte:02X}>" for byte in range(256)), *letters, *pieces]


def write_tiny_gguf(path: Path, *, seed: int = 0, pieces: bool = False) -> Path:
    """Write the file; another seed makes other weights, and `pieces` a vocabulary as SentencePiece has it."""
    import gguf
    import numpy

    tokens = sentence_pieces() if pieces else vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_token_list(tokens)
    (_add_pieces if pieces else _add_byte_level)(writer, tokens)
    writer.add_chat_template(TEMPLATE)
    source = numpy.random.default_rng(seed)
    for name, shape in _tensors(len(tokens)).items():
        values = numpy.ones(shape) if name.endswith("norm.weight") else source.normal(0, 0.5, shape)
        writer.add_tensor(name, values.astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_byte_level(writer: Any, tokens: list[str]) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_types([1] * (len(tokens) - len(CONTROL)) + [3] * len(CONTROL))
    writer.add_token_merges(list(MERGES))
    writer.add_eos_token_id(len(tokens) - 1)


def _add_pieces(writer: Any, tokens: list[str]) -> None:
    writer.add_tokenizer_model("llama")
    writer.add_token_types([2, 3, 3, *([6] * 256), *([1] * (len(tokens) - 259))])
    writer.add_token_scores([float(-number) for number in range(len(tokens))])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)


def _tensors(size: int) -> dict[str, tuple[int, ...]]:
    layer = {
        "attn_norm": (WIDTH,),
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (WIDTH, WIDTH),
        "attn_v": (WIDTH, WIDTH),
        "attn_output": (WIDTH, WIDTH),
        "ffn_norm": (WIDTH,),
        "ffn_gate": (INNER, WIDTH),
        "ffn_up": (INNER, WIDTH),
        "ffn_down": (WIDTH, INNER),
    }
    blocks = {f"blk.{n}.{name}.weight": shape for n in range(LAYERS) for name, shape in layer.items()}
    return {
        "token_embd.weight": (size, WIDTH),
        **blocks,
        "output_norm.weight": (WIDTH,),
        "output.weight": (size, WIDTH),
    }
