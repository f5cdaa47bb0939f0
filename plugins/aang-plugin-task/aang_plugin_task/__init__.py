"""The end task itself as a source of auxiliary objectives.

AANG (Dery et al., ICLR 2023), section 3: "task augmentation". Objectives over the end task's own
text, including those that predict its own label from a corrupted input, need no other data. Where
labels are few and texts are many, ``unlabelled`` is the text without them, and ``td+u`` the space
of both.

======  =============  =======================================
stage   primitive      class
======  =============  =======================================
data    task           aang_plugin_task.data:TaskData
data    end-task-rows  aang_plugin_task.data:EndTaskRows
data    unlabelled     aang_plugin_task.unlabelled:Unlabelled
output  end-task       aang_plugin_task.label:Label
output  own-label      aang_plugin_task.label:Label
======  =============  =======================================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
