"""Gradient signals from one forward and one backward pass over the rows of all tasks.

Backward computes gradients of activations only. At every module, the gradient of its parameters
follows from its input and the gradient of its output, which both have rows, so it can be computed
for each task's rows separately (:mod:`aang_plugin_packed.rules`). Nothing is imported here, so that
listing plug-ins stays light.

=============  =====================================================
module         what it does
=============  =====================================================
``packed``     the engine: which rows run together, in which order
``pack_run``   one pass: forward, every task's head, backward
``taps``       hooks that report what parameter gradients are made of
``rules``      the parameter gradients of single modules, by row
``ledger``     dots, squares and the weighted sum of the gradients
=============  =====================================================
"""
