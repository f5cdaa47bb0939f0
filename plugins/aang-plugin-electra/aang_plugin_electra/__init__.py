"""Telling replaced tokens from original ones.

Clark et al., "ELECTRA: Pre-training Text Encoders as Discriminators Rather Than Generators" (ICLR
2020), section 2.

=======  ==============  =================================================
stage    primitive       class
=======  ==============  =================================================
data     neural-lm       aang_plugin_electra.neural_lm:NeuralLm
output   real-synthetic  aang_plugin_electra.real_synthetic:RealSynthetic
=======  ==============  =================================================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
