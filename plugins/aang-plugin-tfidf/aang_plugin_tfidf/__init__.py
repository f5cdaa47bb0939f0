"""Predicting how informative each word of a document is.

AANG (Dery et al., ICLR 2023), section 3, stage 4 and Figure 1 name the TF-IDF of a token as an
output: a training signal that every collection of documents provides without labels.

======  =========  ===================================
stage   primitive  class
======  =========  ===================================
output  tf-idf     aang_plugin_tfidf.tf_idf:TfIdf
======  =========  ===================================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
