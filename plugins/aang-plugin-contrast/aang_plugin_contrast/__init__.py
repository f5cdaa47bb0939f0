"""Contrastive outputs: representations of related rows are pulled together, all others apart.

With few labels, contrast over the classes teaches the encoder more than cross-entropy alone (Khosla
et al., 2020; Gunel et al., 2021). Without labels, contrast over views teaches it that a text stays
the same under any dropout (Gao et al., 2021).

======  ====================  =======================================================
stage   primitive             class
======  ====================  =======================================================
output  supervised-contrast   aang_plugin_contrast.supervised:SupervisedContrast
output  simcse                aang_plugin_contrast.simcse:SimCSE
======  ====================  =======================================================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
