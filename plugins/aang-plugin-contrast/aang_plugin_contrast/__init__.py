"""Contrastive outputs: rows that belong together are pulled together, all others apart.

With few labels they teach the encoder about the classes what cross-entropy alone does not (Khosla
et al., 2020; Gunel et al., 2021), and without labels that a text is itself under any dropout (Gao
et al., 2021).

======  ====================  =======================================================
stage   primitive             class
======  ====================  =======================================================
output  supervised-contrast   aang_plugin_contrast.supervised:SupervisedContrast
output  simcse                aang_plugin_contrast.simcse:SimCSE
======  ====================  =======================================================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
