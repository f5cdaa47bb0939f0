"""Generic text from plain files: the data of BERT's, GPT's and XLNet's own objectives.

=====  =============  ==========================================
stage  primitive      class
=====  =============  ==========================================
data   out-of-domain  aang_plugin_text.out_of_domain:OutOfDomain
=====  =============  ==========================================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
