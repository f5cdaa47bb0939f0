"""Fine-tuning of a part of the encoder: low-rank adapters, or the last layers alone.

=============  ================================================================================
module         what it holds
=============  ================================================================================
hooks          the options, and what they make of an encoder that has been loaded
adapters       LoRA (Hu et al., ICLR 2022), through peft
frozen_layers  which parameters the first layers to be trained read, and so are frozen
=============  ================================================================================

Nothing is imported here, so that listing plug-ins loads neither torch nor peft.
"""
