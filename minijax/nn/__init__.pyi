# The names of this module's table, written by tests/write_stubs.py.

from minijax.nn import initializers as initializers
from minijax.nn.attention import dot_product_attention as dot_product_attention
from minijax.nn.functions import celu as celu
from minijax.nn.functions import elu as elu
from minijax.nn.functions import gelu as gelu
from minijax.nn.functions import glu as glu
from minijax.nn.functions import hard_sigmoid as hard_sigmoid
from minijax.nn.functions import hard_silu as hard_silu
from minijax.nn.functions import hard_swish as hard_swish
from minijax.nn.functions import hard_tanh as hard_tanh
from minijax.nn.functions import identity as identity
from minijax.nn.functions import leaky_relu as leaky_relu
from minijax.nn.functions import log_sigmoid as log_sigmoid
from minijax.nn.functions import log_softmax as log_softmax
from minijax.nn.functions import logmeanexp as logmeanexp
from minijax.nn.functions import logsumexp as logsumexp
from minijax.nn.functions import mish as mish
from minijax.nn.functions import one_hot as one_hot
from minijax.nn.functions import selu as selu
from minijax.nn.functions import sigmoid as sigmoid
from minijax.nn.functions import silu as silu
from minijax.nn.functions import soft_sign as soft_sign
from minijax.nn.functions import softmax as softmax
from minijax.nn.functions import softplus as softplus
from minijax.nn.functions import sparse_plus as sparse_plus
from minijax.nn.functions import sparse_sigmoid as sparse_sigmoid
from minijax.nn.functions import squareplus as squareplus
from minijax.nn.functions import standardize as standardize
from minijax.nn.functions import swish as swish
from minijax.nn.scaled import get_scaled_dot_general_config as get_scaled_dot_general_config
from minijax.nn.scaled import scaled_dot_general as scaled_dot_general
from minijax.nn.scaled import scaled_matmul as scaled_matmul
from minijax.run.arrays.array import Array
from minijax.run.arrays.array import ArrayLike

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config", "glu", "hard_sigmoid",
    "hard_silu", "hard_swish", "hard_tanh", "identity", "initializers", "leaky_relu", "log1mexp", "log_sigmoid",
    "log_softmax", "logmeanexp", "logsumexp", "mish", "one_hot", "relu", "relu6", "scaled_dot_general",
    "scaled_matmul", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid",
    "squareplus", "standardize", "swish", "tanh"
]

def log1mexp(x: ArrayLike) -> Array: ...
def relu(x: ArrayLike) -> Array: ...
def relu6(x: ArrayLike) -> Array: ...
def tanh(x: ArrayLike, /) -> Array: ...
