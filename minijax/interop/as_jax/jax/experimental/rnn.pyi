# The names of this module's table, written by tests/write_stubs.py.

from minijax.experimental.rnn import (PRNGKeyArray as PRNGKeyArray, get_num_params_in_lstm as get_num_params_in_lstm,
    init_lstm_weight as init_lstm_weight, lstm as lstm, lstm_bwd as lstm_bwd, lstm_fwd as lstm_fwd, lstm_ref as
    lstm_ref, rnn_abstract_eval as rnn_abstract_eval, rnn_bwd_abstract_eval as rnn_bwd_abstract_eval, rnn_bwd_p as
    rnn_bwd_p, rnn_fwd_p as rnn_fwd_p, sigmoid as sigmoid, swap_lstm_gates as swap_lstm_gates, tanh as tanh,
    unpack_lstm_weights as unpack_lstm_weights)
