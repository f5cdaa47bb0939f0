"""The end task itself as a source of auxiliary objectives.

AANG (Dery et al., ICLR 2023), section 3: "task augmentation". Objectives over the end task's own
text, including those that predict its own label from a corrupted input, need no other data.

======  ===========  ==============================
stage   primitive    class
======  ===========  ==============================
data    task         aang_plugin_task.data:TaskData
output  end-task     aang_plugin_task.label:Label
output  own-label    aang_plugin_task.label:Label
======  ===========  ==============================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
