# The names of this module's table, written by tests/write_stubs.py.

from minijax.example_libraries.stax import (AvgPool as AvgPool, BatchNorm as BatchNorm, Conv as Conv, Conv1DTranspose
    as Conv1DTranspose, ConvTranspose as ConvTranspose, Dense as Dense, Dropout as Dropout, Elu as Elu, Exp as Exp,
    FanInConcat as FanInConcat, FanInSum as FanInSum, FanOut as FanOut, Flatten as Flatten, Gelu as Gelu, GeneralConv
    as GeneralConv, GeneralConvTranspose as GeneralConvTranspose, Identity as Identity, LeakyRelu as LeakyRelu,
    LogSoftmax as LogSoftmax, MaxPool as MaxPool, Relu as Relu, Selu as Selu, Sigmoid as Sigmoid, Softmax as Softmax,
    Softplus as Softplus, SumPool as SumPool, Tanh as Tanh, elementwise as elementwise, glorot as glorot, logsoftmax
    as logsoftmax, parallel as parallel, randn as randn, serial as serial, shape_dependent as shape_dependent)
