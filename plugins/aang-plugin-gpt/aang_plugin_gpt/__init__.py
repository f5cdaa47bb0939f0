"""Reading in one direction, as language models do.

Left to right: Radford et al., "Improving Language Understanding by Generative Pre-Training" (2018),
section 3.1. Right to left: the backward language model of Peters et al., "Deep contextualized word
representations" (NAACL 2018), section 3.1.

=================  ==============  =========================================
stage              primitive       class
=================  ==============  =========================================
representation     left-to-right   aang_plugin_gpt.left_to_right:LeftToRight
representation     right-to-left   aang_plugin_gpt.right_to_left:RightToLeft
output             next-token      aang_plugin_gpt.next_token:NextToken
=================  ==============  =========================================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
