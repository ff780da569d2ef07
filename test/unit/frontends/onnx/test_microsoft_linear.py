"""Linear attention and causal convolutions of com.microsoft, evaluated by the xt dialect, beside onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from microsoft_ops import check, drawn, evaluated, model

from xcc.diagnostics import UserError

B, C, DK, DV = 2, 6, 8, 4


@pytest.mark.parametrize("kind", ["none", "silu"])
def test_causal_convolution(kind):
    free = {0: ("b", C, "n"), 3: ("b", C, 3)}
    for length in (1, 9):
        inputs = [drawn(B, C, length), drawn(C, 1, 4), drawn(C), drawn(B, C, 3)]
        check("CausalConvWithState", inputs, 2, activation=kind, free=free)
        check("CausalConvWithState", [*inputs[:2], None, None], 2, activation=kind)


@pytest.mark.parametrize("heads", [(2, 2), (4, 2), (2, 4)], ids=str)
@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention(rule, heads):
    q, kv = heads
    for length in (1, 7):
        keys = drawn(B, length, kv, DK)
        keys = (keys / np.linalg.norm(keys, axis=-1, keepdims=True)).reshape(B, length, -1)
        wide = DK if kv == 2 else 1
        decay = -np.abs(drawn(B, length, kv * wide)) if "gated" in rule else None
        beta = 1 / (1 + np.exp(drawn(B, length, kv))) if "delta" in rule else None
        inputs = [drawn(B, length, q * DK), keys, drawn(B, length, kv * DV), drawn(B, kv, DK, DV), decay, beta]
        free = {i: ("b", "t", x.shape[2]) for i, x in enumerate(inputs) if x is not None and i != 3}
        check("LinearAttention", inputs, 2, update_rule=rule, q_num_heads=q, kv_num_heads=kv, free=free)
        check("LinearAttention", [*inputs[:3], None, *inputs[4:]], 2, update_rule=rule, q_num_heads=q, kv_num_heads=kv,
              scale=0.5)


def test_what_is_not_supported():
    with pytest.raises(UserError, match="state_window"):
        evaluated(model("LinearAttention", [drawn(1, 1, 4)] * 3, 2, q_num_heads=1, kv_num_heads=1, state_window=2), {})
    with pytest.raises(UserError, match="sequences"):
        evaluated(model("CausalConvWithState", [drawn(1, 4, 2), drawn(2, 1, 2)], 2, channels_last=1), {})
