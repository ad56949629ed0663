"""jax.nn: functions for neural networks."""

from minijax.base.faces import Face

__getattr__, __dir__ = _FACE = Face(
    __name__,
    {
        "minijax.nn.attention": "dot_product_attention",
        "minijax.nn.scaled": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
        "minijax.nn.functions": """
        celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu log1mexp log_sigmoid
        log_softmax logmeanexp logsumexp mish one_hot relu relu6 selu sigmoid silu soft_sign softmax softplus
        sparse_plus sparse_sigmoid squareplus standardize swish tanh
    """,
    },
    ("initializers",),
)
