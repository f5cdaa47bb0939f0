"""Fine-tuning of a part of the encoder: low-rank adapters, or the last layers alone.

=============  ================================================================================
module         what it holds
=============  ================================================================================
hooks          the options, and how they change a loaded encoder
adapters       LoRA (Hu et al., ICLR 2022), through peft
frozen_layers  which parameters the first trained layer depends on, and so are frozen
=============  ================================================================================

Nothing is imported here, so that listing plug-ins loads neither torch nor peft.
"""
