"""Reading in a random order, as in XLNet.

Yang et al., "XLNet: Generalized Autoregressive Pretraining for Language Understanding" (NeurIPS
2019), sections 2.2 and 2.3. Over many orders a token learns from both sides, yet within one order
it never sees what comes after it.

=================  ==================  ====================================================
stage              primitive           class
=================  ==================  ====================================================
representation     random-factorized   aang_plugin_xlnet.random_factorized:RandomFactorized
=================  ==================  ====================================================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
