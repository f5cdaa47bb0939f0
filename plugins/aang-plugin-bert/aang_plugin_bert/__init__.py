"""Denoising as in BERT: corrupt some tokens, read the text in both directions, restore them.

Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding"
(NAACL 2019), section 3.1. AANG (Dery et al., ICLR 2023) splits BERT's objective into stages, so
that each part can be combined with parts of other objectives.

=================  ==============  ==========================================
stage              primitive       class
=================  ==============  ==========================================
transform          mask            aang_plugin_bert.mask:Mask
transform          replace         aang_plugin_bert.replace:Replace
transform          bert-op         aang_plugin_bert.bert_op:BertOp
transform          noising-embeds  aang_plugin_bert.noising_embeds:NoisingEmbeds
representation     bidirectional   aang_plugin_bert.bidirectional:Bidirectional
output             denoise         aang_plugin_bert.denoise:Denoise
=================  ==============  ==========================================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
