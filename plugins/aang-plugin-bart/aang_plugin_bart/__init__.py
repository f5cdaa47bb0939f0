"""BART's corruptions that change the length or the order of a text.

Lewis et al., "BART: Denoising Sequence-to-Sequence Pre-training for Natural Language Generation,
Translation, and Comprehension" (ACL 2020), section 2.2. Its token masking is ``mask`` of
``aang-plugin-bert``.

=========  ==================  =====================================================
stage      primitive           class
=========  ==================  =====================================================
transform  delete              aang_plugin_bart.delete:Delete
transform  permute-sentences   aang_plugin_bart.permute_sentences:PermuteSentences
transform  infill              aang_plugin_bart.infill:Infill
=========  ==================  =====================================================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
