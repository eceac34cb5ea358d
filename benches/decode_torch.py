"""Decode and prefill of PyTorch (oneDNN) on Qwen2.5-0.5B's shape with random weights, for `decode_peers.sh`.

    python3 benches/decode_torch.py TYPE [PROMPT [STEPS [THREADS]]]

Prints `torch TYPE PREFILL DECODE`, tokens per second: the prompt after one that warms up, and the mean of the steps after it.
Needs the packages torch and transformers.
"""

import sys
import time

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

TYPES = {"bf16": torch.bfloat16, "f32": torch.float32}


def main():
    kind = sys.argv[1]
    prompt, steps, threads = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((2, 512), (3, 64), (4, 2)))
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=151936,
        hidden_size=896,
        intermediate_size=4864,
        num_hidden_layers=24,
        num_attention_heads=14,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        model = Qwen2ForCausalLM(config)
    model = model.to(TYPES[kind]).to_empty(device="cpu").eval()
    with torch.inference_mode():
        for weight in model.parameters():
            weight.uniform_(-0.02, 0.02)
        for buffer in model.buffers():
            buffer.uniform_(0.001, 1.0)
        ids = torch.randint(0, config.vocab_size, (1, prompt))
        for _ in range(2):
            began = time.perf_counter()
            out = model(input_ids=ids, use_cache=True, logits_to_keep=1)
            prefill = prompt / (time.perf_counter() - began)
        cache = out.past_key_values
        began = time.perf_counter()
        for _ in range(steps):
            token = out.logits[:, -1].argmax(-1, keepdim=True)
            out = model(input_ids=token, past_key_values=cache, use_cache=True, logits_to_keep=1)
        decode = steps / (time.perf_counter() - began)
    print(f"torch {kind} {prefill:.1f} {decode:.2f}")


main()
