"""Checks of fused attention under jax's private names, by which keras decides whether to call it."""

import enum
from typing import Any

from minijax.nn.cudnn_attention import check_operands, check_sizes
from minijax.run.clients import plugins


class AttentionLayout(enum.Enum):
    """The order of the axes: batch, length, heads and features, or batch, heads, length and features."""

    BTNH = 0
    BNTH = 1


def normalize_layout(layout: str) -> AttentionLayout:
    """Returns the layout of that name. Raises ValueError for another name."""
    if layout.upper() not in AttentionLayout.__members__:
        raise ValueError(f"Unsupported qkv_layout: {layout}")
    return AttentionLayout[layout.upper()]


def check_cudnn_version() -> int:
    """Returns the version of cuDNN, such as 91002. Raises RuntimeError if its library is not there."""
    version = plugins.cudnn_version()
    if version is None:
        raise RuntimeError("cuDNN is not detected.")
    return version


def check_layout(query: Any, key: Any, value: Any, bias: Any, layout: AttentionLayout) -> None:
    """Raises NotImplementedError or ValueError for operands that cuDNN's attention does not take."""
    if layout is not AttentionLayout.BTNH:
        raise NotImplementedError(f"dot_product_attention: the layout {layout.name} is not supported")
    check_operands(query, key, bias)


def check_is_flash_attention(
    query: Any, key: Any, layout: AttentionLayout, cudnn_version: int, has_bias: bool, is_training: bool
) -> None:
    """Raises NotImplementedError for sizes that cuDNN's attention does not take."""
    check_sizes(query, key, is_training)
