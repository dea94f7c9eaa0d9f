"""HuggingFace's GPT-2 with our weights in it."""

import torch
from transformers import GPT2Config, GPT2Model

from algoscope.models import Network


def gpt2(network: Network, layers: int, heads: int) -> GPT2Model:
    """GPT-2 with the weights of a network. Its linear maps hold their matrices the other way around."""
    ours = network.state_dict()
    length, width = ours["positions"].shape
    sizes = {"n_positions": length, "n_embd": width, "n_layer": layers, "n_head": heads}
    config = GPT2Config(vocab_size=1, bos_token_id=None, eos_token_id=None, **sizes)
    assert config.activation_function == "gelu_new"
    assert config.layer_norm_epsilon == 1e-5
    theirs = {"wte.weight": torch.zeros(1, width), "wpe.weight": ours["positions"]}
    theirs |= {f"ln_f.{kind}": ours[f"norm.{kind}"] for kind in ("weight", "bias")}
    parts = {
        "ln_1": "attention_norm",
        "attn.c_attn": "attention.queries_keys_values",
        "attn.c_proj": "attention.output",
        "ln_2": "mlp_norm",
        "mlp.c_fc": "mlp.up",
        "mlp.c_proj": "mlp.down",
    }
    for i in range(layers):
        for their_name, our_name in parts.items():
            weight = ours[f"blocks.{i}.{our_name}.weight"]
            theirs[f"h.{i}.{their_name}.weight"] = weight.T if weight.ndim == 2 else weight
            theirs[f"h.{i}.{their_name}.bias"] = ours[f"blocks.{i}.{our_name}.bias"]
    model = GPT2Model(config).to(ours["positions"].dtype).eval()
    model.load_state_dict(theirs)
    model.set_attn_implementation("eager")  # plain products and a softmax, not the kernel that ours calls
    return model
